"""The released Soft-Elo annotations, and what the paper's protocol computes of one judge's.

Every model is held out as in `judgeline.elo.rate`. Hard outcomes are the recorded ones where every
battle has one; intervals are a conformal threshold times a standard error of 20 resamples.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgeline.diagnostics import diagnose_judge
from judgeline.elo import (
    BetaFolds,
    CodedBattles,
    HeldOutRatings,
    RatingSettings,
    Summary,
    fit_beta_folds,
    keyed_rng,
    rate,
    summarise,
)
from judgeline.intervals import conformal_quantile, nonconformity_scores
from judgeline.io import (
    LENGTHS,
    ORDERS,
    as_coded,
    as_numbers,
    as_table,
    score_battles,
)
from judgeline.io.layouts.softelo import annotations, battles_and_verdicts
from judgeline.verdict import CRITERIA
from papers import soft_elo_released
from papers.files import Say, read_battles, tell_set_aside, telling_files
from papers.tables import Cell, in_print, mean_of, plain_name, reduction

JUDGES = (
    "DeepSeek-V3.2", "Qwen3.5-27B", "Gemma4-E4B", "Gemma4-26B-A4B", "Qwen3-32B", "Llama-3.3-70B",
    "GPT-OSS-20B", "GPT-OSS-120B",
)  # fmt: skip
CORPORA = {"100k": "LMArena 100K", "140k": "LMArena 140K", "comparia": "ComparIA"}
"""The paper's corpora by what ``source_dataset``, or the name of the file, contains."""
BOTH_ORDERS = "both orders"
"""Stands for the corpus where battles have the score differences of both orders."""
N_JUDGES = {"LMArena 100K": 8, "LMArena 140K": 7, "ComparIA": 7, BOTH_ORDERS: 3}
SPLITS = (
    "coverage", "median_width", "width_min", "width_max", "threshold", "median_std_error",
)  # fmt: skip
"""Numbers of `on_splits`."""
MISCOVERAGE, N_SPLITS = 0.1, 5
N_SUBSETS = 3
BUDGETS = (5, 10, 20, 50, 100, 200)
"""Battles per model of the random subsets."""
SETTINGS = RatingSettings(n_resamples=20)
PLAIN = RatingSettings(n_resamples=0, smoothing_levels=())

Floats = NDArray[np.float64]
Stream = Literal["own", "released"]


@dataclass(frozen=True, eq=False)
class Judged:
    """Annotations of one corpus by one judge; their numbers are computed when first used."""

    corpus: str
    judge: str
    scored: pd.DataFrame
    stream: Stream = "own"

    @cached_property
    def coded(self) -> CodedBattles:
        """Return the battles; hard outcomes are recorded ones if every battle has one."""
        recorded = self.scored["recorded_outcome"].notna().all()
        return as_coded(self.scored, "recorded" if recorded else "derived", every_vote=True)

    @cached_property
    def folds(self) -> BetaFolds:
        """Return the slopes of the folds."""
        return fit_beta_folds(self.coded)

    @cached_property
    def heldout(self) -> HeldOutRatings:
        """Return the held-out ratings."""
        if self.stream == "own":
            return rate(self.coded, SETTINGS, beta_folds=self.folds)
        plain = rate(self.coded, soft_elo_released.SETTINGS, beta_folds=self.folds)
        return soft_elo_released.with_released_errors(self.coded, plain)

    @cached_property
    def score(self) -> Floats:
        """Return the score differences, in rubric points."""
        return self.coded.rubric_points()

    @cached_property
    def human(self) -> Floats:
        """Return A's share of the vote, NaN where nobody voted."""
        return as_numbers(self.scored["human_outcome"])

    @cached_property
    def label(self) -> Floats:
        """Return A's share of the win by the judge's label: recorded, or else of its scores."""
        recorded = self.scored["recorded_outcome"]
        return as_numbers(recorded.fillna(self.scored["judge_outcome"]))

    @cached_property
    def diagnostics(self) -> Mapping[str, float]:
        """Return the diagnostics by name, or name and level; NaN for an unknown name."""
        known = [name for name in (*ORDERS, *LENGTHS) if self.scored[name].notna().any()]
        columns: dict[str, Any] = {name: as_numbers(self.scored[name]) for name in known}
        columns["label"] = self.label
        found = diagnose_judge(self.coded, self.folds, self.heldout, **columns)
        names = [
            f"{name} {level}".strip()
            for name, level in zip(found.diagnostic, found.level, strict=True)
        ]
        return defaultdict(lambda: np.nan, zip(names, found.value.tolist(), strict=True))

    @cached_property
    def numbers(self) -> dict[str, float]:
        """Return the columns of the paper's tables by name: one number of the judge each."""
        rows, found = zip(*summarise(self.heldout), strict=True), self.diagnostics
        errors: dict[str, Any] = {str(row[0]): Summary._make(row) for row in rows}
        hard, soft = errors["hard"], errors["soft"]
        numbers = {
            "mean_abs_s": found["mean_absolute_score"],
            "kappa": found["cohen_kappa"],
            "ece": found["expected_calibration_error"],
            "beta_star": soft.mean_beta,
            "spearman_rho": hard.spearman,
            "delta_spearman_soft_minus_hard": soft.spearman - hard.spearman,
            "mae_reduction": reduction(hard.mae, soft.mae),
            **{f"spearman_{name}": row.spearman for name, row in errors.items()},
            **{f"elo_mae_{name.replace('smoothed-', 'c')}": e.mae for name, e in errors.items()},
        }
        released = self.stream == "released"
        rng = np.random.default_rng(soft_elo_released.SEED) if released else None
        for method in ("hard", "soft"):
            own = residuals_of(self.heldout, method)
            split = on_splits(own.residual, own.std_error, rng)
            numbers |= {f"{name}_{method}": value for name, value in split.items()}
        before, after = (numbers[f"median_width_{m}"] for m in ("hard", "soft"))
        return numbers | {"width_reduction": reduction(before, after)}

    def cells(self, row: str, names: Iterable[str], prefix: str = "") -> Iterator[Cell]:
        """Yield columns of `numbers`; one without a value notes why the judge has no slope."""
        why = ", ".join(sorted({*self.folds.status} - {"ok"}))
        for name in names:
            value = self.numbers[name]
            note = f"no slope: {why}" if why and np.isnan(value) else ""
            yield Cell(row, prefix + name, value, note)

    def ratings(self, method: str) -> pd.DataFrame:
        """Return the models with votes: human_rating and residual, in Elo points, by model."""
        table = as_table(residuals_of(self.heldout, method))
        return table[["model", "human_rating", "residual"]].set_index("model")

    def mean_by_model(self, name: str) -> pd.Series:
        """Return the mean over a model's answers of a column that either side has."""
        sides = [self.scored[[f"model_{s}", f"{name}_{s}"]].to_numpy() for s in "ab"]
        table = pd.DataFrame(np.vstack(sides), columns=["model", "value"])
        return table.astype({"value": float}).groupby("model")["value"].mean()

    def at_budget(self, budget: int) -> dict[str, float]:
        """Return mean errors, widths and slope of random subsets of so many battles per model."""
        rng, rows = keyed_rng(0, "annotation budget", self.judge, str(budget)), []
        size = budget * len(self.coded.models)
        for _ in range(N_SUBSETS if size <= len(self.coded) else 0):
            subset = rng.choice(len(self.coded), size, replace=False)
            try:
                heldout = rate(self.coded.take(subset), PLAIN)
            except ValueError:  # votes of so few battles do not connect the models
                continue
            row = {"beta": mean_of(residuals_of(heldout, "soft").beta)}
            for method in ("hard", "soft"):
                own = residuals_of(heldout, method)
                row[f"elo_mae_{method}"] = mean_of(np.abs(own.residual))
                width = on_splits(own.residual, own.std_error_analytic)["median_width"]
                row[f"median_width_{method}"] = width
            rows.append(row)
        means: dict[str, float] = pd.DataFrame(rows).mean().to_dict()
        return means


Judges = list[Judged]
ByCorpus = defaultdict[str, Judges]
"""The judges of each corpus, none of one that is not there."""


def over_judges(found: Judges, cells: Iterable[Cell]) -> Iterator[Cell]:
    """Yield cells over all judges of a corpus; apart from the printed ones if a judge lacks."""
    known = {one.judge for one in found} & {*JUDGES}
    wanted = N_JUDGES.get(found[0].corpus, 0) if found else 0
    for cell in cells if found else ():
        if len(known) == wanted:
            yield cell
        else:
            note = f"over {len(found)} judges, {len(known)} of the paper's {wanted}"
            yield cell._replace(rule="apart", note=cell.note or note)


def residuals_of(heldout: HeldOutRatings, method: str) -> HeldOutRatings:
    """Return the rows of a method for models with votes."""
    return heldout.take((heldout.method == method) & np.isfinite(heldout.residual))


def on_splits(
    residual: Floats, std_error: Floats, rng: np.random.Generator | None = None
) -> dict[str, float]:
    """Return how published intervals do on random halves of the models, one half calibrating.

    Coverage in per cent; widths (the mean, least and largest of the medians) and the median
    standard error in Elo points; the mean threshold, times which a standard error is half a width.
    `rng` is that of the released program, which takes the largest score where too few models
    calibrate: the threshold then promises less coverage.
    """
    own, size, tried = rng or keyed_rng(0, "conformal splits"), residual.size, []
    for _ in range(N_SPLITS if size > 1 else 0):
        order = own.permutation(size)
        known, test = order[: size // 2], order[size // 2 :]
        scores = nonconformity_scores(residual[known], std_error[known])
        threshold = conformal_quantile(scores, miscoverage=MISCOVERAGE)
        threshold = min(threshold, math.inf if rng is None else scores.max())
        half = threshold * std_error[test]
        held = 100 * (np.abs(residual[test]) <= half).mean()
        tried.append((held, 2 * np.median(half), threshold))
    if not tried:
        return dict.fromkeys(SPLITS, np.nan)
    coverage, width, threshold = np.array(tried).T
    ends = (width.mean(), width.min(), width.max())
    values = (coverage.mean(), *ends, threshold.mean(), np.median(std_error))
    return dict(zip(SPLITS, map(float, values), strict=True))


# ------------------------------------------------------------------ reading


_SIGNS = [("annotations", {"human_pref", "scores_a"}), ("battles", {"model_a", *ORDERS})]


def read(data: Path | None, say: Say, stream: Stream = "own") -> ByCorpus:
    """Return the judges of each corpus, from every file of annotations in a folder.

    Scored battles that have both orders apart are read too, for the numbers on position. `stream`
    says whose random draws make standard errors and splits.
    """
    readers = {"annotations": _annotated, "battles": _with_both_orders}
    files = telling_files(data, "annotations", _SIGNS, (".csv", ".parquet"))
    judged: ByCorpus = defaultdict(list)
    for number, (kind, path) in enumerate(files, start=1):
        say(f"reading {number} of {len(files)}: {path.name}")
        for one in readers[kind](path, say):
            if one.judge in [other.judge for other in judged[one.corpus]]:
                raise ValueError(
                    f"{path} holds judge {one.judge} on {one.corpus} again; leave one file of "
                    "each judge and corpus in the folder"
                )
            judged[one.corpus].append(replace(one, stream=stream))
    if files:
        counts = ", ".join(f"{corpus} {len(own)}" for corpus, own in judged.items())
        say(f"judges: {counts or 'none'}")
    return judged


def _with_both_orders(path: Path, say: Say) -> Iterator[Judged]:
    battles = read_battles(path, say)
    scored = battles.scored.dropna(subset=list(ORDERS)).reset_index(drop=True)
    if len(scored):
        yield Judged(BOTH_ORDERS, in_print(battles.judge, JUDGES, inside=True), scored)


def _annotated(path: Path, say: Say) -> Iterator[Judged]:
    rows = annotations([path])
    release = battles_and_verdicts(rows, [path])
    tell_set_aside(path, release.quarantine, len(rows), say)
    lengths = rows.drop_duplicates("battle_id").set_index("battle_id")[["length_a", "length_b"]]
    named = rows["source_dataset"].dropna()
    corpus = _corpus(path, str(named.iloc[0]) if len(named) else "")
    for judge, verdicts in release.verdicts.groupby("judge"):
        scored, points = score_battles(release.battles, verdicts), verdicts.set_index("battle_id")
        known = lengths.assign(
            **{f"points_{s}": points[[f"{c}_{s}" for c in CRITERIA]].mean(axis=1) for s in "ab"}
        )
        scored = scored.assign(**known.loc[scored["battle_id"]].reset_index(drop=True))
        yield Judged(corpus, in_print(str(judge), JUDGES, inside=True), scored)


def _corpus(path: Path, dataset: str) -> str:
    """Return the corpus that the data set, or else the file's name, contains."""
    for name in (dataset, path.name):
        for key, title in CORPORA.items():
            if key in plain_name(name):
                return title
    raise ValueError(
        f"{path}: neither source_dataset, {dataset or 'empty'}, nor the file's name says the "
        f"corpus; write {', '.join(CORPORA)} into either, or take the file out of the folder"
    )
