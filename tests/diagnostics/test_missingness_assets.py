import dagster as dg
import numpy as np
import pandas as pd
import pytest

from assets.diagnostics import missing_bounds as of_bounds
from assets.diagnostics import missingness as module
from assets.diagnostics.tables import account_for
from judgeline.io import score_battles


@pytest.fixture
def failing(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Three battles fail: two refused in one order, one unreadable in both."""
    verdicts = verdicts.copy()
    scores = [column for column in verdicts if column[-2:] in ("_a", "_b")]
    for battle, order, status in (
        ("battle-00", "AB", "refusal"),
        ("battle-01", "BA", "refusal"),
        ("battle-02", "AB", "parse_error"),
        ("battle-02", "BA", "parse_error"),
    ):
        row = verdicts["battle_id"].eq(battle) & verdicts["order"].eq(order)
        verdicts.loc[row, "status"] = status
        verdicts.loc[row, scores] = np.nan
    return verdicts


def test_metadata_has_the_totals_by_class(sampled_battles, failing):
    result = module.missingness(sampled_battles=sampled_battles, verdicts=failing)
    assert result.metadata["n_sampled"] == 24
    assert result.metadata["n_missing"] == 3
    records = {r.data["status"]: r.data["n_battles"] for r in result.metadata["classes"].records}
    assert records == {"ok": 21, "parse_error": 1, "refusal": 2}
    assert result.metadata["groupings"] == ["all", "model", "language", "length"]


@pytest.mark.parametrize(
    ("breakage", "told"),
    [
        (lambda t: t[~(t["grouping"].eq("language") & t["status"].eq("refusal"))], "language"),
        (lambda t: t.assign(status=t["status"].replace("refusal", "ok")), "as were scored"),
        (lambda t: t.assign(n_verdicts=t["n_verdicts"] + 1), "add up to the verdicts"),
        (lambda t: t.assign(level=t["level"].replace("ant", "bee")), "ant (own="),
        (lambda t: t[t["grouping"].ne("all") | t["status"].ne("ok")], "all (n_battles=3"),
    ],
)
def test_battles_are_accounted_for(sampled_battles, failing, breakage, told):
    scored = score_battles(sampled_battles, failing)
    account = account_for(sampled_battles, failing)
    check = module.battles_are_accounted_for
    assert check(account, sampled_battles, failing, scored).passed
    result = check(breakage(account), sampled_battles, failing, scored)
    assert not result.passed
    assert told in result.description
    assert result.severity == dg.AssetCheckSeverity.ERROR


def test_an_account_of_another_sample_is_noticed(raw_battles, sampled_battles, failing):
    account = account_for(sampled_battles, failing)
    scored = score_battles(sampled_battles, failing)
    larger = raw_battles.head(30)
    assert not module.battles_are_accounted_for(account, larger, failing, scored).passed
    assert not module.battles_are_accounted_for(
        account, sampled_battles, failing, scored.head(20)
    ).passed


def _account(missing: dict[str, int]) -> pd.DataFrame:
    """200 battles, 100 per model, with some missing; each missing one is of two models."""
    rows = [
        ("model", model, status, n)
        for model, gone in missing.items()
        for status, n in (("ok", 100 - gone), ("refusal", gone))
    ]
    total = sum(missing.values()) // 2
    rows += [("all", "", "ok", 200 - total), ("all", "", "refusal", total)]
    table = pd.DataFrame(rows, columns=["grouping", "level", "status", "n_battles"])
    return table.assign(n_verdicts=0, share=0.0)


def test_a_model_that_is_shunned_is_named_with_what_to_do():
    even = {"ant": 5, "bee": 5, "cat": 6, "dog": 4}
    assert module.models_are_missing_alike(_account(even)).passed
    assert module.models_are_missing_alike(_account(dict.fromkeys(even, 0))).passed
    result = module.models_are_missing_alike(_account({"ant": 10, "bee": 4, "cat": 3, "dog": 3}))
    assert not result.passed
    assert result.severity == dg.AssetCheckSeverity.WARN
    assert "ant (chance=" in result.description
    assert "bee" not in result.description
    assert "--retry CLASS" in result.description


@pytest.fixture
def bounds() -> pd.DataFrame:
    """Two models: one with missing battles, one without."""
    return pd.DataFrame(
        {
            "model": ["ant", "ant", "bee", "bee"],
            "method": ["hard", "soft"] * 2,
            "rating": [1510.0, 1505.0, 1490.0, 1495.0],
            "worst_rating": [1500.0, 1500.0, 1490.0, 1495.0],
            "best_rating": [1530.0, 1520.0, 1490.0, 1495.0],
            "n_battles": 50,
            "n_missing": [3, 3, 0, 0],
            "n_missing_other": 0,
            "half_width": [60.0, 50.0, np.nan, np.nan],
        }
    )


def _at(table: pd.DataFrame, row: int, **values: float) -> pd.DataFrame:
    table = table.copy()
    table.loc[row, list(values)] = list(values.values())
    return table


@pytest.mark.parametrize(
    ("breakage", "told"),
    [
        (lambda t: _at(t, 0, rating=1510.1), "the one in heldout_ratings"),
        (lambda t: _at(t, 0, rating=np.nan), "the one in heldout_ratings"),
        (lambda t: _at(t, 1, worst_rating=1521.0), "at most the best"),
        (lambda t: _at(t, 0, best_rating=1505.0), "between its worst and its best"),
        (lambda t: pd.concat([t, t.head(1)]), "one row by each method"),
    ],
)
def test_bounds_are_of_the_ratings(bounds, breakage, told):
    heldout = bounds[["model", "method", "rating"]]
    assert of_bounds.bounds_are_of_the_ratings(bounds, heldout).passed
    result = of_bounds.bounds_are_of_the_ratings(breakage(bounds), heldout)
    assert not result.passed
    assert told in result.description
    assert "ant" in result.description


def test_a_soft_rating_outside_its_bounds_is_no_fault(bounds):
    odd = _at(bounds, 1, worst_rating=1506.0)
    assert of_bounds.bounds_are_of_the_ratings(odd, bounds[["model", "method", "rating"]]).passed


def test_a_model_that_was_never_scored_has_no_rating_to_disagree_with(bounds):
    fresh = _at(bounds, 2, rating=np.nan, worst_rating=np.nan, best_rating=np.nan).replace(
        {"model": {"bee": "new"}}
    )
    fresh = fresh[~(fresh["model"].eq("new") & fresh["method"].eq("soft"))]
    assert of_bounds.bounds_are_of_the_ratings(fresh, bounds[["model", "method", "rating"]]).passed


@pytest.mark.parametrize(
    ("breakage", "told"),
    [
        (lambda t: _at(t, 0, best_rating=1560.5), "ant hard (limit=60, width=60.5"),
        (lambda t: _at(t, 0, half_width=np.inf, best_rating=1600.5), "limit=100, width=100.5"),
        (lambda t: _at(t, 1, best_rating=np.nan, worst_rating=np.nan), "width=inf"),
    ],
)
def test_bounds_wider_than_half_the_interval_are_told_with_the_remedy(bounds, breakage, told):
    assert of_bounds.missing_battles_matter_little(bounds).passed
    assert of_bounds.missing_battles_matter_little(_at(bounds, 0, best_rating=1560.0)).passed
    result = of_bounds.missing_battles_matter_little(breakage(bounds))
    assert not result.passed
    assert result.severity == dg.AssetCheckSeverity.WARN
    assert told in result.description
    assert "--retry CLASS" in result.description
