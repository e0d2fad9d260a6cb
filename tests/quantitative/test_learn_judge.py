"""`judgeline.learn_judge`: a judge learnt from a notebook's tables, and what is wrong with them."""

import numpy as np
import pandas as pd
import pytest

import judgeline
from judgeline.tables.quantitative import QUANTITATIVE_JUDGES, QUANTITATIVE_OUTCOMES

MODELS = ("ant", "bee", "cat", "dog")
N = 240


@pytest.fixture
def battles() -> pd.DataFrame:
    """Battles of four models, four to a question; luck decides each, and people see it."""
    pairs = [(a, b) for a in MODELS for b in MODELS if a < b] * (N // 6)
    table = pd.DataFrame(pairs, columns=["model_a", "model_b"])
    won = np.random.default_rng(1).random(N) < 0.5
    ids = [f"b{i}" for i in range(N)]
    questions = [f"q{i // 6}" for i in range(N)]
    return table.assign(battle_id=ids, question_id=questions, human_outcome=won.astype(float))


@pytest.fixture
def verdicts(battles) -> pd.DataFrame:
    """Verdicts that are noise, with reasons that say who won."""
    rng = np.random.default_rng(2)
    parts = []
    for order, sign in (("AB", 1), ("BA", -1)):
        side = sign * (2 * battles["human_outcome"] - 1)
        vectors = [np.array([one, 0.1, rng.normal()]) for one in side]
        own = battles[["battle_id"]].assign(order=order, embedding=vectors)
        parts.append(own.assign(recorded_outcome=rng.integers(0, 3, N) / 2))
    return pd.concat(parts, ignore_index=True)


@pytest.fixture
def scores(battles) -> pd.DataFrame:
    """Scores of every answer to a question, with a vector of noise."""
    sides = [battles[["question_id", f"model_{side}"]].set_axis(["question_id", "model"], axis=1)
             for side in "ab"]  # fmt: skip
    own = pd.concat(sides).drop_duplicates(ignore_index=True)
    rng = np.random.default_rng(3)
    vectors = [rng.normal(size=2).tolist() for _ in range(len(own))]
    return own.assign(expected_score=rng.uniform(2, 9, len(own)), embedding=vectors)


def test_outcomes_follow_reasons_and_stand_beside_the_base_judge(battles, verdicts) -> None:
    learnt = judgeline.learn_judge(battles, verdicts)
    assert list(learnt.outcomes) == QUANTITATIVE_OUTCOMES.columns
    assert list(learnt.agreement) == QUANTITATIVE_JUDGES.columns
    assert learnt.note == "btl2: no battle has the reasons of single scores"
    won = battles.set_index("battle_id")["human_outcome"].gt(0.5)
    right = learnt.outcomes["outcome"].gt(0.5).eq(learnt.outcomes["battle_id"].map(won))
    assert learnt.outcomes.groupby("held_out_model").size().tolist() == [N] * 4
    assert right.all()
    accuracy = learnt.agreement.query("metric == 'accuracy'")
    assert (accuracy["value"] > accuracy["base"]).all()
    again = judgeline.learn_judge(battles, verdicts)
    pd.testing.assert_frame_equal(again.agreement, learnt.agreement)


def test_scores_of_models_need_no_ids(battles, verdicts, scores) -> None:
    learnt = judgeline.learn_judge(battles, verdicts, score_verdicts=scores)
    assert set(learnt.outcomes["method"]) == {"btl", "btl2"}
    assert learnt.note == ""


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda t: t.drop(columns="embedding"), "verdicts has no column 'embedding', the vector"),
        (lambda t: t.drop(columns="recorded_outcome"), "verdicts has none of the columns adher"),
        (lambda t: pd.concat([t, t.head(1)]), "two answers on battle_id 'b0' in one order"),
        (lambda t: t.assign(embedding=[[1.0], *t["embedding"][1:]]), "equally many numbers"),
        (lambda t: t.assign(embedding="text"), "not a list of equally many numbers"),
        (lambda t: t.assign(embedding=None), "no judge can be learnt: there are no embeddings"),
    ],
)
def test_what_is_wrong_with_verdicts_is_named(battles, verdicts, changed, message) -> None:
    with pytest.raises(ValueError, match=message):
        judgeline.learn_judge(battles, changed(verdicts))


def test_votes_are_needed(battles, verdicts, scores) -> None:
    with pytest.raises(ValueError, match="battles has no column 'human_outcome', A's share"):
        judgeline.learn_judge(battles.drop(columns="human_outcome"), verdicts)
    with pytest.raises(ValueError, match=r"no judge can be learnt: btl: .*votes"):
        judgeline.learn_judge(battles.assign(human_outcome=np.nan), verdicts)
    plain = scores.rename(columns={"expected_score": "score"})
    with pytest.raises(ValueError, match="score_verdicts has none of the columns expected_score"):
        judgeline.learn_judge(battles, verdicts, score_verdicts=plain)
