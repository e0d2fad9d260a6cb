"""Judges' outcomes rated by four systems, on one centred Elo scale, for a fair comparison.

What belongs here: our Bradley-Terry fit and reference-anchored gaps beside Glicko-2 and TrueSkill
from libraries. The latter two see battles one after the other and depend on their order, which
means nothing here: models do not change. They are run on several shuffles and averaged, and the
spread over shuffles is reported.
"""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, pi, sqrt
from typing import NamedTuple

import numpy as np
import pandas as pd

from assets.reference.anchoring import meetings
from assets.reference.reach import gaps_against
from judgeline.elo import (
    ELO_ORIGIN,
    ELO_PER_LOGIT,
    connected_components,
    fit_strengths,
    kendall,
    keyed_rng,
)
from judgeline.reliability import mean_pairwise_kappa, reliability_factor

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

    ``order_spread`` is the standard deviation over shuffles, NaN where order does not matter. A
    model without a chain of battles to the others has no rating, and ``note`` says so.
    ``outcome`` of the battles is A's share of the win; the gap of `reference` is 0.
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
    notes = np.where(unrated, "no battle with the reference", "")
    return np.where(apart, "no chain of battles to the other models", notes).tolist()


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
        held = [tuple(update_rating(*own, played)) for own, played in zip(held, games, strict=True)]
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


SYSTEM_COLUMNS: tuple[str, ...] = (
    "system",
    "judge",
    "model",
    "rating",
    "order_spread",
    "judge_spread",
    "n_battles",
    "note",
)
"""Columns of the rating systems: one row per system, judge and model."""


def compare_systems(rated: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the ratings of all judges by all systems, centred alike, with their spread.

    Within a judge and system the mean of those models that all judges rate by all systems is 1500
    Elo points. ``judge_spread`` is the standard deviation (ddof 1) of a model's rating over
    judges; NaN for a single judge, or a model that a judge has no rating of.
    """
    if not rated:
        return no_systems()
    table = pd.concat([part.assign(judge=judge) for judge, part in rated.items()])
    missing = table.groupby("model")["rating"].apply(lambda ratings: ratings.isna().any())
    complete = table.groupby("model").size().eq(len(rated) * len(SYSTEMS)) & ~missing
    common = table["rating"].where(table["model"].map(complete))
    if common.isna().all():
        common = table["rating"]
    keys = [table["judge"], table["system"]]
    centred = table["rating"] - common.groupby(keys).transform("mean") + ELO_ORIGIN
    table = table.assign(rating=centred)
    by_model = table.groupby(["system", "model"])["rating"]
    spread = by_model.transform("std").where(by_model.transform("count").eq(len(rated)))
    return table.assign(judge_spread=spread)[list(SYSTEM_COLUMNS)].reset_index(drop=True)


def no_systems() -> pd.DataFrame:
    """Return ratings of no judge."""
    texts = dict.fromkeys(("system", "judge", "model", "note"), "str")
    kinds = {**dict.fromkeys(SYSTEM_COLUMNS, "float64"), **texts, "n_battles": "int64"}
    return pd.DataFrame({name: pd.Series(dtype=kinds[name]) for name in SYSTEM_COLUMNS})


def summarise_systems(systems: pd.DataFrame) -> pd.DataFrame:
    """Return one row per system: how it orders and spreads models, and how far judges differ.

    ``model_spread`` is the standard deviation of ratings over models, mean over judges: how wide
    the system's ruler is. ``relative_spread`` is the mean ``judge_spread`` over it, so that a
    system does not look steady by moving everyone towards the middle. ``kendall`` compares its
    order with Bradley-Terry's, mean over judges.
    """
    rows = []
    for system in [name for name in SYSTEMS if systems["system"].eq(name).any()]:
        own = systems[systems["system"].eq(system)]
        width = float(own.groupby("judge")["rating"].std().mean())
        between = float(own.drop_duplicates("model")["judge_spread"].mean())
        rows.append(
            {
                "system": system,
                "n_judges": own["judge"].nunique(),
                "n_models": own.loc[own["rating"].notna(), "model"].nunique(),
                "kendall": _kendall(systems, own),
                "model_spread": width,
                "judge_spread": between,
                "relative_spread": between / width if width else np.nan,
                "order_spread": float(own["order_spread"].mean()),
            }
        )
    return pd.DataFrame(rows)


def _kendall(systems: pd.DataFrame, own: pd.DataFrame) -> float:
    base = systems[systems["system"].eq(SYSTEMS[0])]
    both = base.merge(own, on=["judge", "model"], suffixes=("_base", "")).dropna(
        subset=["rating", "rating_base"]
    )
    taus = [
        kendall(part["rating_base"], part["rating"])
        for _, part in both.groupby("judge")
        if not part[["rating", "rating_base"]].nunique().eq(1).any()
    ]
    return float(np.mean(taus)) if taus else np.nan


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
