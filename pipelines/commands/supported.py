"""Which part of the lineage a judge's verdicts support: preferences alone support some of it."""

from collections.abc import Collection
from typing import NamedTuple

import dagster as dg
from dagster._core.definitions.assets.graph.asset_graph import AssetGraph

from judgeline.io import PLAIN, SCORE_COLUMNS, are_plain
from resources.tables.store import ParquetStore

SCORES = dg.AssetKey("scored_battles")
DO_WITHOUT = frozenset(
    map(dg.AssetKey, ("reference_ratings", "reference_diagnostics", "rating_systems"))
)
"""Assets that read scored battles where there are any, and do without where there are none."""


class Part(NamedTuple):
    """What is left out of the lineage, and why; nothing by default."""

    left_out: frozenset[dg.AssetKey] = frozenset()
    told: str = ""


WHOLE = Part()


def supported_part(graph: AssetGraph, store: ParquetStore, corpus: str, judge: str) -> Part:
    """Return the part of the lineage that a judge's verdicts support."""
    recorded = store.stored("recorded_verdicts", corpus)
    if recorded is None:
        return WHOLE
    own = recorded[recorded["judge"].eq(judge)]
    has_scores = own[list(SCORE_COLUMNS)].notna().any(axis=None)
    if has_scores or not own["recorded_outcome"].notna().any():
        return WHOLE
    reason = ""
    if are_plain(own):
        if _has_votes(store, corpus):
            return Part(told=f"judge {judge}: {PLAIN}")
        reason = " and without human votes on their battles"
    return Part(
        _resting_on_scores(graph),
        f"recorded preferences without rubric scores{reason}: reference-anchored ratings only",
    )


def _has_votes(store: ParquetStore, corpus: str) -> bool:
    """Return whether people voted on a corpus, as far as its tables are there."""
    battles = store.stored("sampled_battles", corpus)
    return battles is None or bool(battles["human_outcome"].notna().any())


def _resting_on_scores(graph: AssetGraph) -> frozenset[dg.AssetKey]:
    """Return scored battles, what a check holds against them, and all that follows from either."""
    checked = (key.asset_key for key in graph.asset_check_keys if SCORES in _read_by(graph, key))
    found: set[dg.AssetKey] = set()
    waiting = [SCORES, *(set(checked) - DO_WITHOUT)]
    while waiting:
        key = waiting.pop()
        found.add(key)
        waiting += graph.get(key).child_keys - found - DO_WITHOUT
    return frozenset(found)


def _read_by(graph: AssetGraph, check: dg.AssetCheckKey) -> set[object]:
    return set(graph.get(check).parent_entity_keys)


def common_part(parts: dict[str, Part], succeeded: dict[str, bool]) -> Part | None:
    """Return the part that a comparison of judges supports: that of the fullest one that ran.

    None where no judge got through, and the whole where there is no judge to wait for.
    """
    if not parts:
        return WHOLE
    able = [parts[judge] for judge in parts if succeeded[judge]]
    fullest = min(able, key=lambda part: len(part.left_out), default=None)
    return fullest if fullest is None or fullest.left_out else WHOLE


def methods_part(graph: AssetGraph, made: Collection[dg.AssetKey]) -> Part | None:
    """Return the part of a comparison left where gates stopped every judge: scoring methods.

    None where not even those were made.
    """
    if dg.AssetKey("scoring_methods") not in made:
        return None
    kept = {dg.AssetKey("method_comparison"), dg.AssetKey("report")}
    return Part(
        frozenset(graph.executable_asset_keys - kept),
        "no judge has ratings on the human scale: scoring methods are compared all the same",
    )
