"""Quantitative judges: what a judge's reasons say beyond its scores, learnt from votes."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import dagster as dg
import numpy as np
import pandas as pd

from assets.columns import as_numbers, as_table
from assets.conditions import FOLLOWS, OF_CORPUS_AND_JUDGE, checks_of
from assets.partitions import corpus_and_judge, of_corpus
from assets.quantitative.tables import Material, pair_material, single_material
from assets.settings import corpus_of
from judgeline.elo import keyed_rng
from judgeline.quantitative import (
    N_FOLDS,
    TooLittleToLearnError,
    cross_fitted_outcomes,
    learning_curve,
)
from resources.config.catalog import Catalog
from resources.tables.quantitative import QUANTITATIVE_JUDGES, QUANTITATIVE_OUTCOMES

MANY_VOTES, FEW_FOLDS = 1000, 3
"""From so many votes on, judges learn from two thirds of them: fits take longer, and need less."""


class _Tables(NamedTuple):
    """What both tables are made from."""

    scored_battles: pd.DataFrame
    sampled_battles: pd.DataFrame
    verdicts: pd.DataFrame
    score_verdicts: pd.DataFrame
    embeddings: pd.DataFrame


class _Result(NamedTuple):
    """The rows of each method that could be had, and why the others could not."""

    tables: list[pd.DataFrame]
    notes: list[str]


@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    group_name="scoring",
    code_version="2",
    automation_condition=FOLLOWS,
    ins={"sampled_battles": of_corpus()},
)
def quantitative_outcomes(
    context: dg.AssetExecutionContext,
    scored_battles: pd.DataFrame,
    sampled_battles: pd.DataFrame,
    verdicts: pd.DataFrame,
    score_verdicts: pd.DataFrame,
    rationale_embeddings: pd.DataFrame,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A's probability of winning a battle, by a judge that saw no vote on it or the held-out model.

    Method btl reads the reasons of verdicts, btl2 those of single scores. A judge sees no vote
    on a battle's own question either; battles without a reason have no row.
    """
    corpus, judge = corpus_and_judge(context)
    seed = corpus_of(context, catalog, "rating.seed").rating.seed

    def fitted(method: str, material: Material) -> pd.DataFrame:
        rng = keyed_rng(seed, corpus, judge, "quantitative", method)
        return _outcomes(method, material, rng)

    tables = _Tables(
        scored_battles, sampled_battles, verdicts, score_verdicts, rationale_embeddings
    )
    result = _by_method(tables, fitted)
    table = pd.concat([QUANTITATIVE_OUTCOMES.empty(), *result.tables], ignore_index=True)
    counts = table.groupby("method")["battle_id"].nunique()
    return dg.MaterializeResult(
        value=table,
        metadata={
            **{f"n_battles_{method}": int(n) for method, n in counts.items()},
            "n_scored_battles": len(scored_battles),
            "n_folds": _folds_for(as_numbers(scored_battles["human_outcome"])),
            **_noted(result),
        },
    )


@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    group_name="scoring",
    code_version="2",
    automation_condition=FOLLOWS,
    ins={"sampled_battles": of_corpus()},
)
def quantitative_judges(
    context: dg.AssetExecutionContext,
    scored_battles: pd.DataFrame,
    sampled_battles: pd.DataFrame,
    verdicts: pd.DataFrame,
    score_verdicts: pd.DataFrame,
    rationale_embeddings: pd.DataFrame,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A measure of agreement with votes of a judge that learnt from some, beside its base judge.

    Mean over training sets of one size, on battles of other questions. Errors are in shares
    of a win.
    """
    corpus, judge = corpus_and_judge(context)
    seed = corpus_of(context, catalog, "rating.seed").rating.seed

    def curve(method: str, material: Material) -> pd.DataFrame:
        rng = keyed_rng(seed, corpus, judge, "learning-curve", method)
        return _curve(method, material, rng)

    tables = _Tables(
        scored_battles, sampled_battles, verdicts, score_verdicts, rationale_embeddings
    )
    result = _by_method(tables, curve)
    table = pd.concat([QUANTITATIVE_JUDGES.empty(), *result.tables], ignore_index=True)
    shown = table.drop(columns=["n_sets", "n_test"]).round(3).to_markdown(index=False)
    return dg.MaterializeResult(
        value=table, metadata={"curve": dg.MetadataValue.md(shown), **_noted(result)}
    )


def _by_method(tables: _Tables, fitted: Callable[[str, Material], pd.DataFrame]) -> _Result:
    """Return what each method comes to; what the data do not allow is a note, not an error."""
    scored, sampled, verdicts, scores, embeddings = tables
    if embeddings.empty:
        return _Result([], ["there are no embeddings; see the note of rationale_embeddings"])
    result = _Result([], [])
    for method, material, lacking in (
        ("btl", pair_material(scored, verdicts, embeddings), "a verdict"),
        ("btl2", single_material(scored, sampled, scores, embeddings), "single scores"),
    ):
        if material.shown is None:
            result.notes.append(f"{method}: no battle has the reasons of {lacking}")
            continue
        try:
            result.tables.append(fitted(method, material))
        except TooLittleToLearnError as error:  # anything else is wrong, and fails
            result.notes.append(f"{method}: {_named(str(error), _models(material.battles))}")
    return result


def _outcomes(method: str, material: Material, rng: np.random.Generator) -> pd.DataFrame:
    battles, models = material.battles, _models(material.battles)
    codes = {model: code for code, model in enumerate(models)}
    human_outcome = as_numbers(battles["human_outcome"])
    found = cross_fitted_outcomes(
        material.shown,
        battles["model_a"].map(codes).to_numpy(),
        battles["model_b"].map(codes).to_numpy(),
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
    ).astype(QUANTITATIVE_OUTCOMES.dtypes)


def _folds_for(human_outcome: np.ndarray[Any, Any]) -> int:
    return FEW_FOLDS if np.isfinite(human_outcome).sum() >= MANY_VOTES else N_FOLDS


def _curve(method: str, material: Material, rng: np.random.Generator) -> pd.DataFrame:
    battles = material.battles
    curve = learning_curve(
        material.shown,
        material.base_outcome,
        as_numbers(battles["human_outcome"]),
        battles["question_id"].to_numpy(),
        rng=rng,
    )
    table = as_table(curve)
    table.insert(0, "method", method)
    return table.astype(QUANTITATIVE_JUDGES.dtypes)


def _models(battles: pd.DataFrame) -> Sequence[str]:
    return sorted({*battles["model_a"], *battles["model_b"]})


def _named(message: str, models: Sequence[str]) -> str:
    """Return a message of the core with the models' names in place of their codes."""
    return re.sub(r"\bmodel (\d+)", lambda found: f"model {models[int(found[1])]!r}", message)


def _noted(result: _Result) -> dict[str, Any]:
    return {"note": "; ".join(result.notes)} if result.notes else {}


outcome_checks = checks_of(QUANTITATIVE_OUTCOMES)
judge_checks = checks_of(QUANTITATIVE_JUDGES)
