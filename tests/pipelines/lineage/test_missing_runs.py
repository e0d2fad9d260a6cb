import dagster as dg
import numpy as np
import pytest

from assets.partitions import corpus_judge_key
from assets.provenance import check_records, judge_checks
from judgeline.elo import HeldOutRatings
from judgeline.intervals import rank_models
from judgeline.io import as_table
from judgeline.steps.missing import account_for, missing_bounds
from judgeline.steps.step import as_columns

RATED = ("scored_battles", "beta_folds", "heldout_ratings")
SAYING = (
    ("scored_battles", "battles_are_accounted_for"),
    ("conformal_calibration", "bounds_are_of_the_ratings"),
)
CLASSES = {"parse_error", "refusal", "truncated"}


@pytest.fixture(scope="module")
def sloppy(make_workshop):
    """A judge that leaves about one battle in twelve without a score, run once."""
    workshop = make_workshop()
    outcome = workshop.run("sloppy", select=["not key:quantitative_judges"])
    assert outcome.errors == []
    return workshop


def test_every_sampled_battle_is_scored_or_has_a_class(sloppy):
    scored = sloppy.stored("scored_battles", "tiny", "sloppy")
    verdicts = sloppy.stored("verdicts", "tiny", "sloppy")
    account = account_for(sloppy.stored("sampled_battles", "tiny"), verdicts)
    whole = account[account["grouping"] == "all"].set_index("status")
    assert set(whole.index) == {"ok", *CLASSES}
    assert whole["n_battles"].sum() == 300
    assert whole["n_battles"]["ok"] == len(scored) < 300
    assert whole["n_verdicts"].to_dict() == verdicts["status"].value_counts().to_dict()


def test_bounds_stand_beside_the_interval_of_the_leaderboard(sloppy):
    tables = [sloppy.stored(name, "tiny", "sloppy") for name in RATED]
    battles, rating = sloppy.stored("sampled_battles", "tiny"), sloppy.catalog.corpus("tiny").rating
    bounds = missing_bounds(battles, *tables, rating).set_index(["model", "method"])
    board = sloppy.stored("leaderboard", "tiny", "sloppy").set_index("model")
    soft = bounds.xs("soft", level="method").loc[board.index]
    np.testing.assert_allclose(soft["rating"], board["soft_rating"])
    heldout = as_columns(HeldOutRatings, sloppy.stored("heldout_ratings", "tiny", "sloppy"))
    ranked = as_table(rank_models(heldout, method="soft", std_error="bootstrap"))
    by_soft = ranked.set_index("model").loc[board.index]
    np.testing.assert_allclose(
        soft["half_width"], (by_soft["judge_upper"] - by_soft["judge_lower"]) / 2
    )
    moved = bounds["n_missing"] > 0
    assert moved.any()
    assert (bounds["worst_rating"] < bounds["best_rating"])[moved].all()
    assert (bounds["worst_rating"] == bounds["best_rating"])[~moved].all()


def said_by(workshop, asset: str, check: str) -> dict[str, object]:
    """Metadata of the last evaluation of a check."""
    key = dg.AssetCheckKey(dg.AssetKey(asset), check)
    (record,) = check_records(workshop.instance, [key], corpus_judge_key("tiny", "sloppy")).values()
    evaluation = record.event.dagster_event.asset_check_evaluation_data
    return {name: value.value for name, value in evaluation.metadata.items()}


def test_metadata_checks_and_report_say_what_is_missing(sloppy):
    missing = 300 - len(sloppy.stored("scored_battles", "tiny", "sloppy"))
    account, _ = (said_by(sloppy, *check) for check in SAYING)
    assert account["n_missing"] == missing
    checks = judge_checks(sloppy.instance, "tiny", "sloppy").set_index("name")
    assert checks["passed"][["battles_are_accounted_for", "bounds_are_of_the_ratings"]].all()
    assert {"models_are_missing_alike", "missing_battles_matter_little"} <= set(checks.index)
    page = (sloppy.home / "reports" / "tiny.html").read_text(encoding="utf-8")
    assert f"{missing} of 300 sampled battles" in page


def test_a_judge_whose_verdicts_are_gone_has_no_section_of_what_is_missing(sloppy):
    (sloppy.home / "tables" / "verdicts" / "tiny" / "sloppy.parquet").unlink()
    assert sloppy.run("sloppy", select=["report"], force=True).errors == []
    page = (sloppy.home / "reports" / "tiny.html").read_text(encoding="utf-8")
    assert "Sloppy" in page
    assert "of 300 sampled battles" not in page
