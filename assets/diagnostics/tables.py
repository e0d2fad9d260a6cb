"""Account of every battle: which have a score, and the reason of the others."""

from collections.abc import Iterator

import pandas as pd

from judgeline.diagnostics import battle_status, length_bins

MISSINGNESS_COLUMNS: tuple[str, ...] = (
    "grouping",
    "level",
    "status",
    "n_battles",
    "share",
    "n_verdicts",
)
"""Columns of the account, one row per grouping, level and status that occurs there."""

UNKNOWN = "unknown"
"""Level of battles whose language or length the corpus does not publish."""


def account_for(battles: pd.DataFrame, verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return how many battles have each status, in all and by model, language and length.

    Every battle has one status (see `battle_status`), so those of a level add up to its battles; by
    model, a battle counts for both of its models. Length is the two completions together, in
    quarters of the battles. A corpus that publishes no language, or no text, has no such grouping.
    ``share`` is of the level's battles, ``n_verdicts`` counts the answers with that status to any
    battle of the level, also those to battles that another replicate saved.
    """
    place = pd.Index(battles["battle_id"]).get_indexer(pd.Index(verdicts["battle_id"]))
    answers = verdicts[place >= 0].assign(place=place[place >= 0])
    status = battle_status(
        answers["place"],
        answers["order"],
        answers["replicate"],
        answers["status"],
        n_battles=len(battles),
    )
    fates = pd.DataFrame({"status": status})
    answers = answers.set_index("place")[["status"]]
    parts = [_count(name, levels, fates, answers) for name, levels in _groupings(battles)]
    return pd.concat(parts, ignore_index=True)[list(MISSINGNESS_COLUMNS)]


def _groupings(battles: pd.DataFrame) -> Iterator[tuple[str, pd.Series]]:
    """Yield each grouping's name and its levels, by position of the battle."""
    rows = battles.reset_index(drop=True)
    yield "all", pd.Series("", index=rows.index)
    yield "model", pd.concat([rows["model_a"], rows["model_b"]]).astype(str)
    if rows["language"].notna().any():
        yield "language", rows["language"].astype("string").fillna(UNKNOWN).astype(str)
    length = rows["completion_a"].str.len() + rows["completion_b"].str.len()
    if length.notna().any():
        yield "length", _length_levels(length)


def _length_levels(length: pd.Series) -> pd.Series:
    """Return the levels in words, such as "310 to 620 characters", in the order of length."""
    known = length.dropna().astype(float)
    bins = pd.Series(length_bins(known), index=known.index)
    ends = known.groupby(bins).agg(["min", "max"])
    words = {row.Index: f"{row.min:.0f} to {row.max:.0f} characters" for row in ends.itertuples()}
    levels = [*words.values(), *([UNKNOWN] if len(known) < len(length) else [])]
    return pd.Series(
        pd.Categorical(bins.map(words).reindex(length.index).fillna(UNKNOWN), levels),
        index=length.index,
    )


def _count(
    grouping: str, levels: pd.Series, fates: pd.DataFrame, answers: pd.DataFrame
) -> pd.DataFrame:
    """Return one row per level and status that occurs there."""
    keyed = levels.rename("level").to_frame()
    n_battles, n_verdicts = (
        keyed.join(statuses, how="inner").groupby(["level", "status"], observed=True).size()
        for statuses in (fates, answers)
    )
    counted = pd.DataFrame({"n_battles": n_battles, "n_verdicts": n_verdicts})
    table = counted.fillna(0).astype("int64").reset_index().astype({"level": str})
    total = table.groupby("level")["n_battles"].transform("sum")
    return table.assign(grouping=grouping, share=table["n_battles"] / total)
