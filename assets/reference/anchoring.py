"""Reference-anchored ratings of a corpus: the reference, preferences over it, and gaps to it."""

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
from resources.tables.reference import REFERENCE_RATINGS

LIKELIHOOD, RUBRIC = "likelihood", "rubric"
"""Where preferences come from: the judge's own probabilities, or outcomes of its rubric scores."""

LEAST_COVERED = 0.8
"""Share of the best source's battles that the preferred source has to cover: a probability says
more of one battle than an outcome does, but a tenth of the battles say less than all of them."""


class Reference(NamedTuple):
    """The reference model, and the reason for the choice."""

    model: str
    why: str


def choose_reference(battles: pd.DataFrame, named: str | None) -> Reference:
    """Return the configured reference, or the model whose least-met opponent it met most often.

    Ties go to the model with most battles, then to the first by name.
    """
    pairs = pd.crosstab(battles["model_a"], battles["model_b"])
    names = sorted({*pairs.index, *pairs.columns})
    if named is not None:
        if named not in names:
            where = "'reference' in config/corpora.yaml, with battles of it in the corpus"
            raise ValueError(unknown_name("reference model", named, names, where))
        return Reference(named, "configured")
    square = pairs.reindex(index=names, columns=names, fill_value=0)
    met = (square + square.to_numpy().T).mask(np.eye(len(names), dtype=bool))
    order = pd.DataFrame({"least": met.min(axis=1), "all": met.sum(axis=1)})
    best = order.sort_values(["least", "all"], ascending=False, kind="stable").iloc[0]
    return Reference(
        str(best.name),
        f"met {int((met.loc[best.name] > 0).sum())} of {len(met) - 1} other models, the least-met "
        f"one in {best['least']:.0f} battles: more than any other model's least-met one",
    )


# ------------------------------------------------------------------ preferences


class Preferences(NamedTuple):
    """A's share of the win by ``battle_id``, NaN where unknown, where it comes from and why."""

    source: str
    share: "pd.Series[float]"
    why: str


def preferences_of(
    battles: pd.DataFrame,
    reference: str,
    soft_outcomes: pd.DataFrame,
    scored_battles: pd.DataFrame | None,
) -> Preferences | None:
    """Return probabilities that cover enough battles with the reference, else rubric outcomes.

    Preferences come from one source, never a mixture; None where neither covers such a battle.
    """
    is_in = battles["model_a"].eq(reference) | battles["model_b"].eq(reference)
    with_reference = battles.loc[is_in, "battle_id"]
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
    return Preferences(
        source,
        shares[source],
        f"{source}. Battles with the reference: {len(with_reference):,}; with preferences: "
        f"{counts}. Probabilities ({LIKELIHOOD}) are taken where they cover at least "
        f"{LEAST_COVERED:.0%} of what the rubric covers",
    )


def covering(covered: Mapping[str, int], *, prefer: str) -> str | None:
    """Return the preferred source where it covers `LEAST_COVERED` of the best one's battles.

    Otherwise it is the source that covers most battles; None where none covers any.
    """
    most = max(covered, key=lambda source: covered[source], default=prefer)
    if not covered.get(most):
        return None
    return prefer if covered.get(prefer, 0) >= LEAST_COVERED * covered[most] else most


def preferences_by_run(
    battles: pd.DataFrame, source: str, verdicts: pd.DataFrame, choice_verdicts: pd.DataFrame
) -> pd.DataFrame:
    """Return A's share by battle (rows) and run of the judge (columns), NaN for a lacking order."""
    if source == RUBRIC:
        runs = {
            replicate: score_battles(battles, run).set_index("battle_id")["judge_outcome"]
            for replicate, run in verdicts.groupby("replicate")
        }
        return pd.DataFrame(runs)
    ok = choice_verdicts[choice_verdicts["status"].eq("ok")].dropna(subset=["p_a", "p_tie", "p_b"])
    by_run = ok.assign(share=ok["p_a"] + ok["p_tie"] / 2).groupby(["battle_id", "replicate"])
    asked = choice_verdicts.groupby("battle_id")["order"].nunique()
    answered = by_run.size()
    complete = answered.eq(asked.reindex(answered.index.get_level_values(0)).to_numpy())
    means = by_run["share"].mean()[complete].reset_index()
    return means.pivot_table("share", index="battle_id", columns="replicate")


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


# ------------------------------------------------------------------ ratings


def rate_against(
    table: pd.DataFrame,
    reference: str,
    source: str,
    options: ReferenceOptions,
    *,
    miscoverage: float,
) -> pd.DataFrame:
    """Return `REFERENCE_RATINGS` of models by their preferences over a reference, from `against`.

    Wins and losses get the Jeffreys-Beta error. Preferences with ties or probabilities vary less
    than that Beta does, and get the error of their own spread, unless they are all equal. The
    published method has the Beta throughout.
    """
    known = [values[np.isfinite(values)] for values in table.to_numpy(dtype=float)]
    rows = [_rated(values, options, miscoverage) for values in known]
    if not rows:
        return REFERENCE_RATINGS.empty()
    ratings = pd.DataFrame(rows).assign(
        model=table.index.to_numpy(), reference_model=reference, source=source
    )
    ratings = ratings.sort_values(["gap", "model"], ascending=[False, True], ignore_index=True)
    return REFERENCE_RATINGS.typed(ratings.assign(rank=np.arange(1, len(ratings) + 1)))


def gaps_against(met: pd.DataFrame, reference: str) -> "pd.Series[float]":
    """Return the gap of every model that met a reference, in Elo points, by name."""
    table = against(met, reference)
    if table.empty:
        return pd.Series(dtype=float)
    wins = table.sum(axis=1).to_numpy()
    losses = (1 - table).sum(axis=1).to_numpy()
    return pd.Series(anchored_elo(wins, np.zeros_like(wins), losses).gap, index=table.index)


def _rated(known: np.ndarray, options: ReferenceOptions, miscoverage: float) -> dict[str, object]:
    has_spread = ((known > 0) & (known < 1)).any() and np.ptp(known) > 0
    elo = (
        anchored_elo_of_preferences(known, miscoverage=miscoverage)
        if has_spread
        else anchored_elo(*soft_counts(known), miscoverage=miscoverage)
    )
    factor = _narrowing(options, known.size)
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


def _narrowing(options: ReferenceOptions, n_prompts: int) -> float:
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
