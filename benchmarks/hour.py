"""A newcomer's hour: from a file without votes on one model to a decision, with each command.

The file's votes on the model are hidden, and come back as those of one rater who votes for an hour
on the page. README.md beside this file says more.
"""

import argparse
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from desk import Newcomer, answered, asked, line, newcomer

from judgeline.cli import main as judgeline

BEGIN = datetime(2026, 11, 28, 9, tzinfo=UTC)
MARGIN, HALF_WIDTH, SECONDS, MINUTES = 40.0, 60.0, 20.0, 60.0


def told(*words: str) -> int:
    """Run a command of judgeline, with what it is told before what it prints."""
    shown = [f'"{word}"' if " " in word else word for word in words]
    print(f"\n$ judgeline {' '.join(shown)}", flush=True)
    code = judgeline(list(words))
    print(f"[exit code {code}]", flush=True)
    return code


def vote(new: Newcomer, page: Path, seconds: float, n_votes: int) -> int:
    """Vote on a page at a pace, as the file's people did, and save; return the number of votes."""
    order = [one for own in asked(page) for one in own][:n_votes]
    told_at = (BEGIN + timedelta(seconds=seconds * place) for place in range(1, len(order) + 1))
    votes = [
        {**one, "rater": "Ada", "time": at.isoformat(), "seconds": seconds}
        for one, at in zip(answered(order, new.hidden), told_at, strict=True)
    ]
    Path("votes").mkdir()
    (Path("votes") / "votes-1.jsonl").write_text("".join(map(line, votes)), encoding="utf-8")
    return len(votes)


def hour(table: pd.DataFrame, chosen: argparse.Namespace) -> int:
    """Go through the hour in the working directory; return the last answer's exit code."""
    new = newcomer(table, chosen.new, Path())
    new.battles.to_csv("battles.csv", index=False)
    gate = ["gate", "battles.csv", "--new", chosen.new, "--current", chosen.current]
    gate += ["--margin", f"{chosen.margin:g}"]
    told("plan", "battles.csv", "--half-width", f"{chosen.half_width:g}")
    told("vote", "battles.csv", "--goal", new.goal(chosen.half_width), "--out", "vote.html")
    n_votes = vote(
        new, Path("vote.html"), chosen.seconds, int(60 * chosen.minutes / chosen.seconds)
    )
    print(f"\n({n_votes} votes of one rater, {chosen.seconds:g} seconds each)")
    told("rank", "battles.csv", "--votes", "votes", "--out", "ratings", "--no-report")
    row = pd.read_csv("ratings/leaderboard.csv").set_index("model").loc[chosen.new]
    print(row[["rating", "lower", "upper", "evidence", "judge_rating"]].to_string())
    return told(*gate, "--votes", "votes")


def by_people(table: pd.DataFrame) -> Sequence[str]:
    """Return the models from best to worst by shares of votes won."""
    side, other = (
        pd.DataFrame({"model": table[name], "share": share})
        for name, share in (
            ("model_a", table["human_outcome"]), ("model_b", 1 - table["human_outcome"]),
        )
    )  # fmt: skip
    won = pd.concat([side, other])
    return won.groupby("model")["share"].mean().sort_values(ascending=False).index.tolist()


def main() -> None:
    """Print the commands of an hour and what they print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("file", type=Path, help="CSV with votes, scores, question_id")
    parser.add_argument("--new", help="by default the third best by the file's votes")
    parser.add_argument("--current", help="by default the middle one")
    parser.add_argument("--margin", type=float, default=MARGIN, help="Elo points")
    parser.add_argument("--half-width", type=float, default=HALF_WIDTH, help="Elo points")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of one vote")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="of voting")
    chosen = parser.parse_args()
    table = pd.read_csv(chosen.file)
    best = by_people(table)
    chosen.new, chosen.current = chosen.new or best[2], chosen.current or best[len(best) // 2]
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        hour(table, chosen)


if __name__ == "__main__":
    main()
