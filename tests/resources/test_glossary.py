from assets.attack_controls import COLUMNS as CONTROL_COLUMNS
from assets.candidate_judging import WHOSE
from assets.influences import INFLUENCE_COLUMNS
from judgeline.beta import BetaFolds
from judgeline.conformal import ConformalCalibration
from judgeline.diagnostics import Diagnostics
from judgeline.gate import Gate
from judgeline.heldout import HeldOutRatings
from judgeline.label_plans import LabelPlans
from judgeline.leaderboard import Leaderboard
from judgeline.missing_bounds import MissingBounds
from judgeline.model_win_rates import ModelWinRates
from judgeline.quantitative_curve import LearningCurve
from judgeline.win_rate_coverage import WinRateCoverage
from resources.accounting import MISSINGNESS_COLUMNS
from resources.anchoring import RATING_COLUMNS
from resources.candidates.choosing import CANDIDATE_BATTLE_DTYPES
from resources.candidates.schema import CANDIDATE_DTYPES, REFUSED_DTYPES
from resources.corpora.schema import BATTLE_DTYPES, QUARANTINE_DTYPES
from resources.drift import DRIFT_DTYPES
from resources.embeddings.rationales import COLUMNS as EMBEDDING_COLUMNS
from resources.glossary import MEANINGS
from resources.judges.annotation import VERDICT_DTYPES
from resources.judges.epochs import EPOCH_DTYPES
from resources.judges.judge_plan import PLAN_COLUMNS
from resources.judges.soft_annotation import CHOICE_DTYPES, SCORE_DTYPES
from resources.method_table import SUMMARY_COLUMNS
from resources.prediction_record import PREDICTION_DTYPES
from resources.quantitative import OUTCOME_COLUMNS
from resources.reference_reach import DIAGNOSTIC_COLUMNS
from resources.reliability_panel import PANEL_DTYPES
from resources.report.judge_tables import COMPARISON_COLUMNS
from resources.scoring import SCORED_COLUMNS
from resources.self_consistency import CONSISTENCY_DTYPES
from resources.soft_scoring import SOFT_DTYPES
from resources.system_comparison import SYSTEM_COLUMNS

SHOWN = {
    *DRIFT_DTYPES,
    *EPOCH_DTYPES,
    *INFLUENCE_COLUMNS,
    *SUMMARY_COLUMNS,
    *PLAN_COLUMNS,
    *BATTLE_DTYPES,
    *QUARANTINE_DTYPES,
    *VERDICT_DTYPES,
    *SCORED_COLUMNS,
    *SCORE_DTYPES,
    *CHOICE_DTYPES,
    *SOFT_DTYPES,
    *CONSISTENCY_DTYPES,
    *EMBEDDING_COLUMNS,
    *OUTCOME_COLUMNS,
    *COMPARISON_COLUMNS,
    *MISSINGNESS_COLUMNS,
    *PANEL_DTYPES,
    *RATING_COLUMNS,
    *DIAGNOSTIC_COLUMNS,
    *CANDIDATE_DTYPES,
    *REFUSED_DTYPES,
    *CANDIDATE_BATTLE_DTYPES,
    *SYSTEM_COLUMNS,
    *PREDICTION_DTYPES,
    *CONTROL_COLUMNS,
    *WHOSE,
    "selection_order",
    "half_width",
    "judges",
    *(
        field
        for table in (
            BetaFolds,
            HeldOutRatings,
            ConformalCalibration,
            Leaderboard,
            Diagnostics,
            MissingBounds,
            ModelWinRates,
            WinRateCoverage,
            LabelPlans,
            Gate,
            LearningCurve,
        )
        for field in table._fields
    ),
}


def test_every_column_of_every_table_has_a_meaning_and_none_is_left_over() -> None:
    assert set(MEANINGS) == SHOWN
