"""The judge gate: criteria with limits, and the measurements of a judge against them."""

import math
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Floats, alike_floats
from judgeline.reliability.agreement import (
    STRONG_JUDGE,
    icc_average,
    mean_pairwise_kappa,
    single_run_reliability,
)

AT_LEAST, AT_MOST = "at least", "at most"


class Criterion(NamedTuple):
    """Where a criterion's limit lies by default, and on which side of it a judge passes."""

    direction: str
    threshold: float


CRITERIA: dict[str, Criterion] = {
    # Strong judges, whose ratings may be pooled: "Robust LLM-based Scoring via Reference-Anchored
    # Elo Estimation" (2025). An average of k runs flatters a judge that is asked once.
    "icc_average": Criterion(AT_LEAST, STRONG_JUDGE),
    # "Poor" below it: T. K. Koo and M. Y. Li (2016), J. Chiropractic Medicine 15(2). More than
    # half of what tells one battle's score from another's is then chance.
    "single_run_reliability": Criterion(AT_LEAST, 0.5),
    # No better than "slight" up to it: J. R. Landis and G. G. Koch (1977), Biometrics 33(1).
    "kappa": Criterion(AT_LEAST, 0.2),
    # "Moderate" from it on: Landis and Koch (1977).
    "run_kappa": Criterion(AT_LEAST, 0.4),
    # Ours: a tenth of the battles missing, hardly at random, moves ratings as far as a judge does.
    "parse_rate": Criterion(AT_LEAST, 0.9),
    # GPT-4 in L. Zheng et al. (2023), "Judging LLM-as-a-Judge", arXiv:2306.05685, table 2, kept
    # its verdict in 65 % of swapped pairs; a coin in half of the decisive ones.
    "position_flip_rate": Criterion(AT_MOST, 0.35),
    # Ours, in rubric points: of the order of the differences that decide battles.
    "position_effect": Criterion(AT_MOST, 1.0),
    # The uncorrected 70B judge of Y. Wang et al. (2025), TrustJudge, arXiv:2509.21117, has 0.23.
    "conflict_ratio": Criterion(AT_MOST, 0.25),
    # Ours, of triples: a coin without ties breaks a quarter of them.
    "non_transitivity_ratio": Criterion(AT_MOST, 0.1),
}
"""Criteria by name, in the order of every table."""

WITHHOLD: tuple[str, ...] = ("single_run_reliability", "kappa", "parse_rate")
"""Criteria whose failure withholds ratings by default; the others inform."""


class Measurement(NamedTuple):
    """A criterion's value in its own unit, NaN where it could not be measured; why, or on what."""

    value: float
    note: str


class Gate(NamedTuple):
    """One row per criterion, in their order.

    `threshold` is NaN where none is set. `passed` is 1 or 0, and NaN for a criterion without a
    measurement or a threshold. `note` says why there is none, or what the value rests on.
    """

    criterion: NDArray[np.str_]
    value: Floats
    threshold: Floats
    direction: NDArray[np.str_]
    passed: Floats
    withholds: NDArray[np.bool_]
    note: NDArray[np.str_]


def hold_to(
    measured: Mapping[str, Measurement],
    *,
    thresholds: Mapping[str, float | None] | None = None,
    withhold: Collection[str] = WITHHOLD,
) -> Gate:
    """Return how a judge stands against each criterion; a value on its threshold passes.

    An absent criterion was not measured. `thresholds` take the place of the default ones, None for
    no limit; a failed criterion of `withhold` withholds ratings. A name that is no criterion, or a
    threshold that is not finite, is a `ValueError`.
    """
    limits = {name: criterion.threshold for name, criterion in CRITERIA.items()}
    limits |= {name: math.nan if t is None else t for name, t in (thresholds or {}).items()}
    for name in (*measured, *limits, *withhold):
        if name not in CRITERIA:
            raise ValueError(f"{name!r} is no criterion; the criteria are {', '.join(CRITERIA)}")
        if math.isinf(limits[name]):
            raise ValueError(f"the threshold of {name} is infinite; set it to null for no limit")
    rows = []
    for name, (direction, _) in CRITERIA.items():
        value, note = measured.get(name, Measurement(math.nan, "not measured"))
        beyond = value - limits[name] if direction == AT_LEAST else limits[name] - value
        passed = math.nan if math.isnan(beyond) else float(beyond >= 0)
        rows.append((name, value, limits[name], direction, passed, name in withhold, note))
    return Gate(*(np.array(column) for column in zip(*rows, strict=True)))


def failures(gate: Gate, *, withholding: bool) -> str:
    """Return the criteria that a judge fails, such as ``kappa 0.05 < 0.20``; empty for none.

    Either those that withhold ratings are listed, or those that only inform.
    """
    failed = (gate.passed == 0) & (gate.withholds == withholding)
    return ", ".join(_words(gate, row) for row in np.flatnonzero(failed))


def _words(gate: Gate, row: int) -> str:
    value, threshold = float(gate.value[row]), float(gate.threshold[row])
    sign = "<" if gate.direction[row] == AT_LEAST else ">"
    digits = 2  # more where two would make a failure look like a pass
    while digits < 6 and f"{value:.{digits}f}" == f"{threshold:.{digits}f}":
        digits += 1
    return f"{gate.criterion[row]} {value:.{digits}f} {sign} {threshold:.{digits}f}"


def panel_measurements(score_difference: ArrayLike, outcome: ArrayLike) -> dict[str, Measurement]:
    """Return ``icc_average``, ``single_run_reliability`` and ``run_kappa`` of repeated runs.

    Score differences, in rubric points, and outcomes are of one shape (battles, runs). Battles
    without a score in every run are left out, and counted in the note. A measurement that the runs
    do not determine is NaN, with the reason.
    """
    scores, outcomes = alike_floats(2, score_difference=score_difference, outcome=outcome)
    whole = np.isfinite(scores).all(axis=1) & np.isfinite(outcomes).all(axis=1)
    n_runs = scores.shape[1]
    basis = f"{int(whole.sum())} of {len(scores)} battles in {n_runs} runs"
    scores, outcomes = scores[whole], outcomes[whole]
    figures: dict[str, Callable[[], float]] = {
        "icc_average": lambda: icc_average(scores),
        "single_run_reliability": lambda: single_run_reliability(icc_average(scores), n_runs),
        "run_kappa": lambda: mean_pairwise_kappa(outcomes.T),
    }
    if len(scores) < 2 or n_runs < 2:
        return dict.fromkeys(figures, Measurement(math.nan, f"too few scores: {basis}"))
    measured = {}
    for name, figure in figures.items():
        try:
            measured[name] = Measurement(figure(), basis)
        except ValueError as reason:
            measured[name] = Measurement(math.nan, str(reason))
    return measured
