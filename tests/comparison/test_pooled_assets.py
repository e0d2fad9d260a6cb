import dagster as dg
import numpy as np
import pandas as pd
import pingouin
import pytest
from catalogs import catalog_of

import judgeline
from assets.comparison import pooled
from assets.comparison.pooled import pooled_leaderboard
from assets.partitions import corpus_judge_key, register
from judgeline.intervals import Leaderboard
from judgeline.io import as_table, common_battles
from judgeline.reliability import Measurement, hold_to
from judgeline.steps.candidates import place_newcomer
from judgeline.steps.comparison import candidate_tables, compare_pooled, pooled_board
from judgeline.tables.comparison import COMPARISON_COLUMNS

RATING = judgeline.Settings(n_resamples=0).resolved(60)


SEEN = {"ant": 0.0, "bee": 0.4, "cat": -0.4, "dog": 0.0}
"""Rubric points by which judges with skill see a model as people do, beyond its scores."""


@pytest.fixture
def unskilled(scored_battles: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Three judges of the same battles in different orders; each sees them a little differently.

    They place cat a hundred Elo above where people do, and bee as far below.
    """
    rng = np.random.default_rng(3)
    return {
        name: scored_battles.assign(
            score_difference=scored_battles["score_difference"]
            + rng.integers(-6, 7, len(scored_battles)) / 6
        ).sample(frac=1, random_state=seed)
        for seed, name in enumerate(("first", "second", "third"))
    }


@pytest.fixture
def judges(unskilled) -> dict[str, pd.DataFrame]:
    """The same three, who also see which models people prefer."""
    return {
        name: table.assign(
            score_difference=table["score_difference"]
            + table["model_a"].map(SEEN)
            - table["model_b"].map(SEEN)
        )
        for name, table in unskilled.items()
    }


def test_common_battles_are_those_that_all_scored_in_one_order(judges) -> None:
    judges["second"] = judges["second"].drop(judges["second"].index[:5])
    common = common_battles(judges)
    assert set(common) == {"first", "second", "third"}
    ids = [table["battle_id"].tolist() for table in common.values()]
    assert ids[0] == ids[1] == ids[2]
    assert set(ids[0]) == set(judges["second"]["battle_id"])


def test_a_judge_that_scored_too_few_battles_is_left_out(judges) -> None:
    judges["second"] = judges["second"].head(47)  # of 60: less than 80 %
    assert set(common_battles(judges)) == {"first", "third"}


def test_a_judge_of_other_votes_is_left_out(judges) -> None:
    stale = judges["third"]
    judges["third"] = stale.assign(human_outcome=1 - stale["human_outcome"])
    assert set(common_battles(judges)) == {"first", "second"}
    assert common_battles({}) == {}


def test_the_board_has_a_leaderboards_columns_and_a_row_in_the_comparison(judges) -> None:
    table, said = pooled_board(common_battles(judges), RATING)
    assert list(table)[: len(Leaderboard._fields)] == list(Leaderboard._fields)
    assert sorted(table["model"]) == ["ant", "bee", "cat", "dog"]
    assert table["n_scored"].eq(60).all()
    assert said["evidence"] == ""  # no newcomer, and so none beyond all that people have rated
    row = compare_pooled(table, RATING)
    assert set(COMPARISON_COLUMNS) <= set(row)
    assert row["mae"].tolist() == pytest.approx([table["residual"].abs().mean()])
    assert row["judge"].tolist() == row["method"].tolist() == ["pooled"]


def test_judges_that_know_no_more_than_the_mean_have_no_ratings_together(unskilled) -> None:
    candidates = {"newt": {name: played_by("newt", own) for name, own in unskilled.items()}}
    table, _ = pooled_board(common_battles(unskilled), RATING, candidates)
    board = table.set_index("model")
    assert sorted(board.index) == ["ant", "bee", "cat", "dog", "newt"]
    assert board["judge_rating"].isna().all()
    assert board["flags"].str.startswith("withheld: skill -").all()
    assert board.loc["newt", "flags"].endswith(";candidate;no-votes")
    np.testing.assert_array_equal(board["rating"], board["human_rating"])


@pytest.mark.parametrize("n_judges", [0, 1])
def test_fewer_than_two_judges_make_an_empty_board_with_a_note(judges, n_judges: int) -> None:
    one = dict(list(common_battles(judges).items())[:n_judges])
    whole, _ = pooled_board(common_battles(judges), RATING)
    table, said = pooled_board(one, RATING)
    assert "takes two judges" in said["note"]
    assert table.empty
    assert list(table) == list(whole)
    assert compare_pooled(table, RATING).empty


def test_battles_without_votes_make_an_empty_board_with_a_note(judges) -> None:
    unvoted = {name: table.assign(human_outcome=np.nan) for name, table in judges.items()}
    table, said = pooled_board(common_battles(unvoted), RATING)
    assert table.empty
    assert "nobody voted" in said["note"]


# ------------------------------------------------------------------ candidates


def played_by(name: str, scored: pd.DataFrame) -> pd.DataFrame:
    """Scored battles of a candidate that does what dog did, in battles of its own."""
    own = scored[scored["model_a"].eq("dog") | scored["model_b"].eq("dog")]
    renamed = own.replace({"model_a": {"dog": name}, "model_b": {"dog": name}})
    ids = f"{name}-" + own["battle_id"]
    return renamed.assign(battle_id=ids, human_outcome=np.nan, candidate=name)


def test_a_candidate_of_two_equal_judges_is_placed_as_by_the_gap_of_one(judges) -> None:
    common = common_battles(dict.fromkeys(("this", "that"), judges["first"]))
    own = played_by("newt", judges["first"])
    candidates = {"newt": {"this": own, "that": own.sample(frac=1, random_state=1)}}
    table, said = pooled_board(common, RATING, candidates)
    row = table.set_index("model").loc["newt"]
    alone = place_newcomer(common["this"], "newt", RATING, own)
    by_gap = alone.method == "gap"
    assert row["rating"] == pytest.approx(alone.rating[by_gap].item())
    assert row["std_error_analytic"] == pytest.approx(alone.std_error_analytic[by_gap].item())
    assert (row["flags"], row["n_battles"]) == ("candidate;no-votes", 30)
    assert row["judges"] == "that, this"
    assert row["basis"].endswith("gap of that, this")
    assert said["not_placed"] == {}


def test_candidates_move_no_rating_of_the_others_and_no_figure(judges) -> None:
    common = common_battles(judges)
    candidates = {"newt": {name: played_by("newt", own) for name, own in judges.items()}}
    before, _ = pooled_board(common, RATING)
    after, _ = pooled_board(common, RATING, candidates)
    others = after[after["model"].ne("newt")].reset_index(drop=True)
    fixed = before.columns.drop(["rank", "best_rank", "worst_rank"])
    pd.testing.assert_frame_equal(others[fixed], before[fixed])
    assert after["rank"].tolist() == [1, 2, 3, 4, 5]
    pd.testing.assert_frame_equal(compare_pooled(after, RATING), compare_pooled(before, RATING))


def test_a_candidate_that_only_some_judges_rated_is_named_without_a_rating(judges) -> None:
    own = {name: played_by("newt", table) for name, table in judges.items()}
    few = {**own, "second": own["second"].head(20)}  # of 30: less than 80 %
    del own["third"]
    table, said = pooled_board(common_battles(judges), RATING, {"eft": {}, "newt": own, "olm": few})
    left_out = table[table["flags"].str.startswith("candidate")].set_index("model")
    assert left_out["rating"].isna().all()
    assert set(left_out["flags"]) == {"candidate;no-votes;not-by-all-judges"}
    assert said["not_placed"] == {
        "eft": "not rated by first, second, third",
        "newt": "not rated by third",
        "olm": "on other battles by second",
    }


def test_a_candidate_counts_as_rated_where_its_row_of_the_board_has_a_rating() -> None:
    flags = ["", "candidate;no-votes", "candidate;no-votes;not-judged", "no-votes"]
    board = pd.DataFrame(
        {"model": ["ant", "newt", "olm", "bee"], "rating": [1.0, 2.0, np.nan, 3.0], "flags": flags}
    )
    scores = pd.DataFrame({"battle_id": ["1", "2"], "candidate": ["newt", "olm"]})
    found = candidate_tables({"first": board}, {"first": scores})
    assert {name: {*own} for name, own in found.items()} == {"newt": {"first"}, "olm": set()}
    assert found["newt"]["first"]["battle_id"].tolist() == ["1"]


def test_the_table_of_a_corpus_holds_the_candidates_of_its_judges(
    judges, tmp_path, monkeypatch
) -> None:
    entry = "c: {reader: battles, location: x, rating: {n_resamples: 0}}"
    catalog = catalog_of(tmp_path, corpora=entry)
    board = pd.DataFrame(
        {"model": ["ant", "newt"], "rating": [1.0, 2.0], "flags": ["", "candidate;no-votes"]}
    )
    keys = {name: corpus_judge_key("c", name) for name in judges}
    monkeypatch.setattr(pooled, "score_candidates", lambda _battles, scored: scored)
    with dg.DagsterInstance.ephemeral() as instance:
        register(instance, corpora=["c"], judges=judges)
        made = pooled_leaderboard(
            dg.build_asset_context(partition_key="c", instance=instance),
            leaderboard=dict.fromkeys(keys.values(), board),
            scored_battles={key: judges[name] for name, key in keys.items()},
            judge_gate={},
            candidate_battles=None,
            candidate_verdicts={key: played_by("newt", judges[name]) for name, key in keys.items()},
            catalog=catalog,
        )
    assert set(made.value["model"]) == {"ant", "bee", "cat", "dog", "newt"}
    assert made.value["rating"].notna().all()
    assert made.metadata["judges"] == ["first", "second", "third"]


def icc_3_k(panel: pd.DataFrame) -> float:
    """Return the reliability of the mean of all runs, by pingouin."""
    table = pingouin.intraclass_corr(panel, "battle_id", "replicate", "score_difference")
    return float(table.set_index("Type").loc["ICC(C,k)", "ICC"])


def panel_of(scored: pd.DataFrame, noise: float) -> pd.DataFrame:
    """Return three runs of a judge whose scores differ by chance from run to run."""
    rng = np.random.default_rng(8)
    runs = [
        scored.assign(
            replicate=run,
            score_difference=scored["score_difference"] + rng.normal(0, noise, len(scored)),
        )
        for run in range(3)
    ]
    return pd.concat(runs, ignore_index=True)


def test_weak_judges_are_not_pooled_and_named(judges, tmp_path) -> None:
    """The published line is an ICC(3,k) of 0.90; here one judge lies above and one below it."""
    tables = {name: table.assign(judge=name) for name, table in judges.items()}
    noises = {"first": 0.1, "second": 2.0}
    panels = {name: panel_of(judges[name], noise) for name, noise in noises.items()}
    weak = icc_3_k(panels["second"])
    assert weak < 0.90 < icc_3_k(panels["first"])
    settings = judgeline.Settings(n_resamples=0)
    found = judgeline.pool(list(tables.values()), settings, panels=panels)
    assert found.attrs["judges"] == ["first", "third"]
    assert found.attrs["left_out"] == {"second": f"icc_average {weak:.2f} < 0.90"}
    two = judgeline.pool([tables["first"], tables["third"]], settings)
    pd.testing.assert_frame_equal(found, two)
    every = judgeline.pool(list(tables.values()), settings, panels=panels, least_icc=None)
    assert every.attrs == {"judges": ["first", "second", "third"], "left_out": {}}
    with pytest.raises(ValueError, match=r"two strong judges at least, and second has icc_average"):
        judgeline.pool([tables["first"], tables["second"]], settings, panels=panels)
    with pytest.raises(ValueError, match="panels has 'x', and the judges are first"):
        judgeline.pool(list(tables.values()), settings, panels={"x": panels["first"]})
    bare = panels["first"].drop(columns="replicate")
    with pytest.raises(ValueError, match="panel of first has no column replicate"):
        judgeline.pool(list(tables.values()), settings, panels={"first": bare})


@pytest.mark.parametrize("limit", [0.9, None])
def test_the_lineage_pools_strong_judges_unless_the_gate_has_no_limit(
    judges, tmp_path, limit: float | None
) -> None:
    catalog = catalog_of(tmp_path, corpora="c: {reader: battles, location: x}")
    board = pd.DataFrame({"model": ["ant"], "rating": [1.0], "flags": [""]})
    keys = {name: corpus_judge_key("c", name) for name in judges}
    measured = {"first": 0.95, "second": 0.85, "third": np.nan}
    gates = {
        keys[name]: as_table(
            hold_to({"icc_average": Measurement(v, "")}, thresholds={"icc_average": limit})
        )
        for name, v in measured.items()
    }
    with dg.DagsterInstance.ephemeral() as instance:
        register(instance, corpora=["c"], judges=judges)
        made = pooled_leaderboard(
            dg.build_asset_context(partition_key="c", instance=instance),
            leaderboard=dict.fromkeys(keys.values(), board),
            scored_battles={key: judges[name] for name, key in keys.items()},
            judge_gate=gates,
            candidate_battles=None,
            candidate_verdicts={},
            catalog=catalog,
        )
    weak = [] if limit is None else ["second"]
    assert made.metadata["judges"] == sorted({*judges} - {*weak})
    named = {name: why for name, why in made.metadata.items() if name.startswith("weak")}
    assert named == {f"weak {name}": "icc_average 0.85 < 0.90" for name in weak}
    assert made.metadata["too_few_battles"] == made.metadata["left_out"] == []


def test_tables_of_judges_are_pooled_in_one_call(judges) -> None:
    """Rows in any order and seat are the same battles, by id or by question and models."""
    whole, _ = pooled_board(common_battles(judges), RATING)
    named = judgeline.pool(list(judges.values()), judgeline.Settings(n_resamples=0))
    columns = ["model", "rating", "lower", "upper", "human_rating", "n_votes"]
    pd.testing.assert_frame_equal(named[columns], whole[columns], check_dtype=False)
    scores = ["difference_ab", "difference_ba", "score_difference"]
    unnamed = [table.drop(columns="battle_id") for table in judges.values()]
    turned = unnamed[0].rename(columns={"model_a": "model_b", "model_b": "model_a"})
    turned[scores] = -turned[[scores[1], scores[0], scores[2]]].to_numpy()
    outcomes = ["human_outcome", "judge_outcome", "recorded_outcome"]
    turned[outcomes] = 1 - turned[outcomes]
    tables = [pd.concat([unnamed[0][::2], turned[1::2]]), *unnamed[1:]]
    again = judgeline.pool(tables, judgeline.Settings(n_resamples=0))
    pd.testing.assert_frame_equal(again[columns], whole[columns], check_dtype=False)
    for wrong in (tables[:1], tables[0], "x.csv"):
        with pytest.raises(ValueError, match="a list of two tables or files at least"):
            judgeline.pool(wrong)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"battle_id": lambda t: t["battle_id"].where(t.index % 2 == 0)}, "no battle_id of their"),
        ({"battle_id": None, "question_id": None}, "cannot be told apart"),
        ({"battle_id": None, "question_id": "q"}, "the same question and models as another"),
    ],
)
def test_battles_that_cannot_be_told_apart_are_not_pooled(judges, changes, told: str) -> None:
    """Each would be counted many times, or be matched with another by its row."""
    tables = [
        table.assign(**changes)
        if "battle_id" not in changes or changes["battle_id"]
        else table.drop(columns="battle_id").assign(question_id=changes["question_id"])
        for table in (one.reset_index(drop=True) for one in judges.values())
    ]
    with pytest.raises(ValueError, match=told):
        judgeline.pool(tables, judgeline.Settings(n_resamples=0))
