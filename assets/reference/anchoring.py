"""Reference-anchored ratings of a corpus: who is the reference, and how far the others are from it.

What belongs here: from tables of battles and outcomes to the arrays of the core, and back. What
does not: the formulas (`judgeline.reference.gaps`), and whether the reference serves
(`assets.reference.reach`).
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from judgeline.reference.gaps import (
    AnchoredElo,
    anchored_elo,
    anchored_elo_of_preferences,
    finite_population_factor,
    narrow_intervals,
    soft_counts,
)
from judgeline.reference.reach import REACH
from judgeline.reliability.kappa import reliability_factor
from resources.config.corpora import ReferenceOptions
from resources.suggest import unknown_name

RATING_COLUMNS: tuple[str, ...] = (
    "rank",
    "model",
    "reference_model",
    "source",
    "n_prompts",
    "wins",
    "ties",
    "losses",
    "mean_preference",
    "win_share",
    "gap",
    "lower",
    "upper",
    "std_error",
    "factor",
    "flags",
)
"""Columns of the reference-anchored ratings, one row per model, best gap first."""


class Reference(NamedTuple):
    """The reference model, and why it is that one."""

    model: str
    why: str


def choose_reference(battles: pd.DataFrame, named: str | None) -> Reference:
    """Return the configured reference, or the model that met every other one most evenly.

    That is the model whose least-met opponent it met most often; of several, the one with most
    battles, then the first by name. The hub of a star-shaped corpus is the only one to meet all.

    Parameters
    ----------
    battles : DataFrame
        With ``model_a`` and ``model_b``, at least one row.
    named : str or None
        The configured reference.

    Raises
    ------
    ValueError
        If the configured reference has no battle.
    """
    met = _times_met(battles)
    if named is not None:
        if named not in met.index:
            where = "'reference' in config/corpora.yaml, with battles of it in the corpus"
            raise ValueError(unknown_name("reference model", named, met.index, where))
        return Reference(named, "configured")
    others = met.mask(np.eye(len(met), dtype=bool))
    order = pd.DataFrame({"least": others.min(axis=1), "all": others.sum(axis=1)})
    best = order.sort_values(["least", "all"], ascending=False, kind="stable").iloc[0]
    n_met = int((others.loc[best.name] > 0).sum())
    return Reference(
        str(best.name),
        f"met {n_met} of {len(met) - 1} other models, the least-met one in {best['least']:.0f} "
        "battles: more than any other model's least-met one",
    )


def _times_met(battles: pd.DataFrame) -> pd.DataFrame:
    pairs = pd.crosstab(battles["model_a"], battles["model_b"])
    names = sorted({*pairs.index, *pairs.columns})
    square = pairs.reindex(index=names, columns=names, fill_value=0)
    return square + square.to_numpy().T


def meetings(battles: pd.DataFrame, share: "pd.Series[float]") -> pd.DataFrame:
    """Return the share of each model's win over each opponent on each question.

    Both sides of a battle are a row; battles of the same models on one question count once, by
    their mean, since prompts are the unit of a gap. Battles without a share are left out.
    """
    found = battles["battle_id"].map(share)
    known = battles.assign(preference=found)[found.notna().to_numpy()]
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
    table: pd.DataFrame,
    reference: str,
    source: str,
    options: ReferenceOptions,
    *,
    miscoverage: float,
) -> pd.DataFrame:
    """Return the ratings of models by their preferences over a reference.

    Wins and losses get the Jeffreys-Beta error. With ties or probabilities among them, preferences
    vary less than that Beta does, and get the error of their own spread instead; a departure from
    the method as published, which has the Beta throughout. That Beta also stays where all
    preferences are equal.

    Parameters
    ----------
    table : DataFrame, shape (models, questions)
        As `against` returns it.
    reference, source : str
        The reference model, and where its preferences come from.
    options : ReferenceOptions
        Factors that narrow errors; none unless they are asked for.
    miscoverage : float
        Share of intervals that may miss, in (0, 1).

    Returns
    -------
    DataFrame
        `RATING_COLUMNS`; gaps, bounds and errors in Elo points relative to the reference.

    Raises
    ------
    ValueError
        If a model has more prompts than the configured population.
    """
    rows = [
        {
            "model": model,
            "reference_model": reference,
            "source": source,
            **_rated(values[np.isfinite(values)], options, miscoverage),
        }
        for model, values in zip(table.index, table.to_numpy(dtype=float), strict=True)
    ]
    if not rows:
        return no_ratings()
    ratings = pd.DataFrame(rows).sort_values(["gap", "model"], ascending=[False, True])
    ranked = ratings.assign(rank=np.arange(1, len(ratings) + 1))
    return ranked[list(RATING_COLUMNS)].astype({"rank": "Int64"}).reset_index(drop=True)


def no_ratings() -> pd.DataFrame:
    """Return ratings of no model, with the columns and types of a table that has some."""
    texts = dict.fromkeys(("model", "reference_model", "source", "flags"), "str")
    counts = dict.fromkeys(("n_prompts", "wins", "ties", "losses"), "int64")
    kinds = {**dict.fromkeys(RATING_COLUMNS, "float64"), **texts, **counts, "rank": "Int64"}
    return pd.DataFrame({name: pd.Series(dtype=kinds[name]) for name in RATING_COLUMNS})


def _rated(known: np.ndarray, options: ReferenceOptions, miscoverage: float) -> dict[str, object]:
    is_between = ((known > 0) & (known < 1)).any()
    elo = (
        anchored_elo_of_preferences(known, miscoverage=miscoverage)
        if is_between and np.ptp(known) > 0
        else anchored_elo(*soft_counts(known), miscoverage=miscoverage)
    )
    factor = narrowing(options, known.size)
    narrowed = narrow_intervals(elo, factor)
    return {
        "n_prompts": known.size,
        "wins": int((known > 0.5).sum()),
        "ties": int((known == 0.5).sum()),
        "losses": int((known < 0.5).sum()),
        "mean_preference": float(known.mean()),
        **{name: float(getattr(narrowed, name)) for name in _TAKEN},
        "factor": factor,
        "flags": _flags(known, elo),
    }


_TAKEN = ("win_share", "gap", "lower", "upper", "std_error")


def narrowing(options: ReferenceOptions, n_prompts: int) -> float:
    """Return what errors are multiplied by: 1 unless the corpus asks for a factor.

    Raises
    ------
    ValueError
        If there are more prompts than the configured population.
    """
    factor = 1.0 if options.mean_kappa is None else reliability_factor(options.mean_kappa)
    if options.n_population is None:
        return factor
    if n_prompts > options.n_population:
        raise ValueError(
            f"a model has {n_prompts} prompts, more than the population of "
            f"{options.n_population} they come from; correct 'reference.n_population' in "
            "config/corpora.yaml, or remove it"
        )
    return factor * float(finite_population_factor(n_prompts, options.n_population))


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
