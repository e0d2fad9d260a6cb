"""Gold labels beside verdicts: JudgeBench's outputs, Langfuse's scores of people and of a judge."""

import pandas as pd

from judgeline.io.layout import LABELS, Given, Layout

_SCORES = {"traceId": "trace_id", "dataType": "data_type"}


def _annotated(given: Given) -> pd.DataFrame:
    """Return the scores of traces: what people annotated as label, what a judge gave as verdict."""
    own = [next(one for one in names if one in given.columns) for names in _SCORES.items()]
    table = given.read(["name", "value", "source", own[0]], [])
    table["value"] = pd.to_numeric(table["value"], errors="coerce")
    side = table["source"].map({"ANNOTATION": "label", "EVAL": "verdict", "API": "verdict"})
    means = table.assign(side=side).pivot_table("value", own[0], "side", aggfunc="mean")
    return means.reindex(columns=["label", "verdict"]).reset_index(drop=True)


JUDGE_BENCH = Layout(
    "judgebench",
    ("label judgments",),
    advice=LABELS,
    names={"verdict": "judgments.0.decision", "verdict_swapped": "judgments.1.decision"},
)
LANGFUSE = Layout(
    "langfuse",
    ("traceId name value source dataType", "trace_id name value source data_type"),
    advice=LABELS,
    battles=_annotated,
)
