import numpy as np
import pandas as pd
import pytest

from judgeline.steps.outcomes import completion_ids, outcomes_by_source
from judgeline.tables.trust import SOFT_OUTCOMES, SOURCES

SCALE = (1, 100)


def battles(*pairs: tuple[str, str], question: str = "q0") -> pd.DataFrame:
    """Battles b0, b1, ... of two models each, on one question."""
    return pd.DataFrame(
        {
            "battle_id": [f"b{i}" for i in range(len(pairs))],
            "question_id": question,
            "model_a": [a for a, _ in pairs],
            "model_b": [b for _, b in pairs],
            "completion_a": [f"what {a} says" for a, _ in pairs],
            "completion_b": [f"what {b} says" for _, b in pairs],
        }
    )


def choice(battle: str, order: str, choice: float | None, p: tuple | None = None, **more) -> dict:
    """One choice; p is of A, a tie and B, whichever was shown first."""
    p_a, p_tie, p_b = p or (None, None, None)
    defaults = {
        "judge": "stub",
        "replicate": 0,
        "status": "ok",
        "covered": None if p is None else 1.0,
        "perplexity": None,
        "evidence": "none" if p is None else "log-probabilities",
    }
    own = {"battle_id": battle, "order": order, "choice": choice}
    return {**defaults, **own, "p_a": p_a, "p_tie": p_tie, "p_b": p_b, **more}


def score(model: str, said: float | None, expected: float | None = None, **more) -> dict:
    defaults = {
        "judge": "stub",
        "replicate": 0,
        "status": "ok",
        "evidence": "none" if expected is None else "log-probabilities",
        "completion_id": completion_ids(battles((model, model)), "a")[0],
        "scale_low": SCALE[0],
        "scale_high": SCALE[1],
    }
    return {**defaults, "model": model, "score": said, "expected_score": expected, **more}


CHOICE_COLUMNS = list(choice("b", "AB", 1.0))
SCORE_COLUMNS = list(score("ant", 50))


def outcomes(table: pd.DataFrame, choices=(), scores=(), **settings) -> pd.DataFrame:
    return outcomes_by_source(
        table,
        pd.DataFrame(list(choices), columns=CHOICE_COLUMNS),
        pd.DataFrame(list(scores), columns=SCORE_COLUMNS),
        **{"scale": SCALE, **settings},
    )


def on_scale(scale: tuple[int, int], scores: list[dict]) -> list[dict]:
    return [{**one, "scale_low": scale[0], "scale_high": scale[1]} for one in scores]


def of_source(table: pd.DataFrame, source: str) -> pd.DataFrame:
    return table[table["source"].eq(source)].set_index("battle_id")


ONE = battles(("ant", "bee"))


def test_likelihoods_of_both_orders_are_added_by_hand() -> None:
    # m = (.6 + .2, .3 + .2, .1 + .6) = (.8, .5, .7); soft = (.8 + .25) / 2
    said = [choice("b0", "AB", 1.0, (0.6, 0.3, 0.1)), choice("b0", "BA", 0.0, (0.2, 0.2, 0.6))]
    row = of_source(outcomes(ONE, said), "likelihood").loc["b0"]
    assert row["outcome"] == 1.0
    assert row["soft_outcome"] == pytest.approx((0.8 + 0.25) / 2, abs=1e-15)
    assert np.isnan(row["score_difference"])
    tied = of_source(outcomes(ONE, said, tolerance=0.06), "likelihood").loc["b0"]
    assert tied["outcome"] == 0.5  # 0.8 - 0.7 is below twice 0.06
    assert tied["soft_outcome"] == row["soft_outcome"]


def test_plain_choice_needs_orders_that_do_not_contradict() -> None:
    four = battles(*[("ant", "bee")] * 4)
    told = [(1.0, 1.0), (1.0, 0.0), (0.0, 0.5), (0.5, 0.5)]
    said = [
        choice(f"b{i}", order, one)
        for i, pair in enumerate(told)
        for order, one in zip(("AB", "BA"), pair, strict=True)
    ]
    found = outcomes(four, said)
    assert found["source"].unique().tolist() == ["choice"]  # nothing else was evidenced
    assert found["outcome"].tolist() == [1.0, 0.5, 0.0, 0.5]


def test_less_perplexed_order_decides() -> None:
    two = battles(("ant", "bee"), ("ant", "cat"))
    p = (0.4, 0.2, 0.4)
    said = [
        choice("b0", "AB", 1.0, p, perplexity=1.5),
        choice("b0", "BA", 0.0, p, perplexity=1.2),
        choice("b1", "AB", 1.0, p, perplexity=1.5),
        choice("b1", "BA", 0.0, p, perplexity=1.5),
    ]
    assert of_source(outcomes(two, said), "perplexity")["outcome"].tolist() == [0.0, 0.5]


@pytest.mark.parametrize(
    ("choices", "sources", "soft"),
    [
        # samples have a likelihood and no perplexity
        ([("AB", 1.0, (0.7, 0.0, 0.3), "samples"), ("BA", 1.0, (0.7, 0.0, 0.3), "samples")],
         ["likelihood", "choice"], 0.7),
        # missing log-probabilities leave the choices alone
        ([("AB", 1.0, (0.9, 0.1, 0.0), "log-probabilities"), ("BA", 1.0, None, "none")],
         ["choice"], np.nan),
        ([("mean", None, (0.73, 0.0, 0.27), "published")], ["likelihood"], 0.73),
    ],
)  # fmt: skip
def test_sources_are_those_that_were_evidenced(choices, sources, soft) -> None:
    said = [
        choice("b0", order, one, p, evidence=evidence, perplexity=None if p is None else 1.1)
        for order, one, p, evidence in choices
    ]
    found = outcomes(ONE, said)
    assert found["source"].tolist() == sources
    assert found.loc[0, "soft_outcome"] == pytest.approx(soft, abs=1e-15, nan_ok=True)
    assert found.loc[0, "outcome"] == 1.0


def test_scores_are_moved_to_the_rubrics_points() -> None:
    scores = [score("ant", 100, 9.5), score("bee", 1, 2.0)]
    found = outcomes(ONE, scores=scores)
    assert of_source(found, "score").loc["b0", "score_difference"] == 7.5
    assert of_source(found, "score-plain").loc["b0", "score_difference"] == 9.0
    assert found["outcome"].tolist() == [1.0, 1.0]
    assert found["soft_outcome"].isna().all()


def test_equal_scores_tie_and_so_do_those_within_the_tolerance() -> None:
    scores = [score("ant", 50, 5.4), score("bee", 50, 5.5)]
    assert outcomes(ONE, scores=scores)["outcome"].tolist() == [0.0, 0.5]
    assert outcomes(ONE, scores=scores, tolerance=0.2)["outcome"].tolist() == [0.5, 0.5]


def test_replicates_are_averaged_before_anything_else() -> None:
    said = [
        choice("b0", "AB", 1.0, (0.9, 0.0, 0.1)),
        choice("b0", "AB", 0.0, (0.3, 0.0, 0.7), replicate=1),
        choice("b0", "BA", 1.0, (0.6, 0.0, 0.4)),
    ]
    found = outcomes(ONE, said, [score("ant", 10), score("ant", 20, replicate=1), score("bee", 15)])
    assert of_source(found, "likelihood").loc["b0", "soft_outcome"] == pytest.approx(0.6)
    assert of_source(found, "choice").loc["b0", "outcome"] == 1.0  # (1/2, 1): a tie and a win
    assert of_source(found, "score-plain").loc["b0", "outcome"] == 0.5


def test_failed_verdicts_and_lone_orders_count_nowhere() -> None:
    three = battles(("ant", "bee"), ("ant", "cat"), ("bee", "cat"))
    p = (0.5, 0.25, 0.25)
    said = [
        choice("b0", "AB", 1.0, p, perplexity=1.1),
        choice("b0", "BA", None, None, status="refusal"),
        choice("b1", "AB", 1.0, p, perplexity=1.1),
    ]
    scores = [score("ant", 60, 6.0), score("bee", None, status="parse_error")]
    for found in (outcomes(three, said, scores), outcomes(ONE)):
        pd.testing.assert_frame_equal(found, SOFT_OUTCOMES.empty())


def test_all_ties_stay_ties() -> None:
    said = [choice("b0", order, 0.5, (0.0, 1.0, 0.0), perplexity=1.0) for order in ("AB", "BA")]
    found = outcomes(ONE, said, [score("ant", 7, 1.5), score("bee", 7, 1.5)])
    assert found["source"].tolist() == list(SOURCES)
    assert found["outcome"].eq(0.5).all()


@pytest.mark.parametrize("tolerance", [0.0, 0.05, 0.3])
def test_swapping_the_sides_mirrors_every_outcome(tolerance) -> None:
    rng, n = np.random.default_rng(6), 60
    chance = rng.integers(0, 6, size=(n, 2, 3)) + np.array([0, 0, 1])
    chance = chance / chance.sum(axis=2, keepdims=True)
    chosen, perplexity = rng.choice([0.0, 0.5, 1.0], (n, 2)), rng.uniform(1, 2, (n, 2))
    scores = [
        score(f"m{side}{i}", points, points / 10)
        for i in range(n)
        for side, points in zip("ab", rng.integers(10, 14, 2).tolist(), strict=True)
    ]

    def table(swap: bool) -> pd.DataFrame:
        pairs = [(f"ma{i}", f"mb{i}")[:: -1 if swap else 1] for i in range(n)]
        said = [
            choice(
                f"b{i}",
                ("AB", "BA")[k != swap],
                1 - chosen[i, k] if swap else chosen[i, k],
                tuple(chance[i, k, :: -1 if swap else 1]),
                perplexity=perplexity[i, k],
            )
            for i in range(n)
            for k in (0, 1)
        ]
        found = outcomes(battles(*pairs), said, scores, tolerance=tolerance)
        return found.set_index(["source", "battle_id"])

    straight, swapped = table(swap=False), table(swap=True)
    assert straight.index.tolist() == swapped.index.tolist()
    assert set(straight["outcome"]) == {0.0, 0.5, 1.0}
    assert swapped["outcome"].tolist() == (1 - straight["outcome"]).tolist()
    soft = straight["soft_outcome"].to_numpy()
    assert swapped["soft_outcome"].to_numpy() == pytest.approx(1 - soft, abs=1e-15, nan_ok=True)
    gaps = [found["score_difference"].to_numpy() for found in (straight, swapped)]
    assert np.array_equal(gaps[1], -gaps[0], equal_nan=True)


@pytest.mark.parametrize(
    ("choices", "scores", "settings", "message"),
    [
        ([choice("b0", "AB", 1.0), choice("b0", "mean", None, (1.0, 0.0, 0.0))], [], {},
         "both an averaged choice and single orders, the first is 'b0'"),
        (
            [choice("b0", "AB", 1.0, (1.0, 0.0, 0.0)),
             choice("b0", "BA", 1.0, (1.0, 0.0, 0.0), evidence="samples")],
            [],
            {},
            "choice_verdicts rest on log-probabilities and samples",
        ),
        ([], [score("ant", 60)], {"scale": (1, 10)}, "are on a scale of 1 to 100"),
        ([choice("b0", o, 1.0, (0.9, 0.9, 0)) for o in ("AB", "BA")], [], {}, "_ab is 1.8"),
    ],
)  # fmt: skip
def test_bad_tables_are_refused_by_name(choices, scores, settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        outcomes(ONE, choices, scores, **settings)


def test_a_model_that_answered_twice_has_two_scores() -> None:
    two = battles(("ant", "bee"), ("ant", "bee"))
    two.loc[1, "completion_a"] = "another answer"
    found = outcomes(two, scores=[score("ant", 60, 6.0), score("bee", 50, 5.0)])
    assert found["battle_id"].unique().tolist() == ["b0"]


def test_battles_without_texts_need_none_where_nothing_was_scored() -> None:
    silent = ONE.assign(completion_a=None, completion_b=None)
    said = [choice("b0", "mean", None, (0.7, 0.0, 0.3), evidence="published")]
    assert outcomes(silent, said)["soft_outcome"].tolist() == [pytest.approx(0.7)]


@pytest.mark.parametrize("asked", [(1, 10), (0, 100), (None, None)])
def test_scores_of_another_scale_are_refused_though_they_fit(asked: tuple[int, int]) -> None:
    scores = on_scale(asked, [score("ant", 9, 9.0), score("bee", 1, 1.0)])
    with pytest.raises(ValueError, match="remake score_verdicts"):
        outcomes(ONE, scores=scores)
    assert len(outcomes(ONE, scores=on_scale(SCALE, scores))) == 2


def test_what_differs_by_rounding_alone_is_level_and_no_conflict() -> None:
    """The same numbers in another order have the same mean, and another sum in floats."""
    said = {"ant": [86, 64, 52, 27, 31], "bee": [86, 27, 52, 31, 64]}
    scores = [
        score(model, one, replicate=n)
        for model, values in said.items()
        for n, one in enumerate(values)
    ]
    found = outcomes(ONE, scores=scores)
    assert found[["source", "outcome", "score_difference"]].to_numpy().tolist() == [
        ["score-plain", 0.5, 0.0]
    ]
