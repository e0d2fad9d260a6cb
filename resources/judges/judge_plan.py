"""Plan of a judge: its calls, their cost and the interval they give, in numbers and words."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from resources.config.judges import JudgeDefinition
from resources.judges.estimates import TokenEstimate, total
from resources.judges.expected_calls import Expected

PLAN_COLUMNS = (
    "judge",
    "n_needed",
    "n_stored",
    "prompt_tokens",
    "completion_tokens",
    "price",
    "most_price",
    "currency",
    "note",
)
"""Columns of a plan as a table."""


@dataclass(frozen=True)
class JudgePlan:
    """Calls of a judge's plan; verdicts that came with the corpus need none.

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
    cut_short : str
        Which cap of the corpus stops the run before the calls are made, and where, in words;
        empty where none is expected to.
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
    cut_short: str = ""

    @property
    def n_tokens(self) -> int:
        """Expected prompt and completion tokens together."""
        return self.tokens.prompt_tokens + self.tokens.completion_tokens if self.tokens else 0

    def entries(self) -> dict[str, int | float | str]:
        """Return the numbers by name, as metadata: money only where the judge has a price."""
        found: dict[str, int | float | str] = {"calls": self.n_calls}
        if self.tokens is not None:
            found["prompt_tokens"] = self.tokens.prompt_tokens
            found["completion_tokens"] = self.tokens.completion_tokens
        if self.money is not None and self.most_money is not None:
            found["price"] = round(self.money, 6)
            found["most_price"] = round(self.most_money, 6)
            found["currency"] = self.currency
        return found


def plan_of(
    judge: JudgeDefinition, partition: str, asked: Mapping[str, Expected], half_width: str = ""
) -> JudgePlan:
    """Return the plan that what a judge would be asked in each form makes together."""
    n_stored = sum(one.n_stored for one in asked.values())
    n_needed = {form: len(one.needed) for form, one in asked.items()}
    if not any(n_needed.values()):
        return JudgePlan(judge.slug, partition, 0, n_stored)
    counted = {form: one.tokens for form, one in asked.items() if one.tokens is not None}
    tokens = total(counted) if counted else None
    price = judge.price_per_million
    expected = most = None
    if price is not None and tokens is not None:
        expected = price.of(tokens.prompt_tokens, tokens.completion_tokens)
        most = price.of(tokens.most_prompt_tokens, tokens.most_completion_tokens)
    return JudgePlan(
        judge.slug,
        partition,
        sum(n_needed.values()),
        n_stored,
        tokens,
        expected,
        most,
        price.currency if price else "",
        half_width,
        n_needed,
        "; ".join(filter(None, (one.note for one in asked.values()))),
    )


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
    if plan.cut_short:
        lines.append(plan.cut_short)
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
