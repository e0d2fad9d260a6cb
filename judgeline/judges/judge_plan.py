"""Plan of a judge: its expected calls, tokens and price, in numbers and words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pandas as pd

from judgeline.judges.annotation import n_runs, runs_of
from judgeline.judges.budget import least_tokens, most_of, text_bytes
from judgeline.judges.buying import Buyer
from judgeline.judges.definition import JudgeDefinition
from judgeline.judges.forms.form import Prompt
from judgeline.judges.forms.registered import FormName, form_with
from judgeline.judges.judge import Calls, Evidence, Judge, judge_key
from judgeline.judges.live.fields import ServedFields
from judgeline.judges.managed.options import VllmOptions
from judgeline.judges.opening import prompt_of, was_probed
from judgeline.judges.presentation import Presentation

BYTES_PER_TOKEN = 4.0
"""A rule of thumb for byte-pair encodings of prose; code and other scripts take more tokens."""

_EXPLAINED_ANSWER = 400  # tokens of twelve keys and scores, with reasons
_ANSWERS_LOOKED_AT = 500


class TokenEstimate(NamedTuple):
    """Expected tokens of some calls, the most that they can cost, and where the numbers are from.

    `most_` counts every byte of a prompt as a token and every answer at its full length, once:
    repairs and lost requests come on top.
    """

    prompt_tokens: int
    completion_tokens: int
    most_prompt_tokens: int
    most_completion_tokens: int
    basis: str


UNTIMED = "GPU hours not known before the first run"

Answered = tuple[Sequence[Presentation], pd.DataFrame]
"""Presentations with the stored answers to them, row by row."""
NONE_ANSWERED: Answered = ((), pd.DataFrame({"prompt_tokens": []}))


def _total(estimates: Mapping[str, TokenEstimate]) -> TokenEstimate:
    """Return the sum of estimates by name; where they rest on different things it says so."""
    bases = {estimate.basis for estimate in estimates.values()}
    named = [f"{name}: {estimate.basis}" for name, estimate in estimates.items()]
    sums = map(sum, zip(*(estimate[:4] for estimate in estimates.values()), strict=True))
    return TokenEstimate._make([*sums, bases.pop() if len(bases) == 1 else "; ".join(named)])


class Expected(NamedTuple):
    """Expected calls of a judge in one form, and how many of them are stored.

    `tokens` is None where nothing served is asked; `note` says what would change the calls.
    """

    n_needed: int
    n_stored: int
    tokens: TokenEstimate | None
    note: str


@dataclass(frozen=True)
class JudgePlan:
    """Calls of a judge's plan, and calls that the verdict store answers.

    What the ratings' intervals would gain (`half_width`), what would change the number of calls
    (`note`), the cap that stops the run before them (`cut_short`) and the hours of our own GPUs
    (`gpu_hours`) are words, or empty. `is_own` says that its server is our own.
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
    gpu_hours: str = ""
    is_own: bool = False

    @property
    def is_timed(self) -> bool:
        """Whether the GPU hours are known."""
        return self.gpu_hours not in ("", UNTIMED)

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
    """Return the plan of a judge, from its expected calls in each form."""
    n_stored = sum(one.n_stored for one in asked.values())
    n_needed = {form: one.n_needed for form, one in asked.items()}
    note = "; ".join(filter(None, (one.note for one in asked.values())))
    if not any(n_needed.values()):
        return JudgePlan(judge.slug, partition, 0, n_stored, note=note)
    counted = {form: one.tokens for form, one in asked.items() if one.tokens is not None}
    tokens, price = _total(counted) if counted else None, judge.price_per_million
    money = most_money = None
    if price and tokens:
        money = price.of(tokens.prompt_tokens, tokens.completion_tokens)
        most_money = price.of(tokens.most_prompt_tokens, tokens.most_completion_tokens)
    return JudgePlan(
        judge.slug,
        partition,
        sum(n_needed.values()),
        n_stored,
        tokens,
        money,
        most_money,
        price.currency if price else "",
        half_width,
        n_needed,
        note,
        is_own=judge.kind == "vllm",
    )


def gpu_hours(judge: JudgeDefinition, calls: Mapping[str, int], rates: Mapping[str, float]) -> str:
    """Return the GPU hours of calls by form to a server of our own, in words.

    `rates` are calls a second by form, as measured in earlier runs; a start of the server is none.
    """
    asked = {form: n for form, n in calls.items() if n}
    if not asked.keys() <= rates.keys():
        return UNTIMED
    options = judge.vllm or VllmOptions()
    n_gpus = options.tensor_parallel_size * options.data_parallel_size
    seconds = sum(n / rates[form] for form, n in asked.items())
    hours, rate = n_gpus * seconds / 3600, sum(asked.values()) / seconds
    shown = f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"
    on = f" on {n_gpus} GPUs" if n_gpus > 1 else ""
    return f"about {shown} GPU hours{on}, at {rate:,.1f} calls a second as in earlier runs"


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
        why = "a server of your own" if plan.is_own else "the judge has no 'price_per_million'"
        price = plan.gpu_hours if plan.is_timed else f"price unknown: {why}"
        if plan.money is not None:
            price = (
                f"about {plan.money:,.2f} {plan.currency}; without repairs and lost requests at "
                f"most {plan.most_money:,.2f} {plan.currency}"
            ) + (f"; {plan.gpu_hours}" if plan.gpu_hours else "")
        lines.append(price)
    return lines + [text for text in (plan.note, plan.cut_short, plan.half_width) if text]


def expect_calls(
    judge: JudgeDefinition,
    form: FormName,
    open_it: Callable[[], Judge],
    battles: pd.DataFrame,
    buyer: Buyer,
    *,
    repeats: tuple[Sequence[Presentation], Buyer] | None = None,
    n_replicates: int | None = None,
    first_replicate: int = 0,
) -> Expected:
    """Return the expected calls of a judge about battles; it is opened where that asks nobody.

    `repeats` are the presentations of the reliability panel, whose first runs are calls of the
    verdicts too, and their buyer; runs before `first_replicate` are asked by others.
    """
    more, repeater = repeats or ((), buyer)
    asked, n_times = form_with(form, judge), n_replicates or judge.replicates
    answered, n_stored, note, most = NONE_ANSWERED, 0, "", None
    if judge.kind == "openai" and not was_probed(judge, form):  # a dry run asks nobody anything
        is_off = judge.log_probabilities_of(form) == "off"
        guessed: Evidence = "samples" if is_off else "log-probabilities"
        shown = [*runs_of(asked, guessed, battles, n_times, first_replicate), *more]
        texts = ("instruction", "first_completion", "second_completion", "replicate")
        needed = list({attrgetter(*texts)(one): one for one in shown}.values())
        if asked.needs_alternatives and not is_off:
            n_more = n_runs(asked, "samples", n_times)
            note = (
                f"{form}: each question {n_more} times instead if the endpoint has no "
                "log-probabilities"
            )
    else:
        opened = open_it()
        most = getattr(opened, "most_tokens", None)
        shown = runs_of(asked, opened.evidence, battles, n_times, first_replicate)
        needed, n_stored = buyer.missing(opened, shown)
        if more:
            further, _ = repeater.missing(opened, more)
            identity = Calls(opened).identity
            needed = list({identity(one): one for one in (*needed, *further)}.values())
            shown += more
            n_stored = len(set(map(identity, shown))) - len(needed)
        answered = _answered(opened, shown, buyer) if n_stored else answered
    failures = [asked.refusal(one) for one in needed]
    needed = [one for one, failure in zip(needed, failures, strict=True) if failure is None]
    if why := [failure.said for failure in failures if failure is not None]:
        note = "; ".join(filter(None, (note, f"{form}: {len(why):,} calls not made: {why[0]}")))
    is_served = needed and judge.kind in ("openai", "vllm")
    tokens = None
    if is_served:
        tokens = estimate_tokens(judge, prompt_of(judge, form), needed, answered, most)
    return Expected(len(needed), n_stored, tokens, note)


def _answered(judge: Judge, presentations: Sequence[Presentation], buyer: Buyer) -> Answered:
    step = max(1, len(presentations) // _ANSWERS_LOOKED_AT)
    some = presentations[::step]
    calls = dict(zip(map(Calls(judge).identity, some), some, strict=True))
    found, _ = buyer.store.find(judge_key(judge), calls)
    return [calls[identity] for identity in found["identity"]], found


def estimate_tokens(
    fields: ServedFields,
    prompt: Prompt,
    needed: Sequence[Presentation],
    answered: Answered = NONE_ANSWERED,
    most_tokens: int | None = None,
) -> TokenEstimate:
    """Return the tokens that calls would take.

    Prompts are counted by stored answers of the same judge, else by their bytes; the `basis` says
    which. Answers without plausible usage are left out: servers that state none are stored as zero.
    An answer has `most_tokens`, by default those of the decoding, at most.
    """
    if not needed:
        return TokenEstimate(0, 0, 0, 0, "nothing to ask")
    n_bytes = sum(_size(prompt, shown) for shown in needed)
    schema = prompt.form.response_format
    constraint = {} if schema is None else {"response_format": schema}
    beside = most_of([{"content": ""}], constraint, None).prompt_tokens
    sizes = np.array([_size(prompt, shown) for shown in answered[0]], dtype=float)
    least = [max(1, least_tokens(int(size))) for size in sizes]
    is_counted = answered[1]["prompt_tokens"].to_numpy() >= least
    answers = answered[1][is_counted]
    if len(answers):
        per_byte = float(answers["prompt_tokens"].sum() / sizes[is_counted].sum())
        completion = float(answers["completion_tokens"].mean())
        basis = f"estimated from {len(answers):,} answers of this judge"
    else:
        is_free = schema is not None and fields.structured_output == "off"
        completion = _EXPLAINED_ANSWER if is_free else prompt.form.typical_tokens
        per_byte = 1 / BYTES_PER_TOKEN
        basis = (
            f"estimated at {BYTES_PER_TOKEN:g} bytes a token; {completion} tokens an answer, a "
            "guess"
        )
    return TokenEstimate(
        round(n_bytes * per_byte),
        round(completion * len(needed)),
        n_bytes + beside * len(needed),
        (most_tokens or fields.decoding.max_tokens) * len(needed),
        basis,
    )


def _size(prompt: Prompt, shown: Presentation) -> int:
    return text_bytes(prompt.messages(shown))
