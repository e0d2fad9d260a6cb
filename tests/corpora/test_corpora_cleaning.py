"""Cleaning and filters, on tables whose answers can be worked out in the head."""

import pandas as pd
import pytest

from judgeline.io import BATTLE_DTYPES, QUARANTINE_DTYPES, language_code, typed
from resources.config.corpora import Filters
from resources.corpora.assemble import clean_battles, filter_battles


def battles(**columns: list) -> pd.DataFrame:
    n = len(next(iter(columns.values())))
    table = {"battle_id": [f"b{row}" for row in range(n)], "model_a": "ant", "model_b": "bee"}
    return typed(pd.DataFrame({**table, **columns}, index=range(n)), BATTLE_DTYPES)


def test_clean_battles_keep_the_first_sound_one() -> None:
    raw = battles(battle_id=["x", "x", "x", None, "y"], model_b=["ant", "bee", "cat", "bee", "bee"])
    clean, quarantine = clean_battles(raw)
    assert clean[["battle_id", "model_b"]].to_numpy().tolist() == [["x", "bee"], ["y", "bee"]]
    assert quarantine[["row", "reason"]].to_numpy().tolist() == [
        [0, "self-battle"],
        [2, "duplicate-battle"],
        [3, "missing-battle-id"],
    ]
    assert {name: str(dtype) for name, dtype in quarantine.dtypes.items()} == QUARANTINE_DTYPES


def test_clean_battles_stay_as_they_are() -> None:
    raw = battles(language=["en", None], n_turns=[1, None])
    clean, quarantine = clean_battles(raw)
    pd.testing.assert_frame_equal(clean, raw)
    assert quarantine.empty


@pytest.mark.parametrize(
    ("filters", "kept", "dropped"),
    [
        ({}, [0, 1, 2, 3, 4], {}),
        ({"languages": ["en"]}, [0, 3, 4], {"unknown-language": 1, "other-language": 1}),
        ({"single_turn": True}, [0, 1, 2], {"unknown-turns": 1, "multi-turn": 1}),
        (
            {"languages": ["en", "de"], "single_turn": True},
            [0, 1],
            {"unknown-language": 1, "unknown-turns": 1, "multi-turn": 1},
        ),
    ],
)
def test_filters(filters, kept, dropped) -> None:
    table = battles(language=["en", "de", None, "en", "en"], n_turns=[1, 1, 1, 2, None])
    passed, counts = filter_battles(table, Filters(**filters))
    assert passed["battle_id"].tolist() == [f"b{row}" for row in kept]
    assert counts == dropped
    assert len(passed) + sum(counts.values()) == len(table)
    assert passed.index.tolist() == list(range(len(kept)))


@pytest.mark.parametrize(
    ("code", "published"),
    [
        *[("en", "English"), ("nn", "Norwegian Nynorsk"), ("gd", "SCOTS_GAELIC"), ("fa", "Farsi")],
        *[("sco", "scots"), ("de", "de"), ("zh", "zh-Hant"), ("pt", "pt_BR"), ("he", "iw")],
        *[("yue", "yue"), (None, "unknown"), (None, "und"), (None, "un"), (None, "")],
        *[(None, None), (None, float("nan")), (None, "Middle Elvish")],
    ],
)
def test_languages(code, published) -> None:
    assert language_code(published) == code
