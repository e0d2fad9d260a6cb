"""The table of contents of the lineage: assets, checks, jobs, sensors and resources."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.candidates import assets as candidates
from assets.candidates import attack_controls, placing, predictions
from assets.candidates import judging as candidate_judging
from assets.comparison import assets as comparison
from assets.corpus import assets as corpus
from assets.diagnostics import assets as diagnostics
from assets.diagnostics import influences, missing_bounds, missingness
from assets.elo import method_comparison, methods, ratings
from assets.elo import slopes as calibration
from assets.intervals import assets as uncertainty
from assets.intervals import pooled
from assets.judging import assets as judging
from assets.judging import call_plan, choices, single_scores
from assets.quantitative import assets as quantitative
from assets.quantitative import embeddings
from assets.reference import assets as reference
from assets.reference import system_assets as rating_systems
from assets.reliability import drift, panel
from assets.reliability import gate as judge_gate
from assets.trust import assets as soft_outcomes
from assets.winrate import assets as win_rates
from pipelines.instance.executor import in_process_on_named_host
from pipelines.jobs import JOBS
from pipelines.sensors.automation import SCHEDULES, SENSORS
from resources.config.catalog import Catalog
from resources.embeddings.resource import StoredEmbeddings
from resources.judges.budget import Budget
from resources.store.resource import StoredVerdicts
from resources.tables.store import ParquetTables

STAGES = (
    corpus,
    call_plan,
    judging,
    panel,
    single_scores,
    choices,
    soft_outcomes,
    embeddings,
    quantitative,
    calibration,
    ratings,
    influences,
    uncertainty,
    diagnostics,
    drift,
    judge_gate,
    missingness,
    missing_bounds,
    methods,
    win_rates,
    reference,
    pooled,
    comparison,
    method_comparison,
    rating_systems,
    candidates,
    candidate_judging,
    placing,
    attack_controls,
    predictions,
)


def build_definitions(
    *,
    catalog: Catalog | None = None,
    tables: ParquetTables | None = None,
    verdict_store: StoredVerdicts | None = None,
    budget: Budget | None = None,
    loggers: Mapping[str, dg.LoggerDefinition] | None = None,
    **resources: Any,
) -> dg.Definitions:
    """Return the lineage over the given resources, or over those of this installation."""
    tables = tables or ParquetTables()
    return dg.Definitions(
        assets=dg.load_assets_from_modules(STAGES),
        asset_checks=dg.load_asset_checks_from_modules(STAGES),
        jobs=JOBS,
        sensors=SENSORS,
        schedules=SCHEDULES,
        executor=in_process_on_named_host,
        loggers=loggers,
        resources={
            "catalog": catalog or Catalog(),
            "io_manager": tables,
            "verdict_store": verdict_store or StoredVerdicts(),
            "embedding_store": StoredEmbeddings(),
            "budget": budget or Budget(),
            **resources,
        },
    )


defs = build_definitions()
