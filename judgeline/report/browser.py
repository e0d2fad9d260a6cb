"""The battle browser: what moved each model's rating most, down to the judge's own words.

Bounded: a page holds so many characters of battles, and says what it leaves out.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from judgeline.report.evidence import Evidence, Reading
from judgeline.report.inert import inert, shortened
from judgeline.report.wording import MISSING, count, number, status_words

MOST_TEXT = 2_000
"""Characters of a question, a completion or an answer that are shown."""
MOST_PER_PAGE = 1_500_000
"""Characters of battles on a page, over all judges."""
MOST_PER_SIDE = 3
"""Battles of a model that raise its rating, and battles that lower it."""

_VOTES = {1.0: "people preferred it", 0.5: "people called a tie", 0.0: "people preferred the other"}
_NO_TEXT = "The corpus publishes no text."
_OVERHEAD = 1_200  # characters of markup around a battle


@dataclass(frozen=True)
class Shown:
    """One answer of the judge in words."""

    title: str
    score: str
    answer: str
    identity: str


@dataclass(frozen=True)
class BattleCard:
    """One battle in words; `texts` are labelled, everything is inert and unescaped."""

    model: str
    opponent: str
    battle_id: str
    influence: str
    raises: bool
    outcome: str
    vote: str
    texts: list[tuple[str, str]]
    answers: list[Shown]

    @property
    def size(self) -> int:
        """Characters that it takes on the page, about."""
        answers = sum(len(one.answer) + len(one.identity) for one in self.answers)
        return _OVERHEAD + answers + sum(len(text) for _, text in self.texts)


@dataclass(frozen=True)
class Browser:
    """The battles of one judge's section, by model, and what was left out."""

    models: list[str]
    cards: list[BattleCard]
    sentences: list[str]


def browser_of(battles: Sequence[Evidence], *, room: int = MOST_PER_PAGE) -> Browser | None:
    """Return the browser of a judge, or None where there are no battles to show."""
    if not battles:
        return None
    kept = _within(_by_strength(battles), room)
    models = sorted({card.model for card in kept}, key=str.casefold)
    place = {model: number for number, model in enumerate(models)}
    cards = sorted(kept, key=lambda card: (place[card.model], not card.raises))
    return Browser(models, cards, _sentences(len(cards), len(battles)))


def _by_strength(battles: Sequence[Evidence]) -> list[Evidence]:
    """Return every model's strongest battles first, then their second ones, and so on."""
    seen: Counter[tuple[str, bool]] = Counter()
    ranked = []
    for place, one in enumerate(battles):
        side = (one.model, one.influence > 0)
        ranked.append((seen[side], place))
        seen[side] += 1
    return [battles[place] for _, place in sorted(ranked)]


def _within(battles: Iterable[Evidence], room: int) -> list[BattleCard]:
    cards, used = [], 0
    for one in battles:
        card = _card(one)
        used += card.size
        if used > room:
            break
        cards.append(card)
    return cards


def _sentences(n_shown: int, n_found: int) -> list[str]:
    told = [
        "Of each model the battles that raise its rating most and those that lower it most, with "
        "what it would lose without each (by one Newton step, the other models and the slope as "
        f"they are). Texts end after {count(MOST_TEXT)} characters."
    ]
    if n_shown < n_found:
        told.append(
            f"{count(n_shown)} of {count(n_found)} such battles are shown: the others did not fit. "
            "The command judgeline why shows those of any model in full."
        )
    return told


def _card(one: Evidence) -> BattleCard:
    sides = (
        ("Question", one.instruction),
        (f"Answer of {inert(one.model)}", one.completion),
        (f"Answer of {inert(one.opponent)}", one.opponent_completion),
    )
    return BattleCard(
        inert(one.model),
        inert(one.opponent),
        inert(one.battle_id),
        number(one.influence, 2, signed=True),
        one.influence > 0,
        f"counts as {number(one.outcome, 2)} of a win, {number(one.expected, 2)} expected",
        _VOTES.get(one.human_outcome, "nobody voted"),
        [(label, _NO_TEXT if text is None else _shown(text)) for label, text in sides],
        [_reading(reading) for reading in one.readings],
    )


def _reading(reading: Reading) -> Shown:
    first = f", {inert(reading.shown_first)} shown first" if reading.shown_first else ""
    again = f", run {reading.replicate + 1}" if reading.replicate else ""
    score = (
        f"no score: {status_words(inert(reading.status))}"
        if reading.difference is None
        else f"{number(reading.difference, 2, signed=True)} {reading.unit}"
    )
    return Shown(
        f"Order {inert(reading.order)}{first}{again}",
        score,
        MISSING if reading.answer is None else _shown(reading.answer),
        inert(reading.identity),
    )


def _shown(text: str) -> str:
    return shortened(inert(text), MOST_TEXT)
