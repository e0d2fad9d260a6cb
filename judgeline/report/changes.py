"""Changes of evidence and method since the board before, and the model that moved most."""

import pandas as pd

from judgeline.report.wording import number


def changes_text(
    before: pd.DataFrame | None, after: pd.DataFrame, since: str = "Since the board before"
) -> str:
    """Return the changes of evidence and method between two boards, and the largest move.

    Empty where each model that both boards rate rests on the same kinds of evidence, by the same
    method.
    """
    names = ["evidence", "basis", "rating"]
    if before is None or not {"model", "method", *names} <= {*before}:  # of earlier versions
        return ""
    now, was = (
        table.assign(basis=table["basis"].mask(table["basis"].fillna("").eq(""), table["method"]))
        for table in (after, before)
    )
    columns = ["model", *names]
    both = now[columns].merge(was[columns], on="model", suffixes=("", "_was")).set_index("model")
    both = both[both["rating"].notna() & both["rating_was"].notna()]
    parts = []
    for name, words in (
        ("evidence", "{} models are rated"),
        ("basis", "the judge rates {} models"),
    ):
        by, by_before = (_kinds(both[column]) for column in (name, f"{name}_was"))
        counts = (by + ", before by " + by_before)[by.ne(by_before)].value_counts(sort=False)
        told = counts.astype(str) + f" of {len(both)}"
        parts += [f"{words.format(of)} by {kinds}" for kinds, of in told.items()]
    if not parts:
        return ""
    moved = (both["rating"] - both["rating_was"]).astype(float)
    name = moved.abs().idxmax()
    ends = [number(both.loc[name, column]) for column in ("rating_was", "rating")]
    return (
        f"{since}: {'; '.join(parts)}. {name} moves most: {ends[0]} before, {ends[1]} now "
        f"({moved[name]:+.0f} Elo)."
    )


def _kinds(column: pd.Series) -> pd.Series:
    """Return evidence without numbers of votes, and a basis without the count behind its method."""
    texts = column.fillna("").astype(str).str.partition(":")[0]
    return texts.str.replace(r"\d+ votes?", "votes", regex=True).mask(texts.eq(""), "nothing")
