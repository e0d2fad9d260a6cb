"""Judges' outcomes rated by four systems, on one centred Elo scale, for a fair comparison.

Glicko-2 and TrueSkill, from libraries, depend on the order of battles, which means nothing for
models that do not change: they are averaged over shuffles, and the spread is reported.
"""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, pi, sqrt

import numpy as np
import pandas as pd

from judgeline.elo import (
    ELO_PER_LOGIT,
    connected_components,
    fit_strengths,
    keyed_rng,
)
from judgeline.reliability import mean_pairwise_kappa, reliability_factor
from judgeline.steps.anchoring import gaps_against, meetings

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


def rate_by_systems(
    battles: pd.DataFrame,
    reference: str,
    *,
    l2: float,
    seed: int,
    stream: Sequence[str],
    systems: Sequence[str] = SYSTEMS,
) -> pd.DataFrame:
    """Return the rating of every model by every system, in Elo points with an arbitrary origin.

    ``order_spread`` is the standard deviation over shuffles, NaN where order does not matter. A
    model without a chain of battles to the others has no rating, and ``note`` says so.
    ``outcome`` of the battles is A's share of the win; the gap of `reference` is 0. Glicko-2 and
    TrueSkill need the packages glicko2-py and trueskillthroughtime.
    """
    pairs = battles[["model_a", "model_b"]].to_numpy(dtype=str)
    names, codes = np.unique(pairs, return_inverse=True)
    first, second = codes.reshape(-1, 2).T
    coded = (first, second, battles["outcome"].to_numpy(dtype=float))
    counts = np.zeros((names.size, names.size))
    np.add.at(counts, (first, second), 1)
    counts += counts.T
    part = np.asarray(connected_components(counts > 0))
    apart = part != np.bincount(part).argmax()
    wins = np.bincount(first, coded[2], names.size)
    wins += np.bincount(second, 1 - coded[2], names.size)
    gaps = gaps_against(meetings(battles, battles.set_index("battle_id")["outcome"]), reference)
    gaps = pd.concat([gaps, pd.Series({reference: 0.0})]).reindex(names).to_numpy()
    rng = keyed_rng(seed, *stream, "rating-systems")
    orders = [rng.permutation(first.size) for _ in range(N_SHUFFLES)]
    still = np.full(names.size, np.nan)
    ratings: dict[str, Callable[[], tuple[Floats, Floats]]] = {
        "bradley-terry": lambda: (ELO_PER_LOGIT * fit_strengths(counts, wins, l2=l2), still),
        "glicko-2": lambda: _shuffled(glicko2_ratings, coded, orders, names.size),
        "trueskill": lambda: _shuffled(trueskill_ratings, coded, orders, names.size),
        "reference-anchored": lambda: (gaps, still),
    }
    parts = []
    for system in systems:
        rating, spread = ratings[system]()
        note = np.where(np.isnan(rating), "no battle with the reference", "")
        columns = {
            "model": names.tolist(),
            "system": system,
            "rating": np.where(apart, np.nan, rating),
            "order_spread": np.where(apart, np.nan, spread),
            "n_battles": np.bincount(codes.ravel(), minlength=names.size),
            "note": np.where(apart, "no chain of battles to the other models", note).tolist(),
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def _shuffled(
    update: Update,
    coded: tuple[np.ndarray, np.ndarray, np.ndarray],
    orders: list[np.ndarray],
    n_models: int,
) -> tuple[Floats, Floats]:
    """Return mean and spread over orders of ratings, each run centred before."""
    first, second, outcome = coded
    runs = np.array([update(first[o], second[o], outcome[o], n_models) for o in orders])
    centred = runs - runs.mean(axis=1, keepdims=True)
    return centred.mean(axis=0), centred.std(axis=0, ddof=1)


def glicko2_ratings(
    first: np.ndarray, second: np.ndarray, outcome: np.ndarray, n_models: int
) -> Floats:
    """Return Glicko-2 ratings after all battles, in rating periods of equal size, in order.

    Its scale is the Elo scale: 173.7178 points to the logit, as 400 / ln 10. Source: M. E. Glickman
    (2012), "Example of the Glicko-2 system", glicko.net/glicko/glicko2.pdf.
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
        held = [update_rating(*own, played) for own, played in zip(held, games, strict=True)]
    return np.array([mu_to_rating(mu) for mu, _, _ in held])


def trueskill_ratings(
    first: np.ndarray, second: np.ndarray, outcome: np.ndarray, n_models: int
) -> Floats:
    """Return TrueSkill ratings after all battles, one at a time, in order; in Elo points.

    Skills do not drift. The probability of a draw is the share of ties, with half a tie and half
    a decision added. An upset whose probability rounds to zero is a `RuntimeError`. Source:
    R. Herbrich, T. Minka and T. Graepel (2006), "TrueSkill: A Bayesian Skill Rating System",
    NIPS 19.
    """
    from trueskillthroughtime import compute_margin, trunc

    held = [(_START, _SIGMA**2)] * n_models
    p_draw = float((outcome == 0.5).sum() + 0.5) / (outcome.size + 1)
    margin = compute_margin(p_draw, sqrt(2) * _BETA)
    leads = np.sign(outcome - 0.5)
    ahead, behind = np.where(leads < 0, (second, first), (first, second)).tolist()
    for place, (a, b, lead) in enumerate(zip(ahead, behind, leads.tolist(), strict=True)):
        (mean_a, variance_a), (mean_b, variance_b) = held[a], held[b]
        gap, variance = mean_a - mean_b, variance_a + variance_b + 2 * _BETA**2
        try:
            seen, spread = trunc(gap, sqrt(variance), margin, lead == 0)
        except (ArithmeticError, ValueError) as error:
            raise RuntimeError(
                f"TrueSkill cannot take battle {place} of the order: skills {mean_a:g} and "
                f"{mean_b:g} {'decided' if lead else 'tied'}, a chance that is zero ({error})"
            ) from error
        moved, narrowed = (seen - gap) / variance, (1 - spread**2 / variance) / variance
        held[a] = mean_a + variance_a * moved, variance_a * (1 - variance_a * narrowed)
        held[b] = mean_b - variance_b * moved, variance_b * (1 - variance_b * narrowed)
    return _ELO_PER_SKILL * np.array([mean for mean, _ in held])


def agreement_of(outcomes: Mapping[str, "pd.Series[float]"]) -> dict[str, float]:
    """Return judges' mean pairwise kappa on the battles all of them judged, and its factor.

    Where kappa is defined there is ``mean_kappa`` and, above 0, the ``reliability_factor`` that a
    corpus may ask for under ``reference.mean_kappa``.
    """
    shared = pd.DataFrame(dict(outcomes)).dropna()
    summary = {"n_shared_battles": float(len(shared))}
    if shared.shape[1] < 2 or shared.empty:
        return summary
    try:
        kappa = mean_pairwise_kappa(shared.to_numpy().T)
    except ValueError:  # two judges put everything in one class: kappa is undefined
        return summary
    factor = {"reliability_factor": reliability_factor(kappa)} if kappa > 0 else {}
    return {**summary, "mean_kappa": kappa, **factor}
