"""A judge asked about battles in its form, every answer kept as a row of the form's table."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import pandas as pd

from resources.judges.budget import Budget
from resources.judges.buying import Buyer, Progress, once_each
from resources.judges.calls import call_identity
from resources.judges.forms.evidence import from_value, read_tokens
from resources.judges.forms.form import Form, Reading, read_answer
from resources.judges.judge import Answer, Evidence, Judge, Presentation
from resources.judges.remedies import reasons_of

_CHUNK = 5000


def annotate(
    judge: Judge,
    battles: pd.DataFrame,
    *,
    slug: str,
    n_replicates: int = 1,
    first_replicate: int = 0,
    on_progress: Progress | None = None,
    buyer: Buyer | None = None,
) -> pd.DataFrame:
    """Return the verdicts of a judge on battles, in the form in which the judge was opened.

    Parameters
    ----------
    judge : Judge
        Answers presentations; an answer that cannot be read becomes a failed verdict.
    battles : DataFrame
        With ``battle_id``, ``question_id``, ``model_a``, ``model_b`` and the texts.
    slug : str
        Name of the judge in the table.
    n_replicates : int
        Runs of each presentation; the form's ``samples`` if that is more and odds are counted.
    first_replicate : int
        Number of the first of these runs; runs of other numbers are other calls.
    on_progress : callable, optional
        Called with the buyer's account after each answer that is given now.
    buyer : Buyer, optional
        Answers from its store where it can, and buys the rest. The table is the same as if all
        had been asked now.

    Returns
    -------
    DataFrame
        One row per presentation and run, columns as the form's `dtypes`, oriented to the models;
        failed verdicts keep their failure class and have no values. With evidence ``samples`` the
        odds are those of all runs of a presentation, the same in each.

    Raises
    ------
    ValueError
        If a battle has no text, or fewer than one replicate is asked for.
    RuntimeError
        If the judge does not answer every presentation once, or the buyer's budget is spent.
    """
    if n_replicates < 1:
        raise ValueError(f"n_replicates is {n_replicates}; a judge must be asked at least once")
    form = judge.form
    shown = form.present(battles, n_runs(form, judge.evidence, n_replicates))
    if first_replicate:
        shown = [replace(one, replicate=one.replicate + first_replicate) for one in shown]
    if buyer is None:
        answers: Iterable[Answer] = _asked(judge, shown)
    else:
        answers = buyer.answers(judge, shown, slug=slug, on_progress=on_progress)
    readings = read_answers(shown, answers, form, judge.evidence)
    verdicts = _tabulated((_row(one, judge, slug) for one in readings), form)
    if buyer is not None:  # all answers count, those from the store too
        failed = verdicts[verdicts["status"].ne("ok")]
        buyer.account.failed = Counter(failed["status"])
        buyer.account.reasons = reasons_of(failed)
    return verdicts


def n_runs(form: Form, evidence: Evidence, n_replicates: int) -> int:
    """Return the runs of each presentation: more where counts of them stand for odds."""
    return max(n_replicates, form.samples) if evidence == "samples" else n_replicates


def _asked(judge: Judge, shown: Sequence[Presentation]) -> list[Answer]:
    answers = dict(once_each(judge.answer(shown, Budget()), len(shown)))
    if len(answers) != len(shown):
        raise RuntimeError(f"the judge gave {len(answers)} answers to {len(shown)} presentations")
    return [answers[position] for position in range(len(shown))]


def read_answers(
    shown: Sequence[Presentation], answers: Iterable[Answer], form: Form, evidence: Evidence
) -> Iterable[Reading]:
    """Return the readings of answers, with their odds where the form has any."""
    readings = (
        Reading(one, answer, *read_answer(answer, form))
        for one, answer in zip(shown, answers, strict=True)
    )
    if not form.needs_alternatives:
        return readings
    if evidence == "samples":
        return _with_counted_odds(list(readings), form)
    return (_with_odds(one, form) for one in readings)


def _with_odds(reading: Reading, form: Form) -> Reading:
    """Return a reading with the odds in its tokens, if they tell any."""
    if reading.status != "ok":
        return reading
    answer = reading.answer
    tokens = from_value(read_tokens(answer.log_probabilities, answer.text), form.key)
    if tokens is None:
        return reading
    try:
        odds = form.likely(reading.value, tokens)
    except ValueError:  # nothing is filled in
        return reading._replace(tokens=tokens)
    return reading._replace(tokens=tokens, odds=odds, evidence="log-probabilities")


def _with_counted_odds(readings: list[Reading], form: Form) -> Iterator[Reading]:
    """Yield readings with odds by how often each value came of the same presentation."""
    runs = Counter(map(_question, readings))
    counts: dict[tuple[str, str], Counter[Any]] = {}
    for one in readings:
        if one.status == "ok":
            counts.setdefault(_question(one), Counter())[one.value] += 1
    odds = {question: form.sampled(values, runs[question]) for question, values in counts.items()}
    for one in readings:
        is_ok = one.status == "ok"
        yield one._replace(odds=odds[_question(one)], evidence="samples") if is_ok else one


def _question(reading: Reading) -> tuple[str, str]:
    return reading.shown.battle_id, reading.shown.order


def _row(reading: Reading, judge: Judge, slug: str) -> tuple[Any, ...]:
    shown, answer, form = reading.shown, reading.answer, judge.form
    return (
        *form.subject(shown, slug),
        shown.replicate,
        reading.status,
        *form.values(reading),
        answer.text,
        answer.log_probabilities,
        answer.prompt_tokens,
        answer.completion_tokens,
        call_identity(judge, shown),
        answer.reply_model,
        answer.system_fingerprint,
        answer.said,
    )


def _tabulated(rows: Iterator[tuple[Any, ...]], form: Form) -> pd.DataFrame:
    """Return rows as a table, made piece by piece: rows of Python objects are large."""
    columns, dtypes = list(form.dtypes), dict(form.dtypes)
    pieces = [pd.DataFrame([], columns=columns).astype(dtypes)]
    while piece := list(islice(rows, _CHUNK)):
        pieces.append(pd.DataFrame(piece, columns=columns).astype(dtypes))
    return pd.concat(pieces[1:] or pieces, ignore_index=True)


def evidence_entries(table: pd.DataFrame, form: Form) -> dict[str, Any]:
    """Return how many answers have which evidence, and a note where readable ones have none."""
    answered = table[table["status"].eq("ok")]
    counts = answered["evidence"].value_counts()
    entries: dict[str, Any] = {
        f"n_{name.replace('-', '_')}": int(counts.get(name, 0))
        for name in ("log-probabilities", "samples", "none")
    }
    if n_bare := entries["n_none"]:
        entries["note"] = (
            f"{n_bare:,} of {len(answered):,} answers have no probabilities, and none is filled "
            f"in; the first: {_bare_text(answered[answered['evidence'].eq('none')].iloc[0], form)}"
        )
    return entries


def _bare_text(row: "pd.Series[Any]", form: Form) -> str:
    """Return why an answer has no odds, and what to do."""
    answer, logs = (
        value if isinstance(value, str) else None
        for value in (row["answer"], row["log_probabilities"])
    )
    tokens = from_value(read_tokens(logs, answer), form.key)
    if tokens is None:
        spelling = "the tokens that came with the answer do not spell it"
        reason = "no log-probabilities came with the answer" if logs is None else spelling
        return f"{reason}. Where that happens often, set log_probabilities: off to ask samples"
    try:
        form.likely(form.parse(row["answer"]), tokens)
    except ValueError as error:
        reason = str(error)
    else:
        raise RuntimeError(f"answer {row['identity']} has probabilities that were left out")
    remedy = (
        "The judge spells numbers digit by digit, or does not show otherwise: use a scale of one "
        "token, score.scale: [1, 9], or log_probabilities: off to ask samples"
        if "first digits" in reason
        else "See log_probabilities of these rows, or set log_probabilities: off"
    )
    return f"{reason}. {remedy}"
