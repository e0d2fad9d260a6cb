"""Tables of the Soft-Elo paper (arXiv:2606.13221), from its released annotations.

Every model is held out as in `judgeline.elo.rate`. Hard outcomes are the recorded ones where every
battle has one; intervals are a conformal threshold times a standard error of 20 resamples.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

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
from judgeline.io import as_coded, as_numbers, as_table, file_columns, score_battles
from judgeline.io.softelo import annotations, battles_and_verdicts
from judgeline.papers.tables import Allowance, Cell, Item, Paper

JUDGES = (
    "DeepSeek-V3.2", "Qwen3.5-27B", "Gemma4-E4B", "Gemma4-26B-A4B", "Qwen3-32B", "Llama-3.3-70B",
    "GPT-OSS-20B", "GPT-OSS-120B",
)  # fmt: skip
CORPORA = {"100k": "LMArena 100K", "140k": "LMArena 140K", "comparia": "ComparIA"}
"""The paper's corpora by what ``source_dataset``, or the name of the file, contains."""
MISCOVERAGE, N_SPLITS = 0.1, 5
SETTINGS = RatingSettings(n_resamples=20)

Floats = NDArray[np.float64]


class Splits(NamedTuple):
    """Random halves of the models, one calibrating: coverage (share), width and its parts (Elo)."""

    coverage: float
    width: float
    width_min: float
    width_max: float
    threshold: float
    std_error: float


@dataclass(frozen=True)
class Judged:
    """One judge's annotations of one corpus, and what is computed of them when first asked for."""

    corpus: str
    judge: str
    scored: pd.DataFrame

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
        return rate(self.coded, SETTINGS, beta_folds=self.folds)

    @cached_property
    def errors(self) -> dict[str, Any]:
        """Return the agreement with people by method: rows of `Summary` by field."""
        return by_method(summarise(self.heldout))

    @cached_property
    def splits(self) -> dict[str, Splits]:
        """Return the published intervals on random splits of the models, hard and soft."""
        return {name: on_splits(*self.residuals(name)) for name in ("hard", "soft")}

    @cached_property
    def diagnostics(self) -> dict[tuple[str, str], float]:
        """Return every diagnostic by name and level."""
        lengths = {
            name: as_numbers(self.scored[name])
            for name in ("length_a", "length_b")
            if self.scored[name].notna().any()
        }
        table = diagnose_judge(self.coded, self.folds, self.heldout, **lengths)  # type: ignore[arg-type]
        return {
            (n, at): v
            for n, at, v in zip(
                table.diagnostic.tolist(), table.level.tolist(), table.value.tolist(), strict=True
            )
        }

    def residuals(self, method: str) -> tuple[Floats, Floats]:
        """Return residuals and standard errors, in Elo points, of the models that have both."""
        own = self.heldout.take(
            (self.heldout.method == method) & np.isfinite(self.heldout.residual)
        )
        return own.residual, own.std_error


def by_method(summary: Summary) -> dict[str, Any]:
    """Return the rows of a summary by method."""
    return {row.method: row for row in as_table(summary).itertuples()}


def on_splits(residual: Floats, std_error: Floats) -> Splits:
    """Return split-conformal intervals of ``threshold * std_error`` on random halves."""
    rng, size = keyed_rng(0, "conformal splits"), residual.size
    tried = []
    for _ in range(N_SPLITS):
        order = rng.permutation(size)
        known, test = order[: size // 2], order[size // 2 :]
        scores = nonconformity_scores(residual[known], std_error[known])
        threshold = conformal_quantile(scores, miscoverage=MISCOVERAGE)
        half = threshold * std_error[test]
        held = float((np.abs(residual[test]) <= half).mean())
        tried.append((held, 2 * float(np.median(half)), threshold))
    coverage, width, threshold = np.array(tried).T
    return Splits(
        float(coverage.mean()), float(width.mean()), float(width.min()), float(width.max()),
        float(threshold.mean()), float(np.median(std_error)),
    )  # fmt: skip


# ------------------------------------------------------------------ reading


def read(data: Path | None, say: Callable[[str], None]) -> list[Judged]:
    """Return what each judge said of each corpus, of every file of annotations in a folder."""
    paths = [] if data is None else _annotation_files(data)
    judged: dict[tuple[str, str], Judged] = {}
    for number, path in enumerate(paths, start=1):
        say(f"reading {number} of {len(paths)}: {path.name}")
        for one in _read_file(path):
            if (one.corpus, one.judge) in judged:
                raise ValueError(
                    f"{path} holds judge {one.judge} on {one.corpus} again; leave one file of "
                    "each judge and corpus in the folder"
                )
            judged[one.corpus, one.judge] = one
    return list(judged.values())


def _annotation_files(data: Path) -> list[Path]:
    if not data.is_dir():
        raise ValueError(f"{data} is no folder; name the one with the annotation files by --data")
    kinds = (".csv", ".csv.gz", ".parquet")
    files = [path for path in sorted(data.rglob("*")) if path.name.endswith(kinds)]
    return [path for path in files if set(file_columns(path)) >= {"human_pref", "scores_a"}]


def _read_file(path: Path) -> Iterator[Judged]:
    rows = annotations([path])
    read_back = battles_and_verdicts(rows, [path])
    lengths = rows.drop_duplicates("battle_id").set_index("battle_id")[["length_a", "length_b"]]
    named = rows["source_dataset"].dropna()
    corpus = _corpus(f"{named.iloc[0] if len(named) else ''} {path.stem}")
    for judge, verdicts in read_back.verdicts.groupby("judge"):
        scored = score_battles(read_back.battles, verdicts)
        scored = scored.assign(**lengths.loc[scored["battle_id"]].reset_index(drop=True))
        yield Judged(corpus, _judge(str(judge)), scored)


def _plain(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def _corpus(name: str) -> str:
    found = (title for key, title in CORPORA.items() if key in _plain(name))
    return next(found, name.split()[0])


def _judge(name: str) -> str:
    """Return the paper's name of a judge, or its own if the paper does not know it."""
    known = [judge for judge in JUDGES if _plain(judge) in _plain(name)]
    return max(known, key=len, default=name)


# ------------------------------------------------------------------ tables

Judges = list[Judged]


def _on(corpus: str, judged: Judges) -> Judges:
    return [one for one in judged if one.corpus == corpus]


def _row(row: str, **values: float) -> Iterator[Cell]:
    return (Cell(row, column, value) for column, value in values.items())


def _reduction(hard: float, soft: float) -> float:
    return 100 * (1 - soft / hard) if hard else np.nan


def agreement(judged: Judges) -> Iterator[Cell]:
    """Yield Table 1: size of scores, kappa of three classes, and hard ratings against people's."""
    for one in _on("LMArena 100K", judged):
        yield from _row(
            one.judge,
            mean_abs_s=one.diagnostics["mean_absolute_score", ""],
            kappa=one.diagnostics["cohen_kappa", ""],
            spearman_rho=one.errors["hard"].spearman,
            elo_mae_hard=one.errors["hard"].mae,
        )


def hard_and_soft(judged: Judges) -> Iterator[Cell]:
    """Yield Table 2: errors of hard and soft ratings, and the mean slope of the folds."""
    for one in _on("LMArena 100K", judged):
        hard, soft = one.errors["hard"], one.errors["soft"]
        yield from _row(
            one.judge,
            beta_star=soft.mean_beta,
            elo_mae_hard=hard.mae,
            elo_mae_soft=soft.mae,
            mae_reduction=_reduction(hard.mae, soft.mae),
            delta_spearman_soft_minus_hard=soft.spearman - hard.spearman,
        )


ITEMS = (
    Item("soft_elo.table1", "agreement of hard labels", "annotations of LMArena 100K", agreement),
    Item("soft_elo.table2", "hard and soft errors", "annotations of LMArena 100K", hard_and_soft),
)
ALLOWED: dict[str, Allowance] = {}
PAPER = Paper("soft_elo", ITEMS, read, ALLOWED)
