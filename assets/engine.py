"""The engine of the lineage: a declared step as an asset, with its settings recorded.

The function, the tables it takes and the settings it reads are the step's; what Dagster needs
beside them stands here.
"""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import dagster as dg
import pandas as pd

from assets.conditions import follows, table_asset
from assets.partitions import corpus_and_judge
from assets.settings import corpus_of, value
from judgeline.elo.targets import SMOOTHING_LEVELS
from judgeline.settings import Restricted
from judgeline.steps import Step
from resources.config.catalog import Catalog
from resources.tables.store import ParquetStore, preview

PLACES = {
    "controls": "candidates.controls",
    "thresholds": "gate.thresholds",
    "withhold": "gate.withhold",
    "reference_model": "reference.model",
    "n_population": "reference.n_population",
    "mean_kappa": "reference.mean_kappa",
    "judge_family": "judge.family",
    "scale": "judge.score.scale",
    "tolerance": "judge.choice.tolerance",
}
"""Where a setting stands; any other is under ``rating``."""

WHOLE = ("gate", "reference")
"""Sections that are recorded as a whole."""

Tells = Callable[..., Mapping[str, Any]]
"""Metadata of a made table: a function of the context, the tables by name, its own included, and
the settings."""


def step_asset(
    step: Step,
    code_version: str,
    condition: Any = follows,
    *,
    tells: Tells | None = None,
    needs: Collection[str] = (),
    beside: Collection[str] = (),
    columns: Mapping[str, Sequence[str]] = MappingProxyType({}),
    **options: Any,
) -> dg.AssetsDefinition:
    """Return the asset of a step.

    `needs` names inputs that have to be there, though the step could do without them; `beside`
    names further inputs, which only `tells` reads. Of a table that is remembered, it gets the
    stored one as ``before`` too, or None.
    """
    types = _types_of(step, (*needs, *beside), remembers=step.table.remembered)
    place = inspect.Parameter.POSITIONAL_OR_KEYWORD
    declared = inspect.Signature(
        [inspect.Parameter(name, place, annotation=kind) for name, kind in types.items()]
    )

    def make(*positional: Any, **named: Any) -> dg.MaterializeResult[pd.DataFrame]:
        given = declared.bind(*positional, **named).arguments
        context, catalog = given.pop("context"), given.pop("catalog")
        settings = recorded(context, catalog, step)
        store = given.pop("io_manager", None)
        made = step.make(given, settings)
        for name, why in made.notes.get("not_placed", {}).items():
            context.log.warning(f"{name!r} could not be placed: {why}")
        if store:
            given["before"] = store.stored(step.name, *corpus_and_judge(context))
        told = tells(context, {**given, step.name: made.table}, settings) if tells else {}
        notes = {name: as_metadata(note) for name, note in made.notes.items()}
        return dg.MaterializeResult(value=made.table, metadata={**notes, **told})

    make.__signature__ = declared  # type: ignore[attr-defined]
    make.__annotations__ = {**types, "return": dg.MaterializeResult[pd.DataFrame]}
    make.__name__, make.__doc__ = step.name, step.function.__doc__
    return table_asset(code_version, condition, columns=columns, **options)(make)


def _types_of(step: Step, needs: Collection[str], *, remembers: bool) -> dict[str, Any]:
    """Return the types of the parameters of a step's asset by name, in their order."""
    takes = {**step.takes, **dict.fromkeys(needs, True)}
    kinds = {name: pd.DataFrame if must else pd.DataFrame | None for name, must in takes.items()}
    stores = {"io_manager": dg.ResourceParam[ParquetStore]} if remembers else {}
    return {"context": dg.AssetExecutionContext, **kinds, "catalog": Catalog, **stores}


def as_metadata(note: Any) -> Any:
    """Return a note as metadata: a table as Markdown, a mapping or a list of them as JSON."""
    if isinstance(note, pd.DataFrame):
        return dg.MetadataValue.md(preview(note, len(note)))
    note = dict(note) if isinstance(note, Mapping) else note
    return dg.MetadataValue.json(note) if isinstance(note, dict | list) else note


def recorded(context: dg.AssetExecutionContext, catalog: Catalog, step: Step) -> Restricted:
    """Return the settings that a step reads, and record them with the table."""
    corpus_of(context, catalog, *recorded_names(step))
    return settings_of(catalog, *corpus_and_judge(context), step.reads)


def recorded_names(step: Step) -> list[str]:
    """Return the names that a step's settings are recorded by: places, or a whole section."""
    places = [place_of(name) for name in step.reads]
    sections = [place.partition(".")[0] for place in places]
    names = (one if one in WHOLE else place for one, place in zip(sections, places, strict=True))
    return list(dict.fromkeys(names))


def settings_of(catalog: Catalog, corpus: str, judge: str, names: Collection[str]) -> Restricted:
    """Return named settings of a corpus and a judge as steps read them; both key random draws."""
    values = {name: value(catalog, corpus, judge, place_of(name)) for name in names}
    values |= {"stream": corpus, "judge": judge}
    return Restricted(**values, smoothing_levels=SMOOTHING_LEVELS)  # the report shows them all


def place_of(name: str) -> str:
    """Return where a setting stands in the entry of a corpus, or of a judge."""
    return PLACES.get(name, f"rating.{name}")
