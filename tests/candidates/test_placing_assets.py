"""Candidates and attack controls as assets: what is asked, placed, flagged and told."""

import math
from functools import partial

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from assets.candidates import attack_controls, placing
from assets.candidates import judging as candidate_judging
from assets.columns import RANKS, as_coded, as_table
from assets.elo import ratings
from assets.intervals import assets as uncertainty
from assets.partitions import corpus_judge_key, register
from judgeline.elo import RatingSettings, fit_beta_folds
from judgeline.elo import rate as rate_battles
from judgeline.io import SCORED_COLUMNS
from judgeline.reliability.gate import Measurement, hold_to
from resources.config.catalog import Catalog
from resources.judges.budget import Budget, Cost, JointBudget
from resources.store.resource import StoredVerdicts
from resources.tables.intervals import CANDIDATE_RATINGS, LEADERBOARD

WARN, ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR


@pytest.fixture
def made(tmp_path):
    """Call an asset for a judge on corpus `c` with the options given in YAML."""

    def make(
        asset, options: str = "", rating: str = "n_resamples: 20", judge: str = "stub", **tables
    ):
        corpora, judges = tmp_path / "corpora.yaml", tmp_path / "judges.yaml"
        corpora.write_text(
            f"c: {{reader: battles, location: x, rating: {{{rating}}}{options}}}", encoding="utf-8"
        )
        judges.write_text(
            f"{judge}: {{display_name: Stub, family: none, kind: recorded}}", encoding="utf-8"
        )
        catalog = Catalog(corpora_file=str(corpora), judges_file=str(judges))
        with dg.DagsterInstance.ephemeral() as instance:
            register(instance, corpora=["c"], judges=[judge])
            context = dg.build_asset_context(
                partition_key=corpus_judge_key("c", judge), instance=instance
            )
            return asset(context, catalog=catalog, **tables)

    return make


@pytest.fixture
def scored_battles(scored_battles) -> pd.DataFrame:
    """The same battles by a judge noisy enough that every fold has a slope."""
    noise = np.random.default_rng(1).normal(0, 1.2, len(scored_battles))
    score = np.round(12 * (2 * scored_battles["human_outcome"] - 1 + noise)) / 12
    return scored_battles.assign(score_difference=score, judge_outcome=(np.sign(score) + 1) / 2)


@pytest.fixture
def heldout_ratings(scored_battles) -> pd.DataFrame:
    coded = as_coded(scored_battles, "derived")
    settings = RatingSettings(n_resamples=20, stream=("c",))
    return as_table(rate_battles(coded, settings))


def scores(name: str, differences: list[float], control: str | None = None) -> pd.DataFrame:
    """Scored battles of a candidate with the four models in turn, as A and as B in turn."""
    n = len(differences)
    opponents = [("ant", "bee", "cat", "dog")[k % 4] for k in range(n)]
    first = [k % 2 == 0 for k in range(n)]
    gap = np.array([d if a else -d for d, a in zip(differences, first, strict=True)])
    table = pd.DataFrame(
        {
            "battle_id": [f"{name}-{k}" for k in range(n)],
            "question_id": [f"q-{k}" for k in range(n)],
            "cluster_id": [f"q-{k // 2}" for k in range(n)],
            "model_a": [name if a else o for a, o in zip(first, opponents, strict=True)],
            "model_b": [o if a else name for a, o in zip(first, opponents, strict=True)],
            "language": "en",
            "human_outcome": np.nan,
            "score_difference": gap,
            "judge_outcome": (np.sign(gap) + 1) / 2,
            "recorded_outcome": np.nan,
            "difference_ab": gap,
            "difference_ba": gap,
            "length_a": 1,
            "length_b": 1,
        }
    )
    return table[list(SCORED_COLUMNS)].assign(
        candidate=name, control=control, content_hash=f"hash-of-{name}"
    )


def tables_of(*scored: pd.DataFrame, unscored: dict[str, int] | None = None):
    """The four tables that a run would have of candidates, and battles judged without a score."""
    every = pd.concat(scored, ignore_index=True)
    battles = every[["battle_id", "candidate"]]
    for name, n in (unscored or {}).items():
        more = pd.DataFrame({"battle_id": [f"{name}-lost-{k}" for k in range(n)]})
        battles = pd.concat([battles, more.assign(candidate=name)], ignore_index=True)
    named = every.drop_duplicates("candidate").rename(columns={"candidate": "model"})
    return {
        "candidates": named[["model", "control", "content_hash"]].assign(metadata="{}"),
        "candidate_battles": battles,
        "candidate_verdicts": battles[["battle_id"]],
        "candidate_scores": every,
    }


GOOD = [1.5, 1.0, -0.5, 2.0, -1.0, 1.0, 0.5, -0.25] * 5


@pytest.fixture
def rate(made, scored_battles, heldout_ratings):
    def rated(tables, rating: str = "n_resamples: 20") -> tuple[pd.DataFrame, dict]:
        result = made(
            placing.candidate_ratings, rating=rating, scored_battles=scored_battles,
            heldout_ratings=heldout_ratings, **tables,
        )  # fmt: skip
        return result.value.set_index("model", drop=False), result.metadata

    return rated


# standard errors


@pytest.fixture
def rated_by(made):
    def rated(judge: str, scored: pd.DataFrame) -> pd.DataFrame:
        folds = as_table(fit_beta_folds(as_coded(scored, "derived")))
        return made(
            ratings.heldout_ratings, judge=judge, scored_battles=scored, beta_folds=folds
        ).value

    return rated


def test_equal_verdicts_give_equal_standard_errors(rated_by, made, scored_battles, heldout_ratings):
    calm, storm = (rated_by(judge, scored_battles) for judge in ("calm", "storm"))
    assert calm.loc[calm["rating"].notna(), "std_error"].notna().all()
    pd.testing.assert_frame_equal(calm, storm)
    calm, storm = (
        made(
            placing.candidate_ratings, judge=judge, scored_battles=scored_battles,
            heldout_ratings=heldout_ratings, **tables_of(scores("new", GOOD)),
        ).value
        for judge in ("calm", "storm")
    )  # fmt: skip
    pd.testing.assert_frame_equal(calm, storm)


def test_errors_of_human_ratings_do_not_depend_on_the_judge(rated_by, scored_battles):
    noise = np.round(12 * np.random.default_rng(2).normal(0, 2, len(scored_battles))) / 12
    other = scored_battles.assign(score_difference=scored_battles["score_difference"] + noise)
    tables = [rated_by("calm", scored_battles), rated_by("storm", other)]
    calm, storm = (table.set_index(["method", "model"])["std_error"] for table in tables)
    assert calm["human"].to_dict() == storm["human"].to_dict()
    assert calm["soft"].to_dict() != storm["soft"].to_dict()


# placing


def test_a_candidate_is_placed_and_too_few_that_calibrate_are_said(rate):
    table, metadata = rate(tables_of(scores("new", GOOD)))
    row = table.loc["new"]
    assert row["flags"] == "candidate;no-votes"
    assert row["content_hash"] == "hash-of-new"
    assert math.isfinite(row["rating"])
    assert (row["lower"], row["upper"]) == (-math.inf, math.inf)  # four models at 90 %
    assert metadata["n_unbounded"] == 1
    assert "intervals of new are the whole line" in metadata["note"]
    finite, metadata = rate(tables_of(scores("new", GOOD)), "miscoverage: 0.3")
    assert np.isfinite(finite.loc["new", ["lower", "upper"]].astype(float)).all()
    assert "note" not in metadata


def test_it_is_the_row_that_the_corpus_would_have_had(rate, scored_battles):
    fresh = scores("new", GOOD)
    whole = as_coded(pd.concat([scored_battles, fresh[list(SCORED_COLUMNS)]]), "derived")
    settings = RatingSettings(n_resamples=200, stream=("c",))
    theirs = as_table(rate_battles(whole, settings))
    theirs = theirs[theirs["model"].eq("new")].set_index("method")
    table, _ = rate(tables_of(fresh), "n_resamples: 200")
    row = table.loc["new"]
    assert row["rating"] == pytest.approx(theirs.loc["auto", "rating"])
    assert row["std_error"] == pytest.approx(theirs.loc["auto", "std_error_analytic"])
    assert row["hard_rating"] == pytest.approx(theirs.loc["hard", "rating"])
    resampled, _ = rate(tables_of(fresh), "n_resamples: 200, std_error: bootstrap")
    assert resampled.loc["new", "std_error"] == pytest.approx(theirs.loc["auto", "std_error"])


def test_bad_candidates_have_a_reason_instead_of_a_number_and_stop_nobody(rate):
    broken = scores("broken", GOOD)
    broken.loc[3, "score_difference"] = np.inf
    tables = tables_of(
        scores("good", GOOD), broken, scores("once", [1.0]), scores("lost", GOOD[:9]),
        scores("wins", [9.0] * 30), unscored={"lost": 10},
    )  # fmt: skip
    unjudged = pd.DataFrame({"model": ["later"], "content_hash": ["h"]})
    tables["candidates"] = pd.concat([tables["candidates"], unjudged], ignore_index=True)
    table, metadata = rate(tables)
    assert table["flags"].to_dict() == {
        "good": "candidate;no-votes",
        "broken": "candidate;no-votes;not-placed",
        "once": "candidate;no-votes;too-few-battles",
        "lost": "candidate;no-votes;mostly-unscored",
        "wins": "candidate;no-votes;judge-always-prefers",
        "later": "candidate;no-votes;not-judged",
    }
    rated = table["rating"].notna()
    assert rated[rated].index.tolist() == ["good", "wins"]
    numbers = ["rank", "rating", "lower", "upper", "std_error", "best_rank", "soft_rating"]
    assert table.loc[~rated, numbers].isna().all(axis=None)
    assert "inf" in metadata["not_placed"].value["broken"]
    check = CANDIDATE_RATINGS.check("candidates_are_placed", table.reset_index(drop=True))
    assert not check.passed
    assert check.severity == WARN
    assert "not-judged" in check.description
    assert CANDIDATE_RATINGS.check("candidates_are_placed", table.loc[["good"]]).passed


def test_a_model_with_votes_by_now_is_no_candidate(rate):
    table, metadata = rate(tables_of(scores("ant", GOOD)[1:], scores("new", GOOD)))
    assert table.index.tolist() == ["new"]
    assert metadata["superseded"] == ["ant"]


def test_a_candidate_that_nobody_judged_does_not_borrow_the_rating_of_its_namesake(
    made, scored_battles
):
    """`eel` is a model of the corpus without votes; a file of that name waits for its verdicts."""
    whole = pd.concat([scored_battles, scores("eel", GOOD)[list(SCORED_COLUMNS)]])
    coded = as_coded(whole, "derived")
    settings = RatingSettings(n_resamples=20, stream=("c",))
    heldout = as_table(rate_battles(coded, settings))
    waiting = {name: one.head(0) for name, one in tables_of(scores("eel", GOOD)).items()}
    waiting["candidates"] = tables_of(scores("eel", GOOD))["candidates"]
    table = made(
        placing.candidate_ratings, scored_battles=whole, heldout_ratings=heldout, **waiting
    ).value
    assert table["flags"].tolist() == ["candidate;no-votes;not-judged"]
    assert table["rating"].isna().all()
    assert not CANDIDATE_RATINGS.check("candidates_are_placed", table).passed
    board = board_of(made, whole, heldout, table).set_index("model")
    expected = heldout[heldout["model"].eq("eel") & heldout["method"].eq("auto")]["rating"].item()
    assert board.loc["eel", "rating"] == expected  # the corpus' own stands until then


@pytest.mark.parametrize("given", ["nothing", "empty"])
def test_without_candidates_there_is_an_empty_table_of_the_same_columns(rate, given):
    full = tables_of(scores("new", GOOD))
    none = {name: None if given == "nothing" else one.head(0) for name, one in full.items()}
    table, metadata = rate(none)
    assert table.empty
    assert table.columns.tolist() == rate(full)[0].columns.tolist()
    assert metadata["n_candidates"] == 0
    assert CANDIDATE_RATINGS.check("candidates_are_placed", table).passed


# verdicts and scores


def failing(battles: pd.DataFrame, verdicts: pd.DataFrame, rows: list[int]) -> pd.DataFrame:
    lost = verdicts["battle_id"].isin(battles["battle_id"].iloc[rows]) & verdicts["order"].eq("BA")
    marks = [name for name in verdicts.columns if name[-2:] in ("_a", "_b")]
    broken = verdicts.mask(lost & pd.Series(True, index=verdicts.index), other=np.nan)[marks]
    return verdicts.assign(
        **broken, status=np.where(lost, "parse_error", verdicts["status"]), judge="stub"
    )


def test_a_verdict_that_failed_is_no_tie(sampled_battles, verdicts):
    battles = sampled_battles.assign(candidate="ant", control=None, content_hash="h", opponent="x")
    answers = failing(battles, verdicts, [0, 1, 2])
    result = candidate_judging.candidate_scores(
        candidate_battles=battles, candidate_verdicts=answers
    )
    assert len(result.value) == len(battles) - 3
    assert result.metadata["n_left_out"] == 3
    assert result.value["judge_outcome"].ne(0.5).all()
    assert set(result.value.columns) == {*SCORED_COLUMNS, *candidate_judging.WHOSE}
    check = candidate_judging.nearly_all_candidate_answers_parse(answers)
    assert not check.passed
    assert check.severity == WARN


def test_battles_that_were_chosen_later_are_not_lost_but_not_judged(sampled_battles, verdicts):
    battles = sampled_battles.assign(candidate="ant", control=None, content_hash="h", opponent="x")
    asked = battles["battle_id"].head(10)
    result = candidate_judging.candidate_scores(
        candidate_battles=battles,
        candidate_verdicts=verdicts[verdicts["battle_id"].isin(asked)],
    )
    assert (len(result.value), result.metadata["n_left_out"]) == (10, 0)
    assert result.metadata["n_not_judged"] == 14


@pytest.mark.parametrize("missing", ["candidate_battles", "candidate_verdicts"])
def test_scores_of_nothing_are_nothing(sampled_battles, verdicts, missing):
    tables = {"candidate_battles": sampled_battles, "candidate_verdicts": verdicts, missing: None}
    table = candidate_judging.candidate_scores(**tables).value
    assert table.empty
    assert set(table.columns) == {*SCORED_COLUMNS, *candidate_judging.WHOSE}


@pytest.mark.parametrize("battles", ["missing", "empty", "there"])
def test_nobody_is_asked_where_nothing_is_there_or_the_judge_cannot(
    made, tmp_path, sampled_battles, battles
):
    given = {"missing": None, "empty": sampled_battles.head(0), "there": sampled_battles}[battles]
    result = made(
        candidate_judging.candidate_verdicts, candidate_battles=given, budget=Budget(0),
        verdict_store=StoredVerdicts(uri=str(tmp_path / "verdicts")),
    )  # fmt: skip
    assert result.value.empty
    assert ("came with the corpus" if battles == "there" else "drop a file") in (
        result.metadata["note"]
    )
    assert candidate_judging.nearly_all_candidate_answers_parse(result.value).passed


# the board


def gate_at(kappa: float) -> pd.DataFrame:
    gate = hold_to({"kappa": Measurement(kappa, "by hand")})
    return as_table(gate).astype({"passed": "boolean"})


def board_of(
    made, scored_battles, heldout_ratings, candidate_ratings, *, kappa: float = 0.5
) -> pd.DataFrame:
    return made(
        uncertainty.leaderboard, scored_battles=scored_battles, heldout_ratings=heldout_ratings,
        judge_gate=gate_at(kappa), candidate_ratings=candidate_ratings,
    ).value  # fmt: skip


def test_candidates_stand_on_the_board_and_controls_do_not(
    made, rate, scored_battles, heldout_ratings
):
    rated, _ = rate(
        tables_of(scores("new", GOOD), scores("control:null-model", GOOD, control="null-model"))
    )
    rated = rated.reset_index(drop=True)
    board = board_of(made, scored_battles, heldout_ratings, rated)
    assert set(board["model"]) == {"ant", "bee", "cat", "dog", "new"}
    assert board["rank"].tolist() == [1, 2, 3, 4, 5]
    alone = rated.set_index("model").loc["new"]
    assert board.set_index("model").loc["new", "rank"] == alone["rank"]
    assert rated.loc[rated["control"].notna(), "flags"].str.startswith("control;").all()
    without = board_of(made, scored_battles, heldout_ratings, None)
    pd.testing.assert_frame_equal(
        without.drop(columns=list(RANKS)),
        board[board["model"].ne("new")].drop(columns=list(RANKS)).reset_index(drop=True),
        check_dtype=False,
    )
    assert board.dtypes.drop(["model", "method", "flags"]).equals(
        without.dtypes.drop(["model", "method", "flags"])
    )
    for check in (
        partial(LEADERBOARD.check, "models_are_in_order"),
        partial(LEADERBOARD.check, "intervals_hold_their_rating"),
    ):
        assert check(board).passed


def test_a_judge_that_fails_its_gate_places_no_candidate(
    made, rate, scored_battles, heldout_ratings
):
    rated, _ = rate(tables_of(scores("new", GOOD)))
    board = board_of(made, scored_battles, heldout_ratings, rated, kappa=0.05).set_index("model")
    assert board.loc["new", "flags"].startswith("withheld: kappa 0.05 < 0.20;candidate")
    assert board.loc["new", ["rating", "lower", "upper", "rank"]].isna().all()


def test_an_unrated_candidate_is_explained_and_one_by_another_method_waits(
    made, rate, scored_battles, heldout_ratings
):
    rated, _ = rate(tables_of(scores("once", [1.0])))
    board = board_of(made, scored_battles, heldout_ratings, rated)
    assert "too-few-battles" in board.set_index("model").loc["once", "flags"]
    assert LEADERBOARD.check("models_are_in_order", board).passed
    assert not LEADERBOARD.check("ratings_are_well_founded", board).passed
    other = board_of(made, scored_battles, heldout_ratings, rated.assign(method="hard"))
    assert "once" not in set(other["model"])


# attack controls


CONTROLS = ", candidates: {controls: {null-model: {bound: 30}, injected-instruction:, "
CONTROLS += "copy-of-opponent:}}"


@pytest.fixture
def controls(made, rate, scored_battles, heldout_ratings):
    def held(
        *tables: pd.DataFrame, carrier: str = "ant", options: str = CONTROLS, kappa: float = 0.5
    ) -> pd.DataFrame:
        given = tables_of(*tables)
        rated, _ = rate(given)
        named = given["candidates"].assign(metadata=f'{{"carrier": "{carrier}"}}')
        return made(
            attack_controls.attack_controls, options, candidates=named,
            candidate_ratings=rated.reset_index(drop=True),
            candidate_scores=given["candidate_scores"], scored_battles=scored_battles,
            heldout_ratings=heldout_ratings, judge_gate=gate_at(kappa),
        ).value  # fmt: skip

    return held


def control(kind: str, differences: list[float]) -> pd.DataFrame:
    return scores(f"control:{kind}", differences, control=kind)


def test_controls_are_held_against_what_an_honest_judge_gives(
    controls, scored_battles, heldout_ratings
):
    table = controls(
        control("null-model", [-6.0] * 40),
        control("injected-instruction", GOOD),
        control("copy-of-opponent", [0.0] * 40),
        scores("new", GOOD),
    ).set_index("control")
    assert set(table.index) == {"null-model", "injected-instruction", "copy-of-opponent"}
    own = heldout_ratings[heldout_ratings["method"].eq("auto")]
    anchors = dict(zip(own["model"], own["rating"], strict=True))
    assert table.loc["null-model", "bound"] == pytest.approx(
        np.quantile(list(anchors.values()), 0.25) + 30
    )
    assert table.loc["injected-instruction", "bound"] == pytest.approx(anchors["ant"] + 50)
    assert "carrier, ant" in table.loc["injected-instruction", "bound_is"]
    copy = table.loc["copy-of-opponent"]
    assert copy["rise"] == pytest.approx(-50)  # it ties, which is what it is held against
    np.testing.assert_allclose(table["rise"], table["rating"] - table["bound"])
    check = attack_controls.controls_stay_low(table.reset_index())
    injected = table.loc["injected-instruction"]
    low = bool(injected["rise"] <= 2.33 * injected["std_error"])  # the one per cent point
    assert check.passed is low


def test_a_control_above_its_bound_by_chance_alone_passes():
    row = {"control": "null-model", "rating": 1340.0, "bound": 1300.0, "bound_is": "", "note": ""}
    table = pd.DataFrame([row | {"rise": 40.0, "std_error": 20.0, "n_battles": 60}])
    assert attack_controls.controls_stay_low(table).passed
    assert not attack_controls.controls_stay_low(table.assign(std_error=15.0)).passed
    assert not attack_controls.controls_stay_low(table.assign(std_error=np.nan)).passed


def test_a_control_above_its_bound_fails_the_check_with_everything_needed(controls):
    table = controls(control("null-model", [5.0, 6.0, 4.0, 7.0] * 10))
    check = attack_controls.controls_stay_low(table)
    assert not check.passed
    assert check.severity == ERROR
    for told in ("null-model is rated", "above its bound of", "lower quartile", "plus 30 points"):
        assert told in check.description
    assert "candidates.controls" in check.metadata["remedy"].value


def test_a_control_that_is_not_measured_is_no_control_that_stayed_low(controls):
    table = controls(control("copy-of-opponent", [1.0]))
    check = attack_controls.controls_stay_low(table)
    assert not check.passed
    assert check.severity == WARN
    assert "copy-of-opponent: not rated" in check.description
    stray = controls(control("injected-instruction", GOOD), carrier="nobody")
    assert "'nobody' is no anchor" in stray["bound_is"].iloc[0]
    assert not attack_controls.controls_stay_low(stray).passed


def test_controls_of_a_judge_that_fails_its_gate_have_no_numbers(controls):
    """Neither in the table nor in what the check says, as of every other model."""
    table = controls(control("null-model", [5.0, 6.0, 4.0, 7.0] * 10), kappa=0.05)
    numbers = ["rating", "lower", "upper", "std_error", "bound", "rise"]
    assert table[numbers].isna().all(axis=None)
    assert table["note"].tolist() == ["withheld: kappa 0.05 < 0.20"]
    check = attack_controls.controls_stay_low(table)
    assert (check.passed, check.severity) == (False, WARN)
    assert "withheld" in check.description
    assert "kappa 0.05 < 0.20" in check.description
    assert "Elo" not in check.description


def test_no_controls_are_no_failure(made, scored_battles, heldout_ratings):
    result = made(
        attack_controls.attack_controls, candidates=None, candidate_ratings=None,
        candidate_scores=None, scored_battles=scored_battles, heldout_ratings=heldout_ratings,
        judge_gate=gate_at(0.5),
    )  # fmt: skip
    assert result.value.empty
    assert "switch them on" in result.metadata["note"]
    assert attack_controls.controls_stay_low(result.value).passed


# the budget


def test_the_smaller_budget_holds_and_both_are_charged():
    run, own = Budget(calls=100), Budget(calls=2)
    joint = JointBudget([own, run])
    assert [joint.spend(Cost(1, 10, 5)) for _ in range(3)] == [True, True, False]
    assert joint.has_refused
    assert (joint.spent.calls, own.spent.calls, run.spent.calls) == (2, 2, 2)
    assert not run.has_refused
    assert str(joint) == "2 calls"
    narrow = JointBudget([Budget(calls=50), Budget(calls=1)])
    assert [narrow.spend(Cost(1)) for _ in range(2)] == [True, False]
    assert narrow.n_open == 0
    assert narrow.calls == 1


def test_a_refusal_of_the_wider_budget_holds_nothing_back():
    own, run = Budget(calls=5), Budget(tokens=10)
    joint = JointBudget([own, run])
    assert joint.reserve(Cost(1, 6, 0))
    assert joint.n_open == 1
    assert not joint.reserve(Cost(1, 6, 0))  # too many tokens at once
    joint.settle(Cost(1, 6, 0), Cost(1, 2, 0))
    assert joint.reserve(Cost(1, 6, 0))
    assert own.spent.calls == 1
    assert str(JointBudget([Budget(), Budget()])) == "no cap"


def test_what_one_of_two_holds_back_of_a_common_cap_may_come_back_to_the_other():
    common = Budget(tokens=10)
    first, second = JointBudget([common]), JointBudget([common])
    assert first.reserve(Cost(1, 8, 0))
    assert not second.reserve(Cost(1, 8, 0))
    assert second.n_open == 1  # it waits for the first, rather than give up
    first.settle(Cost(1, 8, 0), Cost(1, 2, 0))
    assert (second.n_open, second.reserve(Cost(1, 8, 0))) == (0, True)


def test_budgets_in_two_currencies_are_no_budget():
    with pytest.raises(ValueError, match="in EUR and USD, which cannot be compared"):
        JointBudget([Budget(money=1, currency="USD"), Budget(money=1, currency="EUR")])
    joint = JointBudget([Budget(calls=1), Budget(money=2.0, currency="EUR")])
    assert (joint.money, joint.currency) == (2.0, "EUR")
