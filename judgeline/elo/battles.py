"""Battles as small integers: the one form in which the estimators read them."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Bools, Floats, Ints, alike, require

RUBRIC_DENOMINATOR = 12
"""Two orders times six criteria: judged score differences are multiples of 1/12 point."""
LARGEST_SCORE = 1e6
"""Largest absolute score difference taken for one; rubric differences lie in [-9, 9]."""
MOST_BATTLES = 2**53
"""Largest number of battles that sums of floats count exactly."""
_GRID_LIMIT = 4096  # numerators beyond this are kept as floats: tables would outgrow battles
_CHUNK = 1 << 16  # rows at a time: arrays of them stay in the cache


class Categorical(NamedTuple):
    """Names as codes into a table of names, the light form of a pandas categorical."""

    codes: NDArray[Any]
    categories: tuple[str, ...]


@dataclass(frozen=True)
class CodedBattles:
    """Battles ready for estimation, n rows over M models; make them with `code_battles`."""

    models: tuple[str, ...]  # sorted names; every model has a battle
    model_a: NDArray[Any]  # codes that point into the names
    model_b: NDArray[Any]
    human_outcome: NDArray[np.int8]  # A's share of the win in halves, 0 to 2; -1 without a vote
    judge_outcome: NDArray[np.int8]  # A's share of the win in quarters, 0 to 4
    score_difference: NDArray[Any]  # A minus B: int16 numerators, or rubric points
    denominator: int  # of the numerators; 0 where score differences are rubric points already
    count: NDArray[Any] | None = None  # of battles alike in each row; None where each is one
    made: dict[Any, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Results that several fits of these battles share: sums, and the anchors of people's votes."""

    def __len__(self) -> int:
        """Return the number of rows, which are battles where none is counted."""
        return int(self.model_a.size)

    @property
    def n_battles(self) -> int:
        """Number of battles."""
        return len(self) if self.count is None else int(self.count.sum())

    def weights(self, rows: Any = slice(None)) -> NDArray[Any] | None:
        """Return how many battles stand in some rows; None where each is one."""
        return None if self.count is None else self.count[rows]

    def weighted(self, values: Floats, rows: Any = slice(None)) -> Floats:
        """Return values of some rows times their battles."""
        return values if self.count is None else values * self.count[rows]

    def take(self, rows: NDArray[Any]) -> "CodedBattles":
        """Return the chosen battles (boolean mask or positions) over the same models."""
        columns = ("model_a", "model_b", "human_outcome", "judge_outcome", "score_difference")
        taken = {name: getattr(self, name)[rows] for name in columns}
        return replace(self, **taken, count=self.weights(rows))

    def rubric_points(self, rows: Any = slice(None)) -> Floats:
        """Return the score differences of some rows in rubric points, shape (n,)."""
        return np.asarray(self.score_difference[rows].astype(float) / (self.denominator or 1))

    def require_single(self, what: str) -> None:
        """Raise ValueError if battles are counted where an estimator needs single ones."""
        if self.count is not None:
            raise ValueError(f"{what} need single battles, and these are counted: pass one a row")

    def voted_models(self) -> Bools:
        """Return which models have at least one battle with a human vote, shape (M,)."""
        voted, seen = self.human_outcome >= 0, np.zeros(len(self.models), dtype=bool)
        seen[self.model_a[voted]] = seen[self.model_b[voted]] = True
        return seen


def code_battles(
    model_a: Any,
    model_b: Any,
    *,
    human_outcome: ArrayLike,
    judge_outcome: ArrayLike,
    score_difference: ArrayLike,
    count: ArrayLike | None = None,
) -> CodedBattles:
    """Return battles as codes; ValueError for the first row that no estimator can read.

    Parameters
    ----------
    model_a, model_b : array_like of str, or categorical, shape (n,)
        Names of the two models; anything with ``codes`` and ``categories`` is taken as coded.
    human_outcome : array_like, shape (n,)
        A's share of the human win: 1, 0.5, 0, or NaN where nobody voted.
    judge_outcome : array_like, shape (n,)
        A's share of the judge's win, in quarters of [0, 1].
    score_difference : array_like, shape (n,)
        Judge score of A minus B, in rubric points. Multiples of 1/12 are kept as integers.
    count : array_like of int, shape (n,), optional
        How many battles are alike and stand in each row; at most 2^53 in all.

    Raises
    ------
    ValueError
        On no battles, unequal lengths, a model against itself, a missing name, a score that
        is not finite, an outcome outside its code, or a count that is no whole number from 1 on;
        the message names row and value.
    """
    sides = _as_categorical(model_a, "model_a"), _as_categorical(model_b, "model_b")
    models = _used_models(*sides)
    width = np.int16 if len(models) <= np.iinfo(np.int16).max else np.int32
    place = {name: code for code, name in enumerate(models)}
    codes_a, codes_b = (
        np.array([place.get(name, -1) for name in side.categories], dtype=width)[side.codes]
        for side in sides
    )
    human, judge = np.asarray(human_outcome), np.asarray(judge_outcome)
    score = np.asarray(score_difference)
    counts = None if count is None else _whole_counts(np.asarray(count))
    columns = {"human_outcome": human, "judge_outcome": judge, "score_difference": score}
    counted = {} if counts is None else {"count": counts}
    alike(model_a=codes_a, model_b=codes_b, **columns, **counted)
    same = np.flatnonzero(codes_a == codes_b)
    if same.size:
        raise ValueError(
            f"{same.size} battles of a model against itself, first in row {same[0]} "
            f"({models[codes_a[same[0]]]!r}); remove them before rating"
        )
    numerators, denominator = _code_scores(score)
    human = _code_outcome(human, 2, "human_outcome", "1, 0.5, 0 or missing")
    judge = _code_outcome(judge, 4, "judge_outcome", "a multiple of 0.25 in [0, 1]", missing=False)
    return CodedBattles(models, codes_a, codes_b, human, judge, numerators, denominator, counts)


def _whole_counts(count: NDArray[Any]) -> Ints:
    is_integer = count.dtype.kind in "iu"
    values = count if is_integer else count.astype(float)
    good = (values >= 1) & (values <= MOST_BATTLES)
    good &= values == (values if is_integer else np.floor(values))
    require(good, "count", count, "a whole number of battles, from 1 on")
    total, remedy = float(values.sum(dtype=float)), "look for a count that is wrong"
    require(
        total <= MOST_BATTLES, "the sum of count", total, f"{MOST_BATTLES:.3g} at most; {remedy}"
    )
    return values if is_integer else values.astype(np.int64)


def _used_models(*sides: Categorical) -> tuple[str, ...]:
    if not sides[0].codes.size:
        raise ValueError("no battles: at least one scored battle is needed")
    used: set[str] = set()
    for codes, categories in sides:
        counts = np.bincount(codes, minlength=len(categories))
        used |= {name for name, count in zip(categories, counts, strict=True) if count}
    if len(used) < 2:
        raise ValueError(f"one model only ({min(used)!r}): ratings need at least two models")
    return tuple(sorted(used))


def _as_categorical(values: Any, name: str) -> Categorical:
    values = getattr(values, "cat", values)  # a pandas Series hides its codes behind .cat
    if hasattr(values, "codes") and hasattr(values, "categories"):
        codes = np.asarray(values.codes)
        categories = tuple(str(category) for category in values.categories)
        if codes.size and int(codes.min()) < 0:
            raise ValueError(f"{name} is missing in row {int(np.argmin(codes))}")
        if "" in categories and (codes == categories.index("")).any():
            raise ValueError(f"{name} is '' in some row; expected a model name")
        return Categorical(codes, categories)
    names = values if isinstance(values, list) else np.asarray(values, object).ravel().tolist()
    place: defaultdict[Any, int] = defaultdict()
    place.default_factory = place.__len__  # a name not seen yet gets the next code
    try:
        codes = np.fromiter(map(place.__getitem__, names), dtype=np.int32, count=len(names))
    except TypeError:  # what cannot be hashed is no name
        place[None] = -1
    if not all(isinstance(model, str) and model for model in place):
        named = [isinstance(model, str) and model != "" for model in names]
        row = named.index(False)
        raise ValueError(f"{name} is {names[row]!r} in row {row}; expected a model name")
    return Categorical(codes, tuple(place))


def _code_outcome(
    outcome: NDArray[Any], parts: int, name: str, expected: str, *, missing: bool = True
) -> NDArray[np.int8]:
    codes = np.empty(outcome.size, dtype=np.int8)
    for part in chunks(outcome.size):
        values = outcome[part].astype(np.float32)
        absent = np.isnan(values)
        scaled = np.where(absent, 0, values) * parts
        codes[part] = np.clip(scaled, -1, parts + 1)
        wrong = (codes[part] != scaled) | (codes[part] < 0) | (codes[part] > parts)
        wrong |= absent & (not missing)
        if wrong.any():
            row = part.start + int(np.argmax(wrong))
            raise ValueError(f"{name} is {outcome[row]!r} in row {row}; expected {expected}")
        codes[part][absent] = -1
    return codes


def chunks(size: int, table_cells: int = 0) -> Iterator[slice]:
    """Yield slices of battles small enough for the cache, yet worth a pass over the table."""
    step = max(_CHUNK, min(2 * table_cells, 1 << 21))
    return (slice(first, min(first + step, size)) for first in range(0, size, step))


def _code_scores(score: NDArray[Any]) -> tuple[NDArray[Any], int]:
    values = score if score.dtype in (np.float32, np.float64) else score.astype(float)
    tolerance = 1e-6 if values.dtype == np.float64 else 2e-5  # 6e-8 relative, times 12 * 9
    numerators, on_grid = np.empty(values.size, dtype=np.int16), True
    for part in chunks(values.size):
        finite = np.abs(values[part]) <= LARGEST_SCORE  # false for NaN too
        if not finite.all():
            row = part.start + int(np.argmin(finite))
            n_such = int((~(np.abs(values) <= LARGEST_SCORE)).sum())
            raise ValueError(
                f"score_difference is {float(values[row])!r} in row {row} ({n_such} such rows); "
                f"expected a number within {LARGEST_SCORE:g} of zero. Leave out battles without a "
                "parsed verdict in both orders"
            )
        if on_grid:
            scaled = values[part] * RUBRIC_DENOMINATOR
            rounded = np.rint(scaled)
            near = np.abs(scaled - rounded).max() < tolerance
            on_grid = bool(near and np.abs(rounded).max() <= _GRID_LIMIT)
            numerators[part] = rounded if on_grid else 0
    return (numerators, RUBRIC_DENOMINATOR) if on_grid else (values, 0)


@dataclass(frozen=True)
class OwnBattles:
    """One model's battles against anchors, turned so that the model comes first."""

    rows: NDArray[np.intp]  # among all battles
    as_b: Bools  # whether the model is B there
    opponent: NDArray[np.intp]  # its code
    score: Floats  # rubric points
    judge: Ints  # quarters
    human: Ints  # halves; -1 where nobody voted
    question: Ints | None

    @classmethod
    def of_all(
        cls, battles: CodedBattles, voted: Bools, question: Ints | None
    ) -> Iterator["OwnBattles"]:
        """Yield every model's own battles, in the order of ``battles.models``."""
        side = np.concatenate([battles.model_a, battles.model_b])
        opponents = np.concatenate([battles.model_b, battles.model_a])
        order = np.argsort(side, kind="stable")
        ends = np.cumsum(np.bincount(side, minlength=len(battles.models)))
        for own in np.split(order, ends[:-1]):
            own = own[voted[opponents[own]]]
            rows, as_b = own % len(battles), own >= len(battles)
            points, judge = battles.rubric_points(rows), battles.judge_outcome[rows].astype(int)
            score, judge = np.where(as_b, -points, points), np.where(as_b, 4 - judge, judge)
            human = battles.human_outcome[rows].astype(int)
            human = np.where(as_b & (human >= 0), 2 - human, human)
            asked = None if question is None else question[rows]
            yield cls(rows, as_b, opponents[own].astype(np.intp), score, judge, human, asked)

    def turned(self, share_of_a: Floats) -> Floats:
        """Return the model's share of the win in each, from A's share in all n battles."""
        share = share_of_a[self.rows]
        return np.where(self.as_b, 1 - share, share)
