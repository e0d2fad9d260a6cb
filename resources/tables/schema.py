"""A table is a value: its columns, and what must hold of it under the names of its checks.

From a declaration come the types, the empty table, the catalogue's schema and the checks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import dagster as dg
import pandas as pd

from resources.tables.expectations import evaluate_together
from resources.tables.rules import Rule
from resources.tables.words import WORDS

_CELLS = {"str": "x", "bool": True, "object": "x"}


@dataclass(frozen=True)
class Check:
    """A named check: what it guards, its rules, and what to do where one is broken.

    `rows` gives the rows that it is about, by default all; `ids` the columns that name them to
    a person, by default the table's key.
    """

    name: str
    guards: str
    rules: Sequence[Rule]
    remedy: str
    blocking: bool = False
    warns: bool = False
    rows: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    ids: Sequence[str] = ()

    @property
    def severity(self) -> dg.AssetCheckSeverity:
        """ERROR where what follows would be wrong, WARN where it would be weak."""
        return dg.AssetCheckSeverity.WARN if self.warns else dg.AssetCheckSeverity.ERROR


@dataclass(frozen=True)
class Table:
    """A table of the lineage, by the name of its asset.

    `words` has its columns, apart by blanks; `WORDS` says what they mean.
    `types` has those columns whose type differs from that of their word.
    """

    name: str
    words: str
    key: Sequence[str]
    checks: Sequence[Check] = ()
    types: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """Names of the columns in their order."""
        return self.words.split()

    @property
    def dtypes(self) -> dict[str, str]:
        """Types by column, in the order of the columns."""
        return {name: self.types.get(name, WORDS[name][0]) for name in self.columns}

    def empty(self) -> pd.DataFrame:
        """Return the table without rows."""
        return self.typed(pd.DataFrame(columns=self.columns))

    def typed(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the columns of the table, in their order and with their types."""
        return table[self.columns].astype(self.dtypes)

    def without(self, note: str) -> dg.MaterializeResult[pd.DataFrame]:
        """Return the table without rows as an asset's result, with the reason."""
        return dg.MaterializeResult(value=self.empty(), metadata={"note": note})

    def results(self, table: pd.DataFrame) -> Iterator[dg.AssetCheckResult]:
        """Return how each declared check comes out; those about all rows are evaluated at once."""
        whole = [check for check in self.checks if check.rows is None and not check.ids]
        apart = [check for check in self.checks if check not in whole]
        for checks in (whole, *([check] for check in apart)):
            if not checks:
                continue
            (first, *_) = checks
            results = evaluate_together(
                table if first.rows is None else first.rows(table),
                [check.rules for check in checks],
                ids=first.ids or self.key,
                remedies=[check.remedy for check in checks],
                severities=[check.severity for check in checks],
            )
            for check, result in zip(checks, results, strict=True):
                yield result._replace(check_name=check.name)

    def check(self, name: str, table: pd.DataFrame) -> dg.AssetCheckResult:
        """Return how one declared check comes out."""
        checks = [check for check in self.checks if check.name == name]
        (result,) = replace(self, checks=checks).results(table)
        return result

    def sound(self, n_rows: int = 3) -> pd.DataFrame:
        """Return rows that keep every rule, as the declaration has them."""
        cells = {name: _CELLS.get(kind, 1) for name, kind in self.dtypes.items()}
        cells |= {"status": "ok"} if "status" in cells else {}
        for check in self.checks:
            for rule in check.rules:
                cells |= {name: it for name, it in rule.sound.items() if name in cells}
        table = pd.DataFrame([cells] * n_rows)
        varied = {
            name: [f"{name}-{row}" for row in range(n_rows)]
            for name in self.columns
            if cells[name] == "x" and self.dtypes[name] == "str"
        }
        return table.assign(**varied)
