"""Win rates of models: the right battles counted, refusals by name, and known truths covered."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgeline.elo import CodedBattles
from judgeline.winrate.labels import decisive_counts
from judgeline.winrate.models import (
    ADJUSTMENTS,
    HEADLINE_RULE,
    LABEL_SHIFT,
    ModelWinRates,
    adjust_models,
)
from judgeline.winrate.outcomes import (
    N_STRENGTHS,
    Design,
    OutcomeTables,
    decisive,
    design_of,
    has_own_votes,
    length_strata,
    merge_sparse_strata,
    strength_strata,
    tabulate_outcomes,
)
from judgeline.winrate.powered import (
    difference_estimate,
    difference_estimates,
    power_tuned_estimate,
)

from win_rate_worlds import coded, world  # isort: skip

PLACE = {1.0: 0, 0.5: 1, 0.0: 2}


def by_strength(battles: CodedBattles, question: np.ndarray) -> OutcomeTables:
    stratum_a, stratum_b = strength_strata(battles)
    return tabulate_outcomes(
        battles, question, stratum_a=stratum_a, stratum_b=stratum_b, n_strata=N_STRENGTHS
    )


def adjust(
    battles: CodedBattles, question: np.ndarray, *, miscoverage: float = 0.1
) -> ModelWinRates:
    return adjust_models(
        tabulate_outcomes(battles, question),
        by_length=None,
        by_strength=by_strength(battles, question),
        miscoverage=miscoverage,
    )


def rows(found: ModelWinRates, estimator: str) -> ModelWinRates:
    kept = found.estimator == estimator
    return ModelWinRates(*(column[kept] for column in found))


def headlines(found: ModelWinRates) -> ModelWinRates:
    return ModelWinRates(*(column[found.headline] for column in found))


# ------------------------------------------------------------------ counting


@st.composite
def small_corpora(draw: st.DrawFn) -> tuple[CodedBattles, list, list]:
    n = draw(st.integers(1, 25))
    pairs = [draw(st.permutations(range(4)))[:2] for _ in range(n)]
    human = [draw(st.sampled_from([1.0, 0.5, 0.0, math.nan])) for _ in range(n)]
    judge = [draw(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])) for _ in range(n)]
    strata = [(draw(st.integers(0, 1)), draw(st.integers(0, 1))) for _ in range(n)]
    a, b = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    battles = coded(a, b, np.array(human), np.array(judge))
    return battles, list(zip(a, b, human, judge, strict=True)), strata


@settings(deadline=None)
@given(small=small_corpora())
def test_counts_are_those_of_going_battle_by_battle(small) -> None:
    battles, plain, strata = small
    tables = tabulate_outcomes(
        battles,
        np.arange(len(plain)) % 3,
        stratum_a=[a for a, _ in strata],
        stratum_b=[b for _, b in strata],
        n_strata=2,
    )
    voted = {m for a, b, human, _ in plain if not math.isnan(human) for m in (a, b)}
    for at, name in enumerate(tables.models):
        model = int(name[1:])
        own, questions = np.zeros((2, 3, 4), int), set()
        sides = {0: 0, 1: 0}
        others = np.zeros((2, 2, 3, 3), int)
        for row, (battle, stratum) in enumerate(zip(plain, strata, strict=True)):
            for side in (0, 1):
                human, judge = (x if side == 0 else 1 - x for x in battle[2:])
                said = 0 if judge > 0.5 else 1 if judge == 0.5 else 2
                meant = 3 if math.isnan(human) else PLACE[human]
                if battle[side] == model and battle[1 - side] in voted:
                    own[stratum[side], said, meant] += 1
                    questions.add(row % 3)
                    sides[side] += 1
                if model not in battle[:2] and meant < 3:
                    others[side, stratum[side], said, meant] += 1
        assert (tables.own[at] == own).all()
        assert (tables.others[:, at] == others).all()
        assert tables.usual_side[at] == (0 if sides[0] >= sides[1] else 1)
        assert tables.n_questions[at] == len(questions)
    assert tables.whole.sum() == len(plain)


def test_naming_the_other_side_a_changes_nothing_of_a_models_own_battles() -> None:
    battles, question, _ = world(1, share_voted=0.4)
    swapped = coded(
        battles.model_b,
        battles.model_a,
        np.where(battles.human_outcome < 0, np.nan, 1 - battles.human_outcome / 2),
        1 - battles.judge_outcome / 4,
    )
    ours, theirs = (tabulate_outcomes(each, question) for each in (battles, swapped))
    assert (ours.own == theirs.own).all()
    assert (ours.others == theirs.others[::-1]).all()
    for model in range(8):  # seen by the side of the model, whatever its name
        first, second = (design_of(tables, model) for tables in (ours, theirs))
        assert (first.labelled == second.labelled).all()


def test_ties_of_either_are_left_out_of_the_binary_counts() -> None:
    labelled = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]  # rows: judge's win, tie, loss
    counts = decisive_counts([10, 20, 30], labelled)
    assert [int(part) for part in counts] == [40, 10, 12, 9, 8, 1]
    left = decisive(Design(np.array([[10, 20, 30]]), np.array([labelled]), "others"))
    assert left.test.tolist() == [[10, 0, 30]]
    assert left.labelled.tolist() == [[[1, 0, 3], [0, 0, 0], [7, 0, 9]]]


def test_longer_answers_than_the_median_are_the_second_stratum() -> None:
    longer = length_strata([1, 5, 9], [2, 3, 10])  # median 4
    assert longer is not None
    assert [part.tolist() for part in longer] == [[0, 1, 1], [0, 0, 1]]
    assert length_strata([1, math.nan], [2, 3]) is None


def test_strength_strata_mirror_between_the_two_sides() -> None:
    battles, _, _ = world(2)
    ours, theirs = strength_strata(battles)
    assert (ours + theirs == N_STRENGTHS - 1).mean() > 0.95  # but for gaps on an edge
    shares = np.bincount(np.concatenate([ours, theirs])) / (2 * len(battles))
    np.testing.assert_allclose(shares, 1 / N_STRENGTHS, atol=0.06)


# ------------------------------------------------------------------ which battles serve


def _one_model(n_unvoted: int, n_won: int, n_lost: int) -> OutcomeTables:
    own = np.zeros((1, 1, 3, 4), int)
    own[0, 0, 0, [0, 2, 3]] = n_won, n_lost, n_unvoted
    others = np.full((2, 1, 1, 3, 3), 5)
    return OutcomeTables(("m",), own, others, np.array([0]), own[0], np.array([9]))


@pytest.mark.parametrize(
    ("unvoted", "won", "lost", "calibration", "n_test"),
    [
        (50, 10, 10, "own", 50),
        (21, 10, 10, "own", 21),
        (20, 10, 10, "others", 40),  # as many votes as battles without
        (50, 4, 10, "others", 64),  # too few votes won
        (50, 20, 4, "others", 74),
        (50, 5, 5, "own", 50),
        (50, 0, 0, "others", 50),
        (0, 30, 30, "others", 60),
    ],
)
def test_own_votes_calibrate_where_they_are_enough_and_the_judge_does_most(
    unvoted: int, won: int, lost: int, calibration: str, n_test: int
) -> None:
    tables = _one_model(unvoted, won, lost)
    design = design_of(tables, 0)
    assert has_own_votes(tables.own[0]) is (min(won, lost) >= 5)
    assert design_of(tables, 0, hidden=True).calibration == "others"
    assert design.calibration == calibration
    assert design.test.sum() == n_test
    assert design.labelled.sum() == (won + lost if calibration == "own" else 45)


# ------------------------------------------------------------------ known truths


def _decisive(human: np.ndarray, battles: CodedBattles, model: int, *, hidden: bool) -> float:
    """Human win rate of a model over its test battles."""
    of_test = battles.human_outcome < 0 if hidden else np.ones(len(battles), bool)
    as_a, as_b = (of_test & (side == model) for side in (battles.model_a, battles.model_b))
    return float(np.concatenate([human[as_a], 1 - human[as_b]]).mean())


@pytest.mark.parametrize("share_voted", [0.3, 1.0], ids=["own votes", "votes on others"])
def test_intervals_cover_where_the_judge_errs_alike_and_naive_win_rates_do_not(
    share_voted: float,
) -> None:
    hits, errors, naive = [], [], []
    for seed in range(40):
        battles, question, human = world(seed, share_voted=share_voted)
        found = rows(adjust(battles, question), "binary")
        assert set(found.calibration) == {"own" if share_voted < 1 else "others"}
        truth = [_decisive(human, battles, m, hidden=share_voted < 1) for m in range(8)]
        hits += list((found.win_rate_lower <= truth) & (truth <= found.win_rate_upper))
        errors.append(found.win_rate - truth)
        naive.append(found.naive_win_rate - truth)
    monte_carlo_error = math.sqrt(0.9 * 0.1 / 40)  # seeds are independent, models are not
    assert np.mean(hits) > 0.9 - 3 * monte_carlo_error / math.sqrt(8) - 0.01
    assert abs(np.mean(errors, axis=0)).max() < 0.03
    assert abs(np.mean(naive, axis=0)).max() > 0.1  # a strong model looks weaker than it is


@pytest.mark.parametrize("accuracy", [None, 0.8])
def test_the_difference_helps_where_naive_rates_fail_and_holds_where_corrections_fail(
    accuracy: float | None,
) -> None:
    hits: list[bool] = []
    errors: dict[str, list[float]] = {"binary": [], "difference": [], "naive": []}
    for seed in range(12):
        battles, question, human = world(seed, accuracy=accuracy, n_models=14, n_battles=5000)
        found = adjust(battles, question)
        truth = np.array([_decisive(human, battles, m, hidden=False) for m in range(14)])
        of_difference = rows(found, "difference")
        lower, upper = of_difference.win_rate_lower, of_difference.win_rate_upper
        hits += list((lower <= truth) & (truth <= upper))
        errors["difference"] += list(abs(of_difference.win_rate - truth))
        errors["naive"] += list(abs(of_difference.naive_win_rate - truth))
        errors["binary"] += list(abs(rows(found, "binary").win_rate - truth))
    naive, binary, difference = (np.mean(errors[k]) for k in ("naive", "binary", "difference"))
    # The rank of 13 scores: 13 of 14 models, nearly whatever the errors are.
    assert np.mean(hits) == pytest.approx(13 / 14, abs=0.03)
    if accuracy is None:  # the judge errs with strength, and its own rates are unbiased
        assert difference < 1.15 * naive
        assert binary > 5 * difference
    else:  # it errs alike: the correction is right, and naive rates lean towards one half
        assert difference < 0.6 * naive


def test_a_model_with_votes_shows_its_own_and_a_new_one_those_on_others() -> None:
    battles, question, _ = world(3, n_new=1, share_voted=0.3)
    found = adjust(battles, question)
    new = found.model == "m07"
    assert set(found.calibration[new & (found.status == "ok")]) == {"others"}
    assert (found.n_votes[new] == 0).all()
    assert np.isnan(found.human_win_rate[new]).all()
    ok = new & (found.status == "ok")
    assert ok.any()
    assert all("transported" in note for note in found.note[ok])
    shown = headlines(found)
    assert shown.model.tolist() == [f"m{at:02d}" for at in range(8)]
    assert shown.estimator.tolist() == ["prediction-powered"] * 7 + ["difference"]
    own = rows(found, "prediction-powered")
    assert own.status[own.model == "m07"] == "few-own-votes"
    assert "0 of its own votes are won" in own.note[own.model == "m07"][0]


def test_basis_states_the_rule_of_the_headline_and_the_assumption_beneath() -> None:
    found = adjust(*world(3, n_new=1, share_voted=0.3)[:2])
    assert all(HEADLINE_RULE in basis for basis in headlines(found).basis)
    for estimator in ("mean-outcome", "ternary", "binary"):
        assert set(rows(found, estimator).basis) == {LABEL_SHIFT}
        assert not rows(found, estimator).headline.any()


def test_rows_are_the_estimators_of_the_models_counts() -> None:
    battles, question, _ = world(3, share_voted=0.3, ties=0.2)
    found, tables = adjust(battles, question), tabulate_outcomes(battles, question)
    own = rows(found, "prediction-powered")
    transferred = rows(found, "difference")
    strata = by_strength(battles, question)
    for at in range(8):
        table = tables.own[at, 0]
        powered = power_tuned_estimate(table[:, :3], table[:, 3])
        assert own.win_rate[at] == powered.win_rate
        assert own.std_error[at] ** 2 == pytest.approx(powered.variance)
        expected = difference_estimate(strata.own[at].sum(axis=2), strata.others[:, at].sum(axis=0))
        assert transferred.win_rate[at] == expected.win_rate
        assert transferred.n_labelled[at] == tables.others[0, at].sum()
        assert transferred.n_battles[at] == table.sum()


def test_reversed_votes_on_a_model_leave_its_difference_estimate_bit_for_bit() -> None:
    battles, question, _ = world(9, share_voted=0.5, ties=0.1)
    of_third = (battles.model_a == 3) | (battles.model_b == 3)
    votes = np.where(battles.human_outcome < 0, np.nan, battles.human_outcome / 2)
    turned = coded(
        battles.model_a,
        battles.model_b,
        np.where(of_third, 1 - votes, votes),
        battles.judge_outcome / 4,
    )
    ours, theirs = (difference_estimates(by_strength(b, question)) for b in (battles, turned))
    assert ours.win_rate[3] == theirs.win_rate[3]
    assert ours.variance[3] == theirs.variance[3]
    assert ours.human_win_rate[3] != theirs.human_win_rate[3]
    assert (np.delete(ours.win_rate != theirs.win_rate, 3)).all()


N_WORLDS = 20


def _without_votes(ties: float, *, torn: bool) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return errors and hits, by estimator, of a model that nobody voted on: the strongest.

    The judge never ties. The mean outcome is held to the win rate with ties half, the binary
    row to the one without.
    """
    found: dict[str, list[tuple[float, bool]]] = {}
    for seed in range(N_WORLDS):
        options = {"n_battles": 8000, "n_new": 1, "accuracy": 0.85, "judge_ties": 0.0}
        battles, question, human = world(seed, ties=ties, torn=torn, **options)
        of_all = np.concatenate([human[battles.model_a == 7], 1 - human[battles.model_b == 7]])
        table = adjust(battles, question)
        for name, truth in (
            ("mean-outcome", of_all.mean()),
            ("binary", of_all[of_all != 0.5].mean()),
        ):
            row = rows(table, name)
            at = row.model == "m07"
            assert row.status[at] == "ok"
            inside = (row.win_rate_lower <= truth) & (truth <= row.win_rate_upper)
            found.setdefault(name, []).append((row.win_rate[at][0] - truth, inside[at][0]))
    return {name: tuple(np.array(pairs).T) for name, pairs in found.items()}


@pytest.mark.parametrize("ties", [0.0, 0.15, 0.3])
def test_ties_of_people_do_not_move_the_mean_outcome_of_a_model_without_votes(ties: float) -> None:
    found = _without_votes(ties, torn=True)
    errors, hits = found["mean-outcome"]
    error_of_mean = errors.std(ddof=1) / math.sqrt(N_WORLDS)
    assert abs(errors.mean()) < 4 * error_of_mean
    assert hits.mean() > 0.9 - 3 * math.sqrt(0.9 * 0.1 / N_WORLDS)
    errors, hits = found["binary"]
    if ties:  # half of the ties count as lost: (1/2 - 0.77) x ties
        assert errors.mean() == pytest.approx(-0.27 * ties, abs=0.02)
    if ties == 0.3:
        assert hits.mean() < 0.3


def test_binary_rows_say_that_they_do_not_apply_where_people_tie() -> None:
    found = adjust(*world(4, n_new=1, ties=0.25)[:2])
    for way in ADJUSTMENTS:
        told = ["does not apply: people tie" in note for note in rows(found, way).note]
        assert all(told) if way == "binary" else not any(told)


def test_strata_with_few_votes_are_taken_together_and_a_note_says_so() -> None:
    test = np.array([[5, 0, 5], [9, 1, 9], [0, 0, 0]])
    labelled = np.zeros((3, 3, 3), int)
    labelled[:, 0, 0], labelled[:, 2, 2] = (5, 40, 0), (4, 40, 0)
    merged = merge_sparse_strata(Design(test, labelled, "others"))
    assert merged.test.tolist() == [[14, 1, 14], [0, 0, 0]]  # the last tests nothing
    assert merged.labelled.sum(axis=0).tolist() == labelled.sum(axis=0).tolist()
    few, question, _ = world(6, n_new=1, n_battles=60, n_models=5)
    noted = [
        "are taken together" in note for note in rows(adjust(few, question), "difference").note
    ]
    assert any(noted)


def test_with_ties_the_mean_outcome_counts_them_half() -> None:
    battles, question, _ = world(4, share_voted=0.4, ties=0.25, n_battles=6000)
    found = adjust(battles, question)
    shown, ternary, binary = (rows(found, name) for name in ("mean-outcome", "ternary", "binary"))
    assert (shown.n_ties == 0).all()
    assert (shown.human_win_rate == ternary.human_win_rate).all()
    assert (abs(shown.win_rate - ternary.win_rate) < 0.05).all()
    assert (ternary.n_ties == 0).all()
    assert (binary.n_ties > 0).all()
    assert (binary.n_battles + binary.n_labelled + binary.n_ties).tolist() == (
        ternary.n_battles + ternary.n_labelled
    ).tolist()
    # Ties draw a win rate towards one half.
    assert (abs(ternary.human_win_rate - 0.5) <= abs(binary.human_win_rate - 0.5)).all()


def test_shuffled_battles_give_the_same_rows() -> None:
    battles, question, _ = world(5, share_voted=0.5, ties=0.1)
    order = np.random.default_rng(1).permutation(len(battles))
    ours, theirs = adjust(battles, question), adjust(battles.take(order), question[order])
    for ours_column, theirs_column in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(ours_column, theirs_column)


# ------------------------------------------------------------------ bad input


def _statuses(battles: CodedBattles, question: np.ndarray) -> dict[str, set[str]]:
    found = adjust(battles, question)
    return {way: set(rows(found, way).status.tolist()) for way in ADJUSTMENTS}


def test_without_human_ties_the_ternary_row_says_so() -> None:
    battles, question, _ = world(6)
    assert _statuses(battles, question)["ternary"] == {"no-ties"}


def test_all_ties_leave_nothing_to_adjust() -> None:
    battles, question, human = world(6)
    tied = coded(battles.model_a, battles.model_b, np.full(human.size, 0.5), human)
    found = _statuses(tied, question)
    assert found["binary"] == {"all-ties"}
    assert found["ternary"] == {"all-ties"}
    shown = headlines(adjust(tied, question))
    assert set(shown.estimator) == {"difference"}
    assert abs(shown.win_rate - 0.5).mean() < 0.05  # as all votes say


def test_a_judge_that_only_ties_is_told() -> None:
    battles, question, human = world(6)
    tied = coded(battles.model_a, battles.model_b, human, np.full(human.size, 0.5))
    assert _statuses(tied, question)["binary"] == {"all-ties"}


def test_an_absent_class_is_told() -> None:
    battles, question, human = world(6)
    a_wins = coded(battles.model_a, battles.model_b, np.ones(human.size), human)
    found = rows(adjust(a_wins, question), "binary")
    assert set(found.status) == {"class-absent"}
    assert all("label some" in note for note in found.note)


def test_a_judge_at_chance_gives_no_win_rate() -> None:
    battles, question, human = world(6)
    wrong = coded(battles.model_a, battles.model_b, human, 1 - human)
    found = adjust(wrong, question)
    published = found.basis == LABEL_SHIFT
    assert set(rows(found, "binary").status) == {"chance"}
    assert np.isnan(found.win_rate[published]).all()
    assert np.isnan(found.win_rate_lower[published]).all()
    assert (~np.isnan(found.naive_win_rate)).all()
    assert "no better than chance" in rows(found, "binary").note[0]
    shown = headlines(found)  # every battle has a vote: the headline is the votes
    np.testing.assert_allclose(shown.win_rate, shown.human_win_rate)


@pytest.mark.parametrize("always", [1.0, 0.5])
def test_a_judge_with_constant_verdicts_leaves_what_votes_say(always: float) -> None:
    battles, question, human = world(6, n_models=12, n_battles=3000, n_new=1)
    votes = np.where(battles.human_outcome < 0, np.nan, human)
    constant = coded(battles.model_a, battles.model_b, votes, np.full(human.size, always))
    found = adjust(constant, question)
    assert set(rows(found, "mean-outcome").status) == {"chance"}
    new = headlines(found).model == "m11"
    shown = ModelWinRates(*(column[new] for column in headlines(found)))
    assert shown.estimator == ["difference"]
    assert abs(shown.win_rate[0] - 0.5) < 0.1  # the judge says nothing of it: one half
    assert shown.win_rate_upper[0] - shown.win_rate_lower[0] > 0.5  # as strange as others are


def test_few_voted_models_leave_the_whole_range_and_the_note_says_how_many_are_needed() -> None:
    battles, question, _ = world(6, n_models=6, n_new=1)
    found = rows(adjust(battles, question), "difference")
    assert (found.win_rate_lower == 0).all()
    assert (found.win_rate_upper == 1).all()
    assert "5 other voted models calibrate the interval; 9 are needed" in found.note[-1]
    assert np.isfinite(found.win_rate).all()
    wider = rows(adjust(battles, question, miscoverage=0.25), "difference")
    assert (wider.win_rate_upper - wider.win_rate_lower < 1).all()  # 3 are needed


def test_votes_on_one_pair_only_rate_neither_of_the_two_by_votes_on_others() -> None:
    rng = np.random.default_rng(1)
    a, b = np.array([[0, 1], [0, 2], [1, 2], [1, 3], [0, 3]]).repeat(40, axis=0).T
    judge = rng.integers(2, size=a.size).astype(float)
    human = np.where((a == 0) & (b == 1), rng.integers(2, size=a.size), np.nan)
    found = adjust(coded(a, b, human, judge), np.arange(a.size))
    transferred = rows(found, "difference")
    assert transferred.status.tolist() == ["no-votes", "no-votes", "ok", "ok"]
    assert np.isnan(transferred.win_rate[:2]).all()
    assert (transferred.win_rate_upper - transferred.win_rate_lower)[2:].tolist() == [1, 1]
    assert set(headlines(found).estimator[:2]) == {"prediction-powered"}
    assert set(headlines(found).status[:2]) == {"ok"}


def test_votes_on_battles_of_one_model_only_rate_it_by_its_own_votes_or_not_at_all() -> None:
    battles, question, human = world(6, n_models=12, n_battles=4000)
    of_first = (battles.model_a == 0) | (battles.model_b == 0)
    votes = np.where(of_first, human, np.nan)
    found = adjust(
        coded(battles.model_a, battles.model_b, votes, battles.judge_outcome / 4), question
    )
    transferred = rows(found, "difference")
    assert transferred.status.tolist() == ["no-votes"] + ["ok"] * 11
    assert "label some" in transferred.note[0]
    first = headlines(found)
    assert (first.estimator[0], first.status[0]) == ("prediction-powered", "ok")


def test_without_any_vote_no_row_has_a_value_and_each_says_what_to_do() -> None:
    battles, question, human = world(6)
    unvoted = coded(battles.model_a, battles.model_b, np.full(human.size, np.nan), human)
    found = adjust(unvoted, question)
    assert np.isnan(found.win_rate).all()
    assert set(found.status) == {"no-battles", "few-own-votes"}
    assert all(any(word in note for word in ("judge some", "needed")) for note in found.note)


def test_one_vote_is_no_headline_of_its_own_and_calibrates_nobody() -> None:
    battles, question, human = world(6, n_models=13, n_battles=4000, n_new=1)
    first = np.flatnonzero((battles.model_a == 12) & (battles.model_b < 12))[0]
    votes = np.where(battles.human_outcome < 0, np.nan, human)
    votes[first] = 1.0
    found = adjust(
        coded(battles.model_a, battles.model_b, votes, battles.judge_outcome / 4), question
    )
    shown = headlines(found)
    assert shown.estimator[-1] == "difference"
    assert shown.n_votes[-1] == 1
    assert shown.human_win_rate[-1] == 1
    assert np.isfinite(shown.win_rate[-1])
    one_vote = coded(battles.model_a, battles.model_b, votes, battles.judge_outcome / 4)
    assert difference_estimates(by_strength(one_vote, question)).calibrating.tolist() == [
        *[True] * 12,
        False,
    ]


def test_one_question_is_no_sample() -> None:
    battles, question, _ = world(6)
    assert _statuses(battles, np.zeros_like(question))["binary"] == {"one-question"}


def test_without_lengths_and_without_opponents_that_were_voted_on() -> None:
    battles, question, _ = world(6)
    assert _statuses(battles, question)["binary-by-length"] == {"no-lengths"}
    two_new = coded(
        np.array([0, 1, 2]), np.array([1, 0, 3]), np.array([1, 0, np.nan]), np.array([1.0, 0, 1])
    )
    for estimator in ("binary", "difference"):
        found = rows(adjust(two_new, np.arange(3)), estimator)
        assert found.status.tolist() == ["no-votes", "no-votes", "no-battles", "no-battles"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"stratum_a": [0]}, r"shape \(2400,\), got \(1,\)"),
        ({"stratum_a": np.full(2400, 1)}, "from 0 and below 1"),
        ({"stratum_b": np.full(2400, -1)}, "from 0 and below 1"),
        ({"stratum_b": np.zeros(2400)}, "whole numbers"),
        ({"question": [1, 2]}, r"question must have shape \(2400,\)"),
    ],
)
def test_bad_columns_are_refused(change: dict, told: str) -> None:
    battles, question, _ = world(6)
    with pytest.raises(ValueError, match=told):
        tabulate_outcomes(battles, **{"question": question, **change})


def test_bad_miscoverage_is_refused() -> None:
    battles, question, _ = world(6)
    with pytest.raises(
        ValueError, match=r"miscoverage must lie strictly between 0 and 1, got 1\.2"
    ):
        adjust(battles, question, miscoverage=1.2)
