"""Preferences of a judge over the reference of a corpus, and `REFERENCE_RATINGS` made of them."""

from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd

from judgeline.io import anchoring, score_battles
from resources.config.corpora import ReferenceOptions
from resources.tables.reference import REFERENCE_RATINGS

LIKELIHOOD, RUBRIC = "likelihood", "rubric"
"""Where preferences come from: the judge's own probabilities, or outcomes of its rubric scores."""

LEAST_COVERED = 0.8
"""Share of the best source's battles that the preferred source has to cover: a probability says
more of one battle than an outcome does, but a tenth of the battles say less than all of them."""


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
    """Return probabilities that cover enough battles with the reference, else rubric outcomes."""
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
    """Return the preferred source if it covers `LEAST_COVERED` of the best, else the best one."""
    most = max(covered, key=lambda source: covered[source], default=prefer)
    if not covered.get(most):
        return None
    return prefer if covered.get(prefer, 0) >= LEAST_COVERED * covered[most] else most


def preferences_by_run(
    battles: pd.DataFrame,
    source: str,
    verdicts: pd.DataFrame | None,
    choice_verdicts: pd.DataFrame,
) -> pd.DataFrame:
    """Return A's share by battle (rows) and run of the judge (columns), NaN for a lacking order."""
    if source == RUBRIC:
        if verdicts is None:
            return pd.DataFrame()
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


def rate_against(
    table: pd.DataFrame,
    reference: str,
    source: str,
    options: ReferenceOptions,
    *,
    miscoverage: float,
) -> pd.DataFrame:
    """Return `REFERENCE_RATINGS` of models by preferences over a reference, as of `against`."""
    if table.empty:
        return REFERENCE_RATINGS.empty()
    ratings = anchoring.rate_against(
        table,
        miscoverage=miscoverage,
        mean_kappa=options.mean_kappa,
        n_population=options.n_population,
    )
    return REFERENCE_RATINGS.typed(ratings.assign(reference_model=reference, source=source))
