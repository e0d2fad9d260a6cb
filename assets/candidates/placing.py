"""New models placed among the models that people rated, and attack controls held to bounds."""

import dagster as dg
import pandas as pd

from assets.checks import table_check
from assets.conditions import follows_judged_candidates
from assets.engine import step_asset
from judgeline.reliability import failures
from judgeline.steps import candidates
from judgeline.steps.reliability import gate_of
from resources.tables.expectations import check_result

ABOVE_CHANCE = 2.33
"""Standard errors of its rating that a control must lie above its bound to fail: chance alone
takes one of a hundred controls that stand at their bound so high."""


candidate_ratings = step_asset(
    candidates.candidate_ratings,
    "9",
    follows_judged_candidates,
    columns={"candidates": candidates.NEWCOMER},
    deps=["judge_gate"],  # of the check
)


@table_check(candidate_ratings)
def controls_stay_low(
    candidate_ratings: pd.DataFrame, judge_gate: pd.DataFrame
) -> dg.AssetCheckResult:
    """A control above its bound, by more than chance, shows a judge that can be talked round."""
    controls = candidate_ratings[candidate_ratings["control"].notna()].sort_values("control")
    reason = failures(gate_of(judge_gate), withholding=True)
    if reason and len(controls):
        return check_result(
            f"Ratings by this judge are withheld, and those of its controls with them: {reason}.",
            "See what judge_gate says, and choose a better judge or prompt; then run again.",
            passed=False,
            withheld=reason,
        )
    noise = ABOVE_CHANCE * controls["judge_std_error"].fillna(0.0)
    high = controls[controls["rise"].gt(noise)]
    unknown = controls[controls["rise"].isna()]
    sentences = [
        f"{row.control} is rated {row.rating:.0f} Elo on {row.n_battles} battles, {row.rise:.0f} "
        f"above its bound of {row.bound:.0f} ({row.bound_is}), with a standard error of "
        f"{row.judge_std_error:.0f}."
        for row in high.itertuples()
    ]
    sentences += [f"{row.control}: {row.note}." for row in unknown.itertuples()]
    remedy = ""
    if len(high):
        remedy = (
            "Do not trust this judge's ratings of models that may have been tuned to it: read its "
            "verdicts on the control's battles in candidate_verdicts, then change the judge or "
            "its prompt; a bound that is too strict is set under 'candidates.controls' of the "
            "corpus in corpora.yaml."
        )
    elif len(unknown):
        remedy = "Materialise candidate_verdicts, within a budget that covers the controls."
    else:
        sentences = [f"{len(controls)} controls stay at or below their bounds, but for chance."]
    n_high = len(high)
    passed = not remedy
    return check_result(" ".join(sentences), remedy, passed=passed, warns=not n_high, n_high=n_high)
