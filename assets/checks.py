"""Checks of the tables: what each guards, and one step for all those of a table."""

import functools
import inspect
import pkgutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import dagster as dg

import assets
from assets.partitions import OF_CORPUS, inputs_of, partitions_of, previews_silenced, read_as
from judgeline.tables.schema import Table
from resources.tables.declared import TABLES
from resources.tables.expectations import results_of


class Checks(NamedTuple):
    """Checks of an asset, made by one function of the tables that it takes.

    `guards` has a check's name, what it guards, and whether it is blocking.
    """

    asset: str
    guards: Sequence[tuple[str, str, bool]]
    function: Callable[..., Any]
    ins: Mapping[str, dg.AssetIn]

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Return the check results of these tables."""
        return self.function(*given, **named)

    @property
    def takes(self) -> set[str]:
        """Names that the function takes: tables, and perhaps `context` and `catalog`."""
        named = {*inspect.signature(self.function).parameters} - {"tables"}
        return named or {self.asset, *self.ins}

    def results(self, given: Mapping[str, Any]) -> Iterator[dg.AssetCheckResult]:
        """Yield the result of each check, under its name."""
        made = self.function(**{name: given[name] for name in self.takes})
        for result in [made] if isinstance(made, dg.AssetCheckResult) else made:
            name = result.check_name or self.guards[0][0]
            yield result._replace(check_name=name, asset_key=dg.AssetKey(self.asset))


def table_check(
    asset: dg.AssetsDefinition | dg.AssetKey,
    *,
    blocking: bool = False,
) -> Callable[[Callable[..., dg.AssetCheckResult]], Checks]:
    """Declare a function as the check of a stored table; its docstring says what it guards.

    Further tables that it takes are read as those of an asset are. A blocking check that fails
    with severity ERROR stops what follows in the same run.
    """
    name = (asset if isinstance(asset, dg.AssetKey) else asset.key).path[-1]

    def declare(function: Callable[..., dg.AssetCheckResult]) -> Checks:
        guards = (function.__name__, inspect.getdoc(function) or "", blocking)
        return Checks(name, [guards], function, inputs_of(function, {}, name))

    return declare


def checks_together(
    asset: str, guards: Sequence[tuple[str, str, bool]]
) -> Callable[[Callable[..., Iterator[dg.AssetCheckResult]]], Checks]:
    """Declare checks of an asset that one function makes, each named in its result."""
    return lambda function: Checks(asset, guards, function, inputs_of(function, {}, asset))


def declared(table: Table) -> Checks:
    """Return the declared checks of a table, which read it and the tables beside it."""

    def results(**tables: Any) -> Iterator[dg.AssetCheckResult]:
        yield from results_of(table, tables.pop(table.name), **tables)

    guards = [(check.name, check.guards, check.blocking) for check in table.checks]
    is_judged = table.name not in OF_CORPUS
    ins = {name: read_as(of_corpus=is_judged and name in OF_CORPUS) for name in table.beside}
    return Checks(table.name, guards, results, ins)


def _tried(
    groups: Sequence[Checks], names: Collection[str], given: Mapping[str, Any]
) -> Iterator[dg.AssetCheckResult]:
    """Yield the results of the named checks; raise the first error of a blocking one at the end."""
    died = list[Exception]()
    for group in groups:
        left = [name for name, _, _ in group.guards if name in names]
        try:
            for result in group.results(given) if left else ():
                if result.check_name in left:
                    left.remove(result.check_name)
                    yield result
        except Exception as error:
            error.add_note(f"in the checks {', '.join(left)} of {group.asset}")
            if any(blocking for _, _, blocking in group.guards):
                died.append(error)
                continue
            told = f"the check itself failed: {type(error).__name__}: {error}"
            key = dg.AssetKey(group.asset)
            for name in left:
                yield dg.AssetCheckResult(
                    passed=False, asset_key=key, check_name=name, description=told
                )
    if died:
        raise died[0]


def step_of(asset: str, groups: Sequence[Checks]) -> dg.AssetChecksDefinition:
    """Return all checks of an asset as one step, which reads each table once.

    A check that dies has failed, with its error; one of several of which any is blocking fails the
    step when all others have been made.
    """
    takes = set[str]().union(*(group.takes for group in groups))
    ins = {name: how for group in groups for name, how in group.ins.items()}

    def selected(
        context: dg.AssetCheckExecutionContext, **tables: Any
    ) -> Iterator[dg.AssetCheckResult]:
        names = {one.name for one in context.selected_asset_check_keys}
        catalog = context.resources.catalog if "catalog" in takes else None
        given = {**tables, "context": context, "catalog": catalog}
        yield from _tried(groups, names, given)

    with previews_silenced():
        specs = [
            dg.AssetCheckSpec(
                name,
                asset=asset,
                description=guards,
                blocking=blocking,
                partitions_def=partitions_of(asset),
                additional_deps=[
                    dg.AssetDep(other, partition_mapping=how.partition_mapping)
                    for other, how in ins.items()
                ],
            )
            for group in groups
            for name, guards, blocking in group.guards
        ]
        return dg.multi_asset_check(
            name=f"checks_of_{asset}",
            specs=specs,
            ins={name: dg.AssetIn(name) for name in takes & {asset, *ins}},
            required_resource_keys={"catalog"} & takes,
            can_subset=True,
        )(selected)


def _alone(one: Checks) -> dg.AssetChecksDefinition:
    """Return a check with optional or fanned-in tables as a step of its own."""
    ((_, _, blocking),) = one.guards
    partitions = partitions_of(one.asset)
    with previews_silenced():
        return dg.asset_check(
            asset=one.asset, partitions_def=partitions, blocking=blocking, additional_ins=one.ins
        )(one.function)


@functools.cache
def steps_of_checks() -> list[dg.AssetChecksDefinition]:
    """Return a step for each table with checks: those declared, and those of the modules here."""
    dg.load_assets_from_package_module(assets)  # imports them all
    modules = pkgutil.walk_packages(assets.__path__, f"{assets.__name__}.")
    members = chain.from_iterable(vars(sys.modules[one.name]).values() for one in modules)
    found = {id(value): value for value in members if isinstance(value, Checks)}
    together: dict[str, list[Checks]] = {}
    for one in (*(declared(table) for table in TABLES.values() if table.checks), *found.values()):
        if not any(how.metadata for how in one.ins.values()):
            together.setdefault(one.asset, []).append(one)
    apart = [one for one in found.values() if one not in together.get(one.asset, ())]
    return [step_of(asset, own) for asset, own in together.items()] + [*map(_alone, apart)]
