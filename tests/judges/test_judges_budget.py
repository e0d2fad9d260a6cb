"""Caps on calls, tokens and money: how they are written, and that nothing gets past them."""

import multiprocessing
import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from answering import annotate, statuses
from buyer_process import buy, numbered, store_in, tiny_judge
from fault_server import USAGE, FaultServer, judged, serving
from hypothesis import example, given
from hypothesis import strategies as st

from judgeline.judges.budget import Budget, Cost, Meter, Price
from judgeline.judges.buying import Account, BudgetError, Buyer

PAID = sum(USAGE)  # tokens that the server states per answer
PRICE = {"prompt": 3.0, "completion": 15.0, "currency": "EUR"}
PAID_MONEY = Fraction(USAGE[0] * 3 + USAGE[1] * 15, 10**6)


# writing a budget


@pytest.mark.parametrize(
    ("texts", "limits"),
    [
        (["5000calls"], {"calls": 5000}),
        ([" 5k calls "], {"calls": 5000}),
        (["1_000_000calls"], {"calls": 1_000_000}),
        (["1,000calls"], {"calls": 1000}),
        (["0calls"], {"calls": 0}),
        (["2Mtokens"], {"tokens": 2_000_000}),
        (["1.5M tokens"], {"tokens": 1_500_000}),
        (["12.50USD"], {"money": 12.5, "currency": "USD"}),
        (["2kJPY"], {"money": 2000.0, "currency": "JPY"}),
        (["5calls", "7tokens", "1EUR"], {"calls": 5, "tokens": 7, "money": 1, "currency": "EUR"}),
        ([], {}),
    ],
)
def test_budgets_are_read(texts: list[str], limits: dict[str, Any]) -> None:
    none = {"calls": None, "tokens": None, "money": None, "currency": None}
    budget = Budget.parse(texts)
    assert {name: getattr(budget, name) for name in none} == none | limits


@given(thousandths=st.integers(0, 10**7), scale=st.sampled_from(["k", "M"]))
@example(thousandths=4_350, scale="M")
@example(thousandths=1_001, scale="k")
def test_decimals_of_thousands_are_whole_numbers_of_calls(thousandths: int, scale: str) -> None:
    amount = Decimal(thousandths) / 1000
    budget = Budget.parse([f"{amount:f}{scale}calls"])
    assert budget.calls == thousandths * {"k": 1, "M": 1000}[scale]


EXAMPLES = r"5000calls, 2Mtokens or 12\.50USD"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        *(
            ([text], rf"{re.escape(repr(text))}.*{EXAMPLES}")
            for text in ("", "calls", "-3calls", "1e3calls", "nanUSD", "5usd", "5EURO", "5 6calls")
        ),
        (["12,50USD"], EXAMPLES),
        *(
            ([text], f"has no unit; write {text}calls, {text}tokens, or")
            for text in ("5", "5000", "12.50")
        ),
        *(([text], "no whole number of") for text in ("1.5calls", "0.5tokens", "1.0005kcalls")),
        (["1calls", "2calls"], "caps calls twice"),
        (["1tokens", "1tokens"], "caps tokens twice"),
        (["1USD", "1EUR"], "caps money twice"),
    ],
)
def test_what_is_no_budget_is_refused_with_the_remedy(texts: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Budget.parse(texts)


def test_a_budget_says_what_it_caps() -> None:
    assert str(Budget.parse(["5000calls", "2Mtokens", "12.5USD"])) == (
        "5,000 calls and 2,000,000 tokens and 12.50 USD"
    )
    assert str(Budget()) == "no cap"


# reserving and settling


@given(
    cap=st.tuples(*(st.none() | st.integers(0, 60),) * 2),
    money=st.none() | st.integers(0, 60),
    steps=st.lists(st.tuples(*(st.integers(0, 20),) * 4, st.booleans()), max_size=40),
)
def test_a_grant_is_what_exact_sums_allow(cap, money, steps) -> None:
    """Against sums of fractions: money in thirds of a cent, which floats cannot hold."""
    third = Fraction(1, 300)
    limit = None if money is None else float(money * third)
    budget = Budget(cap[0], tokens=cap[1], money=limit, currency="USD")
    spent, held = [Fraction(0)] * 3, []
    for calls, prompt, completion, cents, settles in steps:
        most = (Fraction(calls), Fraction(prompt + completion), cents * third)
        total = [s + sum(h[i] for h, _ in held) + most[i] for i, s in enumerate(spent)]
        limits = (cap[0], cap[1], None if money is None else money * third)
        fits = all(top is None or t <= top for t, top in zip(total, limits, strict=True))
        cost = Cost(calls, prompt, completion, float(cents * third))
        assert budget.reserve(cost) is fits
        if fits:
            held.append((most, cost))
        if settles and held:
            done, cost = held.pop(0)
            budget.settle(cost, cost)
            spent = [s + d for s, d in zip(spent, done, strict=True)]
        assert budget.n_open == len(held)
    assert [budget.spent.calls, budget.spent.prompt_tokens + budget.spent.completion_tokens] == (
        spent[:2]
    )


def test_no_thread_gets_past_a_cap() -> None:
    cap = 50_000
    budget = Budget(tokens=cap)
    granted: list[int] = []
    seen: list[int] = []
    stop = threading.Event()

    def spend(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for most in rng.integers(1, 400, size=400):
            asked = Cost(1, int(most) // 2, int(most) - int(most) // 2)
            if budget.reserve(asked):
                used = int(rng.integers(0, int(most) + 1))
                granted.append(used)
                budget.settle(asked, Cost(1, used, 0))

    def watch() -> None:
        while not stop.is_set():
            with budget._lock:
                total = budget.spent.plus(budget._reserved)
            seen.append(total.prompt_tokens + total.completion_tokens)

    threads = [threading.Thread(target=spend, args=(seed,)) for seed in range(8)]
    watcher = threading.Thread(target=watch)
    for thread in [watcher, *threads]:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    watcher.join()
    assert max(seen) <= cap
    assert sum(granted) == budget.spent.prompt_tokens <= cap
    assert budget.spent.calls == len(granted)
    assert budget._reserved == Cost()
    assert budget.has_refused


# over HTTP


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with serving(FaultServer(latency_s=0.002)) as one:
        yield one


def purchase(
    server: FaultServer, folder: Path, budget: Budget, n_battles: int = 100, **fields: object
) -> pd.DataFrame:
    declared = {"concurrency": 16, "decoding": {"max_tokens": 80}, **fields}
    judge = tiny_judge(server.url, folder, **declared)
    buyer = Buyer(store_in(folder), budget)
    return annotate(judge, numbered(n_battles), slug="j", buyer=buyer)


def n_stored(folder: Path) -> int:
    store = store_in(folder)
    return sum(len(statuses(store, key)) for key in store.judge_keys())


def test_tokens_are_never_exceeded_and_the_rest_can_be_bought_later(server, tmp_path):
    cap = 20_000
    budget = Budget(tokens=cap)
    with pytest.raises(BudgetError, match=r"of 20,000 tokens is spent: [\d,]+ of the 200") as told:
        purchase(server, tmp_path, budget)
    n_asked = len(server.presentations)
    assert PAID * n_asked == budget.spent.prompt_tokens + budget.spent.completion_tokens <= cap
    assert n_stored(tmp_path) == n_asked > 0
    assert f"{200 - n_asked:,} of the 200" in str(told.value)
    assert f"{n_asked} were made now" in str(told.value)
    # what is left does not cover one more, even if each byte of its prompt were a token
    longest = max(len(body["messages"][0]["content"]) for body in server.presentations)
    assert cap - PAID * n_asked < longest + 3000

    verdicts = purchase(server, tmp_path, Budget(tokens=200 * PAID + 20_000))
    assert len(server.presentations) == 200
    assert verdicts["status"].eq("ok").all()


def test_money_is_never_exceeded(server: FaultServer, tmp_path: Path) -> None:
    cap = Fraction(6, 100)
    budget = Budget(money=float(cap), currency="EUR")
    with pytest.raises(BudgetError, match=r"of 0\.06 EUR is spent"):
        purchase(server, tmp_path, budget, price_per_million=PRICE)
    n_asked = len(server.presentations)
    assert n_asked * PAID_MONEY <= cap
    assert budget.spent.money == pytest.approx(float(n_asked * PAID_MONEY), rel=1e-9)
    assert n_stored(tmp_path) == n_asked > 0


def test_requests_that_were_lost_count_as_if_they_had_been_billed(tmp_path: Path) -> None:
    cap = 60_000

    def fault(texts: tuple[str, ...], n: int) -> str | None:
        return ("disconnect", "truncated-json")[n] if n < 2 and int(texts[0][9:]) % 5 == 0 else None

    with serving(FaultServer(fault)) as server:
        budget = Budget(tokens=cap)
        with pytest.raises(BudgetError):
            purchase(server, tmp_path, budget)
        assert PAID * len(server.presentations) <= cap
        spent = budget.spent.prompt_tokens + budget.spent.completion_tokens
        assert PAID * len(server.presentations) < spent <= cap
        assert budget.spent.calls == len(server.presentations)
        assert n_stored(tmp_path) > 0


def really_taken(server: FaultServer) -> tuple[int, float]:
    """The tokens and the money that requests took by the server's count: four bytes a token."""
    prompts = sum(len(body["messages"][0]["content"]) // 4 for body in server.presentations)
    answers = sum(len(judged(body)) // 4 for body in server.presentations)
    return prompts + answers, (prompts * 3.0 + answers * 15.0) / 1e6


@pytest.mark.slow
@pytest.mark.parametrize(
    "usage", [(1, 1), (10, 20), (400, 1), (1, 40), (0, 0), (10**6, 10**6), (400, 10**6)]
)
@pytest.mark.parametrize("cap", [Budget(tokens=60_000), Budget(money=0.3, currency="EUR")])
def test_a_cap_holds_against_any_usage_that_a_server_states(usage, cap, tmp_path, caplog):
    budget = Budget(tokens=cap.tokens, money=cap.money, currency=cap.currency)
    with serving(FaultServer(usage=usage)) as server, pytest.raises(BudgetError):
        purchase(
            server, tmp_path, budget, 300, price_per_million=PRICE, decoding={"max_tokens": 300}
        )
    assert 10 < len(server.presentations) == budget.spent.calls == n_stored(tmp_path)
    tokens, money = really_taken(server)
    if cap.tokens is not None:
        spent = budget.spent.prompt_tokens + budget.spent.completion_tokens
        assert max(spent, tokens) <= cap.tokens
    if cap.money is not None:
        assert max(budget.spent.money, money) <= cap.money
    told = [record.message for record in caplog.records if "implausible" in record.message]
    assert len(told) == (usage != (0, 0))
    assert all(str(tokens) in told[0].replace(",", "") for tokens in usage if told)


def metered(budget: Budget) -> Meter:
    return Meter(budget, None, Counter(), lambda _: None)


@pytest.mark.parametrize("per_token", [4, 7.9, 8, 8.1, 16, 1000])
def test_understated_usage_overruns_a_cap_at_most_twofold(per_token: float) -> None:
    """The server counts four bytes a token, and states fewer tokens than that."""
    n_bytes, cap = (8_000, 1_600), 60_000
    budget, taken = Budget(tokens=cap), 0.0
    meter, most = metered(budget), Cost(1, 8_200, 2_000)
    while budget.reserve(most):
        stated = int(n_bytes[0] / per_token), int(n_bytes[1] / per_token)
        budget.settle(most, meter.cost(stated, n_bytes, most))
        taken += sum(n_bytes) / 4
    assert taken <= 2 * cap
    assert (meter.counts["implausible_usage"] > 0) == (per_token > 8)


def test_a_prompt_is_held_to_the_record_of_the_judge() -> None:
    meter, most = metered(Budget()), Cost(1, 8_200, 2_000)
    for _ in range(19):
        meter.cost((2_667, 20), (8_000, 80), most)  # three bytes a token
    understated = (1_143, 20), (8_000, 80), most  # seven
    assert meter.cost(*understated).prompt_tokens == 1_143  # the record is short
    meter.cost((2_667, 20), (8_000, 80), most)
    assert meter.cost(*understated) == most
    assert meter.cost((1_600, 20), (8_000, 80), most).prompt_tokens == 1_600  # five: English


def test_a_long_answer_counts_as_long_as_it_is(tmp_path: Path) -> None:
    """A server that ignores the limit overruns the cap by the answers in flight, and no more."""
    budget = Budget(tokens=60_000)
    long = FaultServer(answer=lambda body: judged(body) + "so " * 2000, usage=(400, 2000))
    with serving(long) as server, pytest.raises(BudgetError):
        purchase(server, tmp_path, budget, concurrency=4)
    assert budget.spent.completion_tokens == 2000 * len(server.presentations)
    assert budget.spent.prompt_tokens + budget.spent.completion_tokens <= 60_000 + 4 * 2400


def test_turned_down_requests_cost_nothing(tmp_path: Path) -> None:
    with serving(FaultServer(lambda texts, n: "429" if n < 2 else None)) as server:
        verdicts = purchase(server, tmp_path, Budget(60), n_battles=30)
    assert len(server.presentations) == 180
    assert verdicts["status"].eq("ok").all()


@pytest.mark.slow
def test_two_processes_buy_each_call_once(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    context = multiprocessing.get_context("spawn")
    with serving(FaultServer(latency_s=0.01)) as server:
        arguments = (server.url, str(tmp_path), 150)
        both = [context.Process(target=buy, args=arguments) for _ in range(2)]
        for process in both:
            process.start()
        for process in both:
            process.join(120)
        assert [process.exitcode for process in both] == [0, 0]
        assert len(server.presentations) == len(server.asked) == 300
        assert n_stored(tmp_path) == 300
        buy(*arguments)
        assert len(server.presentations) == 300


# the ledger: what the account of a judge says


PRICES = Price(prompt=2.0, completion=10.0, currency="EUR")


class Somewhere:
    """A judge that says where it was asked."""

    metadata = {"endpoint": "http://here/v1"}  # noqa: RUF012
    counts = Counter(requests=4, lost=1)  # noqa: RUF012


def account(**changes: object) -> Account:
    filled = Account(
        n_calls=1000, n_resumed=600, n_needed=400, n_asked=100, prompt_tokens=50_000,
        completion_tokens=10_000, failed=Counter(refusal=2, parse_error=1),
        charged=Cost(100, 50_000, 10_000, 0.2), seconds=20.0,
    )  # fmt: skip
    for name, value in changes.items():
        setattr(filled, name, value)
    return filled


@pytest.mark.parametrize(
    ("price", "changes", "line"),
    [
        # 100 in 20 s is 5 a second, so that the other 300 take a minute
        (PRICES, {}, "5.0/s, 0:01:00 left, 3 failed, 60,000 tokens, 0.2000 EUR"),
        (PRICES, {"charged": Cost(100, 90_000, 20_000, 0.57)},
         "5.0/s, 0:01:00 left, 3 failed, 60,000 tokens (110,000 counted), 0.5700 EUR"),
        (None, {"seconds": 2000}, "0.1/s, 1:40:00 left, 3 failed, 60,000 tokens"),
        (None, {"seconds": 0.1}, "1,000.0/s, 0:00:00 left, 3 failed, 60,000 tokens"),
        (None, {"seconds": 0.0, "failed": Counter()}, "60,000 tokens"),
    ],
)  # fmt: skip
def test_progress_states_rate_time_left_failures_and_spend(price, changes, line):
    told = account(**changes).text("strict", price)
    assert told == f"strict answered 700 of 1,000, {line}"


def test_entries_are_the_account_with_its_price_and_place() -> None:
    entries = account(n_asked=400).entries(Somewhere(), PRICES)
    assert (entries["spent"], entries["tokens_charged"]) == (0.2, 60_000)
    assert entries["currency"] == "EUR"
    assert (entries["n_calls"], entries["n_resumed"], entries["n_asked"]) == (1000, 600, 400)
    assert entries["failures"] == {"refusal": 2, "parse_error": 1}
    assert entries["endpoint"] == {"endpoint": "http://here/v1", "requests": 4, "lost": 1}
    unasked = account(n_asked=0).entries(Somewhere(), None)
    assert not {"endpoint", "spent"} & {*unasked}
