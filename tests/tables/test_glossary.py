from assets.candidates.attack_controls import COLUMNS as CONTROL_COLUMNS
from assets.candidates.judging import WHOSE
from assets.candidates.prediction_record import PREDICTION_DTYPES
from assets.diagnostics.accounting import MISSINGNESS_COLUMNS
from assets.diagnostics.influences import INFLUENCE_COLUMNS
from assets.judging.scoring import SCORED_COLUMNS
from assets.quantitative.tables import OUTCOME_COLUMNS
from assets.reference.anchoring import RATING_COLUMNS
from assets.reference.reach import DIAGNOSTIC_COLUMNS
from assets.reference.system_comparison import SYSTEM_COLUMNS
from assets.reliability.drift_tables import DRIFT_DTYPES
from assets.reliability.panel_tables import PANEL_DTYPES
from assets.trust.consistency import CONSISTENCY_DTYPES
from assets.trust.scoring import SOFT_DTYPES
from judgeline.diagnostics.judge import Diagnostics
from judgeline.diagnostics.missing_bounds import MissingBounds
from judgeline.elo.beta import BetaFolds
from judgeline.elo.rate import HeldOutRatings
from judgeline.intervals.board import Leaderboard
from judgeline.intervals.conformal import ConformalCalibration
from judgeline.quantitative import LearningCurve
from judgeline.reliability.gate import Gate
from judgeline.winrate import LabelPlans, ModelWinRates, WinRateCoverage
from resources.candidates.choosing import CANDIDATE_BATTLE_DTYPES
from resources.candidates.schema import CANDIDATE_DTYPES, REFUSED_DTYPES
from resources.corpora.schema import BATTLE_DTYPES, QUARANTINE_DTYPES
from resources.embeddings.rationales import COLUMNS as EMBEDDING_COLUMNS
from resources.judges.annotation import VERDICT_DTYPES
from resources.judges.epochs import EPOCH_DTYPES
from resources.judges.judge_plan import PLAN_COLUMNS
from resources.judges.soft_annotation import CHOICE_DTYPES, SCORE_DTYPES
from resources.method_table import SUMMARY_COLUMNS
from resources.report.judge_tables import COMPARISON_COLUMNS
from resources.tables.glossary import MEANINGS

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
