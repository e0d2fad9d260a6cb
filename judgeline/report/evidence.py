"""From influential battles to what was asked and answered: questions, completions, verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from judgeline.verdict import CRITERIA

RUBRIC_POINTS, PLAIN_POINTS = "rubric points", "points (plain verdict)"


@dataclass(frozen=True)
class Reading:
    """One answer of the judge about a battle; differences are of the model, minus its opponent.

    `difference` is in `unit`, None where the answer could not be read. `shown_first` is the model
    or the opponent, None where a mean over orders was published.
    """

    order: str
    replicate: int
    status: str
    shown_first: str | None
    difference: float | None
    answer: str | None
    identity: str
    prompt_tokens: int | None
    completion_tokens: int | None
    unit: str = RUBRIC_POINTS


@dataclass(frozen=True)
class Evidence:
    """A battle behind a rating, from the side of the model that it is about.

    `influence` is in Elo points; `outcome`, `expected` and `human_outcome` are the model's share
    of the win, the last None where nobody voted. Texts are None where the corpus has none.
    """

    model: str
    opponent: str
    battle_id: str
    influence: float
    outcome: float
    expected: float
    human_outcome: float | None
    language: str | None
    instruction: str | None
    completion: str | None
    opponent_completion: str | None
    readings: tuple[Reading, ...]


def strongest(influences: pd.DataFrame, most: int) -> pd.DataFrame:
    """Return the battles that raise each model most, then those that lower it most.

    Parameters
    ----------
    influences : DataFrame
        Rows of `battle_influences`.
    most : int
        Battles of each kind and model; ties go by battle.

    Returns
    -------
    DataFrame
        Rows by model, first those above zero, then those below, strongest first.
    """
    ranked = influences.assign(
        lowers=influences["influence"].lt(0), size=-influences["influence"].abs()
    ).sort_values(["model", "lowers", "size", "battle_id"], kind="stable")
    kept = ranked[ranked["influence"].ne(0)].groupby(["model", "lowers"], sort=False).head(most)
    return kept.drop(columns=["lowers", "size"]).reset_index(drop=True)


def evidence_of(
    influences: pd.DataFrame, battles: pd.DataFrame, verdicts: pd.DataFrame
) -> list[Evidence]:
    """Return each row of influences with the texts of its battle and the judge's answers.

    Parameters
    ----------
    influences : DataFrame
        Rows of `battle_influences`.
    battles : DataFrame
        Battles with their texts; a battle that is not there has none.
    verdicts : DataFrame
        Answers of one judge; those about other battles do not count.
    """
    texts = {row["battle_id"]: row for row in battles.to_dict("records")}
    answers = dict(list(verdicts.groupby("battle_id", sort=False)))
    return [
        _evidence(row, texts.get(row["battle_id"], {}), answers.get(row["battle_id"]))
        for row in influences.to_dict("records")
    ]


def _evidence(
    row: Mapping[str, object], battle: Mapping[str, object], answers: pd.DataFrame | None
) -> Evidence:
    as_b = battle.get("model_b") == row["model"] and battle.get("model_a") != row["model"]
    own, other = ("b", "a") if as_b else ("a", "b")
    vote = _number(battle.get("human_outcome"))
    return Evidence(
        str(row["model"]),
        str(row["opponent"]),
        str(row["battle_id"]),
        float(row["influence"]),
        float(row["outcome"]),
        float(row["expected"]),
        vote if vote is None or not as_b else 1 - vote,
        _text(battle.get("language")),
        _text(battle.get("instruction")),
        _text(battle.get(f"completion_{own}")),
        _text(battle.get(f"completion_{other}")),
        ()
        if answers is None
        else _readings(answers, str(row["model"]), str(row["opponent"]), as_b),
    )


def _readings(answers: pd.DataFrame, model: str, opponent: str, as_b: bool) -> tuple[Reading, ...]:
    ordered = answers.sort_values(["replicate", "order"], kind="stable")
    first = {"AB": opponent if as_b else model, "BA": model if as_b else opponent}
    return tuple(
        Reading(
            str(row["order"]),
            int(row["replicate"]),
            str(row["status"]),
            first.get(row["order"]),
            -difference if as_b and difference else difference,
            _text(row["answer"]),
            str(row["identity"]),
            _whole(row.get("prompt_tokens")),
            _whole(row.get("completion_tokens")),
            unit,
        )
        for row in ordered.to_dict("records")
        for difference, unit in [_difference(row)]
    )


def _difference(row: Mapping[str, object]) -> tuple[float | None, str]:
    """Return the score of A minus that of B and its unit; None where the answer has none."""
    sides = [[_number(row.get(f"{name}_{side}")) for name in CRITERIA] for side in "ab"]
    scores = [score for side in sides for score in side if score is not None]
    if len(scores) == 2 * len(CRITERIA):
        half = len(CRITERIA)
        return sum(scores[:half]) / half - sum(scores[half:]) / half, RUBRIC_POINTS
    share = None if scores or row["status"] != "ok" else _number(row.get("recorded_outcome"))
    return (None, RUBRIC_POINTS) if share is None else (2 * share - 1, PLAIN_POINTS)


def _number(value: object) -> float | None:
    return None if value is None or pd.isna(value) else float(value)


def _whole(value: object) -> int | None:
    return None if value is None or pd.isna(value) else int(value)


def _text(value: object) -> str | None:
    return None if value is None or pd.isna(value) else str(value)
