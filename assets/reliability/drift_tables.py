"""From answers by epoch to the drift of a judge: each epoch held against the baseline."""

import math

import numpy as np
import pandas as pd

from assets.reliability.panel_tables import by_run
from judgeline.io import SCORE_COLUMNS, score_battles
from judgeline.reliability.drift import Judgement, detect_drift

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
    """Return what moved in each epoch since the baseline.

    Parameters
    ----------
    answers : DataFrame
        By epoch; only the version of the judge that answered last counts, since answers of
        another model, prompt or decoding are no drift.
    battles : DataFrame
        Sampled battles, with the votes; answers on others do not count.
    panel : DataFrame, optional
        Reliability panel of the judge, for how far repeats of one day differ.

    Returns
    -------
    DataFrame
        `DRIFT_DTYPES`, by epoch.
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
    """Return since when each statistic has moved without a break, for those that now have.

    The first epoch of the unbroken series, and its time, by statistic.
    """
    found = {}
    for name, rows in drift.groupby("statistic", sort=False):
        still = rows["moved"].iloc[::-1].cumprod().astype(bool).iloc[::-1]
        if still.iloc[-1]:
            first = rows[still].iloc[0]
            found[str(name)] = int(first["epoch"]), str(first["asked_at"])
    return found


def _compared(
    baseline: pd.DataFrame, asked: pd.DataFrame, battles: pd.DataFrame, panel: pd.DataFrame | None
) -> tuple[Judgement, Judgement, np.ndarray, np.ndarray | None]:
    """Return both judgements of the battles whose every call reached the judge, votes and runs."""
    lost = pd.concat([baseline, asked]).query("status == 'transport'")["battle_id"]
    both = battles["battle_id"].isin(asked["battle_id"]) & ~battles["battle_id"].isin(lost)
    battles = battles[both].reset_index(drop=True)
    before, now = (_judgement(battles, answers) for answers in (baseline, asked))
    votes = battles["human_outcome"].to_numpy(dtype=float, na_value=math.nan)
    return before, now, votes, _runs(battles, before, panel)


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


def _runs(
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
