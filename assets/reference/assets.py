"""Ratings against a reference, with their diagnostics and checks."""

from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.conditions import follows, judge_check, judge_table
from assets.partitions import corpus_and_judge, corpus_judge_key
from assets.provenance import latest, metadata_of
from assets.reference.anchoring import (
    REFERENCE_DIAGNOSTICS,
    STD_ERROR_TOLERANCE,
    diagnose,
    preferences_by_run,
    preferences_of,
    rate_against,
)
from assets.settings import corpus_of
from judgeline.io.anchoring import against, choose_reference, meetings
from judgeline.reference import LEAST_WITHIN, REACH
from judgeline.report import in_markdown, with_texts
from resources.config.catalog import Catalog
from resources.tables.expectations import evaluate
from resources.tables.reference import REFERENCE_RATINGS
from resources.tables.rules import within

NO_PREFERENCES = (
    "the judge gave no preferences on battles with the reference: let it choose with "
    "log-probabilities ('asks: [choice]' in judges.yaml) or score with the rubric, or "
    "choose another 'reference' in corpora.yaml"
)
_SHOWN = ("models_within_reach", "prompts_within_reach", "spearman_with_mean_preference",
          "std_error_difference")  # fmt: skip
DIAGNOSTICS = "reference_diagnostics"
"""Metadata with the diagnostics behind the ratings, a record each."""
_UNMEASURED = dg.AssetCheckResult(
    passed=False,
    severity=dg.AssetCheckSeverity.WARN,
    description="These reference_ratings came without diagnostics, so that nothing was measured: "
    "make reference_ratings again.",
)


@judge_table("2", follows)
def reference_ratings(
    context: dg.AssetExecutionContext,
    sampled_battles: pd.DataFrame,
    soft_outcomes: pd.DataFrame,
    choice_verdicts: pd.DataFrame,
    scored_battles: pd.DataFrame | None,
    verdicts: pd.DataFrame | None,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A model's gap to one fixed reference model, with a credible interval, in Elo points.

    From the judge's own probabilities where they cover most of the battles with the reference that
    its rubric scores cover, else from outcomes of those.
    Errors are those of one judge and of prompts at large unless the corpus asks for a factor.
    Metadata have its reach over models and prompts, errors against a bootstrap, what abstaining
    would leave, and the leaderboard under other references.
    """
    corpus = corpus_of(context, catalog, "reference", "rating.miscoverage", "rating.seed")
    options, rating = corpus.reference, corpus.rating
    reference = choose_reference(sampled_battles, options.model)
    found = preferences_of(sampled_battles, reference.model, soft_outcomes, scored_battles)
    ratings, diagnostics = REFERENCE_RATINGS.empty(), REFERENCE_DIAGNOSTICS.empty()
    if found is not None:
        by_run = preferences_by_run(sampled_battles, found.source, verdicts, choice_verdicts)
        met, *runs = (
            meetings(sampled_battles, share)
            for share in (found.share, *(by_run[run] for run in by_run))
        )
        table = against(met, reference.model)
        ratings = rate_against(
            table, reference.model, found.source, options, miscoverage=rating.miscoverage
        )
        tables = [against(run, reference.model).reindex_like(table) for run in runs]
        stacked = np.stack(tables, axis=2) if runs else np.empty((*table.shape, 0))
        diagnostics = diagnose(
            table, ratings, met, stacked.astype(float), seed=rating.seed, stream=(corpus.slug,)
        )
    shown = ratings[["rank", "model", "n_prompts", "win_share", "gap", "lower", "upper", "flags"]]
    page = with_texts(shown.round(3), in_markdown).to_markdown(index=False)
    return dg.MaterializeResult(
        value=ratings,
        metadata={
            "reference_model": reference.model,
            "reference_because": reference.why,
            "preferences_from": found.why if found else "nowhere: see the note",
            "finite_population": options.n_population or "not asked for: prompts at large",
            "mean_kappa": options.mean_kappa or "not asked for: errors of one judge",
            "n_beyond_reach": int(ratings["flags"].str.contains("beyond-reach").sum()),
            **(
                {"leaderboard": dg.MetadataValue.md(page)}
                if len(ratings)
                else {"note": NO_PREFERENCES}
            ),
            **_described(diagnostics),
        },
    )


def _described(diagnostics: pd.DataFrame) -> dict[str, Any]:
    names, cells = diagnostics["diagnostic"], diagnostics.astype(object)
    overall = diagnostics[names.isin(_SHOWN) & diagnostics["value"].notna()]
    shown = diagnostics[names.ne("std_error_ratio")].drop(columns="note").round(3)
    return {
        **dict(zip(overall["diagnostic"], overall["value"].astype(float), strict=True)),
        "summary": dg.MetadataValue.md(shown.to_markdown(index=False)),
        DIAGNOSTICS: dg.MetadataValue.json(cells.where(cells.notna(), None).to_dict("records")),
    }


def diagnostics_of(instance: dg.DagsterInstance, corpus: str, judge: str) -> pd.DataFrame | None:
    """Return the diagnostics that the last ratings of a judge came with; None of older ones."""
    record = latest(instance, "reference_ratings", corpus_judge_key(corpus, judge))
    rows = metadata_of(record).get(DIAGNOSTICS)
    return None if rows is None else REFERENCE_DIAGNOSTICS.filled(pd.DataFrame(rows))


@judge_check(reference_ratings)
def reference_has_reach(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    """A reference far above or below the models tells them apart by a handful of prompts."""
    return reach_result(diagnostics_of(context.instance, *corpus_and_judge(context)))


def reach_result(diagnostics: pd.DataFrame | None) -> dg.AssetCheckResult:
    """Return the check that most win shares lie within the reach of the reference."""
    if diagnostics is None:
        return _UNMEASURED
    rule = within(
        "value",
        LEAST_WITHIN,
        note=f"at least {LEAST_WITHIN:.0%} of win shares, over models and over prompts, "
        "lie in [{:g}, {:g}]".format(*REACH),
    )
    return evaluate(
        diagnostics[diagnostics["diagnostic"].astype("str").str.endswith("_within_reach")],
        [rule],
        ids=["diagnostic"],
        remedy="Choose a 'reference' nearer to the models in corpora.yaml; gaps flagged "
        "'beyond-reach' rest on few prompts.",
        severity=dg.AssetCheckSeverity.WARN,
    )


@judge_check(reference_ratings)
def errors_are_those_of_resampling(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    """A closed standard error that is not that of prompts drawn again misstates the intervals."""
    return errors_result(diagnostics_of(context.instance, *corpus_and_judge(context)))


def errors_result(diagnostics: pd.DataFrame | None) -> dg.AssetCheckResult:
    """Return whether each closed standard error is that of prompts drawn again."""
    if diagnostics is None:
        return _UNMEASURED
    rule = within(
        "value",
        high=STD_ERROR_TOLERANCE,
        note="every model's standard error is within "
        f"{STD_ERROR_TOLERANCE:.0%} of that of resampling its prompts",
    )
    return evaluate(
        diagnostics[diagnostics["diagnostic"].eq("std_error_difference")],
        [rule],
        ids=["note"],
        remedy="Judge more battles of the models with few prompts: see 'std_error_ratio' of each "
        "model in the reference_diagnostics of reference_ratings. Until then read their intervals "
        "as rough.",
        severity=dg.AssetCheckSeverity.WARN,
    )
