import base64

import pandas as pd
import pytest

from assets import figures

LEADERBOARD = pd.DataFrame(
    {
        "rank": [1, 2],
        "model": ["ant", "bee"],
        "method": "soft",
        "rating": [1550.0, 1450.0],
        "std_error": 10.0,
        "lower": [1530.0, 1430.0],
        "upper": [1570.0, 1470.0],
        "tier": [1, 2],
        "human_rating": [1545.0, None],
        "n_battles": 40,
        "n_votes": [40, 0],
        "flags": "",
    }
)

DRIFT = pd.DataFrame(
    {
        "statistic": ["beta", "flip_rate"] * 3,
        "epoch": [1, 1, 2, 2, 3, 3],
        "z": [0.3, None, -4.1, 0.2, None, 1.0],
        "moved": [False, False, True, False, False, False],
    }
)


@pytest.mark.parametrize(
    "drawn",
    [
        lambda: figures.bars(pd.Series({"self-battle": 3, "unknown-winner": 9}), label="rows"),
        lambda: figures.reliability(pd.Series([0.2, 0.8]), pd.Series([0.3, 0.7])),
        lambda: figures.intervals(LEADERBOARD, "stub on tiny"),
        lambda: figures.drift_over_epochs(DRIFT),
    ],
)
def test_pictures_are_small_pngs_in_markdown(drawn):
    text = drawn().value
    head, _, data = text.partition("base64,")
    assert head.startswith("![")
    assert head.endswith("](data:image/png;")
    png = base64.b64decode(data.removesuffix(")"), validate=True)
    assert png.startswith(b"\x89PNG\r\n")
    assert len(png) < 60_000
