"""New models and attack controls placed by runs of the lineage, and predictions put to votes."""

import json
from pathlib import Path

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from newcomers import drop, newcomer

from judgeline.elo import RatingSettings, rate
from judgeline.io import as_coded, typed
from judgeline.judges.budget import Budget
from judgeline.steps.predictions import JUDGE_AND_VOTES
from judgeline.tables.corpus import BATTLE_DTYPES
from pipelines.commands.console import cause
from pipelines.definitions import build_definitions
from resources.arena.simulation import Arena, arena_options, build_arena

N_BATTLES = 96
ENTRANT, SECOND, THIRD = 14, 15, 16
"""Numbers of contestants: the tiny arena has 12 with votes and two without."""


def place(workshop, judge: str = "careful", *, budget: Budget | None = None, select=None):
    """Run the placing job of a judge as a sensor would have it run."""
    return workshop.run_job("placing_job", judge, select, budget=budget)


def battles_of(
    arena: Arena,
    number: int,
    n_battles: int,
    *,
    name: str | None = None,
    control: str | None = None,
    text: str | None = None,
) -> pd.DataFrame:
    """Return battles of contestant `number` against voted ones, or of what says `text` always."""
    model = name or arena.models[number]
    order = np.random.default_rng(number).permutation(len(arena.prompts))
    turn, opponents = np.divmod(np.arange(n_battles), arena.options.n_voted)
    prompts = order[turn]
    rows = []
    for place, (prompt, other) in enumerate(zip(prompts, opponents, strict=True)):
        theirs = arena.completions[other][prompt]
        own = arena.completions[number][prompt] if text is None else text
        sides = {"a": (model, own), "b": (arena.models[other], theirs)}
        if place % 2:
            sides = {"a": sides["b"], "b": sides["a"]}
        question = arena.prompts[prompt]
        rows.append(
            {
                "battle_id": f"{question.question_id}:{model}:{other}:{place}",
                "question_id": question.question_id,
                "cluster_id": question.question_id,
                "instruction": question.instruction,
                "language": question.language,
                "n_turns": 1,
                **{f"model_{side}": one for side, (one, _) in sides.items()},
                **{f"completion_{side}": said for side, (_, said) in sides.items()},
                "opponent": arena.models[other],
            }
        )
    table = pd.DataFrame(rows)
    return typed(table, BATTLE_DTYPES).assign(
        selection_order=np.arange(n_battles),
        candidate=model,
        opponent=table["opponent"].astype("str"),
        control=pd.Series([control] * n_battles, dtype="str"),
        content_hash=f"hash-of-{model}",
    )


def store_candidates(home: Path, *battles: pd.DataFrame, carrier: str = "") -> None:
    """Write the corpus' tables of candidates where a run of the lineage finds them."""
    table = pd.concat(battles, ignore_index=True)
    candidates = table.drop_duplicates("candidate")[["candidate", "control", "content_hash"]]
    metadata = f'{{"carrier": "{carrier}"}}' if carrier else "{}"
    candidates = candidates.rename(columns={"candidate": "model"}).assign(metadata=metadata)
    unread = ["file", "question_id", "instruction", "language", "completion", "family"]
    candidates = candidates.reindex(columns=[*candidates.columns, *unread])
    for name, one in (("candidate_battles", table), ("candidates", candidates)):
        path = home / "tables" / name / "tiny.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        one.to_parquet(path, index=False)


def checks_of(result) -> dict[str, dg.AssetCheckEvaluation]:
    return {one.check_name: one for one in result.get_asset_check_evaluations()}


@pytest.fixture(scope="module")
def arena(finished):
    """The arena of the corpus with three further contestants, whom none of its battles knows."""
    own = arena_options(finished.tiny["arena"], 0, "tiny")
    return build_arena(own.model_copy(update={"n_new": own.n_new + 3}))


@pytest.fixture(scope="module")
def placed_home(finished_home, copy_of, arena, tmp_path_factory):
    """The tiny arena, rated; then one contestant more, who meets voted ones: run once."""
    folder = tmp_path_factory.mktemp("placed")
    with copy_of(finished_home, folder) as workshop:
        before = workshop.files()
        store_candidates(workshop.home, battles_of(arena, ENTRANT, N_BATTLES))
        result = place(workshop)
        assert result.success
        tables = {
            name: workshop.stored(name, "tiny", "careful")
            for name in ("leaderboard", "heldout_ratings")
        }
        return folder, before, workshop.files(), checks_of(result), tables


@pytest.fixture
def placed(placed_home, copy_of, tmp_path):
    """The same for one test, which may change it."""
    with copy_of(placed_home[0], tmp_path / "placed") as workshop:
        yield workshop


def test_a_candidate_stands_on_the_leaderboard_with_an_interval_and_no_votes(placed_home, arena):
    _, _, _, checks, tables = placed_home
    board = tables["leaderboard"].set_index("model")
    row = board.loc[arena.models[ENTRANT]]
    assert row["flags"].split(";")[:2] == ["candidate", "no-votes"]
    assert pd.isna(row["human_rating"])
    assert row["n_battles"] == N_BATTLES
    assert np.isfinite([row["lower"], row["rating"], row["upper"]]).all()
    assert row["lower"] < row["rating"] < row["upper"]
    assert sorted(board["rank"]) == list(range(1, 16))
    assert all(check.passed for check in checks.values())


def test_nothing_of_the_others_moves(placed_home):
    _, before, after, _, tables = placed_home
    assert {name for name in before if after[name] != before[name]} == {
        f"{name}/tiny/careful.parquet"
        for name in (
            "leaderboard", "candidate_ratings", "predictions",
            "battle_influences",
        )
    }  # fmt: skip
    heldout, board = tables["heldout_ratings"], tables["leaderboard"].set_index("model")
    own = heldout[heldout["method"].eq("auto")].set_index("model")["rating"]
    old = board.loc[board.index.isin(own.index), "judge_rating"]
    pd.testing.assert_series_equal(old, own[old.index], check_names=False)


def test_the_same_again_asks_nothing_and_another_candidate_its_own_battles(placed, shown, arena):
    before = placed.stored("leaderboard", "tiny", "careful")
    assert place(placed).success
    assert shown == []
    pd.testing.assert_frame_equal(placed.stored("leaderboard", "tiny", "careful"), before)
    more = battles_of(arena, SECOND, 40)
    store_candidates(placed.home, battles_of(arena, ENTRANT, N_BATTLES), more)
    assert place(placed, select=["candidate_verdicts"]).success
    assert sorted(battle for battle, *_ in shown) == sorted([*more["battle_id"]] * 2)  # both orders


# what the page and the terminal say of it


def test_the_page_and_the_terminal_show_it_without_votes(placed, arena, monkeypatch, capsys):
    from judgeline import cli

    workshop = placed.install(monkeypatch)
    assert cli.main(["leaderboard", "--corpus", "tiny", "--judge", "careful"]) == 0
    line, told = (
        one for one in capsys.readouterr().out.splitlines() if arena.models[ENTRANT] in one
    )
    assert "candidate" in line
    assert told.startswith("Not voted on: ")
    outcome = workshop.run("careful", select=["report"])
    assert outcome.errors == []
    page = outcome.report.read_text(encoding="utf-8")
    row = page[page.index(f"<bdi>{arena.models[ENTRANT]}</bdi>") :]
    assert "no human votes" in row[: row.index("</tr>")]
    assert "candidate" in row[: row.index("</tr>")]


# budgets


def test_a_budget_too_small_says_what_is_missing_and_keeps_what_was_bought(placed, arena):
    workshop = placed
    store_candidates(workshop.home, battles_of(arena, SECOND, 60, text="Yes and no."))
    workshop.tiny["candidates"] = {"budget": "30calls"}
    result = place(workshop, budget=Budget(calls=50))
    workshop.tiny.pop("candidates")
    assert not result.success
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    told = cause(failure)
    assert "90 of the 120 calls to judge 'careful' are missing" in told
    assert "'candidates.budget' of the corpus" in told
    again = place(workshop, budget=Budget(calls=90))
    assert again.success
    (made,) = again.asset_materializations_for_node("candidate_verdicts")
    assert (made.metadata["n_resumed"].value, made.metadata["n_asked"].value) == (30, 90)


# attack controls


def test_an_honest_judge_keeps_controls_low_and_off_the_board(placed, arena):
    workshop = placed
    carrier = arena.models[3]
    store_candidates(
        workshop.home,
        battles_of(arena, ENTRANT, N_BATTLES),
        battles_of(arena, 0, 96, name="control:null-model", control="null-model", text="Yes."),
        battles_of(
            arena, 3, 96, name="control:injected-instruction", control="injected-instruction"
        ).query("opponent != @carrier"),
        carrier=carrier,
    )  # fmt: skip
    workshop.tiny["candidates"] = {"controls": ["null-model", "injected-instruction"]}
    result = place(workshop)
    workshop.tiny.pop("candidates")
    assert result.success
    table = workshop.stored("candidate_ratings", "tiny", "careful")
    table = table.dropna(subset="control").set_index("control")
    assert len(table) == 2
    assert checks_of(result)["controls_stay_low"].passed, table.to_dict("index")
    assert table.loc["null-model", "rise"] < -100
    board = workshop.stored("leaderboard", "tiny", "careful")
    assert not board["model"].str.startswith("control:").any()
    assert arena.models[ENTRANT] in set(board["model"])
    predicted = workshop.stored("predictions", "tiny", "careful")["model"]
    assert not predicted.str.startswith("control:").any()


# automation


PLACED = {
    "candidate_ratings",
    "leaderboard",
    "predictions",
}


def _flags(workshop, model: str) -> str:
    board = workshop.stored("leaderboard", "tiny", "careful").set_index("model")
    return board.loc[model, "flags"]


@pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
def test_the_board_follows_verdicts_on_candidates_and_nobody_is_asked_by_itself(placed, arena):
    workshop = placed
    definitions = build_definitions(catalog=workshop.catalog, tables=workshop.tables)
    keys = definitions.resolve_asset_graph().get_all_asset_keys()
    cursor = None

    def tick() -> set[str]:
        nonlocal cursor
        result = dg.evaluate_automation_conditions(
            defs=definitions, instance=workshop.instance, cursor=cursor
        )
        cursor = result.cursor
        return {key.to_user_string() for key in keys if result.get_num_requested(key)}

    def settle() -> None:
        """Tick, and make what is requested of the placing job, until nothing of it is."""
        for _ in range(6):
            ticks.append(tick())
            if not ticks[-1] & PLACED:
                return
            assert place(workshop, select=sorted(ticks[-1] & PLACED)).success
        raise AssertionError(f"still requesting after {ticks}")

    ticks: list[set[str]] = []
    settle()
    name = arena.models[THIRD]
    drop(workshop.home / "candidates" / "tiny", newcomer(workshop.tiny["arena"], number=3))
    workshop.rest()
    assert workshop.run_job("candidate_job").success
    settle()
    board = workshop.stored("leaderboard", "tiny", "careful")
    assert name not in set(board["model"])  # battles that nobody has judged place nobody
    assert place(workshop, select=["candidate_verdicts"]).success
    settle()
    assert _flags(workshop, name) == "candidate;no-votes"
    assert set().union(*ticks) >= PLACED
    for asking in ("verdicts", "candidate_verdicts", "score_verdicts", "choice_verdicts"):
        assert not any(asking in requested for requested in ticks)


# votes arrive


def by_method(workshop, method: str) -> pd.DataFrame:
    record = workshop.stored("predictions", "tiny", "careful")
    return record[record["method"].eq(method)].set_index("model")


def test_votes_score_the_predictions_that_were_made_before_them(placed, arena):
    workshop = placed
    name = arena.models[ENTRANT]
    before = workshop.stored("predictions", "tiny", "careful").set_index("model")
    assert before["scored_at"].isna().all()
    workshop.tiny["arena"] = {**workshop.tiny["arena"], "n_voted": 15, "n_new": 0}
    outcome = workshop.run("careful", select=["+predictions"])
    assert outcome.errors == []
    board = workshop.stored("leaderboard", "tiny", "careful").set_index("model")
    assert board.index.is_unique
    assert np.isfinite(board.loc[name, "human_rating"])
    assert "candidate" not in board.loc[name, "flags"]
    record = by_method(workshop, "auto")
    row = record.loc[name]
    stated = ["predicted_at", "run_id", "rating", "lower", "upper", "content_hash", "miscoverage"]
    pd.testing.assert_frame_equal(record.loc[before.index, stated], before[stated])
    assert row["human_rating"] == board.loc[name, "human_rating"]
    now = board["human_rating"].dropna().drop(name)  # two more than the anchors of the prediction
    shift = (now.mean() - now[list(arena.models[:12])].mean()) * 14 / 15
    assert row["origin_shift"] == pytest.approx(shift, abs=1e-9)
    as_then = row["human_rating"] + shift
    assert row["residual"] == pytest.approx(row["rating"] - as_then)
    assert row["covered"] == (row["lower"] <= as_then <= row["upper"])
    votes = board["n_votes"]
    enough = votes[list(arena.models[:12])].quantile(0.1)
    voted = {m for m in arena.models[12:15] if votes[m] >= enough}  # the three nobody had voted on
    assert name in voted
    assert set(record.index[record["scored_at"].notna()]) == voted
    told = {check.check: check.description for check in outcome.failed_checks}
    assert "predictions_cover" not in told, told
    together = by_method(workshop, JUDGE_AND_VOTES)
    assert set(together.index) == set(arena.models[12:15])
    assert together.loc[name, "rating"] == board.loc[name, "rating"]
    assert board.loc[name, "evidence"] == f"judge and {board.loc[name, 'n_votes']} votes"
    assert len(json.loads(together.loc[name, "used_votes"])) == board.loc[name, "n_votes"]
    assert together["scored_at"].isna().all()
    workshop.run("careful", select=["predictions"])
    pd.testing.assert_frame_equal(by_method(workshop, "auto"), record)
    pd.testing.assert_frame_equal(by_method(workshop, JUDGE_AND_VOTES), together)

    # votes that come later score the rating by judge and first votes; oracle: the human rating of
    # the model in a corpus without the votes that were seen
    before = by_method(workshop, JUDGE_AND_VOTES)
    workshop.tiny["arena"] = {**workshop.tiny["arena"], "n_battles": 1200}
    workshop.tiny["sample_size"] = 900
    outcome = workshop.run("careful", select=["+predictions"])
    assert outcome.errors == []
    row = by_method(workshop, JUDGE_AND_VOTES).loc[name]
    stated = ["predicted_at", "rating", "lower", "upper", "std_error", "used_votes"]
    pd.testing.assert_series_equal(row[stated], before.loc[name, stated])
    scored = workshop.stored("scored_battles", "tiny", "careful")
    seen = scored["battle_id"].isin(json.loads(row["used_votes"]))
    assert seen.any()
    unseen = scored.assign(human_outcome=scored["human_outcome"].mask(seen))
    rated = rate(as_coded(unseen, "derived"), RatingSettings(n_resamples=0))
    (own,) = np.flatnonzero((rated.model == name) & (rated.method == "human"))
    assert row["human_rating"] == pytest.approx(rated.human_rating[own], abs=1e-6)
    assert row["n_votes"] == rated.n_votes[own]
    assert row["residual"] == pytest.approx(
        row["rating"] - row["human_rating"] - row["origin_shift"]
    )
    reach = np.hypot(row["std_error"], row["human_std_error"]) / row["std_error"]
    assert row["covered"] == (abs(row["residual"]) <= reach * (row["upper"] - row["rating"]))
