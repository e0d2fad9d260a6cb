"""Win rates of models: the right battles counted, refusals by name, and known truths covered."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgeline.battle_strata import (
    N_STRENGTHS,
    length_strata,
    merge_sparse_strata,
    strength_strata,
)
from judgeline.battles import CodedBattles
from judgeline.model_win_rates import ADJUSTMENTS, ModelWinRates, adjust_models
from judgeline.outcome_tables import (
    Design,
    OutcomeTables,
    decisive_counts,
    design_of,
    tabulate_outcomes,
)

from win_rate_worlds import coded, world  # isort: skip

PLACE = {1.0: 0, 0.5: 1, 0.0: 2}


def adjust(
    battles: CodedBattles, question: np.ndarray, *, miscoverage: float = 0.1
) -> ModelWinRates:
    stratum_a, stratum_b = strength_strata(battles)
    return adjust_models(
        tabulate_outcomes(battles, question),
        by_length=None,
        by_strength=tabulate_outcomes(
            battles, question, stratum_a=stratum_a, stratum_b=stratum_b, n_strata=N_STRENGTHS
        ),
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
        assert (tables.others[at] == others[0 if sides[0] >= sides[1] else 1]).all()
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
    assert (ours.others == theirs.others).all()  # seen by the side of the model, whatever its name


def test_ties_of_either_are_left_out_of_the_binary_counts() -> None:
    labelled = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]  # rows: judge's win, tie, loss
    counts = decisive_counts([10, 20, 30], labelled)
    assert [int(part) for part in counts] == [40, 10, 12, 9, 8, 1]


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
    others = np.full((1, 1, 3, 3), 5)
    return OutcomeTables(("m",), own, others, own[0], np.array([9]))


@pytest.mark.parametrize(
    ("unvoted", "won", "lost", "calibration", "n_test"),
    [
        (50, 10, 10, "own", 50),
        (21, 10, 10, "own", 21),
        (20, 10, 10, "others", 40),  # as many votes as battles without
        (50, 9, 10, "others", 69),  # too few votes won
        (50, 20, 9, "others", 79),
        (50, 0, 0, "others", 50),
        (0, 30, 30, "others", 60),
    ],
)
def test_own_votes_calibrate_where_they_are_enough_and_the_judge_does_most(
    unvoted: int, won: int, lost: int, calibration: str, n_test: int
) -> None:
    design = design_of(_one_model(unvoted, won, lost), 0)
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


def test_only_strata_by_strength_stand_in_for_votes_when_errors_depend_on_strength() -> None:
    hits: dict[str, list[bool]] = {"binary": [], "binary-by-strength": []}
    for seed in range(20):
        battles, question, human = world(seed, accuracy=None)
        found = adjust(battles, question)
        for name, held in hits.items():
            of_way = rows(found, name)
            truth = [_decisive(human, battles, m, hidden=False) for m in range(8)]
            inside = (of_way.win_rate_lower <= truth) & (truth <= of_way.win_rate_upper)
            held += list(inside[of_way.status == "ok"])
            assert set(of_way.status) <= {"ok", "chance"}
    assert len(hits["binary"]) == 160
    assert np.mean(hits["binary"]) < 0.3
    # Where one side nearly always wins, a judge can be no better than chance: a fifth withheld.
    assert len(hits["binary-by-strength"]) > 110
    assert np.mean(hits["binary-by-strength"]) > 0.9 - 3 * math.sqrt(0.9 * 0.1 / 110)


def test_a_new_model_gets_a_value_from_votes_on_others_and_says_so() -> None:
    battles, question, _ = world(3, n_new=1, share_voted=0.3)
    found = adjust(battles, question)
    new = found.model == "m07"
    assert set(found.calibration[new]) == {"others"}
    assert (found.n_votes[new] == 0).all()
    assert np.isnan(found.human_win_rate[new]).all()
    ok = new & (found.status == "ok")
    assert ok.any()
    assert all(note.startswith("transported") for note in found.note[ok])
    shown = headlines(found)
    assert shown.estimator[shown.model == "m07"] == "mean-outcome-by-strength"
    assert set(shown.estimator[shown.model != "m07"]) == {"mean-outcome"}


def test_without_ties_the_rows_that_are_shown_are_the_binary_ones() -> None:
    found = adjust(*world(3, n_new=1, share_voted=0.3)[:2])
    for shown, binary in (
        ("mean-outcome", "binary"),
        ("mean-outcome-by-strength", "binary-by-strength"),
    ):
        ours, theirs = rows(found, shown), rows(found, binary)
        together = np.char.find(ours.note, "taken together") >= 0
        both = (ours.status == "ok") & (theirs.status == "ok") & ~together
        assert both.any()
        for name in ("win_rate", "win_rate_lower", "win_rate_upper", "naive_win_rate"):
            np.testing.assert_allclose(getattr(ours, name)[both], getattr(theirs, name)[both])


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
            ("mean-outcome-by-strength", of_all.mean()),
            ("binary-by-strength", of_all[of_all != 0.5].mean()),
        ):
            row = rows(table, name)
            at = row.model == "m07"
            assert row.status[at] == "ok"
            inside = (row.win_rate_lower <= truth) & (truth <= row.win_rate_upper)
            found.setdefault(name, []).append((row.win_rate[at][0] - truth, inside[at][0]))
    return {name: tuple(np.array(pairs).T) for name, pairs in found.items()}


@pytest.mark.parametrize("ties", [0.0, 0.15, 0.3])
def test_ties_of_people_do_not_move_the_shown_rate_of_a_model_without_votes(ties: float) -> None:
    found = _without_votes(ties, torn=True)
    errors, hits = found["mean-outcome-by-strength"]
    error_of_mean = errors.std(ddof=1) / math.sqrt(N_WORLDS)
    assert abs(errors.mean()) < 4 * error_of_mean
    assert hits.mean() > 0.9 - 3 * math.sqrt(0.9 * 0.1 / N_WORLDS)
    errors, hits = found["binary-by-strength"]
    if ties:  # half of the ties count as lost: (1/2 - 0.77) x ties
        assert errors.mean() == pytest.approx(-0.27 * ties, abs=0.02)
    if ties == 0.3:
        assert hits.mean() < 0.1


def test_a_judge_that_leans_on_ties_leaves_the_strongest_model_a_small_error() -> None:
    # It errs differently on ties of models further apart than any that calibrate, so that the
    # assumption fails: what is left of the error of the strongest model is told here.
    found = _without_votes(0.3, torn=False)
    assert 0 < found["mean-outcome-by-strength"][0].mean() < 0.03


def test_binary_rows_say_that_they_do_not_apply_where_people_tie() -> None:
    found = adjust(*world(4, n_new=1, ties=0.25)[:2])
    for way in ADJUSTMENTS:
        told = ["does not apply: people tie" in note for note in rows(found, way).note]
        assert all(told) if way in ("binary", "binary-by-strength") else not any(told)


def test_strata_with_few_votes_are_taken_together_and_a_note_says_so() -> None:
    test = np.array([[5, 0, 5], [9, 1, 9], [0, 0, 0]])
    labelled = np.zeros((3, 3, 3), int)
    labelled[:, 0, 0], labelled[:, 2, 2] = (30, 40, 0), (9, 40, 0)
    merged = merge_sparse_strata(Design(test, labelled, "others"))
    assert merged.test.tolist() == [[14, 1, 14], [0, 0, 0]]  # the last tests nothing
    assert merged.labelled.sum(axis=0).tolist() == labelled.sum(axis=0).tolist()
    few, question, _ = world(6, n_new=1, n_battles=200)
    shown = headlines(adjust(few, question))
    noted = ["are taken together" in note for note in shown.note]
    assert any(noted)


def test_with_ties_the_mean_outcome_is_shown_and_counts_them_half() -> None:
    battles, question, _ = world(4, share_voted=0.4, ties=0.25, n_battles=6000)
    found = adjust(battles, question)
    assert set(headlines(found).estimator) == {"mean-outcome"}
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
    assert found["binary"] == found["ternary"] == {"all-ties"}


def test_a_judge_that_only_ties_is_told() -> None:
    battles, question, human = world(6)
    tied = coded(battles.model_a, battles.model_b, human, np.full(human.size, 0.5))
    assert _statuses(tied, question)["binary"] == {"all-ties"}


def test_an_absent_class_is_told() -> None:
    battles, question, human = world(6)
    a_wins = coded(battles.model_a, battles.model_b, np.ones(human.size), human)
    found = rows(adjust(a_wins, question), "binary")
    assert set(found.status) == {"class-absent"}
    assert all("label battles that were" in note for note in found.note)


def test_a_judge_at_chance_gives_no_win_rate() -> None:
    battles, question, human = world(6)
    wrong = coded(battles.model_a, battles.model_b, human, 1 - human)
    found = adjust(wrong, question)
    assert set(rows(found, "binary").status) == {"chance"}
    assert np.isnan(found.win_rate).all()
    assert np.isnan(found.win_rate_lower).all()
    assert (~np.isnan(found.naive_win_rate)).all()
    assert "no better than chance" in rows(found, "binary").note[0]


def test_one_question_is_no_sample() -> None:
    battles, question, _ = world(6)
    assert _statuses(battles, np.zeros_like(question))["binary"] == {"one-question"}


def test_without_lengths_and_without_opponents_that_were_voted_on() -> None:
    battles, question, _ = world(6)
    assert _statuses(battles, question)["binary-by-length"] == {"no-lengths"}
    two_new = coded(
        np.array([0, 1, 2]), np.array([1, 0, 3]), np.array([1, 0, np.nan]), np.array([1.0, 0, 1])
    )
    found = rows(adjust(two_new, np.arange(3)), "binary")
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
