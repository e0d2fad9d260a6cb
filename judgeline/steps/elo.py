"""Slopes, and ratings of each model by the fit that held it out."""

from typing import Any

import pandas as pd

from judgeline.elo import BetaFolds, fit_beta_folds, rate
from judgeline.io import as_table, votes_that_wait, with_flags, with_waiting_votes
from judgeline.io.extremes import extreme_flags
from judgeline.steps.coding import coded, rating_settings, units
from judgeline.steps.step import as_columns, step
from judgeline.tables.elo import BETA_FOLDS, HELDOUT_RATINGS


@step(BETA_FOLDS, reads=("hard_outcome",))
def beta_folds(scored_battles: pd.DataFrame, *, settings: Any) -> pd.DataFrame:
    """A held-out model's beta, in logits per rubric point, fitted on human votes without it."""
    return as_table(fit_beta_folds(coded(scored_battles, settings)))


@step(HELDOUT_RATINGS, reads=("hard_outcome", "l2", "n_resamples", "seed", "resample_by"))
def heldout_ratings(
    scored_battles: pd.DataFrame, beta_folds: pd.DataFrame, *, settings: Any
) -> pd.DataFrame:
    """A model's rating by one method, in Elo points, placed among anchors fitted without it.

    The residual is the judge's rating minus the human one.
    """
    battles = coded(scored_battles, settings)
    folds, cluster = as_columns(BetaFolds, beta_folds), units(scored_battles, settings)
    ratings = rate(battles, rating_settings(settings), beta_folds=folds, cluster=cluster)
    ratings = with_waiting_votes(ratings, votes_that_wait(scored_battles, battles))
    return as_table(with_flags(ratings, extreme_flags(scored_battles)))
