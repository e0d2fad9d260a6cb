"""Judged battles of one file or table, in a layout told by its columns.

Released Soft-Elo annotations go through the corpus reader of that name; our own battles, with
scores or plain verdicts, are read here. Rows that no estimator may see are set aside with a
reason, never repaired.
"""

import difflib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judgeline.io.files import SUFFIXES, file_columns, require_rectangular, unreadable_text
from judgeline.io.outcome_codes import (
    EXPECTED_VERDICTS,
    PLAIN,
    STATED_AS,
    USUAL,
    outcomes_by_code,
    parse_codes,
    require_both_winners,
    require_known_codes,
    scores_of_verdicts,
    without_blanks,
)
from judgeline.io.scoring import score_battles
from judgeline.io.softelo import read_softelo

NEEDED_COLUMNS = ("model_a", "model_b", "score_difference", "human_outcome")
_TEXTS = ("verdict", "judge_verdict")
PLAIN_COLUMNS = ("judge_outcome", *_TEXTS)
"""Columns of plain verdicts, which stand for scores in a file that has none."""
ANNOTATION_COLUMNS = ("model_a", "model_b", "scores_a", "scores_b", "human_pref")
OPTIONAL_NUMBERS = (
    "judge_outcome",
    "recorded_outcome",
    "difference_ab",
    "difference_ba",
    "length_a",
    "length_b",
)
OPTIONAL_TEXT = ("battle_id", "question_id", "cluster_id", "language", "judge")
OUTCOMES = {"human_outcome": 2, "judge_outcome": 4, "recorded_outcome": 4}
"""Columns of outcomes, by the steps of A's share of the win between 0 and 1."""
_STATE_CODES = (
    f"State the codes with --outcomes {{codes}} ({STATED_AS}), or convert the column; "
    f"--outcomes {USUAL} sets rows of other codes aside"
)
_STATE_VERDICTS = (
    f"Plain verdicts are {EXPECTED_VERDICTS}. Convert the column, or state the codes of all "
    f"outcomes with --outcomes {{codes}} ({STATED_AS})"
)
_QUARTERS = "a multiple of 0.25 in [0, 1]"
_GIVEN = Path("table")  # how messages name a table that came as one
_MISSING = ("", "nan", "NaN", "NA", "null", "None")


class JudgedBattles(NamedTuple):
    """Scored battles of one judge, rows set aside, and how many battles lack usable scores.

    `n_repeated` rows equal an earlier one in the columns that were read and cannot be told from
    it; they count, since two alike battles are possible. `outcomes` are the codes as stated, and
    `plain` the sentence on verdicts that stand for scores, which follows the codes.
    """

    judge: str
    scored: pd.DataFrame
    quarantine: pd.DataFrame
    n_unscored: int
    n_rows: int
    n_repeated: int = 0
    outcomes: str = USUAL
    plain: str = ""


def read_judged_battles(
    source: Path | pd.DataFrame, *, judge: str | None = None, outcomes: str | None = None
) -> JudgedBattles:
    """Return the scored battles of a file or a table.

    Parameters
    ----------
    source : Path or DataFrame
        Soft-Elo annotations (CSV), or battles with scores or plain verdicts as CSV, Parquet,
        JSON lines or a table.
    judge : str, optional
        Which judge to rank by, where a file holds several.
    outcomes : str, optional
        Codes of outcomes, such as ``"1/-1/0"``: A's, B's, then any of ties.

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
    if isinstance(source, pd.DataFrame):
        path, columns, read_table = _GIVEN, list(source.columns), partial(_given, source)
    else:
        _require_file(source)
        path, columns, read_table = source, file_columns(source), partial(_table, source)
    if set(ANNOTATION_COLUMNS) <= set(columns):
        _refuse_stated(path, outcomes)
        read = _annotations(path, judge)
    else:
        read = _scored(path, columns, read_table, judge, outcomes)
    if read.scored.empty:
        raise ValueError(_nothing_scored(path, read))
    return read


def _require_file(path: Path) -> None:
    if path.is_file():
        return
    if path.exists():
        raise ValueError(f"{path} is not a file; name one CSV, Parquet or JSON lines file")
    near = difflib.get_close_matches(path.name, _neighbours(path), n=1)
    hint = f"did you mean {path.with_name(near[0])}?" if near else "check the path"
    raise ValueError(f"no file at {path}; {hint}")


def _neighbours(path: Path) -> list[str]:
    return [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []


def _score_column(path: Path, columns: list[str]) -> str:
    """Return the column that score differences come from: their own, or that of plain verdicts."""
    missing = set(NEEDED_COLUMNS) - set(columns)
    if not missing:
        return "score_difference"
    plain = [name for name in PLAIN_COLUMNS if name in columns]
    if missing != {"score_difference"} or not plain or _has_scores(columns):
        raise ValueError(_wrong_columns(path, columns))
    if len(plain) > 1:
        raise ValueError(
            f"{path} has no score_difference and {len(plain)} columns of verdicts: "
            f"{', '.join(plain)}; leave the one to rate by, and drop or rename the other"
        )
    return plain[0]


def _has_scores(columns: list[str]) -> bool:
    """Return whether a file without score_difference holds scores all the same."""
    alike = [name for name in columns if "score" in name]
    misspelt = difflib.get_close_matches("score_difference", alike, n=1)
    return bool(misspelt or {"difference_ab", "difference_ba"} & set(columns))


def _wrong_columns(path: Path, columns: list[str]) -> str:
    missing = [name for name in NEEDED_COLUMNS if name not in columns]
    hints = [
        f"is {near[0]!r} meant as {name!r}?"
        for name in missing
        if (near := difflib.get_close_matches(name, [c for c in columns if c not in missing], n=1))
        and near[0] not in NEEDED_COLUMNS
    ]
    return (
        f"{path} has the columns {', '.join(columns[:30]) or '(none)'}; expected scored battles "
        f"({', '.join(NEEDED_COLUMNS)}, and judge_outcome if there is one), plain verdicts "
        f"({' or '.join(PLAIN_COLUMNS)}, without any score) or Soft-Elo annotations "
        f"({', '.join(ANNOTATION_COLUMNS)}). Rename or add "
        f"{', '.join(missing)}{'; ' if hints else ''}{' '.join(hints)}"
    )


def _nothing_scored(path: Path, read: JudgedBattles) -> str:
    if read.quarantine.empty and not read.n_unscored:
        return f"{path} holds a header and no rows; write the battles into it again"
    reasons = read.quarantine["reason"].value_counts()
    told = [f"{count} {reason}" for reason, count in reasons.items()]
    example = f" For instance: {read.quarantine['detail'].iloc[0]}." if told else ""
    return (
        f"no row of {path} can be rated: {', '.join(told) or 'none has usable scores'}.{example} "
        "Outcomes are A's share of the win: 1, 0.5, 0, or empty for no vote."
    )


def _refuse_stated(path: Path, outcomes: str | None) -> None:
    if outcomes is not None:
        raise ValueError(
            f"{path} holds Soft-Elo annotations, whose codes are fixed: 0 where A wins, 0.5, 1. "
            "Leave out --outcomes, and convert human_pref and judge_pref if they have others"
        )


def _annotations(path: Path, judge: str | None) -> JudgedBattles:
    if path is _GIVEN:
        raise ValueError(
            "the table holds Soft-Elo annotations, which are read from their file: name its path"
        )
    battles, quarantine, verdicts = read_softelo([path])
    chosen = _choose(judge, sorted(verdicts["judge"].unique()), path)
    answers = verdicts[verdicts["judge"].eq(chosen)]
    judged = battles[battles["battle_id"].isin(answers["battle_id"])]
    scored = score_battles(judged, answers)
    last = int(quarantine["row"].max()) if len(quarantine) else -1
    n_rows = max(len(battles), last + 1)
    return JudgedBattles(chosen, scored, quarantine, len(judged) - len(scored), n_rows)


def _choose(judge: str | None, known: list[str], path: Path) -> str:
    if judge is None and len(known) <= 1:
        return known[0] if known else "judge"
    if judge in known:
        return str(judge)
    asked = f"no verdict of judge {judge!r}" if judge else f"verdicts of {len(known)} judges"
    raise ValueError(f"{path} holds {asked}; choose one with --judge: {', '.join(known)}")


def _scored(
    path: Path,
    columns: list[str],
    read_table: Callable[[list[str]], pd.DataFrame],
    judge: str | None,
    outcomes: str | None,
) -> JudgedBattles:
    source = _score_column(path, columns)
    wanted = dict.fromkeys([*NEEDED_COLUMNS, source, *OPTIONAL_NUMBERS, *OPTIONAL_TEXT])
    table = _plain_texts(read_table([name for name in wanted if name in columns]))
    table = table.assign(
        **{name: _stripped(table[name]) for name in ("model_a", "model_b")},
        **{name: without_blanks(table[name]) for name in (*OUTCOMES, *_TEXTS) if name in table},
    )
    chosen = judge or path.stem
    if "judge" in table:
        chosen = _choose(judge, sorted(table["judge"].dropna().unique()), path)
        table = table[table["judge"].eq(chosen)].drop(columns="judge").reset_index(drop=True)
    numbers = ["score_difference", "human_outcome", *OPTIONAL_NUMBERS]
    as_numbers = table.assign(
        **{name: pd.to_numeric(table[name], errors="coerce") for name in numbers if name in table}
    )
    as_numbers = as_numbers.assign(**_outcomes(table, as_numbers, path, outcomes))
    as_numbers = as_numbers.assign(**_scores_of(source, table, as_numbers, path, outcomes))
    quarantine = _set_aside(table, as_numbers, path.name, outcomes, source)
    kept = as_numbers.drop(index=quarantine["row"]).reset_index(drop=True)
    plain = _said_of(source, as_numbers.drop(index=quarantine["row"])["score_difference"], table)
    n_repeated = 0 if "battle_id" in kept else int(kept.duplicated().sum())
    completed = _completed(kept.drop(columns=[name for name in _TEXTS if name in kept]))
    codes = "; ".join(filter(None, (outcomes or USUAL, plain)))
    return JudgedBattles(chosen, completed, quarantine, 0, len(table), n_repeated, codes, plain)


def _outcomes(
    table: pd.DataFrame, numbers: pd.DataFrame, path: Path, stated: str | None
) -> dict[str, pd.Series]:
    """Return A's share of the win by column, or raise where its codes have another meaning."""
    found = {}
    for name in OUTCOMES:
        if name not in table:
            continue
        place = f"{path}: column {name}"
        if stated in (None, USUAL):
            found[name] = numbers[name].where(_on_scale(numbers[name], OUTCOMES[name]))
        else:
            found[name] = outcomes_by_code(table[name], parse_codes(stated))
            require_both_winners(found[name], place, stated)
        if stated is None:
            require_known_codes(table[name], found[name].notna(), place, _STATE_CODES)
    return found


def _scores_of(
    source: str, table: pd.DataFrame, numbers: pd.DataFrame, path: Path, stated: str | None
) -> dict[str, pd.Series]:
    """Return score differences of plain verdicts, and the outcomes that their texts stand for."""
    if source == "score_difference":
        return {}
    if source == "judge_outcome":
        return {"score_difference": 2 * numbers["judge_outcome"] - 1}
    score = scores_of_verdicts(table[source])
    place = f"{path}: column {source}"
    if stated is not None:
        outcome = outcomes_by_code(table[source], parse_codes(stated))
        if outcome.notna().any():
            require_both_winners(outcome, place, stated)
        score = (2 * outcome - 1).fillna(score)
    require_known_codes(table[source], score.notna(), place, _STATE_VERDICTS)
    return {"score_difference": score, "judge_outcome": (np.sign(score) + 1) / 2}


def _said_of(source: str, scores: pd.Series, table: pd.DataFrame) -> str:
    if source == "score_difference":
        return ""
    levels = ", and a clear win (A>>B) as 2" if scores.abs().gt(1).any() else ""
    ties = table.loc[scores.index[scores.eq(0)], source].astype(str)
    c = ", and C as a tie" if ties.str.strip(" []").str.upper().eq("C").any() else ""
    return f"the file holds {PLAIN}{levels}{c}"


def _stripped(names: pd.Series) -> pd.Series:
    """Return names without the blanks around them, which would make one model two."""
    return names.map(lambda name: name.strip() if isinstance(name, str) else name)


def _table(path: Path, columns: list[str]) -> pd.DataFrame:
    kind = SUFFIXES[path.suffix.lower()]
    read = {"csv": _csv, "parquet": pd.read_parquet, "jsonl": _json_lines}[kind]
    try:
        return read(path, columns=columns)
    except (ValueError, OSError) as error:
        raise ValueError(unreadable_text(path, kind, error)) from error


def _given(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    return table[columns].reset_index(drop=True)


def _plain_texts(table: pd.DataFrame) -> pd.DataFrame:
    names = [name for name in table if isinstance(table[name].dtype, pd.CategoricalDtype)]
    return table.astype(dict.fromkeys(names, "str"))


def _csv(path: Path, columns: list[str]) -> pd.DataFrame:
    require_rectangular(path)
    text = {name: str for name in columns if name in ("model_a", "model_b", *OPTIONAL_TEXT)}
    missing = {name: [""] if name in text else list(_MISSING) for name in columns}
    return pd.read_csv(
        path,
        usecols=columns,
        dtype=text,
        keep_default_na=False,
        na_values=missing,
        encoding="utf-8-sig",
    )


def _json_lines(path: Path, columns: list[str]) -> pd.DataFrame:
    table = pd.read_json(path, lines=True, dtype=False, encoding="utf-8-sig", precise_float=True)
    return table[columns]


def _set_aside(
    table: pd.DataFrame, numbers: pd.DataFrame, file: str, outcomes: str | None, source: str
) -> pd.DataFrame:
    """Return one row per reason to leave a row out; the first reason of a row counts."""
    found = pd.concat(
        [
            pd.DataFrame({"row": np.flatnonzero(wrong), "reason": reason, "detail": detail})
            for wrong, reason, detail in _faults(table, numbers, outcomes, source)
        ],
        ignore_index=True,
    )
    found = found.drop_duplicates("row").sort_values("row", ignore_index=True)
    ids = table["battle_id"] if "battle_id" in table else pd.Series(None, table.index, dtype=str)
    return pd.DataFrame(
        {
            "row": found["row"].astype("int64"),
            "file": file,
            "battle_id": ids.iloc[found["row"]].to_numpy(),
            "reason": found["reason"],
            "detail": found["detail"],
        }
    )


def _faults(
    table: pd.DataFrame, numbers: pd.DataFrame, stated: str | None, source: str
) -> Iterator[tuple[pd.Series, str, list[str]]]:
    """Yield which rows are wrong, the reason and a sentence for each wrong row."""
    for side in ("model_a", "model_b"):
        names = table[side]
        wrong = ~names.map(lambda name: isinstance(name, str) and bool(name)).astype(bool)
        yield wrong, "missing-model", _told(names[wrong], f"{side} is {{}}, expected a name")
    same = table["model_a"].eq(table["model_b"])
    yield same, "self-battle", _told(table["model_a"][same], "{} is compared with itself")
    yield _without_score(table, numbers, stated, source)
    for name, parts in OUTCOMES.items():
        if name in table:
            wrong = numbers[name].isna()
            if name != "judge_outcome":
                wrong &= table[name].notna()
            scale = "1, 0.5, 0 or empty" if parts == 2 else _QUARTERS
            told = _told(table[name][wrong], f"{name} is {{}}, expected {stated or scale}")
            yield wrong, "unknown-outcome", told
    for name in ("difference_ab", "difference_ba", "length_a", "length_b"):
        if name in table:
            wrong = table[name].notna() & numbers[name].isna()
            told = _told(table[name][wrong], f"{name} is {{}}, expected a number or nothing")
            yield wrong, "no-number", told
    if "battle_id" in table:
        again = table["battle_id"].notna() & table["battle_id"].duplicated()
        yield again, "duplicate-battle", _told(table["battle_id"][again], "battle {} came before")


def _without_score(
    table: pd.DataFrame, numbers: pd.DataFrame, stated: str | None, source: str
) -> tuple[pd.Series, str, list[str]]:
    wrong = ~np.isfinite(numbers["score_difference"].astype(float))
    reason = "nan-score" if source == "score_difference" else "unknown-outcome"
    known = {"score_difference": "a number", "judge_outcome": stated or _QUARTERS}
    expected = known.get(source, EXPECTED_VERDICTS)
    return wrong, reason, _told(table[source][wrong], f"{source} is {{}}, expected {expected}")


def _on_scale(number: pd.Series, parts: int) -> "pd.Series[bool]":
    return (number * parts).isin(range(parts + 1))


def _told(values: pd.Series, sentence: str) -> list[str]:
    return [sentence.format(repr(value)) for value in values.tolist()]


def _completed(kept: pd.DataFrame) -> pd.DataFrame:
    """Return battles with every column of scored battles, null where the file has none."""
    recorded = kept.get("recorded_outcome", kept.get("judge_outcome", np.nan))
    table = kept.assign(recorded_outcome=recorded, judge_outcome=_derived_outcome(kept))
    if "battle_id" not in kept:
        table["battle_id"] = [f"row-{row:06d}" for row in range(len(kept))]
    for name in OPTIONAL_NUMBERS:
        table[name] = table[name].astype(float) if name in table else np.nan
    for name in OPTIONAL_TEXT[:-1]:  # the judge has been chosen
        if name not in table:
            table[name] = pd.Series(None, index=table.index, dtype=str)
    return table


def _derived_outcome(kept: pd.DataFrame) -> "np.ndarray[Any, Any]":
    """Return what the scores say: a tie where the two orders contradict each other."""
    from judgeline.verdict import hard_outcome, sign_outcome

    outcome = sign_outcome(kept["score_difference"].to_numpy(dtype=float))
    if {"difference_ab", "difference_ba"} <= set(kept):
        orders = kept[["difference_ab", "difference_ba"]].to_numpy(dtype=float)
        both = ~np.isnan(orders).any(axis=1)
        outcome[both] = hard_outcome(orders[both, 0], orders[both, 1])
    return outcome
