"""Tables on the reference model: its reach, errors, abstentions, and other references."""

import numpy as np
import pandas as pd

from assets.reference.anchoring import against, rate_against
from judgeline.elo import keyed_rng, spearman
from judgeline.reference import (
    LEAST_WITHIN,
    REACH,
    Reach,
    abstain,
    anchored_elo,
    bootstrap_gap_std_error,
    compare_references,
    diagnose_reference,
)
from resources.config.corpora import ReferenceOptions

DIAGNOSTIC_COLUMNS: tuple[str, ...] = (
    "diagnostic",
    "level",
    "value",
    "unit",
    "n",
    "threshold",
    "passed",
    "note",
)
"""Columns of the reference diagnostics; ``passed`` is null where nothing is promised."""

MAX_SPREADS: tuple[float, ...] = (0.05, 0.1, 0.2, 0.3)
"""Largest standard deviations over a judge's runs at which a prompt still counts."""

STD_ERROR_TOLERANCE = 0.12
"""Largest relative difference of a closed standard error from its bootstrap twin."""

N_RESAMPLES = 1000
"""Draws that know a standard error to 2.2 %."""

_NO_RUNS = "needs repeated runs of the judge: set 'replicates' to at least 2 in config/judges.yaml"
_NO_OTHER = "no other model met at least three of these models besides the reference"
_LEAST_SHARED = 3  # models that two references need in common for a rank correlation to say a thing


def no_diagnostics() -> pd.DataFrame:
    """Return diagnostics of a judge without ratings: no rows."""
    return _as_table([])


def diagnose(
    table: pd.DataFrame,
    ratings: pd.DataFrame,
    met: pd.DataFrame,
    runs: np.ndarray,
    *,
    seed: int,
    stream: tuple[str, ...],
) -> pd.DataFrame:
    """Return every diagnostic of a reference, those that could not be had with the reason.

    `table` is as `against` returns it, `ratings` as `rate_against` made them of it, `met` as
    `meetings` returns them; `runs` (models, questions, runs) are the preferences of `table` by
    run, NaN where one is missing; `stream` names the bootstrap's streams, by corpus and judge.
    """
    reference, source = (str(ratings[name].iloc[0]) for name in ("reference_model", "source"))
    plain = rate_against(table, reference, source, ReferenceOptions(), miscoverage=0.1)
    return _as_table(
        [
            *_reach(table),
            _agreement(ratings),
            *_std_errors(table, plain.set_index("model")["std_error"], seed, stream),
            *_abstention(runs),
            *_other_references(met, reference),
        ]
    )


def _row(
    diagnostic: str, level: str, value: float, unit: str, n: int, note: str = ""
) -> dict[str, object]:
    names = ("diagnostic", "level", "value", "unit", "n", "note")
    return dict(zip(names, (diagnostic, level, value, unit, n, note), strict=True))


def _as_table(rows: list[dict[str, object]]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=list(DIAGNOSTIC_COLUMNS))
    kinds = {
        **dict.fromkeys(("diagnostic", "level", "unit", "note"), "str"),
        **dict.fromkeys(("value", "threshold"), "float64"),
        "n": "int64",
        "passed": "boolean",
    }
    return table.astype(kinds)


def _reach(table: pd.DataFrame) -> list[dict[str, object]]:
    reach = diagnose_reference(table.to_numpy(dtype=float))
    return [_within(reach.models, "models"), _within(reach.prompts, "prompts")]


def _within(reach: Reach, of: str) -> dict[str, object]:
    low, high = REACH
    note = "" if reach.is_adequate else "gaps beyond reach rest on a handful of prompts"
    row = _row(f"{of}_within_reach", f"{low:g}-{high:g}", reach.share, "share", reach.within.size)
    return {**row, "threshold": LEAST_WITHIN, "passed": reach.is_adequate, "note": note}


def _agreement(ratings: pd.DataFrame) -> dict[str, object]:
    gap, mean = ratings["gap"], ratings["mean_preference"]
    name, n = "spearman_with_mean_preference", len(ratings)
    if n < 2 or gap.nunique() < 2 or mean.nunique() < 2:
        return _row(name, "", np.nan, "correlation", n, "fewer than two models that differ")
    return _row(name, "", spearman(gap, mean), "correlation", n)


def _std_errors(
    table: pd.DataFrame, closed: "pd.Series[float]", seed: int, stream: tuple[str, ...]
) -> list[dict[str, object]]:
    """Return each model's closed standard error over its bootstrap twin, and the worst of them.

    Closed errors are those before any factor: the bootstrap knows of none.
    """
    rows, ratios, texts = [], [], []
    for model, values in zip(map(str, table.index), table.to_numpy(dtype=float), strict=True):
        rng = keyed_rng(seed, *stream, model, "reference")
        twin = bootstrap_gap_std_error(values, n_resamples=N_RESAMPLES, rng=rng)
        ratio = float(closed[model]) / twin if twin else np.nan
        note = "" if twin else "all preferences are equal: resampling shows no spread"
        n = int(np.isfinite(values).sum())
        rows.append(_row("std_error_ratio", model, ratio, "ratio to bootstrap", n, note))
        ratios.append(ratio)
        texts.append(f"furthest: {model}, {ratio:.2f} of the bootstrap's on {n} prompts")
    off = np.abs(np.array(ratios) - 1)
    n = int(np.isfinite(off).sum())
    worst = float(np.nanmax(off)) if n else np.nan
    furthest = texts[int(np.nanargmax(off))] if n else ""
    overall = _row("std_error_difference", "", worst, "share of bootstrap", n, furthest)
    passed = worst <= STD_ERROR_TOLERANCE if n else pd.NA
    return [*rows, {**overall, "threshold": STD_ERROR_TOLERANCE, "passed": passed}]


def _abstention(runs: np.ndarray) -> list[dict[str, object]]:
    """Return, per largest spread, what share of prompts is left and how far gaps move."""
    if runs.ndim != 3 or runs.shape[2] < 2:
        return [_row("abstention_coverage", "", np.nan, "share", 0, _NO_RUNS)]
    complete = np.where(np.isnan(runs).any(axis=2, keepdims=True), np.nan, runs)
    judged = complete[~np.isnan(complete).all(axis=(1, 2))]
    return [row for spread in MAX_SPREADS for row in _abstained(judged, spread)]


def _abstained(runs: np.ndarray, spread: float) -> list[dict[str, object]]:
    n, level = len(runs), f"{spread:g}"
    try:
        left = abstain(runs, max_spread=spread)
    except ValueError as error:  # a model keeps no prompt: no leaderboard at this spread
        return [_row("abstention_coverage", level, np.nan, "share", n, str(error))]
    shift = float(np.abs(left.centred_shift).mean())
    return [
        _row("abstention_coverage", level, float(left.coverage.mean()), "share", n),
        _row("abstention_shift", level, shift, "Elo points", n),
    ]


def _other_references(met: pd.DataFrame, reference: str) -> list[dict[str, object]]:
    """Return, per other model as reference, how the leaderboard of the same models changes."""
    rows: list[dict[str, object]] = []
    ours = gaps_against(met, reference)
    for other in ours.index:
        both = pd.concat([ours, gaps_against(met, str(other))], axis=1, join="inner")
        if len(both) < _LEAST_SHARED or (both.nunique() < 2).any():
            continue
        compared = compare_references(both.to_numpy().T)
        tau, shift = float(compared.kendall[0, 1]), float(compared.mean_abs_shift[1])
        rows.append(_row("kendall_under_other_reference", str(other), tau, "rank", len(both)))
        rows.append(_row("shift_under_other_reference", str(other), shift, "Elo points", len(both)))
    return rows or [_row("kendall_under_other_reference", "", np.nan, "rank", 0, _NO_OTHER)]


def gaps_against(met: pd.DataFrame, reference: str) -> "pd.Series[float]":
    """Return the gap of every model that met a reference, in Elo points, by name."""
    table = against(met, reference)
    if table.empty:
        return pd.Series(dtype=float)
    wins = table.sum(axis=1).to_numpy()
    losses = (1 - table).sum(axis=1).to_numpy()
    return pd.Series(anchored_elo(wins, np.zeros_like(wins), losses).gap, index=table.index)
