"""Items of the TrustJudge paper, of which this version computes none."""

from judgeline.papers.tables import Paper, uncomputed

_BOTH = (
    "token probabilities of scores and of comparisons by four judges on one scale each (not public)"
)
_PAIRS = "comparisons in both orders with their perplexities (not public)"
PAPER = Paper(
    "trustjudge",
    uncomputed(
        "trustjudge",
        {
            "table1": ("conflict and non-transitivity ratios by judge", _BOTH),
            "table2": ("parts of the method alone", f"{_BOTH}; {_PAIRS}"),
            "table3": ("a reasoning model", _BOTH),
            "table4": ("win rates after preference training", "verdicts on AlpacaEval 2 answers"),
            "table5": ("mean of three dimensions", _BOTH),
            "table6": ("ratios by category", _BOTH),
            "fig5": ("example probabilities of a score", "the printed example itself"),
            "fig6": ("example probabilities of a comparison", "the printed example itself"),
            "text": ("numbers of the text", _BOTH),
        },
    ),
)
