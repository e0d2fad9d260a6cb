"""Reference-anchored ratings of battles: the reference, preferences over it, and gaps to it."""

import difflib
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judgeline.reference import (
    REACH,
    AnchoredElo,
    anchored_elo,
    anchored_elo_of_preferences,
    finite_population_factor,
    narrow_intervals,
    soft_counts,
)
from judgeline.reliability import reliability_factor
from judgeline.tables.reference import REFERENCE_RATINGS


class Reference(NamedTuple):
    """The reference model, and the reason for the choice."""

    model: str
    why: str


def choose_reference(battles: pd.DataFrame, named: str | None) -> Reference:
    """Return the named reference, or the model that met its rarest opponent most often."""
    pairs = pd.crosstab(battles["model_a"], battles["model_b"])
    names = sorted({*pairs.index, *pairs.columns})
    if named is not None:
        if named not in names:
            near = difflib.get_close_matches(named, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"models are {', '.join(names[:20])}."
            raise ValueError(
                f"no battle has the reference model {named!r}; {hint} Name another one (of "
                "a corpus under 'reference' in corpora.yaml)"
            )
        return Reference(named, "configured")
    square = pairs.reindex(index=names, columns=names, fill_value=0)
    met = (square + square.to_numpy().T).mask(np.eye(len(names), dtype=bool))
    order = pd.DataFrame({"least": met.min(axis=1), "all": met.sum(axis=1)})
    best = order.sort_values(["least", "all"], ascending=False, kind="stable").iloc[0]
    return Reference(
        str(best.name),
        f"met {int((met.loc[best.name] > 0).sum())} of {len(met) - 1} other models, the least-met "
        f"one in {best['least']:.0f} battles: no other model met its least-met one more often",
    )


def meetings(battles: pd.DataFrame, share: "pd.Series[float]") -> pd.DataFrame:
    """Return each model's mean share of the win over each opponent on each question.

    Prompts are the unit of a gap: several battles of two models on one question count once.
    Battles without a share are left out.
    """
    known = battles.assign(preference=battles["battle_id"].map(share)).dropna(subset="preference")
    sides = [
        known[["question_id", ours, theirs]]
        .set_axis(["question_id", "model", "opponent"], axis=1)
        .assign(preference=np.abs(known["preference"] - flip))
        for ours, theirs, flip in (("model_a", "model_b", 0.0), ("model_b", "model_a", 1.0))
    ]
    keys = ["model", "opponent", "question_id"]
    return pd.concat(sides).groupby(keys, as_index=False)["preference"].mean()


def against(met: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Return preferences over a reference, models down and questions across; NaN where unknown."""
    own = met[met["opponent"].eq(reference)]
    return own.pivot_table("preference", index="model", columns="question_id")


def rate_against(
    table: pd.DataFrame, reference: str, source: str, options: Any, *, miscoverage: float
) -> pd.DataFrame:
    """Return `REFERENCE_RATINGS` of models by preferences over a reference, as of `against`.

    Wins and losses get the Jeffreys-Beta error. Preferences with ties or probabilities vary less
    than that Beta does, and get the error of their own spread, unless they are all equal. The
    published method has the Beta throughout. Errors are narrowed by the judges' mean kappa and the
    size of the population of prompts, where `options` give them.
    """
    if table.empty:
        return REFERENCE_RATINGS.empty()
    factors = options.mean_kappa, options.n_population
    known = [values[np.isfinite(values)] for values in table.to_numpy(dtype=float)]
    rows = [_rated(values, miscoverage, *factors) for values in known]
    ratings = pd.DataFrame(rows).assign(model=table.index.to_numpy())
    ratings = ratings.sort_values(["gap", "model"], ascending=[False, True], ignore_index=True)
    ratings = ratings.assign(rank=np.arange(1, len(ratings) + 1))
    return REFERENCE_RATINGS.typed(ratings.assign(reference_model=reference, source=source))


def gaps_against(met: pd.DataFrame, reference: str) -> "pd.Series[float]":
    """Return the gap of every model that met a reference, in Elo points, by name."""
    own = met[met["opponent"].eq(reference)]
    codes, models = pd.factorize(own["model"], sort=True)
    preference = own["preference"].to_numpy(dtype=float)
    wins, losses = (np.bincount(codes, weights=share) for share in (preference, 1 - preference))
    gaps = anchored_elo(wins, np.zeros_like(wins), losses).gap if len(own) else wins
    return pd.Series(gaps, index=models, dtype=float)


def _rated(
    known: np.ndarray, miscoverage: float, mean_kappa: float | None, n_population: int | None
) -> dict[str, object]:
    has_spread = ((known > 0) & (known < 1)).any() and np.ptp(known) > 0
    elo = (
        anchored_elo_of_preferences(known, miscoverage=miscoverage)
        if has_spread
        else anchored_elo(*soft_counts(known), miscoverage=miscoverage)
    )
    factor = _narrowing(known.size, mean_kappa, n_population)
    narrowed = narrow_intervals(elo, factor)
    names = ("win_share", "gap", "lower", "upper", "std_error")
    return {
        "n_prompts": known.size,
        "wins": int((known > 0.5).sum()),
        "ties": int((known == 0.5).sum()),
        "losses": int((known < 0.5).sum()),
        "mean_preference": float(known.mean()),
        **{name: float(getattr(narrowed, name)) for name in names},
        "factor": factor,
        "flags": _flags(known, elo),
    }


def _narrowing(n_prompts: int, mean_kappa: float | None, n_population: int | None) -> float:
    """Return the factor of standard errors: 1 unless another is asked for."""
    factor = 1.0 if mean_kappa is None else reliability_factor(mean_kappa)
    if n_population is None:
        return factor
    if n_prompts > n_population:
        raise ValueError(
            f"a model has {n_prompts} prompts, more than the population of {n_population} they "
            "come from; correct 'reference.n_population' in corpora.yaml, or remove it"
        )
    return factor * float(finite_population_factor(n_prompts, n_population))


def _flags(known: np.ndarray, elo: AnchoredElo) -> str:
    low, high = REACH
    marks = {
        "beyond-reach": not low <= float(elo.win_share) <= high,
        "one-prompt": known.size == 1,
        "all-wins": bool((known > 0.5).all()),
        "all-ties": bool((known == 0.5).all()),
        "all-losses": bool((known < 0.5).all()),
    }
    return ";".join(name for name, holds in marks.items() if holds)
