"""What a reader must not miss about a judge: said in a sentence above the numbers."""

from typing import NamedTuple

import numpy as np

from resources.report.judge_tables import JudgeTables
from resources.report.wording import number, status_words


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
        failed checks, where there are any. Where ratings are withheld, why, in the first place.
    """
    if tables.withheld:
        return [_withheld(tables.withheld), *_folds(tables), *_checks(tables)]
    return [*_calibration(tables), *_folds(tables), *_thresholds(tables), *_checks(tables)]


def _withheld(reason: str) -> Finding:
    return Finding(
        f"The ratings of this judge are withheld, since it failed its gate: {reason}. Nothing "
        "below places a model by this judge.",
        warns=True,
    )


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
    if errors["soft"] == errors["hard"]:
        return []
    return [
        Finding(
            f"Calibration helped: the mean absolute error is {soft} soft and {hard} hard.",
            warns=False,
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
    said = []
    for row in table[table["method"] == tables.ranking_method].itertuples():
        why = row.note or f"{row.n_models} models are too few for this coverage"
        if np.isinf(row.threshold):
            said.append(Finding(f"Intervals are unbounded: {why}.", warns=True))
        elif np.isinf(row.median_width):
            said.append(Finding(f"Coverage could not be tried on held-back models: {why}.", True))
    return said


def _checks(tables: JudgeTables) -> list[Finding]:
    if tables.checks is None or tables.checks["passed"].all():
        return []
    failed = int((~tables.checks["passed"].astype(bool)).sum())
    return [
        Finding(f"{failed} of {len(tables.checks)} quality checks failed; see below.", warns=True)
    ]
