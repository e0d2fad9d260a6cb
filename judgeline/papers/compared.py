"""Comparisons with references and direct scores of a user's own judges, read and rated.

Ratings are those of the paper: Jeffreys-Beta throughout, a prompt counted once per judge.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from judgeline.elo import ELO_PER_LOGIT
from judgeline.io import SUFFIXES, file_columns
from judgeline.io.formats import read_columns, unpacked
from judgeline.papers.tables import plain_name, printed_cells
from judgeline.reference import abstain, anchored_elo
from judgeline.reliability import STRONG_JUDGE, icc_average

NEEDED = {
    "preference": ("question_id", "model", "reference_model", "judge", "preference"),
    "score": ("question_id", "model", "judge", "score"),
}
"""Columns of comparisons and of direct scores, by the column of their numbers."""
PAIR = ["model", "reference_model"]
OPTIONAL = ("run", "turn", "domain", "category")
EXPECTED = {
    "preference": (0, 1, "a number from 0 to 1, the model's share of the win, or nothing"),
    "score": (1, 10, "a number from 1 to 10, or nothing"),
}
MAIN, N_PROMPTS = "MT-Bench", 160
MAX_SPREAD = 0.5
"""Largest standard deviation over runs of a prompt that counts: preferences, and scores of 1-10."""


def known_judges() -> dict[str, str]:
    """Return the names of the paper's judges, three of them targets, by their plain names."""
    cells = printed_cells("reference_anchored")
    rows = cells.loc[cells["item"].eq("reference_anchored.table8"), "row"]
    return {plain_name(name): name for name in rows.unique() if name != "Total"}


@dataclass(frozen=True, eq=False)
class Compared:
    """Comparisons and direct scores, a judgment a row: domain, judge, run, prompt, model, number.

    Comparisons have a `reference_model`; a category is null where the file has none.
    """

    comparisons: pd.DataFrame
    scores: pd.DataFrame

    @cached_property
    def main(self) -> str:
        """Return the domain in the place of MT-Bench: itself, else the one with most judgments."""
        counts = pd.concat([self.comparisons["domain"], self.scores["domain"]]).value_counts()
        return MAIN if MAIN in counts or counts.empty else str(counts.index[0])

    @cached_property
    def compared(self) -> pd.DataFrame:
        """Return the comparisons of the main domain."""
        return self.comparisons[self.comparisons["domain"].eq(self.main)]

    @cached_property
    def scored(self) -> pd.DataFrame:
        """Return the direct scores of the main domain."""
        return self.scores[self.scores["domain"].eq(self.main)]

    @cached_property
    def by_score(self) -> pd.DataFrame:
        """Return the main domain's comparisons that direct scores make: the higher score wins."""
        of_references = self.scored["model"].isin(self.compared["reference_model"].unique())
        other = self.scored[of_references].rename(columns={"model": "reference_model"})
        keys = ["domain", "judge", "run", "prompt"]
        pairs = self.scored.merge(other, on=keys, suffixes=("", "_reference"))
        sign = np.sign(pairs["score"] - pairs["score_reference"])
        return others(pairs.assign(preference=(sign + 1) / 2))

    @cached_property
    def reliability(self) -> pd.DataFrame:
        """Return each judge's ICC(3,k), `icc`, of direct scores, else of preferences; `n_runs`."""
        table, value = (self.scored, "score") if len(self.scored) else (self.compared, "preference")
        keys, found = [*table.columns.intersection(PAIR), "prompt"], {}
        for judge, own in table.groupby("judge"):
            panel = own.pivot_table(index=keys, columns="run", values=value).dropna()
            try:
                found[judge] = icc_average(panel), panel.shape[1]
            except ValueError:  # one run, one prompt, or prompts that are all alike
                found[judge] = np.nan, panel.shape[1]
        return pd.DataFrame.from_dict(found, orient="index", columns=["icc", "n_runs"])

    @cached_property
    def strong(self) -> list[str]:
        """Return the judges whose reliability is that of a strong judge."""
        return list(self.reliability.index[self.reliability["icc"] >= STRONG_JUDGE])

    @cached_property
    def apart(self) -> str:
        """Return how the judges and prompts differ from the paper's; empty if they do not."""
        judges = {*self.comparisons["judge"], *self.scores["judge"]}
        known = len(judges & {*known_judges().values()})
        n_prompts = pd.concat([self.compared["prompt"], self.scored["prompt"]]).nunique()
        if (len(judges), known, n_prompts) == (20, 20, N_PROMPTS):
            return ""
        return f"over {len(judges)} judges, {known} of the paper's 20, and {n_prompts} prompts"


def others(table: pd.DataFrame) -> pd.DataFrame:
    """Return comparisons without those of the reference with itself."""
    return table[table["model"].ne(table["reference_model"])]


def rated(table: pd.DataFrame, *by: str) -> pd.DataFrame:
    """Return each judge's win share of each model over each reference: p, gap and their errors.

    A prompt's preference is the mean over its runs. `by` divides the prompts: domain, category.
    """
    keys = [*by, "judge", *PAIR]
    share = table.groupby([*keys, "prompt"])["preference"].mean()
    # Rounded, so that equal shares tie whatever the order of their sums.
    wins, losses = (side.groupby(level=keys).sum().round(9) for side in (share, 1 - share))
    names = ("p", "se_p", "gap", "se_elo_gap", "n_prompts")
    if wins.empty:
        return pd.DataFrame(columns=[*keys, *names])
    elo = anchored_elo(wins, np.zeros(len(wins)), losses)
    error = elo.std_error * elo.win_share * (1 - elo.win_share) / ELO_PER_LOGIT
    columns = (elo.win_share, error, elo.gap, elo.std_error, elo.n_prompts)
    return wins.index.to_frame(index=False).assign(**dict(zip(names, columns, strict=True)))


def repeated(table: pd.DataFrame) -> pd.DataFrame:
    """Return the judgments of prompts that have every run of a judge of several."""
    keys = ["judge", *table.columns.intersection(PAIR), "prompt"]
    n_runs = table.groupby("judge")["run"].transform("nunique")
    return table[(n_runs > 1) & table.groupby(keys)["run"].transform("size").eq(n_runs)]


def trusted(table: pd.DataFrame, value: str = "preference") -> pd.DataFrame:
    """Return the repeated judgments of prompts on which a judge's runs agree."""
    low, high, _ = EXPECTED[value]
    keys = ["judge", *table.columns.intersection(PAIR)]
    parts = [table[:0]]
    for _, own in table.groupby(keys):
        panel = own.pivot_table(index="prompt", columns="run", values=value).dropna()
        unit = (panel.to_numpy()[None] - low) / (high - low)
        try:
            kept = abstain(unit, max_spread=MAX_SPREAD / (high - low)).kept[0]
        except ValueError:  # it keeps no prompt: there is nothing to rate
            continue
        parts.append(own[own["prompt"].isin(panel.index[kept])])
    return pd.concat(parts)


# ------------------------------------------------------------------ reading


def read(data: Path | None, say: Callable[[str], None]) -> Compared:
    """Return the comparisons and scores of all tables in a folder that have their columns."""
    found = defaultdict(list)
    for path, value in [] if data is None else _files(data):
        say(f"reading {path.name}")
        found[value].append(_table(path, value))
    if data is not None and not found:
        wanted = " nor ".join(", ".join(columns) for columns in NEEDED.values())
        raise ValueError(f"{data} holds no table with the columns {wanted}; see docs/papers.md")
    return Compared(*(_joined(found[value], value) for value in NEEDED))


def _files(data: Path) -> Iterator[tuple[Path, str]]:
    if not data.is_dir():
        raise ValueError(f"{data} is no folder; name the one with comparisons or scores by --data")
    for path in sorted(data.rglob("*")):
        if path.is_file() and unpacked(path).suffix.lower() in SUFFIXES:
            columns = file_columns(path)
            if {"preference", "reference_model"} & {*columns}:
                yield path, "preference"
            elif "score" in columns:
                yield path, "score"


def _table(path: Path, value: str) -> pd.DataFrame:
    columns, found = NEEDED[value], file_columns(path)
    if missing := [name for name in columns if name not in found]:
        raise ValueError(
            f"{path} lacks {', '.join(missing)} beside {', '.join(found[:20])}; add the column, or "
            f"rename yours: {', '.join(columns)}"
        )
    names = [name for name in (*columns[:-1], *OPTIONAL) if name in found]
    table = read_columns(path, [*names, value], texts=names)
    low, high, expected = EXPECTED[value]
    numbers = pd.to_numeric(table[value], errors="coerce")
    wrong = {
        value: table[value].notna() & ~numbers.between(low, high),
        **{name: table[name].isna() for name in columns[:-1]},
    }
    for name, rows in wrong.items():
        if rows.any():
            at = int(rows.to_numpy().argmax())
            wanted = expected if name == value else "a name"
            raise ValueError(
                f"{path}: {name} is {table[name].iloc[at]} in row {at + 1}; expected {wanted}: "
                "correct the row or leave it out"
            )
    texts = table[names].reindex(columns=[*columns[:-1], *OPTIONAL]).astype("str")
    texts = texts.fillna({"run": "0", "domain": path.name.partition(".")[0]})
    prompt = texts["question_id"] + ("/" + texts.pop("turn")).fillna("")
    table = texts.assign(prompt=prompt, file=path.name, **{value: numbers})
    return table.dropna(subset=value)


def _joined(tables: list[pd.DataFrame], value: str) -> pd.DataFrame:
    columns = [*NEEDED[value][1:], "run", "domain", "category", "prompt"]
    if not tables:
        return pd.DataFrame(columns=columns).astype({value: float})
    table, known = pd.concat(tables, ignore_index=True)[[*columns, "file"]], known_judges()
    for name in columns[: columns.index(value)]:
        own = {one: known.get(plain_name(one), one) for one in table[name].unique()}
        table[name] = table[name].map(own)
    keys = [name for name in columns if name not in (value, "category")]
    if (again := table.duplicated(keys)).any():
        twice = table[again].iloc[0]
        raise ValueError(
            f"{twice['file']} has a {value} again that is there already: "
            f"{', '.join(f'{name} {twice[name]}' for name in keys)}; number repeated judgments in "
            "a column run"
        )
    return table.drop(columns="file")
