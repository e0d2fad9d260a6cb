"""Items of the reference-anchored paper (RAEE), of which this version computes none."""

from judgeline.papers.tables import Paper, uncomputed

_DIRECT = (
    "judges' 1-10 scores of MT-Bench answers, five runs of two turns (judge outputs: not public)"
)
_AGAINST = "judges' comparisons of MT-Bench answers with one reference, five runs (not public)"
_DOMAINS = "the same for FloRES and TL;DR, by language or category (not public)"
PAPER = Paper(
    "reference_anchored",
    uncomputed(
        "reference_anchored",
        {
            "table1": ("direct 1-10 scores, means over judges", _DIRECT),
            "table2": ("standard errors, direct and anchored", f"{_DIRECT}; {_AGAINST}"),
            "table3": ("win probabilities and Elo, three references", _AGAINST),
            "table4": ("cross-domain means", _DOMAINS),
            "table5": ("anchors compared", _AGAINST),
            "table6": ("abstention: errors and coverage", f"{_DIRECT}; {_AGAINST}"),
            "table7": ("spread over judges of four rating systems", _AGAINST),
            "table8": ("direct 1-10 scores by judge", _DIRECT),
            "table9": ("standard error by number of prompts", _AGAINST),
            "table10": ("FloRES by language", _DOMAINS),
            "table11": ("TL;DR by category", _DOMAINS),
            "table12": ("all and kept prompts", f"{_DIRECT}; {_AGAINST}"),
            "table13": ("Jeffreys against Laplace", f"{_AGAINST}; {_DOMAINS}"),
            "table14": ("standard error at 40 prompts, three tasks", f"{_AGAINST}; {_DOMAINS}"),
            "table15": ("ranks of 72 models", "battles of 72 models against one reference"),
            "table16": ("reliability of judges", _DIRECT),
            "text": ("numbers of the text", f"{_DIRECT}; {_AGAINST}"),
        },
    ),
)
