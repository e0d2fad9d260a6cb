"""Automation conditions, owner and partitions of the tables."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any
from zlib import crc32

import dagster as dg

from assets.partitions import inputs_of, partitions_of
from resources.tables.declared import TABLES

_Condition = Any
"""An automation condition; Dagster types no `allow`, `ignore` or `without` of labelled ones."""

# A tick sees what was updated as of its beginning, and what is in progress as of now: a table that
# a run makes meanwhile, from an input that it made before, would look as if it waited for one.
_AT_REST = ~(~dg.AutomationCondition.in_progress()).newly_true().with_label("was just being made")

_CHANGED = (
    dg.AutomationCondition.data_version_changed()
    & ~dg.AutomationCondition.executed_with_root_target()
).with_label("changed its content")
# An input may change between a run's reading it and its end: whether the run read the change is
# not known where one tick sees both, or saw the table in progress before.
_CHANGES = dg.AutomationCondition.any_deps_match(_CHANGED)
_IN_PROGRESS = dg.AutomationCondition.in_progress()
_WAS_BEING_MADE = (
    dg.AutomationCondition.newly_requested()
    | dg.AutomationCondition.newly_updated()
    | (_IN_PROGRESS & ~_IN_PROGRESS.newly_true())
    | (~_IN_PROGRESS).newly_true()
)
_OUTRUN = (_CHANGES & _WAS_BEING_MADE).since(
    (dg.AutomationCondition.newly_requested() & ~_CHANGES)
    | dg.AutomationCondition.initial_evaluation()
)
_EAGER = (
    (
        dg.AutomationCondition.newly_missing()
        | dg.AutomationCondition.any_deps_match(
            _CHANGED | dg.AutomationCondition.will_be_requested()
        )
    ).since_last_handled()
    | _OUTRUN.with_label("an input changed while it was being made")
) & (
    ~dg.AutomationCondition.any_deps_missing()
    & ~dg.AutomationCondition.any_deps_in_progress()
    & ~_IN_PROGRESS
)
"""Content made again that is the same, as by a run that failed further on, moves nothing."""

_ASKED_APART = dg.AssetSelection.assets(
    "candidates",
    "candidate_battles",
    "candidate_verdicts",
    "candidate_ratings",
    "reliability_panel",
    "consistency",
)
"""Tables that most corpora or judges lack; a failed check of theirs holds up nothing else."""


def follows(optional: Collection[str], *, ignored: Sequence[str] = ()) -> _Condition:
    """Return the condition of a cheap table: it follows its inputs, once their checks have passed.

    It does not wait for `optional` ones, and a change of `ignored` ones moves nothing.
    """
    missing = dg.AutomationCondition.any_deps_missing()
    passed = dg.AutomationCondition.all_deps_blocking_checks_passed()
    condition = (
        _EAGER.without(~missing)
        & ~missing.ignore(dg.AssetSelection.assets(*optional))
        & passed.ignore(_ASKED_APART)
        & _AT_REST
    )
    return condition.ignore(dg.AssetSelection.assets(*ignored)).with_label("follows its inputs")


follows_judged_candidates = partial(follows, ignored=("candidates", "candidate_battles"))
"""The same for what places candidates: battles that nobody has judged yet place nobody."""

_ENDS = dg.AssetSelection.assets(
    "leaderboard",
    "judge_diagnostics",
    "scoring_methods",
    "judge_comparison",
    "pooled_leaderboard",
    "battle_influences",
    "candidate_ratings",
    "predictions",
    "judge_drift",
)


def fans_in(ends: dg.AssetSelection, needed: dg.AssetSelection) -> _Condition:
    """Return the condition of a table that follows the tables of all judges.

    It follows `ends`, waits for no judge that nobody ran, and runs if any has a `needed` table, or
    one is about to be made.
    """
    any_there = dg.AutomationCondition.any_deps_match(
        ~dg.AutomationCondition.missing() | dg.AutomationCondition.will_be_requested()
    )
    return (
        _EAGER.without(~dg.AutomationCondition.any_deps_missing()).allow(ends)
        & any_there.allow(needed)
        & _AT_REST
    ).with_label("follows the judges there are")


COMPARES_JUDGES = fans_in(_ENDS, dg.AssetSelection.assets("leaderboard"))
REPORTS = fans_in(_ENDS, dg.AssetSelection.assets("judge_comparison", "scoring_methods"))
"""A comparison follows the ends of the judges' chains, not every link. It does not wait for
judges that nobody ran, and never runs without the table that it compares."""

TABLE: Mapping[str, Any] = {"kinds": {"pandas", "parquet"}, "owners": ["team:evaluation"]}
ASKS: Mapping[str, Any] = {"kinds": {"openai", "pandas", "parquet"}}
"""Kinds of a table that is made by asking an endpoint, most often one of OpenAI's protocol."""
AFTER_THE_BOARD: Mapping[str, Any] = {"dagster/priority": "-1"}
"""Tags of the operation of a judge's table that no leaderboard needs: a run makes it last."""


def table_asset(
    code_version: str,
    condition: _Condition | Callable[[Collection[str]], _Condition] = None,
    *,
    columns: Mapping[str, Sequence[str]] = MappingProxyType({}),
    **options: Any,
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Declare the asset of a table, whose inputs follow from the types of the parameters.

    A function as `condition` makes one of the names of the inputs that may be missing.

    `columns` names those that are read of an input; `options` go to `dagster.asset`.
    """

    def declare(function: Callable[..., Any]) -> dg.AssetsDefinition:
        name = options.get("name", function.__name__)
        ins = inputs_of(function, columns, name) | options.pop("ins", {})
        optional = [name for name, how in ins.items() if "allow_missing_partitions" in how.metadata]
        made: dg.AssetsDefinition = dg.asset(
            partitions_def=partitions_of(name),
            code_version=versioned(code_version, TABLES[name].columns if name in TABLES else ()),
            automation_condition=condition(optional) if callable(condition) else condition,
            ins=ins,
            **{**TABLE, **options},
        )(function)
        return made

    return declare


def versioned(code_version: str, names: Collection[str]) -> str:
    """Return a code version that changes with names, such as the columns of a table."""
    return f"{code_version}.{crc32(' '.join(names).encode()):08x}"
