"""The gate of a release: whether a new model is at most a margin worse than the current one.

What belongs here: one of three answers, the looks that it counts, and the forms in which others
read it. What does not: statistics (`judgeline.intervals`), and the gate that a judge has to pass
(`judgeline.reliability`).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import NoneType
from typing import Literal
from xml.etree import ElementTree

import pandas as pd

from judgeline.comparing import board_digest, compare_on
from judgeline.intervals import BY_JUDGE, Difference, level_of_look, tail_ratio
from judgeline.io import ArgumentError, family_of
from judgeline.io.ledgers import Entry, Kinds, extend_ledger, read_ledger
from judgeline.io.makers import MAKERS
from judgeline.report import in_json, in_markdown, inert, json_value

Decision = Literal["better than -margin", "worse", "cannot tell yet"]

LEAST_VOTED = 12
"""Models with votes below which a model without votes is not let through a gate."""

_DECISIONS: Mapping[str, Decision] = {
    "a above": "better than -margin",
    "b above": "worse",
    "cannot tell": "cannot tell yet",
}
_OF_A_PLAN = ("error", "planned")
_NUMBER = (int, float)
_KINDS: Kinds = {"new": str, "current": str, "margin": _NUMBER, "board": str, "error": _NUMBER,
          "planned": (int, NoneType), "look": int, "level": _NUMBER,
          "decision": str}  # fmt: skip


@dataclass(frozen=True)
class ReleaseGate:
    """Non-inferiority of a new model: whether it is at most `margin` Elo below the current one.

    `comparison` is the difference of their ratings (new minus current); its interval misses with
    probability `level` beyond each end. `look` is the number of this look in `ledger`, of `planned`
    ones where their number was stated, and all looks together err with probability `error`.
    """

    decision: Decision
    comparison: Difference
    margin: float
    error: float
    level: float
    look: int
    planned: int | None
    judge: str
    ledger: str = ""
    is_new_ledger: bool = False

    @property
    def passes(self) -> bool:
        """Whether the new model is better than the current one minus the margin."""
        return self.decision == "better than -margin"

    def lines(self) -> list[str]:
        """Return the decision, its evidence and the votes still needed as sentences."""
        found, of = self.comparison, f"{self.margin:g} Elo"
        two = found.model_a, found.model_b
        answer = {
            "better than -margin": "Passes: {} is better than {} minus " + of,
            "worse": "Worse: {} is more than " + of + " below {}",
            "cannot tell yet": "Cannot tell yet whether {} is better than {} minus " + of,
        }[self.decision].format(*two)
        ends = "the whole line" if found.reason else f"{found.lower:+.0f} to {found.upper:+.0f}"
        promised = f"{100 - 200 * self.level:.4g} % interval"
        lines = [
            f"{answer}: {found.difference:+.0f} Elo ({promised}: {ends}).",
            f"{two[0]}: {found.evidence_a}; {two[1]}: {found.evidence_b}; judge: {self.judge}.",
            *[f"{found.reason[:1].upper()}{found.reason[1:]}."] * bool(found.reason),
        ]
        if self.decision == "cannot tell yet":
            lines += [found.votes_text(), *self._margin_lines(), *self._calls_lines()]
        if family_of(self.judge) not in MAKERS.values():
            lines.append("The judge's maker is unknown: nobody checked that it is not the model's.")
        return [*lines, *[found.note] * bool(found.note), self._look_text()]

    def _margin_lines(self) -> list[str]:
        """Return which margins can be told where votes for this one exceed all that were cast."""
        found, is_last = self.comparison, self.planned is not None and self.look >= self.planned
        if math.isnan(found.margin_then):
            return []
        if found.margin_then == found.margin_now:
            text = (
                f"Without more votes the next look would pass a margin of {found.margin_now:g} Elo"
            )
            return [f"{text}."] * (not is_last)
        text = (
            f"The whole board has {found.n_cast:,.0f} votes. As many more on these two would pass "
            f"a margin of {found.margin_then:g} Elo, if the difference stays"
        )
        if math.isfinite(found.margin_now) and not is_last:
            text += f"; without any, the next look would pass one of {found.margin_now:g}"
        return [f"{text}."]

    def _calls_lines(self) -> list[str]:
        calls = self.comparison.calls
        if math.isnan(calls):
            return []
        if math.isinf(calls):
            return ["More calls of the judge will not tell: it errs, however often it is asked."]
        return [f"So would {calls:,.0f} more judged battles of each, if the difference stays."]

    def _look_text(self) -> str:
        looks = f"of {self.planned} planned" if self.planned else "of any number"
        text = (
            f"Look {self.look} {looks}: it may err with probability {self.level:.2g}, all of them "
            f"with {self.error:g}"
        )
        if not self.ledger:
            return f"{text}. No ledger counts the looks: this holds for a single one."
        return f"{text}; {'a new ledger' if self.is_new_ledger else 'ledger'}: {self.ledger}."

    def to_json(self) -> str:
        """Return the answer and all its numbers as one JSON object."""
        return in_json({**json_value(asdict(self)), "passes": self.passes, "lines": self.lines()})

    def to_junit(self) -> str:
        """Return a JUnit suite of one case: failed where worse, an error where it cannot tell."""
        texts = [inert(line) for line in self.lines()]
        outcome = {"worse": "failure", "cannot tell yet": "error"}.get(self.decision)
        count = {name: str(int(name == f"{outcome}s")) for name in ("failures", "errors")}
        suite = ElementTree.Element("testsuite", {"name": "judgeline gate", "tests": "1", **count})
        name = inert(f"{self.comparison.model_a} against {self.comparison.model_b}")
        case = ElementTree.SubElement(suite, "testcase", classname="judgeline.gate", name=name)
        if outcome:
            ElementTree.SubElement(case, outcome, message=texts[0]).text = "\n".join(texts)
        else:
            ElementTree.SubElement(case, "system-out").text = "\n".join(texts)
        return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)

    def to_markdown(self) -> str:
        """Return the sentences as Markdown that can neither format, link nor fetch."""
        first, *rest = map(in_markdown, self.lines())
        return "\n".join([f"### Gate: {self.decision}", "", first, "", *(f"- {r}" for r in rest)])


def gate_on(
    leaderboard: pd.DataFrame,
    new: str,
    current: str,
    *,
    margin: float,
    miscoverage: float,
    error: float = 0.05,
    looks: int | None = None,
    ledger: Path | None = None,
    judge: str = "",
    families: Mapping[str, str] | None = None,
    same_maker: bool = False,
) -> ReleaseGate:
    """Return whether a model of a leaderboard is at most a margin worse than another.

    Parameters
    ----------
    leaderboard : DataFrame
        Columns of `judgeline.intervals.Leaderboard`, a model per row.
    new, current : str
        Names of the models.
    margin : float
        Elo points by which the new model may be worse, 0 or more.
    miscoverage : float
        Tolerated share of misses with which the leaderboard was made.
    error : float
        Probability, in [1e-6, 1/2), that any of all looks passes a model that is worse than the
        margin, or calls one worse that is not.
    looks : int, optional
        Number of looks that are planned; without it each spends less than the one before.
    ledger : Path, optional
        File that counts the looks; without it this look is the only one.
    judge : str
        Family of the judge, or its name.
    families : mapping of str to str, optional
        As of `judgeline.io.family_of`.
    same_maker : bool
        Whether a judge of the new model's maker may decide.

    Returns
    -------
    ReleaseGate
        One of three answers, with what would tell.

    Raises
    ------
    ValueError
        If a name or number is unusable, the judge is of the new model's maker, too few models have
        votes, or the ledger is damaged, of another plan or spent.
    """
    if not (math.isfinite(margin) and margin >= 0):
        raise ArgumentError(f"margin is {margin!r}; expected Elo points, 0 or more", "margin")
    if looks is not None and ledger is None:
        raise ArgumentError(
            f"looks is {looks}, and no ledger counts them: name one with ledger=FILE", "looks"
        )
    if not same_maker:
        _require_other_maker(new, judge, families or {})
    margin = abs(margin)  # -0 is 0
    options = {"margin": margin, "miscoverage": miscoverage}
    compare_on(leaderboard, new, current, **options)  # names and ratings are there
    n_voted = _require_voted(leaderboard, new, current)
    own = {"new": new, "current": current, "margin": margin, "board": board_digest(leaderboard)}
    planned = looks if ledger else 1
    plan = {"error": error, "planned": planned}
    looked, repeated = _looks(ledger, own, plan)
    look = int(repeated["look"]) if repeated else looked + 1
    level = level_of_look(error, look, planned)
    levels = [level, level_of_look(error, min(look + 1, planned or look + 1), planned)]
    widening, later = (
        tail_ratio(one, miscoverage=miscoverage, n_calibrating=n_voted) for one in levels
    )
    found = compare_on(leaderboard, new, current, widening=widening, later=later, **options)
    gate = ReleaseGate(
        _DECISIONS[found.answer], found, margin, error, level, look, planned,
        judge, str(ledger or ""), ledger is not None and not looked,
    )  # fmt: skip
    if ledger and not repeated:
        numbers = {"difference": found.difference, "lower": found.lower, "upper": found.upper}
        shown = {"at": datetime.now(UTC).isoformat(timespec="seconds"), **json_value(numbers)}
        answer = {"look": look, "level": level, "decision": gate.decision}
        extend_ledger(ledger, [{**own, **plan, **answer, **shown}])
    return gate


def _looks(ledger: Path | None, own: Entry, plan: Entry) -> tuple[int, Entry | None]:
    """Return how many looks a ledger has, and the one that was at this very board."""
    entries = read_ledger(ledger, _KINDS) if ledger else []
    for number, entry in enumerate(entries, 1):
        if entry["look"] != number:
            raise ValueError(
                f"{ledger}, line {number}: look {entry['look']}, where look {number} belongs; "
                "restore the file, since looks that are missing would be spent twice"
            )
        if other := [name for name in _OF_A_PLAN if entry[name] != plan[name]]:
            name = {"planned": "looks"}.get(other[0], other[0])
            now, then = plan[other[0]], entry[other[0]]
            raise ArgumentError(
                f"{name} is {'not stated' if now is None else now}, and {ledger} was begun "
                + ("without: leave it out" if then is None else f"with {then}: state that")
                + ", or begin another ledger",
                name,
            )
    same = [entry for entry in entries if all(entry[name] == own[name] for name in own)]
    return len(entries), same[0] if same else None


def _require_voted(leaderboard: pd.DataFrame, new: str, current: str) -> int:
    """Return how many voted models there are beside the two; ValueError where they are too few."""
    table = leaderboard.set_index("model")
    voted = table["human_rating"].notna()
    lone = [name for name in (new, current) if table["evidence"][name] == BY_JUDGE]
    if lone and voted.sum() < LEAST_VOTED:
        raise ValueError(
            f"{voted.sum()} models have votes and {lone[0]!r} has none; a gate takes votes on "
            f"both models, or on {LEAST_VOTED} models at least: have people vote on {lone[0]!r}"
        )
    return int(voted.drop([new, current]).sum())


def _require_other_maker(new: str, judge: str, families: Mapping[str, str]) -> None:
    own = family_of(new, families)
    if own and own == family_of(judge, families):
        raise ArgumentError(
            f"judge {judge!r} and model {new!r} are both of {own!r}, and judges prefer their own; "
            "have another judge decide, or state same_maker=True",
            "same_maker",
        )


WRITERS: Mapping[str, Callable[[ReleaseGate], str]] = {
    "junit": ReleaseGate.to_junit,
    "json": ReleaseGate.to_json,
    "markdown": ReleaseGate.to_markdown,
}
"""Files that a gate is written to, by option."""
