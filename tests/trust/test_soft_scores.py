"""Score distributions, both orders and perplexities against exact arithmetic."""

import math
from collections import Counter
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgeline.judges.forms.score import ScoreForm, ScoreOptions
from judgeline.trust.distributions import (
    RELEASED_TEMPERATURE,
    ScoreDistribution,
    TokenPosition,
    aggregate_orders,
    choice_probabilities,
    expected_score,
    perplexity,
    perplexity_outcome,
    score_distribution,
)


def at(**chances: float) -> TokenPosition:
    """A position from probabilities; digits are written d87, since names cannot start so."""
    return of({name.removeprefix("d"): p for name, p in chances.items()})


def of(chances: dict[str, float]) -> TokenPosition:
    return TokenPosition(
        list(chances), [math.log(p) if p > 0 else -math.inf for p in chances.values()]
    )


def plain(distribution: ScoreDistribution) -> dict[int, float]:
    return dict(zip(distribution.values.tolist(), distribution.probabilities.tolist(), strict=True))


# ------------------------------------------------------------------ reading numbers


def test_only_whole_numbers_on_the_scale_count_and_the_rest_is_told() -> None:
    position = of(
        {"87": 0.4, " 87": 0.1, "▁90": 0.2, "101": 0.05, "0": 0.04, "007": 0.03, "Good": 0.02}
        | {"8.5": 0.01, "-3": 0.01, "85,": 0.01, "²": 0.01}
    )
    found = score_distribution(position, digits_per_token=3)
    assert plain(found) == pytest.approx({85: 0.01, 87: 0.5, 90: 0.2}, abs=1e-15)
    assert found.covered == pytest.approx(0.71, abs=1e-15)
    assert found.unresolved == 0
    assert found.scale == (1, 100)


def test_zero_counts_where_it_is_on_the_scale() -> None:
    found = score_distribution(at(d0=0.5, d10=0.25), digits_per_token=2, scale=(0, 10))
    assert plain(found) == pytest.approx({0: 0.5, 10: 0.25}, abs=1e-15)


def test_numbers_of_several_tokens_are_followed_to_their_end() -> None:
    found = score_distribution(
        of({"8": 0.5, "1": 0.25, " 8": 0.125, "I": 0.125}),
        digits_per_token=1,
        following={
            "8": of({"7": 0.5, "\n": 0.25, "5.": 0.125, " 9": 0.0625}),
            "1": of({"0": 0.75, "2": 0.25}),
            "10": of({"0": 0.5, "<end>": 0.5}),
        },
    )
    eight, ten = Fraction(5, 8), Fraction(1, 4) * Fraction(3, 4)
    exact = {
        8: eight * Fraction(5, 16),  # a line break or a space ends the number
        10: ten / 2,
        12: Fraction(1, 16),
        85: eight / 8,
        87: eight / 2,
        100: ten / 2,
    }
    assert plain(found) == pytest.approx({k: float(v) for k, v in exact.items()}, abs=1e-15)
    assert found.covered == pytest.approx(float(sum(exact.values())), abs=1e-15)


def test_first_digits_alone_are_refused_not_read_as_numbers() -> None:
    with pytest.raises(ValueError, match=r"'8', '9' \(probability 0.9\) may be only the first"):
        score_distribution(at(d8=0.6, d9=0.3, no=0.1), digits_per_token=1)
    with pytest.raises(ValueError, match=r"'10' \(probability 0.3\)"):
        score_distribution(at(d1=0.3), digits_per_token=1, following={"1": of({"0": 1.0})})
    with pytest.raises(ValueError, match=r"'10' .* up to 100"):
        score_distribution(at(d10=0.3, d8=0.7), digits_per_token=2)


def test_only_digits_that_lead_onto_the_scale_are_first_digits() -> None:
    for scale in ((15, 19), (15, 40), (110, 150)):
        with pytest.raises(ValueError, match=r"'1' \(probability 0.5\)"):
            score_distribution(at(d1=0.5, d9=0.5), digits_per_token=1, scale=scale)
    found = score_distribution(at(d9=0.5, d5=0.5), digits_per_token=1, scale=(5, 49))
    assert plain(found) == pytest.approx({5: 0.5, 9: 0.5}, abs=1e-15)


def test_begun_numbers_may_be_left_out_on_request_and_are_told() -> None:
    found = score_distribution(
        at(d8=0.9, d9=0.1), digits_per_token=1, following={"8": of({"7": 1.0})}, max_unresolved=0.11
    )
    assert plain(found) == pytest.approx({87: 0.9}, abs=1e-15)
    assert found.unresolved == pytest.approx(0.1, abs=1e-15)


@pytest.mark.parametrize(
    ("digits_per_token", "scale"), [(3, (1, 100)), (2, (1, 99)), (1, (1, 9)), (1, (0, 5))]
)
def test_a_number_that_cannot_go_on_is_whole(digits_per_token: int, scale: tuple[int, int]) -> None:
    found = score_distribution(at(d1=0.5, d5=0.5), digits_per_token=digits_per_token, scale=scale)
    assert found.values.tolist() == [1, 5]


# ------------------------------------------------------------------ the expectation

NUMBERS = st.dictionaries(st.integers(1, 100), st.integers(1, 99), min_size=1, max_size=12)


@given(NUMBERS, st.integers(0, 3))
def test_plain_score_is_the_exact_mean(weights: dict[int, int], others: int) -> None:
    total = sum(weights.values()) + others
    found = score_distribution(
        of({str(k): w / total for k, w in weights.items()}), digits_per_token=3
    )
    mean = Fraction(sum(k * w for k, w in weights.items()), sum(weights.values()))
    exact = 1 + (mean - 1) / 99 * 9
    assert expected_score(found, target=(1, 10)) == pytest.approx(float(exact), abs=1e-12)
    assert found.covered == pytest.approx(sum(weights.values()) / total, abs=1e-12)


@pytest.mark.parametrize("logit_temperature", [None, RELEASED_TEMPERATURE])
def test_ends_of_the_scale_map_to_ends_of_the_target(logit_temperature: float | None) -> None:
    # Stretching without the offset would give 9 / 99 and 9 * 100 / 99 instead of 1 and 10.
    for number, score in ((1, 1.0), (100, 10.0)):
        for chance in (0.3, 1.0):
            found = score_distribution(of({str(number): chance}), digits_per_token=3)
            assert (
                expected_score(found, target=(1, 10), logit_temperature=logit_temperature) == score
            )


def test_logit_weights_by_hand() -> None:
    # Odds of 1/2, 1/4 and 1/5 are 1, 1/3 and 1/4; divided by 0.2, log-odds give fifth powers.
    found = score_distribution(at(d10=0.5, d20=0.25, d40=0.2, so=0.05), digits_per_token=3)
    odds = {10: Fraction(1), 20: Fraction(1, 3) ** 5, 40: Fraction(1, 4) ** 5}
    mean = sum(k * w for k, w in odds.items()) / sum(odds.values())
    score = expected_score(found, target=(1, 100), logit_temperature=0.2)
    assert score == pytest.approx(float(mean), abs=1e-12)
    assert score < expected_score(found, target=(1, 100))


def test_a_certain_number_is_the_limit_of_a_nearly_certain_one() -> None:
    scores = [
        expected_score(
            score_distribution(of({"70": p, "20": 1e-9}), digits_per_token=3),
            target=(1, 100),
            logit_temperature=0.2,
        )
        for p in (1 - 1e-9, 1.0)
    ]
    assert scores == pytest.approx([70, 70], abs=1e-12)


@given(NUMBERS)
def test_a_mirrored_scale_mirrors_the_score(weights: dict[int, int]) -> None:
    total = sum(weights.values()) + 1
    for setting in (None, 0.2):
        scores = [
            expected_score(
                score_distribution(
                    of({str(k if same else 101 - k): w / total for k, w in weights.items()}),
                    digits_per_token=3,
                ),
                target=(-1, 1),
                logit_temperature=setting,
            )
            for same in (True, False)
        ]
        assert scores[0] == pytest.approx(-scores[1], abs=1e-12)


# ------------------------------------------------------------------ choices


def test_choices_are_normalised_and_what_they_cover_is_told() -> None:
    found = choice_probabilities(
        of({"A": 0.3, " A": 0.1, "B": 0.2, "a": 0.1, "C": 0.2}), labels=("A", "C", "B")
    )
    assert found.probabilities.tolist() == pytest.approx([0.5, 0.25, 0.25], abs=1e-15)
    assert found.covered == pytest.approx(0.8, abs=1e-15)


# ------------------------------------------------------------------ both orders

THIRDS = st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20)).filter(any)


@given(st.lists(st.tuples(THIRDS, THIRDS), min_size=1, max_size=10), st.integers(0, 10))
def test_outcomes_are_those_of_exact_arithmetic(drawn: list, tenths: int) -> None:
    tolerance = Fraction(tenths, 10) + Fraction(1, 997)  # no gap is exactly twice this
    ab, ba = (np.array([pair[k] for pair in drawn], dtype=float) for k in (0, 1))
    found = aggregate_orders(
        ab / ab.sum(axis=1, keepdims=True),
        ba / ba.sum(axis=1, keepdims=True),
        tolerance=min(1.0, float(tolerance)),
    )
    for row, (first, second) in enumerate(drawn):
        p, q = ([Fraction(x, sum(side)) for x in side] for side in (first, second))
        mass = {1: p[0] + q[2], 0: p[1] + q[1], -1: p[2] + q[0]}
        best, runner_up = sorted(mass, key=lambda k: mass[k], reverse=True)[:2]
        tie = mass[best] - mass[runner_up] < 2 * min(Fraction(1), tolerance)
        assert found.outcome[row] == (0.5 if tie else (best + 1) / 2)
        soft = (mass[1] + mass[0] / 2) / 2
        assert found.soft_outcome[row] == pytest.approx(float(soft), abs=1e-14)
        assert found.mass[row] == pytest.approx([float(mass[k]) for k in (1, 0, -1)], abs=1e-14)


@given(
    st.lists(st.tuples(THIRDS, THIRDS), min_size=1, max_size=10),
    st.sampled_from([0.0, 0.05, 0.3, 1.0]),
)
def test_swapping_the_answers_mirrors_everything(drawn: list, tolerance: float) -> None:
    ab, ba = (np.array([pair[k] for pair in drawn], dtype=float) for k in (0, 1))
    ab, ba = ab / ab.sum(axis=1, keepdims=True), ba / ba.sum(axis=1, keepdims=True)
    ours = aggregate_orders(ab, ba, tolerance=tolerance)
    theirs = aggregate_orders(ba, ab, tolerance=tolerance)
    assert (ours.outcome == 1 - theirs.outcome).all()
    assert (ours.mass == theirs.mass[:, ::-1]).all()
    np.testing.assert_allclose(ours.soft_outcome, 1 - theirs.soft_outcome, rtol=0, atol=1e-15)
    assert ((ours.soft_outcome >= 0) & (ours.soft_outcome <= 1)).all()


@pytest.mark.parametrize(
    ("ab", "ba", "tolerance", "outcome", "soft"),
    [
        ([1, 0, 0], [0, 0, 1], 0.0, 1.0, 1.0),  # A both times
        ([1, 0, 0], [1, 0, 0], 0.0, 0.5, 0.5),  # the first both times: position alone
        ([0, 1, 0], [0, 1, 0], 0.0, 0.5, 0.5),
        ([0.6, 0.4, 0], [0.1, 0.3, 0.6], 0.0, 1.0, 0.775),
        ([0.1, 0.3, 0.6], [0.3, 0.6, 0.1], 0.0, 0.5, 0.325),  # 0.9 and 0.9 but for rounding
        ([0.5, 0.5, 0], [0, 0.5, 0.5], 0.0, 0.5, 0.75),  # a win and a tie level: a tie
        ([0.75, 0, 0.25], [0.5, 0, 0.5], 0.125, 1.0, 0.625),  # gap 0.5, 0.25 needed
        ([0.75, 0, 0.25], [0.5, 0, 0.5], 0.25, 1.0, 0.625),  # gap 0.5, not less than 0.5
        ([0.75, 0, 0.25], [0.5, 0, 0.5], 0.375, 0.5, 0.625),
        ([0, 0.25, 0.75], [0.5, 0.25, 0.25], 0.25, 0.0, 0.25),
    ],
)
def test_aggregation_by_hand(ab, ba, tolerance: float, outcome: float, soft: float) -> None:
    found = aggregate_orders([ab], [ba], tolerance=tolerance)
    assert found.outcome[0] == outcome
    assert found.soft_outcome[0] == pytest.approx(soft, abs=1e-15)


# ------------------------------------------------------------------ perplexity


@given(st.lists(st.integers(1, 50), min_size=1, max_size=9))
def test_perplexity_is_the_geometric_mean_of_the_inverse_chances(inverse: list[int]) -> None:
    exact = math.prod(inverse) ** (1 / len(inverse))
    assert perplexity([-math.log(k) for k in inverse]) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(
    ("ab", "ba", "outcome"),
    [(1.25, 2.0, 1.0), (2.0, 1.25, 0.0), (1.25, 1.5, 0.5), (1.5, 1.25, 0.5), (1.25, 1.25, 0.5)],
)
def test_the_less_perplexed_order_decides(ab: float, ba: float, outcome: float) -> None:
    found = perplexity_outcome([1.0], [0.0], [ab], [ba], tolerance=0.25)
    assert found.tolist() == [outcome]  # a gap of exactly the tolerance is a tie


SHARES = st.sampled_from([1.0, 0.5, 0.0])
JUDGED = st.tuples(SHARES, SHARES, st.floats(1, 9), st.floats(1, 9))


@given(st.lists(JUDGED, min_size=1, max_size=9), st.sampled_from([0.0, 0.5]))
def test_perplexity_outcomes_mirror_under_a_swap(drawn: list[tuple], tolerance: float) -> None:
    out_ab, out_ba, ppl_ab, ppl_ba = (np.array(column) for column in zip(*drawn, strict=True))
    ours = perplexity_outcome(out_ab, out_ba, ppl_ab, ppl_ba, tolerance=tolerance)
    theirs = perplexity_outcome(1 - out_ba, 1 - out_ab, ppl_ba, ppl_ab, tolerance=tolerance)
    assert (ours == 1 - theirs).all()


# ------------------------------------------------------------------ refusals

NAN = math.nan
READ = partial(score_distribution, digits_per_token=3)
FIVE = score_distribution(at(d5=0.5), digits_per_token=3)
CHOOSE = partial(choice_probabilities, labels=("A", "C", "B"))
BOTH = partial(aggregate_orders, tolerance=0)
SURPRISE = partial(perplexity_outcome, tolerance=0)


@pytest.mark.parametrize(
    ("door", "arguments", "settings", "message"),
    [
        (READ, [TokenPosition([], [])], {}, "at the score .* ask the endpoint"),
        (READ, [TokenPosition(["5"], None)], {}, "no log-probabilities"),
        (READ, [TokenPosition(["5", "6"], [-0.1])], {}, "2 tokens but 1"),
        (READ, [TokenPosition(["5", "6"], [-0.1, NAN])], {}, "score position is nan in row 1"),
        (READ, [TokenPosition(["5", "6"], [0.6, 0.4])], {}, "score position is 0.6 in row 0"),
        (READ, [TokenPosition(["5", "6"], [-0.1, -0.2])], {}, "add up to 1.72357 > 1"),
        (READ, [TokenPosition(["5"], [[-0.1]])], {}, r"position is \(1, 1\); expected"),
        (
            *(READ, [at(d8=1.0)]),
            *(
                {"digits_per_token": 1, "following": {"8": TokenPosition(["7"], [0.5])}},
                "position after '8' is 0.5 in row 0",
            ),
        ),
        (READ, [at(d5=1.0)], {"digits_per_token": 0}, "digits_per_token is 0"),
        (READ, [at(d5=1.0)], {"scale": (5, 5)}, r"scale is \(5, 5\)"),
        (READ, [at(d5=1.0)], {"scale": (-1, 5)}, r"scale is \(-1, 5\)"),
        (READ, [at(d5=1.0)], {"max_unresolved": NAN}, "max_unresolved is nan"),
        (READ, [at(d5=1.0)], {"following": {"7": at(d1=1.0)}}, r"\['7'\] come after no listed"),
        (READ, [at(d5=1.0)], {"following": {"": at(d1=1.0)}}, "the digits before a position"),
        (READ, [at(Sure=0.9, the=0.1)], {}, "no whole number from 1 to 100 among"),
        (READ, [at(d101=1.0)], {}, "no whole number from 1 to 100 among"),
        (READ, [of({"50": 0.0, "x": 1.0})], {}, "no whole number from 1 to 100 among"),
        (expected_score, [FIVE], {"target": (10, 1)}, r"target is \(10, 1\)"),
        (expected_score, [FIVE], {"target": (1, NAN)}, r"target is \(1, nan\)"),
        (expected_score, [FIVE], {"target": (1, 10), "logit_temperature": 0.0}, "temperature is 0"),
        (
            expected_score,
            [FIVE],
            {"target": (1, 10), "logit_temperature": NAN},
            "temperature is nan",
        ),
        (CHOOSE, [of({"I": 1.0, "A": 0.0})], {}, r"none of the labels .* among the tokens 'I'"),
        (CHOOSE, [TokenPosition([], [])], {}, "no log-probabilities"),
        (CHOOSE, [of({"A": 1.0})], {"labels": ("A", "A", "B")}, "three distinct tokens"),
        (BOTH, [[[1, 0, 0]], [[1, 0]]], {}, r"probabilities_ba \(1, 2\)"),
        (BOTH, [[[1, 0, 0]] * 2, [[1, 0, 0]]], {}, r"_ab \(2, 3\), probabilities_ba \(1, 3\)"),
        (BOTH, [[[NAN, 0, 1]], [[1, 0, 0]]], {}, r"probabilities_ab is nan in row 0, column 0"),
        (BOTH, [[[1.5, -0.5, 0]], [[1, 0, 0]]], {}, r"probabilities_ab is -0.5 in row 0, column 1"),
        (BOTH, [[[1, 0, 0]], [[0.4, 0.3, 0.2]]], {}, "sum of probabilities_ba is 0.9 in row 0"),
        (BOTH, [[[1, 0, 0]], [[1, 0, 0]]], {"tolerance": -0.1}, "tolerance is -0.1"),
        (BOTH, [[[1, 0, 0]], [[1, 0, 0]]], {"tolerance": NAN}, "tolerance is nan"),
        (perplexity, [[]], {}, "ask the endpoint for logprobs"),
        (perplexity, [[-1.0, NAN]], {}, "answer is nan in row 1"),
        (perplexity, [[-1.0, 0.5]], {}, "answer is 0.5 in row 1"),
        (perplexity, [[-math.inf, -1.0]], {}, "answer is -inf"),
        (perplexity, [[-9999.0, *[-0.1] * 59]], {}, "answer is -9999"),
        (SURPRISE, [[1.0], [0.0], [1.5], [0.9]], {}, "perplexity_ba is 0.9 in row 0"),
        (SURPRISE, [[1.0], [0.0], [NAN], [2.0]], {}, "perplexity_ab is nan in row 0"),
        (SURPRISE, [[1.0], [NAN], [2.0], [2.0]], {}, "outcome_ba is nan in row 0; expected 1, 0.5"),
        (SURPRISE, [[0.7], [1.0], [2.0], [2.0]], {}, "outcome_ab is 0.7"),
        (SURPRISE, [[1.0], [1.0, 0.0], [2.0], [2.0]], {}, r"outcome_ba \(2,\)"),
        (SURPRISE, [[1.0], [1.0], [2.0], [2.0]], {"tolerance": -1}, "tolerance is -1"),
    ],
)
def test_wrong_input_is_refused_by_value_and_place(door, arguments, settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        door(*arguments, **settings)


@pytest.mark.parametrize("counts", [{2: 2, 4: 3}, {1: 1, 3: 1, 5: 8}, {4: 5}])
def test_a_score_is_normalised_as_trustjudge_does_if_asked(counts: dict[int, int]) -> None:
    """Its weights are odds to the power of five, exp(logit / 0.2); the call stays what it was."""
    plain, released = (
        ScoreForm(ScoreOptions(scale=(1, 5), normalise=how)) for how in ("plain", "softmax")
    )
    n = sum(counts.values())
    means = []
    for power in (None, 5):
        weight = {
            k: Fraction(c, n) if power is None or c == n else Fraction(c, n - c) ** power
            for k, c in counts.items()
        }
        mean = sum(k * w for k, w in weight.items()) / sum(weight.values())
        means.append(float(1 + (mean - 1) * 9 / 4))
    found = [form.sampled(Counter(counts), n)[0] for form in (plain, released)]
    assert found == pytest.approx(means, abs=1e-12)
    assert plain.identity == released.identity
    assert "normalise" not in plain.options.model_dump()
    assert released.options.model_dump()["normalise"] == "softmax"
