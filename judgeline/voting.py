"""People's votes: the page that asks for them, and the files that come back from it.

What belongs here: which battles of a file a goal needs, and votes joined to a file. What does not:
the draws (`judgeline.sampling.voting`), the page itself (`judgeline.report.voting_page`).
"""

import contextlib
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judgeline.comparing import row_of
from judgeline.elo.strengths import ELO_PER_LOGIT
from judgeline.intervals import BY_JUDGE
from judgeline.io import COUNT, ArgumentError, JudgedBattles, file_columns, files_of, n_battles_of
from judgeline.io.formats import read_columns
from judgeline.planning import Rated
from judgeline.reliability import rater_agreement
from judgeline.report import inert, write_voting_page
from judgeline.sampling import draw_battles, draw_weights, vote_information
from judgeline.steps.intervals import prospect_of
from judgeline.verdict.message import quoted

TEXTS = ("instruction", "completion_a", "completion_b")
IDENTIFIED = (*TEXTS, "battle_id")
"""Columns that `with_ids` brings into our names."""
OUTCOMES = {"first": 1.0, "second": 0.0, "tie": 0.5, "both_bad": 0.5, "skip": math.nan}
"""Choices on the page, as the share of the win of the answer that was shown first."""
SHARED = 20
"""Battles that all raters of a page see, so that their agreement is known."""
MOST_RATERS = 1000
"""Raters of a page, to each of whom it deals the shared battles: 2 MB for so many."""

_LONGEST_LINE = 1 << 16  # bytes, of the first vote of a file
_SPARE = 1.25  # times the votes that are needed: ties tell less, and some battles are skipped
_NEEDED = {"key": str, "rater": str, "shown_first": str, "choice": str, "probability": float,
           "place": int, "n_possible": int, "time": str, "page": str}  # fmt: skip
_LONGEST = 100
"""Most characters of a text of a vote, such as the rater's name."""
_LEAST = 1e-9
"""Least probability of a draw; one that is less likely does not come up."""
_GOAL = re.compile(
    r"\s*place\s+(?P<model>.+?)\s+within\s+(?P<points>\d+(\.\d+)?)(\s*elo)?\s*", re.I
)


class Goal(NamedTuple):
    """A model, and the Elo points that its interval is to reach to either side."""

    model: str
    half_width: float


def parse_goal(text: str) -> Goal:
    """Return a goal from its words; ValueError for others."""
    found = _GOAL.fullmatch(text)
    if not found or not float(found["points"]) > 0:
        raise ArgumentError(
            f"goal is {text!r}; expected such as 'place some-model within 40', in Elo", "goal"
        )
    return Goal(found["model"].strip("'\""), float(found["points"]))


def require_raters(n_raters: int) -> None:
    """Raise ArgumentError unless a page can have so many raters."""
    if not 1 <= n_raters <= MOST_RATERS:
        raise ArgumentError(
            f"n_raters is {n_raters}; expected 1 to {MOST_RATERS:,}: for more people write several "
            "pages, each with a seed of its own",
            "n_raters",
        )


def with_ids(source: pd.DataFrame | Path | str, columns: Mapping[str, str]) -> pd.DataFrame:
    """Return a table or file of battles whole, with texts and a ``battle_id`` in our names.

    A file without ids has a hash of models, question and texts in their place, so that rows may be
    added later; of battles that are alike in all these, each has a number too.
    """
    table = source.copy() if isinstance(source, pd.DataFrame) else _read(Path(source))
    ours = {name: own for name, own in columns.items() if name in IDENTIFIED and own in table}
    elsewhere = {own for name, own in columns.items() if name not in IDENTIFIED}
    named = table.assign(**{name: table[own] for name, own in ours.items()})
    table = named.drop(columns={*ours.values()} - {*ours} - elsewhere)
    if "battle_id" not in table:
        sides = [columns.get(name, name) for name in ("model_a", "model_b", "question_id")]
        known = [name for name in (*sides, *TEXTS) if name in table]
        rows = table[known].astype("str").itertuples(index=False)
        content = pd.Series([_hash(*row) for row in rows], index=table.index, dtype="str")
        table["battle_id"] = content + "-" + content.groupby(content).cumcount().astype("str")
    return table.assign(battle_id=table["battle_id"].astype("str"))


def _read(path: Path) -> pd.DataFrame:
    texts = [*TEXTS, "battle_id", "question_id", "model_a", "model_b"]
    parts = []
    for one in files_of(path):
        found = file_columns(one)
        parts.append(read_columns(one, found, texts=[name for name in texts if name in found]))
    return pd.concat(parts, ignore_index=True)


def _hash(*parts: str) -> str:
    return hashlib.blake2b("\x1f".join(parts).encode(), digest_size=8).hexdigest()


def vote_key(battle_id: str) -> str:
    """Return a hash of a battle's id, which may name the models that raters must not see."""
    return _hash("vote", battle_id)


class VotePage(NamedTuple):
    """A page that was written: how many votes the goal needs, and the battles there are for it.

    `half_width` is that of the model's interval now, by `evidence`, and `expected` after
    `n_needed` votes; the page has `n_battles`, of `n_possible`, and `n_shared` of them are for all
    of `n_raters`.
    """

    path: Path
    goal: Goal
    half_width: float
    evidence: str
    expected: float
    n_needed: int
    n_battles: int
    n_possible: int
    n_shared: int
    n_raters: int

    def lines(self) -> list[str]:
        """Return the page's purpose as sentences."""
        model, wanted = self.goal
        if not self.n_needed:
            return [
                f"{model} is within {wanted:g} Elo already ({self.half_width:.1f} by "
                f"{self.evidence}): no vote is needed."
            ]
        now = "its interval has no ends"
        if math.isfinite(self.half_width):
            now = f"it is within {math.ceil(self.half_width)} now by {self.evidence}"
            now += " alone, the noise of people's votes included" * (self.evidence == BY_JUDGE)
        lines = [
            f"About {self.n_needed} {_bring(self.n_needed)} {model} within {wanted:g} Elo; {now}. "
            f"{self.path} has {self.n_battles} battles for {_raters(self.n_raters)}"
            + f", {self.n_shared} of them for all" * (self.n_raters > 1)
            + "."
        ]
        if self.n_battles < self.n_needed:
            then = "they are too few for an interval with ends"
            if math.isfinite(self.expected):
                then = f"they bring it within about {self.expected:.0f} Elo"
            lines.append(
                f"There are no more than {self.n_possible:,} battles of {model} without a vote: "
                f"{then}. Judge more of its battles."
            )
        return lines


def _bring(n_votes: int) -> str:
    return "vote brings" if n_votes == 1 else "votes bring"


def _raters(count: int) -> str:
    return f"{count} raters" if count > 1 else "one rater"


def write_page(
    path: Path,
    table: pd.DataFrame,
    scored: pd.DataFrame,
    rated: Rated,
    settings: Any,
    goal: Goal,
    *,
    n_raters: int,
    seed: int,
) -> VotePage:
    """Write the page whose votes shorten one model's interval most.

    `table` is that of `with_ids`, `scored` its battles and `rated` their ratings, by the settings.
    The battles are those of the model, against models that people have rated, without a vote.
    """
    board = rated.leaderboard
    own = board.iloc[row_of(goal.model, board["model"].astype(str).tolist())]
    if not math.isfinite(float(own["rating"])):
        raise ArgumentError(
            f"{goal.model!r} has no rating to start from ({own['flags'] or 'nobody rated it'}): "
            "have a judge that the gate lets through judge its battles first",
            "goal",
        )
    possible = _possible(table, scored, board, goal.model)
    gap = (own["rating"] - possible["opponent_rating"].to_numpy(dtype=float)) / ELO_PER_LOGIT
    spread = np.full(len(possible), float(own["std_error"]) / ELO_PER_LOGIT)
    telling = vote_information(gap, np.nan_to_num(spread, nan=0.5))
    rng = np.random.default_rng([seed, *_hash(goal.model, *possible["battle_id"]).encode()])
    question = possible["question_id"].to_numpy(dtype=str)
    best = np.sort(telling)[::-1][: max(len(telling) // 2, 1)].mean()
    of_vote = ELO_PER_LOGIT**2 / best
    now, needed = float(own["upper"] - own["lower"]) / 2, 0.0
    if not now <= goal.half_width:
        used = settings.resolved(n_battles_of(scored), counted=COUNT in scored)
        prospect = prospect_of(scored, rated.heldout_ratings, used, own)
        needed = max(prospect.votes_for(goal.half_width, of_vote), 1.0)
    n_shared = min(SHARED, math.ceil(needed / 2)) if n_raters > 1 else 0
    n_battles = math.ceil(_SPARE * needed)
    drawn = draw_battles(telling, question, n_battles=n_battles, rng=rng)
    expected = now
    if needed:
        chosen = possible.iloc[drawn.rows]
        draws = list(zip(chosen["battle_id"], drawn.probability.tolist(), strict=True))
        data = _page_data(chosen, draws, len(possible), n_raters, n_shared, rng)
        write_voting_page(path, data)
        expected = prospect.half_width(min(needed, len(drawn.rows)), of_vote)
    return VotePage(
        path, goal, now, str(own["evidence"]), expected, int(needed), len(drawn.rows),
        len(possible), n_shared, n_raters,
    )  # fmt: skip


def _possible(
    table: pd.DataFrame, scored: pd.DataFrame, board: pd.DataFrame, model: str
) -> pd.DataFrame:
    """Return the battles that people can vote on for a model, with its opponent's human rating."""
    if absent := [name for name in TEXTS if name not in table]:
        raise ArgumentError(
            f"a page shows the texts of battles, and the file has no column {absent[0]}: add "
            f"{', '.join(TEXTS)}, or name your columns with columns={absent[0]}=NAME",
            "columns",
        )
    texts = table.drop_duplicates("battle_id").set_index("battle_id")
    known = scored.drop_duplicates("battle_id")
    known = known.assign(**{name: known["battle_id"].map(texts[name]) for name in TEXTS})
    voted = scored.loc[scored["human_outcome"].notna(), "battle_id"]
    is_a, is_b = known["model_a"].eq(model), known["model_b"].eq(model)
    if not (is_a | is_b).any():
        raise ArgumentError(
            f"{model!r} is a candidate, and the page has battles of the corpus alone, none of "
            "which is its: add its battles, with texts, to the corpus and have the judge score "
            "them, or make the page of a file that has them (judgeline vote FILE)",
            "goal",
        )
    opponent = known["model_b"].where(is_a, known["model_a"])
    people = board.set_index("model")["human_rating"]
    known = known.assign(
        opponent_rating=opponent.map(people),
        question_id=known["question_id"].fillna(known["battle_id"]),
    )
    has_text = known[list(TEXTS)].map(lambda text: isinstance(text, str)).all(axis=1)
    kept = (is_a | is_b) & has_text & ~known["battle_id"].isin(voted)
    found = known[kept & known["opponent_rating"].notna()].reset_index(drop=True)
    if found.empty:
        raise ValueError(
            f"no battle of {model!r} is left to vote on: it takes battles with texts, without a "
            "vote, against models that people have rated"
        )
    return found


def _page_data(
    chosen: pd.DataFrame,
    draws: Sequence[tuple[str, float]],
    n_possible: int,
    n_raters: int,
    n_shared: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return what the page holds: texts by key, and each rater's battles with sides drawn."""
    battles = {
        vote_key(row.battle_id): {
            "question": inert(row.instruction),
            "a": inert(row.completion_a),
            "b": inert(row.completion_b),
        }
        for row in chosen.itertuples()
    }
    raters: list[list[dict[str, Any]]] = [[] for _ in range(n_raters)]
    for place, (battle_id, chance) in enumerate(draws):
        whose = range(n_raters) if place < n_shared else [place % n_raters]
        for one in whose:
            side = "ab"[int(rng.integers(2))]
            key = vote_key(battle_id)
            shown = {"key": key, "first": side, "place": place + 1, "probability": chance}
            raters[one].append(shown)
    told = "Read the question and both answers, and choose the one that you would rather have got."
    page = _hash(*battles, str(n_raters))
    return {"page": page, "told": told, "n_possible": n_possible, "battles": battles,
            "raters": raters}  # fmt: skip


def read_votes(paths: Sequence[Path | str]) -> pd.DataFrame:
    """Return the votes of files that a page saved, the last of each rater on each battle.

    ValueError names file and line of a line that is none.
    """
    rows = [row for path in paths for row in vote_rows(Path(path).read_bytes(), str(path))]
    if not rows:
        raise ValueError(
            f"no vote in {', '.join(map(str, paths)) or 'no file'}; save the votes again"
        )
    return last_votes(rows)


def vote_rows(content: bytes, name: str) -> list[dict[str, Any]]:
    """Return the votes of a file; ValueError names the line of one that is none."""
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name}: byte {error.start} is not UTF-8; save the votes again"
        ) from error
    numbered = enumerate(lines, start=1)
    return [_vote_of(line, f"{name}, line {number}") for number, line in numbered if line.strip()]


def are_votes(path: Path) -> bool:
    """Return whether a file, or each file of a folder, is one that a page of votes saved."""
    return all(one.suffix.lower() == ".jsonl" and _begins_with_vote(one) for one in files_of(path))


def _begins_with_vote(path: Path) -> bool:
    with path.open("rb") as file:
        line = file.readline(_LONGEST_LINE)
    with contextlib.suppress(ValueError, RecursionError):
        first = json.loads(line.decode("utf-8-sig"))
        return isinstance(first, dict) and first.keys() >= {"key", "rater", "probability"}
    return False


def last_votes(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the last vote of each rater on each battle, with A's `share` of the win."""
    votes = pd.DataFrame(rows).sort_values("time", kind="stable")
    shares_name = votes.groupby(["page", "rater"])["rater_number"].transform("nunique").gt(1)
    numbered = votes["rater"] + " (" + votes["rater_number"].astype("str") + ")"
    votes["rater"] = votes["rater"].mask(shares_name, numbered)
    votes = votes.drop_duplicates(["rater", "key"], keep="last")
    first = votes["choice"].map(OUTCOMES)
    return votes.assign(share=first.where(votes["shown_first"].eq("a"), 1 - first))


def _vote_of(line: str, place: str) -> dict[str, Any]:
    try:
        vote = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place}: no JSON ({error}); save the votes again") from error
    given = {"page": "", "rater_number": "", **(vote if isinstance(vote, dict) else {})}
    for told in chain(_unfit(given), _out_of_range(given)):
        raise ValueError(f"{place}: {told}")
    seconds = given.get("seconds")
    more = {"seconds": math.nan}
    if isinstance(seconds, (int, float)) and _can_be_stored(seconds):
        more = {"seconds": float(seconds)}
    number = json.dumps(given["rater_number"])
    return {name: given[name] for name in _NEEDED} | {"rater_number": number, **more}


def _unfit(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is no value of a vote."""
    kinds: dict[str, Any] = {**_NEEDED, "rater_number": (int, str)}
    for name, kind in kinds.items():
        value = given.get(name)
        fits = isinstance(value, (int, float) if kind is float else kind)
        if not fits or isinstance(value, bool) or not _can_be_stored(value):
            yield f"{name} is {quoted(value)}; expected a vote that a page saved"
        if isinstance(value, str) and len(value) > _LONGEST:
            yield (
                f"{name} is {quoted(value)}, of {len(value):,} characters; expected at most "
                f"{_LONGEST}: give it a shorter one"
            )


def _out_of_range(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield which values of the right types a page cannot have saved."""
    for name, known in (("choice", OUTCOMES), ("shown_first", ("a", "b"))):
        if given[name] not in known:
            yield f"{name} is {quoted(given[name])}; expected {', '.join(known)}"
    if not _LEAST <= given["probability"] <= 1:
        yield f"probability is {given['probability']:g}; expected {_LEAST:g} to 1"
    if not 1 <= given["place"] <= given["n_possible"]:
        yield f"place is {given['place']}; expected 1 to {given['n_possible']} (n_possible)"
    if not _is_utc(given["time"]):
        yield f"time is {quoted(given['time'])}; expected UTC, such as 2026-05-04T09:30:12.345Z"


def _is_utc(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).utcoffset() == timedelta(0)
    except ValueError:
        return False


def _can_be_stored(value: Any) -> bool:
    """Return whether a text has no half of a character, and a number fits a column."""
    if isinstance(value, str):
        return value.isascii() or value.encode("utf-8", "ignore").decode("utf-8") == value
    return bool(abs(value) < 2**53)


class WithVotes(NamedTuple):
    """Battles with people's votes joined, the votes with their weights, and battles without."""

    battles: JudgedBattles
    votes: pd.DataFrame | None = None
    without: JudgedBattles | None = None


def join_votes(battles: JudgedBattles, votes: pd.DataFrame) -> WithVotes:
    """Return judged battles with the votes that count on them, and all votes by battle.

    A battle counts one vote: see `count_votes`. Skipped battles have no vote.

    Raises
    ------
    ValueError
        If a vote is on a battle that is not there.
    """
    told = of_battles(votes, battles.scored["battle_id"])
    if n_foreign := len(votes) - len(told):
        raise ArgumentError(
            f"{n_foreign:,} of {len(votes):,} votes are on battles that this file does not "
            "have; name the file that the page was made of",
            "votes",
        )
    counted = count_votes(battles.scored, told)
    notes = (*battles.notes, *counted.notes, *counted.at_random)
    return WithVotes(battles._replace(scored=counted.battles, notes=notes), told, battles)


def of_battles(votes: pd.DataFrame, battle_id: pd.Series) -> pd.DataFrame:
    """Return the votes on battles with these ids, with outcome and the weight of the draw."""
    keys = {vote_key(one): one for one in battle_id.astype(str).unique()}
    named = votes.assign(battle_id=votes["key"].map(keys).astype("str"))
    named = _weighted(named.assign(human_outcome=votes["share"]))
    known = named["key"].isin(keys.keys())
    return named[known].drop(columns=["key", "share"]).reset_index(drop=True)


class Counted(NamedTuple):
    """Battles with votes counted; sentences on the votes, and on raters who vote at random."""

    battles: pd.DataFrame
    notes: list[str]
    at_random: list[str]


def count_votes(scored: pd.DataFrame, votes: pd.DataFrame) -> Counted:
    """Return scored battles with votes of `of_battles`: the first one on each that had none.

    Further votes on a battle tell how far raters agree, and count no more: people who see the same
    two answers are no independent witnesses of two models, and the judge is asked about them once.
    """
    votes = votes[votes["battle_id"].isin(scored["battle_id"])]
    cast = votes[votes["human_outcome"].notna()].sort_values(["time", "rater"], kind="stable")
    first = cast.drop_duplicates("battle_id").set_index("battle_id")["human_outcome"]
    battles = scored.drop_duplicates("battle_id").set_index("battle_id")
    is_open = scored["battle_id"].map(battles["human_outcome"].isna())
    is_open &= ~scored["battle_id"].duplicated() & scored["battle_id"].isin(first.index)
    outcome = scored["human_outcome"].mask(is_open, scored["battle_id"].map(first))
    joined = scored.assign(human_outcome=outcome)
    notes, at_random = _agreement_notes(votes, battles)
    n_further = len(cast) - int(is_open.sum())
    if n_further:
        notes.insert(1, f"{n_further:,} of them on battles with a vote, for agreement alone")
    return Counted(joined, notes, at_random)


def _weighted(votes: pd.DataFrame) -> pd.DataFrame:
    """Return votes with the weight of each battle's draw, within its page."""
    weights = pd.Series(math.nan, index=votes.index)
    for _, own in votes[votes["human_outcome"].notna()].groupby("page", sort=False):
        drawn = own.drop_duplicates("place").sort_values("place")
        n_possible = int(drawn["n_possible"].max())
        weight = draw_weights(drawn["probability"], n_possible, drawn["place"])
        weights[own.index] = own["place"].map(dict(zip(drawn["place"], weight, strict=True)))
    return votes.assign(weight=weights)


def _agreement_notes(votes: pd.DataFrame, battles: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return sentences on the votes and how far raters agree, and on who votes as if at random.

    The judge counts as one more rater, so that a battle that one person saw tells something too.
    """
    cast = votes[votes["human_outcome"].notna()]
    n_raters, skipped = cast["rater"].nunique(), len(votes) - len(cast)
    notes = [f"{len(cast):,} votes of {_raters(n_raters)} joined, {skipped:,} battles skipped"]
    people = rater_agreement(cast["battle_id"], cast["rater"], cast["human_outcome"])
    if people.n_pairs.sum():
        notes.append(
            f"raters agree on {people.agreement:.0%} of {people.n_pairs.sum() // 2:,} pairs of "
            f"votes (kappa {people.kappa:.2f})"
        )
    judge = battles.loc[cast["battle_id"].unique(), "judge_outcome"].dropna()
    whose = [*("person " + cast["rater"]), *["judge"] * len(judge)]
    on, chosen = [*cast["battle_id"], *judge.index], [*cast["human_outcome"], *judge]
    every = rater_agreement(on, whose, chosen)
    return notes, [
        f"{str(every.rater[row]).removeprefix('person ')} votes as if at random: alike with others "
        f"on {every.alike[row]:.0%} of {every.n_pairs[row]} pairs, by chance "
        f"{every.by_chance[row]:.0%}; rate without that file to see what it does"
        for row in np.flatnonzero(every.at_random & (every.rater != "judge"))
    ]
