"""Battles of one question: design effects and outward ends, against slow twins and repeated rows.

The penalty is the only thing that tells a table from the same table three times; it is made so
small that it does not.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from arenas import code, dense_battles, name, play, random_pairs, stress_battles
from likeness import by_model_and_method, rate
from scipy.special import expit
from twins import (
    ELO_PER_LOGIT,
    Battle,
    all_models,
    fold_anchors,
    held_out,
    human_outcome,
    human_placement,
    judge_outcome,
    voted_models,
)

import judgeline
from judgeline.api import Settings
from judgeline.elo import RatingSettings
from judgeline.elo import rate as rate_battles

PLAINLY = RatingSettings(n_resamples=0, smoothing_levels=())


def asked_alike(seed: int, n_questions: int = 60) -> tuple[list[Battle], np.ndarray]:
    """Battles of eight models, four to a question that suits a model or does not; one unvoted."""
    rng = np.random.default_rng(seed)
    strength, battles, question = rng.normal(0, 0.7, 8), [], []
    for number in range(n_questions):
        suits = strength + rng.normal(0, 4, 8)
        battles += play(rng, random_pairs(rng, 4, 4), suits[:4], unvoted=[])
        battles += play(rng, [(4 + a, b) for a, b in random_pairs(rng, 4, 4)], suits, unvoted=[7])
        question += [number] * 8
    return battles, np.array(question)


# ------------------------------------------------------------------ design effects


def design_effects_by_hand(
    battles: Sequence[Battle], question: Sequence[object], l2: float
) -> dict[str, float]:
    """Sums of residuals by question over residuals one by one, in the mean of the other models."""
    ratio = {}
    for model in voted_models(battles):
        anchors = fold_anchors(battles, model, human_outcome, l2, only_votes=True)
        own = human_placement(battles, model, l2)
        if anchors is None or own is None:
            continue
        by_question: dict[object, list[float]] = {}
        for battle, asked in zip(battles, question, strict=True):
            if battle.human is None or model not in battle.models():
                continue
            first = battle.model_a == model
            other, share = (
                (battle.model_b, battle.human) if first else (battle.model_a, 1 - battle.human)
            )
            residual = share - expit(own.strength - anchors[other])
            by_question.setdefault(asked, []).append(float(residual))
        together = sum(sum(group) ** 2 for group in by_question.values())
        ratio[model] = together / sum(r * r for group in by_question.values() for r in group)
    effects = {}
    for model in all_models(battles):
        others = [value for other, value in ratio.items() if other != model]
        effects[model] = max(1.0, sum(others) / len(others)) if others else 1.0
    return effects


@pytest.mark.parametrize("seed", range(3))
def test_design_effects_are_those_of_the_twin_and_widen_human_errors(seed: int) -> None:
    battles, question = asked_alike(seed)
    expected = design_effects_by_hand(battles, question.tolist(), 0.01)
    assert max(expected.values()) > 1.1, "these votes go together"
    found = rate(battles, PLAINLY, cluster=np.array([f"q{k}" for k in question]))
    for (model, _), row in by_model_and_method(found).items():
        assert row["design_effect"] == pytest.approx(expected[model], rel=1e-6)
        human = human_placement(battles, model, 0.01) if model in voted_models(battles) else None
        error = human.std_error() * math.sqrt(expected[model]) if human else math.nan
        assert row["human_std_error"] == pytest.approx(error, rel=1e-5, nan_ok=True)


def test_the_fold_of_a_star_without_its_hub_adds_nothing() -> None:
    battles = stress_battles("star")
    question = np.arange(len(battles)) // 4
    found = by_model_and_method(rate(battles, PLAINLY, cluster=question))
    expected = design_effects_by_hand(battles, question.tolist(), 0.01)
    assert found[name(0), "hard"]["design_effect"] == pytest.approx(expected[name(0)], rel=1e-6)
    assert found[name(1), "hard"]["design_effect"] == pytest.approx(expected[name(1)], rel=1e-6)


def test_battles_with_a_question_each_or_without_any_are_independent() -> None:
    battles = dense_battles(2)
    each = np.random.default_rng(0).permutation(len(battles))
    for cluster in (None, each):
        found = rate(battles, PLAINLY, cluster=cluster)
        assert found.design_effect == pytest.approx(1, abs=1e-12)


def test_votes_that_share_nothing_but_a_name_have_a_design_effect_near_one() -> None:
    """Independent votes in groups at random: 1 in expectation, and never less on the board."""
    means = []
    for seed in range(20):
        battles = dense_battles(seed)
        groups = np.random.default_rng(seed).integers(0, 60, len(battles))
        means.append(np.mean(rate(battles, PLAINLY, cluster=groups).design_effect))
    assert 1 <= np.mean(means) < 1.15


def test_a_table_joined_three_times_has_three_times_the_design_effect() -> None:
    """And the human standard error that it had: no new people were asked."""
    battles, question = asked_alike(5)
    tables = [
        by_model_and_method(
            rate_battles(
                code(battles * times),
                replace(PLAINLY, l2=1e-9),
                cluster=np.tile(question, times),
            )
        )
        for times in (1, 3)
    ]
    for key, once in tables[0].items():
        thrice = tables[1][key]
        assert thrice["design_effect"] == pytest.approx(3 * once["design_effect"], rel=1e-6)
        # the weights of ``gap`` have a penalty of their own; votes one by one are not the board's
        tolerance = 0.02 if key[1] in ("gap", "auto") else 1e-5
        known = ("human_std_error", "outward", "rating", "std_error_analytic")
        for number in known[: 3 if key[1] == "human" else 4]:
            assert thrice[number] == pytest.approx(once[number], rel=tolerance, nan_ok=True), key


@pytest.mark.parametrize("n_resamples", [0, 50])
def test_no_interval_of_a_board_moves_if_its_file_is_joined_three_times(n_resamples: int) -> None:
    """Three times the battles weigh three times against the penalties; else nothing moves.

    Of 100 battles of a model with ``p (1 - p)`` near 0.2 the penalty of 2 l2 = 0.02 takes a
    thousandth; of 700 votes that of 1 on the weights of ``gap`` takes 1 %. So 2 % bounds both.
    """
    battles, question = asked_alike(8, 100)
    once = pd.DataFrame(
        [(b.model_a, b.model_b, b.human, b.score) for b in battles],
        columns=["model_a", "model_b", "human_outcome", "score_difference"],
    ).assign(question_id=question, battle_id=np.arange(len(battles)))
    thrice = pd.concat(
        [once.assign(battle_id=once["battle_id"].astype(str) + f"-{copy}") for copy in range(3)]
    )
    settings = Settings(n_resamples=n_resamples, miscoverage=0.2)
    first, second = (
        judgeline.rank(table, settings).leaderboard.set_index("model") for table in (once, thrice)
    )
    second = second.loc[first.index]
    assert second["n_battles"].tolist() == (3 * first["n_battles"]).tolist()
    assert np.isfinite(first["upper"]).all()
    for start in ("", "judge_"):
        sides = [board[f"{start}upper"] - board[f"{start}lower"] for board in (first, second)]
        assert sides[1].to_numpy() == pytest.approx(sides[0].to_numpy(), rel=0.02)
        for end in ("lower", "rating", "upper"):
            assert second[start + end].to_numpy() == pytest.approx(
                first[start + end].to_numpy(), abs=0.02 * sides[0].median()
            )
    assert second["human_std_error"].to_numpy() == pytest.approx(
        first["human_std_error"].to_numpy(), rel=0.005, nan_ok=True
    )


FILES = (
    "hanna_chatgpt.csv", "hanna_llama-13b.csv", "llmfao_gpt4_votes.csv", "mtbench_gpt4.csv",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_bootstrap_and_closed_form_agree_on_real_questions(file: str, data_dir) -> None:
    path = data_dir / "real" / file
    if not path.is_file():
        pytest.skip(f"no real data: {path} does not exist")
    heldout = judgeline.rank(path).heldout
    own = heldout[heldout["method"].eq("auto")]
    ratio = own["std_error"] / own["std_error_analytic"]
    assert ratio.notna().all()
    assert ratio.median() == pytest.approx(1, abs=0.1)


# ------------------------------------------------------------------ outward ends


def outward_by_hand(battles: Sequence[Battle], model: str, l2: float) -> float:
    """Elo points between the reduced major axis and least squares, at the model's strength."""
    people = fold_anchors(battles, model, human_outcome, l2, only_votes=True)
    judge = fold_anchors(battles, model, judge_outcome, l2)
    own = held_out(battles, model, judge_outcome, l2)
    if people is None or judge is None or own is None or len(people) < 2:
        return math.nan
    u, t = (np.array([side[other] for other in people]) for side in (judge, people))
    x, u, t = own.strength - u.mean(), u - u.mean(), t - t.mean()
    least_squares = np.sum(u * t) / np.sum(u * u)
    return float(ELO_PER_LOGIT * x * (t.std() / u.std() - least_squares))


@pytest.mark.parametrize("seed", range(3))
def test_outward_ends_are_those_of_the_twin(seed: int) -> None:
    battles, _ = asked_alike(seed, 20)
    for (model, method), row in by_model_and_method(rate(battles, PLAINLY)).items():
        expected = 0.0 if method == "human" else outward_by_hand(battles, model, 0.01)
        assert row["outward"] == pytest.approx(expected, abs=1e-4, nan_ok=True), (model, method)


def test_an_outward_end_points_away_from_the_anchors() -> None:
    battles, _ = asked_alike(3)
    rows = by_model_and_method(rate(battles, PLAINLY))
    for model in all_models(battles):
        hard, outward = rows[model, "hard"]["rating"] - 1500, rows[model, "soft"]["outward"]
        assert outward * hard > 0


def test_no_end_moves_where_people_and_judge_are_proportional() -> None:
    """A judge that always says what people say: both rulers are the line of slope one."""
    battles = [replace(b, judge=b.human) for b in dense_battles(6)]
    assert rate(battles, PLAINLY).outward == pytest.approx(0, abs=1e-6)


def test_a_fold_of_one_anchor_has_no_ruler_to_move_by() -> None:
    rng = np.random.default_rng(1)
    battles = play(rng, [(0, 1)] * 30 + [(0, 2), (1, 2)] * 5, np.array([0.5, 0, 1]), unvoted=[2])
    rows = by_model_and_method(rate(battles, PLAINLY))
    assert math.isnan(rows[name(0), "hard"]["outward"])
    assert math.isfinite(rows[name(2), "hard"]["outward"])
