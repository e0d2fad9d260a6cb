"""What a judge got right, counted: test battles, calibration battles, and the shares they make.

A battle is won (1) or lost (0) by the model of interest, as the judge says and as a human says.
Test battles have the judge's word alone; calibration battles have both. What is made of the
counts, a corrected win rate, belongs in `judgeline.winrate.adjusted_means`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]


def bernoulli_variance(share: Floats) -> Floats:
    """Return the variance of one draw that is 1 with probability `share`, else 0."""
    return share * (1 - share)


class NoWinRateError(ValueError):
    """The battles allow no win rate: `status` is a word for tables, the message the remedy."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


class JudgeCounts(NamedTuple):
    """Battles behind one win rate, or behind many: six whole numbers, or arrays of one shape.

    `n_test` battles have no human outcome; the judge calls `n_test_won` of them won. Of the
    `n_lost` that humans call lost the judge calls `n_lost_right` lost; of the `n_won` that
    humans call won it calls `n_won_right` won.
    """

    n_test: ArrayLike
    n_test_won: ArrayLike
    n_lost: ArrayLike
    n_lost_right: ArrayLike
    n_won: ArrayLike
    n_won_right: ArrayLike


class JudgeRates(NamedTuple):
    """What `JudgeCounts` says in shares, each with the number of battles behind it.

    `share` of test battles that the judge calls won (of `n_test`), `specificity` (of `n_lost`),
    `sensitivity` (of `n_won`).
    """

    share: Floats
    specificity: Floats
    sensitivity: Floats
    n_test: Floats
    n_lost: Floats
    n_won: Floats

    @property
    def skill(self) -> Floats:
        """Specificity + sensitivity - 1 (Youden's index): 1 for a perfect judge, 0 at chance."""
        return self.specificity + self.sensitivity - 1

    @property
    def win_rate(self) -> Floats:
        """The corrected win rate before it is clipped to [0, 1]."""
        return (self.share + self.specificity - 1) / self.skill

    @property
    def std_error(self) -> Floats:
        """Delta-method standard error of `win_rate`."""
        win_rate = self.win_rate
        variance = (
            bernoulli_variance(self.share) / self.n_test
            + (1 - win_rate) ** 2 * bernoulli_variance(self.specificity) / self.n_lost
            + win_rate**2 * bernoulli_variance(self.sensitivity) / self.n_won
        )
        return np.sqrt(variance) / self.skill


def judge_rates(counts: JudgeCounts) -> JudgeRates:
    """Return the shares that the counts stand for, of a judge better than chance.

    Parameters
    ----------
    counts : JudgeCounts
        Of any shape.

    Returns
    -------
    JudgeRates
        Of the same shape.

    Raises
    ------
    NoWinRateError
        If there is no test battle, a class is absent from calibration, or the judge is no
        better than chance.
    ValueError
        If the counts contradict each other.
    """
    checked = _checked(counts)
    for name, (status, remedy) in _REMEDY.items():
        present = getattr(checked, name) > 0
        if not np.all(present):
            raise NoWinRateError(status, f"{name} is 0{_where(present)}; {remedy}")
    rates = JudgeRates(
        checked.n_test_won / checked.n_test,
        checked.n_lost_right / checked.n_lost,
        checked.n_won_right / checked.n_won,
        checked.n_test,
        checked.n_lost,
        checked.n_won,
    )
    _require_skill(rates, "")
    return rates


def smoothed_rates(counts: JudgeCounts, *, miscoverage: float) -> JudgeRates:
    """Return the shares drawn towards one half that the interval is made of.

    Specificity and sensitivity gain one battle on either side, the share of test battles half
    the squared normal quantile; the numbers of battles grow accordingly.

    Parameters
    ----------
    counts : JudgeCounts
        Of any shape.
    miscoverage : float
        Tolerated share of misses, in (0, 1).

    Returns
    -------
    JudgeRates
        Of the same shape.

    Raises
    ------
    ValueError
        As `judge_rates`; also if the judge is better than chance only before smoothing.
    """
    quantile = normal_quantile(miscoverage)
    judge_rates(counts)
    rates = _smoothed(_checked(counts), quantile)
    _require_skill(rates, " after smoothing by one battle a side")
    return rates


def normal_quantile(miscoverage: float) -> float:
    """Return the standard normal quantile of a two-sided interval.

    Parameters
    ----------
    miscoverage : float
        Tolerated share of misses, in (0, 1).

    Returns
    -------
    float
        Standard deviations; 1.96 at 0.05.

    Raises
    ------
    ValueError
        If `miscoverage` is not strictly between 0 and 1.
    """
    if not 0 < miscoverage < 1:
        raise ValueError(f"miscoverage must lie strictly between 0 and 1, got {miscoverage}")
    return float(-ndtri(miscoverage / 2))


_REMEDY = {
    "n_test": ("all-ties", "a win rate needs test battles that the judge does not tie: judge more"),
    "n_lost": ("class-absent", "specificity needs battles that humans call lost: label some"),
    "n_won": ("class-absent", "sensitivity needs battles that humans call won: label some"),
}


class _Checked(NamedTuple):
    n_test: Floats
    n_test_won: Floats
    n_lost: Floats
    n_lost_right: Floats
    n_won: Floats
    n_won_right: Floats


def _checked(counts: JudgeCounts) -> _Checked:
    arrays = [np.asarray(values, dtype=float) for values in counts]
    shapes = [array.shape for array in arrays]
    if len(set(shapes)) > 1:
        raise ValueError(f"counts must share one shape, got {shapes}")
    for name, values in zip(JudgeCounts._fields, arrays, strict=True):
        whole = np.isfinite(values) & (values >= 0) & (values == np.floor(values))
        _require(whole, f"{name} holds a count that is no whole number from 0{{where}}")
    checked = _Checked(*arrays)
    for part, total in (
        ("n_test_won", "n_test"),
        ("n_lost_right", "n_lost"),
        ("n_won_right", "n_won"),
    ):
        fits = getattr(checked, part) <= getattr(checked, total)
        _require(fits, f"{part} exceeds {total}{{where}}")
    return checked


def _smoothed(checked: _Checked, quantile: float) -> JudgeRates:
    n_test = checked.n_test + quantile**2
    return JudgeRates(
        (checked.n_test_won + quantile**2 / 2) / np.where(n_test > 0, n_test, np.nan),
        (checked.n_lost_right + 1) / (checked.n_lost + 2),
        (checked.n_won_right + 1) / (checked.n_won + 2),
        n_test,
        checked.n_lost + 2,
        checked.n_won + 2,
    )


def _require_skill(rates: JudgeRates, when: str) -> None:
    skilled = rates.skill > 0
    if not np.all(skilled):
        at = np.unravel_index(int(np.argmin(skilled)), skilled.shape)
        raise NoWinRateError(
            "chance",
            f"specificity {rates.specificity[at]:.4g} + sensitivity {rates.sensitivity[at]:.4g} is "
            f"at most 1{when}{_where(skilled)}: the judge is no better than chance, and no "
            "correction can be made; label more battles or withhold this judge",
        )


def _require(good: NDArray[np.bool_], message: str) -> None:
    if not np.all(good):
        raise ValueError(message.format(where=_where(good)))


def _where(good: NDArray[np.bool_]) -> str:
    if not good.ndim:
        return ""
    first = tuple(int(i) for i in np.argwhere(~good)[0])
    return f" at index {first} and {int((~good).sum()) - 1} more"
