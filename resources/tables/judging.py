"""Declared tables of judging: answers by form, scored battles, and the plan of calls."""

from resources.tables.corpus import RECORDED_VERDICTS
from resources.tables.schema import Table

_ACCOUNT = (
    "evidence answer log_probabilities prompt_tokens completion_tokens identity reply_model "
    "system_fingerprint said"
)
VERDICTS = Table("verdicts", RECORDED_VERDICTS.words, key=["battle_id", "order", "replicate"])
CHOICE_VERDICTS = Table(
    "choice_verdicts",
    f"battle_id judge order replicate status choice p_a p_tie p_b covered perplexity {_ACCOUNT}",
    key=["battle_id", "order", "replicate"],
)
SCORE_VERDICTS = Table(
    "score_verdicts",
    "completion_id question_id model judge replicate status score expected_score covered "
    f"scale_low scale_high {_ACCOUNT}",
    key=["completion_id", "replicate"],
)
SCORED_BATTLES = Table(
    "scored_battles",
    "battle_id question_id cluster_id model_a model_b language human_outcome score_difference "
    "judge_outcome recorded_outcome difference_ab difference_ba length_a length_b",
    key=["battle_id"],
)
CALL_PLAN = Table(
    "call_plan",
    "judge n_needed n_stored prompt_tokens completion_tokens price most_price currency note",
    key=["judge"],
    types={"n_needed": "Int64", "n_stored": "Int64"},
)
