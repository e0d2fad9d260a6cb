"""Single scores and comparisons of judges with their probabilities, and what contradicts what."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgeline.io import file_columns
from judgeline.io.formats import read_columns
from judgeline.trust import (
    MOST_SUBSETS,
    RELEASED_TEMPERATURE,
    TokenPosition,
    aggregate_orders,
    count_violations,
    expected_score,
    outcome_matrices,
    perplexity_outcome,
    score_conflicts,
    score_distribution,
    violation_rates,
)

SIZES = (3, 4, 5)
METHODS = ("baseline", "geval", "expectation", "softmax")
"""The number said; the sum of number times probability, as listed; the same after dividing by the
sum of the probabilities; the same after the softmax of the released program."""
LOWEST, HIGHEST = 1.0, 5.0
"""Points of all scores here, whichever scale was asked."""
_LEVEL = 1e-9  # scores this close differ by rounding alone
_CHANCES = ("p_a", "p_tie", "p_b")
_QUESTION = ["dimension", "question_id"]
_SIDES = ("model_a", "model_b")
_PAIR = [*_QUESTION, *_SIDES]
_BY_ORDER = [f"{name}_{o}" for name in ("choice", *_CHANCES, "perplexity") for o in ("AB", "BA")]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Judged:
    """A judge: pairs compared in both orders, and scores of single answers in points of 1 to 5."""

    judge: str
    pairs: pd.DataFrame
    scores: pd.DataFrame

    def by(self, column: str) -> Iterator[tuple[str, "Judged"]]:
        """Yield the judge with the pairs of one value of a column, and all scores."""
        for value, own in self.pairs.groupby(column):
            yield str(value), replace(self, pairs=own.reset_index(drop=True))

    @cached_property
    def scales(self) -> dict[int, pd.DataFrame]:
        """Return the answers by scale that have a score by each method which that scale has."""
        scored = dict(iter(self.scores.groupby("scale")))
        return {scale: _complete(own, METHODS) for scale, own in scored.items()}

    def outcomes(self, tolerance: float = 0.0) -> dict[str, Floats]:
        """Return A's share of the win of every pair, by the rules that the data support."""
        ab, ba = (
            {name: self.pairs[f"{name}_{order}"].to_numpy() for name in ("choice", "perplexity")}
            | {"p": self.pairs[[f"{name}_{order}" for name in _CHANCES]].to_numpy()}
            for order in ("AB", "BA")
        )
        found = {"baseline": np.where(ab["choice"] == ba["choice"], ab["choice"], 0.5)}
        if np.isfinite(ab["p"]).all():
            both = aggregate_orders(ab["p"], ba["p"][:, ::-1], tolerance=tolerance)
            found["likelihood"] = both.outcome
        if np.isfinite(ab["perplexity"]).all():
            sides = [one[name] for name in ("choice", "perplexity") for one in (ab, ba)]
            found["ppl"] = perplexity_outcome(*sides, tolerance=tolerance)
        return found if len(self.pairs) else {}

    def violations(self, tolerance: float = 0.0) -> dict[str, float]:
        """Return non-transitivity ratios in per cent; ``narrow`` ones leave out mixed circles."""
        found: dict[str, float] = {}
        question = self.pairs[_QUESTION].agg("\n".join, axis=1)
        first, second = (self.pairs[side].to_numpy(str) for side in _SIDES)
        for rule, share in self.outcomes(tolerance).items():
            compared = outcome_matrices(question.to_numpy(str), first, second, share)
            most = max(map(len, compared.answers))
            sizes = [size for size in SIZES if math.comb(most, size) <= MOST_SUBSETS]
            for kind, mixed in (("ntr", True), ("narrow_ntr", False)):
                counts = count_violations(compared.outcomes, sizes=sizes, mixed=mixed)
                if counts.n_subsets.any():
                    ratio = 100 * violation_rates(counts).ratio[0]
                    found |= {f"{kind}{k}_{rule}": r for k, r in zip(sizes, ratio, strict=True)}
        return {name: float(value) for name, value in found.items() if np.isfinite(value)}

    def conflicts(self, scale: int, tolerance: float = 0.0) -> dict[str, float]:
        """Return conflict ratios in per cent by method, of scores with the comparison.

        Scores are also held against the comparison by likelihood, without its tolerance.
        """
        scores = self.scales[scale].set_index([*_QUESTION, "model"])
        a, b = (
            scores.reindex(pd.MultiIndex.from_frame(self.pairs[[*_QUESTION, side]]))
            for side in _SIDES
        )
        found: dict[str, float] = {}
        ends = {"baseline": "", "likelihood": "_by_likelihood"}
        known = {rule: one for rule, one in self.outcomes().items() if rule in ends}
        for rule, outcome in known.items():
            for name in METHODS:
                ours, theirs = a[name].to_numpy(), b[name].to_numpy()
                both = np.isfinite(ours + theirs)
                sides = ours[both], theirs[both], outcome[both]
                wrong = score_conflicts(*sides, tolerance=max(tolerance, _LEVEL))
                found |= {name + ends[rule]: 100 * float(wrong.mean())} if wrong.size else {}
        return found

    @cached_property
    def numbers(self) -> dict[str, float]:
        """Return the numbers of the tables by name, in per cent, without a tolerance."""
        found = self.violations()
        for scale in self.scales:
            found |= {f"cr_{name}_{scale}": value for name, value in self.conflicts(scale).items()}
            found |= {f"{name}_{scale}": value for name, value in self._near_gold(scale)}
        votes = self.pairs["human_outcome"].to_numpy(float)
        for rule, outcome in self.outcomes().items():
            right = (outcome == votes)[np.isfinite(votes)]
            found |= {f"exact_match_{rule}": 100 * float(right.mean())} if right.size else {}
        return found

    def _near_gold(self, scale: int) -> Iterator[tuple[str, float]]:
        """Yield how often the expectation is nearest the reference, and scores round to it."""
        own = self.scales[scale].dropna(subset=["reference_score"])
        off = own[list(METHODS)].sub(own["reference_score"], axis=0).abs().dropna(axis=1)
        half = (HIGHEST - LOWEST) / (scale - 1) / 2
        for name in off if len(off) else ():
            yield f"score_match_{name}", 100 * float((off[name] < half).mean())
            if name != "expectation" in off:
                gain = off[name] - off["expectation"]
                nearer = np.where(gain.abs() <= _LEVEL, 0.5, gain > 0)
                yield f"winrate_vs_{name}", 100 * float(nearer.mean())


def _complete(table: pd.DataFrame, columns: Any) -> pd.DataFrame:
    """Return the rows that have every one of some columns which any row has."""
    return table.dropna(subset=[name for name in columns if table[name].notna().any()])


# ------------------------------------------------------------------ reading


class _Column(NamedTuple):
    """What a column holds: whether each of its values is `good`, given the table, in words."""

    good: Callable[[pd.DataFrame, pd.Series], pd.Series]
    wanted: str
    is_needed: bool = True
    is_text: bool = False


def _named(_: pd.DataFrame, values: pd.Series) -> pd.Series:
    return values.notna()


def _share(_: pd.DataFrame, values: pd.Series) -> pd.Series:
    return values.isna() | values.isin([0, 0.5, 1])


def _chance(table: pd.DataFrame, values: pd.Series) -> pd.Series:
    total = table[list(_CHANCES)].sum(axis=1, skipna=False)
    return (values.ge(0) & total.sub(1).abs().le(1e-4)) | table[list(_CHANCES)].isna().all(axis=1)


def _point(table: pd.DataFrame, values: pd.Series) -> pd.Series:
    return values.isna() | (values.between(1, table["scale"]) & values.mod(1).eq(0))


_NAME = _Column(_named, "a name", is_text=True)
_SPARE = _Column(lambda _, values: values.notna() | values.isna(), "", False, True)
_NUMBER = "a whole number from 1 to the highest of the scale"
FILES: dict[str, dict[str, _Column]] = {
    "scores": {
        "question_id": _NAME,
        "model": _NAME,
        "scale": _Column(lambda _, v: v.gt(1) & v.mod(1).eq(0), "the highest number of the scale"),
        "score": _Column(_point, _NUMBER),
        "probabilities": _SPARE,
        "reference_score": _Column(_point, _NUMBER, is_needed=False),
    },
    "comparisons": {
        "question_id": _NAME,
        "model_a": _NAME,
        "model_b": _Column(
            lambda t, v: v.notna() & v.ne(t["model_a"]), "another model", True, True
        ),
        "order": _Column(lambda _, v: v.isin(["AB", "BA"]), "AB or BA", is_text=True),
        "choice": _Column(_share, "A's share of the win, 1, 0.5 or 0"),
        **dict.fromkeys(_CHANCES, _Column(_chance, "p_a, p_tie and p_b that add up to 1", False)),
        "perplexity": _Column(
            lambda _, v: v.isna() | (v.ge(1) & v.lt(np.inf)), "1 or more", is_needed=False
        ),
        "human_outcome": _Column(_share, "A's share of the vote, 1, 0.5 or 0", is_needed=False),
    },
}
"""Columns of the two files; `COMMON` may be in either."""
COMMON = {"judge": "the judge", "dimension": "all", "category": "unknown"}


def read(data: Path | None, say: Callable[[str], None]) -> list[Judged]:
    """Return the judges in ``scores`` and ``comparisons`` of a folder, none without it."""
    if data is not None and not data.is_dir():
        raise ValueError(
            f"{data} is no folder; name the one that holds scores.csv and comparisons.csv by --data"
        )
    scored = _scored(*_read(data, "scores", say))
    pairs = _paired(*_read(data, "comparisons", say))
    found = []
    for judge in dict.fromkeys([*pairs["judge"], *scored["judge"]]):
        own = pairs[pairs["judge"].eq(judge)]
        both = _complete(own.dropna(subset=["choice_AB", "choice_BA"]), _BY_ORDER)
        scores = scored[scored["judge"].eq(judge)]
        _require_common(f"{data}: {judge}", both, scores)
        found.append(Judged(judge, both.reset_index(drop=True), scores))
        scales = ", ".join(f"1 to {scale}" for scale in found[-1].scales) or "none"
        say(f"{judge}: {len(both):,} of {len(own):,} pairs in both orders; scores {scales}")
    return found


def _require_common(place: str, pairs: pd.DataFrame, scores: pd.DataFrame) -> None:
    """Refuse scores and comparisons of a judge that share no answer."""
    answer = [*_QUESTION, "model"]
    sides = [pairs[[*_QUESTION, side]].set_axis(answer, axis=1) for side in _SIDES]
    compared, scored = pd.concat(sides), scores[answer]
    if len(compared) and len(scored) and compared.merge(scored).empty:
        ours, theirs = (", ".join(table.iloc[0]) for table in (compared, scored))
        raise ValueError(
            f"{place} compared {ours} and others, scored {theirs} and others, and no answer both "
            f"ways; write {', '.join(answer)} alike in both files"
        )


def _read(data: Path | None, stem: str, say: Callable[[str], None]) -> tuple[str, pd.DataFrame]:
    """Return a file of the folder by its name before the dot; no rows if it is not there."""
    columns = FILES[stem] | dict.fromkeys(COMMON, _SPARE)
    paths = [p for p in sorted(data.iterdir()) if p.name.split(".")[0] == stem] if data else []
    if len(paths) > 1:
        raise ValueError(f"{data} holds {paths[0].name} and {paths[1].name}; leave one of them")
    table, place = pd.DataFrame(columns=list(columns), dtype=object), stem
    for path in paths:
        say(f"reading {path.name}")
        table, place = _columns_of(path, columns), str(path)
    for name, column in columns.items():
        if not column.is_text:
            values = pd.to_numeric(table[name], errors="coerce").astype(float)
            require(place, table, name, values.notna() | table[name].isna(), column.wanted)
            table[name] = values
    for name, column in columns.items():
        require(place, table, name, column.good(table, table[name]), column.wanted)
    for name, default in COMMON.items():
        table[name] = table[name].astype(object).fillna(default)
    return place, table


def _columns_of(path: Path, columns: Mapping[str, _Column]) -> pd.DataFrame:
    """Return the columns of a file, names as text; empty those that may lack."""
    own = file_columns(path)
    if lacking := [name for name, one in columns.items() if one.is_needed and name not in own]:
        raise ValueError(
            f"{path} lacks {', '.join(lacking)} and has {', '.join(own[:30])}; rename or add "
            "columns, as docs/papers.md has those of trustjudge"
        )
    names = [name for name in columns if name in own]
    texts = [name for name in names if columns[name].is_text]
    table = read_columns(path, names, texts=texts).reindex(columns=list(columns))
    words = table[[name for name in texts if name != "probabilities"]]
    return table.assign(**words.where(words.isna(), words.astype(str)))


def require(place: str, table: pd.DataFrame, column: str, good: Any, wanted: str) -> None:
    """Refuse the first value of a column that is not good."""
    wrong = np.flatnonzero(~np.asarray(good, dtype=bool))
    if wrong.size:
        value = table[column].tolist()[wrong[0]]
        raise ValueError(
            f"{place}: {column} is {value!r} in row {wrong[0] + 1} "
            f"({wrong.size} such rows); expected {wanted}: correct the row or leave it out"
        )


def _scored(place: str, table: pd.DataFrame) -> pd.DataFrame:
    """Return the answers with scores by method, entropy in bits, and the probability covered."""
    again = table.duplicated(["judge", *_QUESTION, "model", "scale"])
    require(place, table, "model", ~again, "each answer of a question once for a judge and scale")
    rows = zip(table["probabilities"], table["scale"].astype(int), strict=True)
    found = [_by_chances(f"{place}, row {k}", *row) for k, row in enumerate(rows, start=1)]
    columns = [*METHODS[1:], "entropy", "covered"]
    table[columns] = np.array(found, dtype=float).reshape(-1, len(columns))
    for name in ("score", "reference_score"):
        table[name] = on_target(table[name], table["scale"])
    return table.rename(columns={"score": "baseline"}).astype({"scale": int})


def on_target(values: Any, scale: Any) -> Any:
    """Return points of 1 to 5 from points of a scale that begins at 1."""
    return LOWEST + (values - 1) / (scale - 1) * (HIGHEST - LOWEST)


def _by_chances(place: str, listed: Any, scale: int) -> tuple[float, ...]:
    """Return the scores by the probabilities of one answer, their entropy and sum."""
    if listed is None or listed != listed:
        return (math.nan,) * 5
    try:
        chances: Mapping[str, float] = json.loads(listed) if isinstance(listed, str) else listed
        known = {str(token): float(p) for token, p in dict(chances).items() if p}
        logs = [math.log(p) for p in known.values()]
        position = TokenPosition([*known], logs)
        found = score_distribution(position, digits_per_token=len(str(scale)), scale=(1, scale))
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{place}: probabilities {str(listed)[:60]!r} cannot be read ({error}); write the "
            f'numbers from 1 to {scale} with theirs, as {{"4": 0.7, "3": 0.2}}, or nothing'
        ) from error
    ends = (LOWEST, HIGHEST)
    return (
        on_target(found.weighted_sum, scale),
        expected_score(found, target=ends),
        expected_score(found, target=ends, logit_temperature=RELEASED_TEMPERATURE),
        found.entropy,
        found.covered,
    )


def _paired(place: str, table: pd.DataFrame) -> pd.DataFrame:
    """Return a row per pair, the lower name as A, with the answers in either order beside it."""
    swapped = table.rename(
        columns={"model_a": "model_b", "model_b": "model_a", "p_a": "p_b", "p_b": "p_a"}
    ).assign(
        order=table["order"].map({"AB": "BA", "BA": "AB"}),
        choice=1 - table["choice"],
        human_outcome=1 - table["human_outcome"],
    )
    lower = table["model_a"].lt(table["model_b"])
    table = pd.concat([table[lower], swapped[~lower]]).sort_index()
    keys = ["judge", *_PAIR]
    again = table.duplicated([*keys, "order"])
    require(place, table, "order", ~again, "each order of a pair once")
    values = table.set_index([*keys, "order"])[["choice", *_CHANCES, "perplexity"]]
    wide = values.unstack("order")  # noqa: PD010 (no aggregate of duplicates)
    wide.columns = [f"{name}_{order}" for name, order in wide.columns]
    of_pair = table.groupby(keys)[["category", "human_outcome"]].first()
    return wide.reindex(columns=_BY_ORDER).join(of_pair).reset_index()
