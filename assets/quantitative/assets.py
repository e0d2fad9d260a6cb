"""Quantitative judges: outcomes learnt from votes and from a judge's reasons."""

from assets.engine import step_asset
from judgeline.steps import quantitative

quantitative_outcomes = step_asset(
    quantitative.quantitative_outcomes, "2", needs=("score_verdicts",)
)
quantitative_judges = step_asset(quantitative.quantitative_judges, "2", needs=("score_verdicts",))
