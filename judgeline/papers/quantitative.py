"""Items of the quantitative-judges paper, of which this version computes none."""

from judgeline.papers.tables import Paper, uncomputed

_RATED = "judge rationales, scores and human ratings of Summarize from Feedback and HelpSteer2"
_PAIRED = "judge rationales, choices and human choices of Offset Bias and Nectar"
PAPER = Paper(
    "quantitative",
    uncomputed(
        "quantitative",
        {
            "table1": ("LS and MN against human ratings", _RATED),
            "table2": ("BTL and BTL2 against human choices", _PAIRED),
            "table3": ("numbers of parameters", "the sizes of embedding and scale"),
            "table4": ("seconds per 1,000 requests", "a GPU and the base judges"),
            "table6": ("features dropped, LS and MN", _RATED),
            "table7": ("features dropped, BTL and BTL2", _PAIRED),
            "table8": ("score or embedding dropped", _PAIRED),
            "text": ("numbers of the text", f"{_RATED}; {_PAIRED}"),
        },
    ),
)
