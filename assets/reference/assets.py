"""Reference-anchored ratings of a judge, and whether their reference serves; with the checks."""

from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.conditions import FOLLOWS_WITHOUT_SCORES, OF_CORPUS_AND_JUDGE, checks_of, judge_check
from assets.partitions import corpus_and_judge, of_corpus
from assets.reference.anchoring import (
    Preferences,
    Reference,
    against,
    battles_with,
    choose_reference,
    meetings,
    no_ratings,
    preferences_by_run,
    preferences_of,
    rate_against,
)
from assets.reference.reach import DIAGNOSTIC_COLUMNS, STD_ERROR_TOLERANCE, diagnose, no_diagnostics
from assets.settings import corpus_of
from judgeline.reference import LEAST_WITHIN, REACH
from judgeline.report import in_markdown, with_texts
from resources.config.catalog import Catalog
from resources.config.corpora import ReferenceOptions
from resources.tables.expectations import evaluate
from resources.tables.reference import REFERENCE_RATINGS
from resources.tables.rules import within

IF_SCORED = dg.AssetIn("scored_battles", metadata={"allow_missing_partitions": True})
"""Scored battles where a judge has any; recorded preferences have no rubric scores."""

NO_PREFERENCES = (
    "the judge gave no preferences on battles with the reference: let it choose with "
    "log-probabilities ('asks: [choice]' in config/judges.yaml) or score with the rubric, or "
    "choose another 'reference' in config/corpora.yaml"
)
_SHOWN = ("models_within_reach", "prompts_within_reach", "spearman_with_mean_preference",
          "std_error_difference")  # fmt: skip


@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    group_name="reference",
    code_version="1",
    automation_condition=FOLLOWS_WITHOUT_SCORES,
    ins={"sampled_battles": of_corpus(), "scored_battles": IF_SCORED},
)
def reference_ratings(
    context: dg.AssetExecutionContext,
    sampled_battles: pd.DataFrame,
    soft_outcomes: pd.DataFrame,
    scored_battles: dict[str, pd.DataFrame],
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A model's gap to one fixed reference model, with a credible interval, in Elo points.

    From the judge's own probabilities where they cover most of the battles with the reference that
    its rubric scores cover, else from outcomes of those.
    Errors are those of one judge and of prompts at large unless the corpus asks for a factor.
    """
    corpus = corpus_of(context, catalog, "reference", "rating.miscoverage")
    reference = choose_reference(sampled_battles, corpus.reference.model)
    told = _told(sampled_battles, reference.model, soft_outcomes, scored_battles)
    ratings = (
        no_ratings()
        if told is None
        else rate_against(
            against(meetings(sampled_battles, told.share), reference.model),
            reference.model,
            told.source,
            corpus.reference,
            miscoverage=corpus.rating.miscoverage,
        )
    )
    return dg.MaterializeResult(
        value=ratings, metadata=_about(ratings, reference, told, corpus.reference)
    )


def _told(
    battles: pd.DataFrame,
    reference: str,
    soft_outcomes: pd.DataFrame,
    scored_battles: dict[str, pd.DataFrame],
) -> Preferences | None:
    """Return a judge's preferences; of scored battles there is this judge's table, or none."""
    scored = next(iter(scored_battles.values()), None)
    return preferences_of(soft_outcomes, scored, battles_with(battles, reference))


def _about(
    ratings: pd.DataFrame,
    reference: Reference,
    told: Preferences | None,
    options: ReferenceOptions,
) -> dict[str, Any]:
    shown = ratings[["rank", "model", "n_prompts", "win_share", "gap", "lower", "upper", "flags"]]
    shown = with_texts(shown.round(3), in_markdown)
    return {
        "reference_model": reference.model,
        "reference_because": reference.why,
        "preferences_from": told.why if told else "nowhere: see the note",
        "finite_population": options.n_population or "not asked for: prompts at large",
        "mean_kappa": options.mean_kappa or "not asked for: errors of one judge",
        "n_beyond_reach": int(ratings["flags"].str.contains("beyond-reach").sum()),
        **(
            {"leaderboard": dg.MetadataValue.md(shown.to_markdown(index=False))}
            if len(ratings)
            else {"note": NO_PREFERENCES}
        ),
    }


@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    group_name="reference",
    code_version="2",
    automation_condition=FOLLOWS_WITHOUT_SCORES,
    ins={"sampled_battles": of_corpus(), "scored_battles": IF_SCORED},
)
def reference_diagnostics(
    context: dg.AssetExecutionContext,
    reference_ratings: pd.DataFrame,
    sampled_battles: pd.DataFrame,
    soft_outcomes: pd.DataFrame,
    scored_battles: dict[str, pd.DataFrame],
    verdicts: pd.DataFrame,
    choice_verdicts: pd.DataFrame,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """One named diagnostic of a judge's reference, with value, unit and threshold if it has one.

    Reach over models and prompts, errors against a bootstrap, what abstaining would leave, and
    the leaderboard under other references.
    """
    corpus, _ = corpus_and_judge(context)
    seed = corpus_of(context, catalog, "rating.seed").rating.seed
    told = (
        None
        if reference_ratings.empty
        else _told(
            sampled_battles,
            str(reference_ratings["reference_model"].iloc[0]),
            soft_outcomes,
            scored_battles,
        )
    )
    if told is None:
        return dg.MaterializeResult(value=no_diagnostics(), metadata={"note": NO_PREFERENCES})
    found = _diagnosed(
        reference_ratings,
        sampled_battles,
        told,
        preferences_by_run(sampled_battles, told.source, verdicts, choice_verdicts),
        seed=seed,
        stream=(corpus,),
    )
    overall = found[found["diagnostic"].isin(_SHOWN) & found["value"].notna()]
    values = zip(overall["diagnostic"], overall["value"], strict=True)
    shown = found[found["diagnostic"].ne("std_error_ratio")].drop(columns="note")
    return dg.MaterializeResult(
        value=found,
        metadata={
            **{str(name): float(value) for name, value in values},
            "summary": dg.MetadataValue.md(shown.round(3).to_markdown(index=False)),
        },
    )


def _diagnosed(
    ratings: pd.DataFrame,
    battles: pd.DataFrame,
    told: Preferences,
    shares: pd.DataFrame,
    *,
    seed: int,
    stream: tuple[str, ...],
) -> pd.DataFrame:
    """Return the diagnostics; `shares` has a column of shares by battle for each run."""
    reference = str(ratings["reference_model"].iloc[0])
    met = meetings(battles, told.share)
    table = against(met, reference)
    runs = [against(meetings(battles, shares[run]), reference) for run in shares]
    return diagnose(
        table,
        ratings,
        met,
        np.stack([run.reindex_like(table).to_numpy(dtype=float) for run in runs], axis=2)
        if runs
        else np.full((*table.shape, 0), np.nan),
        seed=seed,
        stream=stream,
    )


rating_checks = checks_of(REFERENCE_RATINGS)


@judge_check(reference_diagnostics)
def reference_has_reach(reference_diagnostics: pd.DataFrame) -> dg.AssetCheckResult:
    """A reference far above or below the models tells them apart by a handful of prompts."""
    names = reference_diagnostics.reindex(columns=list(DIAGNOSTIC_COLUMNS))["diagnostic"]
    low, high = REACH
    return evaluate(
        reference_diagnostics[names.str.endswith("_within_reach").to_numpy(dtype=bool)],
        [
            within(
                "value",
                LEAST_WITHIN,
                note=f"at least {LEAST_WITHIN:.0%} of win shares, over models and over prompts, "
                f"lie in [{low:g}, {high:g}]",
            )
        ],
        ids=["diagnostic"],
        remedy="Choose a 'reference' nearer to the models in config/corpora.yaml; gaps flagged "
        "'beyond-reach' rest on few prompts.",
        severity=dg.AssetCheckSeverity.WARN,
    )


@judge_check(reference_diagnostics)
def errors_are_those_of_resampling(reference_diagnostics: pd.DataFrame) -> dg.AssetCheckResult:
    """A closed standard error that is not that of prompts drawn again misstates the intervals."""
    table = reference_diagnostics.reindex(columns=list(DIAGNOSTIC_COLUMNS))
    return evaluate(
        table[table["diagnostic"].eq("std_error_difference")],
        [
            within(
                "value",
                high=STD_ERROR_TOLERANCE,
                note="every model's standard error is within "
                f"{STD_ERROR_TOLERANCE:.0%} of that of resampling its prompts",
            )
        ],
        ids=["note"],
        remedy="Judge more battles of the models with few prompts: see 'std_error_ratio' of each "
        "model in reference_diagnostics. Until then read their intervals as rough.",
        severity=dg.AssetCheckSeverity.WARN,
    )
