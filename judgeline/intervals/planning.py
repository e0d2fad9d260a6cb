"""What narrows an interval, and by how much: calls of the judge, people's votes, more judges.

What belongs here: numbers of calls, votes and judges against half-widths. What does not: which
battles (`judgeline.sampling`), and sentences (`judgeline.planning`).
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit

from judgeline.arrays import Floats, alike_floats, require
from judgeline.elo.anchors import ENOUGH_VOTES
from judgeline.elo.ratings import HeldOutRatings
from judgeline.elo.strengths import ELO_PER_LOGIT
from judgeline.intervals.conformal import calibrating_models
from judgeline.intervals.judge_and_votes import VotedModels, judge_variance
from judgeline.rating_options import StdErrorKind

NARROWEST = 1.02
"""Times the half-width of endless calls within which further calls count as narrowing nothing."""

_CONFIDENCE = 0.9


class Worth(NamedTuple):
    """Votes on a model that a judge replaces; `at_least` is their lower 90 % limit, one-sided.

    `votes` is infinite where the judge's error cannot be told from the noise of people's votes:
    then the limit alone says something. Both are NaN below two models.
    """

    votes: float
    at_least: float


def judge_worth(residual: ArrayLike, human_std_error: ArrayLike, vote_variance: ArrayLike) -> Worth:
    """Return the number of votes that place a model as well as the judge does.

    ``median(vote_variance) / tau^2`` with ``tau^2 = mean(residual^2 - human_std_error^2)``, the
    judge's own squared error. The limit takes tau^2 at the upper end of Student's interval.

    Parameters
    ----------
    residual, human_std_error : array_like, shape (n,)
        Held-out rating less the human one, and the human one's error by independent votes, Elo
        points: judge and people read the same questions, so that these cancel in the residual.
    vote_variance : array_like, shape (n,)
        Variance of each model's rating by one vote, on a question of its own: squared Elo points.

    Raises
    ------
    ValueError
        If the columns differ in length.

    References
    ----------
    Student (1908), Biometrika 6(1), for the limit of a mean.
    """
    error, noise, vote = alike_floats(
        residual=residual, human_std_error=human_std_error, vote_variance=vote_variance
    )
    known = np.isfinite(error + noise + vote)
    squares, n = (error**2 - noise**2)[known], int(known.sum())
    if n < 2:
        return Worth(math.nan, math.nan)
    tau2 = float(squares.mean())
    reach = float(stdtrit(n - 1, _CONFIDENCE)) * float(squares.std(ddof=1)) / math.sqrt(n)
    of_one, upper = float(np.median(vote[known])), tau2 + reach
    return Worth(
        of_one / tau2 if tau2 > reach else math.inf, of_one / upper if upper > 0 else math.inf
    )


def effective_judges(residual: ArrayLike) -> float:
    """Return how many independent judges several correlated ones are worth, by residuals (J, M).

    The mean of the judges' error variances over the variance of their mean error: J for independent
    judges that err alike, 1 for judges that are all wrong in the same way. NaN below two models.
    The noise of people's votes is in all residuals alike, so that this is a lower limit.

    Source: L. Kish (1965), Survey Sampling, section 8.2, of effective sample sizes.
    """
    errors = np.asarray(residual, dtype=float)
    require(errors.ndim == 2, "the shape of residual", errors.shape, "(judges, models)")
    if errors.shape[1] < 2:
        return math.nan
    of_mean = float(np.mean(errors.mean(axis=0) ** 2))
    return float(np.mean(errors**2)) / of_mean if of_mean > 0 else math.inf


class Frontier(NamedTuple):
    """Sources of an interval's width, which predict it for other numbers of battles; Elo points.

    `judge_noise` is the standard error of the judge's rating by one battle, `excess_sd` its error
    that no battle averages out, `vote_noise` the standard error of a rating by one vote.
    `n_target_votes` stand behind the human rating that a model without votes is promised;
    `threshold` is half its interval in spreads, `reach` that of a model with votes in standard
    errors. `prior` is the judge's variance as a prior of votes, and `n_usual` the battles of the
    models that it was measured on. N votes count as ``N / design_effect``, the median design
    effect of the voted models. `worth` is that of the judge.
    """

    judge_noise: float
    excess_sd: float
    vote_noise: float
    n_target_votes: float
    threshold: float
    reach: float
    prior: float
    n_usual: float
    design_effect: float
    worth: Worth

    def half_width(self, n_battles: float, n_votes: float = 0.0) -> float:
        """Return how far an interval reaches after so many judged battles and votes of its own.

        Without votes ``threshold sqrt(judge_noise^2 / n + excess_sd^2 + vote_noise^2 / V)``; with
        votes ``reach / sqrt(1 / prior(n) + N / (D vote_noise^2))``, D the design effect. Where
        too few models calibrate the judge, its threshold is infinite: from `ENOUGH_VOTES` on votes
        count alone, as on a leaderboard.
        """
        require(n_battles > 0, "n_battles", n_battles, "above 0")
        require(n_votes >= 0, "n_votes", n_votes, "0 or more")
        noise2 = self.judge_noise**2 / n_battles
        if not n_votes:
            of_target = self.vote_noise**2 / self.n_target_votes
            return self.threshold * math.sqrt(noise2 + self.excess_sd**2 + of_target)
        if math.isinf(self.threshold) and n_votes < ENOUGH_VOTES:
            return math.inf
        by_votes = n_votes / self._of_vote()
        return self.reach / math.sqrt(self._of_judge(n_battles) + by_votes)

    def _of_vote(self) -> float:
        """Return the variance of a rating by one vote, where votes share questions."""
        return self.vote_noise**2 * self.design_effect

    def _of_judge(self, n_battles: float) -> float:
        """Return the precision that the judge adds to votes: 0 where it is not calibrated."""
        if math.isinf(self.threshold):
            return 0.0
        more = self.judge_noise**2 * (1 / n_battles - 1 / self.n_usual)  # as `JudgeVariance.of`
        return 1 / (self.prior + max(more, 0.0))

    def narrowing(self, times: float) -> float:
        """Return the factor on the width without votes when the number of battles is multiplied.

        The promise is kept of a rating on as many times the votes, as a leaderboard counts them.
        """
        noise2 = (self.judge_noise**2 + self._of_vote()) / self.n_usual
        return math.sqrt((noise2 / times + self.excess_sd**2) / (noise2 + self.excess_sd**2))

    def enough_battles(self) -> float:
        """Return the battles beyond which nothing narrows: within `NARROWEST` of endless ones."""
        rest = self.excess_sd**2 + self.vote_noise**2 / self.n_target_votes
        return _up(self.judge_noise**2 / ((NARROWEST**2 - 1) * rest)) if rest > 0 else math.inf

    def battles_for(self, half_width: float) -> float:
        """Return the fewest judged battles for a half-width without votes; infinite if none do."""
        require(0 < half_width < math.inf, "half_width", half_width, "positive, finite Elo points")
        room = (half_width / self.threshold) ** 2 - self.excess_sd**2
        room -= self.vote_noise**2 / self.n_target_votes
        return max(_up(self.judge_noise**2 / room), 1.0) if room > 0 else math.inf

    def votes_for(self, half_width: float, n_battles: float) -> float:
        """Return the fewest votes that bring a model with so many judged battles to a half-width.

        0 where the judge alone does.
        """
        if self.battles_for(half_width) <= n_battles:
            return 0.0
        lacking = (self.reach / half_width) ** 2 - self._of_judge(n_battles)
        least = ENOUGH_VOTES if math.isinf(self.threshold) else 1.0
        return max(_up(self._of_vote() * lacking), float(least))


def _up(number: float) -> float:
    return float(math.ceil(number - 1e-9)) if math.isfinite(number) else number


class Mix(NamedTuple):
    """Judged battles and votes for one model, what they cost, and the half-width they give."""

    n_battles: float
    n_votes: float
    cost: float
    half_width: float


def cheapest_mix(
    frontier: Frontier,
    half_width: float,
    *,
    battle_price: float,
    vote_price: float,
    choices: Iterable[float] = (),
) -> Mix:
    """Return the cheapest judged battles and votes for one model that reach a half-width.

    Of all numbers of battles in `choices` (by default every one that narrows anything), each with
    the fewest votes that it then takes; of mixes that cost as much, that with the fewest votes.
    Prices are of one battle (both orders) and of one vote, 0 or more.
    """
    for name, price in (("battle_price", battle_price), ("vote_price", vote_price)):
        require(0 <= price < math.inf, name, price, "0 or more")
    most = max(frontier.enough_battles(), frontier.n_usual, 1.0)
    if math.isfinite(alone := frontier.battles_for(half_width)):
        most = max(most, alone)
    tried = [*choices] or np.unique(np.geomspace(1, min(most, 1e6), 400).round()).tolist()
    mixes = []
    for n in [*tried, alone] if math.isfinite(alone) else tried:
        votes = frontier.votes_for(half_width, n)
        cost = n * battle_price + votes * vote_price
        mixes.append(Mix(n, votes, cost, frontier.half_width(n, votes)))
    return min(mixes, key=lambda mix: (mix.cost, mix.n_votes, mix.n_battles))


def interval_frontier(
    heldout: HeldOutRatings,
    method: str,
    *,
    miscoverage: float,
    std_error: StdErrorKind = "analytic",
    reach: float = math.nan,
    n_target_votes: float | None = None,
) -> Frontier:
    """Return the sources of the width of one judge's intervals, from its held-out models.

    Parameters
    ----------
    heldout : HeldOutRatings
        Ratings of all methods; the models with votes and a rating by `method` are measured on.
    method : str
        The method that ranks.
    miscoverage : float
        Tolerated share of misses, in (0, 1).
    std_error : {"analytic", "bootstrap"}
        Which standard error of the judge's ratings counts.
    reach : float
        Half-width of a model with votes in standard errors, such as a board's median; never below
        the normal quantile, which stands where none is known.
    n_target_votes : float, optional
        Votes behind the human rating that is aimed at; by default the models' median.

    Raises
    ------
    ValueError
        If fewer than two models have votes and a rating.
    """
    if n_target_votes is not None:
        require(0 < n_target_votes < math.inf, "n_target_votes", n_target_votes, "above 0, finite")
    voted = calibrating_models(heldout, method, std_error)
    own = heldout.take((heldout.method == method) & np.isfinite(heldout.residual.astype(float)))
    of_judge = judge_variance(voted.residual, voted.human_std_error, voted.std_error)
    if of_judge.reason:
        raise ValueError(f"nothing can be planned: {of_judge.reason}")
    design, counts = own.design_effect.astype(float), voted.n_battles.astype(float)
    vote2 = own.vote_std_error.astype(float) ** 2 * counts
    independent = voted.human_std_error / np.sqrt(design)
    normal = float(ndtri(1 - miscoverage / 2))
    return Frontier(
        judge_noise=float(np.median(voted.std_error * np.sqrt(counts))),
        excess_sd=voted.excess_sd,
        vote_noise=math.sqrt(float(np.median(vote2))),
        n_target_votes=n_target_votes or float(np.median(own.n_votes / design)),
        threshold=voted.threshold(miscoverage),
        reach=max(normal, reach) if reach == reach else normal,
        prior=(of_judge.variance + of_judge.doubt) * ELO_PER_LOGIT**2,
        n_usual=float(np.median(counts)),
        design_effect=float(np.median(design)),
        worth=judge_worth(voted.residual, independent, vote2),
    )


class Prospect(NamedTuple):
    """Half of one model's interval after N further votes: ``reach / sqrt(precision + N / v)``.

    `reach` (L,) holds from `start` (L,) further votes on: each power of two of votes has a
    calibration of its own, so that an interval may widen where it begins. `precision` (per squared
    Elo point) is that of the model's rating by judge and votes now, and ``v`` the variance of a
    rating by one vote, times `design_effect` where votes share questions.
    """

    start: Floats
    reach: Floats
    precision: float
    design_effect: float

    def half_width(self, n_more: float, vote_variance: float) -> float:
        """Return the widest half-width from so many further votes on: infinite before `start`."""
        if n_more < self.start[0]:
            return math.inf
        counts = np.maximum(self.start, n_more)
        lasts = np.append(self.start[1:], math.inf) > n_more
        with np.errstate(divide="ignore"):  # of nothing known the interval is the whole line
            widths = self.reach / np.sqrt(self.precision + counts / self._of_vote(vote_variance))
        return float(widths[lasts].max())

    def votes_for(self, half_width: float, vote_variance: float) -> float:
        """Return the fewest further votes from which on the interval is as narrow as wanted."""
        lacking = (self.reach / half_width) ** 2 - self.precision
        needed = np.ceil(lacking * self._of_vote(vote_variance) - 1e-9)
        within = np.minimum(needed, np.append(np.ceil(self.start[1:]), math.inf))
        return float(max(within[needed > self.start].max(initial=0.0), np.ceil(self.start[0])))

    def _of_vote(self, vote_variance: float) -> float:
        return vote_variance * self.design_effect


def vote_prospect(
    voted: VotedModels, model: str, *, miscoverage: float, seed: int
) -> Prospect | None:
    """Return what further votes do to a model's interval by judge and votes; None if it has none.

    It is foretold from the calibrations that `rate_with_votes` takes at each number of votes,
    if the model's rating, its anchors and the other models stay as they are. From `ENOUGH_VOTES`
    on it is an anchor, and the calibrating votes are drawn anew: there the wider of a calibration
    and the one before it is foretold.
    """
    found = np.flatnonzero(voted.own.model == model)
    if not found.size or not voted.can_be_rated(row := int(found[0])):
        return None
    design, now = float(voted.own.design_effect[row]), voted.level(row)
    worth = float((voted.n_votes / voted.own.design_effect).max())
    levels = range(now, max(now, int(worth).bit_length()) + 1)
    rated = [voted.rate(row, voted.calibration(level, seed), miscoverage) for level in levels]
    reach = np.array([(one.upper - one.rating) / one.std_error for one in rated])
    if not np.isfinite(reach).all():
        return None
    is_drawn_anew = 2.0 ** np.array(levels[1:]) * 2 * design > ENOUGH_VOTES
    wider = np.where(is_drawn_anew, np.maximum(reach[1:], reach[:-1]), reach[1:])
    start = 2.0 ** np.array(levels[1:]) * design - voted.n_votes[row]
    return Prospect(
        np.append(0.0, start), np.append(reach[0], wider), rated[0].std_error ** -2, design
    )


def prospect_by_votes(
    n_votes: int, human_std_error: float, design_effect: float, *, miscoverage: float
) -> Prospect:
    """Return what further votes do to an interval by votes alone, from `ENOUGH_VOTES` on."""
    precision = human_std_error**-2 if human_std_error > 0 else 0.0
    start = np.array([float(max(ENOUGH_VOTES - n_votes, 0))])
    reach = np.array([float(ndtri(1 - miscoverage / 2))])
    return Prospect(start, reach, precision, design_effect)
