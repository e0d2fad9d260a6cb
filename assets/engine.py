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
from assets.settings import corpus_of
from judgeline.elo import RatingSettings
from judgeline.settings import Restricted
from judgeline.steps import Step
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.tables.store import preview

SECTIONS = {"thresholds": "gate", "withhold": "gate"}
"""Section of a corpus's entry that holds a setting; that of any other is ``rating``."""

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
    those that `tells` alone reads.
    """
    kinds = {
        name: pd.DataFrame if has_to else pd.DataFrame | None for name, has_to in step.takes.items()
    }
    kinds |= dict.fromkeys((*needs, *beside), pd.DataFrame)
    types = {"context": dg.AssetExecutionContext, **kinds, "catalog": Catalog}
    declared = inspect.Signature(
        [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind)
            for name, kind in types.items()
        ]
    )

    def make(*positional: Any, **named: Any) -> dg.MaterializeResult[pd.DataFrame]:
        given = declared.bind(*positional, **named).arguments
        context, catalog = given.pop("context"), given.pop("catalog")
        settings = recorded(context, catalog, step)
        made = step.make(given, settings)
        told = tells(context, {**given, step.name: made.table}, settings) if tells else {}
        notes = {name: as_metadata(note) for name, note in made.notes.items()}
        return dg.MaterializeResult(value=made.table, metadata={**notes, **told})

    make.__signature__ = declared  # type: ignore[attr-defined]
    make.__annotations__ = {**types, "return": dg.MaterializeResult[pd.DataFrame]}
    make.__name__, make.__doc__ = step.name, step.function.__doc__
    return table_asset(code_version, condition, columns=columns, **options)(make)


def as_metadata(note: Any) -> Any:
    """Return a note as metadata: a table as Markdown, a mapping as JSON."""
    if isinstance(note, pd.DataFrame):
        return dg.MetadataValue.md(preview(note, len(note)))
    return dg.MetadataValue.json(dict(note)) if isinstance(note, Mapping) else note


def recorded(context: dg.AssetExecutionContext, catalog: Catalog, step: Step) -> Restricted:
    """Return the settings that a step reads, and record them with the table."""
    places = [SECTIONS.get(name, f"rating.{name}") for name in step.reads]
    definition = corpus_of(context, catalog, *dict.fromkeys(places))
    return settings_of(definition, step.reads)


def settings_of(definition: CorpusDefinition, names: Collection[str]) -> Restricted:
    """Return the named settings of a corpus as steps read them; its name keys random draws."""
    values: dict[str, Any] = {
        "stream": definition.slug,
        "smoothing_levels": RatingSettings.smoothing_levels,  # the report shows every level
    }
    for name in names:
        section = getattr(definition, SECTIONS.get(name, "rating"))
        values[name] = getattr(section, name)
    return Restricted(values)
