"""Inspect AI's logs and JudgeArena's battles, as tables of judged battles."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

JUDGE_ARENA = ("question_id", "model_a", "model_b", "winner", "pref", "source", "judge_model")
"""Columns of JudgeArena's battles, where ``winner`` is a judge's or people's as ``source`` says."""
_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # correct, partial, incorrect, no answer


def read_logs(paths: Sequence[Path]) -> pd.DataFrame:
    """Return the battles of Inspect AI's logs: two models' scores of one sample, by one scorer.

    A scorer is a judge. Scores of several epochs of a sample are averaged; one that is neither a
    grade nor a number leaves the sample without a score.
    """
    names = ["question_id", "judge", "model", "file", "score"]
    found = pd.DataFrame([row for path in paths for row in _scores(path)], columns=names)
    found = found.astype({"score": float})
    files = found.groupby(["question_id", "judge", "model"])["file"].unique()
    if len(several := files[files.map(len) > 1]):
        both = " and ".join(sorted(several.iloc[0]))
        raise ValueError(
            f"{both} hold scores of model {several.index[0][2]!r} on the same samples: move one of "
            "them out of the folder"
        )
    keys = ["question_id", "judge"]
    means = found.groupby([*keys, "model"], as_index=False)["score"].agg(_mean)
    pairs = means.merge(means, on=keys, suffixes=("_a", "_b"))
    pairs = pairs[pairs["model_a"] < pairs["model_b"]]
    if pairs.empty:
        models = ", ".join(found["model"].unique()) or "none"
        raise ValueError(
            f"{paths[0]} and the logs beside it score no two models on the same samples (models: "
            f"{models}); name a folder with the logs of several models"
        )
    return pairs.reset_index(drop=True)


def _mean(scores: "pd.Series[float]") -> float:
    return float(scores.mean(skipna=False))


def _scores(path: Path) -> Iterator[tuple[str, str, str, str, float | None]]:
    """Yield the question, scorer, model and score of each sample in a log."""
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise ValueError(
            f"{path} is a log of Inspect AI, and its reader is not installed; run: "
            "pip install inspect-ai"
        ) from error
    try:
        log = read_eval_log(str(path))
    except Exception as error:  # whatever a damaged archive brings up
        raise ValueError(f"{path} cannot be read as a log of Inspect AI: {error}") from error
    if log.status != "success":
        raise ValueError(
            f"{path} is the log of a run that ended with {log.status!r}; leave it out, or run the "
            "evaluation again"
        )
    for sample in log.samples or []:
        question = f"{log.eval.task}/{sample.id}"
        for scorer, score in (sample.scores or {}).items():
            value = score.value
            grade = value if isinstance(value, int | float) else _GRADES.get(str(value))
            yield question, scorer, log.eval.model, path.name, grade


def from_judge_arena(table: pd.DataFrame) -> pd.DataFrame:
    """Return JudgeArena's rows in our columns: verdicts of a judge, and votes of people alone.

    ``pref`` is the judge's share of the win of B.
    """
    unknown = table.loc[~table["source"].isin(["llm-judge", "human"]), "source"]
    if len(unknown):
        raise ValueError(
            f"{len(unknown)} rows have the source {unknown.iloc[0]!r}; JudgeArena's battles have "
            "llm-judge or human: correct or remove them"
        )
    share = pd.to_numeric(table["pref"], errors="coerce").where(table["source"].ne("human"))
    judge = table["judge_model"].fillna("judge")
    return table.assign(score_difference=1 - 2 * share, judge=judge).drop(
        columns=["pref", "judge_model"]
    )
