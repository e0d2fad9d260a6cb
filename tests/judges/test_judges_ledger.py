from collections import Counter

import pytest

from resources.judges.budget import Cost
from resources.judges.buying import Account
from resources.judges.judge import Answer
from resources.judges.ledger import Ledger
from resources.judges.live.fields import Price

PRICE = Price(prompt=2.0, completion=10.0, currency="EUR")


class Somewhere:
    """A judge that says where it was asked."""

    metadata = {"endpoint": "http://here/v1"}  # noqa: RUF012
    counts = Counter(requests=4, lost=1)  # noqa: RUF012


def account(**changes: object) -> Account:
    filled = Account(
        n_calls=1000,
        n_resumed=600,
        n_needed=400,
        n_asked=100,
        prompt_tokens=50_000,
        completion_tokens=10_000,
        failed=Counter(refusal=2, parse_error=1),
        charged=Cost(100, 50_000, 10_000, 0.2),
        seconds=20.0,
    )
    for name, value in changes.items():
        setattr(filled, name, value)
    return filled


def test_progress_states_rate_time_left_failures_and_spend() -> None:
    # 100 in 20 s is 5 a second, so that the other 300 take a minute; 0.10 for prompts and answers
    assert Ledger("strict", PRICE).told(account()) == (
        "strict answered 700 of 1,000, 5.0/s, 1:00 left, 3 failed, 60,000 tokens, 0.2000 EUR"
    )


def test_progress_states_the_counted_tokens_where_the_server_states_fewer() -> None:
    told = Ledger("strict", PRICE).told(account(charged=Cost(100, 90_000, 20_000, 0.57)))
    assert told.endswith("60,000 tokens (110,000 counted), 0.5700 EUR")


@pytest.mark.parametrize(("seconds", "left"), [(20, "1:00"), (2000, "1:40:00"), (0.1, "0:00")])
def test_time_left_is_readable(seconds: float, left: str) -> None:
    assert f", {left} left" in Ledger("strict", None).told(account(seconds=seconds))


def test_nothing_is_said_of_what_is_not_known() -> None:
    told = Ledger("strict", None).told(account(seconds=0.0, failed=Counter()))
    assert told == "strict answered 700 of 1,000, 60,000 tokens"


def test_entries_are_the_account_with_its_price_and_place() -> None:
    entries = Ledger("strict", PRICE).entries(account(n_asked=400), Somewhere())
    assert (entries["spent"], entries["tokens_charged"]) == (0.2, 60_000)
    assert entries["currency"] == "EUR"
    assert (entries["n_calls"], entries["n_resumed"], entries["n_asked"]) == (1000, 600, 400)
    assert entries["failures"] == {"refusal": 2, "parse_error": 1}
    assert entries["endpoint"] == {"endpoint": "http://here/v1", "requests": 4, "lost": 1}


def test_a_judge_that_was_not_asked_is_not_looked_for() -> None:
    entries = Ledger("strict", None).entries(account(n_asked=0), Somewhere())
    assert "endpoint" not in entries
    assert "spent" not in entries


def test_only_answers_of_this_run_are_counted_as_bought() -> None:
    books = Account(n_calls=3, n_resumed=1, n_needed=2)
    books.add(Answer("{}", None, 10, 5), "ok")
    books.add(Answer(None, "transport", 0, 0), "transport")
    assert (books.n_asked, books.prompt_tokens, books.completion_tokens) == (2, 10, 5)
    assert books.failed == {"transport": 1}
