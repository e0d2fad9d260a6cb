"""A third of all requests fails in every way: what does not change, and what is reported."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import dagster as dg
import pandas as pd
import pytest
from fault_server import ODD, TRANSIENT, UNREADABLE, USAGE, FaultServer, serving, shown_texts
from installation import Installation, contested, graded
from weather import LASTING, PASSING, LastingStorm, PassingStorm, Storm

from judgeline.judges.live import judge as served
from judgeline.judges.live.troubles import RetryPolicy
from judgeline.judges.presentation import present
from judgeline.tables.corpus import SCORE_COLUMNS

pytestmark = pytest.mark.slow

N_BATTLES = 400
BILLED = {None, *UNREADABLE, "refusal-field", "refusal-prose", "filtered", "length"}
"""What a reply says that costs tokens and holds an answer, whatever it is worth."""
UNANSWERED = {
    *("slow", "disconnect", "truncated-json", "other-page", "detail", "error-200", "504"),
    *("filtered-400", "thought-too-long"),  # read or thought about, and answered with an error
}
"""Requests of which nobody can tell whether they were billed."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = partial(RetryPolicy, base_s=0.005, cap_s=0.02)
    monkeypatch.setattr(served, "RetryPolicy", policy)


def serves(storm: Storm) -> FaultServer:
    return FaultServer(storm, answer=graded, slow_s=60.0)


Install = Callable[[Path, FaultServer], Installation]


@pytest.fixture
def installed() -> Iterator[Install]:
    with ExitStack() as instances:

        def install(folder: Path, server: FaultServer) -> Installation:
            instance = instances.enter_context(dg.DagsterInstance.ephemeral())
            return Installation(folder, server.url, N_BATTLES, instance, {"timeout_s": 4.0})

        yield install


def test_faults_that_pass_change_no_verdict_and_no_rating(tmp_path, installed):
    with serving(FaultServer(answer=graded)) as server:
        calm = installed(tmp_path / "calm", server)
        assert calm.run(select=["+leaderboard"]).errors == []
    storm = PassingStorm()
    with serving(serves(storm)) as server:
        stormy = installed(tmp_path / "stormy", server)
        assert stormy.run(select=["+verdicts"]).errors == []
        refused = stormy.stored("verdicts", "c", "j")["status"].value_counts().drop("ok")
        assert stormy.run(select=["+leaderboard"], retry=["refusal"]).errors == []
    assert storm.share() >= 0.3
    assert set(storm.names()) == {*PASSING, *UNREADABLE, "refusal-field", "refusal-prose"}
    assert set(refused.index) == {"refusal"}

    expected, given = (place.stored("verdicts", "c", "j") for place in (calm, stormy))
    paid = ["prompt_tokens", "completion_tokens"]  # more, where an answer was asked for twice
    pd.testing.assert_frame_equal(given.drop(columns=paid), expected.drop(columns=paid))
    for table in ("scored_battles", "heldout_ratings", "leaderboard"):
        pd.testing.assert_frame_equal(
            stormy.stored(table, "c", "j"), calm.stored(table, "c", "j"), check_exact=True
        )
    assert expected["status"].eq("ok").all()
    assert calm.stored("leaderboard", "c", "j")["rating"].notna().all()
    print(  # noqa: T201
        f"{len(storm.names())} of {len(storm.seen)} requests failed ({storm.share():.0%}), in "
        f"{len(set(storm.names()))} ways; {refused['refusal']} refusals asked for again"
    )


def test_faults_that_last_are_accounted_for_to_the_last_battle(tmp_path, installed):
    storm = LastingStorm()
    shown = {
        (one.battle_id, one.order): (one.instruction, one.first_completion, one.second_completion)
        for one in present(contested(N_BATTLES), 1)
    }
    fates = {key: storm.in_the_end(texts) for key, texts in shown.items()}
    expected = {key: LASTING[fate] if fate else "ok" for key, fate in fates.items()}
    with serving(serves(storm)) as server:
        place = installed(tmp_path, server)
        assert place.run(select=["+scored_battles"]).errors == []
        _assert_accounted_for(place, expected)
        told = place.metadata("verdicts")
        _assert_books_agree(told, storm, server)
        assert storm.share() >= 0.3
        assert set(storm.names()) == {*PASSING, *LASTING}
        classes = Counter(expected.values())
        assert set(classes) == {"ok", *LASTING.values()}
        assert told["failures"] == {name: n for name, n in classes.items() if name != "ok"}
        assert (told["n_calls"], told["n_asked"]) == (2 * N_BATTLES, 2 * N_BATTLES)
        share, first = storm.share(), len(storm.seen)

        storm.calm = True
        assert place.run(select=["+scored_battles"]).errors == []
        retried = {key for key, status in expected.items() if status in MENDED}
        again = [texts for texts, _ in storm.seen[first:]]
        assert sorted(again) == sorted(shown[key] for key in retried)
        told = place.metadata("verdicts")
        kept = {n: c for n, c in classes.items() if n != "ok" and n not in MENDED}
        assert told["failures"] == kept
        assert (told["n_retried"], told["n_asked"]) == (len(retried), len(retried))
        assert told["n_resumed"] == 2 * N_BATTLES - len(retried)
        mended = {key: "ok" if key in retried else status for key, status in expected.items()}
        _assert_accounted_for(place, mended)
    print(f"{share:.0%} of {first} requests failed; verdicts {dict(classes)}")  # noqa: T201


MENDED = {"transport", "truncated", "parse_error"}


def _assert_accounted_for(place: Installation, expected: dict[tuple[str, str], str]) -> None:
    """Every sampled battle is scored, or a failure class says why it is not."""
    verdicts = place.stored("verdicts", "c", "j")
    keys = zip(verdicts["battle_id"], verdicts["order"], strict=True)
    assert dict(zip(keys, verdicts["status"], strict=True)) == expected
    assert len(verdicts) == len(expected)
    failed = verdicts["status"].ne("ok")
    scores = verdicts[list(SCORE_COLUMNS)]
    assert scores[failed].isna().all(axis=None)
    assert verdicts.loc[failed, "recorded_outcome"].isna().all()
    assert scores[~failed].notna().all(axis=None)

    sampled = set(place.stored("sampled_battles", "c")["battle_id"])
    scored = place.stored("scored_battles", "c", "j")["battle_id"].tolist()
    unscored = set(verdicts.loc[failed, "battle_id"])
    assert len(scored) == len(set(scored))
    assert not unscored.intersection(scored)
    assert unscored.union(scored) == sampled
    assert place.metadata("scored_battles")["n_left_out"] == len(unscored)


def _assert_books_agree(told: dict, storm: Storm, server: FaultServer) -> None:
    """The metadata say what the server saw."""
    counts, names = told["endpoint"], Counter(name for _, name in storm.seen)
    repairs = {shown_texts(body) for body in server.presentations if len(body["messages"]) == 3}
    assert counts["requests"] == len(server.bodies) - 3  # of the probe, before the run
    assert counts["repairs"] == len(repairs)
    assert counts["retries"] == sum(names[name] for name in PASSING)
    assert counts["lost"] == sum(names[name] for name in UNANSWERED)
    n_billed = sum(names[name] for name in BILLED)
    assert (told["prompt_tokens_bought"], told["completion_tokens_bought"]) == (
        USAGE[0] * n_billed,
        USAGE[1] * n_billed,
    )
    assert set(PASSING) == {*TRANSIENT, *ODD, "slow"}
