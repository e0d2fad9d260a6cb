"""Files of judged battles, read: columns, codes of outcomes, rows set aside with their reasons."""

from judgeline.io.answers import ONE_SYSTEM, read_answers
from judgeline.io.failures import parse_missing
from judgeline.io.files import write_together
from judgeline.io.formats import SUFFIXES, file_columns, files_of
from judgeline.io.judged import (
    LENGTHS,
    OF_A_TABLE,
    JudgedBattles,
    MissingColumnsError,
    read_judged_battles,
)
from judgeline.io.layout import Stated
from judgeline.io.layouts import READERS, read_files
from judgeline.io.makers import family_of
from judgeline.io.one_battle import ORDERS
from judgeline.io.outcome_codes import (
    COUNT,
    PLAIN,
    battles_by,
    n_battles_of,
    parse_codes,
    require_both_winners,
    require_few_lost,
)
from judgeline.io.plain_ratings import plain_ratings
from judgeline.io.published import each_category, language_code
from judgeline.io.schema import CorpusRead, empty, typed
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
    with_flags,
    with_waiting_votes,
)
from judgeline.suggest import ArgumentError

__all__ = [
    "COUNT", "LEAST_SHARE", "LENGTHS", "OF_A_TABLE", "ONE_SYSTEM", "ORDERS", "PLAIN", "RANKS",
    "READERS", "SUFFIXES", "ArgumentError", "CorpusRead", "JudgedBattles", "MissingColumnsError",
    "Stated", "are_plain", "as_coded", "as_numbers", "as_outcome_tables", "as_table", "battles_by",
    "by_question", "by_score", "common_battles", "each_category", "empty", "family_of",
    "file_columns", "files_of", "language_code", "n_battles_of", "parse_codes", "parse_missing",
    "plain_ratings", "questions_of", "read_answers", "read_files", "read_judged_battles",
    "require_both_winners", "require_few_lost", "score_battles", "typed", "verdict_differences",
    "votes_that_wait", "with_flags", "with_waiting_votes", "write_together",
]  # fmt: skip
