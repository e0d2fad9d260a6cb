"""Judged battles of one file or table, in a layout told by its columns.

Released Soft-Elo annotations go through the corpus reader of that name; our own battles, with
scores or plain verdicts, are read here. Rows that no estimator may see are set aside with a
reason, never repaired.
"""

import difflib
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgeline.elo import FEW_BATTLES
from judgeline.io.counting import (
    MOST_UNCOUNTED,
    CountedRows,
    count_rows,
    first_rows,
    is_large,
    n_rows_of,
)
from judgeline.io.failures import (
    Missing,
    failed_texts,
    parse_missing,
    require_on_scale,
    stated_text,
)
from judgeline.io.formats import (
    LOG,
    TEXTS,
    at_paths,
    encoding_of,
    file_columns,
    files_of,
    kind_of,
    read_columns,
    with_paths,
)
from judgeline.io.layout import LABELS, Given, Layout, Stated
from judgeline.io.layout import VOTES as VOTES_ALONE
from judgeline.io.layouts import layout_of
from judgeline.io.layouts.single_scores import NEEDED, SINGLE_SCORES
from judgeline.io.one_battle import ORDERS, UNCLEAR, VOTES, join_rows, votes_of
from judgeline.io.outcome_codes import (
    CODES_IN_USE,
    COUNT,
    EXPECTED_VERDICTS,
    EXPECTED_WINNERS,
    PLAIN,
    STATED_AS,
    USUAL,
    battles_by,
    by_value,
    code_of,
    n_battles_of,
    outcomes_by_code,
    outcomes_by_winner,
    parse_codes,
    require_both_winners,
    require_columns,
    require_known_codes,
    scores_of_verdicts,
    without_blanks,
)
from judgeline.io.published import categories
from judgeline.io.schema import Fault, fault, self_battles, set_aside, typed
from judgeline.io.scoring import score_battles
from judgeline.io.spellings import joined_names, spellings, visible
from judgeline.io.voters import (
    are_machines,
    columns_of_judges,
    columns_of_voters,
    folded,
    numbers_of,
    question_of,
    refusal,
)
from judgeline.suggest import ArgumentError
from judgeline.verdict import hard_outcome, sign_outcome

NEEDED_COLUMNS = ("model_a", "model_b", "score_difference", "human_outcome")
VOTE = "winner"
"""Column of votes by name of the winner, which stands for human_outcome where that is missing."""
_SIDES = (("judge_score_a", "judge_score_b"), ("score_a", "score_b"))
"""Columns of the scores of both sides, whose difference stands for score_difference."""
_TEXTS = ("verdict", "judge_verdict", "judge_winner")
PLAIN_COLUMNS = ("judge_outcome", *_TEXTS)
"""Columns of plain verdicts, which stand for scores in a file that has none."""
LENGTHS = ("length_a", "length_b")
"""Columns of the lengths of both responses, in characters."""
_AMOUNTS = (*LENGTHS, "markdown_a", "markdown_b")
OPTIONAL_NUMBERS = ("judge_outcome", "recorded_outcome", *ORDERS, *_AMOUNTS)
OPTIONAL_TEXT = ("battle_id", "question_id", "cluster_id", "language", "category", "judge")
_NAMES = ("model_a", "model_b", *OPTIONAL_TEXT)
_KNOWN = tuple(
    dict.fromkeys(
        (
            *(*NEEDED_COLUMNS, VOTE, *sum(_SIDES, ()), *PLAIN_COLUMNS),
            *(*OPTIONAL_NUMBERS, *OPTIONAL_TEXT, COUNT, VOTES, *NEEDED),
        )
    )
)
OUTCOMES = {"human_outcome": 2, "judge_outcome": 4, "recorded_outcome": 4}
"""Columns of outcomes, by the steps of A's share of the win between 0 and 1."""
_STATE_CODES = (
    f"State the codes with outcomes={{codes}} ({STATED_AS}), or convert the column; "
    f"outcomes={USUAL} sets rows of other codes aside"
)
_STATE_VERDICTS = (
    f"Plain verdicts are {EXPECTED_VERDICTS}. State the codes of wins and ties with "
    f"outcomes={{codes}} ({STATED_AS})"
)
_STATE_FAILED = (
    "Verdicts that failed are no ties: set them aside with allow_quarantine=True, or state them as"
)
_QUARTERS = "a multiple of 0.25 in [0, 1]"
_COUNTS = {
    "count", "counts", "cnt", "n", "num", "battles", "games", "matches", "num_battles", "n_games",
    "n_matches", "weight", "weights", "frequency", "freq",
}  # fmt: skip
_ABSURD = 20.0  # times the 90 % quantile of absolute score differences
_ROUNDED = 0.051  # difference of two columns that rounding to one digit explains
_JUDGE_NAMES = ("judge_model", "judge_name")
_FAILED = "missing-verdict"
_NO_FAILURE = "a verdict, not a failure"
FEW_JUDGES = 20  # more in one column look like voters
_BASELINE = "baseline"  # of files that do not name it
OF_A_TABLE = "the judge of the table"
"""Name of the judge of a table that came without any."""
_GIVEN = Path("table")  # how messages name a table that came as one


class MissingColumnsError(ArgumentError):
    """A source lacks columns of `NEEDED_COLUMNS` that nothing in it stands for."""

    def __init__(self, message: str, missing: Set[str]) -> None:
        super().__init__(message, "columns")
        self.missing = missing


class ManyJudgesError(ArgumentError):
    """A source holds verdicts of several judges, and none is named."""

    def __init__(self, message: str, judges: Sequence[str]) -> None:
        super().__init__(message, "judge")
        self.judges = judges


class JudgedBattles(NamedTuple):
    """Scored battles of one judge, rows set aside, and how many battles lack usable scores.

    `n_repeated` rows equal an earlier one in the columns that were read and cannot be told from
    it; they count, since two alike battles are possible. `outcomes` are the codes as stated, and
    `plain` the sentence on verdicts that stand for scores, which follows the codes. `notes` has a
    sentence on each thing that a person should look at. Where alike battles are one row, their
    number stands in `COUNT`, of battles as of rows set aside; of large files all other columns of
    battles are categoricals, numbers too.
    """

    judge: str
    scored: pd.DataFrame
    quarantine: pd.DataFrame
    n_unscored: int
    n_rows: int
    n_repeated: int = 0
    outcomes: str = USUAL
    plain: str = ""
    notes: tuple[str, ...] = ()

    @property
    def is_counted(self) -> bool:
        """Return whether alike battles are one row with their number."""
        return COUNT in self.scored

    @property
    def n_battles(self) -> int:
        """Return how many battles count."""
        return n_battles_of(self.scored)

    @property
    def n_quarantined(self) -> int:
        """Return how many rows were set aside."""
        return n_battles_of(self.quarantine)

    @property
    def reasons(self) -> str:
        """Return the numbers of rows that were set aside, with their reasons."""
        counts = battles_by(self.quarantine["reason"], self.quarantine)
        return ", ".join(f"{count} {reason}" for reason, count in counts.items())

    @property
    def repeats(self) -> str:
        """Return the sentence on repeated rows; empty where there are none."""
        by_chance = ", as plain verdicts may by chance," * bool(self.plain)
        return (
            f"{self.n_repeated:,} row{'s equal' if self.n_repeated > 1 else ' equals'} an earlier "
            f"row{by_chance} and count{'s' * (self.n_repeated == 1)} again; a "
            "battle_id column tells repeats from other battles."
        ) * bool(self.n_repeated)

    @property
    def quarantined_share(self) -> float:
        """Return the share of rows that were set aside."""
        bad = self.n_quarantined if self.is_counted else self.quarantine["row"].nunique()
        return bad / max(self.n_rows, 1)


class _Source(NamedTuple):
    """A file or table of our own battles: which columns hold what, and the codes of its outcomes.

    `columns` has the source's own name of each column; `sides` are the columns of both scores,
    where these stand for their difference. `layout` is the published one that it has, if any, and
    `voters` the column that tells votes of people from verdicts of a judge. A `lenient` reader sets
    unknown verdicts aside.
    """

    path: Path
    files: Sequence[Path]
    columns: Mapping[str, str]
    read: Callable[[list[str], list[str]], pd.DataFrame]
    stated: str | None
    layout: Layout | None = None
    vote: str = "human_outcome"
    score: str = "score_difference"
    sides: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    missing: Missing = Missing()
    same_names: bool = False
    lenient: bool = False
    voters: str = ""

    def take(self, names: list[str]) -> pd.DataFrame:
        """Return columns under our names, those of names and ids as text."""
        own = [self.columns[name] for name in names]
        table = self.read(own, [self.columns[name] for name in names if name in _NAMES])
        table = table.rename(columns=dict(zip(own, names, strict=True)))
        if "category" in table:
            table["category"] = categories(table["category"])
        texts = pd.StringDtype, pd.CategoricalDtype
        ids = [one for one in OPTIONAL_TEXT if one in table]
        ids = [one for one in ids if not isinstance(table[one].dtype, texts)]
        return table.assign(**{one: _id_texts(table[one]) for one in ids})

    def place(self, column: str) -> str:
        """Return how messages name a column of outcomes."""
        return f"{self.path}: column {self.shown(column)}"

    def stated_columns(self) -> dict[str, str]:
        """Return the columns that have another name in the source."""
        pairs = self.columns.items()
        return {ours: own for ours, own in pairs if ours in _KNOWN and folded(own) != ours}

    def shown(self, column: str) -> str:
        """Return the source's own name of a column."""
        name = self.vote if column == "human_outcome" else column
        return self.columns.get(name, name)


def _id_texts(ids: pd.Series) -> pd.Series:
    """Return numbers, lists and objects of a table as texts; whole numbers without decimals."""

    def text(one: Any) -> str:
        """Return an id as text, a whole number without decimals."""
        return str(one).removesuffix(".0") if isinstance(one, float) else str(one)

    texts = by_value(ids, text)
    return texts.astype("str").where(ids.notna())


def read_judged_battles(
    source: Path | pd.DataFrame,
    *,
    judge: str | None = None,
    outcomes: str | None = None,
    columns: Mapping[str, str] | None = None,
    with_votes: bool = True,
    counted: bool = False,
    missing: Any = None,
    same_names: bool = False,
    lenient: bool = False,
    votes_alone: bool = False,
) -> JudgedBattles:
    """Return the scored battles of a file or a table.

    Parameters
    ----------
    source : Path or DataFrame
        Soft-Elo annotations, or battles with scores or plain verdicts, as a table or a file:
        CSV with any separator, JSON, JSON lines, Parquet or Feather; several of them as a folder
        or a pattern such as ``runs/*.csv``. Votes are ``human_outcome`` (1, 0.5, 0) or ``winner``
        (model_a, model_b, tie, both_bad, or a model's name). Logs of Inspect AI (``.eval``) and
        JudgeArena's battles are read as these programs write them.
    judge : str, optional
        Which judge to rank by, where a file holds several.
    outcomes : str, optional
        Codes of outcomes, such as ``"1/-1/0"``: A's, B's, then any of ties.
    columns : mapping of str to str, optional
        The source's own name of a column that it calls otherwise. Letters, blanks and hyphens
        may differ from ours without being named here.
    with_votes : bool
        Whether a source without a column of votes is refused.
    counted : bool
        Whether alike battles may be one row with their number: as the column ``n_battles`` says,
        and in Parquet files of many rows, which are then read in bounded memory. By default a
        source with that column is refused.
    missing : str, number or sequence of these, optional
        Values that stand for failed verdicts, such as -1 or ``"error"``; ``"nothing"`` where all
        numbers are scores, though one stands apart from the others.
    same_names : bool
        Whether names of a model that differ only in case, blanks, hyphens, quotes, invisible
        characters or the provider's prefix are one name, the most frequent.
    lenient : bool
        Whether verdicts of unknown texts are set aside, however many.
    votes_alone : bool
        Whether people's votes stand for the verdicts that a source lacks, each a battle by itself.

    Returns
    -------
    JudgedBattles
        Outcomes are A's share of the win, score differences A minus B in rubric points, or 1, 0
        and -1 of plain verdicts (2 and -2 of A>>B and B>>A).

    Raises
    ------
    ValueError
        If the file is missing, empty or of another layout, holds several judges and none is
        named, has outcomes of another coding, or no row of it can be scored; the message says
        what to do.
    """
    found = _opened(source, columns or {}, outcomes, votes_alone)
    found = found._replace(missing=parse_missing(missing), same_names=same_names, lenient=lenient)
    found = _votes_of_people(found, counted=counted)
    if found.layout and found.layout.is_rated:
        battles = _recorded(found, found.layout, judge, with_votes)
    else:
        found = _votes_alone(found) if votes_alone else _with_columns_found(found, with_votes)
        battles = _scored(found, judge, counted)
    if battles.scored.empty:
        raise ValueError(_nothing_scored(found.path, battles))
    return battles._replace(notes=(*battles.notes, *_notes(found, battles.scored)))


def _opened(
    source: Path | pd.DataFrame, stated: Mapping[str, str], outcomes: str | None, votes_alone: bool
) -> _Source:
    """Return a source whose columns are battles: as they stand, or as its layout makes them."""
    given, layout = given_of(source)
    names = {**(layout.names if layout else {}), **stated}
    if {*NEEDED} <= {*given.columns, *names} and not {"model_a", "model_b"} & {*names}:
        require_columns(given.path, with_paths(given.columns, names), names, _KNOWN)
        layout, stated, given = SINGLE_SCORES, {}, _renamed(given, names)
    notes: tuple[str, ...] = ()
    if votes_alone and layout and layout.advice is VOTES_ALONE and layout.corpus:
        battles = layout.read(given.files).battles
        given = given._replace(columns=[*battles], read=partial(_read_table, battles), files=())
    if layout and layout.battles and layout.advice is not LABELS:
        try:
            table = layout.battles(given)
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            raise ValueError(
                f"{given.path} has the keys of {layout.name} and other values ({error!r}); write "
                "it again by that program"
            ) from error
        notes = tuple(table.attrs.get("notes", ()))
        read, places = partial(_read_table, table), {"file", "row"}
        if places <= {*table}:
            read = partial(_read_again, table)
        else:
            given = given._replace(files=())
        given = given._replace(columns=[one for one in table if one not in places], read=read)
    named = _named(given.path, given.columns, stated)
    voters = layout.voters if layout else ""
    source = _Source(given.path, given.files, named, given.read, outcomes, layout)
    return source._replace(voters=voters, notes=notes)


def given_of(source: Path | pd.DataFrame) -> tuple[Given, Layout | None]:
    """Return the files or the table of a source, and its published layout if it has one."""
    given = _given(source)
    return given, layout_of(given.columns, {one.suffix for one in given.files})


def _renamed(given: Given, names: Mapping[str, str]) -> Given:
    """Return files or a table of single answers under our names of its columns."""
    ours = {own: name for name, own in names.items()}

    def read(columns: list[str], texts: list[str]) -> pd.DataFrame:
        """Return columns of the file under our names."""
        own = [names.get(name, name) for name in columns]
        return given.read(own, [names[name] for name in texts if name in names]).rename(
            columns=ours
        )

    kept = [name for name in (*NEEDED, "judge") if name in {*given.columns, *names}]
    return given._replace(columns=kept, read=read)


def _given(source: Path | pd.DataFrame) -> Given:
    """Return the files or the table of a source, with the names of its columns."""
    if isinstance(source, Path):
        files = files_of(source)
        own = [] if any(one.suffix == LOG for one in files) else _common_columns(files)
        parts = [_parts(one, source) for one in files]
        if any(parts):
            read = partial(_read_partitions, files, parts)
            return Given(source, files, [*own, *parts[0]], read)
        return Given(source, files, own, partial(_read_files, files))
    if source.columns.nlevels > 1:
        raise ValueError("the table's columns have several levels: give each one name")
    named = source.rename(columns=str)
    return Given(_GIVEN, (), list(named.columns), partial(_read_table, named))


def _votes_of_people(source: _Source, *, counted: bool) -> _Source:
    """Return a source whose winner is people's, or told apart from the judge's row by row.

    A column human_outcome says by its name that people voted, and nothing about it is looked up.
    """
    columns = source.columns
    if "human_outcome" in columns or VOTE not in columns or source.voters:
        return source
    verdicts = ("score_difference", *PLAIN_COLUMNS, *ORDERS)
    has_verdict = not {*verdicts}.isdisjoint(columns) or any({*s} <= {*columns} for s in _SIDES)
    others = {name: own for name, own in columns.items() if name in (own, "judge")}
    stated, winner = source.stated_columns(), columns[VOTE]
    is_many = _is_many(source, counted=counted)
    for name in columns_of_voters(others, has_verdict=has_verdict):
        own = columns[name]
        values = first_rows(source.files[0], own) if is_many else source.read([own], [own])[own]
        machine = are_machines(values)
        if not machine.any():
            continue
        example = values[machine].iloc[0]
        if (machine | values.isna()).all() or is_many or COUNT in columns:
            reason = f"column {own!r} says {example!r} in {machine.sum():,} rows"
            raise refusal(source.path, reason, winner, stated)
        people = values[~machine].dropna().iloc[0]
        note = (
            f"column {own!r} tells rows apart: {winner!r} is the judge's in {machine.sum():,} "
            f"({example!r}), people's vote in {(~machine & values.notna()).sum():,} ({people!r})"
        )
        if "judge" not in columns:
            model = next((one for one in others if folded(one) in _JUDGE_NAMES), name)
            columns = {**columns, "judge": columns[model]}
        return source._replace(voters=name, columns=columns, notes=(*source.notes, note))
    for name in () if has_verdict else columns_of_judges(others):
        values = source.read([columns[name]], [columns[name]])[columns[name]].dropna()
        example = f" (such as {values.iloc[0]!r:.60})" if len(values) else ""
        reason = f"column {columns[name]!r}{example} is a judge's, and no other column is a verdict"
        raise refusal(source.path, reason, winner, stated)
    return source


def _is_many(source: _Source, *, counted: bool) -> bool:
    """Return whether a source is files of so many rows that these are counted."""
    from_files = isinstance(source.read, partial) and source.read.func is _read_files
    return counted and COUNT not in source.columns and from_files and is_large(source.files)


def _read_again(table: pd.DataFrame, columns: list[str], _texts: list[str]) -> pd.DataFrame:
    """Return columns of rows that were read already, with the place of each."""
    return table[[*columns, "file", "row"]]


def _parts(path: Path, folder: Path) -> dict[str, str]:
    """Return the values that a partitioned data set's folders give a file: ``judge=gpt-4``."""
    inside = path.relative_to(folder).parts[:-1] if folder in path.parents else ()
    return dict(part.split("=", 1) for part in inside if "=" in part)


def _read_partitions(
    files: Sequence[Path], parts: Sequence[Mapping[str, str]], columns: list[str], texts: list[str]
) -> pd.DataFrame:
    """Return columns of the files of a partitioned data set, with those that its folders are."""
    tables = []
    for path, part in zip(files, parts, strict=True):
        own = [name for name in columns if name not in part]
        table = _read_files([path], own, [name for name in texts if name in own])
        told = {name: part[name] for name in columns if name in part}
        tables.append(table.assign(**told, file=str(path)))
    return pd.concat(tables, ignore_index=True)


def _common_columns(files: Sequence[Path]) -> list[str]:
    own = file_columns(files[0])
    for path in files[1:]:
        if set(own) != (found := set(file_columns(path))):
            others = ", ".join(sorted(found ^ {*own}))
            raise ValueError(
                f"{files[0]} and {path} have other columns ({others}): name one of them, or a "
                "pattern of files that are alike"
            )
    return own


def _read_files(files: Sequence[Path], columns: list[str], texts: list[str]) -> pd.DataFrame:
    """Return columns of files one after the other, with the file and row of each battle."""
    tables = [read_columns(path, columns, texts=texts) for path in files]
    read = tables[0] if len(files) == 1 else pd.concat(tables, ignore_index=True)
    lengths = [len(table) for table in tables]
    names = [files[0].name] if len(files) == 1 else [*map(str, files)]
    file = pd.Categorical.from_codes(np.repeat(range(len(files)), lengths), names)
    return read.assign(file=file, row=np.concatenate([*map(np.arange, lengths)]))


def _named(path: Path, found: list[str], stated: Mapping[str, str]) -> dict[str, str]:
    """Return the source's own name of each column: as stated, as it is, or in other letters."""
    found = with_paths(found, stated)
    require_columns(path, found, stated, _KNOWN)
    again = {name for name in found if f"{name}.1" in found}  # pandas names the second of two so
    is_twice = len({*found}) < len(found) or again & {*_KNOWN, *stated.values()}
    if is_twice or len({*stated.values()}) < len(stated):
        raise ArgumentError(
            f"{path}: two columns share a name, in the file or in 'columns'; name each once",
            "columns",
        )
    named = {own: own for own in found if own not in stated.values()} | dict(stated)
    folded = [re.sub(r"[\s-]+", "_", own.strip()).casefold() for own in found]
    for name in _KNOWN:
        alike = [own for own, small in zip(found, folded, strict=True) if small == name]
        if name not in named and len(alike) == 1 and alike[0] not in stated.values():
            named[name] = alike[0]
    return named


def _notes(source: _Source, scored: pd.DataFrame) -> Iterator[str]:
    """Yield sentences for a person to check: a guessed encoding, nearly equal names."""
    yield from source.notes
    if COUNT in scored:
        yield (
            "alike battles are read as one row with their number; left out is what needs each by "
            "itself: resamples, repeated rows and ids, agreement with people, and the judge's "
            "leanings by position, length and language"
        )
    if len(source.files) > 1:
        yield (
            f"{len(source.files)} files were read as battles of one judge; if each is of another "
            "judge, name one file, or add a column judge"
        )
    for path in source.files:
        encoding = encoding_of(path) if kind_of(path) in TEXTS else "utf-8"
        if not encoding.startswith("utf"):
            yield f"{path.name} is not UTF-8 and was read as {encoding}: look at its names"
    models = {*scored["model_a"].unique(), *scored["model_b"].unique()}
    if alike := spellings(models):
        pairs = "; ".join(" and ".join(map(visible, same)) for same in alike[:5])
        more = f" and {len(alike) - 5} more" if len(alike) > 5 else ""
        yield (
            "models whose names differ only in case, blanks, hyphens, quotes, invisible characters "
            f"or the provider's prefix are rated apart: {pairs}{more}; --same-names joins them"
        )
    yield from _rare_names(scored)
    yield from _contradictions(source, scored)
    vote = "human_outcome" if "human_outcome" in source.columns else VOTE
    if source.score != "human_outcome":  # votes alone agree with themselves
        own = source.columns.get(vote, vote)
        yield from filter(None, [question_of(own, *numbers_of(scored))])
    size = scored["score_difference"].astype(float).abs()
    usual = float(size.quantile(0.9))
    if usual and size.max() > _ABSURD * usual:
        row = int(size.to_numpy().argmax())
        yield (
            f"score_difference is {scored['score_difference'].iloc[row]} between "
            f"{scored['model_a'].iloc[row]} and {scored['model_b'].iloc[row]}, and 90 % are within "
            f"{usual:g} of 0: look at it, since one such score moves ratings"
        )


def _contradictions(source: _Source, scored: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on two columns that say different things of the same battle."""
    if COUNT in scored or source.stated is not None:
        return
    found: list[tuple[str, pd.Series, pd.Series]] = []
    for sides in _SIDES:
        if {"score_difference", *sides} <= source.columns.keys():
            table = source.take(["score_difference", *sides])
            numbers = table.apply(pd.to_numeric, errors="coerce")
            gap = numbers[sides[0]] - numbers[sides[1]]
            found.append((" - ".join(sides), numbers["score_difference"], gap))
    if {"human_outcome", VOTE} <= source.columns.keys():
        table = source.take(["model_a", "model_b", "human_outcome", VOTE])
        vote = pd.to_numeric(table["human_outcome"], errors="coerce")
        found.append((VOTE, vote, outcomes_by_winner(table[VOTE], table)))
    for other, first, second in found:
        apart = (first - second).abs().gt(_ROUNDED).to_numpy()
        if apart.any():
            column = "human_outcome" if other == VOTE else "score_difference"
            row = int(apart.argmax())
            yield (
                f"{column} and {other} differ in {int(apart.sum()):,} rows, the first is row {row} "
                f"({first.iloc[row]:g} and {second.iloc[row]:g}); {column} counts"
            )


def _rare_names(scored: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on models of few battles whose name is nearly that of one of many.

    Names whose digits differ, such as versions, are two names.
    """
    sides = (battles_by(scored[side], scored) for side in ("model_a", "model_b"))
    counts = next(sides).add(next(sides), fill_value=0).astype(int)
    rare = counts.index[counts < FEW_BATTLES].astype(str)
    many = counts.index[counts >= FEW_BATTLES].astype(str)
    pairs = [
        f"{name!r} ({counts[name]}) and {close!r} ({counts[close]})"
        for name in rare[:100]
        for close in difflib.get_close_matches(name, many, n=1, cutoff=0.9)
        if re.findall(r"\d+", name) == re.findall(r"\d+", close)
    ]
    if pairs:
        yield (
            "models of few battles whose names are nearly those of others are rated apart: "
            f"{'; '.join(pairs[:5])}"
        )


def _votes_alone(source: _Source) -> _Source:
    """Return a source whose votes stand for the scores that it lacks."""
    vote = "human_outcome" if "human_outcome" in source.columns else VOTE
    return source._replace(vote=vote, score="human_outcome")


def _with_columns_found(source: _Source, with_votes: bool) -> _Source:
    """Return a source with the columns of its votes and scores, or those that stand for them.

    A file without score_difference that holds scores all the same leaves something to guess.
    """
    columns = list(source.columns)
    if "human_outcome" not in columns and VOTE in columns:
        source = source._replace(vote=VOTE)
    verdicts = ("score_difference", *PLAIN_COLUMNS, *ORDERS, *sum(_SIDES, ()))
    if source.voters and {*verdicts}.isdisjoint(columns):
        return source._replace(score="judge_winner")
    missing = set(NEEDED_COLUMNS) - {*columns, *(["human_outcome"] * (source.vote == VOTE))}
    sides = next((both for both in _SIDES if set(both) <= set(columns)), None)
    if "score_difference" in missing and sides:
        source, missing = source._replace(sides=sides), missing - {"score_difference"}
    missing -= set() if with_votes else {"human_outcome"}
    if not missing:
        return source
    plain = [name for name in PLAIN_COLUMNS if name in columns]
    alike = [name for name in columns if "score" in name]
    has_scores = difflib.get_close_matches("score_difference", alike, n=1) or {*ORDERS} & set(
        columns
    )
    if len(plain) == 1 and not has_scores:
        missing -= {"score_difference"}
    if missing and (missing != {"score_difference"} or not plain or has_scores):
        raise MissingColumnsError(_wrong_columns(source, missing), missing)
    if len(plain) > 1:
        raise ValueError(
            f"{source.path} has no score_difference and {len(plain)} columns of verdicts: "
            f"{', '.join(plain)}; leave the one to rate by, and drop or rename the other"
        )
    return source._replace(score=plain[0])


def _wrong_columns(source: _Source, missing: set[str]) -> str:
    path, columns = source.path, list(source.columns)
    if path is not _GIVEN and source.layout and source.layout.advice is VOTES_ALONE:
        return (
            f"{path} has the columns of {source.layout.name}, which hold no verdicts and votes on "
            f"the same battles; to see what can be done with it: judgeline doctor "
            f"{shlex.quote(str(path))}"
        )
    if {"verdict", "label"} <= {name.strip().casefold() for name in columns}:
        return (
            f"{path} has the columns of judged single answers, not of battles; their pass rates: "
            f"judgeline rates {shlex.quote(str(path))}, and how far the judge agrees with the "
            f"labels: judgeline agreement {shlex.quote(str(path))}"
        )
    lacking = [name for name in NEEDED_COLUMNS if name in missing]
    near = {
        name: close[0]
        for name in lacking
        if (close := difflib.get_close_matches(name, columns, n=1)) and close[0] not in _KNOWN
    }
    hints = [f"is {own!r} meant as {name!r}?" for name, own in near.items()]
    named = {name: near.get(name, "NAME") for name in lacking}
    instead = {
        "score_difference": f"{' and '.join(_SIDES[0])}, or one of {', '.join(PLAIN_COLUMNS)}",
        "human_outcome": f"{VOTE}; without votes nothing says how the judge's scale differs from "
        "that of people, and judgeline doctor says what the judge alone supports",
    }
    expected = [f"{name} (or {instead[name]})" if name in instead else name for name in lacking]
    return (
        f"{path} has the columns {', '.join(columns[:30]) or '(none)'}; expected also "
        f"{', '.join(expected)}. State what the file calls them with columns={named}, or add them"
        f"{'; ' if hints else ''}{' '.join(hints)}"
    )


def _nothing_scored(path: Path, read: JudgedBattles) -> str:
    if read.quarantine.empty and not read.n_unscored:
        return f"{path} holds a header and no rows; write the battles into it again"
    example = f" For instance: {read.quarantine['detail'].iloc[0]}." if read.reasons else ""
    remedy = "Outcomes are A's share of the win: 1, 0.5, 0, or empty for no vote."
    if UNCLEAR in read.reasons:
        remedy = (
            "Give each battle a battle_id of its own; its rows are orders, replicates or votes."
        )
    if "no-number" in read.reasons:
        remedy = "Correct the column, or leave it out."
    if path is _GIVEN and "nan-score" in read.reasons:
        remedy = "Decimal commas of a file are read by its path, or by pandas with decimal=','."
    return (
        f"no row of {path} can be rated: {read.reasons or 'none has usable scores'}.{example} "
        f"{remedy}"
    )


def _recorded(
    source: _Source, layout: Layout, judge: str | None, with_votes: bool
) -> JudgedBattles:
    """Return the battles of a layout whose verdicts and votes are read as a corpus reads them."""
    if source.stated is not None:
        raise ArgumentError(
            f"{source.path} is of the layout {layout.name}, whose codes are fixed. Leave out "
            "'outcomes', and convert the column if it has others",
            "outcomes",
        )
    if source.path is _GIVEN:
        raise ValueError(
            f"the table has rows of {layout.name}, which are read from their file: name its path"
        )
    stated = Stated(needs_identities=False, baseline=_BASELINE)
    battles, quarantine, verdicts = layout.read(source.files, stated)
    if with_votes and layout.advice and battles["human_outcome"].isna().all():
        raise MissingColumnsError(f"{source.path} has no votes", {"human_outcome"})
    chosen = _choose(judge, sorted(verdicts["judge"].unique()), source.path)
    answers = verdicts[verdicts["judge"].eq(chosen)]
    scored = score_battles(battles, answers, soft=layout.advice is not None)
    if {*LENGTHS} <= {*battles}:
        published = battles.set_index("battle_id")
        scored = scored.assign(
            **{name: scored["battle_id"].map(published[name]).astype("Int64") for name in LENGTHS}
        )
    last = int(quarantine["row"].max()) if len(quarantine) else -1
    n_rows, n_left = max(len(battles), last + 1), answers["battle_id"].nunique() - len(scored)
    told = (f"the file does not name the model it compares with: here it is {_BASELINE!r}",)
    notes = told * (_BASELINE in {*battles["model_b"]})
    return JudgedBattles(chosen, scored, quarantine, n_left, n_rows, notes=notes)


def _origin(source: _Source) -> str:
    """Return how a sentence names a table, a file, or the folder of several."""
    if len(source.files) > 1:
        folder = source.path if source.path.is_dir() else source.path.parent
        return folder.resolve().name
    return "the table" if source.path is _GIVEN else source.path.name


def _choose(judge: str | None, known: list[str], path: Path) -> str:
    if judge is None and len(known) <= 1:
        return known[0] if known else "judge"
    if judge in known:
        return str(judge)
    asked = f"no verdict of judge {judge!r}" if judge else f"verdicts of {len(known):,} judges"
    names = ", ".join(known if len(known) <= FEW_JUDGES else [*known[:5], "..."])
    message = f"{path} holds {asked}; choose one with 'judge': {names}" + (
        ". So many look like voters: if people voted, leave the column judge out, or give it "
        "another name" * (len(known) > FEW_JUDGES)
    )
    raise ArgumentError(message, "judge") if judge else ManyJudgesError(message, known)


def _scored(source: _Source, judge: str | None, counted: bool) -> JudgedBattles:
    table, alike = _rows(source, counted=counted)
    if alike and not {*source.sides} <= {*table}:
        source = source._replace(sides=())
    given, chosen = _of_judge(_with_names(_with_votes(table, source), source), source, judge)
    given, table, notes = _voted_alone(given, _without_failures(given, source), source)
    if source.sides:
        first, second = (pd.to_numeric(table[side], errors="coerce") for side in source.sides)
        table["score_difference"] = first - second
    read = _with_numbers(table, source, alike)
    votes, unvoted, told = votes_of(read["human_outcome"], read.get(VOTES))
    alone = np.zeros(len(read), dtype=bool)
    if "voted" in table:
        alone = table["voted"].to_numpy() & read["score_difference"].isna().to_numpy()
    faults = [*_faults(table, given, read, source, alone), _share_fault(given, unvoted, source)]
    is_sound = ~np.any([one.wrong for one in faults], axis=0)
    spare = ["file", *source.sides, VOTES, "voted", *(name for name in _TEXTS if name in read)]
    sound = (read if is_sound.all() else read[is_sound]).reset_index(drop=True)
    sound = sound.drop(columns=spare, errors="ignore")
    is_named = "battle_id" in sound or COUNT in sound
    n_repeated = 0 if is_named else int(sound.drop(columns="row").duplicated().sum())
    if COUNT not in sound and source.score != "human_outcome":
        joined = join_rows(sound, votes[is_sound], alone[is_sound])
        sound, notes = joined.battles, [*told, *joined.notes]
        faults += _joint_faults(joined.aside, np.flatnonzero(is_sound), len(table))
    is_kept, quarantine = _quarantined(table, faults, source, alike)
    plain = _plain_text(source.score, read["score_difference"][is_kept], table)
    codes = "; ".join(filter(None, (source.stated or USUAL, plain)))
    kept = sound.drop(columns="row").reset_index(drop=True)
    scored = alike.spread(kept) if alike and len(kept) else _completed(kept)
    n_rows = n_battles_of(table)
    told_of = (chosen, scored, quarantine, 0, n_rows, n_repeated, codes, plain, tuple(notes))
    return JudgedBattles(*told_of)


def _voted_alone(
    given: pd.DataFrame, table: pd.DataFrame, source: _Source
) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Return rows as given and read, of votes alone those that somebody voted on, and a note."""
    unvoted = table["human_outcome"].isna()
    if source.score != "human_outcome" or not unvoted.any():
        return given, table, []
    n_unvoted = n_battles_of(table[unvoted])
    if unvoted.all():
        column = source.columns.get(source.vote, source.vote)
        raise ValueError(
            f"{source.path}: column {column} holds no vote in any of {n_unvoted:,} rows; name the "
            "column of people's votes"
        )
    note = f"{n_unvoted:,} rows without a vote (blank, or stated as missing) are left out"
    kept = (one[~unvoted].reset_index(drop=True) for one in (given, table))
    return *kept, [note]


def _with_votes(table: pd.DataFrame, source: _Source) -> pd.DataFrame:
    """Return rows with people's votes in ``human_outcome``, empty where the source has none."""
    table = _with_voters(table.rename(columns={source.vote: "human_outcome"}), source)
    return table if "human_outcome" in table else table.assign(human_outcome=None)


def _with_numbers(table: pd.DataFrame, source: _Source, alike: CountedRows | None) -> pd.DataFrame:
    """Return rows whose votes, score differences and outcomes are numbers, NaN for other texts."""
    numbers = ["score_difference", "human_outcome", *OPTIONAL_NUMBERS, VOTES]
    read = table.assign(
        **{name: pd.to_numeric(table[name], errors="coerce") for name in numbers if name in table}
    )
    _require_scores(read, source, alike)
    read = read.assign(**_outcomes(table, read, source))
    return read.assign(**_scores(table, read, source))


def _quarantined(
    table: pd.DataFrame, faults: Sequence[Fault], source: _Source, alike: CountedRows | None
) -> tuple[NDArray[np.bool_], pd.DataFrame]:
    """Return which rows are kept, and the quarantine of the others with their counts."""
    origin = table if "battle_id" in table else table.assign(battle_id=None)
    is_kept, quarantine = set_aside(origin, faults)
    if COUNT in table:
        quarantine[COUNT] = table.loc[~is_kept, COUNT].to_numpy()
    if alike:
        uncounted = typed(_uncounted(alike, table[is_kept], source), quarantine.dtypes)
        quarantine = pd.concat([quarantine, uncounted], ignore_index=True)
    return is_kept, quarantine


def _with_names(table: pd.DataFrame, source: _Source) -> pd.DataFrame:
    """Return rows whose names of models are texts without blanks around them."""
    _require_names(table, _origin(source))
    coded = [name for name in table if isinstance(table[name].dtype, pd.CategoricalDtype)]
    table = table.astype(dict.fromkeys(coded, "str"))
    table = table.assign(
        # blanks around a name would make one model two
        **{
            name: by_value(table[name], lambda one: one.strip() if isinstance(one, str) else one)
            for name in ("model_a", "model_b")
        },
        **{name: without_blanks(table[name]) for name in (*OUTCOMES, *_TEXTS) if name in table},
    )
    return _with_one_name(table) if source.same_names else table


def _of_judge(table: pd.DataFrame, source: _Source, judge: str | None) -> tuple[pd.DataFrame, str]:
    """Return the rows of one judge, with those of people alone, and its name."""
    if "judge" not in table:
        return table, judge or f"the judge of {_origin(source)}"
    table["judge"] = table["judge"].map(code_of, na_action="ignore")
    by_people = table.get("voted", pd.Series(False, index=table.index))
    _require_judges(table.loc[~by_people, "judge"], _origin(source))
    chosen = _choose(judge, sorted(table["judge"].dropna().unique()), source.path)
    of_it = table["judge"].eq(chosen) | by_people
    return table[of_it].drop(columns="judge").reset_index(drop=True), chosen


def _with_voters(table: pd.DataFrame, source: _Source) -> pd.DataFrame:
    """Return rows with people's votes as votes alone, and a judge's winners as its verdicts.

    Where a column tells them apart, `voted` says which rows are people's.
    """
    if not source.voters:
        return table
    is_judge = are_machines(table["voters"])
    if (unknown := table["voters"].isna()).any():
        raise ValueError(
            f"{source.path}: {source.shown(source.voters)} is empty in {unknown.sum():,} rows, the "
            f"first is row {int(unknown.to_numpy().argmax())}; say of each row who decided"
        )
    winner = table["human_outcome"]
    table = table.assign(
        human_outcome=winner.astype(object).where(~is_judge, None), voted=~is_judge
    )
    if source.score == "judge_winner" and "judge_winner" not in source.columns:
        table["judge_winner"] = winner.astype(object).where(is_judge, None)
    if "judge" in table:
        table["judge"] = table["judge"].where(is_judge)
    return table.drop(columns="voters")


def _with_one_name(table: pd.DataFrame) -> pd.DataFrame:
    """Return rows in which each model has its most frequent spelling, in names of winners too."""
    sides = ("model_a", "model_b")
    named = [table[side].where(table[side].map(lambda one: isinstance(one, str))) for side in sides]
    counts = [battles_by(names.dropna(), table[names.notna()]) for names in named]
    both = counts[0].add(counts[1], fill_value=0)
    joined = joined_names({str(name): int(n) for name, n in both.items()})
    texts = [name for name in (*sides, "human_outcome", *_TEXTS) if name in table]
    return table.assign(
        **{name: by_value(table[name], lambda one: joined.get(one, one)) for name in texts}
    )


def _without_failures(table: pd.DataFrame, source: _Source) -> pd.DataFrame:
    """Return rows without the values that a user calls missing; codes of outcomes stay."""
    if not source.missing.codes:
        return table
    scores = [*source.sides, *ORDERS, "score_difference"]
    found = {
        name: table[name].mask(source.missing.are(table[name])) for name in scores if name in table
    }
    codes = {*map(code_of, ("0", "1", "0.5")), *(parse_codes(source.stated or USUAL))}
    for name in (*OUTCOMES, *_TEXTS):
        if name in table:
            is_code = by_value(table[name], lambda one: code_of(one) in codes)
            wrong = source.missing.are(table[name]) & ~is_code.to_numpy(dtype=bool)
            found[name] = table[name].mask(wrong)
    return table.assign(**found)


def _uncounted(alike: CountedRows, kept: pd.DataFrame, source: _Source) -> pd.DataFrame:
    """Return the quarantine of counted battles whose score a user calls missing, and drop these.

    `kept` has the sound kinds.
    """
    failed = np.flatnonzero(source.missing.are(pd.Series(alike.scores)))
    parts = []
    for place in failed[: len(failed) * bool(alike.scores.any())]:
        number = alike.counts[kept["kind"].to_numpy(), place]
        detail = f"score_difference is {alike.scores[place]:g}, expected {_NO_FAILURE}"
        found = kept[["row", "file"]].assign(reason=_FAILED, detail=detail, **{COUNT: number})
        parts.append(found[number > 0])
        alike.counts[:, place] = 0
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _require_scores(numbers: pd.DataFrame, source: _Source, alike: CountedRows | None) -> None:
    """Raise where scores of a side, or differences, hold a value that looks like a failure."""
    if source.missing.is_all or source.score != "score_difference":
        return
    sides = [*source.sides] if {*source.sides} <= {*numbers} else []
    columns, names = sides or ["score_difference"] * 2, ("model_a", "model_b")
    each = numbers.get(COUNT, pd.Series(1, index=numbers.index))
    given = [pd.to_numeric(numbers[column], errors="coerce") for column in columns]
    of_kind = alike.counts if alike and not sides and alike.scores.any() else None
    if alike and of_kind is not None:
        counts = pd.Series(of_kind.sum(axis=0, dtype="int64"), index=alike.scores)
        counts = counts[~source.missing.are(pd.Series(alike.scores))]
    else:
        parts = [each.groupby(scores).sum() for scores in given[: len(sides) or 1]]
        counts = pd.concat(parts).groupby(level=0).sum()

    def by_model(value: float) -> pd.Series:
        """Return how often a score is met, by model."""
        if alike and of_kind is not None:
            n = [pd.Series(of_kind[:, alike.scores == value].sum(axis=1))] * 2
        else:
            n = [each.where(scores.eq(value), 0) for scores in given]
        parts = [one.groupby(numbers[name]).sum() for one, name in zip(n, names, strict=True)]
        return pd.concat(parts).groupby(level=0).sum()

    shown = [source.shown(column) for column in dict.fromkeys(columns)]
    if source.layout and source.layout.score:
        shown = [source.layout.score]
    require_on_scale(str(source.path), shown, counts, by_model, two_sided=not sides)


def _share_fault(table: pd.DataFrame, wrong: NDArray[np.bool_], source: _Source) -> Fault:
    """Return the fault of shares that are no number of votes."""
    known = f" of {{{VOTES}!r}} votes" if VOTES in table else ""
    sentence = f"{source.shown('human_outcome')} is {{human_outcome!r}}{known}, {{expected}}"
    expected = (
        "and no whole number of them"
        if VOTES in table
        else f"expected 1, 0.5, 0, empty, or a share of votes with their number in {VOTES}"
    )
    return fault(table, wrong, "unknown-outcome", sentence, expected=expected)


def _joint_faults(
    aside: list[tuple[int, str, str]], place: NDArray[np.intp], n_rows: int
) -> Iterator[Fault]:
    """Yield the faults of rows that are no part of a battle, by reason."""
    for reason in dict.fromkeys(reason for _, reason, _ in aside):
        told = sorted((row, detail) for row, why, detail in aside if why == reason)
        wrong = np.zeros(n_rows, dtype=bool)
        wrong[place[[row for row, _ in told]]] = True
        yield Fault(wrong, reason, [detail for _, detail in told])


def _rows(source: _Source, *, counted: bool) -> tuple[pd.DataFrame, CountedRows | None]:
    """Return the rows of a source, or the kinds of rows of a large one."""
    named = (*NEEDED_COLUMNS, source.vote, source.score, *source.sides)
    wanted = dict.fromkeys((*named, *OPTIONAL_NUMBERS, *OPTIONAL_TEXT, VOTES))
    if COUNT in source.columns and not counted:
        raise ValueError(
            f"{source.path} counts its battles (column {source.shown(COUNT)}), which is enough for "
            "judgeline rank without plain ratings, and nothing else; pass them one a row"
        )
    is_counted = COUNT in source.columns
    is_many = _is_many(source, counted=counted)
    if not is_counted:
        _require_no_count(source, counted=counted, is_many=is_many)
    if is_counted or is_many:
        of_each = {*OPTIONAL_TEXT, *_AMOUNTS, VOTES} - {"judge"}
        wanted = {name: None for name in (*wanted, COUNT) if name not in of_each}
    names = [name for name in wanted if name in source.columns]
    if is_counted:
        table = source.take(names)
        return table.assign(**{COUNT: _whole_numbers(table[COUNT], source)}), None
    if not is_many:
        table = source.take(names)
        if source.voters:
            own = source.columns[source.voters]
            table["voters"] = source.read([own], [own])[own]
        return table, None
    alike = _counted_rows(source, names)
    return (alike.kinds, alike) if alike else _rows(source, counted=False)


def _counted_rows(source: _Source, names: list[str]) -> CountedRows | None:
    """Return the kinds of rows of large files; None if few rows are alike and can be read."""
    sides = () if source.missing.codes else source.sides  # a failure of one side is seen there
    if sides:
        several = ("model_a", "model_b", *sides)
        first = {name: first_rows(source.files[0], source.columns[name]) for name in several}
        _require_scores(pd.DataFrame(first), source, None)
    alike = count_rows(source.files, {name: source.columns[name] for name in names}, sides)
    if not alike and (n_rows := n_rows_of(source.files)) > MOST_UNCOUNTED:
        raise ValueError(
            f"{source.path} has {n_rows:,} rows, of which too few are alike to be counted: beyond "
            f"{MOST_UNCOUNTED:,} round the scores, as to 1/12 point, or rank fewer battles"
        )
    return alike


def _require_no_count(source: _Source, *, counted: bool, is_many: bool) -> None:
    """Refuse a column of numbers that is named as a count, where each row would be one battle."""
    folded = {name: re.sub(r"[\s-]+", "_", name.strip()).casefold() for name in source.columns}
    for name in (name for name, small in folded.items() if small in _COUNTS):
        read = first_rows(source.files[0], name) if is_many else source.read([name], [])[name]
        numbers = pd.to_numeric(read, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
        if not _may_count(numbers):
            continue
        row = int((numbers > 1).argmax())
        remedy = (
            f"If rows stand for so many battles, rename it to {COUNT}, or state "
            f"columns={{'{COUNT}': '{name}'}}; if it is something else, drop it"
            if counted
            else "If rows stand for so many battles, write each in a row of its own; drop it"
        )
        raise ArgumentError(
            f"{source.path}: column {name!r} looks like a count of battles ({numbers[row]:g} in "
            f"row {row}), and each row would be rated as one battle. {remedy}",
            "columns",
        )


def _may_count(numbers: NDArray[np.float64]) -> bool:
    """Return whether numbers are whole, not all 0 and 1, and do not number the rows."""
    numbers = numbers[~np.isnan(numbers)]
    if not (np.isfinite(numbers) & (numbers >= 0)).all() or (numbers % 1 > 0).any():
        return False
    is_number = numbers.size > 2 and bool((np.diff(numbers) == 1).all())
    return bool((numbers > 1).any()) and not is_number


def _whole_numbers(count: pd.Series, source: _Source) -> pd.Series:
    """Return numbers of battles; ValueError unless each is whole and positive."""
    numbers = pd.to_numeric(count, errors="coerce").astype(float)
    wrong = ~(numbers.ge(1) & numbers.mod(1).eq(0) & numbers.le(2.0**53))
    if wrong.any():
        row = int(wrong.to_numpy().argmax())
        raise ValueError(
            f"{source.path}: {source.shown(COUNT)} is {count.iloc[row]} in row {row}; expected "
            "how many battles are alike, a whole number from 1 on"
        )
    return numbers.astype("int64")


def _outcomes(table: pd.DataFrame, numbers: pd.DataFrame, source: _Source) -> dict[str, pd.Series]:
    """Return A's share of the win by column, or raise where its codes have another meaning."""
    found = {}
    for name, steps in OUTCOMES.items():
        if name not in table:
            continue
        if source.stated not in (None, USUAL):
            found[name] = outcomes_by_code(table[name], parse_codes(source.stated))
            if found[name].notna().any() or not numbers[name].notna().any():
                require_both_winners(found[name], source.place(name), source.stated)
                continue  # else the codes are another column's, and this one has numbers
        on_scale = (numbers[name] * steps).isin(range(steps + 1))
        found[name] = numbers[name].where(on_scale)
        if name == "human_outcome" and (source.vote == VOTE or not on_scale.any()):
            found[name] = found[name].fillna(outcomes_by_winner(table[name], table))
        may_share = name == source.vote and source.stated is None and COUNT not in table
        if may_share:
            found[name] = found[name].fillna(numbers[name].where(numbers[name].between(0, 1)))
        if source.stated != USUAL:
            is_known = found[name].notna()
            place = source.place(name), _STATE_CODES
            require_known_codes(table[name], is_known, *place, argument="outcomes", rows=table)
    return found


def _scores(table: pd.DataFrame, numbers: pd.DataFrame, source: _Source) -> dict[str, pd.Series]:
    """Return score differences of plain verdicts, and the outcomes that their texts stand for."""
    if source.score == "score_difference":
        return {}
    if source.score in OUTCOMES:
        return {"score_difference": 2 * numbers[source.score].astype(float) - 1}
    texts, place = table[source.score], source.place(source.score)
    score = scores_of_verdicts(texts)
    if source.score == "judge_winner":
        score = score.fillna(2 * outcomes_by_winner(texts, table) - 1)
    if source.stated is not None:
        outcome = outcomes_by_code(texts, parse_codes(source.stated))
        if outcome.notna().any():
            require_both_winners(outcome, place, source.stated)
        score = (2 * outcome - 1).fillna(score)
    known = score.notna()
    unknown = texts.where(known | texts.map(code_of).str.casefold().isin(CODES_IN_USE))
    if source.stated is None or not source.lenient:
        remedy = _STATE_VERDICTS
        if failed := failed_texts(texts, known):
            remedy = f"{_STATE_FAILED} {stated_text(failed)}. {remedy}"
        checked = unknown if source.lenient else texts
        require_known_codes(checked, known, place, remedy, argument="outcomes", rows=table)
    return {"score_difference": score, "judge_outcome": (np.sign(score) + 1) / 2}


def _require_names(table: pd.DataFrame, place: str) -> None:
    """Raise ValueError where a list or an object stands for the name of a model."""
    for name in ("model_a", "model_b"):
        if table[name].dtype != object:
            continue
        nested = np.flatnonzero(~table[name].map(pd.api.types.is_hashable).astype(bool))
        if nested.size:
            raise ValueError(
                f"{place}: {name} is {table[name].iloc[nested[0]]!r} in row {nested[0]}; "
                "expected the name of a model alone"
            )


def _require_judges(judge: pd.Series, place: str) -> None:
    unnamed = np.flatnonzero(judge.isna())
    if unnamed.size:
        raise ValueError(
            f"{place}: judge is empty in {unnamed.size:,} of {len(judge):,} rows, the first is row "
            f"{unnamed[0]}; name the judge of each row, or leave out the column"
        )


def _plain_text(column: str, scores: pd.Series, table: pd.DataFrame) -> str:
    """Return the sentence on verdicts that stand for scores; empty where there are scores."""
    if column in ("score_difference", "human_outcome"):
        return ""
    levels = ", and a clear win (A>>B) as 2" if scores.abs().gt(1).any() else ""
    ties = table.loc[scores.index[scores.eq(0)], column].astype(str)
    c = ", and C as a tie" if ties.str.strip(" []").str.upper().eq("C").any() else ""
    return f"the file holds {PLAIN}{levels}{c}"


def _read_table(table: pd.DataFrame, columns: list[str], _texts: list[str]) -> pd.DataFrame:
    """Return columns of a table; those of nullable types as objects, whose nulls are None."""
    given = at_paths(table, columns).reset_index(drop=True)
    nullable = [name for name in columns if getattr(given[name].dtype, "na_value", 0) is pd.NA]
    objects = given[nullable].astype(object).where(given[nullable].notna(), None)
    return given.assign(**{**objects, "file": str(_GIVEN), "row": range(len(table))})


def _faults(
    table: pd.DataFrame,
    given: pd.DataFrame,
    numbers: pd.DataFrame,
    source: _Source,
    alone: NDArray[np.bool_],
) -> Iterator[Fault]:
    """Yield the rules that rows break; the first of a row counts.

    `given` has the values that a user calls missing, and rows that are votes `alone` no verdict.
    """
    for side in ("model_a", "model_b"):
        nameless = by_value(table[side], lambda name: not (isinstance(name, str) and name))
        yield fault(table, nameless, "missing-model", f"{side} is {{{side}!r}}, expected a name")
    yield self_battles(table)
    wrong = ~np.isfinite(numbers["score_difference"].astype(float)) & ~alone
    reason = "nan-score" if source.score == "score_difference" else "unknown-outcome"
    known = {"score_difference": "a number", "judge_outcome": source.stated or _QUARTERS}
    expected = known.get(source.score, EXPECTED_VERDICTS)
    shown = _sentence(*(source.sides or [source.score]))
    columns = source.sides or [source.score]
    failed = np.any([given[one].notna() & table[one].isna() for one in columns if one in given], 0)
    yield fault(given, failed & wrong, _FAILED, shown, expected=_NO_FAILURE)
    yield fault(table, wrong, reason, shown, expected=expected)
    for name, steps in OUTCOMES.items():
        if name in table:
            wrong = numbers[name].isna() & (table[name].notna() | (name == "judge_outcome"))
            wrong &= ~alone | (name == "human_outcome")
            scale = "1, 0.5, 0 or empty" if steps == 2 else _QUARTERS
            if name == "human_outcome" and source.vote == VOTE:
                scale = f"{EXPECTED_WINNERS}, or empty"
            sentence = f"{source.shown(name)} is {{{name}!r}}, expected {{expected}}"
            yield fault(table, wrong, "unknown-outcome", sentence, expected=source.stated or scale)
    for name in (*ORDERS, *LENGTHS):
        if name in table:
            wrong = table[name].notna() & numbers[name].isna()
            yield fault(table, wrong, "no-number", _sentence(name), expected="a number or nothing")


def _sentence(*columns: str) -> str:
    return f"{', '.join(f'{name} is {{{name}!r}}' for name in columns)}, expected {{expected}}"


def _completed(kept: pd.DataFrame) -> pd.DataFrame:
    """Return battles with every column of scored battles, null where the file has none."""
    recorded = kept.get("recorded_outcome", kept.get("judge_outcome", np.nan))
    outcome = sign_outcome(kept["score_difference"].to_numpy(dtype=float))
    if {*ORDERS} <= set(kept):  # a tie where the two orders contradict each other
        orders = kept[list(ORDERS)].to_numpy(dtype=float)
        both = ~np.isnan(orders).any(axis=1)
        outcome[both] = hard_outcome(orders[both, 0], orders[both, 1])
    table = kept.assign(recorded_outcome=recorded, judge_outcome=outcome)
    if COUNT in kept:
        return table
    if "battle_id" not in kept:
        table["battle_id"] = "row-" + pd.Series(range(len(kept))).astype("str").str.zfill(6)
    for name in OPTIONAL_NUMBERS:
        table[name] = table[name].astype(float) if name in table else np.nan
    nothing = pd.Series(None, index=table.index, dtype=str)
    unknown = [name for name in OPTIONAL_TEXT[:-1] if name not in table]  # the judge was chosen
    return table.assign(**dict.fromkeys(unknown, nothing))
