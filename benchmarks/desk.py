"""Votes needed to place a newcomer: those that the vote desk chooses against a random order.

Each model in turn is new: its votes are hidden, a page of `judgeline vote` draws its battles, the
file's votes come as the page would save them, and `judgeline rank --votes` rates it, until its
interval is as narrow as was asked for. Its other votes then say whether the interval holds.
README.md beside this file says more.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

import judgeline
from judgeline.elo import ELO_PER_LOGIT, keyed_rng
from judgeline.voting import vote_key, with_ids

FEWEST, LEAST_OTHERS, NEAR = 10, 50, 1.03
CHOICES = {1.0: "first", 0.5: "tie", 0.0: "second"}
WAYS = ("desk", "random")


class Newcomer(NamedTuple):
    """A model, the file without votes on it, those votes by battle, and a folder for its files."""

    model: str
    battles: pd.DataFrame
    hidden: pd.Series
    folder: Path

    def ask(self, half_width: float) -> tuple[list[dict[str, Any]], int]:
        """Return what a page for a half-width asks one rater, in order, and the votes it tells."""
        page = judgeline.vote(self.battles, self.goal(half_width), self.folder / "vote.html")
        return asked(page.path)[0] if page.n_needed else [], page.n_needed

    def goal(self, half_width: float) -> str:
        """Return what a page for a half-width is for."""
        return f"place {self.model} within {half_width:g}"

    def rated(self, draws: Sequence[dict[str, Any]]) -> pd.Series:
        """Return the model's row on the board of `rank --votes`, with the file's votes on draws."""
        found = self.folder / "votes.jsonl"
        found.write_text("".join(map(line, answered(draws, self.hidden))), encoding="utf-8")
        board = judgeline.rank(self.battles, votes=[found]).leaderboard
        return board.set_index("model").loc[self.model]

    def at_random(self, seed: int) -> list[dict[str, Any]]:
        """Return all its voted battles as draws in random order."""
        ids, size = self.hidden.index, len(self.hidden)
        order = keyed_rng(seed, "random", self.model).permutation(size)
        return [
            {"key": vote_key(ids[row]), "first": "a", "place": place + 1,
             "probability": 1 / (size - place), "n_possible": size}
            for place, row in enumerate(order.tolist())
        ]  # fmt: skip


class Replay(NamedTuple):
    """Votes on a model until its interval was narrow enough, and whether it held.

    `of_file` is how many votes on any battle of the file bring so many on the model, `best` the
    least votes that any choice of opponents takes, as a share of those in random order, and
    `told` what the page told beforehand.
    """

    model: str
    way: str
    n_votes: float
    of_file: float
    held: bool
    best: float
    told: float


def newcomer(table: pd.DataFrame, model: str, folder: Path) -> Newcomer:
    """Hide the votes on a model; a file without texts gets some that say nothing."""
    nothing = {"instruction": table["question_id"], "completion_a": "a", "completion_b": "b"}
    table = with_ids(table.assign(**{k: v for k, v in nothing.items() if k not in table}), {})
    own = table["model_a"].eq(model) | table["model_b"].eq(model)
    hidden = table[own].set_index("battle_id")["human_outcome"].dropna()
    return Newcomer(
        model, table.assign(human_outcome=table["human_outcome"].mask(own)), hidden, folder
    )


def asked(page: Path) -> list[list[dict[str, Any]]]:
    """Return what a page asks each of its raters."""
    text = page.read_text(encoding="utf-8").split('id="data">')[1].split("</script>")[0]
    data = json.loads(text)
    return [[{**one, "n_possible": data["n_possible"]} for one in own] for own in data["raters"]]


def answered(draws: Sequence[dict[str, Any]], hidden: pd.Series) -> Iterator[dict[str, Any]]:
    """Yield a rater's votes on draws as a page saves them; a battle without a vote is skipped."""
    share = dict(zip(map(vote_key, hidden.index), hidden, strict=True))
    for one in draws:
        of_a = share.get(one["key"], math.nan)
        of_first = of_a if one["first"] == "a" else 1 - of_a
        yield {
            "page": "replay", "key": one["key"], "rater": "file", "rater_number": 1,
            "place": one["place"], "n_possible": one["n_possible"],
            "probability": one["probability"], "shown_first": one["first"],
            "choice": CHOICES.get(of_first, "skip"), "time": "2026-11-28T00:00:00Z",
        }  # fmt: skip


def line(vote: dict[str, Any]) -> str:
    return json.dumps(vote) + "\n"


def crossing(width: Callable[[int], float], wanted: float, most: int) -> float:
    """Return the fewest votes to `NEAR` after which a width is as wanted; infinite beyond `most`.

    One over its square is taken to grow evenly between two numbers of votes.
    """
    goal, low, high = wanted**-2, FEWEST, most
    found = {n: width(n) ** -2 for n in (high, low)}
    nudge = 1.0
    while found[low] < goal <= found[high] and high > max(NEAR * low, low + 1):
        n = low + (high - low) * (goal - found[low]) / (found[high] - found[low])
        n = min(max(round(nudge * n), low + 1), high - 1)
        found[n] = width(n) ** -2
        low, high, nudge = (low, n, 0.985) if found[n] >= goal else (n, high, 1.015)
    return math.inf if found[high] < goal else float(high if found[low] < goal else low)


def replayed(
    new: Newcomer, draws: Sequence[dict[str, Any]], half_width: float
) -> tuple[float, bool]:
    """Return the votes in an order until an interval is narrow enough, and whether it holds."""
    rows: dict[int, pd.Series] = {}

    def width(n: int) -> float:
        rows[n] = new.rated(draws[:n])
        return float(rows[n]["upper"] - rows[n]["lower"]) / 2

    n = crossing(width, half_width, len(draws) - LEAST_OTHERS)
    if math.isinf(n):
        return n, False
    row, others = rows[int(n)], new.rated(draws[int(n) :])
    reach = (row["upper"] - row["lower"]) / 2
    spread = math.hypot(row["std_error"], others["human_std_error"]) / row["std_error"]
    return n, bool(abs(row["rating"] - others["human_rating"]) <= reach * spread)


def best_share(table: pd.DataFrame, people: pd.Series, model: str, n_votes: float) -> float:
    """Return the information of a vote on a model, over that of the `n_votes` that tell most.

    `people` are human ratings by all votes of the file.
    """
    own = table[(table["model_a"].eq(model) | table["model_b"].eq(model))]
    opponent = own["model_b"].where(own["model_a"].eq(model), own["model_a"])
    chance = expit((people[model] - people[opponent].to_numpy()) / ELO_PER_LOGIT)
    information = np.sort(chance * (1 - chance))[::-1]
    return float(information.mean() / information[: int(min(n_votes, own.size))].mean())


def replays(table: pd.DataFrame, half_width: float, seeds: range) -> Iterator[Replay]:
    """Yield the replays of every model by both ways; one that the desk does not place, once.

    Where the interval by all votes of the file is wider, no order of fewer votes is tried.
    """
    board = judgeline.rank(table).leaderboard.set_index("model")
    people = board["human_rating"].dropna()
    with TemporaryDirectory() as folder:
        for model in people.index:
            new = newcomer(table, model, Path(folder))
            share = len(new.hidden) / table["human_outcome"].notna().sum()
            is_wide = (board["upper"] - board["lower"])[model] > 2 * half_width
            if is_wide or len(new.hidden) < 2 * LEAST_OTHERS:
                yield Replay(model, WAYS[0], math.inf, math.inf, False, math.nan, math.nan)
                continue
            for seed in seeds:
                yield from of_newcomer(new, half_width, seed, share, (table, people))


def of_newcomer(
    new: Newcomer, half_width: float, seed: int, share: float, known: tuple[Any, Any]
) -> Iterator[Replay]:
    """Yield the replays of one model; `share` of the file's votes are on it."""
    draws = [one for one in new.ask(1)[0] if one["key"] in {*map(vote_key, new.hidden.index)}]
    told = math.nan
    for way in WAYS:
        order = draws if way == "desk" else new.at_random(seed)
        n, held = replayed(new, order, half_width)
        if math.isinf(n):
            yield Replay(new.model, way, n, n, held, math.nan, told)
            return
        if way == "desk":
            told = float(new.ask(half_width)[1])
        yield Replay(new.model, way, n, n / share, held, best_share(*known, new.model, n), told)


def summary(rows: Sequence[Replay]) -> pd.DataFrame:
    """Return mean votes by way over the models that both ways placed, and what held."""
    table = pd.DataFrame(rows)
    failed = set(table.loc[np.isinf(table["n_votes"]), "model"])
    placed = table[~table["model"].isin(failed)]
    by = placed.groupby("way", sort=False)
    found = by[["n_votes", "of_file", "held", "best", "told"]].mean()
    found.loc["random, whole file", "n_votes"] = found.loc["random", "of_file"]
    ratio = found.loc["desk", "n_votes"] / found["n_votes"]
    counts = {"n": by.size().get("desk", 0), "not reached": len(failed)}
    return found.drop(columns="of_file").assign(ratio=ratio, **counts).round(3)


def main() -> None:
    """Print votes to a half-width and coverage, by file and way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("files", type=Path, nargs="+", help="CSV with votes, scores, question_id")
    parser.add_argument("--half-width", type=float, default=60.0, help="Elo points to either side")
    parser.add_argument("--seeds", type=int, default=1, help="orders of each model's votes")
    parser.add_argument("--rows", type=Path, help="also write every replay to this CSV")
    chosen = parser.parse_args()
    for path in chosen.files:
        rows = []
        for one in replays(pd.read_csv(path), chosen.half_width, range(chosen.seeds)):
            rows.append(one)
            if chosen.rows:
                pd.DataFrame(rows).to_csv(chosen.rows.with_stem(path.stem), index=False)
        print(f"{path.stem}\n{summary(rows).to_string()}\n", flush=True)


if __name__ == "__main__":
    main()
