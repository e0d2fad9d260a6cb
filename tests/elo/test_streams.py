import numpy as np
import pytest

from judgeline.elo import keyed_rng


def draws(seed: int, *names: str) -> list[int]:
    return keyed_rng(seed, *names).integers(2**62, size=4).tolist()


def test_one_key_is_one_stream() -> None:
    assert draws(3, "arena", "judge") == draws(3, "arena", "judge")


def test_every_part_of_the_key_counts_and_so_does_its_place() -> None:
    keys = [
        (0,), (1,), (0, ""), (0, "a"), (1, "a"), (0, "a", "b"), (0, "b", "a"), (0, "ab"),
        (0, "a", ""), (0, "", "a"),
    ]  # fmt: skip
    assert len({tuple(draws(*key)) for key in keys}) == len(keys)


def test_streams_of_different_keys_are_not_correlated() -> None:
    first, second = (keyed_rng(0, "arena", name).standard_normal(20_000) for name in "ab")
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(20_000)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        keyed_rng(-1, "arena")
