"""Declared tables of trust: outcomes of single scores and choices, and their consistency."""

from judgeline.tables.rules import among, holds, known, unique, within
from judgeline.tables.schema import stops, table

CONFLICT, VIOLATION = "conflict-ratio", "non-transitivity"
"""Measures of consistency."""

OVERALL, ALL = "overall", "all"
"""Dimension and category of a measure over the whole corpus."""

SOURCES = ("likelihood", "perplexity", "choice", "score", "score-plain")

SOFT_OUTCOMES = table(
    "soft_outcomes",
    "battle_id source outcome soft_outcome score_difference",
    ["battle_id", "source"],
    stops(
        "soft_outcomes_are_shares",
        "Outcomes and score differences lie on their scales, one row per battle and source.",
        "Remake score_verdicts, choice_verdicts and soft_outcomes; one of them is old.",
        unique("battle_id", "source"),
        among("source", SOURCES),
        *known("outcome"),
        among("outcome", [0.0, 0.5, 1.0], "outcome is 1, 0.5 or 0"),
        within("soft_outcome", 0, 1),
        within("score_difference", -9, 9),
    ),
)
CONSISTENCY = table(
    "consistency",
    "measure source scores size category dimension n ratio circular equality",
    ["measure", "source", "size", "category", "dimension"],
    stops(
        "consistency_is_sound",
        "A ratio is a share of what was counted, and no kind of violation exceeds the whole.",
        "Remake soft_outcomes and consistency together; they are of different samples.",
        within("ratio", 0, 1),
        holds(
            "is_part",
            lambda t: ~t[["circular", "equality"]].max(axis=1).gt(t["ratio"]),
            "circular and equality are parts of the ratio",
        ),
        holds(
            "founded",
            lambda t: t["ratio"].notna().eq(t["n"].gt(0)),
            "there is a ratio where, and only where, something was counted",
        ),
    ),
)
