"""Findings about a judge: sentences above the numbers that a reader must not miss."""

from typing import NamedTuple

import numpy as np

from judgeline.report.judge_tables import JudgeTables
from judgeline.report.wording import (
    groups_text,
    method_words,
    number,
    status_words,
    surrogacy_text,
)


class Finding(NamedTuple):
    """A sentence and whether it warns."""

    text: str
    warns: bool


def findings_of(tables: JudgeTables) -> list[Finding]:
    """Return the sentences that stand above a judge's leaderboard."""
    if tables.withheld:
        return [_withheld(tables.withheld), *_folds(tables), *_checks(tables)]
    return [
        *_errors(tables),
        *_surrogacy(tables),
        *_folds(tables),
        *_thresholds(tables),
        *_checks(tables),
    ]


def _withheld(reason: str) -> Finding:
    return Finding(
        f"The ratings of this judge are withheld, since it failed its gate: {reason}. Nothing "
        "below places a model by this judge.",
        warns=True,
    )


def _errors(tables: JudgeTables) -> list[Finding]:
    ranking = tables.ranking_method
    known = tables.summary.set_index("method")["mae"].to_dict()
    errors = {name: known.get(name, np.nan) for name in ("hard", "soft", ranking)}
    nearer = [name for name in ("hard", "soft") if errors[name] < errors[ranking]]
    if not nearer:
        return []
    said = ", ".join(f"{method_words(name)} {number(errors[name], 1)} Elo" for name in nearer)
    return [
        Finding(
            f"Another method is nearer to people here: the mean absolute error is {said}, and "
            f"{number(errors[ranking], 1)} Elo by {method_words(ranking)}, which ranks.",
            warns=False,
        )
    ]


def _surrogacy(tables: JudgeTables) -> list[Finding]:
    said = surrogacy_text(tables.judge_diagnostics)
    return [Finding(said, warns=False)] if said else []


def _folds(tables: JudgeTables) -> list[Finding]:
    folds = tables.beta_folds
    failed = folds[folds["status"] != "ok"]
    if failed.empty:
        return []
    reasons = ", ".join(sorted({status_words(str(status)) for status in failed["status"]}))
    return [
        Finding(
            f"Beta has no value in {len(failed)} of {len(folds)} folds ({reasons}): soft ratings "
            "of those models are missing.",
            warns=True,
        )
    ]


def _thresholds(tables: JudgeTables) -> list[Finding]:
    table = tables.conformal_calibration
    said = []
    for row in table[table["method"] == tables.ranking_method].itertuples():
        why = row.note or f"{row.n_models} models are too few for this coverage"
        if np.isinf(row.threshold):
            said.append(Finding(f"Intervals are unbounded: {why}.", warns=True))
    if groups := groups_text(table, tables.ranking_method):
        said.append(Finding(groups, warns=True))
    return said


def _checks(tables: JudgeTables) -> list[Finding]:
    if tables.checks is None or tables.checks["passed"].all():
        return []
    failed = int((~tables.checks["passed"].astype(bool)).sum())
    return [
        Finding(f"{failed} of {len(tables.checks)} quality checks failed; see below.", warns=True)
    ]
