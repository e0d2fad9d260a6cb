"""Plain ratings against statsmodels, a general optimiser and closed forms."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from judgeline.cli import main
from judgeline.elo import LEAST_BATTLES, rate_outcomes, style_difference
from judgeline.elo.strengths import ELO_PER_LOGIT, strength_to_rating
from judgeline.io import each_category, plain_ratings, read_judged_battles

NAMES = np.array(["ant", "bee", "cat", "dog", "elk"])


def arena(seed: int, n: int = 1_500, *, tie: float = 0.0, effect: float = 0.4):
    """Battles of five models: codes, a covariate, and outcomes that both decide."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 5, n)
    b = (a + rng.integers(1, 5, n)) % 5
    z = rng.normal(0, 2, n)
    strength = rng.normal(0, 0.6, 5)
    win = rng.random(n) < 1 / (1 + np.exp(strength[b] - strength[a] - effect * z))
    outcome = np.where(rng.random(n) < tie, 0.5, win)
    return a, b, z, outcome


def by_name(table) -> dict[str, float]:
    return dict(zip(table.model.tolist(), table.rating.tolist(), strict=True))


@pytest.mark.parametrize("clustered", [False, True])
def test_without_penalty_it_is_a_binomial_regression_with_robust_errors(clustered: bool) -> None:
    a, b, z, outcome = arena(1)
    question = np.random.default_rng(2).integers(0, 300, a.size)
    ratings, effects = rate_outcomes(
        NAMES[a], NAMES[b], outcome, l2=1e-10, covariates={"length": z},
        cluster=question if clustered else None,
    )  # fmt: skip
    design = (np.arange(1, 5) == a[:, None]).astype(float) - (np.arange(1, 5) == b[:, None])
    model = sm.GLM(outcome, np.column_stack([design, z / z.std()]), sm.families.Binomial())
    kind, n_units = {"cov_type": "HC0"}, a.size
    if clustered:
        groups = {"groups": question, "use_correction": False}
        kind, n_units = {"cov_type": "cluster", "cov_kwds": groups}, len({*question.tolist()})
    twin = model.fit(**kind)
    found = by_name(ratings)
    told = np.array([found[name] - found["ant"] for name in NAMES[1:]]) / ELO_PER_LOGIT
    np.testing.assert_allclose(told, twin.params[:4], rtol=1e-4)
    assert effects.effect[0] == pytest.approx(ELO_PER_LOGIT * twin.params[4], rel=1e-4)
    more = math.sqrt(n_units / (n_units - 1))
    assert effects.std_error[0] == pytest.approx(ELO_PER_LOGIT * twin.bse[4] * more, rel=1e-3)
    # a model's strength is its contrast to the mean of all five
    contrast = np.eye(5)[:, 1:] - 1 / 5
    spread = np.sqrt(np.diag(contrast @ twin.cov_params()[:4, :4] @ contrast.T))
    error = dict(zip(ratings.model.tolist(), ratings.std_error.tolist(), strict=True))
    expected = ELO_PER_LOGIT * spread * more
    assert [error[name] for name in NAMES] == pytest.approx(expected.tolist(), rel=1e-3)
    reach = 1.6448536269514722 * effects.std_error[0]
    assert effects.upper[0] - effects.effect[0] == pytest.approx(reach)
    assert effects.covariate.tolist() == ["length"]


def test_groups_below_the_least_are_left_out_and_parts_without_battles_stand_apart() -> None:
    a, b, _, outcome = arena(5, n=300)
    language = np.where(np.arange(300) < 300 - LEAST_BATTLES + 1, "en", "fr")
    ratings, effects = rate_outcomes(NAMES[a], NAMES[b], outcome, group=language)
    assert set(ratings.group.tolist()) == {"en"}
    assert effects.effect.size == 0
    first = ["x", "y", "z"] * 20 + ["p", "q"] * 20
    second = ["y", "z", "x"] * 20 + ["q", "p"] * 20
    apart, _ = rate_outcomes(first, second, [1, 0.2, 0.5, 0, 1] * 20)
    component = dict(zip(apart.model.tolist(), apart.component.tolist(), strict=True))
    assert component == {"x": 0, "y": 0, "z": 0, "p": 1, "q": 1}
    means = [apart.rating[apart.component == part].mean() for part in (0, 1)]
    assert means == pytest.approx([1500, 1500])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"outcome": [1.0, 2.0]}, "outcome is 2 in row 1"),
        ({"outcome": [0.25, 1.0], "ties": "davidson"}, "1, 0.5 or 0"),
        ({"ties": "none"}, "ties is 'none'"),
        ({"cluster": [1]}, "shape"),
        ({"model_a": ["x", None]}, "model_a is None in row 1"),
        ({"model_a": ["x", "y"]}, "model_b is 'y' in row 1"),
        ({"miscoverage": 1.5}, "miscoverage is 1.5"),
        ({"cluster": [1, math.nan]}, "cluster is nan in row 1"),
    ],
)
def test_what_cannot_be_rated_is_refused(change: dict, told: str) -> None:
    given = {"model_a": ["x", "x"], "model_b": ["y", "y"], "outcome": [1.0, 0.0], **change}
    with pytest.raises(ValueError, match=told):
        rate_outcomes(**given)


def test_modelled_ties_are_davidsons_by_finite_differences_of_its_likelihood() -> None:
    a, b, z, outcome = arena(9, n=400, tie=0.3)
    l2, z = 0.01, z / z.std()

    def chances(value: np.ndarray) -> np.ndarray:
        half = (value[a] - value[b] + value[5] * z) / 2
        total = np.logaddexp(np.logaddexp(half, -half), value[6])
        return np.select([outcome == 1, outcome == 0], [half, -half], value[6]) - total

    def by_step(function, value: np.ndarray, step: float = 1e-4) -> np.ndarray:
        rows = step * np.eye(7)
        slopes = [(function(value + row) - function(value - row)) / (2 * step) for row in rows]
        return np.array(slopes).T

    ridge = np.array([l2] * 5 + [1e-3] * 2)
    best = np.zeros(7)
    for _ in range(12):  # Newton on numeric derivatives
        slope = by_step(chances, best).sum(axis=0) - 2 * ridge * best
        bend = by_step(lambda v: by_step(chances, v).sum(axis=0) - 2 * ridge * v, best)
        best = best - np.linalg.solve(bend, slope)
    scores, bread = by_step(chances, best), np.linalg.inv(bend)
    spread = np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread) * 400 / 399)
    ratings, effects = rate_outcomes(
        NAMES[a], NAMES[b], outcome, ties="davidson", covariates={"length": z}, l2=l2
    )
    error = dict(zip(ratings.model.tolist(), ratings.std_error.tolist(), strict=True))
    expected = (ELO_PER_LOGIT * spread).tolist()
    assert [error[name] for name in NAMES] == pytest.approx(expected[:5], rel=1e-2)
    found = by_name(ratings)
    rated = pytest.approx(strength_to_rating(best[:5]), abs=1e-3)
    assert [found[name] for name in NAMES] == rated
    assert effects.effect[0] == pytest.approx(ELO_PER_LOGIT * best[5], abs=1e-3)
    assert effects.std_error[0] == pytest.approx(expected[5], rel=1e-2)


def test_what_battles_do_not_tell_has_no_error_and_ends_nothing() -> None:
    a, b, _, outcome = arena(10, n=500)
    rare = np.where(np.arange(500) == int(np.argmax(outcome)), 1.0, 0.0)
    ratings, effects = rate_outcomes(NAMES[a], NAMES[b], outcome, covariates={"markdown": rare})
    assert np.isfinite(ratings.std_error).all()
    assert np.isfinite(effects.effect).all()
    same = {"length": np.full(500, 0.1)}  # never varies, whatever its digits
    assert rate_outcomes(NAMES[a], NAMES[b], outcome, covariates=same)[1].effect.size == 0
    assert np.isnan(effects.std_error).all(), "one battle has any of it, and A won it"
    best = np.where((a == 0) | (b == 0), (a == 0) * 1.0, outcome)
    one_sided, _ = rate_outcomes(NAMES[a], NAMES[b], best)
    error = dict(zip(one_sided.model.tolist(), one_sided.std_error.tolist(), strict=True))
    assert [name for name, value in error.items() if math.isnan(value)] == ["ant"]
    few, _ = rate_outcomes(NAMES[a], NAMES[b], outcome, cluster=np.arange(500) % 9)
    assert np.isnan(few.std_error).all()
    ties, _ = rate_outcomes(NAMES[a], NAMES[b], np.full(500, 0.5), ties="davidson")
    assert ties.rating == pytest.approx([1500] * 5)


def test_the_difference_of_style_is_a_share_of_both() -> None:
    assert style_difference([300, 0, 5], [100, 0, 0]).tolist() == [0.5, 0.0, 1.0]
    assert np.isnan(style_difference([math.nan], [3.0])).all()
    with pytest.raises(ValueError, match="row 0"):
        style_difference([-1], [2])


def scored(n: int = 400) -> pd.DataFrame:
    a, b, z, outcome = arena(6, n)
    length = np.exp(z)
    return pd.DataFrame(
        {
            "battle_id": [f"b{i}" for i in range(n)],
            "question_id": [f"q{i // 4}" for i in range(n)],
            "model_a": NAMES[a],
            "model_b": NAMES[b],
            "language": np.where(np.arange(n) % 2, "en", "fr"),
            "category": np.tile(["math", "code; math", None, "law"], n)[:n],
            "human_outcome": np.where(np.arange(n) % 3, outcome, np.nan),
            "judge_outcome": outcome,
            "length_a": 100 * length,
            "length_b": 100.0,
            "markdown_a": np.nan,
            "markdown_b": np.nan,
        }
    )


def test_scored_battles_are_rated_by_people_and_judge_whole_and_by_group() -> None:
    table = scored()
    ratings, effects = plain_ratings(table)
    size = ratings.groupby(["source", "grouping", "group"])["model"].count()
    groups = [("all", ""), ("language", "en"), ("language", "fr")]
    of_judge = [*groups, *(("category", name) for name in ("code", "law", "math"))]
    assert set(size["judge"].index) == {*of_judge}
    assert set(size["people"].index) == {*groups, ("category", "math")}, "100 votes at least"
    assert size.eq(5).all()
    maths = table[table["category"].fillna("").str.contains("math")]
    alone = rate_outcomes(
        maths["model_a"], maths["model_b"], maths["judge_outcome"], cluster=maths["question_id"]
    )[0]
    own = ratings[ratings["source"].eq("judge") & ratings["group"].eq("math")]
    np.testing.assert_allclose(own["rating"], alone.rating)
    np.testing.assert_allclose(own["std_error"], alone.std_error)
    assert ratings["controlled_rating"].notna().all()
    assert effects["covariate"].unique().tolist() == ["length"], "no text tells of Markdown"
    assert effects.groupby("source")["n_battles"].max().to_dict() == {"judge": 400, "people": 266}
    best = ratings[ratings["source"].eq("judge") & ratings["grouping"].eq("all")]
    assert best["rating"].is_monotonic_decreasing


def test_categories_may_be_lists_repeated_or_of_some_battles(tmp_path) -> None:
    assert each_category(pd.Series(["math;math", "code; math", None])).tolist() == [
        "math", "code", "math",
    ]  # fmt: skip
    table = scored()
    ratings, _ = plain_ratings(table.assign(category=["math", None] * 200))
    own = ratings[ratings["grouping"].eq("category") & ratings["source"].eq("judge")]
    assert own["group"].unique().tolist() == ["math"]
    scores = table.assign(score_difference=2 * table["judge_outcome"] - 1)
    columns = ["model_a", "model_b", "score_difference", "human_outcome", "category"]
    scores["category"] = [["math", "code"], None] * 200
    path = tmp_path / "lists.jsonl"
    scores[columns].to_json(path, orient="records", lines=True)
    for source in (path, scores[columns]):
        read = read_judged_battles(source).scored["category"]
        assert read.tolist()[0] == "math;code"
        assert read.isna().sum() == 200


def test_without_style_or_votes_nothing_is_made_up() -> None:
    bare = scored().assign(length_a=np.nan, human_outcome=np.nan, language=None)
    ratings, effects = plain_ratings(bare)
    assert ratings["controlled_rating"].isna().all()
    assert effects.empty
    assert set(ratings["source"]) == {"judge"}


def test_rank_writes_them_beside_the_board_if_asked(tmp_path) -> None:
    path = tmp_path / "battles.csv"
    table = scored(1_200).drop(columns=["markdown_a", "markdown_b", "battle_id"])
    noise = np.random.default_rng(1).normal(0, 1, len(table))
    score = 2 * table["judge_outcome"] - 1 + noise
    table.assign(score_difference=score, judge_outcome=score.gt(0) * 1.0).to_csv(path, index=False)
    plain = ["rank", str(path), "--no-report", "--n-resamples", "0", "--out"]
    assert main([*plain, str(tmp_path / "board")]) == 0
    assert main([*plain, str(tmp_path / "both"), "--plain", "davidson"]) == 0
    without, both = (
        {one.name for one in (tmp_path / name).iterdir()} for name in ("board", "both")
    )
    assert both - without == {"plain.csv", "style.csv"}
    styles = pd.read_csv(tmp_path / "both" / "style.csv")
    assert set(styles["covariate"]) == {"length"}
    with pytest.raises(ValueError, match="counted"):
        plain_ratings(scored().assign(n_battles=1))
