"""Pass rates of single answers in people's eyes, from a judge's verdicts and some labels."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.winrate.corrections import adjusted_mean
from judgeline.winrate.outcomes import MIN_OWN_VOTES, NoWinRateError, normal_quantile
from judgeline.winrate.powered import (
    HeldOutModels,
    PoweredEstimate,
    conformal_spread,
    difference_estimate,
    power_tuned_estimate,
    power_tuned_half_width,
)

Floats = NDArray[np.float64]

RATES = {
    "prediction-powered": "valid if the labelled answers are a random part of the system's",
    "difference": "valid if the judge errs on the system as on those that people labelled",
    "corrected": "valid if the judge errs alike on labelled and on other answers, among those that "
    "people pass and among those that they fail",
    "labels": "people's labels alone; valid if the labelled answers are a random part",
    "judge": "the judge's own rate: nothing is corrected",
}
"""Rows of a system in their order, and the assumption of each."""
MANY_LABELS = 30
"""Labels of a system, nearly all alike, that stand for themselves."""

RATE_RULE = (
    f"A system with at least {MIN_OWN_VOTES} labels passed and {MIN_OWN_VOTES} failed shows "
    f"'prediction-powered', one with {MANY_LABELS} labels nearly all alike 'labels', every other "
    "one 'difference', from labels of other systems."
)


_NOTHING = (np.nan, np.nan, np.nan)
_TOO_FEW = (
    "{} other labelled systems calibrate the interval; {} are needed, until then it is [0, 1]"
)
_POOLED_LABELS = "by the labels of all systems: real judges do not err alike on all of them"

_WHY_NOT = {
    "chance": "the judge passes no more of what people pass than of what they fail: no correction",
    "all-labelled": "every answer has a label: there is none to correct",
    "no-labels": "no label passed, or none failed: label more answers",
}

Found = tuple[tuple[float, float, float], str, str]
"""Rate with its interval, status and note."""


class PassRates(NamedTuple):
    """One row per system and estimator, shares of answers; NaN with a `status` not ok.

    `headline` marks the row to show, `basis` states its assumption. `n_answers` have a verdict,
    `n_labels` of them a label too. `sensitivity` and `specificity` are the judge's, on the labels
    that the row is corrected by. `note` says what is missing.
    """

    system: NDArray[np.str_]
    estimator: NDArray[np.str_]
    headline: NDArray[np.bool_]
    rate: Floats
    lower: Floats
    upper: Floats
    n_answers: NDArray[np.int64]
    n_labels: NDArray[np.int64]
    sensitivity: Floats
    specificity: Floats
    basis: NDArray[np.str_]
    status: NDArray[np.str_]
    note: NDArray[np.str_]


def pass_rates(
    system: ArrayLike, verdict: ArrayLike, label: ArrayLike, *, miscoverage: float = 0.1
) -> PassRates:
    """Return the share of answers of each system that people would pass.

    Parameters
    ----------
    system : array_like of str, shape (n,)
        System that gave each answer.
    verdict : array_like, shape (n,)
        The judge's: 1 passed, 0 failed.
    label : array_like, shape (n,)
        A person's: 1 passed, 0 failed, NaN where nobody looked.
    miscoverage : float
        Share of misses that intervals may have, in (0, 1).

    Returns
    -------
    PassRates
        Rows by system in the order of their names, then in the order of `RATES`.

    Raises
    ------
    ValueError
        If lengths differ, there is no answer, or a value is another one.

    References
    ----------
    A. N. Angelopoulos, J. C. Duchi and T. Zrnic (2023), "PPI++", arXiv:2311.01453; C. Lee et al.
    (2025), "How to Correctly Report LLM-as-a-Judge Evaluations", arXiv:2511.21140; E. B. Wilson
    (1927), JASA 22(158), for intervals of plain shares.
    """
    names = np.asarray(system, dtype=str)
    judged, labelled = np.asarray(verdict, dtype=float), np.asarray(label, dtype=float)
    if not names.size:
        raise ValueError("there are no answers: each needs a system, a verdict and perhaps a label")
    if not names.shape == judged.shape == labelled.shape:
        shapes = f"{names.shape}, {judged.shape} and {labelled.shape}"
        raise ValueError(f"system, verdict and label have shapes {shapes}; expected one alike")
    for column, values, missing in (("verdict", judged, False), ("label", labelled, True)):
        wrong = ~np.isin(values, (0, 1)) & ~(missing & np.isnan(values))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(f"{column} is {values[row]:g} in row {row}; expected 1 or 0")
    systems, code = np.unique(names, return_inverse=True)
    known = ~np.isnan(labelled)
    tables = np.array(
        [_table(judged[own & known], labelled[own & known]) for own in _each(code, systems.size)]
    )
    rest = np.array([_counts(judged[own & ~known]) for own in _each(code, systems.size)])
    transported = _by_difference(tables, rest, miscoverage)
    rows = []
    for place, name in enumerate(systems.tolist()):
        rows += _of_system(name, place, tables, rest[place], transported[place], miscoverage)
    return PassRates(*(np.array(column) for column in zip(*rows, strict=True)))


def _each(code: NDArray[np.intp], size: int) -> Iterator[NDArray[np.bool_]]:
    return (code == place for place in range(size))


def _by_difference(
    tables: NDArray[np.int64], rest: NDArray[np.int64], miscoverage: float
) -> list[Found]:
    """Return every system's rate by the labels of others, conformal over the labelled systems."""
    judged, labels = tables.sum(axis=2) + rest, tables.sum(axis=1)
    n_labels = labels.sum(axis=1)
    others = tables.sum(axis=0) - tables
    fits = [
        difference_estimate(own[None], of_others[None])
        if of_others.any()
        else PoweredEstimate(np.nan, np.nan)
        for own, of_others in zip(judged, others, strict=True)
    ]
    human = np.where(n_labels > 0, labels[:, 0] / np.maximum(n_labels, 1), np.nan)
    rate, variance = np.array(fits).T
    held_out = HeldOutModels(rate, variance, human, n_labels)
    calibrates = held_out.calibrating & ~np.eye(len(tables), dtype=bool)
    reach = conformal_spread(held_out, calibrates, miscoverage=miscoverage).half_width
    needed = math.ceil(1 / miscoverage - 1 - 1e-9)
    return [
        (_clipped(one, one - width, one + width), "ok", "" if np.isfinite(width) else few)
        if np.isfinite(one)
        else (_NOTHING, "no-labels", "nobody labelled an answer of another system")
        for one, width, few in zip(
            rate.tolist(),
            reach.tolist(),
            [_TOO_FEW.format(n, needed) for n in calibrates.sum(axis=1).tolist()],
            strict=True,
        )
    ]


def _counts(passed: Floats) -> NDArray[np.int64]:
    """Return answers that passed, none that tied, and those that failed, (3,)."""
    return np.array([passed.sum(), 0, (1 - passed).sum()], dtype=np.int64)


def _table(judged: Floats, labelled: Floats) -> NDArray[np.int64]:
    """Return labelled answers by verdict, then by label, (3, 3), with ties of neither."""
    passed, failed = _counts(labelled[judged == 1]), _counts(labelled[judged == 0])
    return np.array([passed, np.zeros(3, dtype=np.int64), failed])


def _of_system(
    name: str,
    place: int,
    tables: NDArray[np.int64],
    rest: NDArray[np.int64],
    transported: Found,
    miscoverage: float,
) -> list[tuple[object, ...]]:
    own, everybody = tables[place], tables.sum(axis=0)
    by_label = own.sum(axis=0)
    n_labels, judged = int(by_label.sum()), own.sum(axis=1) + rest
    enough = bool(min(by_label[0], by_label[2]) >= MIN_OWN_VOTES)
    table = own if enough else everybody
    sums = np.maximum(table.sum(axis=0), 1)
    skill = table[0, 0] / sums[0], table[2, 2] / sums[2]
    found: dict[str, Found] = {
        "difference": transported,
        "judge": (_wilson(int(judged[0]), int(judged.sum()), miscoverage), "ok", ""),
        "labels": (_wilson(int(by_label[0]), n_labels, miscoverage), "ok", ""),
    }
    if not n_labels:
        found["labels"] = _NOTHING, "no-labels", "nobody labelled an answer of this system"
    few = f"fewer than {MIN_OWN_VOTES} labels passed or failed: label more answers of this system"
    found["prediction-powered"] = _NOTHING, "few-labels", few
    if enough:
        estimate = power_tuned_estimate(own, rest)
        reach = power_tuned_half_width(estimate.variance, n_labels, miscoverage=miscoverage)
        centre = estimate.win_rate
        found["prediction-powered"] = _clipped(centre, centre - reach, centre + reach), "ok", ""
    try:
        fixed = adjusted_mean(rest[None], table[None], miscoverage=miscoverage)
        corrected = float(fixed.win_rate), float(fixed.lower), float(fixed.upper)
        found["corrected"] = corrected, "ok", "" if enough else _POOLED_LABELS
    except NoWinRateError as error:
        status = "chance" if error.status == "chance" else "no-labels"
        if status == "no-labels" and not rest.any():
            status = "all-labelled"
        found["corrected"] = _NOTHING, status, _WHY_NOT[status]
    headline = "prediction-powered" if enough else "difference"
    if not enough and n_labels >= MANY_LABELS:
        headline = "labels"
    return [
        (
            name,
            estimator,
            estimator == headline and found[estimator][1] == "ok",
            *found[estimator][0],
            int(judged.sum()),
            n_labels,
            *(skill if estimator == "corrected" and table.any() else (np.nan, np.nan)),
            basis,
            *found[estimator][1:],
        )
        for estimator, basis in RATES.items()
    ]


def _wilson(passed: int, n: int, miscoverage: float) -> tuple[float, float, float]:
    """Return a plain share and its interval."""
    if not n:
        return np.nan, np.nan, np.nan
    square = normal_quantile(miscoverage) ** 2
    share = passed / n
    centre = (share + square / (2 * n)) / (1 + square / n)
    reach = np.sqrt(square * (share * (1 - share) / n + square / (4 * n * n))) / (1 + square / n)
    return _clipped(share, centre - reach, centre + reach)


def _clipped(*values: float) -> tuple[float, float, float]:
    rate, lower, upper = (min(max(float(value), 0.0), 1.0) for value in values)
    return rate, lower, upper
