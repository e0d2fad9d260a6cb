"""What a reader must not miss about a judge: said in a sentence above the numbers."""

from typing import NamedTuple

import numpy as np

from resources.report.judge_tables import JudgeTables
from resources.report.wording import method_words, number, status_words


class Finding(NamedTuple):
    """A sentence and whether it warns."""

    text: str
    warns: bool


def findings_of(tables: JudgeTables) -> list[Finding]:
    """Return the sentences that stand above a judge's leaderboard.

    Parameters
    ----------
    tables : JudgeTables
        Tables of one judge.

    Returns
    -------
    list of Finding
        Whether calibration helped; then folds without a slope, intervals without ends and
        failed checks, where there are any.
    """
    return [*_calibration(tables), *_folds(tables), *_thresholds(tables), *_checks(tables)]


def _calibration(tables: JudgeTables) -> list[Finding]:
    errors = tables.summary.set_index("method")["mae"]
    if not {"hard", "soft"} <= set(errors.index) or errors[["hard", "soft"]].isna().any():
        return []
    soft, hard = (f"{number(errors[method], 1)} Elo" for method in ("soft", "hard"))
    if errors["soft"] > errors["hard"]:
        return [
            Finding(
                f"Calibration made this judge worse: the mean absolute error is {soft} with soft "
                f"outcomes and {hard} with hard ones. Its scores may be too noisy a measure of "
                "what people prefer; read the soft ratings with care.",
                warns=True,
            )
        ]
    return [
        Finding(
            f"Calibration helped: mean absolute error {soft}, against {hard} hard.", warns=False
        )
    ]


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
    rows = table[(table["method"] == tables.ranking_method) & np.isinf(table["threshold"])]
    return [
        Finding(
            f"Intervals ({method_words(row.method)}) are unbounded: "
            f"{row.note or f'{row.n_models} models are too few for this coverage.'}",
            warns=True,
        )
        for row in rows.itertuples()
    ]


def _checks(tables: JudgeTables) -> list[Finding]:
    if tables.checks is None or tables.checks["passed"].all():
        return []
    failed = int((~tables.checks["passed"].astype(bool)).sum())
    return [
        Finding(f"{failed} of {len(tables.checks)} quality checks failed; see below.", warns=True)
    ]
