"""What the tables of scores and of choices share: when they are empty, and how they are checked."""

from collections.abc import Sequence
from typing import Any

import dagster as dg
import pandas as pd

from assets.asking import WARN_PARSED, parse_rate
from assets.judging import STATUSES
from resources.expectations import evaluate
from resources.judges.forms.options import FormName

EVIDENCE = ("log-probabilities", "samples", "published", "none")
LEAST_COVERED = 0.5
WARN_COVERED = 0.95
SUM_SLACK = 1e-6
REMEDY = "Look at `answer` and `log_probabilities` of these rows: the reader let them through."


def not_asked(
    dtypes: dict[str, str], slug: str, form: FormName
) -> dg.MaterializeResult[pd.DataFrame]:
    """Return an empty table with the columns of one, and why the judge has no other."""
    note = (
        f"judge {slug!r} is not asked in the form {form!r}: add it to the judge's 'asks' in "
        "config/judges.yaml"
    )
    table = pd.DataFrame([], columns=list(dtypes)).astype(dtypes)
    return dg.MaterializeResult(value=table, metadata={"note": note})


def well_formed(
    columns: Sequence[str], key: list[str], unit: Sequence[str], statuses: Sequence[str] = STATUSES
) -> list[Any]:
    """Return what both tables must meet: columns, keys, known fates, shares within [0, 1]."""
    import great_expectations.expectations as gxe

    known = (*key, "judge", "status", "evidence", "identity")
    return [
        gxe.ExpectTableColumnsToMatchSet(
            column_set=list(columns), exact_match=False, notes="no column is missing"
        ),
        *(gxe.ExpectColumnValuesToNotBeNull(column=c, notes=f"{c} is known") for c in known),
        gxe.ExpectCompoundColumnsToBeUnique(
            column_list=[*key, "judge"], notes="a presentation has one verdict per replicate"
        ),
        gxe.ExpectColumnValuesToBeInSet(
            column="status",
            value_set=list(statuses),
            notes=f"status is one of {', '.join(statuses)}",
        ),
        gxe.ExpectColumnValuesToBeInSet(
            column="evidence",
            value_set=list(EVIDENCE),
            notes=f"evidence is one of {', '.join(EVIDENCE)}",
        ),
        *(
            gxe.ExpectColumnValuesToBeBetween(
                column=c,
                min_value=0,
                max_value=1 + SUM_SLACK,
                notes=f"{c} lies in [0, 1]",
            )
            for c in unit
        ),
        gxe.ExpectColumnValuesToBeInSet(
            column="surplus", value_set=[False], notes="a failed answer says nothing"
        ),
    ]


def parse_rate_of(verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """Warn where many answers could not be read; a judge that was not asked passes.

    It stops nothing: what a judge cannot say in one form leaves what it says in others as it is.
    """
    if verdicts.empty:
        return dg.AssetCheckResult(passed=True, description="The judge was not asked in this form.")
    return parse_rate(verdicts, WARN_PARSED, dg.AssetCheckSeverity.WARN)


def well_covered(verdicts: pd.DataFrame, ids: list[str]) -> dg.AssetCheckResult:
    """Warn where much of what a judge could have said is not among what was listed."""
    import great_expectations.expectations as gxe

    return evaluate(
        verdicts[verdicts["covered"].notna()],
        [
            gxe.ExpectColumnValuesToBeBetween(
                column="covered",
                min_value=LEAST_COVERED,
                mostly=WARN_COVERED,
                notes=f"at least {WARN_COVERED:.0%} of the answers tell {LEAST_COVERED:.0%} of the "
                "probability, or more",
            )
        ],
        ids=ids,
        remedy="Look at `log_probabilities` of these rows: the endpoint lists too few "
        "alternatives for the scale, or the judge begins with other words. A coarser "
        "'score.scale' or samples (log_probabilities: off) help.",
        severity=dg.AssetCheckSeverity.WARN,
    )
