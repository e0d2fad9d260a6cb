"""One chain, two engines: what Dagster stored is what the same step makes in memory."""

import numpy as np
import pandas as pd
import pytest

import judgeline
from assets.engine import recorded_names, settings_of
from judgeline.steps import STEPS, Step, run

JUDGES = ("careful", "hasty")


def known_to(workshop, step: Step, judge: str):
    """The settings that a step reads."""
    return settings_of(workshop.catalog, "tiny", judge, step.reads)


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("name", sorted(STEPS))
def test_a_step_in_memory_makes_the_stored_table(finished, name: str, judge: str) -> None:
    step = STEPS[name]
    tables = {
        taken: finished.stored(taken, "tiny", judge)
        if finished.stored(taken, "tiny", judge) is not None
        else finished.stored(taken, "tiny")
        for taken in step.takes
    }
    made = step.make(tables, known_to(finished, step, judge)).table
    stored = finished.stored(name, "tiny", judge)
    pd.testing.assert_frame_equal(made, stored, check_dtype=False, check_exact=False, rtol=1e-12)


@pytest.mark.parametrize(
    ("table", "names"),
    [
        ("adjusted_win_rates", "rating.hard_outcome rating.miscoverage"),
        ("soft_outcomes", "judge.score.scale judge.choice.tolerance"),
        ("consistency", "judge.choice.tolerance"),
        ("reference_ratings", "reference rating.miscoverage rating.seed"),
        ("quantitative_outcomes", "rating.seed"),
        ("quantitative_judges", "rating.seed"),
        ("judge_gate", "gate rating.method"),
    ],
)
def test_settings_are_recorded_where_the_configuration_has_them(table: str, names: str) -> None:
    """Another name would make every stored table look as if its settings had changed."""
    assert recorded_names(STEPS[table]) == names.split()


@pytest.mark.parametrize("judge", JUDGES)
def test_rank_gives_the_stored_board(finished, judge: str) -> None:
    """From the scored battles alone; only days, which they do not have, may move a split."""
    rating = finished.catalog.corpus("tiny").rating
    settings = judgeline.Settings(
        n_resamples=rating.n_resamples, std_error=rating.std_error, stream="tiny"
    )
    board = judgeline.rank(finished.stored("scored_battles", "tiny", judge), settings).leaderboard
    stored = finished.stored("leaderboard", "tiny", judge)
    pd.testing.assert_frame_equal(board, stored, check_dtype=False, check_exact=False, rtol=1e-12)


def test_consistency_gives_the_stored_table(finished) -> None:
    battles = finished.stored("sampled_battles", "tiny")
    verdicts = finished.stored("verdicts", "tiny", "careful")
    stored = finished.stored("consistency", "tiny", "careful")
    made = judgeline.consistency(battles, verdicts=verdicts)
    pd.testing.assert_frame_equal(made, stored, check_dtype=False, check_exact=False, rtol=1e-12)


def test_a_table_is_made_once_and_from_what_is_given(finished) -> None:
    given = {"scored_battles": finished.stored("scored_battles", "tiny", "careful")}
    settings = judgeline.Settings(n_resamples=0).resolved(300)
    tables = run(["leaderboard"], given, settings)
    made = ["beta_folds", "heldout_ratings", "judge_diagnostics", "conformal_calibration"]
    made += ["judge_gate", "candidate_ratings"]  # the last one without rows
    assert set(tables) == {"scored_battles", "leaderboard", *made}
    again = run(["leaderboard"], tables, settings)
    assert all(again[name] is tables[name] for name in tables)
    held = tables["heldout_ratings"].assign(rating=np.nan)
    assert (
        run(["leaderboard"], {**given, "heldout_ratings": held}, settings)["leaderboard"][
            "judge_rating"
        ]
        .isna()
        .all()
    )


def test_what_cannot_be_made_is_named() -> None:
    with pytest.raises(ValueError, match="table leaderboard cannot be made from battles"):
        run(["leaderboard"], {"battles": pd.DataFrame()}, judgeline.Settings())


def test_a_step_reads_the_settings_that_it_declares_and_no_other() -> None:
    def beta_folds(scored_battles: pd.DataFrame, *, settings) -> pd.DataFrame:
        return scored_battles.assign(l2=settings.l2)

    step = judgeline.steps.Step(STEPS["beta_folds"].table, beta_folds, reads=("hard_outcome",))
    with pytest.raises(AttributeError, match="setting 'l2' is not declared by this step"):
        step.make({"scored_battles": pd.DataFrame()}, judgeline.Settings())
