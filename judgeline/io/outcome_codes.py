"""Outcome codes: which values of a user's file say that A won, that B won, or that neither did.

A code of another coding puts the usual codes in doubt: where -1 is a loss, 0 is a tie. A file with
such codes is refused, and read once its user states them, as in `1/-1/0`: A's, B's, those of ties.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_hashable, is_numeric_dtype

from judgeline.suggest import ArgumentError

USUAL = "1/0/0.5"
STATED_AS = "A's code, then B's, then any of ties"
MOST_LOST = 0.02
"""Share of rows lost to unknown outcomes or missing scores above which a file is refused."""

PLAIN = "plain verdicts without scores: a win counts as a score difference of 1"
"""What tables and reports say of score differences that stand for wins, ties and losses."""
_A = ("model_a", "model a", "model_1", "a", "left")
_B = ("model_b", "model b", "model_2", "b", "right")
_TIES = (
    "tie",
    "both_bad",
    "both bad",
    "bothbad",
    "tie (bothbad)",
    "tie(bothbad)",
    "tie (both bad)",
)
WINNERS: dict[str, float] = {
    **dict.fromkeys(_A, 1.0),
    **dict.fromkeys(_B, 0.0),
    **dict.fromkeys(_TIES, 0.5),
}
"""A's share of the win by name of the winner in small letters, in a column of that name."""
EXPECTED_WINNERS = "model_a, model_b, tie or both_bad, or the name of either model"
VERDICT_LEVELS: dict[str, int] = {
    "A>>B": 2,
    "A>B": 1,
    "A=B": 0,
    "B>A": -1,
    "B>>A": -2,
    "A<<B": -2,
    "A<B": -1,
    "B=A": 0,
    "B<A": 1,
    "B<<A": 2,
}
"""Score difference by Arena-Hard's label; the last five are spellings of the others. The labels
are published without distances, and a slope fitted to votes stretches all of them alike."""
VERDICTS: dict[str, int] = {
    **{name.upper(): round(2 * share - 1) for name, share in WINNERS.items()},
    **VERDICT_LEVELS,
}
"""Score difference by the text of a plain verdict, in capitals."""
EXPECTED_VERDICTS = "A, B, tie, [[C]] for a tie, or a level: A>>B, A>B, A=B, B>A, B>>A"

_FAILURES = {
    *("error", "errors", "garbage", "invalid", "skip", "skipped", "fail", "fails", "failed"),
    *("failure", "null", "nan", "unknown", "undefined", "timeout", "exception", "unparsed"),
    *("unparseable", "unparsable", "unreadable", "missing", "refused", "refusal", "malformed"),
}
_NOTHINGS = {"", "none", "na", "n/a", "n.a.", "nil", "?", "??", "-", "--", "???", "no answer"}
_WIN_LOSS = ("win", "loss")
_CODINGS = tuple(
    coding.split("/")
    for coding in (
        USUAL,
        "1/-1/0",
        "1/2/0",
        "2/0/1",
        "1/0/2",
        "1/2/1.5",
        "1/2/3",
        "100/0/50",
        "a/b/c",
        *(
            "/".join((*sides, *_TIES, "draw", "equal", "both"))
            for sides in (*zip(_A, _B, strict=True), "10", _WIN_LOSS)
        ),
    )
)
CODES_IN_USE = frozenset(code for coding in _CODINGS for code in coding)
_MOST_SHOWN = 8


def require_columns(
    place: Path | str, found: Sequence[str], stated: Mapping[str, str], known: Iterable[str]
) -> None:
    """Raise unless stated names of columns are of ours, and of the source's."""
    for name, own in stated.items():
        for wrong, among in ((name, [*known]), (own, found)):
            if wrong not in among:
                raise ArgumentError(
                    f"{place}: 'columns' says {name}={own}, and there is no column {wrong!r}; it "
                    f"is one of {', '.join(among[:40])}",
                    "columns",
                )


def parse_codes(text: str) -> dict[str, float]:
    """Return A's share of the win by code, from codes as a user states them.

    Raises
    ------
    ValueError
        If fewer than two codes are named, one of them twice, or a failure as a tie.
    """
    codes = [code_of(part) for part in text.split("/")]
    ties = re.sub(r"(?i)(?<![^/])n/a(?![^/])", "n\\\\a", text).split("/")[2:]  # one text
    failed = [one.strip().replace("\\", "/") for one in ties]
    if failed := [one for one in failed if one and looks_failed(one)]:
        raise ArgumentError(
            f"the codes {text} make {failed[0]!r} a code of ties, and a failed verdict is no tie: "
            f"leave it out of the codes, and state missing={quoted(failed[0])}",
            "missing",
        )
    if len(codes) < 2 or "" in codes or len(set(codes)) < len(codes):
        raise ValueError(
            f"outcomes are {text!r}; expected different codes with '/' between them, {STATED_AS}, "
            "such as 1/-1/0"
        )
    return {code: {0: 1.0, 1: 0.0}.get(place, 0.5) for place, code in enumerate(codes)}


def code_of(value: Any) -> str:
    """Return the text of a published value, the same for a number in any notation."""
    text = str(value).strip()
    try:
        return f"{float(value) + 0.0:.12g}"  # no negative zero
    except (TypeError, ValueError):
        return text


def looks_failed(code: str) -> bool:
    """Return whether a text looks like a failed verdict: error, N/A, parse_error, none."""
    text = code.strip().strip("[]()<>").casefold()
    return text in _NOTHINGS or not _FAILURES.isdisjoint(re.split(r"[^a-z]+", text))


def quoted(code: str) -> str:
    """Return a code as a sentence states it: in quotes where a shell needs them."""
    return code if re.fullmatch(r"[\w.+/-]+", code) else repr(code)


def by_value(published: pd.Series, function: Callable[[Any], Any]) -> pd.Series:
    """Return a function of each cell, which is computed once for each distinct value.

    Lists and objects are compared as texts.
    """
    try:
        codes, values = pd.factorize(published, use_na_sentinel=False)
    except TypeError:
        published = published.map(lambda one: one if is_hashable(one) else str(one))
        codes, values = pd.factorize(published, use_na_sentinel=False)
    found = pd.Series([function(value) for value in values.tolist()])
    return found.take(codes).set_axis(published.index)


def without_blanks(published: pd.Series) -> pd.Series:
    """Return outcomes in which a blank text is null, as the empty field of a CSV file is."""
    if is_numeric_dtype(published):
        return published
    return published.mask(by_value(published, lambda one: isinstance(one, str) and not one.strip()))


def outcomes_by_code(published: pd.Series, codes: Mapping[str, float]) -> pd.Series:
    """Return A's share of the win by stated codes, null for any other code and without a vote."""
    shares = by_value(published, lambda value: codes.get(code_of(value)))
    return shares.astype("float64").where(published.notna())


def outcomes_by_winner(published: pd.Series, sides: pd.DataFrame) -> pd.Series:
    """Return A's share of the win by the winner's name: one of both models, or a code of `WINNERS`.

    `sides` has the columns model_a and model_b. Any other name gives null, as does a code that is
    the name of a model elsewhere.
    """
    names, first, second = (  # as texts: a winner may be a number where models are texts
        by_value(one, lambda name: name.strip() if isinstance(name, str) else code_of(name))
        for one in (published, sides["model_a"], sides["model_b"])
    )
    models = {code_of(name).casefold() for side in (first, second) for name in side.unique()}
    codes = {code: share for code, share in WINNERS.items() if code not in models}
    shares = by_value(published, lambda name: codes.get(code_of(name).casefold()))
    shares = shares.astype("float64").where(published.notna())
    won, lost = (names.eq(side) & published.notna() for side in (first, second))
    return shares.mask(won & ~lost, 1.0).mask(lost & ~won, 0.0)


def scores_of_verdicts(published: pd.Series) -> pd.Series:
    """Return the score difference of plain verdicts, null for any other text.

    A text may stand in double brackets, as judges are asked to write it: ``[[A>>B]]``. ``[[C]]`` is
    MT-bench's tie. A bare ``C`` is one beside A and B, unless the column has another code of ties.
    """
    texts = by_value(published, lambda value: code_of(value).upper())
    found = {text.strip("[]") for text in texts.unique()}
    known = VERDICTS | {f"[[{text}]]": level for text, level in (VERDICTS | {"C": 0}).items()}
    if found >= {"A", "B", "C"} and found.isdisjoint(VERDICTS.keys() - {"A", "B"}):
        known["C"] = 0
    return by_value(texts, known.get).astype("float64")


COUNT = "n_battles"
"""Column of how many battles are alike and stand in one row."""


def n_battles_of(rows: pd.DataFrame) -> int:
    """Return how many battles rows hold: as many as they are, or as `COUNT` says."""
    return int(rows[COUNT].sum()) if COUNT in rows else len(rows)


def battles_by(values: pd.Series, rows: pd.DataFrame) -> pd.Series:
    """Return the battles in rows by a value of each, the most frequent value first."""
    if COUNT not in rows:
        return values.value_counts()
    return rows[COUNT].groupby(values).sum().sort_values(ascending=False, kind="stable")


def require_known_codes(
    published: pd.Series,
    known: pd.Series,
    place: str,
    remedy: str,
    *,
    argument: str = "",
    rows: pd.DataFrame | None = None,
) -> None:
    """Raise if a column of outcomes holds another coding than the one it is read by.

    A code is systematic if it repeats and either is in use in another coding or stands in more
    than `MOST_LOST` of the votes. `place` names file and column, `remedy` the stated codes as
    ``{codes}``, and `argument` is where they can be stated. `rows` count the battles.
    """
    table = published.to_frame() if rows is None else rows
    votes = published.notna()
    if not (unread := votes & ~known).any():
        return
    unknown = battles_by(published[unread].map(code_of), table[unread])
    is_systematic = unknown.gt(1) & (
        unknown.gt(MOST_LOST * n_battles_of(table[votes]))
        | unknown.index.str.casefold().isin(CODES_IN_USE)
    )
    if is_systematic.any():
        counts = battles_by(published[votes].map(code_of), table[votes])
        raise ArgumentError(
            f"{place} holds {_counts_text(counts)}; unknown are "
            f"{', '.join(map(_shown, unknown.index[is_systematic][:_MOST_SHOWN]))}. "
            f"{remedy.format(codes=_suggestion(list(counts.index)))}",
            argument,
        )


def require_both_winners(outcome: pd.Series, place: str, stated: str) -> None:
    """Raise if a code that was stated for a winner never occurs: the column has another coding."""
    for share, code in zip((1.0, 0.0), stated.split("/")[:2], strict=True):
        if outcome.notna().any() and not outcome.eq(share).any():
            raise ValueError(
                f"{place} has no {code}, but the stated outcomes {stated} make {code} the code of "
                "a win; correct them, or convert the column"
            )


def _counts_text(counts: pd.Series) -> str:
    shown = [f"{_shown(code)} ({n:,} rows)" for code, n in counts.head(_MOST_SHOWN).items()]
    n_more = len(counts) - len(shown)
    return ", ".join(shown) + (f" and {n_more:,} other codes" if n_more else "")


def _shown(code: str) -> str:
    return f"{code!r:.40}"


def _suggestion(found: Sequence[str]) -> str:
    """Return the stated codes that read a file, as alternatives where its codes are ambiguous."""
    return " or ".join(codings_of(found)) or "such as 1/-1/0"


def codings_of(found: Sequence[str]) -> list[str]:
    """Return the codings in use that have all these codes, as they are stated."""
    spelling = {code.casefold(): code for code in found if not looks_failed(code)}
    fitting = [
        "/".join(spelling[code] for code in coding if code in spelling)
        for coding in _CODINGS
        if spelling.keys() <= set(coding) and set(coding[:2]) <= spelling.keys()
    ]
    return list(dict.fromkeys(fitting))


def coding_of(found: Sequence[str]) -> str:
    """Return the coding in use that codes are of, as it is stated; empty for none or several."""
    stated = codings_of(found)
    return stated[0] if len(stated) == 1 else ""


def require_few_lost(
    quarantine: pd.DataFrame,
    n_rows: int,
    reasons: Sequence[str],
    place: str,
    remedy: str,
    *,
    argument: str = "",
) -> None:
    """Raise if more than `MOST_LOST` of a file's rows were set aside for some reasons."""
    lost = quarantine[quarantine["reason"].isin(reasons)]
    n_lost = n_battles_of(lost.drop_duplicates(["file", "row"]))
    if n_lost <= MOST_LOST * n_rows:
        return
    by_reason = battles_by(lost["reason"], lost)
    counts = ", ".join(f"{n:,} {reason}" for reason, n in by_reason.items())
    raise ArgumentError(
        f"{place}: {n_lost / n_rows:.1%} of {n_rows:,} rows are lost ({counts}), such as: "
        f"{lost['detail'].iloc[0]}. At most {MOST_LOST:.0%} may be. {remedy}",
        argument,
    )
