"""Models that get every highest mark against every lowest, whatever the order."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from judgeline import rank
from judgeline.io.extremes import extreme_flags

MODELS = [f"m{i}" for i in range(6)]


def battles(n_each=20, seed=0, **extreme):
    """Return battles of all pairs; `extreme` has how many of its first each model gets extreme."""
    rng = np.random.default_rng(seed)
    rows = []
    for model_a, model_b in combinations(MODELS, 2):
        for _ in range(n_each):
            pair = (model_b, model_a) if rng.random() < 0.5 else (model_a, model_b)
            rows.append((*pair, *rng.uniform(-5, 5, 2)))
    table = pd.DataFrame(rows, columns=["model_a", "model_b", "difference_ab", "difference_ba"])
    for model, n in extreme.items():
        own = table.index[table[["model_a", "model_b"]].eq(model).any(axis=1)][:n]
        signs = np.where(table.loc[own, "model_a"].eq(model), 9.0, -9.0)
        table.loc[own, ["difference_ab", "difference_ba"]] = np.column_stack([signs, signs])
    return table


def test_a_model_with_extreme_sets_is_flagged_with_its_count():
    assert extreme_flags(battles(m2=30)) == {"m2": "highest-against-lowest: 30 of 100 battles"}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda t: t.assign(difference_ba=-t["difference_ba"]),  # the order's doing
        lambda t: t.assign(difference_ba=t["difference_ba"] * 0.9),  # not every mark
        lambda t: t.assign(difference_ab=np.nan),  # one order
        lambda t: t.assign(difference_ab=t["difference_ab"] * 10),  # another scale
        lambda t: t.drop(columns=["difference_ab", "difference_ba"]),
    ],
)
def test_other_sets_flag_nobody(spoil):
    assert extreme_flags(spoil(battles(m2=30))) == {}


@pytest.mark.parametrize(("n", "is_shown"), [(0, False), (4, False), (5, True)])
def test_it_is_shown_from_one_battle_in_twenty(n, is_shown):
    assert ("m2" in extreme_flags(battles(m2=n))) is is_shown


def test_boards_carry_the_flag():
    table = battles(m2=30).assign(battle_id=lambda t: [f"b{i}" for i in t.index])
    table["score_difference"] = table[["difference_ab", "difference_ba"]].mean(axis=1)
    rng = np.random.default_rng(1)
    table["human_outcome"] = rng.choice([0.0, 0.5, 1.0], len(table))
    board = rank(table).leaderboard.set_index("model")["flags"]
    assert "highest-against-lowest: 30 of 100 battles" in board["m2"].split(";")
    assert not board.drop("m2").str.contains("highest-against-lowest").any()
