"""Recorded preferences without rubric scores: what a run makes of them, and what it says."""

import numpy as np
import pandas as pd
import pytest

from judgeline.tables.corpus import SCORE_COLUMNS
from pipelines.commands.plan import DO_WITHOUT, LeftOut, common_part, supported_part
from pipelines.definitions import defs

JUDGE = "recorded"
TOLD = "recorded preferences without rubric scores: reference-anchored ratings only"
MADE = {
    "choice_verdicts",
    "consistency",
    "rationale_embeddings",
    "reference_ratings",
    "reliability_panel",
    "score_verdicts",
    "soft_outcomes",
    "verdicts",
}


def write_star(path, n_questions: int = 40) -> pd.DataFrame:
    """Four models against one hub, a NaN preference and the hub against itself."""
    rng = np.random.default_rng(2)
    rows = [
        {
            "question_id": f"q{i}",
            "model": model,
            "reference_model": "hub",
            "judge": JUDGE,
            "preference": 0.5 if model == "hub" else rng.beta(a, 4),
        }
        for model, a in {"ant": 8, "bee": 5, "cat": 3, "dog": 2, "hub": 1}.items()
        for i in range(n_questions)
    ]
    table = pd.DataFrame(rows)
    table.loc[0, "preference"] = np.nan
    table.to_parquet(path)
    return table


@pytest.fixture(scope="module")
def star(make_workshop, tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "star.parquet"
    published = write_star(path)
    workshop = make_workshop()
    workshop.tiny = {"reader": "reference-battles", "location": str(path), "judges": [JUDGE]}
    return workshop, workshop.run(), published


def test_what_preferences_support_is_made_and_said(star) -> None:
    workshop, outcome, _ = star
    assert outcome.errors == []
    assert outcome.exit_code == 0
    assert outcome.report is None
    made = {name.split("/")[0] for name in workshop.files() if name.endswith(f"/{JUDGE}.parquet")}
    assert made == MADE
    assert f"warn {TOLD}" in workshop.printed
    assert "judge_comparison/tiny.parquet" not in workshop.files()


def test_ratings_are_of_the_published_preferences(star) -> None:
    workshop, _, published = star
    ratings = workshop.stored("reference_ratings", "tiny", JUDGE).set_index("model")
    assert ratings.index.tolist() == ["ant", "bee", "cat", "dog"]
    assert ratings["source"].eq("likelihood").all()
    assert ratings["reference_model"].eq("hub").all()
    mean = published.groupby("model")["preference"].mean()
    assert ratings["mean_preference"].to_dict() == pytest.approx(mean.drop("hub").to_dict())
    assert ratings["n_prompts"].to_dict() == {"ant": 39, "bee": 40, "cat": 40, "dog": 40}
    metadata = workshop.metadata("reference_ratings")
    assert metadata["reference_model"] == "hub"
    assert "met 4 of 4 other models" in metadata["reference_because"]


@pytest.mark.parametrize(
    ("changes", "select", "told"),
    [
        ({}, "leaderboard", f"tiny|{JUDGE}: nothing that --select names can be made ({TOLD})"),
        ({"reference": "hbu"}, "reference_ratings", "did you mean 'hub'"),
    ],
)
def test_what_cannot_be_made_is_an_error_and_not_nothing(star, changes, select, told) -> None:
    workshop, before = star[0], dict(star[0].tiny)
    workshop.tiny |= changes
    outcome = workshop.run(select=[select])
    workshop.tiny = before
    assert outcome.exit_code == 1
    assert told in outcome.errors[0]


# ---------------------------------------------------------------- which part is supported


class Store:
    def __init__(self, recorded: pd.DataFrame | None) -> None:
        self.recorded = recorded

    def stored(self, *place: str) -> pd.DataFrame | None:
        assert place == ("recorded_verdicts", "corpus")
        return self.recorded


def recorded(**columns) -> pd.DataFrame:
    empty = dict.fromkeys(SCORE_COLUMNS, np.nan)
    return pd.DataFrame([{"judge": "j", "recorded_outcome": np.nan, **empty, **columns}])


@pytest.mark.parametrize(
    ("table", "whole"),
    [
        (None, True),
        (recorded(judge="other", recorded_outcome=0.7), True),
        (recorded(), True),  # every verdict failed: the checks of verdicts say so
        (recorded(adherence_a=5.0, recorded_outcome=1.0), True),
        (recorded(recorded_outcome=0.7), False),
    ],
)
def test_only_preferences_alone_are_a_part(table, whole: bool) -> None:
    graph = defs.resolve_asset_graph()
    part = supported_part(graph, Store(table), "corpus", "j")
    assert (part == LeftOut()) is whole
    names = {key.to_user_string() for key in part.left_out}
    if not whole:
        assert names >= {"scored_battles", "leaderboard", "heldout_ratings", "report"}
        assert not part.left_out & DO_WITHOUT
        assert not names & MADE


def test_a_comparison_is_as_full_as_the_fullest_judge_that_ran() -> None:
    whole, bare = LeftOut(), LeftOut(frozenset({1, 2}), "bare")
    assert common_part({}, {}) == whole
    assert common_part({"x": whole, "y": bare}, {"x": True, "y": True}) == whole
    assert common_part({"x": whole, "y": bare}, {"x": False, "y": True}) == bare
    assert common_part({"x": whole}, {"x": False}) is None


def test_there_is_no_leaderboard_and_the_message_says_what_there_is(star, monkeypatch) -> None:
    from pipelines.commands.leaderboards import stored_leaderboards

    star[0].install(monkeypatch)
    with pytest.raises(
        ValueError,
        match="without rubric scores; its reference-anchored ratings, which need no votes, are in",
    ):
        stored_leaderboards("tiny")
