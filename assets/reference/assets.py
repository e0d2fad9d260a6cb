"""Assets of reference-anchored Elo; with their checks."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.conditions import FOLLOWS_WITHOUT_SCORES, OF_CORPUS_AND_JUDGE, checks_of
from assets.partitions import (
    CORPUS_JUDGE,
    corpus_and_judge,
    corpus_judge_key,
    if_there,
    of_corpus,
    previews_silenced,
)
from assets.provenance import latest, metadata_of
from assets.reference.anchoring import preferences_by_run, preferences_of, rate_against
from assets.reference.reach import REFERENCE_DIAGNOSTICS, STD_ERROR_TOLERANCE, diagnose
from assets.settings import SETTINGS, narrowed, stated
from judgeline.io.anchoring import against, choose_reference, meetings
from judgeline.reference import LEAST_WITHIN, REACH
from judgeline.report import in_markdown, with_texts
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
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
_READ = ("reference", "rating.miscoverage", "rating.seed")
DIAGNOSTICS = "reference_diagnostics"
"""Metadata with the diagnostics behind the ratings, a record each."""
with previews_silenced():
    _REACH, _ERRORS = (
        dg.AssetCheckSpec(
            name, asset="reference_ratings", partitions_def=CORPUS_JUDGE, description=guards
        )
        for name, guards in (
            (
                "reference_has_reach",
                "A reference far above or below the models tells them apart by a handful of "
                "prompts.",
            ),
            (
                "errors_are_those_of_resampling",
                "A closed standard error that is not that of prompts drawn again misstates the "
                "intervals.",
            ),
        )
    )


@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    code_version="2",
    automation_condition=FOLLOWS_WITHOUT_SCORES,
    check_specs=[_REACH, _ERRORS],
    ins={
        "sampled_battles": of_corpus(),
        "scored_battles": if_there(),
        "verdicts": if_there(),
    },
)
def reference_ratings(
    context: dg.AssetExecutionContext,
    sampled_battles: pd.DataFrame,
    soft_outcomes: pd.DataFrame,
    choice_verdicts: pd.DataFrame,
    scored_battles: pd.DataFrame | None,
    verdicts: pd.DataFrame | None,
    catalog: Catalog,
) -> Iterator[dg.MaterializeResult[pd.DataFrame]]:
    """A model's gap to one fixed reference model, with a credible interval, in Elo points.

    From the judge's own probabilities where they cover most of the battles with the reference that
    its rubric scores cover, else from outcomes of those.
    Errors are those of one judge and of prompts at large unless the corpus asks for a factor.
    Metadata have its reach over models and prompts, errors against a bootstrap, what abstaining
    would leave, and the leaderboard under other references.
    """
    slug, judge = corpus_and_judge(context)
    made = rate_and_diagnose(
        narrowed(catalog.corpus(slug), {"slug", *_READ}),
        sampled_battles,
        soft_outcomes,
        choice_verdicts,
        scored_battles,
        verdicts,
    )
    settings = {SETTINGS: stated(catalog, slug, judge, _READ)}
    yield made._replace(metadata={**(made.metadata or {}), **settings})


def rate_and_diagnose(
    corpus: CorpusDefinition,
    sampled_battles: pd.DataFrame,
    soft_outcomes: pd.DataFrame,
    choice_verdicts: pd.DataFrame,
    scored_battles: pd.DataFrame | None,
    verdicts: pd.DataFrame | None,
) -> dg.MaterializeResult[pd.DataFrame]:
    """Return the ratings of a judge against a reference, with their diagnostics and checks."""
    options = corpus.reference
    reference = choose_reference(sampled_battles, options.model)
    found = preferences_of(sampled_battles, reference.model, soft_outcomes, scored_battles)
    ratings, diagnostics = REFERENCE_RATINGS.empty(), REFERENCE_DIAGNOSTICS.empty()
    if found is not None:
        met = meetings(sampled_battles, found.share)
        table = against(met, reference.model)
        ratings = rate_against(
            table,
            reference.model,
            found.source,
            options,
            miscoverage=corpus.rating.miscoverage,
        )
        by_run = preferences_by_run(sampled_battles, found.source, verdicts, choice_verdicts)
        runs = [
            against(meetings(sampled_battles, by_run[run]), reference.model).reindex_like(table)
            for run in by_run
        ]
        diagnostics = diagnose(
            table,
            ratings,
            met,
            np.stack(runs, axis=2).astype(float) if runs else np.empty((*table.shape, 0)),
            seed=corpus.rating.seed,
            stream=(corpus.slug,),
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
        check_results=[
            reference_has_reach(diagnostics),
            errors_are_those_of_resampling(diagnostics),
        ],
    )


def _described(diagnostics: pd.DataFrame) -> dict[str, Any]:
    names, records = diagnostics["diagnostic"], diagnostics.astype(object)
    overall = diagnostics[names.isin(_SHOWN) & diagnostics["value"].notna()]
    shown = diagnostics[names.ne("std_error_ratio")].drop(columns="note").round(3)
    return {
        **dict(zip(overall["diagnostic"], overall["value"].astype(float), strict=True)),
        "summary": dg.MetadataValue.md(shown.to_markdown(index=False)),
        DIAGNOSTICS: dg.MetadataValue.json(
            records.where(diagnostics.notna(), None).to_dict("records")
        ),
    }


def diagnostics_of(instance: dg.DagsterInstance, corpus: str, judge: str) -> pd.DataFrame | None:
    """Return the diagnostics that the last ratings of a judge came with; None of older ones."""
    record = latest(instance, "reference_ratings", corpus_judge_key(corpus, judge))
    rows = metadata_of(record).get(DIAGNOSTICS)
    return None if rows is None else REFERENCE_DIAGNOSTICS.filled(pd.DataFrame(rows))


rating_checks = checks_of(REFERENCE_RATINGS)


def reference_has_reach(reference_diagnostics: pd.DataFrame) -> dg.AssetCheckResult:
    """Return whether most win shares lie where a reference tells models apart."""
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
    )._replace(check_name=_REACH.name)


def errors_are_those_of_resampling(reference_diagnostics: pd.DataFrame) -> dg.AssetCheckResult:
    """Return whether each closed standard error is that of prompts drawn again."""
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
        "model in the reference_diagnostics of reference_ratings. Until then read their intervals "
        "as rough.",
        severity=dg.AssetCheckSeverity.WARN,
    )._replace(check_name=_ERRORS.name)
