"""Judge and votes together: a model's own votes with the judge's rating as their prior.

Elo points outside, logits inside. The judge's rating comes from a fold that holds the model
out, and the anchors are that fold's human strengths.
"""

import math
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtri

from judgeline.elo.battle_counts import Sums
from judgeline.elo.battles import CodedBattles
from judgeline.elo.placements import human_anchors
from judgeline.elo.questions import question_codes
from judgeline.elo.ratings import HeldOutRatings
from judgeline.elo.resampling import keyed_rng
from judgeline.elo.strengths import (
    ELO_PER_LOGIT,
    place_models,
    rating_to_strength,
    strength_to_rating,
)
from judgeline.intervals.conformal import chosen_std_error, conformal_quantile
from judgeline.rating_options import StdErrorKind

Floats = NDArray[np.float64]

LEAST_ERROR = 3.0
"""Elo points below which no judge's error is believed to be, however well its residuals agree."""

N_DRAWS = 9
"""Random choices of votes over which a threshold is the median; odd, so that it is one of them."""

MOST_DRAWN_FROM = 900_000_000
"""Votes on a model from which numpy draws; of more, each number is divided first."""

_HALVES = np.array([0.0, 0.5, 1.0])
_DEFAULT_L2 = 0.01  # of the ratings from other votes, where ratings have no penalty


class JudgeVariance(NamedTuple):
    """Variance of the judge's rating about the human one, in squared logits.

    `own` is the part of it that is the calibrating models' mean squared standard error by the
    judge, and `doubt` the standard error of the variance. NaN where fewer than two models
    calibrate it; `reason` then says so.
    """

    variance: float
    reason: str
    own: float = 0.0
    doubt: float = 0.0

    def of(self, judge_std_error: float) -> float:
        """Return the variance for a model of another standard error by the judge (Elo points)."""
        return self.variance + max((judge_std_error / ELO_PER_LOGIT) ** 2 - self.own, 0.0)


class QuestionVotes(NamedTuple):
    """A model's votes by question: n kinds of vote, sorted by question from 0.

    `question` (n,), `column` (n,) into the model's votes (A, 3) as one row, and how many (n,).
    """

    question: NDArray[np.int64]
    column: NDArray[np.int64]
    votes: NDArray[np.int64]


class CalibratingModels(NamedTuple):
    """K models with votes, among A anchors.

    `judge_rating` (K,) is in Elo points, each from the fold without the model; `anchors` (K, A)
    are human strengths of that fold in logits, finite wherever the model has a vote; `votes`
    (K, A, 3) counts votes lost, tied and won against each anchor. `residual` (K,) is the judge
    rating minus the human one; `human_std_error` and `judge_std_error` (K,) are the errors of
    both, in Elo points. `design_effect` (K,) is that of shared questions, and `by_question` the
    votes by question; none where votes are independent.
    """

    model: tuple[str, ...]
    judge_rating: Floats
    anchors: Floats
    votes: NDArray[np.int64]
    residual: Floats
    human_std_error: Floats
    judge_std_error: Floats
    design_effect: Floats
    by_question: tuple[QuestionVotes, ...] = ()

    def variance(self, chosen: NDArray[np.bool_]) -> JudgeVariance:
        """Return the variance of the judge's ratings about human ones, from some of the models."""
        columns = self.residual, self.human_std_error, self.judge_std_error
        return judge_variance(*(column[chosen] for column in columns))


class VoteCalibration(NamedTuple):
    """Judge variance, and nonconformity (draws, models) of `model` at one number of votes."""

    judge: JudgeVariance
    model: tuple[str, ...]
    nonconformity: Floats


class JudgeAndVotes(NamedTuple):
    """Rating of one model with its standard error and interval, in Elo points."""

    rating: float
    std_error: float
    lower: float
    upper: float


def judge_variance(
    residual: ArrayLike, human_std_error: ArrayLike, judge_std_error: ArrayLike
) -> JudgeVariance:
    """Return the variance of a judge's ratings about noiseless human ones.

    The largest of ``mean(residual^2 - human_std_error^2)``, ``mean(judge_std_error^2)`` and
    ``LEAST_ERROR^2``, times ``n / (n - 1)``.
    The second term departs from the first alone: judge and people see the same battles, so that
    their errors go together and residuals understate the judge's.
    """
    columns = (residual, human_std_error, judge_std_error)
    error, noise, by_judge = (np.asarray(column, dtype=float) for column in columns)
    wrong = np.flatnonzero(~np.isfinite(error + noise + by_judge))
    if wrong.size:
        raise ValueError(
            f"residual {error[wrong[0]]:g} with human standard error {noise[wrong[0]]:g} and judge "
            f"standard error {by_judge[wrong[0]]:g} in row {wrong[0]}: leave out models without a "
            "rating by judge and by votes"
        )
    if error.size < 2:
        return JudgeVariance(
            np.nan,
            f"{error.size} calibrating models: at least 2 models with votes are needed to tell "
            "how far the judge's ratings are from human ones",
        )
    own = float(np.mean(by_judge**2))
    squared = max(float(np.mean(error**2 - noise**2)), own, LEAST_ERROR**2)
    scale = ELO_PER_LOGIT**2
    doubt = float(np.std(error**2 - noise**2, ddof=1)) / math.sqrt(error.size)
    variance = squared * error.size / (error.size - 1)
    return JudgeVariance(variance / scale, "", own / scale, doubt / scale)


def calibrate_votes(
    models: CalibratingModels, n_votes: int, *, seed: int, l2: float = 0.01
) -> VoteCalibration:
    """Return judge variance and nonconformity for ratings of models with `n_votes` votes.

    Nonconformity is the difference between a rating by judge and drawn votes, at most half of a
    model's, and that by its other votes, over ``sqrt(std_error^2 + other_std_error^2)``. Where
    votes are by question, questions are drawn with all their votes, and `n_votes` is what their
    number is worth: divided by the design effect.
    """
    everyone = np.arange(len(models.model))
    scores = {
        models.model[k]: _posterior_scores(models, k, judge, n_votes, seed, l2)
        for k in everyone[models.votes.sum(axis=(1, 2)) >= 2].tolist()
        if not (models.by_question and len(np.unique(models.by_question[k].question)) < 2)
        if not (judge := models.variance(everyone != k)).reason
    }
    found = np.array(list(scores.values())).reshape(-1, N_DRAWS).T
    return VoteCalibration(models.variance(everyone >= 0), tuple(scores), found)


def leave_out(
    calibration: VoteCalibration, models: CalibratingModels, model: str
) -> VoteCalibration:
    """Return the calibration without a model, but for its residual in the others' variances."""
    left = [name != model for name in calibration.model]
    return VoteCalibration(
        models.variance(np.array(models.model) != model),
        tuple(compress(calibration.model, left)),
        calibration.nonconformity[:, np.array(left, dtype=bool)],
    )


def combine_with_votes(
    judge_rating: float,
    wins: ArrayLike,
    n_votes: ArrayLike,
    anchors: ArrayLike,
    calibration: VoteCalibration,
    *,
    miscoverage: float,
    judge_std_error: float = 0.0,
    design_effect: float = 1.0,
) -> JudgeAndVotes:
    """Return one model's rating by its votes, with the judge's rating as their prior.

    Maximises ``sum_votes [y log p + (1 - y) log(1 - p)] / d - (strength - judge)^2 / (2 v)`` with
    ``p = sigmoid(strength - anchor)`` and d the design effect of shared questions; ``v`` grows with
    what the judge's error on this model exceeds that on the calibrating ones. The interval speaks
    of the rating that unlimited votes would give. It assumes that the model is exchangeable with
    the calibrating ones, and that their nonconformity spreads alike whether the votes compared with
    are many or few. Calibration
    widens it and never narrows it below the normal one: judge and votes see the same battles and
    err together, so that nonconformity may be small without the rating being near the truth.
    """
    won, met = np.asarray(wins, dtype=float), np.asarray(n_votes, dtype=float)
    strengths = np.where(met > 0, np.asarray(anchors, dtype=float), 0.0)
    if not (np.isfinite(judge_rating) and np.isfinite(strengths).all()):
        raise ValueError(
            f"judge_rating {judge_rating:g} and the anchors with votes must be finite; leave out "
            "a model that its fold could not place"
        )
    if not ((won >= 0) & (won <= met)).all():
        raise ValueError(f"wins must lie between 0 and n_votes, got {won} of {met}")
    thresholds = [
        conformal_quantile(draw, miscoverage=miscoverage) for draw in calibration.nonconformity
    ]
    if calibration.judge.reason:
        return JudgeAndVotes(np.nan, np.nan, np.nan, np.nan)
    prior = float(rating_to_strength(judge_rating))
    variance = calibration.judge.of(judge_std_error)
    mode, error = _place(
        won.sum(keepdims=True) / design_effect,
        met[None] / design_effect,
        strengths,
        prior,
        variance,
        calibration.judge.doubt,
    )
    rating, std_error = float(strength_to_rating(mode)[0]), float(ELO_PER_LOGIT * error[0])
    reach = max(float(np.median(thresholds)), float(ndtri(1 - miscoverage / 2))) * std_error
    return JudgeAndVotes(rating, std_error, rating - reach, rating + reach)


def rate_by_votes(
    wins: ArrayLike,
    n_votes: ArrayLike,
    anchors: ArrayLike,
    *,
    l2: float = 0.01,
    design_effect: float = 1.0,
) -> JudgeAndVotes:
    """Return one model's rating by its votes alone, from wins, votes and anchors (A,) in logits.

    `l2` is a prior at 1500 Elo; the interval is the whole line, since nothing calibrates it. Votes
    that share questions move no rating, and its standard error is sqrt(`design_effect`) times as
    large. ValueError as of `combine_with_votes`.
    """
    penalty = JudgeVariance(1 / (2 * (l2 or _DEFAULT_L2)), "")
    nobody = VoteCalibration(penalty, (), np.empty((1, 0)))
    origin = float(strength_to_rating(0.0))
    alone = combine_with_votes(origin, wins, n_votes, anchors, nobody, miscoverage=0.5)
    return alone._replace(std_error=alone.std_error * math.sqrt(design_effect))


def _posterior_scores(
    models: CalibratingModels, k: int, judge: JudgeVariance, n_votes: int, seed: int, l2: float
) -> Floats:
    """Return the nonconformity (draws,) of model k when `n_votes` of its votes are its own."""
    votes, anchors = models.votes[k], np.nan_to_num(models.anchors[k])
    rng = keyed_rng(seed, "votes", str(n_votes), models.model[k])
    if models.by_question:
        wanted = n_votes * float(models.design_effect[k])
        own = _drawn_questions(models.by_question[k], votes.shape, wanted, rng)
    else:
        sample = votes // (1 + int(votes.sum()) // MOST_DRAWN_FROM)
        size = min(n_votes, int(sample.sum()) // 2)
        drawn = rng.multivariate_hypergeometric(sample.ravel(), size, size=N_DRAWS)
        own = drawn.reshape(N_DRAWS, *votes.shape)
    prior = float(rating_to_strength(models.judge_rating[k]))
    variance = judge.of(float(models.judge_std_error[k]))
    design = float(models.design_effect[k])
    (together, error), (human, human_error) = (
        _place((part @ _HALVES).sum(axis=1) / design, part.sum(axis=2) / design, anchors, *normal)
        for part, normal in (
            (own, (prior, variance, judge.doubt)),
            (votes - own, (0.0, 1 / (2 * (l2 or _DEFAULT_L2)), 0.0)),
        )
    )
    scores: Floats = np.abs(together - human) / np.hypot(error, human_error)
    return scores


def _drawn_questions(
    votes: QuestionVotes, shape: tuple[int, ...], n_votes: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return votes (draws, A, 3) of questions drawn one by one until there are `n_votes`.

    At most half of the votes, but for those of the last question, and never of all questions.
    """
    question = np.unique(votes.question, return_inverse=True)[1]
    by_question = np.bincount(question, votes.votes).astype(np.int64)
    size = min(n_votes, by_question.sum() / 2)
    drawn = np.zeros((N_DRAWS, math.prod(shape)), dtype=np.int64)
    for row in drawn:
        order = rng.permutation(by_question.size)
        before = np.cumsum(by_question[order]) - by_question[order]
        is_own = np.zeros(order.size, dtype=bool)
        is_own[order[:-1][before[:-1] < size]] = True
        kinds = is_own[question]
        row += np.bincount(votes.column[kinds], votes.votes[kinds], row.size).astype(np.int64)
    return drawn.reshape(N_DRAWS, *shape)


def _place(
    won: Floats, met: NDArray[Any], anchors: Floats, prior: float, variance: float, doubt: float
) -> tuple[Floats, Floats]:
    """Return posterior modes and standard errors (R,) under a normal prior, in logits.

    The errors take the prior's variance one standard error larger than the modes do.
    """
    # A penalty is a normal prior at 0: the judge's rating becomes the origin.
    placed = place_models(won, met, anchors - prior, l2=1 / (2 * variance), start=0.0)
    mode = prior + np.where(met.sum(axis=1) > 0, placed, 0.0)
    chance = expit(mode[:, None] - anchors)
    information = (met * chance * (1 - chance)).sum(axis=1) + 1 / (variance + doubt)
    return mode, 1 / np.sqrt(information)


class VotedRatings(NamedTuple):
    """One row per model with a vote on a battle against an anchor: `JudgeAndVotes` in columns."""

    model: NDArray[np.str_]
    rating: Floats
    std_error: Floats
    lower: Floats
    upper: Floats
    n_votes: NDArray[np.int64]


def rate_with_votes(
    battles: CodedBattles,
    settled: CodedBattles,
    heldout: HeldOutRatings,
    *,
    method: str,
    miscoverage: float = 0.1,
    seed: int = 0,
    l2: float = 0.01,
    std_error: StdErrorKind = "analytic",
    cluster: ArrayLike | None = None,
) -> VotedRatings:
    """Return the rating of every model with votes by the judge and its votes together.

    Parameters
    ----------
    battles : CodedBattles
        Judged battles with all votes, also those that wait until a model has more.
    settled : CodedBattles
        The same battles with the votes that `heldout` was made of.
    heldout : HeldOutRatings
        Leave-one-out ratings; a model without a rating or its standard error has no row.
    method : str
        The judge method whose rating is the prior.
    miscoverage : float
        Share of intervals that may miss, in (0, 1).
    seed : int
        Seed of the draws of votes that calibrate.
    l2 : float
        Penalty on squared strengths, per squared logit.
    std_error : {"analytic", "bootstrap"}
        Which standard error of the judge's rating counts.
    cluster : array_like, shape (n,), optional
        Question of each of `battles`: the draws that calibrate take whole questions.

    Returns
    -------
    VotedRatings
        In the order of ``battles.models``; intervals are infinite where too few models calibrate.
    """
    voted = VotedModels.of(
        battles, settled, heldout, method=method, l2=l2, std_error=std_error, cluster=cluster
    )
    counts = voted.n_votes
    rated = [row for row in np.flatnonzero(counts > 0).tolist() if voted.can_be_rated(row)]
    levels = {row: voted.level(row) for row in rated}
    calibrations = {level: voted.calibration(level, seed) for level in set(levels.values())}
    combined = [voted.rate(row, calibrations[levels[row]], miscoverage) for row in rated]
    rating, error, lower, upper = np.array(combined, dtype=float).reshape(-1, 4).T
    names = voted.own.model[rated].astype(str)
    return VotedRatings(names, rating, error, lower, upper, counts[rated])


class VotedModels(NamedTuple):
    """Models that a judge rated, with their own votes, and those of them that calibrate.

    `own` (M,) are their ratings by the method, `error` (M,) the standard errors (Elo points),
    `anchors` (M, A) the human strengths of each one's fold and `votes` (M, A, 3) its votes.
    """

    own: HeldOutRatings
    error: Floats
    anchors: Floats
    votes: NDArray[np.int64]
    models: CalibratingModels
    l2: float

    @classmethod
    def of(
        cls,
        battles: CodedBattles,
        settled: CodedBattles,
        heldout: HeldOutRatings,
        *,
        method: str,
        l2: float,
        std_error: StdErrorKind,
        cluster: ArrayLike | None,
    ) -> "VotedModels":
        """Return the models of held-out ratings; arguments as of `rate_with_votes`."""
        voted, anchors = human_anchors(settled, l2=l2)
        votes = Sums.of(battles).human[:, voted]
        own = heldout.take((heldout.method == method) & np.isfinite(heldout.rating))
        own = own.take(np.argsort(own.model))
        code = {name: place for place, name in enumerate(battles.models)}
        place = np.array([code[name] for name in own.model.tolist()], dtype=int)
        votes, anchors, error = votes[place], anchors[place], chosen_std_error(own, std_error)
        kept = np.isfinite(own.residual + own.human_std_error + error)
        columns = (
            own.rating, anchors, votes, own.residual, own.human_std_error, error, own.design_effect
        )  # fmt: skip
        models = CalibratingModels(
            tuple(own.model[kept].tolist()), *(column[kept] for column in columns)
        )
        if (question := question_codes(cluster, len(battles))) is not None:
            found = votes_by_question(battles, voted, question)
            models = models._replace(by_question=tuple(found[code] for code in place[kept]))
        return cls(own, error, anchors, votes, models, l2)

    @property
    def n_votes(self) -> NDArray[np.int64]:
        """Number of votes on each model (M,)."""
        return np.asarray(self.votes.sum(axis=(1, 2)))

    def can_be_rated(self, row: int) -> bool:
        """Return whether a model has an error by the judge, and its votes anchors with ratings."""
        placed = np.isfinite(self.anchors[row]) | (self.votes[row].sum(axis=1) == 0)
        return bool(np.isfinite(self.error[row]) and placed.all())

    def level(self, row: int) -> int:
        """Return the power of two whose calibration a model's votes take."""
        worth = max(float(self.n_votes[row] / self.own.design_effect[row]), 1.0)
        return int(worth).bit_length() - 1

    def calibration(self, level: int, seed: int) -> VoteCalibration:
        """Return the calibration of models whose votes are worth ``2^level`` independent ones."""
        return calibrate_votes(self.models, 2**level, seed=seed, l2=self.l2)

    def rate(self, row: int, calibration: VoteCalibration, miscoverage: float) -> JudgeAndVotes:
        """Return a model's rating by judge and votes, with the other models' calibration."""
        met = self.votes[row].sum(axis=1)
        return combine_with_votes(
            float(self.own.rating[row]),
            self.votes[row] @ _HALVES,
            met,
            self.anchors[row],
            leave_out(calibration, self.models, str(self.own.model[row])),
            miscoverage=miscoverage,
            judge_std_error=float(self.error[row]),
            design_effect=float(self.own.design_effect[row]),
        )


def votes_by_question(
    battles: CodedBattles, voted: NDArray[np.bool_], question: NDArray[np.int64]
) -> list[QuestionVotes]:
    """Return every model's votes against anchors, by question."""
    has_vote = battles.human_outcome >= 0
    codes, column = question[has_vote], np.cumsum(voted) - 1
    first, second = battles.model_a[has_vote], battles.model_b[has_vote]
    outcome = battles.human_outcome[has_vote].astype(np.int64)
    model = np.concatenate([first, second]).astype(np.int64)
    opponent, won = np.concatenate([second, first]), np.concatenate([outcome, 2 - outcome])
    question = np.tile(codes, 2)
    kept = voted[opponent]
    n_kinds, n_questions = 3 * int(voted.sum()), int(question.max(initial=0)) + 1
    kind = 3 * column[opponent[kept]] + won[kept]
    packed = (model[kept] * n_questions + question[kept]) * n_kinds + kind
    units, count = np.unique(packed, return_counts=True)
    units, kind = np.divmod(units, n_kinds)
    code, asked = np.divmod(units, n_questions)
    starts = np.searchsorted(code, np.arange(voted.size + 1))
    return [
        QuestionVotes(asked[low:high], kind[low:high], count[low:high])
        for low, high in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    ]
