"""A new model drops while the servers run: it is placed, once, and a broken file stops nothing."""

import json
import math
import time
from collections.abc import Sequence

import pandas as pd
import pytest
from living import SMALL_ARENA, Living
from upath import UPath

from judgeline.judges.store.verdicts import VerdictStore
from pipelines.definitions import SENSORS
from pipelines.sensors.candidates import new_candidates, place_candidates
from resources.arena.contestants import enter_contestants, write_completions
from resources.arena.prompts import write_prompts
from resources.candidates.folder import SETTLED_SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.browser]

JUDGES = ("careful", "hasty")
LOOKING, PLACING = new_candidates.name, place_candidates.name
ASKING = ("verdicts", "score_verdicts", "choice_verdicts", "reliability_panel")
CHECK_PAGE = "/assets/candidates?view=checks&checkDetail=candidate_files_are_readable"
PLACED_SECONDS = 900


@pytest.fixture(scope="module")
def alive(judged: Living) -> Living:
    """Two judges' work on the arena is done, and the servers run with nothing to do."""
    assert {LOOKING, PLACING} <= {sensor.name for sensor in SENSORS}
    judged.start()
    judged.settle(sensors=("automation", LOOKING))
    return judged


def answers(number: int) -> bytes:
    """What the contestant that would enter the arena next, or later, answers to its questions."""
    contestant = enter_contestants(_entered() + number, 0)[-1]
    prompts = write_prompts(SMALL_ARENA["n_prompts"], 0)
    lines = [
        {"question_id": prompt.question_id, "completion": text, "model": newcomer(number)}
        for prompt, text in zip(prompts, write_completions(contestant, prompts, 0), strict=True)
    ]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def newcomer(number: int) -> str:
    return f"newcomer-{number}"


def _entered() -> int:
    return SMALL_ARENA["n_voted"] + SMALL_ARENA["n_new"]


def drop(place: Living, name: str, content: bytes) -> float:
    """Put a file into the arena's candidates, and return when."""
    folder = place.home / "candidates" / "arena"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return time.time()


def board(place: Living, judge: str) -> pd.DataFrame:
    return pd.read_parquet(place.home / "tables" / "leaderboard" / "arena" / f"{judge}.parquet")


def standing(place: Living, model: str) -> bool:
    """Whether every judge has placed a model; until then it may stand there as not judged."""
    ratings = [board(place, judge).set_index("model")["rating"] for judge in JUDGES]
    return all(pd.notna(own.get(model)) for own in ratings)


def bought(place: Living) -> int:
    """How many answers the verdict store holds."""
    store = VerdictStore(UPath(place.home / "verdicts"))
    return sum(store.scan(key, ["order"]).table.num_rows for key in store.judge_keys())


def looks_until_it_acted(place: Living, sensor: str, since: float) -> int:
    """How many times a sensor looked after a moment until it requested runs, that time included."""
    ticks = [t for t in reversed(place.ticks(sensor)) if (t["endTimestamp"] or 0) > since]
    acted = next((number for number, tick in enumerate(ticks) if tick["runIds"]), None)
    assert acted is not None, f"{sensor} never asked for a run: {ticks}"
    return sum(tick["timestamp"] > since for tick in ticks[: acted + 1])


def look_again(place: Living, sensors: Sequence[str], n_times: int) -> None:
    """Wait until sensors have looked so many times more, and nothing runs."""
    since = time.time()

    def looked() -> bool:
        return all(
            sum(t["timestamp"] > since and bool(t["endTimestamp"]) for t in place.ticks(name))
            >= n_times
            for name in sensors
        )

    place.wait(f"{n_times} looks of {', '.join(sensors)}", looked, 120 * n_times + 120)
    place.wait("runs to end", lambda: not place.unfinished(), PLACED_SECONDS)


def test_a_dropped_model_is_placed_by_its_own_battles_alone(alive: Living) -> None:
    before, n_before = alive.timestamps(), bought(alive)
    dropped = drop(alive, "first.jsonl", answers(1))
    alive.wait("the model to stand", lambda: standing(alive, newcomer(1)), PLACED_SECONDS)
    took = time.time() - dropped

    read = alive.runs(pipelineName="candidate_job")[0]
    assert looks_until_it_acted(alive, LOOKING, dropped + SETTLED_SECONDS) <= 1
    assert looks_until_it_acted(alive, PLACING, read["endTime"]) <= 2
    battles = pd.read_parquet(alive.home / "tables" / "candidate_battles" / "arena.parquet")
    assert battles["candidate"].eq(newcomer(1)).all()
    for judge in JUDGES:
        row = board(alive, judge).set_index("model").loc[newcomer(1)]
        assert math.isfinite(row["lower"])
        assert row["lower"] < row["rating"] < row["upper"] < math.inf
        assert "candidate" in row["flags"]
        assert pd.isna(row["human_rating"])
        account = alive.metadata("candidate_verdicts", f"arena|{judge}")
        assert account["n_battles"] == len(battles)
        assert account["n_asked"] == 2 * len(battles)  # either answer first, once
        print(  # noqa: T201  seen with -s
            f"{newcomer(1)} by {judge}: {row['rating']:.0f} [{row['lower']:.0f}, "
            f"{row['upper']:.0f}] after {took:.0f} s, {account['n_asked']} calls"
        )
    assert bought(alive) - n_before == 2 * len(battles) * len(JUDGES)
    after = alive.timestamps()
    assert {name: after[name] for name in ASKING} == {name: before[name] for name in ASKING}


def test_the_same_answers_under_another_name_start_nothing(alive: Living) -> None:
    alive.settle()
    before, n_before, runs = alive.timestamps(), bought(alive), len(alive.runs())
    drop(alive, "again.jsonl", answers(1))
    look_again(alive, (LOOKING, PLACING), 2)
    assert len(alive.runs()) == runs
    assert (alive.timestamps(), bought(alive)) == (before, n_before)


def test_a_broken_file_is_one_failed_check_and_stops_nothing(alive, browser, tmp_path):
    n_before = bought(alive)
    drop(alive, "broken.jsonl", b'{"question_id": "q1", "completion": \n')
    alive.wait("the check to fail", lambda: failures(alive), PLACED_SECONDS)
    look_again(alive, (LOOKING, PLACING), 2)
    (failed,) = failures(alive)
    assert "broken.jsonl" in failed["description"]
    assert failed["partition"] == "arena"
    assert alive.runs(runIds=[failed["runId"]])[0]["status"] == "SUCCESS"
    assert bought(alive) == n_before
    assert standing(alive, newcomer(1))
    browser.open(alive.url + CHECK_PAGE, "candidate_files_are_readable", "broken.jsonl")
    browser.photograph("failed-check", tmp_path)

    drop(alive, "second.jsonl", answers(2))
    alive.wait("the model to stand", lambda: standing(alive, newcomer(2)), PLACED_SECONDS)
    assert standing(alive, newcomer(1))


def failures(place: Living) -> list[dict[str, str]]:
    """Failed evaluations of the check of candidate files, with the run of each."""
    executions = place.checks("candidates", "candidate_files_are_readable")
    return [
        {"runId": execution["runId"], **execution["evaluation"]}
        for execution in executions
        if execution["evaluation"] and not execution["evaluation"]["success"]
    ]
