"""Quantitative judges: outcomes learnt from votes and from a judge's reasons."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

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
from judgeline.steps.outcomes import completion_ids
from judgeline.steps.step import Made, step
from judgeline.tables.ids import is_among
from judgeline.tables.judging import SCORE_VERDICTS
from judgeline.tables.quantitative import QUANTITATIVE_JUDGES, QUANTITATIVE_OUTCOMES
from judgeline.tables.schema import Table

_ANSWER = ["battle_id", "order", "replicate"]
_NO_SCORES = "no battle has the reasons of single scores"


class Material(NamedTuple):
    """Training data of one method: n scored battles, their presentations, the base judge's shares.

    `base_outcome` (n,) is the base judge's own share of the win for A.
    """

    battles: pd.DataFrame
    shown: Presentations
    base_outcome: NDArray[np.float64]


def pair_material(
    scored_battles: pd.DataFrame, verdicts: pd.DataFrame, embeddings: pd.DataFrame
) -> Material:
    """Return the data of BTL: each order's rationale and score difference."""
    own = embeddings[embeddings["source"].eq("verdict")].rename(columns={"key": "battle_id"})
    usable = verdicts[verdicts["status"].eq("ok") & verdicts["order"].isin(["AB", "BA"])]
    rows = own.merge(usable, on=_ANSWER, how="inner", validate="one_to_one")
    rows = rows[is_among(rows["battle_id"], scored_battles["battle_id"])]
    if rows.empty:
        raise TooLittleToLearnError("no battle has the reasons of a verdict")
    battles = scored_battles[is_among(scored_battles["battle_id"], rows["battle_id"])]
    battles = battles.reset_index(drop=True)
    swapped = rows["order"].eq("BA").to_numpy(dtype=bool)
    shown = presentations(
        np.stack(rows["embedding"].to_list()).astype(float),
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
    scored = score_verdicts["status"].eq("ok") & score_verdicts["expected_score"].notna()
    keys = ["completion_id", "replicate"]
    rows = score_verdicts[scored].merge(
        own[[*keys, "embedding"]], on=keys, how="inner", validate="one_to_one"
    )
    if rows.empty:  # such as of battles without texts
        raise TooLittleToLearnError(_NO_SCORES)
    group, known = pd.factorize(rows["completion_id"])
    texts = sampled_battles.set_index("battle_id").loc[scored_battles["battle_id"]]
    places = [pd.Index(known).get_indexer(completion_ids(texts, side)) for side in "ab"]
    has_both = (places[0] >= 0) & (places[1] >= 0)
    if not has_both.any():
        raise TooLittleToLearnError(_NO_SCORES)
    values = np.column_stack([np.stack(rows["embedding"].to_list()), rows["expected_score"]])
    sums = np.zeros((len(known), values.shape[1]))
    np.add.at(sums, group, values.astype(float))
    means = sums / np.bincount(group)[:, None]
    first, second = (means[place[has_both]] for place in places)
    shown = two_headed(first[:, :-1], second[:, :-1], first[:, -1], second[:, -1])
    base = expit(np.log(first[:, -1]) - np.log(second[:, -1]))
    return Material(scored_battles[has_both].reset_index(drop=True), shown, base)


MANY_VOTES, FEW_FOLDS = 1000, 3
"""From so many votes on, judges learn from two thirds of them: fits take longer, and need less."""


def _outcomes(material: Material, rng: np.random.Generator) -> pd.DataFrame:
    battles, human_outcome = material.battles, as_numbers(material.battles["human_outcome"])
    models = np.unique(battles[["model_a", "model_b"]].to_numpy(object))
    model_a, model_b = (pd.Index(models).get_indexer(battles[f"model_{side}"]) for side in "ab")
    has_many = np.isfinite(human_outcome).sum() >= MANY_VOTES
    try:
        found = cross_fitted_outcomes(
            material.shown,
            model_a,
            model_b,
            human_outcome,
            battles["question_id"].to_numpy(),
            n_models=len(models),
            rng=rng,
            n_folds=FEW_FOLDS if has_many else N_FOLDS,
        )
    except TooLittleToLearnError as error:
        named = re.sub(r"\bmodel (\d+)", lambda k: f"model {models[int(k[1])]!r}", str(error))
        raise TooLittleToLearnError(named) from error
    return pd.DataFrame(
        {
            "held_out_model": np.repeat(models, len(battles)),
            "battle_id": np.tile(battles["battle_id"].to_numpy(dtype=object), len(models)),
            "outcome": found.outcome.ravel(),
        }
    )


def _curve(material: Material, rng: np.random.Generator) -> pd.DataFrame:
    votes = as_numbers(material.battles["human_outcome"]), material.battles["question_id"]
    task = Battles.of(material.shown, material.base_outcome, *votes)
    return as_table(trials(task, Design(), rng=rng).curve(METRICS))


NO_EMBEDDINGS = "there are no embeddings; see the note of rationale_embeddings"

Fit = Callable[[Material, np.random.Generator], pd.DataFrame]


def _materials(
    scored_battles: pd.DataFrame,
    sampled_battles: pd.DataFrame,
    verdicts: pd.DataFrame,
    score_verdicts: pd.DataFrame | None,
    embeddings: pd.DataFrame,
) -> dict[str, Callable[[], Material]]:
    """Return what gathers the training data of each method; nothing where nothing is embedded."""
    scores = SCORE_VERDICTS.empty() if score_verdicts is None else score_verdicts
    if embeddings.empty:
        return {}
    return {
        "btl": partial(pair_material, scored_battles, verdicts, embeddings),
        "btl2": partial(single_material, scored_battles, sampled_battles, scores, embeddings),
    }


def _learnt(
    declared: Table,
    stream: str,
    fit: Fit,
    materials: Mapping[str, Callable[[], Material]],
    settings: Any,
) -> Made:
    """Return what judges learn by each method, from streams of one name."""
    found, notes = [declared.empty()], [] if materials else [NO_EMBEDDINGS]
    for method, material in materials.items():
        rng = keyed_rng(settings.seed, settings.stream, settings.judge, stream, method)
        try:
            own = material()
            found.append(declared.typed(fit(own, rng).assign(method=method)))
        except TooLittleToLearnError as error:  # anything else is wrong, and fails
            notes.append(f"{method}: {error}")
    table = pd.concat(found, ignore_index=True)
    return Made(table, {"note": "; ".join(notes)} if notes else {})


@step(QUANTITATIVE_OUTCOMES, reads=("seed",))
def quantitative_outcomes(
    scored_battles: pd.DataFrame,
    sampled_battles: pd.DataFrame,
    verdicts: pd.DataFrame,
    score_verdicts: pd.DataFrame | None,
    rationale_embeddings: pd.DataFrame,
    *,
    settings: Any,
) -> Made:
    """A's probability of winning a battle, by a judge that saw no vote on it or the held-out model.

    Method btl reads the reasons of verdicts, btl2 those of single scores. A judge sees no vote
    on a battle's own question either; battles without a reason have no row.
    """
    given = scored_battles, sampled_battles, verdicts, score_verdicts, rationale_embeddings
    return _learnt(QUANTITATIVE_OUTCOMES, "quantitative", _outcomes, _materials(*given), settings)


@step(QUANTITATIVE_JUDGES, reads=("seed",))
def quantitative_judges(
    scored_battles: pd.DataFrame,
    sampled_battles: pd.DataFrame,
    verdicts: pd.DataFrame,
    score_verdicts: pd.DataFrame | None,
    rationale_embeddings: pd.DataFrame,
    *,
    settings: Any,
) -> Made:
    """A measure of agreement with votes of a judge that learnt from some, beside its base judge.

    Mean over training sets of one size, on battles of other questions. Errors are in shares
    of a win.
    """
    given = scored_battles, sampled_battles, verdicts, score_verdicts, rationale_embeddings
    return _learnt(QUANTITATIVE_JUDGES, "learning-curve", _curve, _materials(*given), settings)
