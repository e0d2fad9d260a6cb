import dagster as dg
import numpy as np
import pandas as pd
import pytest

from assets.judging import assets as judging

WARN, ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR


def _first(column, value, n=1):
    def breakage(table):
        table = table.reset_index(drop=True)
        table[column] = table[column].astype(object)
        table.loc[: n - 1, column] = value
        return table

    return breakage


def _failed(table, status="parse_error", n=1):
    """The first n answers failed: no scores."""
    table = table.reset_index(drop=True)
    scores = [c for c in table if c[-2:] in ("_a", "_b")]
    table.loc[: n - 1, scores] = np.nan
    table.loc[: n - 1, "status"] = status
    return table


@pytest.mark.parametrize(
    ("breakage", "told"),
    [
        (lambda t: t.drop(columns="identity"), "no column is missing"),
        (lambda t: t.head(0), "at least one verdict"),
        (_first("identity", None), "identity is known"),
        (_first("battle_id", None), "battle_id is known"),
        (_first("order", "CD"), "order is AB, BA or mean"),
        (_first("status", "bored"), "status is one of"),
        (lambda t: pd.concat([t, t.head(1)]), "one verdict per replicate"),
    ],
)
def test_well_formed_verdicts(verdicts, breakage, told):
    assert judging.verdicts_are_well_formed(verdicts).passed
    result = judging.verdicts_are_well_formed(breakage(verdicts))
    assert not result.passed
    assert result.severity == ERROR
    assert told in result.description


@pytest.mark.parametrize(
    ("breakage", "told"),
    [
        (_first("clarity_a", None), "has all twelve scores"),
        (_first("status", "refusal"), "any other has none"),
        (_first("clarity_a", 0.5), "no score is below 1"),
        (_first("fluency_b", 11.0), "no score is above 10"),
    ],
)
def test_scores_of_answers(verdicts, breakage, told):
    assert judging.answers_have_their_scores(verdicts).passed
    result = judging.answers_have_their_scores(breakage(verdicts))
    assert not result.passed
    assert result.severity == ERROR
    assert told in result.description
    assert "battle-00 AB" in result.description


def test_failed_answers_without_scores_are_well_formed(verdicts):
    failed = _failed(verdicts, "truncated", 5)
    assert judging.verdicts_are_well_formed(failed).passed
    assert judging.answers_have_their_scores(failed).passed


def test_a_published_outcome_stands_in_for_all_scores_and_not_for_some(verdicts):
    scores = [c for c in verdicts if c[-2:] in ("_a", "_b")]
    bare = verdicts.assign(recorded_outcome=0.5, **dict.fromkeys(scores, np.nan))
    assert judging.answers_have_their_scores(bare).passed
    assert not judging.answers_have_their_scores(bare.assign(clarity_a=5.0)).passed
    assert not judging.answers_have_their_scores(bare.assign(recorded_outcome=np.nan)).passed


def test_both_orders(verdicts):
    check = judging.both_orders_are_present
    assert check(verdicts).passed
    assert check(verdicts[verdicts["order"].eq("AB")].assign(order="mean")).passed
    result = check(verdicts.iloc[1:])
    assert not result.passed
    assert "battle-00" in result.description
    assert not check(pd.concat([verdicts, verdicts.head(1).assign(order="mean")])).passed


@pytest.mark.parametrize(
    ("n_failed", "most", "nearly_all"), [(0, True, True), (5, True, False), (30, False, False)]
)
def test_parse_rate(verdicts, n_failed, most, nearly_all):
    table = _failed(verdicts, n=n_failed) if n_failed else verdicts
    stops, warns = judging.most_answers_parse(table), judging.nearly_all_answers_parse(table)
    assert (stops.passed, warns.passed) == (most, nearly_all)
    assert (stops.severity, warns.severity) == (ERROR, WARN)
    if not most:
        assert "parse_error 30" in stops.description


def test_no_verdicts_at_all_is_no_parse_rate(verdicts):
    assert not judging.most_answers_parse(verdicts.head(0)).passed


def test_sampled_battles_were_judged(verdicts, sampled_battles):
    check = judging.sampled_battles_were_judged
    assert check(verdicts, sampled_battles).passed
    result = check(
        verdicts[~verdicts["battle_id"].isin(["battle-03", "battle-05"])], sampled_battles
    )
    assert not result.passed
    assert "battle-03" in result.description
    assert result.severity == WARN


@pytest.mark.parametrize(
    ("breakage", "told"),
    [
        (lambda t: t.head(0), "at least one battle"),
        (_first("battle_id", "battle-01"), "battle_id is unique"),
        (_first("score_difference", None), "score_difference is known"),
        (_first("judge_outcome", None), "judge_outcome is known"),
        (_first("model_a", None), "model_a is known"),
        (_first("score_difference", 9.5), "score_difference lies in [-9, 9]"),
        (_first("difference_ab", -10), "difference_ab lies in [-9, 9]"),
        (_first("difference_ba", 10), "difference_ba lies in [-9, 9]"),
        (_first("judge_outcome", 0.25), "judge_outcome is 1, 0.5 or 0"),
        (_first("recorded_outcome", 0.3), "recorded_outcome is a multiple"),
    ],
)
def test_scores_in_range(scored_battles, breakage, told):
    assert judging.scores_are_in_range(scored_battles).passed
    result = judging.scores_are_in_range(breakage(scored_battles))
    assert not result.passed
    assert told in result.description


def _battles(*pairs, outcome=0.5):
    return pd.DataFrame(
        {
            "model_a": [a for a, _ in pairs],
            "model_b": [b for _, b in pairs],
            "judge_outcome": outcome,
        }
    )


def test_connected_models(scored_battles):
    check = judging.models_are_connected
    assert check(scored_battles).passed
    result = check(_battles(("ant", "bee"), ("ant", "cat"), ("elk", "fox")))
    assert not result.passed
    assert "elk" in result.description
    assert "fox" in result.description
    assert "ant" not in result.description


def test_models_that_hold_others_together(scored_battles):
    check = judging.no_model_holds_others_together
    assert check(scored_battles).passed
    result = check(_battles(("ant", "bee"), ("bee", "cat")))
    assert not result.passed
    assert "failing rows: 1, such as bee" in result.description
    assert result.severity == WARN


def test_undefeated_models(scored_battles):
    check = judging.no_model_is_undefeated
    assert check(scored_battles).passed
    table = _battles(("ant", "bee"), ("bee", "cat"), ("cat", "bee"), ("ant", "cat"))
    result = check(table.assign(judge_outcome=[1.0, 0.5, 0.5, 1.0]))
    assert not result.passed
    assert "failing rows: 1, such as ant" in result.description
    losing = check(table.assign(judge_outcome=[0.0, 0.5, 0.5, 0.0]))
    assert "such as ant (share_of_wins=0)" in losing.description
