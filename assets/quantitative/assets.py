"""Quantitative judges: outcomes learnt from votes and from a judge's reasons."""

from assets.conditions import AFTER_THE_BOARD
from assets.engine import step_asset
from judgeline.steps import quantitative

quantitative_outcomes, quantitative_judges = (
    step_asset(step, "2", needs=("score_verdicts",), op_tags=AFTER_THE_BOARD)
    for step in (quantitative.quantitative_outcomes, quantitative.quantitative_judges)
)
