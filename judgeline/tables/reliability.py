"""Declared tables of reliability: the panel, the gate, and the drift watch."""

from judgeline.reliability import Gate
from judgeline.tables.judging import VERDICTS
from judgeline.tables.schema import Table

RELIABILITY_PANEL = Table(
    "reliability_panel",
    "battle_id judge replicate selection_order status score_difference judge_outcome "
    "difference_ab difference_ba",
    key=["battle_id", "replicate"],
)
JUDGE_GATE = Table("judge_gate", Gate, key=["criterion"])
DRIFT_ANSWERS = Table(
    "drift_answers",
    [*VERDICTS.columns, "epoch", "asked_at", "judge_version", "selection_order", "run_id"],
    key=["battle_id", "order", "epoch"],
)
JUDGE_DRIFT = Table(
    "judge_drift",
    "statistic baseline now change std_error z n_battles epoch asked_at moved e_value fresh_moved "
    "fresh_e_value verdict unit note",
    key=["statistic", "epoch"],
)
