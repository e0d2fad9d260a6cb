"""Asking only for what is missing: hits, misses, retries and budgets."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from answering import annotate, statuses
from buyer_process import numbered, store_in
from fake_judges import ByRubric

from judgeline.judges.budget import Budget, Cost
from judgeline.judges.buying import RETRIED, Account, BudgetError, Buyer
from judgeline.judges.presentation import Answer, Presentation, present
from judgeline.judges.store.verdicts import VerdictStore
from judgeline.verdict.outcomes import CRITERIA

BATTLES = numbered(6)
N_CALLS = 12


def graded(first: int, second: int) -> str:
    scores = (dict.fromkeys(CRITERIA, mark) for mark in (first, second))
    return json.dumps(dict(zip(("response_1", "response_2"), scores, strict=True)))


class Counting(ByRubric):
    """A judge that grades by length, fails where it is told to, and keeps what it was asked."""

    def __init__(self, failing: Mapping[str, str | None] | None = None, **identity: str) -> None:
        self.identity = {"kind": "counting", "template": "t1", "model": "m", **identity}
        self.failing = dict(failing or {})
        self.asked: list[str] = []
        self.stops_after: int | None = None

    def replies(
        self, presentations: Sequence[Presentation], budget: Budget
    ) -> Iterator[tuple[int, Answer]]:
        for position, shown in enumerate(presentations):
            if self.stops_after is not None and len(self.asked) >= self.stops_after:
                raise KeyboardInterrupt
            if not budget.spend(Cost(1, 11, 7)):
                return
            call = f"{shown.battle_id}{shown.order}{shown.replicate}"
            self.asked.append(call)
            text = graded(1 + len(shown.first_completion) % 9, 1 + (len(shown.instruction) + 4) % 9)
            failure = self.failing.get(call)
            yield position, Answer(None if failure else text, failure, 11, 7)


@pytest.fixture
def store(tmp_path: Path) -> VerdictStore:
    return store_in(tmp_path)


def asked(store: VerdictStore, battles: pd.DataFrame = BATTLES, **changes: object) -> list[str]:
    """What a judge is asked of battles, given what is stored."""
    judge = Counting(**changes.pop("judge", {}))
    annotate(judge, battles, slug="s", buyer=Buyer(store), **changes)
    return judge.asked


def test_nothing_is_asked_twice_and_the_table_is_the_same(store: VerdictStore) -> None:
    plain = annotate(Counting(), BATTLES, slug="s")
    buyer, judge = Buyer(store), Counting()
    needed, n_stored = buyer.missing(judge, present(BATTLES, 1))
    assert (len(needed), n_stored) == (N_CALLS, 0)
    pd.testing.assert_frame_equal(annotate(judge, BATTLES, slug="s", buyer=buyer), plain)
    assert len(judge.asked) == N_CALLS
    assert (buyer.account.n_asked, buyer.account.n_resumed) == (N_CALLS, 0)
    again = Counting()
    pd.testing.assert_frame_equal(annotate(again, BATTLES, slug="s", buyer=buyer), plain)
    assert again.asked == []
    assert (buyer.account.n_asked, buyer.account.n_resumed) == (0, N_CALLS)
    assert buyer.missing(judge, present(BATTLES, 1)) == ([], N_CALLS)


def changed(column: str) -> pd.DataFrame:
    battles = BATTLES.copy()
    battles.loc[2, column] += "."
    return battles


RENAMED = BATTLES.assign(battle_id=[f"new{i}" for i in range(6)], model_a="p", model_b="q")


@pytest.mark.parametrize(
    ("battles", "judge", "n_replicates", "calls"),
    [
        (RENAMED, {}, 1, []),
        *(
            (changed(column), {}, 1, ["b2AB0", "b2BA0"])
            for column in ("instruction", "completion_a", "completion_b")
        ),
        *(
            (BATTLES, {name: "changed"}, 1, [f"b{i}{o}0" for i in range(6) for o in ("AB", "BA")])
            for name in ("kind", "template", "model", "seed")
        ),
        (BATTLES, {}, 2, [f"b{i}{o}1" for i in range(6) for o in ("AB", "BA")]),
    ],
)
def test_only_what_is_another_call_is_asked(store, battles, judge, n_replicates, calls):
    asked(store)
    assert asked(store, battles, judge=judge, n_replicates=n_replicates) == calls
    assert asked(store, battles, judge=judge, n_replicates=n_replicates) == []
    verdicts = annotate(Counting(), RENAMED, slug="other", buyer=Buyer(store))
    assert set(verdicts["battle_id"]) == set(RENAMED["battle_id"])
    assert set(verdicts["judge"]) == {"other"}


def test_swapped_sides_are_the_same_calls_seen_from_the_other_side(store: VerdictStore) -> None:
    straight = annotate(Counting(), BATTLES, slug="s", buyer=Buyer(store))
    sides = {"completion_a": "completion_b", "completion_b": "completion_a"}
    judge = Counting()
    swapped = annotate(judge, BATTLES.rename(columns=sides), slug="s", buyer=Buyer(store))
    assert judge.asked == []
    ab, ba = (straight[straight["order"].eq(order)] for order in ("AB", "BA"))
    back = swapped[swapped["order"].eq("BA")]
    assert back["clarity_b"].tolist() == ab["clarity_a"].tolist()
    assert back["clarity_b"].tolist() != ba["clarity_a"].tolist()


def test_equal_calls_in_one_table_are_asked_once(store: VerdictStore) -> None:
    twice = pd.concat([BATTLES, BATTLES.assign(battle_id=lambda t: "x" + t["battle_id"])])
    judge = Counting()
    verdicts = annotate(judge, twice, slug="s", buyer=Buyer(store))
    assert len(judge.asked) == N_CALLS
    assert len(verdicts) == 2 * N_CALLS
    assert verdicts["battle_id"].tolist()[N_CALLS] == "xb0"


def test_only_what_another_attempt_may_mend_is_asked_again(store: VerdictStore) -> None:
    classes = ("transport", "truncated", "refusal", "content_filter", "context_overflow", None)
    failing = {f"b{i}AB0": failure for i, failure in enumerate(classes)}
    broken = Counting(failing)
    buyer = Buyer(store)
    first = annotate(broken, BATTLES, slug="s", buyer=buyer)
    assert buyer.account.failed == {failure: 1 for failure in classes if failure}
    mended = Counting()
    second = annotate(mended, BATTLES, slug="s", buyer=buyer)
    assert mended.asked == ["b0AB0", "b1AB0"]
    assert (buyer.account.n_retried, buyer.account.n_resumed) == (2, 10)
    assert buyer.account.failed == {"refusal": 1, "content_filter": 1, "context_overflow": 1}
    kept = first["status"].isin(["refusal", "content_filter", "context_overflow"])
    assert second.loc[kept, "status"].tolist() == first.loc[kept, "status"].tolist()
    willing = Counting()
    annotate(willing, BATTLES, slug="s", buyer=Buyer(store, retried={*RETRIED, "refusal"}))
    assert willing.asked == ["b2AB0"]


def test_what_another_table_asks_is_paid_for_once_in_one_run(store: VerdictStore) -> None:
    """The panel's first runs are those of the verdicts: of their failures it asks none again."""
    failing = {f"b{i}AB{run}": kind for run in (0, 1) for i, kind in enumerate(
        ("transport", "truncated", "parse_error", "refusal"))}  # fmt: skip
    annotate(Counting(failing), BATTLES, slug="s", n_replicates=2, buyer=Buyer(store))
    buyer = Buyer(store, retried={*RETRIED, "refusal"})
    stubborn = Counting(failing)
    annotate(stubborn, BATTLES, slug="s", buyer=buyer)
    assert stubborn.asked == ["b0AB0", "b1AB0", "b2AB0", "b3AB0"]
    panel, runs = Counting(failing), 2
    shown = present(BATTLES, runs)
    needed, _ = buyer.repeating(1).missing(panel, shown)
    annotate(panel, BATTLES, slug="s", n_replicates=runs, buyer=buyer.repeating(1))
    assert panel.asked == ["b0AB0", "b0AB1", "b3AB1"]
    assert [f"{one.battle_id}{one.order}{one.replicate}" for one in needed] == panel.asked


def test_unreadable_answers_are_kept_word_for_word_and_asked_again(store: VerdictStore) -> None:
    class Babbling(Counting):
        def replies(
            self, presentations: Sequence[Presentation], budget: Budget
        ) -> Iterator[tuple[int, Answer]]:
            for position, one in super().replies(presentations, budget):
                yield position, Answer("So \ud800 it is.", None, one.prompt_tokens, 1)

    babble = annotate(Babbling(), BATTLES, slug="s", buyer=Buyer(store))
    assert set(babble["status"]) == {"parse_error"}
    assert babble["answer"][0].startswith("So ")
    babble.to_parquet(Path(store.base.path) / "writable.parquet")
    assert len(asked(store)) == N_CALLS


def test_a_judge_that_cannot_be_read_is_asked_fifty_times_and_no_more(store: VerdictStore) -> None:
    battles = numbered(60)
    calls = [f"{name}{order}0" for name in battles["battle_id"] for order in ("AB", "BA")]
    failing: dict[str, str | None] = dict.fromkeys(calls, "parse_error")
    broken = Counting(failing)
    with pytest.raises(RuntimeError, match=r"none of 50 answers .* 70 calls.*--retry parse_e"):
        annotate(broken, battles, slug="s", buyer=Buyer(store))
    assert len(broken.asked) == 50
    mended = Counting({call: failing[call] for call in broken.asked[1:]})
    annotate(mended, battles, slug="s", buyer=Buyer(store))
    assert len(mended.asked) == 120
    chronic = Counting(failing)
    annotate(chronic, battles, slug="s", buyer=Buyer(store, retried={*RETRIED, "parse_error"}))
    assert len(chronic.asked) == 49  # few of a readable judge may fail again


@pytest.mark.parametrize(("other", "n_asked"), [("truncated", 50), ("transport", 51)])
def test_another_failure_among_the_unreadable_does_not_keep_a_judge_going(
    store: VerdictStore, other: str, n_asked: int
) -> None:
    battles = numbered(60)
    calls = [f"{name}{order}0" for name in battles["battle_id"] for order in ("AB", "BA")]
    broken = Counting(dict.fromkeys(calls, "parse_error") | {calls[3]: other})
    with pytest.raises(RuntimeError, match=rf"none of {n_asked} answers could be read"):
        annotate(broken, battles, slug="s", buyer=Buyer(store))
    assert len(broken.asked) == n_asked


def test_a_small_budget_is_named_though_its_answers_cannot_be_read(store: VerdictStore) -> None:
    battles = numbered(60)
    calls = [f"{name}{order}0" for name in battles["battle_id"] for order in ("AB", "BA")]
    annotate(Counting(), battles.head(1), slug="s", buyer=Buyer(store))
    broken = Counting(dict.fromkeys(calls, "parse_error"))
    with pytest.raises(BudgetError, match="budget of 60 calls"):
        annotate(broken, battles, slug="s", buyer=Buyer(store, Budget(60)))


def test_what_was_answered_before_an_interrupt_is_not_asked_again(store: VerdictStore) -> None:
    judge = Counting()
    judge.stops_after = 5
    with pytest.raises(KeyboardInterrupt):
        annotate(judge, BATTLES, slug="s", buyer=Buyer(store))
    again = Counting()
    resumed = annotate(again, BATTLES, slug="s", buyer=Buyer(store))
    assert again.asked == [call for call in _calls() if call not in judge.asked]
    pd.testing.assert_frame_equal(resumed, annotate(Counting(), BATTLES, slug="s"))


def _calls() -> list[str]:
    return [f"b{i}{order}0" for i in range(6) for order in ("AB", "BA")]


def test_a_budget_is_spent_to_the_end_never_exceeded_and_says_what_is_missing(store):
    judge = Counting()
    with pytest.raises(
        BudgetError, match=r"budget of 5 calls.*7 of the 12 calls.*larger budget.*JUDGELINE_BUDGET"
    ):
        annotate(judge, BATTLES, slug="s", buyer=Buyer(store, Budget(5)))
    assert judge.asked == _calls()[:5]
    rest = Counting()
    annotate(rest, BATTLES, slug="s", buyer=Buyer(store, Budget(7)))
    assert rest.asked == _calls()[5:]
    annotate(Counting(), BATTLES, slug="s", buyer=Buyer(store, Budget(0)))  # hits cost nothing


def test_a_budget_is_shared_by_the_judges_of_a_run(store: VerdictStore) -> None:
    budget = Budget(20)
    annotate(Counting(), BATTLES, slug="s", buyer=Buyer(store, budget))
    other = Counting(model="n")
    with pytest.raises(BudgetError, match="4 of the 12"):
        annotate(other, BATTLES, slug="t", buyer=Buyer(store, budget))
    assert len(other.asked) == 8


def test_progress_counts_what_was_there(store: VerdictStore) -> None:
    asked(store, BATTLES.head(4))
    told: list[tuple[int, ...]] = []

    def tell(account: Account) -> None:
        told.append((account.n_resumed, account.n_needed, account.n_asked, account.prompt_tokens))

    asked(store, on_progress=tell)
    assert told == [(8, 4, n, 11 * n) for n in range(1, 5)]


@pytest.mark.slow
def test_many_shards_are_merged_at_the_end(store: VerdictStore) -> None:
    for number in range(70):
        asked(store, BATTLES.head(1).assign(instruction=f"Q{number}"))
    (key,) = store.judge_keys()
    assert len(list((store.base / key).iterdir())) < 64
    assert len(statuses(store, key)) == 140


def test_an_answer_left_out_is_an_error_and_no_matter_of_money(store: VerdictStore) -> None:
    class Idle(Counting):
        def replies(
            self, presentations: Sequence[Presentation], budget: Budget
        ) -> Iterator[tuple[int, Answer]]:
            yield from list(super().replies(presentations, budget))[:-2]

    with pytest.raises(RuntimeError, match="2 of 12 presentations without an answer"):
        annotate(Idle(), BATTLES, slug="s", buyer=Buyer(store))
    assert asked(store) == _calls()[-2:]


@pytest.mark.parametrize("failure", ["truncated", "parse_error", "echo"])
def test_what_fails_dearly_is_tried_twice_and_then_on_request(store, failure):
    failing = {"b0AB0": failure}
    runs = [asked(store, judge={"failing": failing}) for _ in range(3)]
    assert runs == [_calls(), ["b0AB0"], []]
    (key,) = store.judge_keys()
    store.compact(key)  # which forgets no attempt
    assert asked(store, judge={"failing": failing}) == []
    willing = Counting(failing)
    annotate(willing, BATTLES, slug="s", buyer=Buyer(store, retried={*RETRIED, failure}))
    assert willing.asked == ["b0AB0"]


def test_an_answer_that_cannot_be_read_back_is_asked_for_and_never_taken_from_another(store):
    plain = annotate(Counting(), BATTLES.head(3), slug="s", buyer=Buyer(store))
    annotate(Counting(), BATTLES.tail(3), slug="s", buyer=Buyer(store))
    (key,) = store.judge_keys()
    first = min(Path(store.base.path, key).glob("*.parquet"))
    column = pq.ParquetFile(first).metadata.row_group(0).column(3)
    assert column.path_in_schema == "answer"
    written = bytearray(first.read_bytes())
    middle = column.data_page_offset + column.total_compressed_size - 5
    written[middle] ^= 0xFF
    first.write_bytes(written)
    assert len(statuses(store, key)) == N_CALLS  # the damage is in another column
    judge, buyer = Counting(), Buyer(store)
    again = annotate(judge, BATTLES, slug="s", buyer=buyer)
    assert judge.asked == _calls()[:6]
    pd.testing.assert_frame_equal(again.head(6), plain)
    assert buyer.account.damaged == (str(store.base / key / first.name),)
