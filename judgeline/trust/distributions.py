"""Scores and outcomes from the probabilities behind a judge's words, not the words alone.

A judge asked for a number, or for a choice between two answers, has a probability for every
token it could have said. Nothing here fills in what an endpoint did not return.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr, logit, softmax

from judgeline.arrays import Floats, alike_floats, require

RELEASED_TEMPERATURE = 0.2
"""Divisor of log-odds in the program that was released with the paper."""

_SUM_SLACK = 1e-4  # listed probabilities are rounded by servers, each on its own
_LEAST_LOG = -700.0  # exp of less is no normal float
_LEVEL = 1e-12  # masses this close differ by rounding alone
_MARKERS = " \t\r\n▁Ġ"  # a space, and how two families of tokenizers write it


class TokenPosition(NamedTuple):
    """Alternatives of a judge at one place: `tokens` and their `log_probs`, in nats."""

    tokens: Sequence[str]
    log_probs: ArrayLike


class ScoreDistribution(NamedTuple):
    """Probabilities of whole numbers on a scale, as listed: they need not add up to 1.

    `values` (k,): numbers on the `scale` (lowest, highest), ascending.
    `probabilities` (k,): their probabilities, not normalised.
    `covered`: the sum, the probability that the judge says a number on the scale.
    `unresolved`: probability of numbers begun whose next position is not known; left out.
    """

    scale: tuple[int, int]
    values: NDArray[np.int64]
    probabilities: Floats
    covered: float
    unresolved: float

    @property
    def weighted_sum(self) -> float:
        """Return the sum of number times probability, as listed: the score of G-Eval."""
        return float(self.values @ self.probabilities)

    @property
    def entropy(self) -> float:
        """Return the entropy of the normalised probabilities, in bits."""
        return float(entr(_weights(self.probabilities, None)).sum() / math.log(2))


def score_distribution(
    position: TokenPosition,
    *,
    digits_per_token: int,
    scale: tuple[int, int] = (1, 100),
    following: Mapping[str, TokenPosition] | None = None,
    max_unresolved: float = 0.0,
) -> ScoreDistribution:
    """Return how probable each number on the scale is, from the position of the score.

    Different tokens for one number ("8", " 8") are added up. Anything that is no digit ends a
    number, a decimal point too: integers were asked for. Numbers off the scale, or with leading
    zeros, are words like any other.

    Parameters
    ----------
    position : TokenPosition
        Alternatives where the judge begins its number; other words may be among them.
    digits_per_token : int
        How many digits the judge's tokenizer puts in one token at most: 1 where "87" is
        "8", "7"; 3 where it is one token. When in doubt say 1, which refuses, not misreads.
    scale : (int, int)
        Lowest and highest number that was asked for.
    following : mapping of str to TokenPosition, optional
        Alternatives of the next position after the digits of each key ("8", "10").
    max_unresolved : float
        Probability of begun numbers without a following position that may be left out.

    Raises
    ------
    ValueError
        If log-probabilities are missing, NaN, positive or add up to more than 1; if no
        number on the scale is listed; if a token may be only the first digits of a number
        and what follows it is not given; if a given following position is never reached.

    References
    ----------
    Y. Wang et al. (2025), "TrustJudge", arXiv:2509.21117, distribution-sensitive scoring.
    """
    low, high = scale
    require(0 <= low < high, "scale", scale, "two ascending numbers, zero or more")
    require(digits_per_token >= 1, "digits_per_token", digits_per_token, "1 or more")
    require(0 <= max_unresolved < 1, "max_unresolved", max_unresolved, "a share in [0, 1)")
    require("" not in (following or {}), "a key of following", "", "the digits before a position")
    ended, begun = _read_numbers(
        {**(following or {}), "": position}, scale, digits_per_token=digits_per_token
    )
    unresolved = sum(begun.values())
    if unresolved > max_unresolved:
        raise ValueError(
            f"{', '.join(map(repr, sorted(begun)))} (probability {unresolved:.3g}) may be only "
            f"the first digits of a number up to {high}: give the following position of each, "
            f"ask on a scale of one token, or raise max_unresolved ({max_unresolved:g})"
        )
    chance_of = {int(text): p for text, p in ended.items() if p > 0 and _on_scale(text, scale)}
    if not chance_of:
        seen = ", ".join(map(repr, list(position.tokens)[:5]))
        raise ValueError(f"no whole number from {low} to {high} among the tokens {seen}")
    values = np.array(sorted(chance_of), dtype=np.int64)
    chances = np.array([chance_of[int(value)] for value in values])
    return ScoreDistribution(scale, values, chances, float(chances.sum()), unresolved)


def _read_numbers(
    positions: Mapping[str, TokenPosition], scale: tuple[int, int], *, digits_per_token: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Follow digits from position to position: numbers that ended, and numbers only begun."""
    ended: dict[str, float] = {}
    begun: dict[str, float] = {}
    pending, reached = [("", 1.0)], {""}
    while pending:
        prefix, chance = pending.pop()
        for token, p in _probabilities(positions[prefix], f"after {prefix!r}" if prefix else ""):
            digits, goes_on = _digits(token, inside=bool(prefix))
            text = prefix + digits
            if goes_on and text in positions:
                pending.append((text, chance * p))
                reached.add(text)
                continue
            is_open = goes_on and len(digits) >= digits_per_token and _extends(text, scale)
            target = begun if is_open else ended
            target[text] = target.get(text, 0.0) + chance * p
    if unused := set(positions) - reached:
        raise ValueError(f"following positions {sorted(unused)} come after no listed token")
    return ended, {text: p for text, p in begun.items() if p > 0}


def _probabilities(position: TokenPosition, place: str) -> list[tuple[str, float]]:
    name = f"log-probabilities at the score position {place}".rstrip()
    if position.log_probs is None or not len(position.tokens):
        raise ValueError(
            f"no {name}; ask the endpoint for top_logprobs, or declare repeated samples instead"
        )
    logs = _log_probs(position.log_probs, name)
    if logs.size != len(position.tokens):
        raise ValueError(f"{len(position.tokens)} tokens but {logs.size} {name}")
    chances = np.exp(logs)
    if chances.sum() > 1 + _SUM_SLACK:
        raise ValueError(f"{name} are of probabilities that add up to {chances.sum():.6g} > 1")
    return list(zip(position.tokens, chances.tolist(), strict=True))


def _log_probs(log_probs: ArrayLike, name: str) -> Floats:
    logs = np.asarray(log_probs, dtype=float)
    require(logs.ndim == 1, f"the shape of {name}", logs.shape, "(n,)")
    require(logs <= 0, f"a value of {name}", logs, "natural logarithms of probabilities, 0 at most")
    return logs


def _digits(token: str, *, inside: bool) -> tuple[str, bool]:
    """Return the digits that a token adds, none for "8.5", and whether more follow."""
    text = token if inside else token.lstrip(_MARKERS)
    match = re.match("[0-9]*", text)
    digits = match.group() if match else ""
    is_number = inside or not re.search("[0-9]", text[len(digits) :])
    return (digits, bool(digits) and digits == text) if is_number else ("", False)


def _extends(text: str, scale: tuple[int, int]) -> bool:
    """Return whether further digits after these could make a number on the scale."""
    low, high = scale
    units = (10**n for n in range(1, len(str(high)) - len(text) + 1))
    number = int(text)
    return text[0] != "0" and any(low < (number + 1) * u and number * u <= high for u in units)


def _on_scale(text: str, scale: tuple[int, int]) -> bool:
    canonical = text == "0" or (text != "" and not text.startswith("0"))
    return canonical and scale[0] <= int(text) <= scale[1]


def expected_score(
    distribution: ScoreDistribution,
    *,
    target: tuple[float, float],
    logit_temperature: float | None = None,
) -> float:
    """Return the mean of a score distribution, in points of the target scale.

    The lowest number maps to the first end of `target`, the highest to the second. The printed
    formula stretches the scale without moving its origin, so that on 1 to 100 a sure 1 would not
    become the lowest target score. Here it does. Probabilities are divided by their sum; with a
    `logit_temperature`, weights are the softmax of ``logit(probability) / logit_temperature``,
    which favours the likeliest number below 1; `RELEASED_TEMPERATURE` is the released program's. A
    target that does not ascend, or a temperature that is not positive, is a `ValueError`. Source:
    Y. Wang et al. (2025), "TrustJudge", arXiv:2509.21117, distribution-sensitive scoring.
    """
    lowest, highest = target
    require(0 < highest - lowest < math.inf, "target", target, "two ascending numbers")
    low, high = distribution.scale
    weights = _weights(distribution.probabilities, logit_temperature)
    place = math.fsum(weights * (distribution.values - low)) / (high - low)
    return lowest + place * (highest - lowest)


def _weights(probabilities: Floats, logit_temperature: float | None) -> Floats:
    if logit_temperature is None:
        return np.asarray(probabilities / probabilities.sum())
    is_positive = 0 < logit_temperature < math.inf
    require(is_positive, "logit_temperature", logit_temperature, "a positive number")
    certain = probabilities >= 1
    if certain.any():  # infinite log-odds: the limit of the softmax
        return np.asarray(certain / certain.sum())
    return np.asarray(softmax(logit(probabilities) / logit_temperature))


class ChoiceProbabilities(NamedTuple):
    """`probabilities` (3,) of first shown, tie, second shown, adding up to 1; `covered` of it.

    `covered` is the probability that was listed for the three labels before normalising.
    """

    probabilities: Floats
    covered: float


def choice_probabilities(
    position: TokenPosition, *, labels: tuple[str, str, str]
) -> ChoiceProbabilities:
    """Return how probable each choice between two answers is, from the position of the choice.

    The labels are tokens for the answer shown first, a tie, and the answer shown second. One that
    is not listed has probability 0; see how much is `covered`. Labels that are not distinct or all
    without a probability, and impossible log-probabilities, are a `ValueError`.
    """
    require(len({*labels}) == 3, "labels", labels, "three distinct tokens")
    chances = np.zeros(3)
    for token, p in _probabilities(position, "of the choice"):
        if (label := token.strip(_MARKERS)) in labels:
            chances[labels.index(label)] += p
    if not chances.any():
        seen = ", ".join(map(repr, list(position.tokens)[:5]))
        raise ValueError(f"none of the labels {labels} is among the tokens {seen}")
    return ChoiceProbabilities(chances / chances.sum(), float(chances.sum()))


class AggregatedOutcomes(NamedTuple):
    """Both orders of n battles together.

    `mass` (n, 3): m of A better, tie, B better; each row adds up to 2.
    `outcome` (n,): A's share of the win, 1, 0.5 or 0. `soft_outcome` (n,): the same in [0, 1].
    """

    mass: Floats
    outcome: Floats
    soft_outcome: Floats


def aggregate_orders(
    probabilities_ab: ArrayLike, probabilities_ba: ArrayLike, *, tolerance: float
) -> AggregatedOutcomes:
    """Return likelihood-aware outcomes of battles judged in both orders.

    The mass of k (1: A better, 0: tie, -1: B better) is p_AB[k] + p_BA[-k]; the largest mass is the
    outcome, ``(m[1] + m[0] / 2) / 2`` the soft one; a tie if the two largest masses differ by less
    than twice the `tolerance` in [0, 1], or not at all. Swapping A and B mirrors every result.
    Source: Y. Wang et al. (2025), "TrustJudge", arXiv:2509.21117, likelihood-aware aggregation.

    Probabilities (n, 3) are those of the answer shown first, a tie, and the answer shown second,
    when A, respectively B, was shown first. Rows add up to 1, else it is a `ValueError`.
    """
    require(0 <= tolerance <= 1, "tolerance", tolerance, "a share in [0, 1]")
    columns = alike_floats(2, probabilities_ab=probabilities_ab, probabilities_ba=probabilities_ba)
    ab, ba = map(_three_way, columns, ("probabilities_ab", "probabilities_ba"))
    mass = ab + ba[:, ::-1]
    ranked = np.sort(mass, axis=1)
    gap = ranked[:, 2] - ranked[:, 1]
    winner = np.array([1.0, 0.5, 0.0])[mass.argmax(axis=1)]
    outcome = np.where((gap < 2 * tolerance) | (gap < _LEVEL), 0.5, winner)
    # (m[1] + m[0] / 2) / 2 with m[0] = 2 - m[1] - m[-1]: one difference, which a swap negates.
    return AggregatedOutcomes(mass, outcome, 0.5 + (mass[:, 0] - mass[:, 2]) / 4)


def _three_way(values: Floats, name: str) -> Floats:
    require(values.shape[1] == 3, f"the shape of {name}", values.shape, "(n, 3)")
    require(values >= 0, name, values, "probabilities")
    total = values.sum(axis=1)
    require(np.abs(total - 1) <= _SUM_SLACK, f"the sum of {name}", total, "1")
    return np.asarray(values / total[:, None])


def perplexity(log_probs: ArrayLike) -> float:
    """Return the perplexity of an answer, 1 or more: exp(-mean log-probability of its tokens).

    No token, or a log-probability that is NaN, positive, or so low that its probability is no float
    (some servers write -9999 for tokens that they did not score), is a `ValueError`.
    """
    logs = _log_probs(log_probs, "log-probabilities of the answer")
    if not logs.size:
        raise ValueError("no log-probabilities of the answer; ask the endpoint for logprobs")
    remedy = "that of a token a judge said; some servers write -9999 for tokens they did not score"
    require(logs >= _LEAST_LOG, "a value of log-probabilities of the answer", logs, remedy)
    return math.exp(-float(logs.mean()))


def perplexity_outcome(
    outcome_ab: ArrayLike,
    outcome_ba: ArrayLike,
    perplexity_ab: ArrayLike,
    perplexity_ba: ArrayLike,
    *,
    tolerance: float,
) -> Floats:
    """Return the outcome of the order in which the judge was less perplexed by its own answer.

    Parameters
    ----------
    outcome_ab, outcome_ba : array_like, shape (n,)
        A's share of the win, 1, 0.5 or 0, when A, respectively B, was shown first.
    perplexity_ab, perplexity_ba : array_like, shape (n,)
        Perplexity of the whole answer in that order, 1 or more.
    tolerance : float
        Perplexities at most this apart are a tie, even where both orders agree.

    Raises
    ------
    ValueError
        If shapes differ or a value is out of range.

    References
    ----------
    Y. Wang et al. (2025), "TrustJudge", arXiv:2509.21117, perplexity-based aggregation.
    """
    columns = {"outcome_ab": outcome_ab, "outcome_ba": outcome_ba}
    columns |= {"perplexity_ab": perplexity_ab, "perplexity_ba": perplexity_ba}
    first_ab, first_ba, ours, theirs = values = alike_floats(**columns)
    require(0 <= tolerance < math.inf, "tolerance", tolerance, "zero or more")
    for name, column in zip(columns, values, strict=True):
        if name.startswith("outcome"):
            require(np.isin(column, (0, 0.5, 1)), name, column, "1, 0.5 or 0")
        else:
            good = np.isfinite(column) & (column >= 1)
            require(good, name, column, "a finite perplexity, 1 or more")
    chosen = np.where(ours < theirs, first_ab, first_ba)
    return np.where(np.abs(ours - theirs) <= tolerance, 0.5, chosen)
