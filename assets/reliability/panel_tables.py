"""The panel: a few battles that a judge judges several times, a row per battle and run."""

import pandas as pd

from judgeline.io import score_battles

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
    """Return how a judge judged a panel's battles, run by run.

    Parameters
    ----------
    battles : DataFrame
        The panel's battles, with their ``selection_order``.
    verdicts : DataFrame
        Verdicts of one judge, their ``replicate`` counting the runs; those on other battles do
        not count.

    Returns
    -------
    DataFrame
        `PANEL_DTYPES`, by battle in the order of choice and run. ``status`` is ok where the
        run scored the battle, else why not: the failure of its first order that failed, or
        ``missing``. Score differences are A minus B in rubric points, outcomes A's share.
    """
    own = verdicts[verdicts["battle_id"].isin(battles["battle_id"])]
    if battles.empty or own.empty:
        return empty_panel()
    runs = [_run(battles, run, own[own["replicate"].eq(run)]) for run in _runs(own)]
    table = pd.concat(runs, ignore_index=True).assign(judge=own["judge"].iloc[0])
    table = table.sort_values(["selection_order", "replicate"], ignore_index=True)
    return table[list(PANEL_DTYPES)].astype(PANEL_DTYPES)


def repeated(verdicts: pd.DataFrame) -> pd.Series:
    """Return the ids of battles of which there are verdicts of two runs or more."""
    n_runs = verdicts.groupby("battle_id", sort=False)["replicate"].nunique()
    return n_runs.index[n_runs > 1].to_series()


def by_run(panel: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a column of a panel with a row per battle and a column per run, NaN where none."""
    return panel.pivot_table(column, "battle_id", "replicate", aggfunc="first", dropna=False)


def _runs(verdicts: pd.DataFrame) -> list[int]:
    return sorted(verdicts["replicate"].unique().tolist())


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
