"""Coverage by leaving out models: by hand, where it fails, and on real votes."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from judgeline.elo import CodedBattles, code_battles
from judgeline.winrate.coverage import (
    EACH_MODEL,
    STRONGEST,
    WEAKEST,
    WinRateCoverage,
    leave_out_coverage,
)
from judgeline.winrate.models import adjust_models
from judgeline.winrate.outcomes import N_STRENGTHS, strength_strata, tabulate_outcomes

from win_rate_worlds import coded, world  # isort: skip


def covered(battles: CodedBattles, question: np.ndarray) -> pd.DataFrame:
    first, second = strength_strata(battles)
    found = leave_out_coverage(
        tabulate_outcomes(battles, question),
        by_strength=tabulate_outcomes(
            battles, question, stratum_a=first, stratum_b=second, n_strata=N_STRENGTHS
        ),
        miscoverage=0.1,
    )
    return pd.DataFrame(found._asdict())


def one(table: pd.DataFrame, estimator: str, left_out: str = EACH_MODEL) -> pd.Series:
    return table[table["estimator"].eq(estimator) & table["left_out"].eq(left_out)].iloc[0]


def test_rows_are_means_over_the_models_shown() -> None:
    battles, question, _ = world(2, n_models=14, n_battles=4000)
    first, second = strength_strata(battles)
    shown = adjust_models(  # every battle has a vote: difference rows hide them
        tabulate_outcomes(battles, question),
        by_length=None,
        by_strength=tabulate_outcomes(
            battles, question, stratum_a=first, stratum_b=second, n_strata=3
        ),
        miscoverage=0.1,
    )
    table = covered(battles, question)
    assert table["left_out"].tolist() == [EACH_MODEL] * 5 + [STRONGEST, WEAKEST]
    for estimator in ("difference", "mean-outcome", "binary"):
        of = shown.estimator == estimator
        error = shown.win_rate[of] - shown.human_win_rate[of]
        row = one(table, estimator)
        assert row["mean_absolute_error"] == pytest.approx(abs(error).mean())
        assert row["bias"] == pytest.approx(error.mean())
        width = shown.win_rate_upper[of] - shown.win_rate_lower[of]
        assert row["mean_width"] == pytest.approx(width.mean())
        inside = (shown.win_rate_lower <= shown.human_win_rate) & (
            shown.human_win_rate <= shown.win_rate_upper
        )
        assert row["win_rate_coverage"] == pytest.approx(inside[of].mean())
        assert (row["n_models"], row["n_without"]) == (14, 0)


def test_own_votes_stay_hidden_where_they_would_calibrate() -> None:
    battles, question, _ = world(2, n_models=14, n_battles=6000, share_voted=0.3)
    table = covered(battles, question)
    # Twice the data without a vote: published rows would calibrate on own votes when shown.
    assert one(table, "mean-outcome")["n_models"] == 14
    assert one(table, "difference")["mean_absolute_error"] < 0.1


def test_coverage_can_fail_where_the_judge_overrates_some_strong_models() -> None:
    """A judge fair to all but five models, which it lets win half of the battles they lose."""
    battles, question, human = world(5, n_models=30, n_battles=30_000, accuracy=0.95)
    praised_a, praised_b = battles.model_a >= 25, battles.model_b >= 25
    judge, often = battles.judge_outcome / 4, np.arange(human.size) % 2 == 0
    judge = np.where(praised_a & ~praised_b & often, 1.0, judge)
    judge = np.where(praised_b & ~praised_a & often, 0.0, judge)
    failed = covered(coded(battles.model_a, battles.model_b, human, judge), question)
    fair = covered(battles, question)
    rank = math.ceil(30 * 0.9) / 30
    for table in (fair, failed):  # one model at a time: the rank, whatever the judge does
        assert one(table, "difference")["win_rate_coverage"] == pytest.approx(rank, abs=0.05)
    worst = failed.loc[failed["left_out"].ne(EACH_MODEL), "win_rate_coverage"].min()
    assert worst < 0.7
    assert fair.loc[fair["left_out"].ne(EACH_MODEL), "win_rate_coverage"].min() >= 0.8


def test_without_votes_there_is_no_row_and_few_models_have_whole_intervals() -> None:
    battles, question, human = world(5)
    unvoted = coded(battles.model_a, battles.model_b, np.full(human.size, np.nan), human)
    empty = covered(unvoted, question)
    assert empty.empty
    assert list(empty.columns) == list(WinRateCoverage._fields)
    assert one(covered(battles, question), "difference")["mean_width"] == 1  # 7 others: 9 needed


def test_a_judge_at_chance_has_no_published_row_and_keeps_its_difference() -> None:
    battles, question, human = world(6)
    wrong = coded(battles.model_a, battles.model_b, human, 1 - human)
    table = covered(wrong, question)
    assert one(table, "mean-outcome")["n_models"] == 0
    assert one(table, "mean-outcome")["n_without"] == 8
    assert np.isnan(one(table, "binary")["win_rate_coverage"])
    assert one(table, "difference")["n_models"] == 8


# ------------------------------------------------------------------ real votes


@pytest.fixture(scope="module")
def real(data_dir: Path) -> dict[str, pd.DataFrame]:
    files = sorted((data_dir / "real").glob("*.csv"))
    if len(files) < 8:
        pytest.skip(f"no real battles in {data_dir / 'real'}")
    return {path.stem: covered(*_read(path)) for path in files}


def _read(path: Path) -> tuple[CodedBattles, np.ndarray]:
    table = pd.read_csv(path)
    battles = code_battles(
        table["model_a"].to_numpy(),
        table["model_b"].to_numpy(),
        human_outcome=table["human_outcome"].to_numpy(),
        judge_outcome=(np.sign(table["score_difference"]) / 2 + 0.5).to_numpy(),
        score_difference=table["score_difference"].to_numpy(),
    )
    return battles, table["question_id"].to_numpy(str)


def test_the_difference_is_nearer_to_people_than_naive_and_published_rates(real) -> None:
    errors = pd.DataFrame(
        {
            name: {
                estimator: one(table, estimator)["mean_absolute_error"]
                for estimator in ("naive", "difference", "mean-outcome")
            }
            for name, table in real.items()
        }
    ).T
    # Counted battle by battle by a separate script: .067 on average over the eight, naive .082.
    assert errors["difference"].mean() == pytest.approx(0.067, abs=0.001)
    assert errors["naive"].mean() == pytest.approx(0.082, abs=0.001)
    assert (errors["difference"] < 1.12 * errors["naive"]).all()
    assert (errors["mean-outcome"] > 2 * errors["naive"]).all()


def test_the_difference_covers_over_real_models_and_published_corrections_do_not(real) -> None:
    for table in real.values():
        row, published = one(table, "difference"), one(table, "mean-outcome")
        assert row["win_rate_coverage"] >= 0.9
        assert published["win_rate_coverage"] < 0.4
    for name in ("llmfao_gpt4_majority", "llmfao_gpt4_votes"):  # thirds of 59 models
        thirds = real[name][real[name]["left_out"].ne(EACH_MODEL)]
        assert (thirds["mean_width"] < 0.5).all()
        assert (thirds["win_rate_coverage"] > 0.9 - 3 * math.sqrt(0.9 * 0.1 / 19)).all()
