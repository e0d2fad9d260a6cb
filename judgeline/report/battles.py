"""Battles behind a rating: questions, answers, and the browser of them on the page.

Bounded: a page holds so many characters of battles, and says what it leaves out.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import pandas as pd

from judgeline.report.wording import count, number
from judgeline.verdict import CRITERIA

_IDS_SHOWN = 5
_OF_INFLUENCES = ("model", "opponent", "battle_id", "influence", "outcome", "expected")
_OF_ANSWERS = (
    "order", "replicate", "status", "answer", "identity", "prompt_tokens", "completion_tokens",
    "reasoning",
)  # fmt: skip
RUBRIC_POINTS, PLAIN_POINTS = "rubric points", "points (plain verdict)"


@dataclass(frozen=True)
class Reading:
    """One answer of the judge about a battle; differences are of the model, minus its opponent.

    `difference` is in `unit`, None where the answer could not be read. `shown_first` is the model
    or the opponent, None where a mean over orders was published. `reasoning` is what a judge that
    thinks thought before its answer, None where none was sent.
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
    reasoning: str | None = None


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

    @property
    def vote(self) -> str:
        """Return people's votes on the battle, in words."""
        return _VOTES.get(self.human_outcome, "nobody voted")

    @property
    def texts(self) -> list[tuple[str, str | None]]:
        """Return question and answers with their labels."""
        return [
            ("Question", self.instruction),
            (f"Answer of {self.model}", self.completion),
            (f"Answer of {self.opponent}", self.opponent_completion),
        ]

    @property
    def size(self) -> int:
        """Return the characters of the battle on the page, approximately."""
        texts = [text for _, text in self.texts] + [
            said for one in self.readings for said in (one.answer, one.reasoning)
        ]
        identities = sum(len(one.identity) for one in self.readings)
        return _OVERHEAD + identities + sum(min(len(text or ""), MOST_TEXT) for text in texts)


@dataclass(frozen=True)
class Lead:
    """One model's lead over another, in Elo points, and battles without which it is below a margin.

    The margin is 0, or a lead that chance does not explain. No battles are named where no half of
    all `n_battles` was found to do it.
    """

    model: str
    rival: str
    lead: float
    lead_without: float
    battle_ids: Sequence[str]
    n_battles: int
    margin: float = 0.0


def lead_text(lead: Lead) -> str:
    """Return the sentence on few battles that hold a lead, or hold it above chance."""
    ahead = f"{lead.model} leads {lead.rival} by {number(lead.lead, 1)} Elo"
    if lead.margin:
        ahead += f", more than the {number(lead.margin, 1)} that chance explains"
    if not lead.battle_ids:
        return f"{ahead}; leaving out up to half of the battles was not found to change that"
    size, shown = len(lead.battle_ids), ", ".join(lead.battle_ids[:_IDS_SHOWN])
    more = f" and {size - _IDS_SHOWN} more" if size > _IDS_SHOWN else ""
    left = number(abs(lead.lead_without), 1)
    without = f"by {left} only" if lead.lead_without >= 0 else f"{lead.rival} leads by {left}"
    gone = f"{count(size)} of {count(lead.n_battles)} battles"
    return f"{ahead}; without {gone} {without}: {shown}{more}"


def strongest(influences: pd.DataFrame, most: int) -> pd.DataFrame:
    """Return at most so many battles that raise each model most, and that lower it most."""
    ranked = influences.assign(
        lowers=influences["influence"].lt(0), size=-influences["influence"].abs()
    ).sort_values(["model", "lowers", "size", "battle_id"], kind="stable")
    kept = ranked[ranked["influence"].ne(0)].groupby(["model", "lowers"], sort=False).head(most)
    return kept.drop(columns=["lowers", "size"]).reset_index(drop=True)


def evidence_of(
    influences: pd.DataFrame,
    battles: pd.DataFrame,
    verdicts: pd.DataFrame,
    scored: pd.DataFrame | None = None,
) -> list[Evidence]:
    """Return each row of influences with the texts of its battle and the judge's answers.

    With `scored` battles votes are those counted, which may be more than the published ones.
    """
    if scored is not None:
        counted = scored.set_index("battle_id")["human_outcome"]
        battles = battles.assign(human_outcome=battles["battle_id"].map(counted))
    texts = {row["battle_id"]: row for row in _records(battles)}
    answers: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(_records(verdicts), key=lambda row: (row["replicate"], row["order"])):
        answers.setdefault(row["battle_id"], []).append(row)
    found = []
    for row in _records(influences):
        battle = texts.get(row["battle_id"], {})
        as_b = battle.get("model_b") == row["model"] and battle.get("model_a") != row["model"]
        own, other = ("b", "a") if as_b else ("a", "b")
        vote, sides = battle.get("human_outcome"), (row["model"], row["opponent"])
        first = dict(zip(("BA", "AB") if as_b else ("AB", "BA"), sides, strict=True))
        readings: list[Reading] = []
        for answer in answers.get(row["battle_id"], []):
            difference, unit = _difference(answer)
            said: dict[str, Any] = {name: answer.get(name) for name in _OF_ANSWERS}
            readings.append(
                Reading(
                    **said,
                    shown_first=first.get(answer["order"]),
                    difference=-difference if difference and as_b else difference,
                    unit=unit,
                )
            )
        evidence = Evidence(
            **{name: row[name] for name in _OF_INFLUENCES},
            human_outcome=vote if vote is None or not as_b else 1 - vote,
            language=battle.get("language"),
            instruction=battle.get("instruction"),
            completion=battle.get(f"completion_{own}"),
            opponent_completion=battle.get(f"completion_{other}"),
            readings=tuple(readings),
        )
        found.append(evidence)
    return found


def _records(table: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows of a table, None where a cell is null."""
    return list(table.astype(object).where(table.notna(), None).to_dict("records"))


def _difference(row: Mapping[str, Any]) -> tuple[float | None, str]:
    """Return the score of A minus that of B and its unit; None where the answer has none."""
    half = len(CRITERIA)
    cells = [row.get(f"{name}_{side}") for side in "ab" for name in CRITERIA]
    scores = [score for score in cells if score is not None]
    if len(scores) == 2 * half:
        return sum(scores[:half]) / half - sum(scores[half:]) / half, RUBRIC_POINTS
    share = None if scores or row["status"] != "ok" else row.get("recorded_outcome")
    return (None, RUBRIC_POINTS) if share is None else (2 * share - 1, PLAIN_POINTS)


# The browser

MOST_TEXT = 2_000
"""Characters of a question, a completion or an answer that are shown."""
MOST_PER_PAGE = 1_500_000
"""Characters of battles on a page, over all judges."""
MOST_PER_SIDE = 3
"""Battles of a model that raise its rating, and battles that lower it."""

_VOTES: dict[float | None, str] = {
    1.0: "people preferred it",
    0.5: "people called a tie",
    0.0: "people preferred the other",
}
_OVERHEAD = 1_200  # characters of markup around a battle


@dataclass(frozen=True)
class Browser:
    """The battles of one judge's section, by model, and what was left out."""

    models: list[str]
    battles: list[Evidence]
    sentences: list[str]


def browser_of(battles: Sequence[Evidence], *, room: int = MOST_PER_PAGE) -> Browser | None:
    """Return the browser of a judge, or None where there are no battles to show.

    Every model's strongest battles have room first, then the second ones, and so on.
    """
    if not battles:
        return None
    seen: Counter[tuple[str, bool]] = Counter()
    ranked = []
    for place, one in enumerate(battles):
        side = (one.model, one.influence > 0)
        ranked.append((seen[side], place))
        seen[side] += 1
    strongest_first = [battles[place] for _, place in sorted(ranked)]
    used = accumulate(one.size for one in strongest_first)
    kept = [one for one, size in zip(strongest_first, used, strict=True) if size <= room]
    models = sorted({one.model for one in kept}, key=str.casefold)
    kept.sort(key=lambda one: (models.index(one.model), one.influence <= 0))
    told = [
        "Of each model the battles that raise the judge's rating of it most or lower it most, with "
        "what it would lose without each (by one Newton step, the other models and the slope as "
        f"they are). Texts end after {count(MOST_TEXT)} characters."
    ]
    if len(kept) < len(battles):
        told.append(
            f"{count(len(kept))} of {count(len(battles))} such battles are shown: the others did "
            "not fit. The command judgeline why shows those of any model in full."
        )
    return Browser(models, kept, told)
