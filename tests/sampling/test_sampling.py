import hashlib

import numpy as np
import pytest
from hypothesis import given
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
def test_sample_is_the_slow_rule_whatever_was_chosen_before(battles, data) -> None:
    """So a sample goes on as if it had never stopped, and loses nothing when battles are added."""
    first, second, keys = battles
    n = data.draw(st.integers(0, len(first)))
    rows = st.permutations(range(len(first)))
    chosen = data.draw(rows)[: data.draw(st.integers(0, len(first)))]
    sample = balanced_sample(first, second, keys, n_battles=n, chosen=chosen)
    assert sample.dtype == np.int64
    assert sample.tolist() == twin(first, second, keys, n, chosen)


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
    names = [kind + name for kind in ("", "uniform_") for name in ("minimum", "median", "maximum")]
    # a 2, b 1, c 1; then half of c 1, b 3, a 4
    assert found == dict(zip(names, [1.0, 1.0, 2.0, 0.5, 1.5, 2.0], strict=True))
    with pytest.raises(ValueError, match="the number of battles is 0"):
        appearances([], [], [])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_battles": 4}, r"n_battles is 4"),
        ({"n_battles": -1}, "n_battles is -1"),
        ({"chosen": [0, 0]}, "position 0 is chosen twice"),
        ({"chosen": [3]}, "position is 3 in row 0"),
        ({"chosen": [-1]}, "position is -1 in row 0"),
        ({"tiebreak": [1, 2]}, r"model_a \(3,\), tiebreak \(2,\)"),
        ({"model_b": ["b"]}, r"model_a \(3,\), model_b \(1,\)"),
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
