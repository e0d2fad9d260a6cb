"""Asks a judge about battles, a row per answer; or takes the verdicts that came with a corpus."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from operator import attrgetter
from typing import Any

import pandas as pd

from judgeline.judges.buying import Buyer, Progress
from judgeline.judges.forms.evidence import read_tokens
from judgeline.judges.forms.form import Form, Odds, Reading
from judgeline.judges.judge import Evidence, Judge
from judgeline.judges.presentation import Presentation
from judgeline.tables.corpus import SCORE_COLUMNS
from judgeline.tables.ids import is_among
from judgeline.tables.judging import CHOICE_VERDICTS, VERDICTS
from judgeline.tables.remedies import reasons_of

_CHUNK = 5000


def annotate(
    judge: Judge,
    battles: pd.DataFrame,
    *,
    slug: str,
    n_replicates: int = 1,
    first_replicate: int = 0,
    on_progress: Progress | None = None,
    buyer: Buyer,
) -> pd.DataFrame:
    """Return the verdicts of a judge on battles, in the form in which the judge was opened.

    One row per presentation and run, counted from `first_replicate`; where counts of runs stand for
    odds there are as many as the form's `samples`. The `buyer` answers from its store where it can
    and buys the rest; `on_progress` is called with its account, which has all failures in the end.
    """
    if n_replicates < 1:
        raise ValueError(f"n_replicates is {n_replicates}; a judge must be asked at least once")
    form = judge.form
    shown = runs_of(form, judge.evidence, battles, n_replicates, first_replicate)
    readings = buyer.readings(judge, shown, slug=slug, on_progress=on_progress)
    rows = (_row(one, form, slug) for one in with_odds(readings, form, judge.evidence))
    verdicts = _tabulated(rows, form)
    failed = verdicts[verdicts["status"].ne("ok")]
    buyer.account.failed = Counter(failed["status"])
    buyer.account.reasons = reasons_of(failed)
    return verdicts


def n_runs(form: Form, evidence: Evidence, n_replicates: int) -> int:
    """Return the runs of each presentation: more where counts of them stand for odds."""
    return max(n_replicates, form.samples) if evidence == "samples" else n_replicates


def runs_of(
    form: Form, evidence: Evidence, battles: pd.DataFrame, n_replicates: int, first: int
) -> list[Presentation]:
    """Return the presentations of battles in every run, counted from the first one's number."""
    shown = form.present(battles, n_runs(form, evidence, n_replicates))
    return [replace(one, replicate=one.replicate + first) for one in shown] if first else [*shown]


def with_odds(readings: Iterable[Reading], form: Form, evidence: Evidence) -> Iterator[Reading]:
    """Yield readings with their odds where the form has any; nothing is filled in."""
    if form.needs_alternatives and evidence == "samples":
        yield from _with_counted_odds(list(readings), form)
        return
    for one in readings:
        if form.needs_alternatives and one.status == "ok":
            answer = one.answer
            place = form.place(answer.text or "")
            tokens = read_tokens(answer.log_probabilities, answer.text, place)
            odds: Odds | None = None
            with suppress(ValueError):  # the tokens do not tell them
                odds = None if tokens is None else form.likely(one.value, tokens)
            source = "none" if odds is None else "log-probabilities"
            one = one._replace(tokens=tokens, odds=odds, evidence=source)
        yield one


def _with_counted_odds(readings: list[Reading], form: Form) -> Iterator[Reading]:
    """Yield readings with odds by how often each value came of the same presentation."""
    question = attrgetter("shown.battle_id", "shown.order")
    runs = Counter(map(question, readings))
    counts: dict[tuple[str, str], Counter[Any]] = {}
    for one in readings:
        if one.status == "ok":
            counts.setdefault(question(one), Counter())[one.value] += 1
    odds = {asked: form.sampled(values, runs[asked]) for asked, values in counts.items()}
    for one in readings:
        is_ok = one.status == "ok"
        yield one._replace(odds=odds[question(one)], evidence="samples") if is_ok else one


def _row(reading: Reading, form: Form, slug: str) -> tuple[Any, ...]:
    shown, answer = reading.shown, reading.answer
    return (
        *form.subject(shown, slug),
        shown.replicate,
        reading.status,
        *form.values(reading),
        answer.text,
        answer.log_probabilities,
        answer.prompt_tokens,
        answer.completion_tokens,
        reading.identity,
        answer.reply_model,
        answer.system_fingerprint,
        answer.said,
        answer.reasoning,
    )


def _tabulated(rows: Iterator[tuple[Any, ...]], form: Form) -> pd.DataFrame:
    """Return rows as a table, made piece by piece: rows of Python objects are large."""
    table = form.table
    pieces = [table.empty()]
    while piece := list(islice(rows, _CHUNK)):
        pieces.append(table.typed(pd.DataFrame(piece, columns=table.columns)))
    return pd.concat(pieces[1:] or pieces, ignore_index=True)


def evidence_entries(table: pd.DataFrame) -> dict[str, Any]:
    """Return the number of answers by evidence, and a note on readable ones without odds."""
    answered = table[table["status"].eq("ok")]
    counts = answered["evidence"].value_counts()
    entries: dict[str, Any] = {
        f"n_{name.replace('-', '_')}": int(counts.get(name, 0))
        for name in ("log-probabilities", "samples", "none")
    }
    if n_bare := entries["n_none"]:
        entries["note"] = (
            f"{n_bare:,} of {len(answered):,} answers have no probabilities, and none is filled "
            "in: see log_probabilities of these rows. Where that happens often, set "
            "log_probabilities: off to ask samples; a judge that spells numbers digit by digit "
            "needs a scale of one token, score.scale: [1, 9]"
        )
    return entries


_WHOLE = (0.0, 0.5, 1.0)


def recorded_marks(verdicts: pd.DataFrame, battles: pd.DataFrame, slug: str) -> pd.DataFrame:
    """Return the published verdicts of a judge on the battles at hand."""
    published = verdicts[verdicts["judge"].eq(slug)]
    if published.empty:
        there = ", ".join(sorted(verdicts["judge"].unique())) or "none at all"
        raise ValueError(
            f"no recorded verdicts of judge {slug!r} came with this corpus (it has: {there}); "
            "name one of those in judges.yaml, or choose a judge of another kind"
        )
    rows = published[is_among(published["battle_id"], battles["battle_id"])]
    return VERDICTS.filled(rows).reset_index(drop=True)


def recorded_choices(verdicts: pd.DataFrame, battles: pd.DataFrame, slug: str) -> pd.DataFrame:
    """Return the published preferences of a judge on the battles at hand, as choices.

    A published mean of both orders is a probability, and so is every preference of a judge some of
    whose preferences are neither a win nor a draw. Empty if the judge has scores; failed ones are
    kept if no verdict of the judge has.
    """
    published = verdicts[verdicts["judge"].eq(slug)]
    rows = published[is_among(published["battle_id"], battles["battle_id"])]
    if rows[list(SCORE_COLUMNS)].notna().any(axis=None) or rows["recorded_outcome"].isna().all():
        rows = rows.head(0)
    share = rows["recorded_outcome"].astype("float64").where(rows["status"].eq("ok"))
    whole = share.isin(_WHOLE)
    weighted = bool((share.notna() & ~whole).any())
    chance = share.where(rows["order"].eq("mean") | weighted)
    table = rows.assign(
        choice=share.where(whole),
        p_a=chance,
        p_tie=chance * 0.0,
        p_b=1 - chance,
        evidence=chance.notna().map({True: "published", False: "none"}).astype("str"),
    )
    return CHOICE_VERDICTS.filled(table).reset_index(drop=True)
