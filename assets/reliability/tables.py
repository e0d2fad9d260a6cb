"""Tables of repeated judging: a panel of runs, and the drift of epochs from a baseline."""

import math

import numpy as np
import pandas as pd

from judgeline.io import SCORE_COLUMNS, score_battles
from judgeline.reliability import Judgement, detect_drift

PANEL_DTYPES: dict[str, str] = {
    "battle_id": "str",
    "judge": "str",
    "replicate": "int64",
    "selection_order": "int64",
    "status": "str",
    "score_difference": "float64",
    "judge_outcome": "float64",
    "difference_ab": "float64",
    "difference_ba": "float64",
}
"""Columns of the panel and their types."""

_SCORES = ("score_difference", "judge_outcome", "difference_ab", "difference_ba")


def empty_panel() -> pd.DataFrame:
    """Return a panel without battles."""
    return pd.DataFrame(columns=list(PANEL_DTYPES)).astype(PANEL_DTYPES)


def panel_table(battles: pd.DataFrame, verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return a judge's judgements of a panel's battles, by battle in the order of choice and run.

    The ``replicate`` of verdicts counts the runs; those on other battles do not count. ``status``
    is ok where the run scored the battle, else the failure of its first order that failed, or
    ``missing``. Score differences are A minus B in rubric points, outcomes A's share.
    """
    own = verdicts[verdicts["battle_id"].isin(battles["battle_id"])]
    if battles.empty or own.empty:
        return empty_panel()
    runs = sorted(own["replicate"].unique().tolist())
    parts = [_run(battles, run, own[own["replicate"].eq(run)]) for run in runs]
    table = pd.concat(parts, ignore_index=True).assign(judge=own["judge"].iloc[0])
    table = table.sort_values(["selection_order", "replicate"], ignore_index=True)
    return table[list(PANEL_DTYPES)].astype(PANEL_DTYPES)


def repeated(verdicts: pd.DataFrame) -> pd.Series:
    """Return the ids of battles of which there are verdicts of two runs or more."""
    n_runs = verdicts.groupby("battle_id", sort=False)["replicate"].nunique()
    return n_runs.index[n_runs > 1].to_series()


def by_run(panel: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a column of a panel with a row per battle and a column per run, NaN where none."""
    return panel.pivot_table(column, "battle_id", "replicate", aggfunc="first", dropna=False)


def _run(battles: pd.DataFrame, run: int, verdicts: pd.DataFrame) -> pd.DataFrame:
    scored = score_battles(battles, verdicts).set_index("battle_id")
    failed = verdicts[verdicts["status"].ne("ok")].groupby("battle_id")["status"].first()
    ids = battles["battle_id"]
    why = failed.reindex(ids).fillna("missing").to_numpy()
    return pd.DataFrame(
        {
            "battle_id": ids.to_numpy(),
            "replicate": run,
            "selection_order": battles["selection_order"].to_numpy(),
            "status": pd.Series(why).mask(ids.isin(scored.index).to_numpy(), "ok"),
            **{name: scored[name].reindex(ids).to_numpy() for name in _SCORES},
        }
    )


DRIFT_DTYPES: dict[str, str] = {
    "statistic": "str",
    "baseline": "float64",
    "now": "float64",
    "change": "float64",
    "std_error": "float64",
    "z": "float64",
    "n_battles": "int64",
    "epoch": "int64",
    "asked_at": "str",
    "moved": "bool",
    "p_value": "float64",
    "unit": "str",
    "note": "str",
}
"""Columns of the drift of a judge, a row per epoch and statistic, and their types."""


def drift_table(
    answers: pd.DataFrame, battles: pd.DataFrame, panel: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return the change of each statistic in each epoch since the baseline.

    Only the version of the judge that answered last counts, since answers of another model, prompt
    or decoding are no drift; so do only the sampled `battles`, with their votes. The reliability
    `panel` of the judge says how far repeats of one day differ.
    """
    own = answers[answers["judge_version"].eq(answers["judge_version"].iloc[-1:].max())]
    baseline = own[own["epoch"].eq(0)]
    battles = battles[battles["battle_id"].isin(baseline["battle_id"])]
    pieces = [pd.DataFrame(columns=list(DRIFT_DTYPES)).astype(DRIFT_DTYPES)]
    for epoch, asked in own[own["epoch"].gt(0)].groupby("epoch"):
        before, now, votes, runs = _compared(baseline, asked, battles, panel)
        drift = detect_drift(before, now, votes, runs=runs)
        table = pd.DataFrame(drift._asdict())
        table = table.assign(epoch=epoch, asked_at=asked["asked_at"].max())
        pieces.append(table[list(DRIFT_DTYPES)].astype(DRIFT_DTYPES))
    return pd.concat(pieces[1:] or pieces, ignore_index=True)


def moved_since(drift: pd.DataFrame) -> dict[str, tuple[int, str]]:
    """Return first epoch and time of the unbroken series in which a statistic has moved."""
    series = {}
    for name, rows in drift.groupby("statistic", sort=False):
        still = rows["moved"].iloc[::-1].cumprod().astype(bool).iloc[::-1]
        if still.iloc[-1]:
            first = rows[still].iloc[0]
            series[str(name)] = int(first["epoch"]), str(first["asked_at"])
    return series


def _compared(
    baseline: pd.DataFrame, asked: pd.DataFrame, battles: pd.DataFrame, panel: pd.DataFrame | None
) -> tuple[Judgement, Judgement, np.ndarray, np.ndarray | None]:
    """Return both judgements of the battles whose every call reached the judge, votes and runs."""
    lost = pd.concat([baseline, asked]).query("status == 'transport'")["battle_id"]
    both = battles["battle_id"].isin(asked["battle_id"]) & ~battles["battle_id"].isin(lost)
    battles = battles[both].reset_index(drop=True)
    before, now = (_judgement(battles, answers) for answers in (baseline, asked))
    votes = battles["human_outcome"].to_numpy(dtype=float, na_value=math.nan)
    return before, now, votes, _panel_runs(battles, before, panel)


def _judgement(battles: pd.DataFrame, answers: pd.DataFrame) -> Judgement:
    answers = answers[answers["battle_id"].isin(battles["battle_id"])]
    scored = score_battles(battles, answers).set_index("battle_id")
    level = answers[list(SCORE_COLUMNS)].mean(axis=1).groupby(answers["battle_id"]).mean()
    scored = scored.assign(level=level).reindex(battles["battle_id"])
    return Judgement(
        *(
            scored[name].to_numpy(dtype=float)
            for name in ("difference_ab", "difference_ba", "level")
        )
    )


def _panel_runs(
    battles: pd.DataFrame, baseline: Judgement, panel: pd.DataFrame | None
) -> np.ndarray | None:
    """Return score differences by run of the time of the baseline, or None without repeats.

    A battle whose first run in the panel is not the baseline was judged there by another
    version of the judge, and has none.
    """
    if panel is None or panel["replicate"].nunique() < 2:
        return None
    runs = by_run(panel, "score_difference").reindex(battles["battle_id"]).to_numpy(dtype=float)
    own = np.isclose(runs[:, 0], (baseline.difference_ab + baseline.difference_ba) / 2)
    return np.where(own[:, None], runs, math.nan)
