"""Label plans of models and of the corpus, and the reasons where there is none."""

import math

import numpy as np
import pytest

from judgeline.winrate.label_plans import plan_labels
from judgeline.winrate.outcome_tables import tabulate_outcomes

from win_rate_worlds import coded, world  # isort: skip


def test_plans_of_models_and_of_the_corpus() -> None:
    battles, question, _ = world(7, n_battles=16_000, share_voted=0.2)
    tables = tabulate_outcomes(battles, question)
    found = plan_labels(tables, half_width=0.05, miscoverage=0.1)
    assert found.grouping.tolist() == ["all"] * 2 + ["model"] * 16
    assert found.chosen_by.tolist() == ["human outcome", "verdict"] * 9
    assert set(found.status) == {"ok"}
    needy = (found.win_rate_half_width > 0.05) & (found.status == "ok")
    assert needy.any()
    assert (found.planned_half_width <= 0.05).all()
    more = found.n_more_won + found.n_more_lost
    assert ((more > 0) == needy).all()
    for row in np.flatnonzero(needy):
        said = "humans" if found.chosen_by[row] == "human outcome" else "the judge"
        assert found.plan[row].startswith(f"Label {more[row]:.0f} more battles, ")
        assert f"{found.n_more_won[row]:.0f} where {said} said that it won" in found.plan[row]


@pytest.mark.parametrize(
    ("options", "half_width", "status"),
    [
        ({"share_voted": 1.0}, 0.05, "all-voted"),
        ({"share_voted": 0.2}, 0.001, "out-of-reach"),
    ],
)
def test_where_there_is_no_plan_it_says_why(options: dict, half_width: float, status: str) -> None:
    tables = tabulate_outcomes(*world(8, **options)[:2])
    found = plan_labels(tables, half_width=half_width, miscoverage=0.1)
    assert set(found.status) == {status}
    assert np.isnan(found.planned_half_width).all()
    assert np.isnan(found.n_more_won).all()
    assert all(words.startswith("No plan: ") for words in found.plan)


def test_a_judge_at_chance_has_no_plan() -> None:
    battles, question, human = world(8, share_voted=0.2)
    voted = np.where(battles.human_outcome < 0, np.nan, human)
    wrong = coded(battles.model_a, battles.model_b, voted, 1 - human)
    found = plan_labels(tabulate_outcomes(wrong, question), half_width=0.05, miscoverage=0.1)
    assert set(found.status) == {"chance"}


@pytest.mark.parametrize("half_width", [0.0, -1.0, math.inf, math.nan])
def test_a_bad_half_width_is_refused(half_width: float) -> None:
    with pytest.raises(ValueError, match="half_width must be a positive share"):
        plan_labels(tabulate_outcomes(*world(8)[:2]), half_width=half_width, miscoverage=0.1)
