"""Quantitative judges: outcomes learnt from votes and from a judge's reasons."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import dagster as dg
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from assets.conditions import follows, table_asset
from assets.partitions import corpus_and_judge
from assets.settings import rating_of
from judgeline.elo import keyed_rng
from judgeline.io import as_numbers, as_table, verdict_differences
from judgeline.quantitative import (
    METRICS,
    N_FOLDS,
    Battles,
    Design,
    Presentations,
    TooLittleToLearnError,
    cross_fitted_outcomes,
    presentations,
    trials,
    two_headed,
)
from resources.config.catalog import Catalog
from resources.judges.forms.score import completion_ids
from resources.tables.quantitative import QUANTITATIVE_JUDGES, QUANTITATIVE_OUTCOMES
from resources.tables.schema import Table

_ANSWER = ["battle_id", "order", "replicate"]


class Material(NamedTuple):
    """Training data of one method; `shown` is None if no battle is complete.

    `battles`: n rows of the scored battles; `shown`: their presentations; `base_outcome` (n,):
    the base judge's own share of the win for A.
    """

    battles: pd.DataFrame
    shown: Presentations | None
    base_outcome: NDArray[np.float64]


def pair_material(
    scored_battles: pd.DataFrame, verdicts: pd.DataFrame, embeddings: pd.DataFrame
) -> Material:
    """Return the data of BTL: each order's rationale and score difference."""
    own = embeddings[embeddings["source"].eq("verdict")].rename(columns={"key": "battle_id"})
    usable = verdicts[verdicts["status"].eq("ok") & verdicts["order"].isin(["AB", "BA"])]
    rows = own.merge(usable, on=_ANSWER, how="inner", validate="one_to_one")
    rows = rows[rows["battle_id"].isin(scored_battles["battle_id"])]
    battles = scored_battles[scored_battles["battle_id"].isin(rows["battle_id"])]
    battles = battles.reset_index(drop=True)
    if rows.empty:
        return Material(battles, None, np.empty(0))
    swapped = rows["order"].eq("BA").to_numpy(dtype=bool)
    shown = presentations(
        _stacked(rows["embedding"]),
        np.where(swapped, -1, 1) * verdict_differences(rows),
        pd.Index(battles["battle_id"]).get_indexer(rows["battle_id"]),
        swapped,
    )
    return Material(battles, shown, battles["judge_outcome"].to_numpy(dtype=float))


def single_material(
    scored_battles: pd.DataFrame,
    sampled_battles: pd.DataFrame,
    score_verdicts: pd.DataFrame,
    embeddings: pd.DataFrame,
) -> Material:
    """Return the data of BTL2: the rationale and the expected score of either completion."""
    own = embeddings[embeddings["source"].eq("score")].rename(columns={"key": "completion_id"})
    rows = score_verdicts[
        score_verdicts["status"].eq("ok") & score_verdicts["expected_score"].notna()
    ].merge(
        own[["completion_id", "replicate", "embedding"]],
        on=["completion_id", "replicate"],
        how="inner",
        validate="one_to_one",
    )
    if rows.empty:
        return Material(scored_battles.iloc[:0], None, np.empty(0))
    group, known = pd.factorize(rows["completion_id"])
    texts = sampled_battles.set_index("battle_id").loc[scored_battles["battle_id"]]
    places = [pd.Index(known).get_indexer(completion_ids(texts, side)) for side in "ab"]
    has_both = (places[0] >= 0) & (places[1] >= 0)
    battles = scored_battles[has_both].reset_index(drop=True)
    if battles.empty:
        return Material(battles, None, np.empty(0))
    vectors = _means(_stacked(rows["embedding"]), group)
    scores = _means(rows["expected_score"].to_numpy(dtype=float)[:, None], group)[:, 0]
    first, second = places[0][has_both], places[1][has_both]
    shown = two_headed(vectors[first], vectors[second], scores[first], scores[second])
    return Material(battles, shown, expit(np.log(scores[first]) - np.log(scores[second])))


def _stacked(embeddings: pd.Series) -> NDArray[np.float64]:
    return np.stack(embeddings.to_list()).astype(float)


def _means(values: NDArray[np.float64], group: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the mean of the rows (n, d) of each group, shape (g, d)."""
    sums = np.zeros((int(group.max()) + 1, values.shape[1]))
    np.add.at(sums, group, values)
    return sums / np.bincount(group)[:, None]


MANY_VOTES, FEW_FOLDS = 1000, 3
"""From so many votes on, judges learn from two thirds of them: fits take longer, and need less."""
_Fit = Callable[[str, Material, Presentations, np.random.Generator], pd.DataFrame]


def _learnt(declared: Table, stream: str, fit: _Fit, about: str) -> dg.AssetsDefinition:
    """Return the asset of what judges learn by either method, from streams of one name."""

    @table_asset("2", follows, name=declared.name, description=about)
    def learnt(
        context: dg.AssetExecutionContext,
        scored_battles: pd.DataFrame,
        sampled_battles: pd.DataFrame,
        verdicts: pd.DataFrame,
        score_verdicts: pd.DataFrame,
        rationale_embeddings: pd.DataFrame,
        catalog: Catalog,
    ) -> dg.MaterializeResult[pd.DataFrame]:
        corpus, judge = corpus_and_judge(context)
        seed = rating_of(context, catalog, "seed").seed
        if rationale_embeddings.empty:
            return declared.without("there are no embeddings; see the note of rationale_embeddings")
        found, notes = [declared.empty()], []
        pairs = pair_material(scored_battles, verdicts, rationale_embeddings)
        singles = single_material(
            scored_battles, sampled_battles, score_verdicts, rationale_embeddings
        )
        for method, material, lacking in (
            ("btl", pairs, "a verdict"),
            ("btl2", singles, "single scores"),
        ):
            if material.shown is None:
                notes.append(f"{method}: no battle has the reasons of {lacking}")
                continue
            try:
                rng = keyed_rng(seed, corpus, judge, stream, method)
                found.append(declared.typed(fit(method, material, material.shown, rng)))
            except TooLittleToLearnError as error:  # anything else is wrong, and fails
                notes.append(f"{method}: {_named(str(error), _models(material.battles))}")
        metadata = {"note": "; ".join(notes)} if notes else {}
        return dg.MaterializeResult(value=pd.concat(found, ignore_index=True), metadata=metadata)

    asset: dg.AssetsDefinition = learnt
    return asset


def _outcomes(
    method: str, material: Material, shown: Presentations, rng: np.random.Generator
) -> pd.DataFrame:
    battles, models = material.battles, _models(material.battles)
    human_outcome = as_numbers(battles["human_outcome"])
    sides = [pd.Index(models).get_indexer(battles[side]) for side in ("model_a", "model_b")]
    found = cross_fitted_outcomes(
        shown,
        sides[0],
        sides[1],
        human_outcome,
        battles["question_id"].to_numpy(),
        n_models=len(models),
        rng=rng,
        n_folds=_folds_for(human_outcome),
    )
    return pd.DataFrame(
        {
            "held_out_model": np.repeat(np.array(models, dtype=object), len(battles)),
            "battle_id": np.tile(battles["battle_id"].to_numpy(dtype=object), len(models)),
            "method": method,
            "outcome": found.outcome.ravel(),
        }
    )


def _folds_for(human_outcome: np.ndarray[Any, Any]) -> int:
    return FEW_FOLDS if np.isfinite(human_outcome).sum() >= MANY_VOTES else N_FOLDS


def _curve(
    method: str, material: Material, shown: Presentations, rng: np.random.Generator
) -> pd.DataFrame:
    votes = as_numbers(material.battles["human_outcome"]), material.battles["question_id"]
    task = Battles.of(shown, material.base_outcome, *votes)
    return as_table(trials(task, Design(), rng=rng).curve(METRICS)).assign(method=method)


def _models(battles: pd.DataFrame) -> list[str]:
    return sorted({*battles["model_a"], *battles["model_b"]})


def _named(message: str, models: list[str]) -> str:
    """Return a message of the core with the models' names in place of their codes."""
    return re.sub(r"\bmodel (\d+)", lambda found: f"model {models[int(found[1])]!r}", message)


quantitative_outcomes = _learnt(
    QUANTITATIVE_OUTCOMES,
    "quantitative",
    _outcomes,
    """A's probability of winning a battle, by a judge that saw no vote on it or the held-out model.

    Method btl reads the reasons of verdicts, btl2 those of single scores. A judge sees no vote
    on a battle's own question either; battles without a reason have no row.
    """,
)
quantitative_judges = _learnt(
    QUANTITATIVE_JUDGES,
    "learning-curve",
    _curve,
    """A measure of agreement with votes of a judge that learnt from some, beside its base judge.

    Mean over training sets of one size, on battles of other questions. Errors are in shares
    of a win.
    """,
)
