"""A hand-made example of a judge's tables, and the tests of what the report asks of them."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from judgeline.report import JudgeTables
from judgeline.report.evidence import Evidence, Reading

SCRIPT = "<script>alert(1)</script>"
HUMAN_RATINGS = {
    "aurora-large-2": 1672.0,
    "borealis-70b-instruct": 1641.0,
    "cirrus-pro": 1612.0,
    SCRIPT: 1588.0,
    "delta-9b": 1560.0,
    "ember-mini $x^2$": 1537.0,
    "fjord-13b": 1511.0,
    "glacier-chat": 1490.0,
    "harbour-7b": 1463.0,
    "isthmus-8x7b-instruct-v0.3-2024-11-quantised": 1438.0,
    "juniper-3b": 1402.0,
    "kelp-1.5b": 1366.0,
    "lagoon-tiny": 1301.0,
    "新模型-nova": math.nan,  # nobody voted on it
}
ERRORS = (9, -14, 6, 21, -8, 3, -17, 12, -5, 24, -11, 8, -19, 0)  # soft residuals, Elo points


def _heldout(spread: float) -> pd.DataFrame:
    rows = []
    for (model, human), error in zip(HUMAN_RATINGS.items(), ERRORS, strict=True):
        truth = 1520.0 if math.isnan(human) else human
        ratings = {
            "human": human,
            "hard": 1500 + 1.6 * (truth - 1500) + error,
            "soft": 1500 + spread * (truth - 1500) + error,
            "auto": 1500 + spread * (truth - 1500) + error,
        }
        rows += [
            {
                "model": model,
                "method": method,
                "rating": rating,
                "human_rating": human,
                "residual": rating - human,
                "std_error": 14.0,
            }
            for method, rating in ratings.items()
            if not (method == "human" and math.isnan(human))
        ]
    return pd.DataFrame(rows)


def _leaderboard(heldout: pd.DataFrame, half_width: float) -> pd.DataFrame:
    board = heldout[heldout["method"] == "auto"].sort_values("rating", ascending=False)
    board = board.reset_index(drop=True)
    no_votes = board["human_rating"].isna()
    return board.assign(
        rank=np.arange(1, len(board) + 1),
        lower=board["rating"] - half_width,
        upper=board["rating"] + half_width,
        best_rank=np.maximum(np.arange(len(board)) - 2, 1),
        worst_rank=np.minimum(np.arange(len(board)) + 3, len(board)),
        basis=np.where(no_votes, "gap: 13 others", "gap: 12 others"),
        n_battles=143,
        n_votes=np.where(no_votes, 0, 143),
        flags=np.where(
            no_votes, "no-votes", np.where(board.index == 0, "judge-always-prefers", "")
        ),
    )


def _battles(beta: float, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    score = np.rint(12 * rng.normal(0, 1.4, 800)) / 12
    won = rng.random(800) < 1 / (1 + np.exp(-beta * score))
    outcome = np.where(rng.random(800) < 0.15, 0.5, won.astype(float))
    outcome[::20] = np.nan
    return pd.DataFrame(
        {
            "battle_id": [f"b{row}" for row in range(800)],
            "human_outcome": outcome,
            "score_difference": score,
        }
    )


def _conformal(threshold: float, note: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "method": ["hard", "soft", "auto"],
            "miscoverage": 0.1,
            "threshold": [4.86, threshold, threshold],
            "excess_sd": 11.5,
            "n_models": 13,
            "n_splits": 5,
            "n_calibration": 6,
            "n_test": 7,
            "split_threshold": [4.1, 3.0, 3.0],
            "coverage": [0.857, 0.886, 1.0],
            "median_width": [306.4, 2 * 14 * threshold, 2 * 14 * threshold],
            "width_min": [131.8, 62.7, 62.7],
            "width_max": [465.0, 122.8, 122.8],
            "n_structured": 26,
            "structured_coverage": 0.8,
            "structured": "above the upper third 2 of 5; fewer battles 6 of 6",
            "structured_below": ["", *["above the upper third 2 of 5"] * 2],
            "note": ["", note, note],
        }
    )


def _diagnostics() -> pd.DataFrame:
    rows = [
        ("kappa", "", 0.412, "kappa", 760),
        ("surrogacy_gamma", "", 0.5, "share of the model gap", 760),
        ("surrogacy_gamma_std_error", "", 0.16, "share", 760),
        ("mean-absolute-score-difference", "", 1.131, "rubric points", 800),
        ("position-bias", "", 0.538, "probability", 1600),
        ("residual-by-quartile", "lowest", 8.2, "Elo", 3),
        ("residual-by-quartile", "highest", -6.1, "Elo", 4),
    ]
    return pd.DataFrame(rows, columns=["diagnostic", "level", "value", "unit", "n"])


def _checks() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "name": ["parse-rate", "finite-thresholds"],
            "passed": [False, True],
            "observed": ["91.2 % of 1600 verdicts", "4.2 standard errors"],
            "remedy": ["Raise the judge's token limit and annotate the 141 failures again.", ""],
        }
    )


def _summary(soft_error: float) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "method": ["hard", "soft", "auto"],
            "n_models": 13,
            "mae": [57.6, soft_error, soft_error],
            "spearman": [0.960, 0.969, 0.969],
            "kendall": [0.868, 0.912, 0.912],
            "mean_beta": [math.nan, 0.655, math.nan],
            "bias": [2.2, -0.4, -0.4],
        }
    )


HOSTILE = (
    "</pre></dd></script><script>document.title='stolen'</script>",
    "<img src=x onerror=\"document.title='stolen'\"><svg onload=alert(1)>",
    "[link](javascript:alert(1)) ![i](x.png) **bold** `code` {{ 7 * 7 }}",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202etxet desrever\u202c \U000e0041 \x00\x9b",
    "x" * 3_000,
)
"""Texts that want to be more than text."""


def example_battles(models: int = 3) -> list[Evidence]:
    """Two battles each way of some models, with texts that want to be more."""
    return [
        Evidence(
            model=model,
            opponent=SCRIPT,
            battle_id=f"battle-{place}-{influence}",
            influence=influence,
            outcome=0.9,
            expected=0.4,
            human_outcome=None if place else 1.0,
            language="en",
            instruction=HOSTILE[place % 5],
            completion=HOSTILE[(place + 1) % 5],
            opponent_completion=HOSTILE[(place + 2) % 5],
            readings=(
                Reading("AB", 0, "ok", model, 2.5, HOSTILE[(place + 3) % 5], "a" * 64, 9, 9),
                Reading("BA", 0, "parse_error", SCRIPT, None, HOSTILE[4], "b" * 64, 9, 9),
            ),
        )
        for place, model in enumerate(list(HUMAN_RATINGS)[:models])
        for influence in (1.5, 1.25, -1.75, -0.5)
    ]


def example_judge(
    slug: str = "careful",
    name: str = "Careful judge",
    *,
    spread: float = 0.97,
    soft_error: float = 19.5,
    threshold: float = 3.2,
    note: str = "",
    beta: float = 0.66,
) -> JudgeTables:
    heldout = _heldout(spread)
    models = sorted(HUMAN_RATINGS)
    status = np.where(np.arange(14) == 3, "separable", "ok") if slug == "noisy" else "ok"
    folds = pd.DataFrame(
        {
            "held_out_model": models,
            "beta": beta + 0.01 * np.sin(np.arange(14)),
            "std_error": 0.045,
            "n_battles": 540,
            "status": status,
        }
    )
    folds.loc[folds["status"] != "ok", ["beta", "std_error"]] = math.nan
    return JudgeTables(
        judge=slug,
        display_name=name,
        leaderboard=_leaderboard(heldout, 14.0 * threshold),
        heldout_ratings=heldout,
        beta_folds=folds,
        conformal_calibration=_conformal(threshold, note),
        summary=_summary(soft_error),
        judge_diagnostics=_diagnostics(),
        scored_battles=_battles(beta, seed=len(slug)),
        checks=_checks() if slug == "careful" else None,
        battles=example_battles() if slug == "careful" else [],
        origin={"prompt version": "1", "judge revision": SCRIPT},
        runs=pd.DataFrame(
            {
                "asset": ["verdicts"],
                "made_at": ["2026-01-01T00:00:00+00:00"],
                "run_id": ["0d4f"],
                "code_version": ["1"],
            }
        ),
    )


TOO_FEW = "95 % coverage needs at least 19 models to calibrate, there are 13"


def example_judges() -> list[JudgeTables]:
    noisy = example_judge(
        "noisy",
        "Noisy judge <b>",
        spread=0.4,
        soft_error=61.3,
        threshold=math.inf,
        note=TOO_FEW,
        beta=0.31,
    )
    return [example_judge(), noisy]


def example_comparison() -> pd.DataFrame:
    rows = [
        ("careful", "hard", 57.6, math.nan, 4.86, 0.857, 306.4),
        ("careful", "soft", 19.5, 0.655, 3.2, 0.886, 89.6),
        ("noisy", "hard", 57.6, math.nan, 4.86, 0.857, 306.4),
        ("noisy", "soft", 61.3, 0.31, math.inf, math.nan, math.inf),
    ]
    columns = ["judge", "method", "mae", "mean_beta", "threshold", "coverage", "median_width"]
    return pd.DataFrame(rows, columns=columns).assign(
        n_models=13,
        spearman=0.969,
        kendall=0.912,
        kappa=[0.41, 0.41, 0.2, 0.2],
        n_verdicts=1600,
        n_failed=[141, 141, 0, 0],
        n_scored=800,
    )


def test_a_missing_column_is_named_with_its_table_and_judge() -> None:
    tables = example_judge()
    with pytest.raises(ValueError, match="leaderboard of judge 'careful' lacks upper, flags"):
        replace(tables, leaderboard=tables.leaderboard.drop(columns=["upper", "flags"]))


def test_an_empty_leaderboard_is_refused() -> None:
    tables = example_judge()
    with pytest.raises(ValueError, match="'careful' is empty"):
        replace(tables, leaderboard=tables.leaderboard.iloc[:0])


def test_the_ranking_method_is_the_leaderboards_own() -> None:
    assert example_judge().ranking_method == "auto"
