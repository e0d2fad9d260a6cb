"""Reference-anchored ratings of a corpus: the reference, preferences over it, and gaps to it.

What belongs here: from tables of battles and outcomes to the arrays of the core, and back. What
does not: the formulas (`judgeline.reference`), and whether the reference serves
(`assets.reference.reach`).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from judgeline.io import score_battles
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
    """The reference model, and the reason for the choice."""

    model: str
    why: str


def choose_reference(battles: pd.DataFrame, named: str | None) -> Reference:
    """Return the configured reference, or the model that met every other one most evenly.

    That is the model whose least-met opponent it met most often; of several, the one with most
    battles, then the first by name. The hub of a star-shaped corpus is the only one to meet all.
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
    table: pd.DataFrame,
    reference: str,
    source: str,
    options: ReferenceOptions,
    *,
    miscoverage: float,
) -> pd.DataFrame:
    """Return ratings of models, in Elo points, by preferences as `against` returns them.

    Wins and losses get the Jeffreys-Beta error. With ties or probabilities among them, preferences
    vary less than that Beta does, and get the error of their own spread instead; a departure from
    the method as published, which has the Beta throughout. That Beta also stays where all
    preferences are equal.
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
    """Return ratings of no model."""
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
    """Return the factor of standard errors: 1 unless the corpus asks for another."""
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


LIKELIHOOD, RUBRIC = "likelihood", "rubric"
"""Where preferences come from: the judge's own probabilities, or outcomes of its rubric scores."""

LEAST_COVERED = 0.8
"""Battles that the preferred source has to cover, as a share of those that the other one covers.
It is preferred for what one battle tells; a tenth of the battles would tell less than all do."""


class Preferences(NamedTuple):
    """A's share of the win by ``battle_id``, NaN where unknown, where it comes from and why."""

    source: str
    share: "pd.Series[float]"
    why: str


def battles_with(battles: pd.DataFrame, model: str) -> "pd.Series[str]":
    """Return the ``battle_id`` of the battles that a model is in, on either side."""
    is_in = battles["model_a"].eq(model) | battles["model_b"].eq(model)
    return battles.loc[is_in, "battle_id"]


def preferences_of(
    soft_outcomes: pd.DataFrame,
    scored_battles: pd.DataFrame | None,
    with_reference: "pd.Series[str]",
) -> Preferences | None:
    """Return a judge's own probabilities if they cover enough, else outcomes of its rubric scores.

    Probabilities say more of a battle, but only of those that have one: they are taken where they
    cover at least `LEAST_COVERED` of the battles with the reference that rubric scores cover.
    Preferences come from one source, never a mixture; None where neither covers such a battle.
    """
    own = soft_outcomes[soft_outcomes["source"].eq(LIKELIHOOD)].set_index("battle_id")
    shares = {LIKELIHOOD: own["soft_outcome"].astype(float)}
    if scored_battles is not None and len(scored_battles):
        shares[RUBRIC] = scored_battles.set_index("battle_id")["judge_outcome"].astype(float)
    covered = {
        source: int(with_reference.isin(share.dropna().index).sum())
        for source, share in shares.items()
    }
    source = covering(covered, prefer=LIKELIHOOD)
    if source is None:
        return None
    counts = ", ".join(f"{name} {n:,}" for name, n in covered.items())
    why = (
        f"{source}. Battles with the reference: {len(with_reference):,}; with preferences: "
        f"{counts}. Probabilities ({LIKELIHOOD}) are taken where they cover at least "
        f"{LEAST_COVERED:.0%} of what the rubric covers"
    )
    return Preferences(source, shares[source], why)


def covering(covered: Mapping[str, int], *, prefer: str) -> str | None:
    """Return the preferred source if it covers `LEAST_COVERED` of what the best one does.

    Otherwise it is the source that covers most battles; None where none covers any.
    """
    most = max(covered, key=lambda source: covered[source], default=prefer)
    if not covered.get(most):
        return None
    return prefer if covered.get(prefer, 0) >= LEAST_COVERED * covered[most] else most


def preferences_by_run(
    battles: pd.DataFrame, source: str, verdicts: pd.DataFrame, choice_verdicts: pd.DataFrame
) -> pd.DataFrame:
    """Return A's share of the win by battle (rows) and run of the judge (columns).

    A run that did not answer in every order is NaN; without any run there is no column.
    """
    if source == LIKELIHOOD:
        return _chosen(choice_verdicts)
    runs = {
        replicate: score_battles(battles, run).set_index("battle_id")["judge_outcome"]
        for replicate, run in verdicts.groupby("replicate")
    }
    return pd.DataFrame(runs)


def _chosen(choice_verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over orders of A's probability with half that of a tie."""
    answered_well = choice_verdicts[choice_verdicts["status"].eq("ok")]
    known = answered_well.dropna(subset=["p_a", "p_tie", "p_b"])
    share = known["p_a"] + known["p_tie"] / 2
    by_run = known.assign(share=share).groupby(["battle_id", "replicate"])["share"]
    asked = choice_verdicts.groupby("battle_id")["order"].nunique()
    answered = by_run.size()
    complete = answered.eq(asked.reindex(answered.index.get_level_values(0)).to_numpy())
    means = by_run.mean()[complete].reset_index()
    return means.pivot_table("share", index="battle_id", columns="replicate")
