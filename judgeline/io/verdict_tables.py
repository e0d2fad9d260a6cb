"""Battles and verdicts of a notebook, with the declared columns that steps read."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from judgeline.io.scoring import turned
from judgeline.suggest import ArgumentError
from judgeline.tables.corpus import SCORE_COLUMNS
from judgeline.verdict import completion_id

_MEANING = {
    "battle_id": "the name of a battle, the same in every table",
    "question_id": "the name of the question that both models answered",
    "model_a": "the name of the first model",
    "model_b": "the name of the second model",
    "instruction": "the text of the question, as both models saw it",
    "completion_a": "the text of A's answer, from which completion_id follows",
    "completion_b": "the text of B's answer, from which completion_id follows",
    "order": "AB or BA by the answer that the judge was shown first, or mean of both orders",
    "model": "the name of the model whose answer was scored",
    "embedding": "the vector of the reason that the judge gave, empty where it gave none",
    "human_outcome": "A's share of the win in people's eyes, empty without a vote",
    "judge_score": "the judge's own rating or utility of an answer",
    "human_rating": "people's rating of an answer, empty without one",
    "human_rank": "an answer's rank among its set's, 1 for the best, empty without one",
}
CHOICES = ("choice", "p_a", "p_tie", "p_b", "perplexity")
"""Columns of what a judge says of two answers in one word."""

SHARES = ("choice", "p_a", "p_tie", "p_b", "recorded_outcome", "human_outcome")
"""Numbers that lie between 0 and 1."""

LEAST_QUESTIONS = 7
"""With labels; without a fifth of them, which is predicted, a fifth of 5 can be tested on."""

_ORDERS = ("AB", "BA", "mean")
_NUMBERS = (
    *CHOICES, *SCORE_COLUMNS, "score", "expected_score", "recorded_outcome", "human_outcome",
    "replicate", "judge_score", "human_rating", "human_rank",
)  # fmt: skip
_NAMES = (
    "battle_id", "question_id", "model_a", "model_b", "model", "completion_id", "ranking_id",
)  # fmt: skip
_BY_DEFAULT = {"judge": "", "replicate": 0, "status": "ok", "evidence": "none", "answer": None}
_PLACES = ("cluster_id", "language", "category", "human_outcome", "completion_a", "completion_b")


def battles_given(battles: pd.DataFrame, needed: Collection[str] = ()) -> pd.DataFrame:
    """Return battles with the columns that steps read; ArgumentError without a needed one."""
    always = ("battle_id", "question_id", "model_a", "model_b")
    table = _typed(battles, (*always, *needed), "battles")
    if (again := table["battle_id"].duplicated()).any():
        first = table.loc[again, "battle_id"].iloc[0]
        raise ArgumentError(
            f"battles has battle_id {first!r} twice; keep one row of each battle", "battles"
        )
    for name in always:
        if (nulls := table[name].isna()).any():
            raise ArgumentError(
                f"{name} is empty in {int(nulls.sum())} rows of battles, {_MEANING[name]}; fill "
                "them in, or leave these rows out",
                "battles",
            )
    if table.empty:
        raise ArgumentError("battles has no rows; there is nothing to look at", "battles")
    lacking = [name for name in _PLACES if name not in table]
    return table.assign(**dict.fromkeys(lacking)).reset_index(drop=True)


def verdicts_given(
    table: pd.DataFrame, battles: pd.DataFrame, values: Collection[str], argument: str
) -> pd.DataFrame:
    """Return verdicts on battles, with the columns that steps read; `values` are the judge's."""
    own = _answers(table, ("battle_id", "order"), values, argument)
    if (odd := ~own["order"].isin(_ORDERS)).any():
        raise ArgumentError(
            f"order is {own.loc[odd, 'order'].iloc[0]!r} in {argument}; expected "
            f"{_MEANING['order']}",
            argument,
        )
    _require_known(own["battle_id"], battles["battle_id"], "battle_id", argument)
    return own


def scores_given(
    table: pd.DataFrame, battles: pd.DataFrame, values: Collection[str], argument: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return scores of single answers, and battles as of `battles_given` with the same answers.

    `values` are the columns of what the judge said. Without ``completion_id`` a model has one
    answer to a question, and texts do not count.
    """
    if "completion_id" in table:
        own = _answers(table, (), values, argument)
        battles = battles_given(battles, ("completion_a", "completion_b"))
    else:
        own = _answers(table, ("question_id", "model"), values, argument)
        battles = battles_given(battles).assign(completion_a="", completion_b="")
        places = zip(own["question_id"], own["model"], strict=True)
        own["completion_id"] = [completion_id(question, model, "") for question, model in places]
        models = pd.concat([battles["model_a"], battles["model_b"]])
        _require_known(own["model"], models, "model", argument)
        _require_known(own["question_id"], battles["question_id"], "question_id", argument)
    return own, battles


def on_scale(scores: pd.DataFrame, scale: tuple[int, int], argument: str) -> pd.DataFrame:
    """Return scores that say their scale; ArgumentError if one lies outside of it."""
    low, high = scale
    own = scores.assign(scale_low=low, scale_high=high)
    if (odd := ~own["score"].between(low, high) & own["score"].notna()).any():
        raise ArgumentError(
            f"score is {own.loc[odd, 'score'].iloc[0]:g} in {argument}, outside of the scale "
            f"{low} to {high}; name the judge's with scale=(lowest, highest)",
            "scale",
        )
    return own


def _answers(
    table: pd.DataFrame, needed: Collection[str], values: Collection[str], argument: str
) -> pd.DataFrame:
    """Return answers of a judge with the columns of a call, and those of `values`, null if none."""
    own = _typed(table, needed, argument)
    if not {*values} & {*own}:
        raise ArgumentError(
            f"{argument} has none of the columns {', '.join(values)}; add the one that holds what "
            "the judge said, or rename yours",
            argument,
        )
    lacking = {name: value for name, value in _BY_DEFAULT.items() if name not in own}
    null = {name: float("nan") for name in values if name not in own}
    return own.assign(**lacking, **null).reset_index(drop=True)


def _typed(table: pd.DataFrame, needed: Collection[str], argument: str) -> pd.DataFrame:
    """Return a table whose names are texts and whose numbers are floats."""
    if not isinstance(table, pd.DataFrame):
        raise ArgumentError(f"{argument} is {type(table).__name__}; expected a DataFrame", argument)
    for name in needed:
        if name not in table:
            raise ArgumentError(
                f"{argument} has no column {name!r}, {_MEANING[name]}; add it, or rename yours",
                argument,
            )
    names = {name: table[name].astype("str") for name in _NAMES if name in table}
    numbers = {}
    for name in (one for one in _NUMBERS if one in table):
        numbers[name] = pd.to_numeric(table[name], errors="coerce").astype("float64")
        odd = numbers[name].isna() & table[name].notna()
        if name in SHARES:
            odd |= numbers[name].notna() & ~numbers[name].between(0, 1)
        if odd.any():
            raise ArgumentError(
                f"{name} is {table.loc[odd, name].iloc[0]!r} in {argument}; expected a number"
                f"{' from 0 to 1' if name in SHARES else ''}, empty where there is none",
                argument,
            )
    return table.assign(**names, **numbers)


def runs_given(
    battles: Any, replicates: str | Mapping[Any, pd.DataFrame] | None, battle_id: str
) -> list[Any]:
    """Return a judge's battles run by run, the first one that rates.

    `replicates` names the column of `battles` that numbers the runs, or holds the further runs;
    `battle_id` is the tables' own name of that column.
    """
    if replicates is None:
        return [battles]
    if isinstance(replicates, Mapping):
        runs = [battles, *replicates.values()]
    elif isinstance(battles, pd.DataFrame) and replicates in battles:
        numbers = battles[replicates]
        if (nulls := numbers.isna()).any():
            raise ArgumentError(
                f"{replicates} is empty in {int(nulls.sum())} of {len(battles)} battles; number "
                "the run of each, or leave these rows out",
                "replicates",
            )
        runs = [
            battles[numbers.eq(run)].drop(columns=replicates)
            for run in numbers.sort_values().unique()
        ]
    else:
        raise ArgumentError(
            f"replicates is {replicates!r}; expected a column of battles that numbers the runs, or "
            "further runs as tables by name, replicates={'second': table}",
            "replicates",
        )
    for run in runs:
        if not isinstance(run, pd.DataFrame) or battle_id not in run:
            raise ArgumentError(
                f"a run has no column {battle_id!r}, {_MEANING['battle_id']}, by which runs are "
                "compared; add it to battles and to each table of replicates",
                "replicates",
            )
    return runs


def panel_of(runs: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the repeated battles of scored runs as a panel, with A and B as in the first run."""
    first = runs[0].set_index("battle_id")[["model_a", "model_b"]]
    parts = []
    for replicate, run in enumerate(runs):
        own = run[run["battle_id"].isin(first.index)].reset_index(drop=True)
        there = first.loc[own["battle_id"]].reset_index(drop=True)
        own, _ = turned(own, own["model_a"].ne(there["model_a"]).to_numpy())
        if (odd := own[["model_a", "model_b"]].ne(there).any(axis=1)).any():
            raise ArgumentError(
                f"battle_id {own.loc[odd, 'battle_id'].iloc[0]!r} has other models in another run; "
                "name a battle alike in every run",
                "replicates",
            )
        parts.append(own.assign(replicate=replicate))
    panel = pd.concat(parts, ignore_index=True)
    return panel[panel["battle_id"].duplicated(keep=False)]


def embeddings_given(table: pd.DataFrame, source: str, argument: str) -> pd.DataFrame:
    """Return the vectors in column ``embedding`` of answers, by source, key, order and replicate.

    ``embedding`` is the vector of an answer's reason, null without one; all have one length.
    """
    key = "battle_id" if source == "verdict" else "completion_id"
    if "embedding" not in table:
        raise ArgumentError(
            f"{argument} has no column 'embedding', {_MEANING['embedding']}; add it", argument
        )
    own = table[table["embedding"].notna()]
    own = own.assign(source=source, key=own[key], order=own.get("order"))
    call = ["key", "order", "replicate"]
    if (again := own.duplicated(call)).any():
        first = own.loc[again, "key"].iloc[0]
        raise ArgumentError(
            f"{argument} has two answers on {key} {first!r} in one order and replicate; number "
            "them in the column 'replicate'",
            argument,
        )
    return own.assign(embedding=_vectors(own, argument))[["source", *call, "embedding"]]


def ratings_given(table: pd.DataFrame, label: str, argument: str) -> pd.DataFrame:
    """Return the rows of rated or ranked answers that have a score and a reason's vector."""
    needed = ("question_id", "judge_score", "embedding", label)
    own = _typed(table, needed, argument).reset_index(drop=True)
    if "ranking_id" in own and label == "human_rank":
        size = own.groupby("ranking_id")["ranking_id"].transform("size")
        known = own[own["judge_score"].notna() & own["embedding"].notna()]
        left = known.groupby("ranking_id")["ranking_id"].transform("size")
        own = known[left.eq(size[known.index])]
    own = own[own["judge_score"].notna() & own["embedding"].notna()]
    if own[label].notna().sum() == 0:
        raise ArgumentError(
            f"{argument} has no row with {label}, judge_score and embedding; there is nothing to "
            f"learn from: add {_MEANING[label]}",
            argument,
        )
    n_questions = own.loc[own[label].notna(), "question_id"].nunique()
    if n_questions < LEAST_QUESTIONS:
        raise ArgumentError(
            f"{argument} has {label} on {n_questions} question(s), and {LEAST_QUESTIONS} are "
            "needed: a prediction is learnt from labels on other questions alone; add "
            f"{_MEANING[label]}, on more questions",
            argument,
        )
    return own.assign(embedding=_vectors(own, argument))


def _vectors(table: pd.DataFrame, argument: str) -> pd.Series:
    """Return a table's embeddings as arrays of one length."""
    try:
        vectors = [np.asarray(vector, dtype=float) for vector in table["embedding"]]
    except (TypeError, ValueError):
        vectors = [np.empty((0, 0))]
    if len({vector.shape for vector in vectors}) > 1 or any(one.ndim != 1 for one in vectors):
        raise ArgumentError(
            f"embedding in {argument} is not a list of equally many numbers in each row; embed all "
            "reasons by one model",
            argument,
        )
    return pd.Series(vectors, table.index, dtype=object)


def _require_known(found: pd.Series, known: pd.Series, name: str, argument: str) -> None:
    """Raise ArgumentError where no row of answers is on a battle: the names are of two kinds."""
    if len(found) and not found.isin(known).any():
        raise ArgumentError(
            f"no {name} of {argument} is in battles, such as {found.iloc[0]!r} beside "
            f"{known.iloc[0]!r}; name them alike in both",
            argument,
        )
