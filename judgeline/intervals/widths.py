"""What more battles would buy: interval widths to expect before any of them is judged."""

import math
from statistics import NormalDist

from judgeline.elo.scale import ELO_PER_LOGIT


def expected_half_width(half_width: float, n_battles: float, n_planned: float) -> float:
    """Return the half-width to expect of an interval after more battles.

    Standard errors shrink with the square root of the number of battles; the conformal
    threshold, in standard errors, is taken to stay. It grows where judge and humans differ by
    more than sampling: then this is the best to hope for.

    Parameters
    ----------
    half_width : float
        Half-width now, in Elo points; infinite stays infinite.
    n_battles, n_planned : float
        Battles behind it now and then.

    Returns
    -------
    float
        Half-width in Elo points.

    Raises
    ------
    ValueError
        If a number of battles is not positive.
    """
    for name, value in (("n_battles", n_battles), ("n_planned", n_planned)):
        if not value > 0:
            raise ValueError(f"{name} is {value}; it must be positive")
    return half_width * math.sqrt(n_battles / n_planned)


def sampling_half_width(n_battles: float, *, miscoverage: float) -> float:
    """Return the half-width that the sampling of battles alone leaves to one rating.

    Of decisive outcomes against anchors of equal strength, where the Bradley-Terry information
    per battle is largest, 1/4 per squared logit; a normal interval. Judges that err, unequal
    opponents and few calibration models widen it; soft outcomes, which vary less than decisive
    ones, narrow it.

    Parameters
    ----------
    n_battles : float
        Battles of the model.
    miscoverage : float
        Tolerated share of misses, in (0, 1).

    Returns
    -------
    float
        Half-width in Elo points.

    Raises
    ------
    ValueError
        If `n_battles` is not positive or `miscoverage` not in (0, 1).

    References
    ----------
    R. A. Bradley and M. E. Terry (1952), "Rank Analysis of Incomplete Block Designs: I. The
    Method of Paired Comparisons", Biometrika 39(3/4).
    """
    if not n_battles > 0:
        raise ValueError(f"n_battles is {n_battles}; it must be positive")
    if not 0 < miscoverage < 1:
        raise ValueError(f"miscoverage must lie strictly between 0 and 1, got {miscoverage}")
    std_error = ELO_PER_LOGIT * 2 / math.sqrt(n_battles)
    return NormalDist().inv_cdf(1 - miscoverage / 2) * std_error
