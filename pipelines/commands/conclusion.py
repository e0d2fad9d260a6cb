"""What a run found, at its end: the board of the judge nearest to people, and a few sentences."""

import pandas as pd
from rich.console import Console

from judgeline.elo import HEADLINE
from judgeline.terminal import plain, show_leaderboard
from pipelines.commands.leaderboards import stored_leaderboards
from resources.tables.store import open_store

_METHODS = {"hard": "its preferences alone", "soft": "its calibrated scores, as published"}


def print_conclusion(console: Console, corpus: str) -> None:
    """Print the board of the judge nearest to people, how near it is, and what to do next."""
    compared = open_store().stored("judge_comparison", corpus)
    if compared is None or compared.empty:
        return
    errors = compared.pivot_table(index="judge", columns="method", values="mae")
    ranked = errors.get(HEADLINE, pd.Series(dtype=float)).dropna().sort_values()
    if ranked.empty:
        return
    nearest = str(ranked.index[0])
    board, definition = stored_leaderboards(corpus, nearest)
    console.print()
    title = f"{definition.display_name} by {nearest}, in Elo"
    show_leaderboard(console, board, plain(title), definition.rating.miscoverage)
    for sentence in _sentences(errors, ranked, corpus):
        console.print(plain(sentence), highlight=False, soft_wrap=True)


def _sentences(errors: pd.DataFrame, ranked: pd.Series, corpus: str) -> list[str]:
    nearest, *others = ranked.index
    told = "".join(f"; {judge} is {ranked[judge]:.0f} off" for judge in others)
    known = errors.loc[nearest].dropna()
    by_method = [
        f"{known[method]:.0f} by {words}" for method, words in _METHODS.items() if method in known
    ]
    return [
        f"Nearest to people is {nearest}: {ranked[nearest]:.0f} Elo off on average, each model "
        f"rated without its own votes{told}.",
        f"It would be {' and '.join(by_method)}.",
        f"Where a rating comes from: judgeline why MODEL --corpus {corpus} --judge {nearest}",
        "Every table, check and run in a browser: judgeline ui. Your own battles: "
        "judgeline doctor FILE",
    ]
