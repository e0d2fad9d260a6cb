"""Assets of reference-anchored Elo; with their checks."""

from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.conditions import (
    FOLLOWS_WITHOUT_SCORES,
    OF_CORPUS_AND_JUDGE,
    checks_of,
    judge_check,
)
from assets.partitions import corpus_and_judge, if_there, of_corpus
from assets.reference.anchoring import preferences_by_run, preferences_of, rate_against
from assets.reference.reach import STD_ERROR_TOLERANCE, diagnose
from assets.settings import corpus_of, rating_of
from judgeline.io.anchoring import against, choose_reference, meetings
from judgeline.reference import LEAST_WITHIN, REACH
from judgeline.report import in_markdown, with_texts
from resources.config.catalog import Catalog
from resources.tables.expectations import evaluate
from resources.tables.reference import REFERENCE_DIAGNOSTICS, REFERENCE_RATINGS
from resources.tables.rules import within

NO_PREFERENCES = (
    "the judge gave no preferences on battles with the reference: let it choose with "
    "log-probabilities ('asks: [choice]' in judges.yaml) or score with the rubric, or "
    "choose another 'reference' in corpora.yaml"
)
_SHOWN = ("models_within_reach", "prompts_within_reach", "spearman_with_mean_preference",
          "std_error_difference")  # fmt: skip
_OF_REFERENCE: dict[str, Any] = {
    **OF_CORPUS_AND_JUDGE,
    "automation_condition": FOLLOWS_WITHOUT_SCORES,
    "ins": {"sampled_battles": of_corpus(), "scored_battles": if_there()},
}


@dg.asset(**_OF_REFERENCE, code_version="1")
def reference_ratings(
    context: dg.AssetExecutionContext,
    sampled_battles: pd.DataFrame,
    soft_outcomes: pd.DataFrame,
    scored_battles: pd.DataFrame | None,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A model's gap to one fixed reference model, with a credible interval, in Elo points.

    From the judge's own probabilities where they cover most of the battles with the reference that
    its rubric scores cover, else from outcomes of those.
    Errors are those of one judge and of prompts at large unless the corpus asks for a factor.
    """
    corpus = corpus_of(context, catalog, "reference", "rating.miscoverage")
    options = corpus.reference
    reference = choose_reference(sampled_battles, options.model)
    found = preferences_of(sampled_battles, reference.model, soft_outcomes, scored_battles)
    ratings = REFERENCE_RATINGS.empty()
    if found is not None:
        ratings = rate_against(
            against(meetings(sampled_battles, found.share), reference.model),
            reference.model,
            found.source,
            options,
            miscoverage=corpus.rating.miscoverage,
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
        },
    )


@dg.asset(**_OF_REFERENCE, code_version="2")
def reference_diagnostics(
    context: dg.AssetExecutionContext,
    reference_ratings: pd.DataFrame,
    sampled_battles: pd.DataFrame,
    soft_outcomes: pd.DataFrame,
    scored_battles: pd.DataFrame | None,
    verdicts: pd.DataFrame,
    choice_verdicts: pd.DataFrame,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """One named diagnostic of a judge's reference, with value, unit and threshold if it has one.

    Reach over models and prompts, errors against a bootstrap, what abstaining would leave, and
    the leaderboard under other references.
    """
    corpus, _ = corpus_and_judge(context)
    seed = rating_of(context, catalog, "seed").seed
    reference = "" if reference_ratings.empty else reference_ratings["reference_model"].iloc[0]
    found = preferences_of(sampled_battles, reference, soft_outcomes, scored_battles)
    if found is None:
        return REFERENCE_DIAGNOSTICS.without(NO_PREFERENCES)
    met = meetings(sampled_battles, found.share)
    table = against(met, reference)
    by_run = preferences_by_run(sampled_battles, found.source, verdicts, choice_verdicts)
    runs = [
        against(meetings(sampled_battles, by_run[run]), reference).reindex_like(table)
        for run in by_run
    ]
    diagnostics = diagnose(
        table,
        reference_ratings,
        met,
        np.stack(runs, axis=2).astype(float) if runs else np.empty((*table.shape, 0)),
        seed=seed,
        stream=(corpus,),
    )
    names = diagnostics["diagnostic"]
    overall = diagnostics[names.isin(_SHOWN) & diagnostics["value"].notna()]
    shown = diagnostics[names.ne("std_error_ratio")].drop(columns="note").round(3)
    return dg.MaterializeResult(
        value=diagnostics,
        metadata={
            **dict(zip(overall["diagnostic"], overall["value"].astype(float), strict=True)),
            "summary": dg.MetadataValue.md(shown.to_markdown(index=False)),
        },
    )


rating_checks = checks_of(REFERENCE_RATINGS)


@judge_check(reference_diagnostics)
def reference_has_reach(reference_diagnostics: pd.DataFrame) -> dg.AssetCheckResult:
    """A reference far above or below the models tells them apart by a handful of prompts."""
    rule = within(
        "value",
        LEAST_WITHIN,
        note=f"at least {LEAST_WITHIN:.0%} of win shares, over models and over prompts, "
        "lie in [{:g}, {:g}]".format(*REACH),
    )
    names = reference_diagnostics["diagnostic"].astype("str")
    return evaluate(
        reference_diagnostics[names.str.endswith("_within_reach")],
        [rule],
        ids=["diagnostic"],
        remedy="Choose a 'reference' nearer to the models in corpora.yaml; gaps flagged "
        "'beyond-reach' rest on few prompts.",
        severity=dg.AssetCheckSeverity.WARN,
    )


@judge_check(reference_diagnostics)
def errors_are_those_of_resampling(reference_diagnostics: pd.DataFrame) -> dg.AssetCheckResult:
    """A closed standard error that is not that of prompts drawn again misstates the intervals."""
    rule = within(
        "value",
        high=STD_ERROR_TOLERANCE,
        note="every model's standard error is within "
        f"{STD_ERROR_TOLERANCE:.0%} of that of resampling its prompts",
    )
    return evaluate(
        reference_diagnostics[reference_diagnostics["diagnostic"].eq("std_error_difference")],
        [rule],
        ids=["note"],
        remedy="Judge more battles of the models with few prompts: see 'std_error_ratio' of each "
        "model in reference_diagnostics. Until then read their intervals as rough.",
        severity=dg.AssetCheckSeverity.WARN,
    )
