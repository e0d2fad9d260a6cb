"""Columns of a file of unknown layout: kind, filled rows, an example, and a guess of meaning.

A guess is proposed to a user and never read by itself; a vote of people is guessed beside the
scores of a judge alone.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd

from judgeline.io.answers import PASS_OR_FAIL
from judgeline.io.outcome_codes import (
    CODES_IN_USE,
    VERDICTS,
    WINNERS,
    code_of,
    coding_of,
    codings_of,
    looks_failed,
)
from judgeline.suggest import quoted

_MOST_NAMES = 200
_LONG = 60  # characters of a text that is no name
_DEPTH = 3
_MOST_CODES = 12
_SIDE = re.compile(
    r"(?i)(?<![a-z0-9])(a|b|0|1|2|left|right|first|second|chosen|rejected)(?![a-z0-9])"
    r"|(?-i:(?<=[a-z])(A|B)$)|(?<=[a-z])[12]$"
)
_LABEL = (
    r"label|gold|human|target|expert|majority|expected|annot|people|user|preference|rater|coder"
    r"|crowd"
)
_JUDGE = r"verdict|judge|pred|winner|gpt|llm|auto|feedback|decision|result|evaluator|score"
_WINNER = r"winner|verdict|vote|outcome|better|preference|result|decision"
_VOTES = r"label|gold|human|expert|annot|people|user|rater|coder|vote|crowd"
_VOTE = "{name} may be votes: if people decided, state human_outcome={name} as well."
_BESIDE = (
    "{name} is taken as votes of people, beside {what} of a judge: if a judge decided, state "
    "judge_winner={name} in place of human_outcome and of the {what}."
)
IN_TWO_CODINGS = "battles of two models, with votes and verdicts in two codings"
_TWO_CODINGS = (
    "{human_outcome} and {judge_winner} are in two codings, and --outcomes states one: write "
    "{judge_winner} as A, B and tie, which need no statement, and ask doctor again."
)
_QUESTION = r"(?i)(question|prompt)[ _-]?(key|id|idx|index|number)?"
_GAP = r"delta|diff|margin|gap"
_MACHINE = r"verdict|judge|pred|gpt|llm|auto|model"
_MODEL = r"model|generator|system|assistant|provider|agent|candidate"
_SCORE = r"score|rating|mark|grade|value|points"
_ITEM = r"question|prompt|item|instruction|input|sample|session|task|idx|query|example|id$"

LABELS = "pairs of answers with a gold label, which measure a judge and rate no models"


class Column(NamedTuple):
    """A column of a table: kind, rows with a value of all rows, different values, an example."""

    name: str
    kind: str
    n_known: int
    n_rows: int
    different: tuple[Any, ...]
    example: str

    def text(self) -> str:
        """Return the column as `doctor` says it."""
        several = f", {len(self.different):,} different" if self.different else ""
        share = f"{self.n_known / max(self.n_rows, 1):.0%} filled"
        return f"{self.name}: {self.kind}{several}, {share}, such as {self.example}"


class Guess(NamedTuple):
    """Likely meaning of a file, what it lacks, and the command with its columns and codes."""

    holds: str
    lacks: str = ""
    verb: str = ""
    columns: Mapping[str, str] = {}
    outcomes: str = ""


def columns_of(table: pd.DataFrame) -> list[Column]:
    """Return the columns of a table, those of objects by dotted names."""
    found = dict(_flat(table, _DEPTH))
    return [_column(name, values, len(table)) for name, values in found.items()]


def _flat(table: pd.DataFrame, depth: int) -> Iterator[tuple[str, pd.Series]]:
    for name in table:
        known = table[name].dropna()
        if depth and len(known) and known.map(lambda cell: isinstance(cell, dict)).all():
            inner = pd.DataFrame(known.tolist(), index=known.index, dtype=object)
            for part, values in _flat(inner, depth - 1):
                yield f"{name}.{part}", values
        else:
            yield str(name), known


def _column(name: str, known: pd.Series, n_rows: int) -> Column:
    values: tuple[Any, ...] = ()
    if not len(known):
        kind = "empty"
    elif not known.map(pd.api.types.is_hashable).all():
        kind = "lists or objects"
    else:
        texts = known.astype(str)
        values = tuple(dict.fromkeys(known.tolist()))
        is_number = pd.to_numeric(texts, errors="coerce").notna().all()
        is_long = texts.str.len().mean() > _LONG or texts.str.contains("\n").any()
        kind = "number" if is_number else "long text" if is_long else "text"
    example = quoted(known.tolist()[0], 40) if len(known) else "nothing"
    return Column(name, kind, len(known), n_rows, values, example)


def guess(columns: Sequence[Column], codes: Collection[str] = ()) -> Guess:
    """Return what a table may hold, by names and values of its columns; `codes` are stated ones."""
    for find in (
        _answers,
        partial(_battles, codes=codes),
        _labels,
        _marks,
        _board,
        _single,
        _counts,
        _texts,
    ):
        if found := find(columns):
            return found
    return Guess("a table that is none of those that judgeline knows", "Battles of two models.")


def _answers(columns: Sequence[Column]) -> Guess | None:
    """Return verdicts and labels of pass or fail."""
    named = {one.name.strip().casefold(): one for one in columns}
    both = [named[name] for name in ("verdict", "label") if name in named]
    values = {code_of(value).casefold() for one in both for value in one.different}
    if len(both) == 2 and values and values <= PASS_OR_FAIL:
        return Guess("judged single answers, with labels of people", "", "rates")
    return None


def _battles(columns: Sequence[Column], codes: Collection[str]) -> Guess | None:
    """Return two columns of models, with a verdict or the scores of both sides."""
    names = [one for one in columns if one.kind == "text" and len(one.different) <= _MOST_NAMES]
    pairs = [(x, y) for x, y in combinations(names, 2) if _share(x, y) >= 0.5 or _are_sides(x, y)]
    pairs = [
        pair for pair in pairs if _share(*pair) or all(re.search(_MODEL, x.name) for x in pair)
    ]
    if not (pair := max(pairs, key=lambda two: _share(*two) + _are_sides(*two), default=None)):
        return None
    models = {"model_a": pair[0].name, "model_b": pair[1].name}
    others = [one for one in columns if one not in pair]
    models |= _question(others)
    few = [one for one in others if 2 <= len(one.different) <= _MOST_CODES]
    votes = [one.name for one in few if re.search(_VOTES, one.name, re.I) and not _is_machine(one)]
    known = {*pair[0].different, *pair[1].different, *codes}
    for what, find in (("scores", _scored_and_voted), ("verdicts", _judged_and_voted)):
        if found := find(others, known):
            own, outcomes = found
            if outcomes is None:
                return Guess(IN_TWO_CODINGS, _TWO_CODINGS.format(**own), "", {**models, **own})
            beside = _BESIDE.format(name=own["human_outcome"], what=what)
            return Guess("battles", beside, "battles", {**models, **own}, outcomes)
    others = [one for one in others if one.name not in votes]
    lacks = "".join(_VOTE.format(name=name) for name in votes[:1])
    if found := _judged(others, known):
        columns_found, outcomes = found
        return Guess("battles", lacks, "battles", {**models, **columns_found}, outcomes)
    if lacks:
        lacks += f" If a judge did, judge_winner={votes[0]}."
        return Guess("battles of two models, and who decided is not told", lacks, "", models)
    return None


def _question(columns: Sequence[Column]) -> dict[str, str]:
    """Return the column that names the questions, as ours, if rows share them."""
    for one in columns:
        if re.fullmatch(_QUESTION, one.name) and 1 < len(one.different) < one.n_known == one.n_rows:
            return {"question_id": one.name}
    return {}


def _scored_and_voted(
    columns: Sequence[Column], known: set[Any]
) -> tuple[dict[str, str], str] | None:
    """Return a judge's scores and the votes beside them, by ours, and the codes of the votes."""
    scores = _scores(columns)
    verdict = _verdict([one for one in columns if not _is_machine(one)], known)
    if not scores or not verdict or verdict[0] in scores.values():
        return None
    return {"human_outcome": verdict[0], **scores}, verdict[1]


def _judged_and_voted(
    columns: Sequence[Column], known: set[Any]
) -> tuple[dict[str, str], str | None] | None:
    """Return a machine's verdict and the votes beside it, by ours, and the codes to state.

    One statement is for both columns, and a usual verdict needs none: the codes are None if the
    verdict is in a coding of its own.
    """
    parts = [[one for one in columns if _is_machine(one) is machine] for machine in (False, True)]
    found = [_verdict(part, known) for part in parts]
    if not found[0] or not found[1]:
        return None
    own = {"human_outcome": found[0][0], "judge_winner": found[1][0]}
    named = {one.name: _codes(one) for one in columns}
    votes, verdicts = (named[name] for name in own.values())
    if _are_usual(votes, known) and _are_usual(verdicts, known):
        return own, ""
    if {*votes} <= {"1", "0", "0.5"}:  # A's share of the win needs no statement
        return own, coding_of(verdicts)
    if not codings_of([*votes, *verdicts]):
        return own, coding_of(votes) if _are_usual(verdicts, known) else None
    return own, coding_of([*votes, *verdicts])


def _scores(columns: Sequence[Column]) -> dict[str, str]:
    """Return the columns of a judge's scores of both sides, by ours."""
    for x, y in combinations(columns, 2):
        if _are_sides(x, y) and _is_score(x, y):
            return {"judge_score_a": x.name, "judge_score_b": y.name}
    return {}


def _judged(columns: Sequence[Column], known: set[Any]) -> tuple[dict[str, str], str] | None:
    """Return the columns of a judge's verdict or scores, by ours, and the codes to state."""
    if verdict := _verdict(columns, known):
        return {"judge_winner": verdict[0]}, verdict[1]
    if scores := _scores(columns):
        return scores, ""
    for one in columns:
        if one.kind == "number" and re.search(_GAP, one.name, re.I):
            return {"score_difference": one.name}, ""
        if re.search(_WINNER, one.name, re.I) and 2 <= len(one.different) <= _MOST_CODES:
            return {"judge_winner": one.name}, ""  # in codes that the user has to state
    return None


def _share(x: Column, y: Column) -> float:
    """Return the share of the values of the smaller column that the other has too."""
    both = {*x.different} & {*y.different}
    return len(both) / max(min(len(x.different), len(y.different)), 1)


def _are_sides(x: Column, y: Column) -> bool:
    """Return whether two names differ only in what tells two sides: a and b, 1 and 2."""
    masked = [_SIDE.sub("#", one.name) for one in (x, y)]
    return masked[0] == masked[1] and "#" in masked[0] and x.kind == y.kind


def _is_score(*columns: Column) -> bool:
    return all(one.kind == "number" and re.search(_SCORE, one.name, re.I) for one in columns)


def _verdict(columns: Sequence[Column], models: set[Any]) -> tuple[str, str] | None:
    """Return the column of a verdict and the codes to state, where its texts are no usual ones."""
    named = re.compile(f"{_JUDGE}|{_LABEL}|vote|outcome|better", re.I)
    for one in sorted(columns, key=lambda one: not named.search(one.name)):
        codes = _codes(one)
        if not 2 <= len(codes) <= max(_MOST_CODES, len(models) + 4):
            continue
        if _are_usual(codes, models):
            return one.name, ""
        if named.search(one.name) and all(code.casefold() in CODES_IN_USE for code in codes):
            return one.name, coding_of(codes)  # of several the user has to state one
    return None


def _codes(one: Column) -> list[str]:
    """Return the codes of a column, without those of a failure."""
    return [code for code in dict.fromkeys(map(code_of, one.different)) if not looks_failed(code)]


def _are_usual(codes: Sequence[str], models: set[Any]) -> bool:
    """Return whether codes need no statement: names of the models, or verdicts in usual words."""
    ours = {*map(str.casefold, map(str, models))} | {*WINNERS}
    return all(code.casefold() in ours for code in codes) or all(
        code.upper().strip("[]") in VERDICTS for code in codes
    )


def _labels(columns: Sequence[Column]) -> Guess | None:
    """Return a gold label of a pair, with a judge's verdict if there is one."""
    few = [one for one in columns if 2 <= len(one.different) <= 5 and _is_code(one)]
    labels = [one for one in few if _is_peoples(one)]
    if not labels:
        return None
    label = labels[0]
    raters = [one for one in labels[1:] if _are_sides(label, one)]
    judged = [one for one in few if one not in labels and re.search(_JUDGE, one.name, re.I)]
    judged = judged or raters
    judged = [
        one for one in judged if {*map(code_of, one.different)} & {*map(code_of, label.different)}
    ]
    if judged:
        named = {"label": label.name, "verdict": judged[0].name}
        holds = "codes of several raters" if judged[0] in raters else "verdicts beside a gold label"
        return Guess(holds, "", "agreement", named)
    return Guess(
        LABELS,
        "A judge's verdicts on these pairs, in the codes of the label, as a column verdict: then "
        "the same command says how often it agrees, and its kappa.",
        "agreement",
        {"label": label.name},
    )


def _is_peoples(one: Column) -> bool:
    return bool(re.search(_LABEL, one.name, re.I)) and not _is_machine(one)


def _is_machine(one: Column) -> bool:
    return bool(re.search(_MACHINE, one.name, re.I))


def _is_code(one: Column) -> bool:
    codes = [*map(code_of, one.different)]
    return all(c.casefold() in CODES_IN_USE or c.upper().strip("[]") in VERDICTS for c in codes)


def _marks(columns: Sequence[Column]) -> Guess | None:
    """Return marks of a judge beside marks of people, or of a better and a worse answer."""
    numbers = [one for one in columns if one.kind == "number" and len(one.different) > 1]
    for x, y in combinations(numbers, 2):
        if "chosen" in x.name and "rejected" in y.name and _are_sides(x, y):
            named = {"chosen_score": x.name, "rejected_score": y.name}
            holds = "a judge's scores of a better and a worse answer"
            return Guess(holds, "", "agreement", named)
    people = [one for one in numbers if _is_peoples(one)]
    judge = [one for one in numbers if one not in people and re.search(_JUDGE, one.name, re.I)]
    if not people or not judge:
        return None
    named = {"label": people[0].name, "verdict": judge[0].name}
    return Guess("marks of a judge beside those of people", "", "agreement", named)


def _board(columns: Sequence[Column]) -> Guess | None:
    """Return a leaderboard: a row is a model, or its only numbers are ratings."""
    names = [one for one in columns if one.kind in ("text", "long text")]
    numbers = [one for one in columns if one.kind == "number"]
    is_unique = (
        names and len(names[0].different) == names[0].n_rows and re.search(_MODEL, names[0].name)
    )
    if numbers and (is_unique or (len(columns) <= 2 and not names)):
        return Guess(
            f"a leaderboard of {columns[0].n_rows} rows, and no battles: nothing is left to rate",
            "The battles that it was made of: two models and a verdict a row.",
        )
    return None


def _single(columns: Sequence[Column]) -> Guess | None:
    """Return scores of single answers: the model, the question and the score."""
    models = [one for one in columns if one.kind == "text" and re.search(_MODEL, one.name, re.I)]
    scores = [one for one in columns if _is_score(one)]
    items = [one for one in columns if re.search(_ITEM, one.name, re.I) and len(one.different) > 1]
    if not (models and scores and items):
        return None
    model, score = models[0], scores[0]
    item = max((one for one in items if one is not score), key=lambda one: len(one.different))
    named = {"question_id": item.name, "model": model.name, "score": score.name}
    return Guess("scores of single answers, a row each", "", "battles", named)


def _counts(columns: Sequence[Column]) -> Guess | None:
    """Return numbers of battles of each pair without who won them."""
    names = [one for one in columns if one.kind == "text"]
    numbers = [one for one in columns if one.kind == "number"]
    if len(names) == 2 and numbers and _share(*names) >= 0.5:
        both = f"{names[0].name} and {names[1].name}"
        return Guess(
            f"numbers of battles of {both}, without who won them",
            f"Say what {numbers[0].name} counts. If {names[0].name} won so many: add a column "
            "winner that says model_a in each row, and rename the number to n_battles.",
        )
    return None


def _texts(columns: Sequence[Column]) -> Guess | None:
    """Return answers that nobody judged yet."""
    long = [one for one in columns if one.kind == "long text"]
    if not long:
        return None
    is_pair = any(_are_sides(x, y) for x, y in combinations(long, 2))
    kind = "pairs of answers" if is_pair else "answers"
    return Guess(
        f"{kind} without a verdict: a judge has to read them first",
        "Verdicts. judgeline.ask buys them of battles with instruction, completion_a and "
        "completion_b (docs/judges.md).",
        "ask",
    )
