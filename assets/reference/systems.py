"""One judge's outcomes rated by four systems, all on the Elo scale, for a fair comparison.

What belongs here: our Bradley-Terry fit and reference-anchored gaps beside Glicko-2 and TrueSkill
from libraries. The latter two see battles one after the other and depend on their order, which
means nothing here: models do not change. They are run on several shuffles and averaged, and the
spread over shuffles is reported.
"""

from collections.abc import Callable, Sequence
from math import ceil, pi, sqrt
from typing import NamedTuple

import numpy as np
import pandas as pd

from assets.reference.anchoring import meetings
from assets.reference.reach import gaps_against
from judgeline.elo import ELO_PER_LOGIT, connected_components, fit_strengths, keyed_rng

SYSTEMS: tuple[str, ...] = ("bradley-terry", "glicko-2", "trueskill", "reference-anchored")

N_SHUFFLES = 5
"""Orders of the battles over which the two sequential systems are averaged."""

GAMES_PER_PERIOD = 15
"""Battles of an average model in one Glicko-2 rating period; its author recommends 10 to 15."""

_START, _SIGMA, _BETA = 25.0, 25 / 3, 25 / 6  # TrueSkill's published defaults; no dynamics
_ELO_PER_SKILL = ELO_PER_LOGIT * 4 / sqrt(2 * pi) / (sqrt(2) * _BETA)
"""Elo points per point of TrueSkill: equal odds, near even, for equal gaps. The normal curve of
``gap / (sqrt(2) beta)`` has slope 1 / sqrt(2 pi) at zero, the logistic one 1 / 4."""

Floats = np.ndarray
Update = Callable[[np.ndarray, np.ndarray, np.ndarray, int], Floats]


class _Coded(NamedTuple):
    """Battles by the places of their models, in some order."""

    first: np.ndarray
    second: np.ndarray
    outcome: Floats


def rate_by_systems(
    battles: pd.DataFrame, reference: str, *, l2: float, seed: int, stream: Sequence[str]
) -> pd.DataFrame:
    """Return the rating of every model by every system, in Elo points with an arbitrary origin.

    Parameters
    ----------
    battles : DataFrame
        ``question_id``, ``battle_id``, ``model_a``, ``model_b`` and ``outcome``, A's share of the
        win: 1, 0.5 or 0.
    reference : str
        The model that reference-anchored gaps are relative to; its own is 0.
    l2 : float
        Penalty of the Bradley-Terry fit.
    seed : int
        Of the shuffles.
    stream : sequence of str
        Names of the random stream, such as corpus and judge.

    Returns
    -------
    DataFrame
        ``model``, ``system``, ``rating``, ``order_spread`` (standard deviation over shuffles, Elo
        points; NaN where order does not matter), ``n_battles`` and ``note``. A model without a
        chain of battles to the others has no rating, and the note says so.
    """
    names, coded, apart = _code(battles)
    rng = keyed_rng(seed, *stream, "rating-systems")
    orders = [rng.permutation(coded.outcome.size) for _ in range(N_SHUFFLES)]
    fitted = ELO_PER_LOGIT * _bradley_terry(coded, len(names), l2)
    gaps = _gaps(battles, reference).reindex(names).to_numpy()
    still = np.full(len(names), np.nan)
    ratings = {
        "bradley-terry": (fitted, still),
        "glicko-2": _shuffled(glicko2_ratings, coded, orders, len(names)),
        "trueskill": _shuffled(trueskill_ratings, coded, orders, len(names)),
        "reference-anchored": (gaps, still),
    }
    counts = np.bincount(np.r_[coded.first, coded.second], minlength=len(names))
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "model": names,
                    "system": system,
                    "rating": np.where(apart, np.nan, rating),
                    "order_spread": np.where(apart, np.nan, spread),
                    "n_battles": counts,
                    "note": _notes(apart, np.isnan(rating)),
                }
            )
            for system, (rating, spread) in ratings.items()
        ],
        ignore_index=True,
    )


def _notes(apart: np.ndarray, unrated: np.ndarray) -> list[str]:
    told = np.where(unrated, "no battle with the reference", "")
    return np.where(apart, "no chain of battles to the other models", told).tolist()


def _code(battles: pd.DataFrame) -> tuple[list[str], _Coded, np.ndarray]:
    """Return names, coded battles, and which models are apart from the largest connected part."""
    pairs = battles[["model_a", "model_b"]].to_numpy(dtype=str)
    names, codes = np.unique(pairs, return_inverse=True)
    first, second = codes.reshape(-1, 2).T
    linked = np.zeros((names.size, names.size), dtype=bool)
    linked[first, second] = linked[second, first] = True
    part = np.asarray(connected_components(linked))
    apart = part != np.bincount(part).argmax()
    return names.tolist(), _Coded(first, second, battles["outcome"].to_numpy(dtype=float)), apart


def _bradley_terry(coded: _Coded, n_models: int, l2: float) -> Floats:
    counts = np.zeros((n_models, n_models))
    np.add.at(counts, (coded.first, coded.second), 1)
    wins = np.bincount(coded.first, coded.outcome, n_models)
    wins += np.bincount(coded.second, 1 - coded.outcome, n_models)
    return np.asarray(fit_strengths(counts + counts.T, wins, l2=l2))


def _gaps(battles: pd.DataFrame, reference: str) -> "pd.Series[float]":
    met = meetings(battles, battles.set_index("battle_id")["outcome"])
    gaps = gaps_against(met, reference)
    return pd.concat([gaps, pd.Series({reference: 0.0})])


def _shuffled(
    update: Update, coded: _Coded, orders: list[np.ndarray], n_models: int
) -> tuple[Floats, Floats]:
    """Return mean and spread over orders of ratings, each run centred before."""
    runs = np.array([update(*(part[order] for part in coded), n_models) for order in orders])
    centred = runs - runs.mean(axis=1, keepdims=True)
    return centred.mean(axis=0), centred.std(axis=0, ddof=1)


def glicko2_ratings(
    first: np.ndarray, second: np.ndarray, outcome: np.ndarray, n_models: int
) -> Floats:
    """Return Glicko-2 ratings after all battles, in rating periods of equal size, in order.

    Its scale is the Elo scale: 173.7178 points to the logit, as 400 / ln 10.

    Parameters
    ----------
    first, second : ndarray of int, shape (n,)
        Places of the models.
    outcome : ndarray, shape (n,)
        Share of the first one's win.
    n_models : int
        Models there are.

    References
    ----------
    M. E. Glickman (2012), "Example of the Glicko-2 system", glicko.net/glicko/glicko2.pdf.
    """
    from glicko2.math import mu_to_rating, rating_to_mu, rd_to_phi, update_rating

    held = [(rating_to_mu(1500.0), rd_to_phi(350.0), 0.06)] * n_models
    n_periods = max(1, ceil(2 * outcome.size / n_models / GAMES_PER_PERIOD))
    for period in np.array_split(np.arange(outcome.size), n_periods):
        games: list[list[tuple[float, float, float]]] = [[] for _ in held]
        for a, b, won in zip(
            first[period].tolist(), second[period].tolist(), outcome[period].tolist(), strict=True
        ):
            games[a].append((*held[b][:2], won))
            games[b].append((*held[a][:2], 1 - won))
        held = [tuple(update_rating(*own, played)) for own, played in zip(held, games, strict=True)]
    return np.array([mu_to_rating(mu) for mu, _, _ in held])


def trueskill_ratings(
    first: np.ndarray, second: np.ndarray, outcome: np.ndarray, n_models: int
) -> Floats:
    """Return TrueSkill ratings after all battles, one at a time, in order; in Elo points.

    Skills do not drift. The probability of a draw is the share of ties, with half a tie and half
    a decision added. Above 0.5 the first one wins, below it the second.

    Parameters
    ----------
    first, second : ndarray of int, shape (n,)
        Places of the models.
    outcome : ndarray, shape (n,)
        Share of the first one's win.
    n_models : int
        Models there are.

    Raises
    ------
    RuntimeError
        If an upset is so great that its probability rounds to zero.

    References
    ----------
    R. Herbrich, T. Minka and T. Graepel (2006), "TrueSkill: A Bayesian Skill Rating System",
    NIPS 19.
    """
    from trueskillthroughtime import Game, Gaussian, Player

    held = [Gaussian(_START, _SIGMA)] * n_models
    p_draw = float((outcome == 0.5).sum() + 0.5) / (outcome.size + 1)
    battles = zip(first.tolist(), second.tolist(), np.sign(outcome - 0.5).tolist(), strict=True)
    for place, (a, b, lead) in enumerate(battles):
        players = [[Player(held[a], _BETA, 0.0)], [Player(held[b], _BETA, 0.0)]]
        try:
            (after_a,), (after_b,) = Game(players, [lead, 0.0], p_draw).posteriors()
        except (ArithmeticError, ValueError) as error:
            raise RuntimeError(
                f"TrueSkill cannot take battle {place} of the order: {held[a]} against {held[b]} "
                f"with outcome {(lead + 1) / 2:g} has a probability that rounds to zero ({error})"
            ) from error
        held[a], held[b] = after_a, after_b
    return _ELO_PER_SKILL * np.array([skill.mu for skill in held])
