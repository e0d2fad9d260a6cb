from assets.candidates.attack_controls import COLUMNS as CONTROL_COLUMNS
from assets.candidates.judging import WHOSE
from assets.candidates.prediction_record import PREDICTION_DTYPES
from assets.diagnostics.influences import INFLUENCE_COLUMNS
from assets.diagnostics.tables import MISSINGNESS_COLUMNS
from assets.quantitative.tables import OUTCOME_COLUMNS
from assets.reference.anchoring import RATING_COLUMNS
from assets.reference.reach import DIAGNOSTIC_COLUMNS
from assets.reference.systems import SYSTEM_COLUMNS
from assets.reliability.tables import DRIFT_DTYPES, PANEL_DTYPES
from assets.trust.consistency import CONSISTENCY_DTYPES
from assets.trust.scoring import SOFT_DTYPES
from judgeline.diagnostics.judge import Diagnostics
from judgeline.diagnostics.missing_bounds import MissingBounds
from judgeline.elo import BetaFolds, HeldOutRatings
from judgeline.intervals import ConformalCalibration, Leaderboard
from judgeline.io import BATTLE_DTYPES, QUARANTINE_DTYPES, SCORED_COLUMNS, VERDICT_DTYPES
from judgeline.quantitative import LearningCurve
from judgeline.reliability.gate import Gate
from judgeline.report import COMPARISON_COLUMNS
from judgeline.winrate import LabelPlans, ModelWinRates, WinRateCoverage
from resources.candidates.choosing import CANDIDATE_BATTLE_DTYPES
from resources.candidates.schema import CANDIDATE_DTYPES, REFUSED_DTYPES
from resources.embeddings.rationales import COLUMNS as EMBEDDING_COLUMNS
from resources.judges.epochs import EPOCH_DTYPES
from resources.judges.forms.choice import CHOICE_DTYPES
from resources.judges.forms.score import SCORE_DTYPES
from resources.judges.judge_plan import PLAN_COLUMNS
from resources.method_table import SUMMARY_COLUMNS
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
