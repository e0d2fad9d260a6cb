"""Files of judged battles, read: columns, codes of outcomes, rows set aside with their reasons."""

from judgeline.io.answers import ONE_SYSTEM, read_answers
from judgeline.io.failures import NONE_MISSING, Missing, parse_missing
from judgeline.io.files import (
    LAYOUTS,
    layout_of,
    published_layout,
    read_layout,
    write_together,
)
from judgeline.io.formats import SUFFIXES, file_columns, files_of, kind_of, read_columns
from judgeline.io.judged import (
    LENGTHS,
    JudgedBattles,
    MissingColumnsError,
    read_judged_battles,
)
from judgeline.io.makers import family_of
from judgeline.io.one_battle import ORDERS
from judgeline.io.outcome_codes import (
    COUNT,
    EXPECTED_WINNERS,
    PLAIN,
    STATED_AS,
    VERDICT_LEVELS,
    ArgumentError,
    battles_by,
    n_battles_of,
    outcomes_by_code,
    outcomes_by_winner,
    parse_codes,
    require_both_winners,
    require_few_lost,
    require_known_codes,
    without_blanks,
)
from judgeline.io.plain import plain_ratings
from judgeline.io.published import (
    categories,
    each_category,
    judge_slugs,
    language_code,
    languages,
    names,
    outcomes,
    truths,
)
from judgeline.io.schema import (
    CorpusRead,
    Fault,
    empty,
    fault,
    in_file_order,
    missing_models,
    set_aside,
    typed,
)
from judgeline.io.scoring import (
    LEAST_SHARE,
    RANKS,
    are_plain,
    as_coded,
    as_numbers,
    as_outcome_tables,
    as_table,
    by_question,
    by_score,
    common_battles,
    questions_of,
    score_battles,
    verdict_differences,
    votes_that_wait,
    with_waiting_votes,
)
from judgeline.io.softelo import read_softelo
from judgeline.io.voters import are_machines, columns_of_judges, columns_of_voters

__all__ = [
    "COUNT", "EXPECTED_WINNERS", "LAYOUTS", "LEAST_SHARE", "LENGTHS", "NONE_MISSING", "ONE_SYSTEM",
    "ORDERS", "PLAIN", "RANKS", "STATED_AS", "SUFFIXES", "VERDICT_LEVELS", "ArgumentError",
    "CorpusRead", "Fault", "JudgedBattles", "Missing", "MissingColumnsError", "are_machines",
    "are_plain", "as_coded", "as_numbers", "as_outcome_tables", "as_table", "battles_by",
    "by_question", "by_score", "categories", "columns_of_judges", "columns_of_voters",
    "common_battles", "each_category", "empty", "family_of", "fault", "file_columns", "files_of",
    "in_file_order", "judge_slugs", "kind_of", "language_code", "languages", "layout_of",
    "missing_models", "n_battles_of", "names", "outcomes", "outcomes_by_code", "outcomes_by_winner",
    "parse_codes", "parse_missing", "plain_ratings", "published_layout", "questions_of",
    "read_answers", "read_columns", "read_judged_battles", "read_layout", "read_softelo",
    "require_both_winners", "require_few_lost", "require_known_codes", "score_battles", "set_aside",
    "truths", "typed", "verdict_differences", "votes_that_wait", "with_waiting_votes",
    "without_blanks", "write_together",
]  # fmt: skip
