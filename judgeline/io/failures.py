"""Failed verdicts: values that stand for them among scores, and texts that look like them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from judgeline.io.outcome_codes import (
    VERDICTS,
    by_value,
    code_of,
    looks_failed,
    quoted,
)
from judgeline.suggest import ArgumentError

NOTHING = "nothing"
"""Statement that no number is a failure, however far it stands from the others."""
_STEPS = 2  # from the next value; a nearer one is a part of the scale
_FEW = 3  # times that chance may repeat a value
_PILE = 0.005  # of all scores, which the tail of a scale does not gather in one value
_FEWEST = 30  # scores, below which a gap between values is chance
_MOST_SHOWN = 5


class Missing(NamedTuple):
    """Values that a user calls missing: texts without case, numbers in any notation.

    `is_all` says that no other number is one, however far it stands from the others.
    """

    codes: frozenset[str] = frozenset()
    is_all: bool = False

    def are(self, values: pd.Series) -> NDArray[np.bool_]:
        """Return which values are missing by statement."""
        if not self.codes:
            return np.zeros(len(values), dtype=bool)
        found = by_value(values, lambda one: code_of(one).casefold() in self.codes)
        return np.asarray(found & values.notna(), dtype=bool)


NONE_MISSING = Missing()


def parse_missing(stated: Any) -> Missing:
    """Return stated values such as ``-1`` or ``"error"``, one or several.

    Raises
    ------
    ValueError
        If one is no text and no number, or a verdict: a tie is no failure.
    """
    if stated is None:
        return NONE_MISSING
    given = [stated] if isinstance(stated, str | int | float) else stated
    if not isinstance(given, Iterable):
        given = [given]
    codes = []
    for one in given:
        is_value = isinstance(one, str | int | float | np.number) and not isinstance(one, bool)
        if not is_value or not str(one).strip():
            raise ArgumentError(
                f"missing is {one!r}; expected values that stand for failed verdicts, such as "
                "missing=-1",
                "missing",
            )
        codes.append(code_of(one).casefold())
    for code in codes:
        if code.upper().strip("[]") in VERDICTS:
            raise ArgumentError(
                f"missing={code} is a verdict, not a failure of one; leave it out of 'missing'",
                "missing",
            )
    return Missing(frozenset(codes) - {NOTHING}, not codes or NOTHING in codes)


class Apart(NamedTuple):
    """A value of scores that stands apart from the others, and the ends of these."""

    value: float
    lowest: float
    highest: float


def find_apart(scores: ArrayLike, counts: ArrayLike, *, two_sided: bool = False) -> Apart | None:
    """Return the value that stands apart from a scale of scores; None where none does.

    It is the only negative one, or two steps or more below or above all others, a step being the
    widest gap between these. It is met in 1 of 200 scores (3 at least), or twice and farther from
    the others than these are from each other; a whole number may be met once. A value above all
    others must be so far, since a scale may end in a round number. The scale -1, 0 and 1 holds no
    such value, and of fewer than 30 scores only a negative one is apart.

    Parameters
    ----------
    scores, counts : array_like, shape (n,)
        Different finite scores, and how often each is met.
    two_sided : bool
        Whether scores are differences, to which signs belong: one is apart if it is met twice and
        more than twice as large as all others.
    """
    values, number = np.asarray(scores, dtype=float), np.asarray(counts, dtype=float)
    if not values.size:
        return None
    order = np.argsort(values)
    is_whole = bool((values % 1 == 0).all())
    values, number = values[order] / 2, number[order]  # gaps of halves are finite
    for place in (0, -1):
        value, n, rest = values[place], number[place], np.delete(values, place)
        known = np.unique(np.abs(rest)) if two_sided else rest
        if known.size < 2:  # two values are no scale yet
            continue
        step, spread = np.diff(known).max(), known[-1] - known[0]
        gap = abs(value) - known[-1] if two_sided else max(known[0] - value, value - known[-1])
        is_far = gap / _STEPS >= step * (1 - 1e-9)
        is_lone = not two_sided and value < 0 <= rest[0]
        is_sure = n > 1 or (is_whole and not two_sided)
        is_beyond = gap > (known[-1] if two_sided else spread) and is_sure
        is_piled = not two_sided and place == 0 and n >= max(_FEW, _PILE * number.sum())
        is_mark = is_beyond or is_piled  # judges give round numbers at the top of a scale
        is_code = is_whole or (is_far and value % 0.5 == 0)  # halved, as all are
        if is_lone and (is_mark or is_code) and (is_far or value != -rest[-1]):
            return Apart(*(2 * float(end) for end in (value, rest[0], rest[-1])))
        if is_far and is_mark and number.sum() >= _FEWEST:
            return Apart(*(2 * float(end) for end in (value, rest[0], rest[-1])))
    return None


def require_on_scale(
    place: str,
    columns: Sequence[str],
    counts: pd.Series,
    by_model: Callable[[float], pd.Series],
    *,
    two_sided: bool = False,
) -> None:
    """Raise where a score stands apart from the others: a failed verdict is no score.

    `counts` says how often each score is met, `by_model` how often one is, model by model.
    """
    scores = counts.index.to_numpy(dtype=float)
    met = np.isfinite(scores) & counts.gt(0).to_numpy()
    found = find_apart(scores[met], counts.to_numpy()[met], two_sided=two_sided)
    if found is None:
        return
    models = by_model(found.value)
    models = models[models > 0].sort_values(ascending=False, kind="stable")
    names = [f"{name} {n:,}" for name, n in models.head(_MOST_SHOWN).items()]
    names += [f"{len(models) - _MOST_SHOWN} more models"] * (len(models) > _MOST_SHOWN)
    total = int(counts[found.value])
    raise ArgumentError(
        f"{place}: {' or '.join(columns)} is {found.value:g} {total:,} "
        f"time{'s' * (total != 1)} (by model: {', '.join(names)}), and every other score lies "
        f"between {found.lowest:g} and {found.highest:g}. A failed verdict is no score: if "
        f"{found.value:g} stands for one, state missing={found.value:g}; if it is a score like "
        f"the others, state missing={NOTHING}",
        "missing",
    )


def failed_texts(published: pd.Series, known: pd.Series) -> list[str]:
    """Return texts of unknown verdicts that look like failures, as they are written."""
    unread = published[published.notna() & ~known].map(code_of)
    return [text for text in unread.value_counts().index if looks_failed(text)]


def stated_text(codes: Sequence[str]) -> str:
    """Return how a sentence states texts as missing: ``missing=error``."""
    return " ".join(f"missing={quoted(code)}" for code in codes[:3])
