import hashlib
from typing import Any

import pytest

from judgeline.verdict.identity import identity_hash, text_hash


def test_text_hash_is_sha256_of_utf_8() -> None:
    assert text_hash("prix : 5 €") == hashlib.sha256(b"prix : 5 \xe2\x82\xac").hexdigest()


def test_the_order_of_parts_does_not_matter() -> None:
    assert identity_hash({"a": "1", "b": "2"}) == identity_hash({"b": "2", "a": "1"})


@pytest.mark.parametrize(
    "other",
    [
        {"a": "1", "b": "3"},
        {"a": "1", "c": "2"},
        {"a": '1","b":"2'},
        {"a": "1"},
        {"a": "2", "b": "1"},
    ],
)
def test_another_content_has_another_identity(other: dict[str, str]) -> None:
    assert identity_hash(other) != identity_hash({"a": "1", "b": "2"})


def test_half_a_surrogate_pair_can_be_hashed() -> None:
    assert text_hash("\ud83d") != text_hash("\ud83c")


@pytest.mark.parametrize(
    ("content", "message"), [({}, "no content"), ({"seed": 1}, "'seed' is 1 of type int")]
)
def test_what_is_no_text_is_refused(content: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        identity_hash(content)
