"""Single scores and comparisons of judges with their probabilities, and what contradicts what."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgeline.io import each_category
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
from papers.files import (
    NAME,
    Column,
    Columns,
    Say,
    named_files,
    read_tables,
    require,
    require_once,
    word,
)

SIZES = (3, 4, 5)
METHODS = ("baseline", "geval", "expectation", "softmax")
"""The number said; the sum of number times probability, as listed; the same after dividing by the
sum of the probabilities; the same after the softmax of the released program."""
OWN = "softmax"
"""Method of the paper (Algorithm 1, line 3; Eq. 4)."""
LOWEST, HIGHEST = 1.0, 5.0
"""Points of all scores here, whichever scale was asked."""
MOST_POINTS = 1000
"""Highest number of a scale."""
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
        """Yield the judge by the values of a column; ``math;code`` is two categories."""
        listed = self.pairs[column]
        values = each_category(listed) if column == "category" else listed
        for value, places in values.groupby(values).groups.items():
            yield str(value), replace(self, pairs=self.pairs.loc[places].reset_index(drop=True))

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
        """Yield how often TrustJudge's score is nearest the reference, and scores round to it."""
        own = self.scales[scale].dropna(subset=["reference_score"])
        off = own[list(METHODS)].sub(own["reference_score"], axis=0).abs().dropna(axis=1)
        half = (HIGHEST - LOWEST) / (scale - 1) / 2
        for name in off if len(off) else ():
            yield f"score_match_{name}", 100 * float((off[name] < half).mean())
            if name != OWN in off:
                gain = off[name] - off[OWN]
                nearer = np.where(gain.abs() <= _LEVEL, 0.5, gain > 0)
                yield f"winrate_vs_{name}", 100 * float(nearer.mean())


def _complete(table: pd.DataFrame, columns: Any) -> pd.DataFrame:
    """Return the rows that have every one of some columns which any row has."""
    return table.dropna(subset=[name for name in columns if table[name].notna().any()])


# ------------------------------------------------------------------ reading


def _number(wanted: str, rule: Any, *, needed: bool = False, may_lack: bool = True) -> Column:
    return Column(wanted, rule, "number", needed, may_lack)


def _is_chance(table: pd.DataFrame, values: pd.Series) -> pd.Series:
    return values.ge(0) & table[list(_CHANCES)].sum(axis=1, skipna=False).sub(1).abs().le(1e-4)


_POINT = _number(
    "a whole number from 1 to the highest of the scale",
    lambda table, values: values.between(1, table["scale"]) & values.mod(1).eq(0),
)
_SHARE = _number("A's share of the win, 1, 0.5 or 0", lambda _, values: values.isin([0, 0.5, 1]))
_CHANCE = _number("p_a, p_tie and p_b that add up to 1", _is_chance)
_EITHER = {"judge": word("the judge"), "dimension": word("all"), "category": word()}
FILES: dict[str, Columns] = {
    "scores": {
        "question_id": NAME,
        "model": NAME,
        "scale": _number(
            f"the highest number of the scale, from 2 to {MOST_POINTS}",
            lambda _, values: values.between(2, MOST_POINTS) & values.mod(1).eq(0),
            needed=True,
            may_lack=False,
        ),
        "score": _POINT._replace(needed=True),
        "probabilities": Column(kind="any", needed=False, may_lack=True),
        "reference_score": _POINT,
        **_EITHER,
    },
    "comparisons": {
        "question_id": NAME,
        "model_a": NAME,
        "model_b": Column("another model", lambda table, values: values.ne(table["model_a"])),
        "order": word(None, "AB", "BA", may_lack=False)._replace(needed=True),
        "choice": _SHARE._replace(needed=True),
        **dict.fromkeys(_CHANCES, _CHANCE),
        "perplexity": _number("1 or more", lambda _, values: values.ge(1)),
        "human_outcome": _SHARE,
        **_EITHER,
    },
}
"""Columns of the two files."""


def read(data: Path | None, say: Say) -> list[Judged]:
    """Return the judges in ``scores`` and ``comparisons`` of a folder, none without it."""
    tables = read_tables(named_files(data, FILES), FILES, say)
    scored, pairs = _scored(tables["scores"]), _paired(tables["comparisons"])
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


def _scored(table: pd.DataFrame) -> pd.DataFrame:
    """Return the answers with scores by method, entropy in bits, and the probability covered."""
    require_once(table, ["judge", *_QUESTION, "model", "scale"])
    places = table["file"] + ", row " + table["row"].astype(str)
    rows = zip(places, table["probabilities"], table["scale"].astype(int), strict=True)
    columns = [*METHODS[1:], "entropy", "covered"]
    values = [_by_chances(*row) for row in rows]
    table[columns] = np.array(values, dtype=float).reshape(-1, len(columns))
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
        given = json.loads(listed) if isinstance(listed, str) else listed
        known = {str(token): float(p) for token, p in dict(given).items() if p}
        position = TokenPosition([*known], [math.log(p) for p in known.values()])
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


def _paired(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row per pair, the lower name as A, with the answers in either order beside it."""
    swapped = table.rename(
        columns={"model_a": "model_b", "model_b": "model_a", "p_a": "p_b", "p_b": "p_a"}
    ).assign(
        order=table["order"].map({"AB": "BA", "BA": "AB"}),
        choice=1 - table["choice"],
        human_outcome=1 - table["human_outcome"],
    )
    lower = table["model_a"].lt(table["model_b"])
    rows, table = table, pd.concat([table[lower], swapped[~lower]]).sort_index()
    keys = ["judge", *_PAIR]
    require_once(table, [*keys, "order"])
    for name in ("category", "human_outcome"):
        first = table.groupby(keys)[name].transform("first")
        wanted = "what the other order of the pair has: an outcome is the share of model_a"
        require(rows, name, table[name].isna() | table[name].eq(first), wanted)
    values = table.set_index([*keys, "order"])[["choice", *_CHANCES, "perplexity"]]
    wide = values.unstack("order")  # noqa: PD010 (no aggregate of duplicates)
    wide.columns = [f"{name}_{order}" for name, order in wide.columns]
    of_pair = table.groupby(keys)[["category", "human_outcome"]].first()
    of_pair = of_pair.fillna({"category": "unknown"})
    return wide.reindex(columns=_BY_ORDER).join(of_pair).reset_index()
