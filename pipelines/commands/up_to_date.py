"""Up-to-date tables of a partition, and the results of their checks.

A table is up to date where its code version, the data versions of its inputs and the settings that
its code reads are those that it was made by, its file is there, and its checks came to an end.
"""

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg

from assets.judging.assets import FORM_OF
from assets.partitions import CORPUS, corpus_judge_key
from assets.provenance import check_records, latest, metadata_of, settled_judges
from assets.settings import SETTINGS, value
from judgeline.judges.buying import RETRIED, is_retried
from pipelines.commands.console import FailedCheck, failed_check
from pipelines.instance import internals
from pipelines.sensors.activity import identity_now
from resources.config.catalog import Catalog
from resources.stores import StoredVerdicts
from resources.tables.store import ParquetStore

_REPORT = dg.AssetKey("report")

Place = tuple[str, ...]
"""A corpus, and the judge where a partition has one."""


@dataclass(frozen=True)
class LineageRecord:
    """Record of a lineage's tables in the instance, the table store and a catalog.

    Settings are compared with those in `catalog`, which is frozen where a run reads it.
    """

    instance: dg.DagsterInstance
    graph: internals.AssetGraph
    store: ParquetStore
    catalog: Catalog
    verdict_store: StoredVerdicts
    _versions: dict[tuple[dg.AssetKey, Place], str] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def stale(self, keys: Collection[dg.AssetKey], partition: str) -> set[dg.AssetKey]:
        """Return the tables of a partition that are due; those of one step are made together."""
        self._versions.clear()  # others may have made something since
        checks = self._checks(keys, partition)
        due = {key for key in keys if self._is_stale(key, partition, checks)}
        steps = (self.graph.get(key).execution_set_asset_keys & {*keys} for key in due)
        return due.union(*steps)

    def sources_of(self, key: dg.AssetKey) -> Set[dg.AssetKey]:
        """Return a table and all tables that it is made of, directly or through others."""
        return dg.AssetSelection.assets(key).upstream().resolve(self.graph)

    def settled(
        self, names: Iterable[str], selected: Set[dg.AssetKey], corpus: str, judge: str
    ) -> list[str]:
        """Return the tables of a judge that are up to date, with all `selected` ones behind them.

        The table of candidates' verdicts is never among them: dropped files decide about it.
        """
        behind = {
            name: dg.AssetSelection.assets(name).upstream().resolve(self.graph) & selected
            for name in names
            if name != "candidate_verdicts"
        }
        keys = set[dg.AssetKey]().union(*behind.values())
        common = {key for key in keys if self.graph.get(key).partitions_def == CORPUS}
        due = self.stale(common, corpus) | self.stale(
            keys - common, corpus_judge_key(corpus, judge)
        )
        return [name for name, needed in behind.items() if not needed & due]

    def failed_checks(self, keys: Collection[dg.AssetKey], partition: str) -> list[FailedCheck]:
        """Return the checks that failed when tables of a partition were made, in their order."""
        return [
            failed_check(record.event.dagster_event.asset_check_evaluation_data, partition)
            for record in self._checks(keys, partition).values()
            if record.status.value == "FAILED"
        ]

    def metadata(self, key: dg.AssetKey, partition: str) -> Mapping[str, Any]:
        """Return the metadata of the last materialisation, by name; none where there is none."""
        return metadata_of(latest(self.instance, key.to_user_string(), partition))

    def _is_stale(
        self, key: dg.AssetKey, partition: str, checks: Mapping[dg.AssetCheckKey, Any]
    ) -> bool:
        record = latest(self.instance, key.to_user_string(), partition)
        made = record.asset_materialization if record else None
        if made is None:
            return True
        node, tags, place = self.graph.get(key), made.tags or {}, tuple(str(partition).split("|"))
        metadata = metadata_of(record)
        judges = metadata.get("judges", []) if len(place) == 1 else []
        is_there = (
            Path(str(metadata.get("path"))).is_file()
            if key == _REPORT
            else self.store.has(key.to_user_string(), *place)
        )
        return (
            not is_there
            or tags.get(internals.CODE_VERSION_TAG) != node.code_version
            or any(
                internals.input_version(tags, parent) != self._version_of(parent, place)
                for parent in node.parent_keys
            )
            or self._has_other_settings(key, place, metadata)
            or self._is_asked_again(key, place, metadata)
            or bool(_left_out(key, place, metadata))
            # a check has stopped a judge of a comparison or report since
            or bool(settled_judges(self.instance, place[0], judges)[1])
            or self._is_unsettled(key, checks)
        )

    def _has_other_settings(
        self, key: dg.AssetKey, place: Place, metadata: Mapping[str, Any]
    ) -> bool:
        judge = place[1] if len(place) > 1 else None
        if SETTINGS not in metadata:
            return "catalog" in self.graph.get(key).assets_def.required_resource_keys
        try:
            return any(
                value(self.catalog, place[0], judge, name) != before
                for name, before in metadata[SETTINGS].items()
            )
        except (AttributeError, ValueError, OSError):  # the table's own run says more
            return True

    def _is_asked_again(self, key: dg.AssetKey, place: Place, metadata: Mapping[str, Any]) -> bool:
        """Return whether a table of answers is due; a simulated judge answers the same."""
        asset = key.to_user_string()
        if asset not in FORM_OF or not metadata.get("judge_identity"):
            return False
        corpus, slug = place
        judge = self.catalog.judge(slug)
        now = identity_now(judge, self.catalog.corpus(corpus), FORM_OF[asset])
        before = str(metadata["judge_identity"])
        if judge.kind == "builtin" or now not in ("", before):
            return now not in ("", before)
        return self._has_other_answers(asset, place, before)

    def _is_unsettled(self, key: dg.AssetKey, checks: Mapping[dg.AssetCheckKey, Any]) -> bool:
        """Return whether a check is new or cut off, or stops what follows."""
        for check in self.graph.get_check_keys_for_assets({key}):
            record: Any = checks.get(check)
            status = record.status.value if record else ""
            if status == "FAILED" and self.graph.get(check).blocking:
                found = record.event.dagster_event.asset_check_evaluation_data
                if found.severity == dg.AssetCheckSeverity.ERROR:
                    return True
            elif status not in ("SUCCEEDED", "FAILED"):
                return True
        return False

    def _has_other_answers(self, asset: str, place: Place, identity: str) -> bool:
        """Return whether failed answers of a table would be asked for again, or were given."""
        answers = self.store.picked(asset, *place, columns=["status", "identity"])
        if answers is None:
            return False
        if "identity" not in answers:  # a panel, which mends nothing of its own
            return bool(answers["status"].isin(RETRIED).any())
        failed = set(answers.loc[answers["status"].ne("ok"), "identity"])
        if not failed:
            return False
        found, _ = self.verdict_store.open().find(identity, failed)
        retried = self.verdict_store.retried
        fates = zip(found["status"], found["n_attempts"], strict=True)
        if any(is_retried(status, n, retried) for status, n in fates):
            return True
        rows: Any = self.store.matching(asset, *place, column="identity", among=failed)
        before = rows[["identity", "answer"]].drop_duplicates("identity")
        both = before.merge(found[["identity", "answer"]], on="identity", suffixes=("", "_now"))
        return bool(both["answer"].fillna("").ne(both["answer_now"].fillna("")).any())

    def _version_of(self, parent: dg.AssetKey, place: Place) -> str:
        if (parent, place) not in self._versions:
            corpus, *judges = place
            known = judges or self.instance.get_dynamic_partitions("judge")
            places: list[str] = [corpus_judge_key(corpus, judge) for judge in known]
            if self.graph.get(parent).partitions_def == CORPUS:
                places = [corpus]
            version = internals.data_version(self.instance, parent, places)
            self._versions[parent, place] = version
        return self._versions[parent, place]

    def _checks(self, keys: Iterable[dg.AssetKey], partition: str) -> dict[dg.AssetCheckKey, Any]:
        wanted = self.graph.get_check_keys_for_assets({*keys})
        return check_records(self.instance, wanted, partition)


def _left_out(key: dg.AssetKey, place: Place, metadata: Mapping[str, Any]) -> list[str]:
    """Return the judges left out of a comparison for checks that may have passed since."""
    if key == _REPORT or len(place) > 1:
        return []
    return [judge for judge in metadata.get("left_out", []) if f"withheld {judge}" not in metadata]


def first_wave(
    graph: internals.AssetGraph, keys: Collection[dg.AssetKey], due: Collection[dg.AssetKey]
) -> set[dg.AssetKey]:
    """Return the due assets that can be made in one run.

    An up-to-date asset downstream of a due one may stay as it is once that one is made. Due assets
    downstream of it therefore wait for a later wave.
    """
    wave: set[dg.AssetKey] = set()
    open_: set[dg.AssetKey] = set()
    for key in (one for level in graph.toposorted_asset_keys_by_level for one in level):
        if key not in keys:
            continue
        parents = graph.get(key).parent_keys
        if key in due and not parents & open_:
            wave.add(key)
        elif key in due or parents & (wave | open_):
            open_.add(key)
    return wave
