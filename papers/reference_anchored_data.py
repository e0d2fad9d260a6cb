"""Comparisons with references and direct scores of a user's own judges, read and rated.

Ratings are those of the paper: Jeffreys-Beta throughout, a prompt counted once per judge.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from judgeline.elo import ELO_PER_LOGIT
from judgeline.reference import abstain, anchored_elo
from judgeline.reliability import STRONG_JUDGE, icc_average
from papers.files import (
    NAME,
    Column,
    Columns,
    Say,
    names_of_files,
    read_tables,
    require_once,
    telling_files,
    word,
)
from papers.tables import in_print, mean_of, printed_names

PAIR = ["model", "reference_model"]
_OF_BOTH = {
    "question_id": NAME,
    "model": NAME,
    "judge": NAME,
    "run": word("0"),
    **dict.fromkeys(("turn", "domain", "category"), word()),
}
RANGES = {"preference": (0, 1), "score": (1, 10)}
"""Least and largest numbers of comparisons and of direct scores, by the column of the numbers."""


def _in_range(value: str) -> Column:
    low, high = RANGES[value]
    wanted = f"a number from {low} to {high}, or nothing"
    return Column(wanted, lambda _, values: values.between(low, high), "number", may_lack=True)


TABLES: dict[str, Columns] = {
    "preference": _OF_BOTH | {"reference_model": NAME, "preference": _in_range("preference")},
    "score": _OF_BOTH | {"score": _in_range("score")},
}
"""Columns of comparisons, `preference` being the model's share of the win, and of scores."""
_SIGNS = [("preference", {"preference"}), ("preference", {"reference_model"}), ("score", {"score"})]
MAIN, N_PROMPTS = "MT-Bench", 160
MAX_SPREAD = 0.5
"""Largest standard deviation over runs of a prompt that counts: preferences, and scores of 1-10."""
JUDGES = [name for name in printed_names("reference_anchored.table8", "row") if name != "Total"]
"""The paper's judges, three of them targets."""


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
        """Return each judge's ICC(3,k), `icc`, of direct scores, else of preferences; `n_runs`.

        It is the mean over models, or over pairs of model and reference, of the ICC over prompts.
        """
        table, value = others(self.compared), "preference"
        if len(self.scored):
            table, value = self.scored, "score"
        keys, found = [*table.columns.intersection(PAIR)], {}
        for judge, own in table.groupby("judge"):
            panel = own.pivot_table(index=[*keys, "prompt"], columns="run", values=value).dropna()
            icc = mean_of(_icc(prompts) for _, prompts in panel.groupby(level=keys))
            found[judge] = icc, panel.shape[1]
        return pd.DataFrame.from_dict(found, orient="index", columns=["icc", "n_runs"])

    @cached_property
    def strong(self) -> list[str]:
        """Return the judges whose reliability is that of a strong judge."""
        return list(self.reliability.index[self.reliability["icc"] >= STRONG_JUDGE])

    @cached_property
    def apart(self) -> str:
        """Return how the judges and prompts differ from the paper's; empty if they do not."""
        judges = {*self.comparisons["judge"], *self.scores["judge"]}
        known = len(judges & {*JUDGES})
        n_prompts = pd.concat([self.compared["prompt"], self.scored["prompt"]]).nunique()
        if (len(judges), known, n_prompts) == (20, 20, N_PROMPTS):
            return ""
        return f"over {len(judges)} judges, {known} of the paper's 20, and {n_prompts} prompts"


def _icc(panel: pd.DataFrame) -> float:
    """Return ICC(3,k), NaN of one run, of one prompt, or of prompts that are all alike."""
    try:
        return icc_average(panel)
    except ValueError:
        return np.nan


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
        return pd.DataFrame(columns=[*keys, *names]).astype(dict.fromkeys(names, float))
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
    low, high = RANGES[value]
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


def read(data: Path | None, say: Say) -> Compared:
    """Return the comparisons and scores of all tables in a folder that have their columns."""
    tables = read_tables(telling_files(data, "comparisons or scores", _SIGNS), TABLES, say)
    joined = Compared(*(_joined(table, value) for value, table in tables.items()))
    n_compared, n_scored = len(others(joined.comparisons)), len(joined.scores)
    if data is not None:
        judges = {*joined.comparisons["judge"], *joined.scores["judge"]}
        say(f"comparisons {n_compared:,}, scores {n_scored:,}, judges {len(judges)}")
        if not n_compared + n_scored:
            n_rows = sum(map(len, tables.values()))
            raise ValueError(
                f"{data} holds no judgment: of {n_rows} rows none has a score, or a preference of "
                "one model over another; add some"
            )
    return joined


def _joined(table: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return the rows with a number, by the paper's names of models and judges, each once."""
    table = table.fillna({"domain": names_of_files(table)}).dropna(subset=value)
    table["prompt"] = table["question_id"] + ("/" + table["turn"]).fillna("")
    names = [*table.columns.intersection([*PAIR, "judge"])]
    for name in names:
        table[name] = table[name].map({n: in_print(n, JUDGES) for n in table[name].unique()})
    keys = [*names, "run", "domain", "prompt"]
    require_once(table, keys, "number repeated judgments in a column run")
    return table[[*keys, value, "category"]].reset_index(drop=True)
