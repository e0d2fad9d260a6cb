import hashlib
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgeline.sampling import appearances, balanced_sample, tiebreak_keys
from judgeline.verdict.identity import slug


@st.composite
def battle_sets(draw: st.DrawFn) -> tuple[list[str], list[str], list[int]]:
    n_models = draw(st.integers(2, 6))
    pair = st.tuples(st.integers(0, n_models - 1), st.integers(1, n_models - 1))
    pairs = draw(st.lists(pair, max_size=30))
    first = [f"m{a}" for a, _ in pairs]
    second = [f"m{(a + gap) % n_models}" for a, gap in pairs]
    keys = draw(st.lists(st.integers(0, 12), min_size=len(pairs), max_size=len(pairs)))
    return first, second, keys


def twin(first: list[str], second: list[str], keys: list[int], n: int, chosen: list[int]):
    """The rule as it is told: look at every battle left, each time."""
    picked = list(chosen)
    while len(picked) < n:
        seen = [name for row in picked for name in (first[row], second[row])]
        left = [row for row in range(len(first)) if row not in picked]
        picked.append(
            min(
                left,
                key=lambda row: (
                    min(seen.count(first[row]), seen.count(second[row])),
                    keys[row],
                    row,
                ),
            )
        )
    return picked


@given(battles=battle_sets(), data=st.data())
def test_sample_is_the_slow_rule(battles, data) -> None:
    first, second, keys = battles
    n = data.draw(st.integers(0, len(first)))
    rows = st.permutations(range(len(first)))
    chosen = data.draw(rows)[: data.draw(st.integers(0, len(first)))]
    sample = balanced_sample(first, second, keys, n_battles=n, chosen=chosen)
    assert sample.tolist() == twin(first, second, keys, n, chosen)


@given(battles=battle_sets(), data=st.data())
def test_a_sample_grows_without_losing_anything(battles, data) -> None:
    first, second, keys = battles
    n_before = data.draw(st.integers(0, len(first)))
    n_chosen = data.draw(st.integers(0, n_before))
    before = balanced_sample(
        first[:n_before], second[:n_before], keys[:n_before], n_battles=n_chosen
    )
    n_after = data.draw(st.integers(n_chosen, len(first)))
    after = balanced_sample(first, second, keys, n_battles=n_after, chosen=before)
    assert after[:n_chosen].tolist() == before.tolist()
    assert len(set(after.tolist())) == n_after


@given(battles=battle_sets(), data=st.data())
def test_stopping_and_going_on_is_not_stopping(battles, data) -> None:
    first, second, keys = battles
    whole = balanced_sample(first, second, keys, n_battles=len(first))
    stop = data.draw(st.integers(0, len(first)))
    part = balanced_sample(first, second, keys, n_battles=stop)
    rest = balanced_sample(first, second, keys, n_battles=len(first), chosen=part)
    assert part.tolist() == whole[:stop].tolist()
    assert rest.tolist() == whole.tolist()


@given(battles=battle_sets(), data=st.data())
def test_order_of_the_battles_does_not_matter(battles, data) -> None:
    first, second, _ = battles
    keys = tiebreak_keys([f"battle-{row}" for row in range(len(first))], seed=3)
    shuffle = np.array(data.draw(st.permutations(range(len(first)))), dtype=int)
    straight = balanced_sample(first, second, keys, n_battles=len(first))
    other = balanced_sample(
        np.array(first, dtype=object)[shuffle],
        np.array(second, dtype=object)[shuffle],
        keys[shuffle],
        n_battles=len(first),
    )
    assert shuffle[other].tolist() == straight.tolist()


@given(battles=battle_sets(), data=st.data())
@settings(max_examples=50)
def test_rarest_model_is_never_rarer_than_it_must_be(battles, data) -> None:
    first, second, keys = battles
    n = data.draw(st.integers(0, len(first)))
    sample = balanced_sample(first, second, keys, n_battles=n).tolist()
    left = set(range(len(first))) - set(sample)
    counts = dict.fromkeys(first + second, 0)
    for row in sample[:-1]:
        counts[first[row]] += 1
        counts[second[row]] += 1
    for row in left if sample else []:  # the last choice was at least as needed as any other
        last = sample[-1]
        assert min(counts[first[last]], counts[second[last]]) <= min(
            counts[first[row]], counts[second[row]]
        )


def test_more_chosen_than_asked_all_stay() -> None:
    chosen = [2, 0]
    sample = balanced_sample(
        ["a", "a", "b"], ["b", "c", "c"], [0, 1, 2], n_battles=1, chosen=chosen
    )
    assert sample.tolist() == [2, 0]


def test_equal_tiebreaks_go_by_position() -> None:
    keys = [3, 1] * 200
    sample = balanced_sample(["a"] * 400, ["b"] * 400, keys, n_battles=400)
    assert sample.tolist() == [*range(1, 400, 2), *range(0, 400, 2)]


def test_no_battles_give_an_empty_sample() -> None:
    sample = balanced_sample([], [], [], n_battles=0)
    assert sample.tolist() == []
    assert sample.dtype == np.int64


def test_tiebreak_is_the_published_hash_of_seed_and_id() -> None:
    keys = tiebreak_keys(["x", "ü"], seed=5)
    expected = hashlib.blake2b("5\x1fü".encode(), digest_size=8).hexdigest()
    assert keys.dtype == np.uint64
    assert f"{int(keys[1]):016x}" == expected
    assert keys[0] != tiebreak_keys(["x"], seed=6)[0]
    assert tiebreak_keys([], seed=0).size == 0


def test_appearances_against_uniform_sampling() -> None:
    first, second = ["a", "a", "a", "c"], ["b", "b", "b", "a"]
    found = appearances(first, second, [0, 3])
    assert found[:3] == (1.0, 1.0, 2.0)  # a 2, b 1, c 1
    assert found[3:] == (0.5, 1.5, 2.0)  # half of c 1, b 3, a 4


def test_balance_beats_uniform_sampling_on_a_skewed_corpus() -> None:
    rng = np.random.default_rng(1)
    share = np.array([0.4, 0.3, 0.2, 0.05, 0.03, 0.02])
    pairs = np.array([rng.choice(6, size=2, replace=False, p=share) for _ in range(3000)])
    first, second = np.array(list("abcdef"), dtype=object)[pairs.T]
    keys = tiebreak_keys([str(row) for row in range(3000)], seed=0)
    found = appearances(first, second, balanced_sample(first, second, keys, n_battles=300))
    assert found.minimum > 2 * found.uniform_minimum
    assert found.maximum < found.uniform_maximum


def test_150_000_battles_take_seconds_at_most() -> None:
    rng = np.random.default_rng(0)
    n = 150_000
    first = rng.integers(0, 110, n)
    second = (first + rng.integers(1, 110, n)) % 110
    names = np.array([f"model-{code}" for code in range(110)], dtype=object)
    keys = rng.integers(0, 2**63, n)
    started = time.perf_counter()
    sample = balanced_sample(names[first], names[second], keys, n_battles=n)
    assert time.perf_counter() - started < 8  # about one second on an idle machine
    assert sorted(sample.tolist()) == list(range(n))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_battles": 4}, r"0\.\.3 .* got 4"),
        ({"n_battles": -1}, "got -1"),
        ({"chosen": [0, 0]}, "position 0 is chosen twice"),
        ({"chosen": [3]}, "position 3 is none of the 3"),
        ({"chosen": [-1]}, "position -1 is none"),
        ({"tiebreak": [1, 2]}, r"shape \(3,\).* got \(2,\)"),
        ({"model_b": ["b"]}, r"\(3,\) and \(1,\)"),
    ],
)
def test_bad_input_names_the_value(changes, message) -> None:
    given_ = {
        "model_a": ["a", "a", "b"],
        "model_b": ["b", "c", "c"],
        "tiebreak": [0, 1, 2],
        "n_battles": 2,
    } | changes
    with pytest.raises(ValueError, match=message):
        balanced_sample(
            given_.pop("model_a"), given_.pop("model_b"), given_.pop("tiebreak"), **given_
        )


def test_appearances_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="no battles"):
        appearances([], [], [])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Qwen/Qwen2.5 72B", "qwen-qwen2.5-72b"),
        ("gpt-4o_mini", "gpt-4o_mini"),
        ("..evil..name..", "evil.name"),
        ("Élan (v2)", "elan-v2"),
        ("a|b,c", "a-b-c"),
    ],
)
def test_slugs(name: str, expected: str) -> None:
    assert slug(name) == expected


@given(st.text(min_size=1))
def test_a_slug_is_its_own_slug_or_there_is_none(name: str) -> None:
    try:
        found = slug(name)
    except ValueError as error:
        assert repr(name) in str(error)  # noqa: PT017
    else:
        assert slug(found) == found
        assert found[0].isalnum()
        assert set(found) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
        assert ".." not in found
