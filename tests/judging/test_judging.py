"""Checks of verdicts and scored battles, where the contract of all tables does not reach."""

import numpy as np
import pandas as pd
import pytest
from declared_checks import checks_in

from judgeline.tables.judging import SCORED_BATTLES, VERDICTS
from resources.tables.expectations import results_of

judging = checks_in(VERDICTS, SCORED_BATTLES)
MARKS = [name for name in VERDICTS.columns if name[-2:] in ("_a", "_b")]


def _failed(verdicts, n, status="parse_error"):
    """The first n answers failed: no scores."""
    table = verdicts.reset_index(drop=True)
    table.loc[: n - 1, MARKS] = np.nan
    table.loc[: n - 1, "status"] = status
    return table


def test_verdicts_of_a_judge_keep_every_rule(verdicts, scored_battles, sampled_battles):
    results = [
        *results_of(VERDICTS, verdicts, sampled_battles=sampled_battles),
        *results_of(SCORED_BATTLES, scored_battles),
    ]
    assert [one.description for one in results if not one.passed] == []


def test_missing_columns_and_no_rows_are_named(verdicts):
    result = judging.verdicts_are_well_formed(verdicts.drop(columns="identity"))
    assert "missing columns: identity" in result.description
    assert not judging.most_answers_parse(verdicts.head(0)).passed


def test_failed_answers_without_scores_are_well_formed(verdicts):
    failed = _failed(verdicts, 5, "truncated")
    assert judging.verdicts_are_well_formed(failed).passed
    assert judging.answers_have_their_scores(failed).passed
    named = judging.answers_have_their_scores(failed.assign(clarity_a=5.0)).description
    assert "battle-00 AB" in named


def test_a_published_outcome_stands_in_for_all_scores_and_not_for_some(verdicts):
    bare = verdicts.assign(recorded_outcome=0.5, **dict.fromkeys(MARKS, np.nan))
    assert judging.answers_have_their_scores(bare).passed
    assert not judging.answers_have_their_scores(bare.assign(clarity_a=5.0)).passed
    assert not judging.answers_have_their_scores(bare.assign(recorded_outcome=np.nan)).passed


def test_both_orders_or_their_mean(verdicts):
    check = judging.both_orders_are_present
    assert check(verdicts[verdicts["order"].eq("AB")].assign(order="mean")).passed
    assert "battle-00" in check(verdicts.iloc[1:]).description
    assert not check(pd.concat([verdicts, verdicts.head(1).assign(order="mean")])).passed


@pytest.mark.parametrize(
    ("n_failed", "most", "nearly_all"), [(0, True, True), (5, True, False), (30, False, False)]
)
def test_parse_rate(verdicts, n_failed, most, nearly_all):
    table = _failed(verdicts, n_failed) if n_failed else verdicts
    stops, warns = judging.most_answers_parse(table), judging.nearly_all_answers_parse(table)
    assert (stops.passed, warns.passed) == (most, nearly_all)
    if not most:
        assert f"parse_error {n_failed}" in stops.description


def test_battles_without_a_verdict_are_named(verdicts, sampled_battles):
    judged = verdicts[~verdicts["battle_id"].isin(["battle-03", "battle-05"])]
    result = judging.sampled_battles_were_judged(judged, sampled_battles=sampled_battles)
    assert not result.passed
    assert "battle-03" in result.description


@pytest.mark.parametrize(
    ("check", "pairs", "outcomes", "named", "unnamed"),
    [
        ("models_are_connected", "ant-bee ant-cat elk-fox", [0.5] * 3, ("elk", "fox"), "ant"),
        ("no_model_holds_others_together", "ant-bee bee-cat", [0.5] * 2, ("rows: 1", "bee"), "ant"),
        ("no_model_is_undefeated", "ant-bee bee-cat cat-bee ant-cat", [1.0, 0.5, 0.5, 1.0],
         ("rows: 1", "ant"), "bee"),
        ("no_model_is_undefeated", "ant-bee bee-cat cat-bee ant-cat", [0.0, 0.5, 0.5, 0.0],
         ("ant (share_of_wins=0)",), "bee"),
    ],
)  # fmt: skip
def test_models_that_break_the_graph_are_named(check, pairs, outcomes, named, unnamed):
    models = [pair.split("-") for pair in pairs.split()]
    table = pd.DataFrame(models, columns=["model_a", "model_b"]).assign(judge_outcome=outcomes)
    result = getattr(judging, check)(table)
    assert not result.passed
    assert all(part in result.description for part in named)
    assert unnamed not in result.description
