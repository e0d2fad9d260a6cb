"""Common parts of the score and choice tables: when they are empty, and their checks."""

from typing import Any

import dagster as dg
import pandas as pd

from assets.judging.asking import WARN_PARSED, parse_rate
from assets.judging.assets import STATUSES
from resources.config.judges import JudgeDefinition
from resources.judges.forms.options import FormName
from resources.tables.expectations import evaluate

EVIDENCE = ("log-probabilities", "samples", "published", "none")
LEAST_COVERED = 0.5
WARN_COVERED = 0.95
SUM_SLACK = 1e-6
REMEDY = "Look at `answer` and `log_probabilities` of these rows: the reader let them through."


def why_not_asked(judge: JudgeDefinition, form: FormName, battles: pd.DataFrame) -> str | None:
    """Return why a judge is not asked about battles in a form, and what to do; None if it is."""
    if form not in judge.asks:
        return (
            f"judge {judge.slug!r} is not asked in the form {form!r}: add it to the judge's 'asks' "
            "in config/judges.yaml"
        )
    if battles[["completion_a", "completion_b"]].isna().all(axis=None):
        return (
            f"judge {judge.slug!r} is not asked in the form {form!r}, since the corpus has no "
            "texts: choose one that publishes them"
        )
    return None


def not_asked(dtypes: dict[str, str], note: str) -> dg.MaterializeResult[pd.DataFrame]:
    """Return an empty table with the columns of one, and why the judge has no other."""
    table = pd.DataFrame([], columns=list(dtypes)).astype(dtypes)
    return dg.MaterializeResult(value=table, metadata={"note": note})


def well_formed(
    verdicts: pd.DataFrame, key: list[str], said: list[str], shares: list[str]
) -> tuple[pd.DataFrame, list[Any]]:
    """Return a table of verdicts and what tables of every form must meet, to be checked together.

    Parameters
    ----------
    verdicts : DataFrame
        With the columns of its form; those of another table lack some, and fail.
    key : list of str
        Columns that name a presentation.
    said : list of str
        Columns of what an answer says, all null where it failed, and not all where it did not.
    shares : list of str
        Columns that hold numbers from 0 to 1, or nothing.
    """
    import great_expectations.expectations as gxe

    known = [*key, "judge", "status", "evidence", "identity"]
    parsed = verdicts["status"].eq("ok")
    table = verdicts.assign(
        n_unknown=verdicts.reindex(columns=known).isna().sum(axis=1),
        matches_status=verdicts[said].notna().any(axis=1) == parsed,
        least_share=verdicts[shares].min(axis=1),
        greatest_share=verdicts[shares].max(axis=1),
    )
    return table, [
        gxe.ExpectColumnValuesToBeInSet(
            column="n_unknown", value_set=[0], notes=f"{', '.join(known)} are known"
        ),
        gxe.ExpectCompoundColumnsToBeUnique(
            column_list=key, notes="a presentation has one verdict per replicate"
        ),
        gxe.ExpectColumnValuesToBeInSet(
            column="status",
            value_set=list(STATUSES),
            notes=f"status is one of {', '.join(STATUSES)}",
        ),
        gxe.ExpectColumnValuesToBeInSet(
            column="evidence",
            value_set=list(EVIDENCE),
            notes=f"evidence is one of {', '.join(EVIDENCE)}",
        ),
        gxe.ExpectColumnValuesToBeInSet(
            column="matches_status",
            value_set=[True],
            notes="an answer that is ok says something, and a failed one nothing",
        ),
        gxe.ExpectColumnValuesToBeBetween(
            column="least_share", min_value=0, notes=f"{', '.join(shares)} are 0 or more"
        ),
        gxe.ExpectColumnValuesToBeBetween(
            column="greatest_share",
            max_value=1 + SUM_SLACK,
            notes=f"{', '.join(shares)} are 1 or less",
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
