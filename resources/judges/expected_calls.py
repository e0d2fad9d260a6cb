"""Expected calls of a judge in one form; nothing is asked to count them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pandas as pd

from resources.config.corpora import CorpusDefinition
from resources.config.judges import JudgeDefinition
from resources.judges.annotation import n_runs
from resources.judges.buying import Buyer
from resources.judges.calls import call_identity, judge_key
from resources.judges.catalog import form_of_definition, open_judge, template_of, was_probed
from resources.judges.estimates import Answered, TokenEstimate, estimate_tokens
from resources.judges.forms.options import FormName
from resources.judges.judge import Evidence, Judge, Presentation

_ANSWERS_LOOKED_AT = 500


class Expected(NamedTuple):
    """Expected calls of a judge in one form, and how many of them are stored.

    `tokens` is None for judges that are not served, and where nothing would be asked; `note` says
    what would change the number of calls.
    """

    needed: list[Presentation]
    n_stored: int
    tokens: TokenEstimate | None
    note: str


def expect_calls(
    judge: JudgeDefinition,
    form: FormName,
    corpus: CorpusDefinition,
    battles: pd.DataFrame,
    buyer: Buyer,
    *,
    more: Sequence[Presentation] = (),
    n_replicates: int | None = None,
    first_replicate: int = 0,
) -> Expected:
    """Return what a judge would be asked about battles.

    `more` is shown besides by the reliability panel, whose first runs are calls of the verdicts
    too. `n_replicates` is that of the judge by default; runs before `first_replicate` are asked by
    others.
    """
    n_times = n_replicates or judge.replicates
    needed, n_stored, answered, note = _calls(
        judge, form, corpus, battles, buyer, list(more), n_times, first_replicate
    )
    tokens = None
    if needed and judge.kind in ("openai", "vllm"):
        template, asked = template_of(judge, form), form_of_definition(judge, form)
        tokens = estimate_tokens(judge, template, needed, answered, asked)
    return Expected(needed, n_stored, tokens, note)


def _calls(
    judge: JudgeDefinition,
    form: FormName,
    corpus: CorpusDefinition,
    battles: pd.DataFrame,
    buyer: Buyer,
    more: list[Presentation],
    n_times: int,
    first: int,
) -> tuple[list[Presentation], int, Answered | None, str]:
    """Return what would be asked, how many calls are stored, and some of those with answers."""
    asked = form_of_definition(judge, form)
    if judge.kind == "openai" and not was_probed(judge, form):  # a dry run asks nobody anything
        is_off = judge.log_probabilities_of(form) == "off"
        guess: Evidence = "samples" if is_off else "log-probabilities"
        shown = [*_numbered(asked.present(battles, n_runs(asked, guess, n_times)), first), *more]
        n_more = n_runs(asked, "samples", n_times)
        note = (
            f"{form}: each question {n_more} times instead if the endpoint has no log-probabilities"
            if asked.needs_alternatives and not is_off
            else ""
        )
        return list({_texts(one): one for one in shown}.values()), 0, None, note
    opened = open_judge(judge, corpus, form=form)
    shown = _numbered(asked.present(battles, n_runs(asked, opened.evidence, n_times)), first)
    needed, n_stored = buyer.missing(opened, shown)
    if more:
        needed, n_stored = _with_panel(opened, shown, needed, more, buyer, judge.replicates)
    presentations = [*shown, *more]
    answered = _answered(opened, presentations, buyer) if n_stored else None
    return needed, n_stored, answered, ""


def _numbered(shown: Sequence[Presentation], first: int) -> list[Presentation]:
    return [replace(one, replicate=one.replicate + first) for one in shown]


def _with_panel(
    opened: Judge,
    shown: Sequence[Presentation],
    needed: list[Presentation],
    more: list[Presentation],
    buyer: Buyer,
    n_covered: int,
) -> tuple[list[Presentation], int]:
    """Return what is needed with a panel, each call once, and how many calls are stored."""
    further, _ = buyer.repeating(n_covered).missing(opened, more)
    calls = {call_identity(opened, one): one for one in (*needed, *further)}
    n_calls = len({call_identity(opened, one) for one in (*shown, *more)})
    return list(calls.values()), n_calls - len(calls)


def _texts(shown: Presentation) -> tuple[str, str, str, int]:
    return shown.instruction, shown.first_completion, shown.second_completion, shown.replicate


def _answered(judge: Judge, presentations: Sequence[Presentation], buyer: Buyer) -> Answered:
    step = max(1, len(presentations) // _ANSWERS_LOOKED_AT)
    calls = {call_identity(judge, shown): shown for shown in presentations[::step]}
    found, _ = buyer.store.find(judge_key(judge), calls)
    return [calls[identity] for identity in found["identity"]], found
