"""Candidates and attack controls as assets: what is asked, placed, flagged and told."""

import math
import re
from functools import partial

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from catalogs import catalog_of

from assets.candidates import assets as candidate_judging
from assets.candidates import placing
from assets.elo import ratings
from assets.intervals import assets as intervals
from assets.partitions import corpus_judge_key, register
from judgeline.elo import HeldOutRatings, RatingSettings, fit_beta_folds
from judgeline.elo import rate as rate_battles
from judgeline.intervals import calibrate_intervals
from judgeline.io import RANKS, as_coded, as_table, questions_of
from judgeline.judges.budget import Budget
from judgeline.reliability.gate import Measurement, hold_to
from judgeline.report import beyond_lines
from judgeline.steps import candidates as candidate_steps
from judgeline.steps.candidates import WHOSE, score_candidates
from judgeline.steps.step import as_columns
from judgeline.tables.candidates import CANDIDATE_RATINGS, CANDIDATE_VERDICTS
from judgeline.tables.intervals import LEADERBOARD
from judgeline.tables.judging import SCORED_COLUMNS
from resources.stores import StoredVerdicts
from resources.tables.expectations import result_of
from resources.tables.store import open_store

OF_SCORES = [*SCORED_COLUMNS, *WHOSE]
WARN, ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Call an asset for a judge on corpus `c` with the options given in YAML."""

    def make(asset, options="", rating="n_resamples: 20", judge="stub", **tables):
        if (scored := tables.pop("candidate_scores", None)) is not None:
            monkeypatch.setattr(candidate_steps, "score_candidates", lambda *_: scored)
        corpora = f"c: {{reader: battles, location: x, rating: {{{rating}}}{options}}}"
        judges = f"{judge}: {{display_name: Stub, family: none, kind: recorded}}"
        catalog = catalog_of(tmp_path, corpora=corpora, judges=judges)
        with dg.DagsterInstance.ephemeral() as instance:
            register(instance, corpora=["c"], judges=[judge])
            key = corpus_judge_key("c", judge)
            context = dg.build_asset_context(partition_key=key, instance=instance)
            if asset is intervals.leaderboard:
                tables["io_manager"] = open_store(str(tmp_path / "tables"))
            return asset(context, catalog=catalog, **tables)

    return make


@pytest.fixture
def scored_battles(scored_battles) -> pd.DataFrame:
    """The same battles by a judge noisy enough that every fold has a slope."""
    noise = np.random.default_rng(1).normal(0, 1.2, len(scored_battles))
    score = np.round(12 * (2 * scored_battles["human_outcome"] - 1 + noise)) / 12
    return scored_battles.assign(score_difference=score, judge_outcome=(np.sign(score) + 1) / 2)


def rated(battles: pd.DataFrame, n_resamples: int = 20) -> pd.DataFrame:
    settings = RatingSettings(n_resamples=n_resamples, stream=("c",))
    units = questions_of(battles)
    return as_table(rate_battles(as_coded(battles, "derived"), settings, cluster=units))


@pytest.fixture
def heldout_ratings(scored_battles) -> pd.DataFrame:
    return rated(scored_battles)


def scores(name: str, differences: list[float], control: str | None = None) -> pd.DataFrame:
    """Scored battles of a candidate with the four models in turn, as A and as B in turn."""
    n = len(differences)
    first = np.arange(n) % 2 == 0
    opponents = np.resize(["ant", "bee", "cat", "dog"], n)
    gap = np.where(first, differences, np.negative(differences))
    table = pd.DataFrame(
        {
            "battle_id": [f"{name}-{k}" for k in range(n)],
            "question_id": [f"q-{k}" for k in range(n)],
            "cluster_id": [f"q-{k // 2}" for k in range(n)],
            "model_a": np.where(first, name, opponents).astype(object),
            "model_b": np.where(first, opponents, name).astype(object),
            "language": "en",
            "category": None,
            "judge_outcome": (np.sign(gap) + 1) / 2,
            **dict.fromkeys(("human_outcome", "recorded_outcome"), np.nan),
            **dict.fromkeys(("score_difference", "difference_ab", "difference_ba"), gap),
            **dict.fromkeys(("length_a", "length_b", "markdown_a", "markdown_b"), 1),
        }
    )
    return table[list(SCORED_COLUMNS)].assign(
        candidate=name, control=control, content_hash=f"hash-of-{name}"
    )


def tables_of(*scored: pd.DataFrame, unscored: dict[str, int] | None = None):
    """The tables that a run would have of candidates, and battles judged without a score."""
    every = pd.concat(scored, ignore_index=True)
    battles = every[["battle_id", "candidate"]]
    for name, n in (unscored or {}).items():
        more = pd.DataFrame({"battle_id": [f"{name}-lost-{k}" for k in range(n)]})
        battles = pd.concat([battles, more.assign(candidate=name)], ignore_index=True)
    named = every.drop_duplicates("candidate").rename(columns={"candidate": "model"})
    return {
        "candidates": named[["model", "control", "content_hash"]].assign(
            family=None, metadata="{}"
        ),
        "candidate_battles": battles,
        "candidate_verdicts": battles[["battle_id"]],
        "candidate_scores": every,
    }


CONTROLS = ", candidates: {controls: {null-model: {bound: 30}, injected-instruction: }}"
GOOD = [1.5, 1.0, -0.5, 2.0, -1.0, 1.0, 0.5, -0.25] * 5


@pytest.fixture
def rate(made, scored_battles, heldout_ratings):
    def placed(tables, rating: str = "n_resamples: 20") -> tuple[pd.DataFrame, dict]:
        world = {"scored_battles": scored_battles, "heldout_ratings": heldout_ratings}
        result = made(placing.candidate_ratings, CONTROLS, rating=rating, **world, **tables)
        return result.value.set_index("model", drop=False), result.metadata

    return placed


# standard errors


def test_standard_errors_depend_on_verdicts_alone(made, scored_battles, heldout_ratings):
    def rated_by(judge: str, scored: pd.DataFrame) -> pd.DataFrame:
        folds = as_table(fit_beta_folds(as_coded(scored, "derived")))
        tables = {"scored_battles": scored, "beta_folds": folds}
        return made(ratings.heldout_ratings, judge=judge, **tables).value

    noise = np.round(12 * np.random.default_rng(2).normal(0, 2, len(scored_battles))) / 12
    other = scored_battles.assign(score_difference=scored_battles["score_difference"] + noise)
    calm, storm = (rated_by(judge, scored_battles) for judge in ("calm", "storm"))
    assert calm.loc[calm["rating"].notna(), "std_error"].notna().all()
    pd.testing.assert_frame_equal(calm, storm)
    both = (calm, rated_by("x", other))
    one, two = (table.set_index(["method", "model"])["std_error"] for table in both)
    assert one["human"].to_dict() == two["human"].to_dict()
    assert one["soft"].to_dict() != two["soft"].to_dict()
    world = {"scored_battles": scored_battles, "heldout_ratings": heldout_ratings}
    world |= tables_of(scores("new", GOOD))
    calm, storm = (made(placing.candidate_ratings, judge=one, **world) for one in ("calm", "storm"))
    pd.testing.assert_frame_equal(calm.value, storm.value)


# placing


def test_a_candidate_is_placed_and_too_few_that_calibrate_are_said(rate):
    table, metadata = rate(tables_of(scores("new", GOOD)))
    row = table.loc["new"]
    flags = "candidate;no-votes;beyond-anchors"  # no model of the four won as often
    assert (row["flags"], row["evidence"]) == (flags, "judge")
    assert row["content_hash"] == "hash-of-new"
    assert math.isfinite(row["rating"])
    assert (row["lower"], row["upper"]) == (-math.inf, math.inf)  # four models at 90 %
    assert metadata["n_unbounded"] == 1
    assert "intervals of new are the whole line" in metadata["note"]
    finite, metadata = rate(tables_of(scores("new", GOOD)), "miscoverage: 0.3")
    assert np.isfinite(finite.loc["new", ["lower", "upper"]].astype(float)).all()
    assert "note" not in metadata


def test_a_candidate_of_the_judges_family_says_so(made, scored_battles, heldout_ratings):
    names = ("gemini-9", "new", "gpt-9")
    tables = tables_of(*(scores(name, GOOD) for name in names))
    tables["candidates"] = tables["candidates"].assign(family=[None, "gemma", None])
    world = {"scored_battles": scored_battles, "heldout_ratings": heldout_ratings, **tables}

    def flagged(**options: str) -> list[str]:
        table = made(placing.candidate_ratings, **options, **world).value
        own = table["flags"].str.split(";").map(lambda flags: "of-judges-family" in flags)
        return sorted(table.loc[own.astype(bool), "model"])

    assert flagged(judge="stub") == []
    assert flagged(judge="gemma4-e4b") == ["gemini-9", "new"]
    assert flagged(judge="stub", rating="families: {stub: openai}") == ["gpt-9"]


def test_it_is_the_row_that_the_corpus_would_have_had(rate, scored_battles):
    fresh = scores("new", GOOD)
    theirs = rated(pd.concat([scored_battles, fresh[list(SCORED_COLUMNS)]]), 200)
    theirs = theirs[theirs["model"].eq("new")].set_index("method")
    row = rate(tables_of(fresh), "n_resamples: 200")[0].loc["new"]
    closed = rate(tables_of(fresh), "n_resamples: 200, std_error: analytic")[0].loc["new"]
    errors = [closed["judge_std_error"], row["judge_std_error"]]
    found = [row["judge_rating"], *errors, row["hard_rating"]]
    expected = theirs.loc["auto", ["rating", "std_error_analytic", "std_error"]].tolist()
    assert found == pytest.approx([*expected, theirs.loc["hard", "rating"]])


def test_bad_candidates_have_a_reason_instead_of_a_number_and_stop_nobody(rate, capsys):
    broken = scores("broken", GOOD)
    broken.loc[3, "score_difference"] = np.inf
    tables = tables_of(
        scores("good", GOOD), broken, scores("once", [1.0]), scores("lost", GOOD[:9]),
        scores("wins", [9.0] * 30), unscored={"lost": 10},
    )  # fmt: skip
    unjudged = pd.DataFrame({"model": ["later"], "content_hash": ["h"]})
    tables["candidates"] = pd.concat([tables["candidates"], unjudged], ignore_index=True)
    table, metadata = rate(tables)
    (logged,) = [line for line in capsys.readouterr().err.splitlines() if "not be placed" in line]
    assert metadata["not_placed"].value["broken"] in logged
    assert table["flags"].to_dict() == {
        "good": "candidate;no-votes;beyond-anchors",
        "broken": "candidate;no-votes;not-placed",
        "once": "candidate;no-votes;too-few-battles",
        "lost": "candidate;no-votes;mostly-unscored",
        "wins": "candidate;no-votes;judge-always-prefers;"
        "highest-against-lowest: 30 of 30 battles;beyond-anchors",
        "later": "candidate;no-votes;not-judged",
    }
    rated = table["rating"].notna()
    assert rated[rated].index.tolist() == ["good", "wins"]
    numbers = ["rank", "rating", "lower", "upper", "judge_std_error", "best_rank", "soft_rating"]
    assert table.loc[~rated, numbers].isna().all(axis=None)
    assert "inf" in metadata["not_placed"].value["broken"]
    check = result_of(CANDIDATE_RATINGS, "candidates_are_placed", table.reset_index(drop=True))
    assert not check.passed
    assert check.severity == WARN
    assert "not-judged" in check.description
    assert result_of(CANDIDATE_RATINGS, "candidates_are_placed", table.loc[["good"]]).passed


@pytest.mark.parametrize(
    ("differences", "side"),
    [
        ([0.5, -0.5, 1.0, -1.0], None),  # wins as often as it loses
        ([5.0, 6.0, 4.0, 7.0], "above"),
        ([-6.0] * 4, "below"),  # one constant answer to everything
    ],
)
def test_a_candidate_beyond_all_voted_models_is_told_with_the_remedy(
    made, rate, scored_battles, heldout_ratings, differences, side
):
    null = scores("control:null-model", [-6.0] * 40, control="null-model")  # it is meant to be low
    placed = rate(tables_of(scores("new", differences * 10), null))[0]
    row, people = placed.loc["new"], heldout_ratings["human_rating"].dropna()
    stands = {"above": row["rating"] > people.max(), "below": row["rating"] < people.min()}
    assert {name for name, does in stands.items() if does} == {side} - {None}
    assert ("beyond-anchors" in row["flags"].split(";")) is (side is not None)
    board = board_of(made, scored_battles, heldout_ratings, placed.reset_index(drop=True))
    for table, check, shown in (
        (CANDIDATE_RATINGS, "candidates_stand_among_people", placed.reset_index(drop=True)),
        (LEADERBOARD, "models_stand_among_people", board),
    ):
        told = result_of(table, check, shown)
        assert (told.passed, told.severity) == (side is None, WARN)
        assert ("have people vote on its battles first" in told.description) is (side is not None)
    said = beyond_lines(board)
    assert [text.startswith(f"new stands {side} all 4 models") for text, _ in said] == (
        [True] * (side is not None)
    )


def test_a_model_with_votes_by_now_is_no_candidate(rate):
    table, metadata = rate(tables_of(scores("ant", GOOD)[1:], scores("new", GOOD)))
    assert table.index.tolist() == ["new"]
    assert metadata["superseded"].value == ["ant"]


def test_an_unjudged_candidate_borrows_no_rating_of_its_namesake(made, scored_battles):
    """`eel` is a model of the corpus without votes; a file of that name waits for its verdicts."""
    whole = pd.concat([scored_battles, scores("eel", GOOD)[list(SCORED_COLUMNS)]])
    heldout = rated(whole)
    tables = tables_of(scores("eel", GOOD))
    waiting = {name: one.head(0) for name, one in tables.items() if name != "candidates"}
    waiting["candidates"] = tables["candidates"]
    table = made(
        placing.candidate_ratings, scored_battles=whole, heldout_ratings=heldout, **waiting
    ).value
    assert table["flags"].tolist() == ["candidate;no-votes;not-judged"]
    assert table["rating"].isna().all()
    assert not result_of(CANDIDATE_RATINGS, "candidates_are_placed", table).passed
    board = board_of(made, whole, heldout, table).set_index("model")
    expected = heldout[heldout["model"].eq("eel") & heldout["method"].eq("auto")]["rating"].item()
    assert board.loc["eel", "rating"] == expected  # the corpus' own stands until then


def test_without_candidates_there_is_an_empty_table_of_the_same_columns(rate):
    full = tables_of(scores("new", GOOD))
    columns = rate(full)[0].columns.tolist()
    for none in (dict.fromkeys(full), {name: one.head(0) for name, one in full.items()}):
        table, metadata = rate(none)
        assert (len(table), table.columns.tolist(), metadata["n_candidates"]) == (0, columns, 0)
        assert result_of(CANDIDATE_RATINGS, "candidates_are_placed", table).passed


# verdicts and scores


@pytest.fixture
def battles(sampled_battles) -> pd.DataFrame:
    return sampled_battles.assign(candidate="ant", control=None, content_hash="h", opponent="x")


def test_a_verdict_that_failed_is_no_tie(battles, verdicts):
    lost = verdicts["battle_id"].isin(battles["battle_id"].iloc[:3]) & verdicts["order"].eq("BA")
    marks = [name for name in verdicts.columns if name[-2:] in ("_a", "_b")]
    status = verdicts["status"].mask(lost, "parse_error")
    answers = verdicts.assign(status=status, **verdicts[marks].mask(lost))
    table = score_candidates(battles, answers)
    assert len(table) == len(battles) - 3
    assert table["judge_outcome"].ne(0.5).all()
    assert table.columns.tolist() == OF_SCORES


def test_battles_that_were_chosen_later_are_not_lost_but_not_judged(battles, verdicts, rate):
    asked = verdicts[verdicts["battle_id"].isin(battles["battle_id"].head(10))]
    assert len(score_candidates(battles, asked)) == 10
    tables = tables_of(scores("new", GOOD), unscored={"new": 3})
    later = pd.DataFrame({"battle_id": ["later"], "candidate": ["new"]})
    tables["candidate_battles"] = pd.concat([tables["candidate_battles"], later])
    metadata = rate(tables)[1]
    assert [metadata[name] for name in ("n_left_out", "n_not_judged")] == [3, 1]


def test_scores_of_nothing_are_nothing(sampled_battles, verdicts):
    for given in ((sampled_battles, None), (None, verdicts)):
        table = score_candidates(*given)
        assert (len(table), table.columns.tolist()) == (0, OF_SCORES)


@pytest.mark.parametrize(
    ("n", "note"), [(None, "drop a file"), (0, "drop a file"), (24, "came with the corpus")]
)
def test_nobody_is_asked_for_nothing_or_in_vain(made, tmp_path, sampled_battles, n, note):
    result = made(
        candidate_judging.candidate_verdicts,
        candidate_battles=None if n is None else sampled_battles.head(n),
        budget=Budget(0),
        verdict_store=StoredVerdicts(uri=str(tmp_path / "verdicts")),
    )
    assert result.value.empty
    assert note in result.metadata["note"]
    assert result_of(CANDIDATE_VERDICTS, "nearly_all_candidate_answers_parse", result.value).passed


# the board


def gate_at(kappa: float) -> pd.DataFrame:
    gate = hold_to({"kappa": Measurement(kappa, "by hand")}, withhold=["kappa"])
    return as_table(gate).astype({"passed": "boolean"})


def board_of(made, scored_battles, heldout_ratings, candidate_ratings, *, kappa: float = 0.5):
    calibration = as_table(calibrate_intervals(as_columns(HeldOutRatings, heldout_ratings)))
    return made(
        intervals.leaderboard, scored_battles=scored_battles, heldout_ratings=heldout_ratings,
        judge_gate=gate_at(kappa), candidate_ratings=candidate_ratings,
        conformal_calibration=calibration,
    ).value  # fmt: skip


def test_the_board_has_candidates_and_no_controls(made, rate, scored_battles, heldout_ratings):
    null = scores("control:null-model", GOOD, control="null-model")
    placed = rate(tables_of(scores("new", GOOD), null))[0].reset_index(drop=True)
    board = board_of(made, scored_battles, heldout_ratings, placed)
    assert set(board["model"]) == {"ant", "bee", "cat", "dog", "new"}
    assert board["rank"].tolist() == [1, 2, 3, 4, 5]
    by_model = board.set_index("model")
    assert by_model.loc["new", "rank"] == placed.set_index("model").loc["new", "rank"]
    assert placed.loc[placed["control"].notna(), "flags"].str.startswith("control;").all()
    without = board_of(made, scored_battles, heldout_ratings, None).set_index("model")
    kept = [name for name in without if name not in RANKS]
    texts = ["method", "basis", "flags"]
    pd.testing.assert_frame_equal(without[kept], by_model.drop("new")[kept], check_dtype=False)
    assert by_model.drop(columns=texts).dtypes.equals(without.drop(columns=texts).dtypes)
    for check in ("models_are_in_order", "intervals_hold_their_rating"):
        assert result_of(LEADERBOARD, check, board).passed
    low = board_of(made, scored_battles, heldout_ratings, placed, kappa=0.05).set_index("model")
    assert low.loc["new", "flags"].startswith("withheld: kappa 0.05 < 0.20;candidate")
    assert low.loc["new", ["rating", "lower", "upper", "rank"]].isna().all()


def test_unrated_and_by_another_method(made, rate, scored_battles, heldout_ratings):
    placed, _ = rate(tables_of(scores("once", [1.0])))
    board = board_of(made, scored_battles, heldout_ratings, placed)
    assert "too-few-battles" in board.set_index("model").loc["once", "flags"]
    assert result_of(LEADERBOARD, "models_are_in_order", board).passed
    assert not result_of(LEADERBOARD, "ratings_are_well_founded", board).passed
    other = board_of(made, scored_battles, heldout_ratings, placed.assign(method="hard"))
    assert "once" not in set(other["model"])


# attack controls


@pytest.fixture
def controls(rate):
    def held(*tables: pd.DataFrame, carrier: str = "ant") -> pd.DataFrame:
        given = tables_of(*tables)
        carried = given["candidates"].assign(metadata=f'{{"carrier": "{carrier}"}}')
        return rate({**given, "candidates": carried})[0].reset_index(drop=True)

    return held


def control(kind: str, differences: list[float]) -> pd.DataFrame:
    return scores(f"control:{kind}", differences, control=kind)


def test_controls_are_held_against_an_honest_judge(controls, scored_battles, heldout_ratings):
    table = controls(
        control("null-model", [-6.0] * 40),
        control("injected-instruction", GOOD),
        scores("new", GOOD),
    ).set_index("control", drop=False)
    models = table[table["control"].isna()]
    assert models["model"].tolist() == ["new"]
    assert models[["bound", "rise", "note"]].isna().all(axis=None)
    own = heldout_ratings[heldout_ratings["method"].eq("auto")]
    anchors = dict(zip(own["model"], own["rating"], strict=True))
    quartile = np.quantile(list(anchors.values()), 0.25)
    assert table.loc["null-model", "bound"] == pytest.approx(quartile + 30)
    assert table.loc["injected-instruction", "bound"] == pytest.approx(anchors["ant"] + 50)
    assert "carrier, ant" in table.loc["injected-instruction", "bound_is"]
    np.testing.assert_allclose(table["rise"], table["rating"] - table["bound"])
    check = placing.controls_stay_low(table.reset_index(drop=True), gate_at(0.5))
    injected = table.loc["injected-instruction"]
    low = bool(injected["rise"] <= 2.33 * injected["judge_std_error"])  # the one per cent point
    assert check.passed is low


def test_a_control_above_its_bound_by_chance_alone_passes():
    row = {"control": "null-model", "rating": 1340.0, "bound": 1300.0, "bound_is": "", "note": ""}
    table = pd.DataFrame([row | {"rise": 40.0, "judge_std_error": 20.0, "n_battles": 60}])
    held = partial(placing.controls_stay_low, judge_gate=gate_at(0.5))
    assert held(table).passed
    assert not held(table.assign(judge_std_error=15.0)).passed
    assert not held(table.assign(judge_std_error=np.nan)).passed


HIGH = control("null-model", [5.0, 6.0, 4.0, 7.0] * 10)
LOST = control("injected-instruction", GOOD)
CASES = {
    "high": (HIGH, "ant", 0.5, ERROR, "null-model is rated.*above its bound of.*lower "
             "quartile.*plus 30 points.*candidates.controls"),
    "not measured": (control("null-model", [1.0]), "ant", 0.5, WARN, "null-model: not rated"),
    "without its carrier": (LOST, "nobody", 0.5, WARN, "injected-instruction: there is no bound"),
    "withheld": (HIGH, "ant", 0.05, WARN, "withheld.*kappa 0.05 < 0.20"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_control_that_did_not_stay_low_fails_the_check_with_the_reason(controls, case):
    """Of a withheld judge no number of a control is told."""
    scored, carrier, kappa, severity, sentence = CASES[case]
    table = controls(scored, carrier=carrier)
    check = placing.controls_stay_low(table, gate_at(kappa))
    assert (check.passed, check.severity) == (False, severity)
    assert re.search(sentence, check.description)
    if case == "without its carrier":
        assert "'nobody' is no anchor" in table["bound_is"].iloc[0]
    if case == "withheld":
        assert "Elo" not in check.description


def test_no_controls_are_no_failure(controls):
    table = controls(scores("new", GOOD))
    for kappa in (0.5, 0.05):
        assert placing.controls_stay_low(table, gate_at(kappa)).passed
        assert placing.controls_stay_low(table.head(0), gate_at(kappa)).passed
