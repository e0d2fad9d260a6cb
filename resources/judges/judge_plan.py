"""What a judge would be asked, and what it would cost and gain: in numbers and in words."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from resources.judges.estimates import TokenEstimate


@dataclass(frozen=True)
class JudgePlan:
    """What a judge would be asked: no calls for verdicts that came with the corpus.

    Attributes
    ----------
    judge, partition : str
        The judge, and its partition of the corpus.
    n_calls, n_stored : int
        Calls to be made, and calls that the verdict store answers.
    tokens : TokenEstimate or None
        Of the calls; None for judges that are not served.
    money, most_money : float or None
        Expected and largest price of the tokens, in `currency`; None without a price.
    half_width : str
        What the ratings' intervals would gain, in words; empty where nothing would be asked.
    by_form : mapping of str to int
        Calls in each form that the judge is asked in.
    note : str
        What would change the number of calls, if anything is known to.
    """

    judge: str
    partition: str
    n_calls: int
    n_stored: int = 0
    tokens: TokenEstimate | None = None
    money: float | None = None
    most_money: float | None = None
    currency: str = ""
    half_width: str = ""
    by_form: Mapping[str, int] = field(default_factory=dict)
    note: str = ""

    @property
    def n_tokens(self) -> int:
        """Expected prompt and completion tokens together."""
        return self.tokens.prompt_tokens + self.tokens.completion_tokens if self.tokens else 0


def told(plan: JudgePlan) -> list[str]:
    """Return a plan in words: the calls, what they take, and what they give."""
    calls = f"{plan.n_calls:,} calls" if plan.n_calls else "no calls"
    if plan.by_form.keys() - {"rubric"} and plan.n_calls:
        calls += f" ({', '.join(f'{form} {n:,}' for form, n in plan.by_form.items())})"
    stored = f" ({plan.n_stored:,} answered already)" if plan.n_stored else ""
    lines = [f"{plan.partition}: {calls}{stored}"]
    if plan.tokens is not None:
        lines.append(
            f"about {plan.tokens.prompt_tokens:,} prompt and {plan.tokens.completion_tokens:,} "
            f"completion tokens ({plan.tokens.basis})"
        )
        lines.append(_price(plan))
    if plan.note:
        lines.append(plan.note)
    if plan.half_width:
        lines.append(plan.half_width)
    return lines


def _price(plan: JudgePlan) -> str:
    if plan.money is None or plan.most_money is None:
        return "price unknown: the judge has no 'price_per_million'"
    return (
        f"about {plan.money:,.2f} {plan.currency}; without repairs and lost requests at most "
        f"{plan.most_money:,.2f} {plan.currency}"
    )
