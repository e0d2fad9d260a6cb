"""Rows of one battle: two orders of presentation, replicates of the judge, several votes.

Rows are of one battle if their ``battle_id`` is equal; without one, if their question and
unordered pair of models are, and nothing in the file speaks against it.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgeline.io.outcome_codes import MOST_LOST
from judgeline.io.scoring import turned

ORDERS = ("difference_ab", "difference_ba")
VOTES = "n_votes"
"""Column of how many people voted on a battle, whose share `human_outcome` then is."""
_MOST_GUESSED = 12  # votes that a share without their number may stand for
_ROUNDED = 1e-3  # what rounding takes from a share
_FEWEST_REPLICATES = 10  # battles without ids that say of repeated scores whether they are one's
_VOTES = (0.0, 0.5, 1.0)

AGAIN, UNCLEAR = "duplicate-battle", "unclear-battle"


class Joined(NamedTuple):
    """Battles joined from rows, the rows set aside, and sentences on the joins.

    `aside` has the place of a row, the reason's name and a sentence.
    """

    battles: pd.DataFrame
    aside: list[tuple[int, str, str]]
    notes: list[str]


def join_rows(rows: pd.DataFrame, votes: NDArray[np.int64], alone: NDArray[np.bool_]) -> Joined:
    """Join the rows of each battle into one.

    Exchanged models are the two orders of presentation, averaged; other scores of one order are
    replicates, averaged. The same verdict with another vote is another vote of the battle, which
    stays several rows of one question with that verdict. Rows that can be none of these are set
    aside.

    Parameters
    ----------
    rows : DataFrame
        Sound rows, numbered from 0, in columns of scored battles.
    votes : array of int, shape (n, 3)
        How many people preferred B, neither and A in each row.
    alone : array of bool, shape (n,)
        Rows of a vote without a verdict, which belong to the verdicts on the same battle.
    """
    key, has_id = _keys(rows)
    judged = np.bincount(key[(key >= 0) & ~alone], minlength=key.max(initial=0) + 1)
    size = np.bincount(key[key >= 0], minlength=judged.size)
    unseen = alone & ((key < 0) | (judged[key] == 0))
    joint = (key >= 0) & (size[key] > 1) & ~unseen
    found = Joined(rows, [], [])
    if joint.any():
        found, votes = _joined(rows, votes, alone, key, joint, has_id)
    elif unseen.any():
        found, votes = found._replace(battles=rows[~unseen]), votes[~unseen]
    if n_several := int((votes.sum(axis=1) > 1).sum()):
        found.notes.append(
            f"several votes on {_battles(n_several)} count one by one and are drawn together"
        )
    if unseen.any():
        found.notes.append(
            f"{unseen.sum():,} of {alone.sum():,} votes are on battles that no judge saw: they are "
            "left out"
        )
    return found._replace(battles=_by_vote(found.battles, votes))


def _keys(rows: pd.DataFrame) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the battle's number of each row, -1 where it names none, and which rows have ids."""
    nothing = pd.Series(None, index=rows.index, dtype=object)
    ids, question = (
        rows.get(name, nothing).astype(object) for name in ("battle_id", "question_id")
    )
    has_id = ids.notna().to_numpy()
    key = np.full(len(rows), -1, dtype=np.intp)
    key[has_id] = pd.factorize(ids[has_id])[0]
    if (asked := question.notna().to_numpy() & ~has_id).any():
        part = rows[asked]
        models = pd.factorize(pd.concat([part["model_a"], part["model_b"]], ignore_index=True))[0]
        pair = np.sort(models.reshape(2, -1), axis=0)
        named = pd.DataFrame({"question": pd.factorize(question[asked])[0], 0: pair[0], 1: pair[1]})
        number = named.groupby(["question", 0, 1], sort=False).ngroup().to_numpy()
        key[asked] = number + key.max(initial=-1) + 1
    return key, has_id


class _First(NamedTuple):
    """First judged row of each battle, and by row the number of its battle and its models."""

    row: pd.Series
    key: NDArray[np.intp]
    models: tuple[NDArray[np.object_], NDArray[np.object_]]

    def sides(self, at: NDArray[np.intp]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which rows have the models of their battle's first one, and which exchanged."""
        begins = self.row.reindex(self.key[at]).to_numpy()
        (one, other), (a, b) = ([side[x] for side in self.models] for x in (at, begins))
        return (one == a) & (other == b), (one == b) & (other == a)

    def stranger(self, row: int, ids: pd.Series) -> tuple[int, str, str]:
        """Return a row of other models than its battle's first one has, as it is set aside."""
        a, b = (side[self.row[self.key[row]]] for side in self.models)
        return row, UNCLEAR, f"battle {ids[row]!r} came before, with the models {a!r} and {b!r}"


def _joined(
    rows: pd.DataFrame,
    votes: NDArray[np.int64],
    alone: NDArray[np.bool_],
    key: NDArray[np.intp],
    joint: NDArray[np.bool_],
    has_id: NDArray[np.bool_],
) -> tuple[Joined, NDArray[np.int64]]:
    """Return battles of rows of which some belong together, and the votes on each."""
    whole = rows.select_dtypes("integer").columns.difference(["row"])
    rows = rows.astype(dict.fromkeys(whole, float))  # means need not be whole
    judged = np.flatnonzero(joint & ~alone)
    models = rows["model_a"].to_numpy(dtype=object), rows["model_b"].to_numpy(dtype=object)
    first = _First(pd.Series(judged).groupby(key[judged]).min(), key, models)
    straight, exchanged = first.sides(judged)
    aside = [first.stranger(row, rows["battle_id"]) for row in judged[~straight & ~exchanged]]
    place, swap = judged[straight | exchanged], exchanged[straight | exchanged]
    part, _ = turned(rows.iloc[place], swap)
    cast = _turned_votes(votes[place], swap)
    table = _cells(part, cast, place=place, battle=key[place], swap=swap, has_id=has_id[place])
    again = _copies(table) if joint.all() else np.zeros(place.size, dtype=bool)
    table, notes = _told(table[~again], is_forced=bool(alone.any()))
    aside += _set_aside(rows, place[again], table)
    chosen = table[table["verdict"].eq("joined")]
    begins = chosen.groupby("battle")["place"].min()
    total = _votes_together(votes, chosen, begins, first, np.flatnonzero(joint & alone))
    for name, values in _means(part.iloc[chosen.index], chosen).items():
        rows.loc[begins.to_numpy(), name] = values.reindex(begins.index).to_numpy()
    kept = ~alone
    kept[[row for row, _, _ in aside]] = False
    kept[chosen["place"]] = False
    kept[begins] = True
    return Joined(rows[kept], aside, notes), total[kept]


def _turned_votes(votes: NDArray[np.int64], swap: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.where(swap[:, None], votes[:, ::-1], votes)


def _cells(part: pd.DataFrame, cast: NDArray[np.int64], **columns: NDArray[Any]) -> pd.DataFrame:
    """Return rows with the cell (battle, order and score) and the kind (cell and votes) of each."""
    score = part["score_difference"].to_numpy(dtype=float)
    table = pd.DataFrame(cast, columns=[*_VOTES]).assign(**columns, score=score)
    table["cell"] = table.groupby(["battle", "swap", "score"]).ngroup()
    return table.assign(kind=table.groupby(["cell", *_VOTES]).ngroup())


def _copies(table: pd.DataFrame) -> NDArray[np.bool_]:
    """Return which rows repeat others because the whole file stands several times in itself."""
    kind = table.groupby("kind")
    share = kind["kind"].transform("size") // np.gcd.reduce(kind.size())
    return np.asarray(table["has_id"] & (kind.cumcount() >= share))


def _set_aside(
    rows: pd.DataFrame, copies: NDArray[np.intp], table: pd.DataFrame
) -> list[tuple[int, str, str]]:
    """Return the rows that repeat a battle or are unclear, each with a reason and a sentence."""
    again, unclear = (
        table.loc[table["verdict"].eq(reason), "place"] for reason in (AGAIN, UNCLEAR)
    )
    text = "battle {!r} came before"
    aside = [(row, AGAIN, text.format(rows["battle_id"][row])) for row in (*copies, *again)]
    has_id = table.set_index("place")["has_id"]
    for row in unclear:
        name = rows["battle_id" if has_id[row] else "question_id"][row]
        aside.append((row, UNCLEAR, f"rows of battle {name!r} differ in scores and in votes"))
    return aside


def _votes_together(
    votes: NDArray[np.int64],
    chosen: pd.DataFrame,
    begins: pd.Series,
    first: _First,
    lone: NDArray[np.intp],
) -> NDArray[np.int64]:
    """Return the votes by row, where a battle's first row has those of all its rows."""
    total = votes.copy()
    counts = chosen.groupby("battle")[[f"n{vote}" for vote in _VOTES]].first()
    total[begins.to_numpy()] = counts.to_numpy()
    ahead, behind = first.sides(lone)
    of_battle = ahead | behind
    lone, behind = lone[of_battle], behind[of_battle]
    begins_of = first.row.reindex(first.key[lone]).to_numpy()
    np.add.at(total, begins_of, _turned_votes(votes[lone], behind))
    return total


def _told(table: pd.DataFrame, *, is_forced: bool) -> tuple[pd.DataFrame, list[str]]:
    """Return rows with their part in their battle (`verdict`), the battle's votes, and notes.

    Rows are joined, left as battles of their own (empty), `AGAIN` or `UNCLEAR`. Equal rows repeat
    a battle, unless the file has other votes on the same verdict, so that each is a vote.
    """
    battle = table.groupby("battle")
    n_cells, n_kinds = (battle[name].transform("nunique") for name in ("cell", "kind"))
    is_voted = table[[*_VOTES]].any(axis=1)
    casts = table.assign(cast=table.groupby([*_VOTES]).ngroup().where(is_voted))
    n_casts = casts.groupby("battle")["cast"].transform("nunique")
    of_cell = casts.groupby("cell")["cast"].transform("nunique")
    repeats = battle["battle"].transform("size") > 1
    n_several = table.loc[repeats & of_cell.gt(1), "battle"].nunique()
    are_several = n_several > MOST_LOST * table.loc[repeats, "battle"].nunique()
    cells = table.groupby("cell")[[*_VOTES]].sum()
    cells["battle"] = table.groupby("cell")["battle"].first()
    voted = cells[cells[[*_VOTES]].any(axis=1)].groupby("battle")
    are_alike = voted.nunique().eq(1).all(axis=1).reindex(table["battle"]).fillna(value=True)
    once = casts[is_voted].groupby("battle")[[*_VOTES]].first()
    one_vote = n_cells.gt(1) & n_casts.le(1) & (not are_several)
    votes = voted[[*_VOTES]].first().reindex(table["battle"]).fillna(0).to_numpy()
    single = once.reindex(table["battle"]).fillna(0).to_numpy()
    is_again = n_kinds.eq(1) & ~(is_voted & are_several)
    votes = np.where((one_vote | is_again).to_numpy()[:, None], single, votes)
    named = dict(zip([f"n{vote}" for vote in _VOTES], votes.T, strict=True))
    follows = battle.cumcount().gt(0)
    verdict = np.select(
        [is_again & follows, are_alike.to_numpy() | one_vote], [AGAIN, "joined"], UNCLEAR
    )
    table = table.assign(verdict=verdict, **named)
    notes: list[str] = []
    if not is_forced and not table["has_id"].all():
        is_left, notes = _without_ids(table, n_cells, n_casts, is_voted)
        table["verdict"] = table["verdict"].mask(is_left, "")
    elif is_forced:
        table["verdict"] = table["verdict"].mask(~table["has_id"], "joined")
    return table, [*_notes(table), *notes]


def _without_ids(
    table: pd.DataFrame, n_cells: pd.Series, n_casts: pd.Series, is_voted: pd.Series
) -> tuple[pd.Series, list[str]]:
    """Return which rows stay battles of their own for want of an id, and a note on them.

    Rows of a question with other verdicts are one battle if no vote of the file says otherwise;
    without exchanged models it takes ten battles whose votes agree.
    """
    nameless = ~table["has_id"]
    other = nameless & n_cells.gt(1)
    n_voted = is_voted.groupby(table["battle"]).transform("sum")
    n_agreed = table.loc[other & n_voted.gt(1), "battle"].nunique()
    is_exchanged = table.groupby("battle")["swap"].transform("nunique").gt(1)
    is_one = not n_casts[other].gt(1).any()
    joins = other & is_one & (is_exchanged | (n_agreed >= _FEWEST_REPLICATES))
    left = other & ~joins
    n_left = table.loc[left, "battle"].nunique()
    note = (
        f"{int(left.sum()):,} rows share question and models with others ({n_left:,} such battles) "
        "and differ from them in the verdict; they count as battles of their own, as turns or "
        "other samples of a question are. If they are the judge's replicates or two orders of one "
        "battle, give these one battle_id"
    )
    return nameless & ~joins, [note] if n_left else []


def _notes(table: pd.DataFrame) -> list[str]:
    """Return sentences on rows that became one battle."""
    rows = table[table["verdict"].eq("joined")]
    by_battle = rows.groupby("battle")
    orders = by_battle["swap"].nunique().gt(1)
    cells = by_battle["cell"].nunique()
    found = (
        (orders, "both orders of {} are averaged: another row has the models exchanged"),
        (cells.gt(1) & ~orders, "several scores of the judge on {} are averaged"),
    )
    return [text.format(_battles(int(these.sum()))) for these, text in found if these.any()]


def _battles(n: int) -> str:
    return f"{n:,} battle{'s' * (n != 1)}"


def _means(part: pd.DataFrame, table: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the means of a battle's verdicts: within an order of presentation, then over both."""
    part = part.reset_index(drop=True)
    table = table.reset_index(drop=True)
    by_order = part.groupby([table["battle"], table["swap"]])
    several = table.groupby("battle")["cell"].nunique().gt(1)

    def mean(name: str) -> pd.Series:
        """Return a column's mean of each battle, or its value where there is one verdict."""
        means = by_order[name].mean().groupby(level=0).mean()
        return means.where(several, part.groupby(table["battle"])[name].first())

    numbers = ["score_difference", "judge_outcome", "recorded_outcome", *ORDERS]
    found = {name: mean(name) for name in numbers if name in part}
    means = by_order["score_difference"].mean().rename("mean").reset_index()
    by_side = means.pivot_table("mean", "battle", "swap").reindex(columns=[False, True])
    both = by_side.notna().all(axis=1)
    for name, side in zip(ORDERS, (False, True), strict=True):
        given = found.get(name, pd.Series(np.nan, index=by_side.index))
        if name in found or both.any():
            found[name] = given.fillna(by_side[side].where(both))
    return found


def _by_vote(battles: pd.DataFrame, votes: NDArray[np.int64]) -> pd.DataFrame:
    """Return battles with a row for each of several votes, which share question and verdict."""
    n = votes.sum(axis=1)
    battles = battles.reset_index(drop=True)
    if not (n > 1).any():
        given = np.select([votes[:, 0] > 0, votes[:, 1] > 0, votes[:, 2] > 0], _VOTES, np.nan)
        return battles.assign(human_outcome=given)
    own = "row " + pd.Series(battles["row"], dtype=str)
    name = battles.get("battle_id", own).fillna(own)
    battles["question_id"] = battles.get("question_id", name).fillna(name)
    place = np.repeat(np.arange(len(battles)), np.maximum(n, 1))
    every = pd.DataFrame(np.where(n[:, None] > 0, votes, 0), columns=[*_VOTES])
    every[np.nan] = n == 0
    given = np.repeat(np.tile([*_VOTES, np.nan], len(battles)), every.to_numpy(dtype=int).ravel())
    number = pd.Series(place).groupby(place).cumcount().to_numpy()
    table = battles.iloc[place].reset_index(drop=True).assign(human_outcome=given)
    if "battle_id" in table:
        later = table["battle_id"].astype(str) + " vote " + pd.Series(number + 1).astype(str)
        table["battle_id"] = table["battle_id"].where(
            (number == 0) | table["battle_id"].isna(), later
        )
    return table


def votes_of(
    outcome: pd.Series, n_votes: pd.Series | None
) -> tuple[NDArray[np.int64], NDArray[np.bool_], list[str]]:
    """Return the votes for B, for neither and for A by row, which shares are none, and notes.

    A share is k of n votes, where half a vote is a tie. Without `n_votes` it is the fewest votes
    that make it.
    """
    share = outcome.to_numpy(dtype=float, na_value=np.nan)
    votes = np.stack([share == vote for vote in _VOTES], axis=1).astype(np.int64)
    between = (share > 0) & (share < 1) & (share != 0.5)
    if n_votes is None and not between.any():
        return votes, np.zeros(share.size, dtype=bool), []
    if n_votes is None:
        number = np.zeros(share.size)
        for n in range(_MOST_GUESSED, 1, -1):
            number[between & _are_votes(share, n)] = n
        several = between & (number > 0)
        note = (
            f"human_outcome is a share of votes in {int(between.sum()):,} rows, and no column "
            f"{VOTES} has their number: each counts as the fewest votes that make it, such as 2 of "
            f"3 for 0.667; add {VOTES}"
        )
        notes = [note]
    else:
        number = n_votes.to_numpy(dtype=float, na_value=np.nan)
        number = np.where(np.isnan(number) & ~between, 1.0, number)
        is_whole = (number >= 1) & (number % 1 == 0)
        with np.errstate(invalid="ignore"):
            several = ~np.isnan(share) & is_whole & _are_votes(share, number)
        notes = []
    wrong = ~np.isnan(share) & ~several & (between | (n_votes is not None))
    n, k = number[several], np.rint(2 * share[several] * number[several]) / 2
    won, tied = np.floor(k), k % 1 > 0
    votes[several] = np.stack([n - won - tied, tied, won], axis=1).astype(np.int64)
    return votes, wrong, notes


def _are_votes(share: NDArray[np.float64], n: NDArray[np.float64] | int) -> NDArray[np.bool_]:
    """Return which shares are a number of votes, ties as half a vote, out of n."""
    return np.asarray(np.abs(np.rint(2 * share * n) / (2 * n) - share) <= _ROUNDED)
