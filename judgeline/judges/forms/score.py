"""The form with one completion and one number."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    StrictInt,
    field_validator,
    model_serializer,
)

from judgeline.judges.forms.evidence import Tokens, score_of
from judgeline.judges.forms.form import Chances, Odds, Reading, ShortForm, ShortOptions, Wording
from judgeline.judges.presentation import Presentation, require_texts
from judgeline.tables.judging import SCORE_VERDICTS
from judgeline.trust import RELEASED_TEMPERATURE, ScoreDistribution, expected_score
from judgeline.verdict import (
    HIGHEST_SCORE,
    LOWEST_SCORE,
    completion_id,
    scores_on,
)

TARGET_SCALE: tuple[float, float] = (LOWEST_SCORE, HIGHEST_SCORE)
"""Scale of expected scores: that of the rubric, in points."""

ALONE = "A"
"""Order of a presentation with one completion."""

MOST_CHANCES = 11
"""Most numbers that a simulated judge could say; with one more word, within what endpoints tell."""

_HIGHEST = 1_000_000
_PLAIN = ("normalise", "plain")


class ScoreOptions(ShortOptions):
    """Options of the form that asks for one number about one completion; see docs/judges.md."""

    scale: tuple[StrictInt, StrictInt] = (1, 100)
    digits_per_token: int = Field(default=3, ge=1, le=9, strict=True)
    normalise: Literal["plain", "softmax"] = "plain"

    @model_serializer(mode="wrap")
    def _unless_plain(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return the options, without plain normalising: settings of stored tables lack it."""
        fields: dict[str, Any] = handler(self)
        return {name: value for name, value in fields.items() if (name, value) != _PLAIN}

    @field_validator("scale")
    @classmethod
    def _require_ascent(cls, value: tuple[int, int]) -> tuple[int, int]:
        low, high = value
        if not 0 <= low < high <= _HIGHEST:
            raise ValueError(
                f"a scale is two ascending whole numbers from 0 to {_HIGHEST}, such as [1, 100]"
            )
        return value


class ScoreForm(ShortForm):
    """One integer on a scale, then a reason; see `Form`.

    Its odds are the expected score in points of `TARGET_SCALE`, and what they cover.
    """

    name = "score"
    table = SCORE_VERDICTS
    options: ScoreOptions = ScoreOptions()
    usual_pattern = "Score: {value}"
    usual_prompt = "trustjudge-100.txt"

    def __init__(self, options: ScoreOptions | None = None) -> None:
        super().__init__(options)
        low, high = self.scale = self.options.scale
        self.identity = {**self.identity, "scale": f"{low} to {high}"}
        self.wording = Wording(
            {"instruction": "instruction", "completion": "first_completion"},
            {"lowest": str(low), "highest": str(high)},
        )
        self.kind = scores_on(self.scale)
        self.stand_in = f"one integer from {low} to {high}"
        self.wanted_object = f"the JSON object, its score an integer from {low} to {high}"
        self.again = self.ask_again("Grade the response")

    def value_schema(self) -> dict[str, Any]:
        """Return the JSON schema of a number on the scale."""
        low, high = self.options.scale
        return {"type": "integer", "enum": list(range(low, high + 1))}

    def present(self, battles: pd.DataFrame, n_replicates: int) -> list[Presentation]:
        """Return every completion of the battles, once per replicate."""
        columns = ["completion_id", "instruction", "completion", "model", "question_id"]
        rows = completions_of(battles)[columns].itertuples(index=False)
        return [
            Presentation(own, ALONE, replicate, question, text, "", model, "", question_id)
            for own, question, text, model, question_id in rows
            for replicate in range(n_replicates)
        ]

    def likely(self, value: int, tokens: Tokens) -> Odds:
        """Return the expected score by the tokens of the number."""
        digits = self.options.digits_per_token
        return self._expected(score_of(tokens, value, scale=self.scale, declared_digits=digits))

    def sampled(self, counts: Counter[Any], n_runs: int) -> Odds:
        """Return the mean of the numbers that came of a completion."""
        values = np.array(sorted(counts), dtype=np.int64)
        shares = np.array([counts[int(value)] / n_runs for value in values])
        covered = float(shares.sum())
        return self._expected(ScoreDistribution(self.scale, values, shares, covered, 0.0))

    def _expected(self, likely: ScoreDistribution) -> Odds:
        """Return the expected score, of probabilities as they are or by the released softmax."""
        by = RELEASED_TEMPERATURE if self.options.normalise == "softmax" else None
        return expected_score(likely, target=TARGET_SCALE, logit_temperature=by), likely.covered

    def chances(self, points: Sequence[float], spread: float) -> Chances:
        """Return the chances of at most `MOST_CHANCES` numbers, each said in one token."""
        (low, high), digits = self.scale, self.options.digits_per_token
        if len(str(high)) > digits:
            raise ValueError(
                f"simulated judges say a number in one token, and {high} has more than {digits} "
                "digits; raise score.digits_per_token"
            )
        unit = (high - low) / (HIGHEST_SCORE - LOWEST_SCORE)
        numbers = np.arange(low, high + 1)
        centre = np.clip(low + (points[0] - LOWEST_SCORE) * unit, low, high)
        density = np.exp(-0.5 * ((numbers - centre) / max(spread * unit, 0.5)) ** 2)
        density /= density.sum()
        likeliest = np.argsort(-density, kind="stable")[:MOST_CHANCES]
        return Chances([str(number) for number in numbers[likeliest]], density[likeliest])

    def subject(self, shown: Presentation, slug: str) -> tuple[Any, ...]:
        """Return completion, question, model and judge."""
        return shown.battle_id, shown.question_id, shown.first_model, slug

    def values(self, reading: Reading) -> tuple[Any, ...]:
        """Return the score, its expectation, the scale and the evidence."""
        odds = reading.odds or (math.nan, math.nan)
        return (reading.value, *odds, *self.scale, reading.evidence)


_SOURCE = ("question_id", "model", "completion")


def completions_of(battles: pd.DataFrame) -> pd.DataFrame:
    """Return the different completions of battles, in the order in which they occur."""
    require_texts(battles)
    sides = [
        pd.DataFrame(
            {
                "question_id": battles["question_id"].to_numpy(),
                "model": battles[f"model_{side}"].to_numpy(),
                "instruction": battles["instruction"].to_numpy(),
                "completion": battles[f"completion_{side}"].to_numpy(),
            },
            index=range(place, 2 * len(battles), 2),
        )
        for place, side in enumerate("ab")
    ]
    found = pd.concat(sides).sort_index().drop_duplicates(_SOURCE, ignore_index=True)
    ids = [completion_id(*one) for one in found[list(_SOURCE)].itertuples(index=False, name=None)]
    found.insert(0, "completion_id", ids)
    return found
