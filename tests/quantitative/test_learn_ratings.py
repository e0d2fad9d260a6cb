"""`judgeline.learn_ratings`: people's ratings and choices, learnt from a notebook's table."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax
from sklearn.linear_model import Ridge

import judgeline

N, K = 240, 4
CHANCES = [f"log_p_{i}" for i in range(1, 6)]


@pytest.fixture
def ratings() -> pd.DataFrame:
    """Three answers to each question; people rate by what the reason says, the judge by noise."""
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=(N, 3))
    judge = rng.integers(1, 6, N).astype(float)
    human = np.clip(np.round(3 + 1.2 * vectors[:, 0]), 1, 5)
    chances = log_softmax(rng.normal(size=(N, 5)), axis=1)
    table = pd.DataFrame({f"log_p_{i + 1}": column for i, column in enumerate(chances.T)})
    return table.assign(
        question_id=[f"q{i // 3}" for i in range(N)],
        embedding=list(vectors),
        judge_score=judge,
        human_rating=human,
    )


@pytest.fixture
def rankings(ratings) -> pd.DataFrame:
    """Sets of four answers to a question, of which people named the best."""
    best = ratings["embedding"].str[0].groupby(np.arange(N) // K).transform("max")
    is_best = ratings["embedding"].str[0].eq(best)
    sets = [f"set{i // K}" for i in range(N)]
    own = ratings[["embedding", "judge_score"]].assign(question_id=sets, ranking_id=sets)
    return own.assign(human_rank=np.where(is_best, 1.0, np.nan))


def test_ratings_are_those_of_least_squares_on_all_labels_where_none_is_given(ratings) -> None:
    fresh = ratings.index[200:]
    table = ratings.drop(columns=CHANCES)
    table.loc[fresh, "human_rating"] = np.nan
    learnt = judgeline.learn_ratings(table)
    known = np.column_stack([np.stack(table["embedding"][:200]), table["judge_score"][:200]])
    all_rows = np.column_stack([np.stack(table["embedding"]), table["judge_score"]])
    twin = Ridge(alpha=0.1).fit(known, table["human_rating"][:200])
    # the penalty that is chosen is small beside 200 ratings
    assert np.abs(learnt.predictions["ls"][200:] - twin.predict(all_rows[200:])).max() < 0.02
    assert list(learnt.predictions) == ["ls"]
    table.index = [f"row{i}" for i in range(N)]
    assert learnt.predictions.set_axis(table.index).equals(judgeline.learn_ratings(table)[0])


def test_no_label_on_a_question_teaches_its_own_prediction(ratings) -> None:
    before = judgeline.learn_ratings(ratings).predictions
    turned = ratings.assign(
        human_rating=ratings["human_rating"].where(ratings["question_id"].ne("q7"), 5.0)
    )
    after = judgeline.learn_ratings(turned).predictions
    own = ratings["question_id"].eq("q7")
    pd.testing.assert_frame_equal(after[own], before[own])
    assert not after[~own].equals(before[~own])
    assert list(before) == ["ls", "mn"]
    assert before["mn"].isin([1, 2, 3, 4, 5]).all()


def test_agreement_stands_beside_the_base_judge(ratings) -> None:
    found = judgeline.learn_ratings(ratings.drop(columns=CHANCES)).agreement
    pearson = found[found["metric"].eq("pearson") & found["method"].eq("ls")]
    assert pearson["n_train"].tolist() == [100]
    assert (pearson["value"] > 0.8).all()
    assert (pearson["base"].abs() < 0.2).all()


def test_choices_are_chances_within_their_set(rankings) -> None:
    unranked = [np.array([3.0 * (i == 2), 0.0, 0.0]) for i in range(K)]
    rankings["embedding"] = [*rankings["embedding"][: N - K], *unranked]
    rankings.loc[N - K :, "human_rank"] = np.nan
    shuffled = rankings.sample(frac=1, random_state=np.random.default_rng(5))
    learnt = judgeline.learn_ratings(shuffled)
    assert learnt.agreement.empty
    assert learnt.note.startswith("pl: 39 votes on questions that are not tested on cannot fill")
    chance = learnt.predictions["pl"].loc[rankings.index]
    sets = rankings["ranking_id"]
    assert chance.groupby(sets).sum().to_numpy() == pytest.approx(np.ones(N // K))
    best = rankings["embedding"].str[0].groupby(sets).transform("max")
    is_best = rankings["embedding"].str[0].eq(best)
    likeliest = chance.eq(chance.groupby(sets).transform("max"))
    assert is_best[likeliest].mean() > 0.9
    assert likeliest[N - K :].tolist() == [False, False, True, False]


def test_a_row_without_score_or_vector_has_no_prediction(ratings) -> None:
    table = ratings.drop(columns=CHANCES).astype({"embedding": object})
    table.loc[3, "judge_score"] = np.nan
    table["embedding"] = [None if i == 5 else one for i, one in enumerate(table["embedding"])]
    learnt = judgeline.learn_ratings(table)
    lacking = learnt.predictions["ls"].isna()
    assert lacking[lacking].index.tolist() == [3, 5]


def test_a_set_with_a_lacking_answer_has_no_chances(rankings) -> None:
    rankings.loc[5, "judge_score"] = np.nan
    chances = judgeline.learn_ratings(rankings).predictions["pl"]
    assert chances.isna().to_numpy().nonzero()[0].tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda t: t.drop(columns="judge_score"), "no column 'judge_score', the judge's own"),
        (lambda t: t.drop(columns="human_rating"), "no column 'human_rating', people's rating"),
        (lambda t: t.assign(human_rating=np.nan), "nothing to learn from: add people's rating"),
        (lambda t: t.assign(human_rating="good"), "human_rating is 'good' in ratings; expected a"),
        (lambda t: t.assign(embedding="text"), "not a list of equally many numbers"),
        (lambda t: t.assign(human_rating=6.0), "label is 6"),
        (lambda t: t.assign(question_id="q"), "human_rating on 1 question.s., and 7 are needed"),
        (lambda t: t.drop(columns="log_p_3"), "log_p_2 and log_p_4 have no column .* add log_p_3"),
        (lambda t: t.assign(log_p_2=0.25), "log_p_2 is 0.25; expected a log-probability, 0 or"),
        (lambda t: t.assign(log_p_4=np.nan), "log_p_4 is nan; expected a log-probability"),
        (lambda _: [1, 2], "ratings is list; expected a DataFrame"),
    ],
)
def test_what_is_wrong_is_named(ratings, changed, message) -> None:
    with pytest.raises(ValueError, match=message) as refused:
        judgeline.learn_ratings(changed(ratings))
    assert "fold" not in str(refused.value)


@pytest.mark.parametrize(("n_questions", "is_enough"), [(6, False), (7, True)])
def test_seven_questions_are_the_fewest(ratings, n_questions: int, is_enough: bool) -> None:
    table = ratings.drop(columns=CHANCES)
    table["question_id"] = [f"q{i % n_questions}" for i in range(N)]
    if is_enough:
        assert judgeline.learn_ratings(table).predictions["ls"].notna().all()
        return
    with pytest.raises(ValueError, match="on 6 question"):
        judgeline.learn_ratings(table)
