"""Gold labels beside verdicts: JudgeBench's outputs, Langfuse's scores of people and of a judge."""

from pathlib import Path

import pandas as pd

from judgeline.io.layout import LABELS, Given, Layout

_SCORES = {"traceId": "trace_id", "dataType": "data_type"}


def _annotated(given: Given) -> pd.DataFrame:
    """Return the scores of traces: those by people as labels, those by a judge as verdicts.

    Scores of another source, such as the API, tell neither and are left out.
    """
    own = [next(one for one in names if one in given.columns) for names in _SCORES.items()]
    table = given.read(["name", "value", "source", own[0]], [])
    table["value"] = pd.to_numeric(table["value"], errors="coerce")
    table["side"] = table["source"].map({"ANNOTATION": "label", "EVAL": "verdict"})
    means = _of_one_name(table.dropna(subset="side"), given.path).pivot_table(
        "value", own[0], "side", aggfunc="mean"
    )
    return means.reindex(columns=["label", "verdict"]).reset_index(drop=True)


def _of_one_name(scores: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return the scores of the one name that people and a judge both gave, or of one name each."""
    people, judges = (
        {*scores.loc[scores["side"].eq(side), "name"]} for side in ("label", "verdict")
    )
    if len(people) <= 1 and len(judges) <= 1:
        return scores
    if len(both := people & judges) == 1:
        return scores[scores["name"].isin(both)]
    named = ", ".join(sorted(map(str, people | judges)))
    raise ValueError(
        f"{path} has scores of several names ({named}), and one of them can be held to labels: "
        "export the scores of one name"
    )


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
