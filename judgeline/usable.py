"""Conditions on battles and their judge before models are rated by them."""

import json
import math
import shlex
from collections.abc import Mapping
from itertools import chain, count
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from judgeline.elo import CONSTANT, REVERSED, UNCERTAIN, BetaFit, BetaFolds, fit_beta
from judgeline.io import (
    COUNT,
    ArgumentError,
    JudgedBattles,
    MissingColumnsError,
    as_numbers,
    by_score,
    read_judged_battles,
    require_few_lost,
)
from judgeline.io.failures import NOTHING
from judgeline.io.layouts import layout_at
from judgeline.io.one_battle import UNCLEAR
from judgeline.io.voters import FEWEST_DECIDED
from judgeline.suggest import QualityGateError

_MOST_QUARANTINED = 0.5  # of rows; above, nothing is rated, as in the lineage
_LOST = (
    "unknown-outcome", "unknown-winner", "unknown-preference", "nan-score", UNCLEAR,
    "missing-model",
)  # fmt: skip

_VERDICT_OF_STATUS = {
    CONSTANT: "every score difference is {score:g}, so that the judge tells nothing of the models. "
    "Check how the scores were read; if they are right, this judge must not rate models",
    REVERSED: "the judge prefers what people reject: {slope}. Check that score_difference is A "
    "minus B and that human_outcome 1 means A; if both are right, this judge must not rate models",
    UNCERTAIN: "votes cannot tell: {slope}. {more}",
    "separable": "the scores predict every vote, so that the slope has no upper end. {remedy}",
    "no-decisive-votes": "no battle has both a decisive human vote (1 or 0) and unequal scores. "
    "Add battles that people voted on; without votes judgeline plain rates the models",
}
_SEPARABLE = (
    "There are too few human votes: add battles that people voted on",
    "People never agree with a judge in so many battles: are these votes people's? If they are the "
    "judge's own, state that column as judge_winner (--columns judge_winner=winner), and rate by "
    "votes of people",
)
_OF_OTHERS = {
    REVERSED: "with all votes the judge prefers what people prefer, without {model} "
    "what they reject ({slope}), so that too few votes bear its scale. Add battles that people "
    "voted on",
    UNCERTAIN: "with all votes the judge prefers what people prefer; without {model} votes cannot "
    "tell: {slope}. {more}",
}


_OF_A_HUB = (
    "every battle is with {model}, so that nothing shows what the judge is worth without it: votes "
    "on battles between the other models are missing. By the judge, and by people, as they are: "
    "judgeline plain"
)


class UnusableJudgeError(QualityGateError):
    """The judge fails a quality gate: its scores cannot be put on the human scale.

    `is_too_few` says that votes are missing, and nothing is wrong with the judge.
    """

    def __init__(self, message: str, status: str = "") -> None:
        super().__init__(message)
        self.is_too_few = status not in (CONSTANT, REVERSED)


def table_or_path(source: Any, name: str = "battles") -> pd.DataFrame | Path:
    """Return a table of pandas or of another library as pandas', records as a table, or a path."""
    if isinstance(source, pd.DataFrame | Path):
        return source
    if isinstance(source, str | PathLike):
        return Path(source)
    if callable(as_pandas := getattr(source, "to_pandas", None)):  # polars, pyarrow
        return pd.DataFrame(as_pandas())
    if isinstance(source, dict) or (isinstance(source, list) and {*map(type, source)} == {dict}):
        return pd.DataFrame(source)
    raise ArgumentError(
        f"{name} is of type {type(source).__name__}; expected a path, a DataFrame (pandas, polars, "
        "pyarrow), columns by name, or a list of records",
        name,
    )


def readable(
    source: pd.DataFrame | Path | str,
    judge: str | None,
    outcomes: str | None,
    columns: Mapping[str, str] | None,
    *,
    allow_quarantine: bool | None,
    with_votes: bool = True,
    counted: bool = False,
    missing: Any = None,
    same_names: bool = False,
    votes_alone: bool = False,
) -> JudgedBattles:
    """Return the battles of a file or table; QualityGateError if too many rows are unusable.

    `allow_quarantine` is None for a caller that has no such argument.
    """
    source = table_or_path(source)
    place = "the table" if isinstance(source, pd.DataFrame) else str(source)
    _require_kinds(columns=columns, outcomes=outcomes, judge=judge)
    try:
        battles = read_judged_battles(
            source,
            judge=judge,
            outcomes=outcomes,
            columns=columns,
            with_votes=with_votes,
            counted=counted,
            missing=missing,
            same_names=same_names,
            lenient=bool(allow_quarantine),
            votes_alone=votes_alone,
        )
    except MissingColumnsError as error:
        if error.missing != {"human_outcome"}:
            raise
        told = {"missing": missing, "same_names": same_names}
        alone = call_text("plain", source, judge, outcomes, columns, **told)
        raise MissingColumnsError(
            f"{place} has verdicts of a judge and no votes of people, which ratings on the human "
            f"scale need: {_to_add_votes(source, judge)}. Ratings by the judge alone: {alone}",
            error.missing,
        ) from error
    _require_usable(battles, place, allow_quarantine=allow_quarantine)
    return battles


_KINDS = {
    "columns": (Mapping, '{"human_outcome": "label"}'),
    "outcomes": (str, '"1/-1/0"'),
    "judge": (str, '"gpt-4"'),
}


def _require_kinds(**arguments: Any) -> None:
    """Raise ArgumentError if an argument of `readable` is of another type than it has to be."""
    for name, value in arguments.items():
        kind, example = _KINDS[name]
        if not (value is None or isinstance(value, kind)):
            raise ArgumentError(f"{name} is {value!r}; expected such as {name}={example}", name)


def _require_usable(battles: JudgedBattles, place: str, *, allow_quarantine: bool | None) -> None:
    """Raise QualityGateError, or ArgumentError if it may be allowed, where rows are lost."""
    if battles.quarantined_share > _MOST_QUARANTINED:
        raise QualityGateError(
            f"{battles.quarantined_share:.0%} of {battles.n_rows:,} rows cannot be used "
            f"({battles.reasons}), such as: {battles.quarantine['detail'].iloc[0]}. Correct the "
            "file: ratings from what is left would speak of other battles than it was meant to hold"
        )
    if not allow_quarantine:
        remedy = "Correct the file"
        if allow_quarantine is not None:
            remedy += ", or rate what is left with allow_quarantine=True"
        lost = (battles.quarantine, battles.n_rows, _LOST, place, remedy)
        require_few_lost(*lost, argument="allow_quarantine")


def _to_add_votes(source: pd.DataFrame | Path, judge: str | None) -> str:
    """Return how votes are added to battles: to their file, or to a table made of it."""
    layout = layout_at(source) if isinstance(source, Path) else None
    if layout is None or layout.battles is None:
        return (
            "add them as human_outcome or winner, or name their column with "
            "columns=human_outcome=NAME"
        )
    named = f", judge={judge!r}" if judge else ""
    return (
        f"results of {layout.name} have no place for them, so add them to a table of its battles. "
        "In Python: battles = judgeline.io.read_judged_battles(pathlib.Path("
        f"{str(source)!r}){named}, with_votes=False).scored; battles['human_outcome'] = 1, 0.5, 0 "
        "or NaN of each row, A's share of the win; judgeline.rank(battles)"
    )


_COMMANDS = ("rank", "doctor", "plain", "agreement", "rates")


def loses_many(battles: JudgedBattles) -> bool:
    """Return whether more rows are lost than `rank` takes without being told."""
    try:
        require_few_lost(battles.quarantine, battles.n_rows, _LOST, "", "")
    except ArgumentError:
        return True
    return False


def hub_of(scored: pd.DataFrame) -> str:
    """Return the model that is in every battle, of several models; empty where none is."""
    hubs = {*scored["model_a"].iloc[:1], *scored["model_b"].iloc[:1]}
    in_all = (one for one in hubs if (scored["model_a"].eq(one) | scored["model_b"].eq(one)).all())
    hub = next(in_all, "")
    return str(hub) if len({*scored["model_a"], *scored["model_b"]}) > 2 else ""


def call_text(
    verb: str,
    source: pd.DataFrame | Path,
    judge: str | None,
    outcomes: str | None,
    columns: Mapping[str, str] | None,
    *,
    missing: Any = None,
    same_names: bool = False,
    allow_quarantine: bool = False,
) -> str:
    """Return the Python that calls a function on a table, or the command that does on a file."""
    stated = {"judge": judge, "outcomes": outcomes, "columns": columns and dict(columns)}
    given: dict[str, Any] = {name: value for name, value in stated.items() if value}
    if isinstance(source, Path) and verb in _COMMANDS:
        pairs = ",".join(f"{ours}={own}" for ours, own in (columns or {}).items())
        given |= {"columns": pairs} if columns else {}
        given = {"out": _free_folder(), **given} if verb == "rank" else given
        options = [*given.items(), *(("missing", one) for one in _several(missing))]
        words = [f"--{name} {shlex.quote(str(value))}" for name, value in options]
        words += ["--same-names"] * same_names + ["--allow-quarantine"] * allow_quarantine
        file = f"./{source}" if str(source).startswith("-") else str(source)
        return " ".join([f"judgeline {verb} {shlex.quote(file)}", *words])
    given |= {} if missing is None else {"missing": missing}
    given |= {"same_names": True} if same_names else {}
    given |= {"allow_quarantine": True} if allow_quarantine else {}
    first = json.dumps(str(source)) if isinstance(source, Path) else "battles"
    arguments = (f"{name}={value!r}" for name, value in given.items())
    call = f"judgeline.{verb}({', '.join([first, *arguments])})"
    if isinstance(source, pd.DataFrame):
        return call
    return f"python -c {shlex.quote(f'import judgeline; print({call})')}"


def _free_folder() -> str:
    """Return a name of the folder of results that none has here."""
    names = chain(["ratings"], (f"ratings-{n}" for n in count(2)))
    return next(one for one in names if not Path(one).exists())


def _several(missing: Any) -> list[Any]:
    """Return stated values as a list; one that says that nothing is missing as its word."""
    if missing is None:
        return []
    return [missing] if isinstance(missing, str | int | float) else [*missing] or [NOTHING]


def printable(text: str) -> str:
    """Return text in which no character commands a terminal, for a line of a prompt."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)


def require_usable(scored: pd.DataFrame, folds: BetaFolds) -> None:
    """Raise unless the judge has a positive, finite slope, with all votes and in every fold."""
    pooled = _fit(scored)
    status = CONSTANT if CONSTANT in folds.status else pooled.status
    if status != "ok":
        score = scored["score_difference"].iloc[0]
        why = _VERDICT_OF_STATUS[status].format(score=score, **_numbers(pooled))
        raise UnusableJudgeError(
            f"this judge cannot be put on the human scale ({status}, "
            f"{pooled.n_battles} decisive votes): {why}",
            status,
        )
    bad = folds.status != "ok"
    if bad.any():
        status, first = str(folds.status[bad][0]), folds.held_out_model[bad][0]
        names = ", ".join(folds.held_out_model[bad][:5])
        rest = scored[scored["model_a"].ne(first) & scored["model_b"].ne(first)]
        sentence = _OF_OTHERS.get(status, _VERDICT_OF_STATUS[status])
        why = sentence.format(model=first, **_numbers(_fit(rest)))
        if first == hub_of(scored):
            why = _OF_A_HUB.format(model=first)
        raise UnusableJudgeError(
            f"with {names} held out, the other models' {folds.n_battles[bad][0]} decisive votes "
            f"give no slope ({status}): {why}",
            status,
        )


def _fit(scored: pd.DataFrame) -> BetaFit:
    alike = by_score(scored)
    score, votes = (as_numbers(alike[name]) for name in ("score_difference", "human_outcome"))
    return fit_beta(score, votes, alike.get(COUNT))


def _numbers(fit: BetaFit) -> dict[str, str]:
    """Return a slope with its error, and how many votes would tell it from 0, in words."""
    slope = f"all {fit.n_battles} decisive votes are against its scores"
    if math.isfinite(fit.slope):
        digits = max(0, 1 - math.floor(math.log10(max(fit.slope_std_error, 1e-9))))
        slope = f"slope {fit.slope:.{digits}f} +- {fit.slope_std_error:.{digits}f}"
    more = "Add battles that people voted on"
    if needed := fit.votes_that_tell:
        more = f"About {needed:,} decisive votes such as these would tell. {more}"
    remedy = _SEPARABLE[fit.n_battles >= FEWEST_DECIDED]
    return {"slope": slope, "more": more, "remedy": remedy}
