"""Diagnosis of a file or table of battles: its counts, abilities, gaps and oddities."""

import glob
import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from judgeline.diagnostics import diagnose_biases
from judgeline.elo import CodedBattles, fit_beta_folds, require_connected
from judgeline.intervals import leading_evidence_text, least_miscoverage, models_needed
from judgeline.io import (
    LENGTHS,
    ORDERS,
    JudgedBattles,
    MissingColumnsError,
    as_coded,
    as_numbers,
    n_battles_of,
    parse_codes,
)
from judgeline.io.counting import first_rows, is_large
from judgeline.io.guesses import IN_TWO_CODINGS, columns_of, guess
from judgeline.io.judged import FEW_JUDGES, ManyJudgesError, given_of
from judgeline.io.labelled import read_labelled
from judgeline.io.layout import LABELS, RATED, VOTES, Layout
from judgeline.io.layouts import layout_at
from judgeline.io.samples import OneModelError
from judgeline.io.voters import agreement, numbers_of
from judgeline.suggest import QualityGateError, message_of
from judgeline.usable import (
    call_text,
    loses_many,
    printable,
    readable,
    require_usable,
    table_or_path,
)

NOBODY = "nobody voted"
_MOST_COLUMNS = 40
_USEFUL = 0.65  # share of decided battles that a weak but useful judge agrees with people on
_BIASES = {
    "position_first_preferred": "the judge prefers the response shown first in {share:.0%} of "
    "{n:,} presentations that it decided.",
    "verbosity_longer_preferred": "the judge prefers the longer response in {share:.0%} of {n:,} "
    "near ties.",
}


class Diagnosis(NamedTuple):
    """Counts of a file or table of battles, and sentences on the analyses that it supports.

    `columns` has a sentence on each column of a file that is none of ours. `gate` says why the
    judge's ratings cannot be put on the human scale, empty where they can.
    `judge_connected` and `people_connected` tell whether a chain of battles, or of voted battles,
    ties all models. `supports`, `missing` (for more) and `concerns` (what looks wrong) hold a
    sentence each; `next` is the one command, or call, to run now.
    """

    source: str
    layout: str
    judge: str
    n_battles: int
    n_models: int
    n_votes: int
    n_voted_models: int
    n_quarantined: int
    judge_connected: bool
    people_connected: bool
    gate: str
    supports: list[str]
    missing: list[str]
    concerns: list[str]
    next: str
    columns: Sequence[str] = ()

    def lines(self) -> list[tuple[str, str]]:
        """Return the diagnosis as titles and sentences, in the order of reading."""
        counts = (
            f"{self.n_battles:,} battles of {self.n_models} models, judged by {self.judge}; "
            f"{self.n_votes:,} votes on {self.n_voted_models} models"
        )
        is_again = self.next.startswith(("judgeline doctor", "judgeline.doctor"))
        return [
            ("", f"{self.source}: {self.layout}"),
            *([("", counts)] if self.judge else []),
            *(("Supports", sentence) for sentence in self.supports),
            *(("Look at", sentence) for sentence in self.concerns),
            *(("Missing", sentence) for sentence in self.missing),
            *(("Column", sentence) for sentence in self.columns[:_MOST_COLUMNS]),
            *([("When that is mended" if is_again else "Next", self.next)] * bool(self.next)),
        ]

    def __repr__(self) -> str:
        """Return the diagnosis as `judgeline doctor` prints it."""
        return "\n".join(printable(": ".join(filter(None, line))) for line in self.lines())


def doctor(
    battles: pd.DataFrame | Path | str,
    *,
    judge: str | None = None,
    outcomes: str | None = None,
    columns: Mapping[str, str] | None = None,
    miscoverage: float = 0.1,
    missing: Any = None,
    same_names: bool = False,
) -> Diagnosis:
    """Return a diagnosis of a file or table of judged battles, without rating any model.

    Parameters
    ----------
    battles, judge, outcomes, columns, missing, same_names
        As for `rank`.
    miscoverage : float
        Share of misses that intervals may have, in (0, 1).

    Returns
    -------
    Diagnosis
        Counts, what can be had of the battles, and what is missing for more.

    Raises
    ------
    ValueError
        If the battles cannot be read; the message says what to do.
    QualityGateError
        If most rows cannot be used.
    """
    if not 0 < miscoverage < 1:
        raise ValueError(f"miscoverage is {miscoverage:g}; it lies between 0 and 1")
    source = table_or_path(battles)
    layout = layout_at(source) if isinstance(source, Path) else None
    if layout and layout.advice is LABELS:
        return _of_labels(source, layout, outcomes, columns or {})
    if layout and layout.advice is RATED:
        return _advised(source, layout, _AS_CORPUS.format(layout.name, shlex.quote(str(source))))
    stated = Request(judge, outcomes, columns or {}, {"missing": missing, "same_names": same_names})
    try:
        return _of_battles(source, stated, miscoverage)
    except MissingColumnsError as error:
        if _are_votes(error, layout):
            return _of_votes(source, layout, stated)
        return _foreign(source, stated, miscoverage)
    except OneModelError as error:
        return _one_model(source, error, stated, miscoverage)


class Request(NamedTuple):
    """Stated options of a file of battles, such as judge and columns, for commands to repeat."""

    judge: str | None
    outcomes: str | None
    columns: Mapping[str, str]
    told: Mapping[str, Any]

    def call(self, verb: str, source: pd.DataFrame | Path, **more: Any) -> str:
        """Return the command, or call, that states these options again."""
        told: dict[str, Any] = {**self.told, **more}
        return call_text(verb, source, self.judge, self.outcomes, self.columns, **told)


def _of_battles(source: pd.DataFrame | Path, stated: Request, miscoverage: float) -> Diagnosis:
    """Return the diagnosis of battles that can be read; of several judges, of the first."""
    lenient = {"allow_quarantine": True, "with_votes": False, "counted": True}
    told: dict[str, Any] = {**lenient, **stated.told}
    try:
        read = readable(source, stated.judge, stated.outcomes, stated.columns, **told)
    except ManyJudgesError as error:
        if len(error.judges) > FEW_JUDGES:
            raise  # voters, it seems
        first, *others = error.judges
        found = _of_battles(source, stated._replace(judge=first), miscoverage)
        named = f"{', '.join(others[:5])}{', ...' * (len(others) > 5)}"
        several = f"this is of judge {first!r}, one of {len(error.judges):,}: --judge names another"
        return found._replace(concerns=[f"{several} ({named}).", *found.concerns])
    scored = read.scored
    voted = scored[scored["human_outcome"].notna()]
    apart, people_apart = _apart(scored), _apart(voted) if len(voted) else NOBODY
    coded = as_coded(scored, "derived")
    gate, is_too_few = _gate_of(scored, coded, apart)
    n_counted = int(coded.voted_models().sum())
    supports, missing = _abilities(read, apart, people_apart, gate, n_counted, miscoverage)
    is_alone = (people_apart == NOBODY or is_too_few) and not read.is_counted
    verb = "rank" if not gate else "plain" if is_alone else "doctor"
    layout = layout_at(source) if isinstance(source, Path) else None
    holds = ""
    if layout and (advice := layout.advice):
        supports += [text.format(layout=layout.name) for text in advice.supports]
        holds = advice.holds.format(layout=layout.name)
    return Diagnosis(
        source=_name(source),
        layout=holds or read.plain or "battles with scores of a judge",
        judge=read.judge,
        n_battles=read.n_battles,
        n_models=len({*scored["model_a"], *scored["model_b"]}),
        n_votes=n_battles_of(voted),
        n_voted_models=len({*voted["model_a"], *voted["model_b"]}),
        n_quarantined=read.n_quarantined,
        judge_connected=not apart,
        people_connected=not people_apart,
        gate=gate,
        supports=supports,
        missing=missing,
        concerns=_concerns(read),
        next=stated.call(verb, source, allow_quarantine=verb != "doctor" and loses_many(read)),
    )


def _gate_of(scored: pd.DataFrame, coded: CodedBattles, apart: str) -> tuple[str, bool]:
    """Return why models cannot be rated on the human scale, and whether votes are too few."""
    try:
        require_usable(scored, fit_beta_folds(coded))
    except (QualityGateError, ValueError) as error:
        return apart or str(error), not apart and getattr(error, "is_too_few", False)
    return apart, False


def _abilities(
    read: JudgedBattles,
    apart: str,
    people_apart: str,
    gate: str,
    n_counted: int,
    miscoverage: float,
) -> tuple[list[str], list[str]]:
    """Return the analyses that battles support, and data missing for others, a sentence each."""
    has_votes = people_apart != NOBODY
    is_single = not read.is_counted
    orders = read.scored.filter([*ORDERS])
    has_orders = is_single and bool(orders.notna().all(axis=1).any())
    n_lacking = models_needed(miscoverage) - n_counted
    wider = least_miscoverage(n_counted)
    finite_now = f"; {1 - wider:.0%} is finite now (miscoverage {wider:g})" if wider < 1 else ""
    leads = leading_evidence_text(n_counted, miscoverage)
    supports = [
        (is_single and not apart, "ratings of all models by the judge alone (judgeline plain)"),
        (not people_apart, "ratings of the voted models by people"),
        (not gate, "ratings on the human scale"),
        (not gate and n_lacking <= 0, f"finite {1 - miscoverage:.0%} intervals"),
        (
            is_single and has_votes,
            "win rates of models in the eyes of people (judgeline.win_rates)",
        ),
        (has_orders, "position bias of the judge"),
    ]
    missing = [
        (bool(apart), f"{apart}."),
        (bool(gate) and not apart and has_votes, f"Human scale: {gate}."),
        (
            not has_votes,
            "Human scale: votes of people on some of the battles, as human_outcome (1, 0.5, 0) or "
            "winner.",
        ),
        (has_votes and bool(people_apart), f"Votes do not tie their models: {people_apart}."),
        (
            n_lacking > 0,
            f"Finite intervals of the judge: {models_needed(miscoverage)} models with votes that "
            f"count calibrate them, and there are {n_counted}; add votes on {n_lacking} more"
            f"{finite_now}.{leads and ' '}{leads}",
        ),
        (
            is_single and not has_orders,
            "Position bias: judge both orders, and add difference_ab and difference_ba.",
        ),
    ]
    return [text for holds, text in supports if holds], [text for holds, text in missing if holds]


def _concerns(read: JudgedBattles) -> list[str]:
    """Return a sentence on each oddity of battles; a share is one beyond what chance explains."""
    scored, bad = read.scored, read.quarantine
    score, human, each = numbers_of(scored)
    n_decided, agreed = agreement(score, human, each)
    found = [f"{note}." for note in read.notes]
    if len(bad):
        found.append(
            f"{read.n_quarantined} of {read.n_rows} rows cannot be used, such as: "
            f"{bad['detail'].iloc[0]}."
        )
    found += [read.repeats] if read.repeats else []
    if n_decided and not _differs(agreed, n_decided):
        few = _reach(n_decided) > _USEFUL - agreed
        found.append(
            f"the judge prefers what people prefer in {agreed:.0%} of {n_decided:,} decided "
            f"battles{', too few to tell from chance' if few else ', no better than chance'}."
        )
    names = () if read.is_counted else (*ORDERS, *LENGTHS)
    columns: dict[str, Any] = {name: as_numbers(scored[name]) for name in names}
    biases = diagnose_biases(score, **columns)
    for name, share, n in zip(biases.diagnostic, biases.value, biases.n, strict=True):
        if name in _BIASES and _differs(share, int(n)):
            found.append(_BIASES[name].format(share=share, n=n))
    return found


def _differs(share: float, n: int) -> bool:
    """Return whether a share of n battles differs from one half, by a test at 5 %."""
    return abs(share - 0.5) > _reach(n)


def _reach(n: int) -> float:
    """Return half the width of the 95 % interval of a share of n battles that is one half."""
    return 1.96 * 0.5 / math.sqrt(n)


def _name(source: pd.DataFrame | Path) -> str:
    return "a table" if isinstance(source, pd.DataFrame) else str(source)


_AS_CORPUS = "judgeline corpora add NAME --set reader={} --set location={} --set embeddings=hashed"
_NO_COUNTS = ("", 0, 0, 0, 0, 0, False, False)


def _are_votes(error: MissingColumnsError, layout: Layout | None) -> bool:
    return error.missing == {"score_difference"} or bool(layout and layout.advice is VOTES)


def _of_votes(source: pd.DataFrame | Path, layout: Layout | None, stated: Request) -> Diagnosis:
    """Return the diagnosis of votes alone, with the command that rates by them if they are read."""
    made = _advised(source, layout, stated.call("plain", source))
    named = stated.judge, stated.outcomes, stated.columns
    told = {"with_votes": False, "votes_alone": True, **stated.told}
    try:
        readable(source, *named, allow_quarantine=False, **told)
    except (ValueError, QualityGateError) as error:
        return made._replace(missing=[*made.missing, f"{message_of(error)}."], next="")
    return made


def _advised(source: pd.DataFrame | Path, layout: Layout | None, command: str) -> Diagnosis:
    """Return the diagnosis of a file of votes alone, or of verdicts beside gold labels."""
    advice, told = (layout and layout.advice) or VOTES, layout.name if layout else ""
    holds = advice.holds.format(layout=told)
    is_named = layout and layout.advice is VOTES
    name = f"{_name(source)} ({told})" if is_named else _name(source)
    lacks, supports = [advice.lacks], list(advice.supports)
    return Diagnosis(name, holds, *_NO_COUNTS, advice.gate, supports, lacks, [], command)


def _of_labels(
    source: pd.DataFrame | Path, layout: Layout, outcomes: str | None, columns: Mapping[str, str]
) -> Diagnosis:
    """Return the diagnosis of verdicts beside gold labels, if there are labels."""
    made = _advised(source, layout, call_text("agreement", source, None, outcomes, columns))
    try:
        read_labelled(source, columns=columns, outcomes=outcomes)
    except ValueError as error:
        return made._replace(supports=[], missing=[f"{error}."], next="")
    return made


def _foreign(source: pd.DataFrame | Path, stated: Request, miscoverage: float) -> Diagnosis:
    """Return the diagnosis of other columns: each of them, and the command that may read them."""
    columns = columns_of(_first_rows(source))
    found = guess(columns, parse_codes(stated.outcomes) if stated.outcomes else ())
    is_told = bool({"human_outcome", "judge_winner"} & {*stated.columns})
    if is_told and "model_a" in found.columns and found.holds != IN_TWO_CODINGS:
        found = found._replace(verb="battles", lacks="")  # who decided is told
    lines, lacks, verb = [one.text() for one in columns], found.lacks, found.verb
    own = _own_guesses(found.columns, stated.columns)
    asked = stated._replace(
        columns={**own, **stated.columns}, outcomes=stated.outcomes or found.outcomes or None
    )
    shown = ", ".join(f"{name}={column}" for name, column in own.items())
    guessed = [f"these columns are guessed by their names and values: {shown}."] if shown else []
    if asked.outcomes and not stated.outcomes and verb == "battles":
        guessed.append(f"so are the codes, {asked.outcomes}: A's, B's, then any of ties.")
    if verb == "battles":
        made = _guessed(source, asked, miscoverage)
        if isinstance(made, Diagnosis):
            concerns = [*guessed, *filter(None, [_verdict_note(asked), lacks]), *made.concerns]
            return made._replace(concerns=concerns, columns=lines)
        lacks, verb = made, ""
    called = call_text("agreement", source, None, stated.outcomes, asked.columns)
    rates = call_text("rates", source, None, None, stated.columns)
    command = {"ask": _ASK, "agreement": called, "rates": rates}.get(verb, "")
    gate = f"{found.holds}: no ratings of models"
    no_counts = (found.holds, *_NO_COUNTS, gate)
    supports = [_SUPPORTS[verb]] if verb in _SUPPORTS else []
    told = [lacks] if lacks else []
    return Diagnosis(_name(source), *no_counts, supports, told, guessed, command, lines)


def _own_guesses(found: Mapping[str, str], stated: Mapping[str, str]) -> dict[str, str]:
    """Return guessed columns that go with stated ones: another column each, and one verdict."""
    kind = next((one for one in _VERDICTS if {*stated} & one), set())
    taken = {*stated, *(set[str]().union(*_VERDICTS) - kind if kind else ())}
    return {
        name: column
        for name, column in found.items()
        if name != column and name not in taken and column not in stated.values()
    }


_VERDICTS = [{"judge_winner"}, {"verdict"}, {"judge_outcome"}, {"score_difference"}]
_VERDICTS += [{"judge_score_a", "judge_score_b"}]
_ASK = "python -c 'import judgeline; help(judgeline.ask)'"
_SUPPORTS = {
    "agreement": "how far a judge agrees with the labels (judgeline agreement)",
    "rates": "the share of answers that people would pass (judgeline rates)",
}


def _first_rows(source: pd.DataFrame | Path) -> pd.DataFrame:
    """Return the rows of a table or file, of large files the first."""
    given, _ = given_of(source)
    if given.files and is_large(given.files):
        return pd.DataFrame({name: first_rows(given.files[0], name) for name in given.columns})
    return given.read(given.columns, [])[given.columns]


def _verdict_note(asked: Request) -> str:
    """Return the note on a column that is guessed to be a verdict."""
    if not (own := asked.columns.get("judge_winner")):
        return ""
    other = f": if people decided, state human_outcome={own} in place of judge_winner"
    return f"{own} is taken as a judge's verdict{other * ('human_outcome' not in asked.columns)}."


def _guessed(source: pd.DataFrame | Path, asked: Request, miscoverage: float) -> Diagnosis | str:
    """Return the diagnosis of battles in guessed columns, or why they cannot be read."""
    try:
        return _of_battles(source, asked, miscoverage)
    except MissingColumnsError as error:
        return _of_votes(source, None, asked) if _are_votes(error, None) else message_of(error)
    except OneModelError as error:
        return _one_model(source, error, asked, miscoverage)
    except (ValueError, QualityGateError) as error:
        return _why(source, asked, error)


def _why(source: pd.DataFrame | Path, stated: Request, error: Exception) -> str:
    """Return why battles cannot be read: the codes to state, where these are unknown."""
    if isinstance(error, QualityGateError):
        named = stated.judge, stated.outcomes, stated.columns
        try:
            readable(source, *named, allow_quarantine=False, with_votes=False, **stated.told)
        except (ValueError, QualityGateError) as strict:
            error = strict
    return message_of(error)


def _one_model(
    source: pd.DataFrame | Path, error: OneModelError, stated: Request, miscoverage: float
) -> Diagnosis:
    """Return the diagnosis of scores of one model, with the pattern of the files beside it."""
    scores, told = error.scores, "scores of one model's answers: models are rated by several"
    means = scores.groupby("judge")["score"].agg(["mean", "count"])
    supports = [f"mean {name}: {mean:.3g} of {n:,} answers" for name, mean, n in means.itertuples()]
    beside = None
    if isinstance(source, Path) and source.is_file():
        beside = _beside(source, stated, miscoverage)
    if beside:
        note = f"{source} holds one model, and its folder others: this is of all of them."
        return beside._replace(concerns=[note, *beside.concerns])
    holds, lacks = "scores of single answers of one model", [f"{error}."]
    return Diagnosis(_name(source), holds, *_NO_COUNTS, told, supports, lacks, [], "")


def _beside(path: Path, stated: Request, miscoverage: float) -> Diagnosis | None:
    """Return the diagnosis of the files beside one, or in the folders beside its own."""
    for folder, pattern in ((path.parent, "*"), (path.parent.parent, "*/*")):
        files = Path(glob.escape(str(folder)), pattern + "".join(path.suffixes[-1:]))
        try:
            return _of_battles(files, stated, miscoverage)
        except (ValueError, QualityGateError):
            continue  # other files
    return None


def _apart(battles: pd.DataFrame) -> str:
    """Return a sentence on models without a chain of battles to the others; empty if none is."""
    try:
        require_connected(as_coded(battles, "derived", every_vote=True))
    except ValueError as error:
        return str(error)
    return ""
