"""Leaderboards and label plans by the tables that runs have left, as people read them."""

import pandas as pd
from rich.console import Console
from upath import UPath

from judgeline.elo import HEADLINE
from judgeline.intervals import Leaderboard
from judgeline.terminal import plain, show_leaderboard
from judgeline.verdict import POOLED
from resources.config.corpora import CorpusDefinition, load_corpora
from resources.config.judges import load_judges
from resources.config.paths import tables_uri
from resources.suggest import unknown_name


def stored_leaderboards(
    corpus: str, judge: str | None = None
) -> tuple[pd.DataFrame, CorpusDefinition]:
    """Return the leaderboards of a corpus, below one another, and the corpus."""
    known = load_corpora()
    if corpus not in known:
        raise ValueError(unknown_name("corpus", corpus, known, "corpora.yaml"))
    tables = UPath(tables_uri())
    if judge == POOLED:
        return _pooled(tables / "pooled_leaderboard" / f"{corpus}.parquet", corpus), known[corpus]
    folder = tables / "leaderboard" / corpus
    stored = {path.stem: path for path in folder.glob("*.parquet")} if folder.exists() else {}
    if judge is not None and judge not in stored:
        raise ValueError(_no_leaderboard(corpus, judge, stored))
    if not stored:
        raise ValueError(_none_yet(corpus))
    chosen = _configured(corpus, stored) if judge is None else [judge]
    boards = [_with_judge(stored[name], name) for name in chosen]
    return pd.concat(boards, ignore_index=True), known[corpus]


def _pooled(path: UPath, corpus: str) -> pd.DataFrame:
    """Return the board of all judges together, with the columns that a judge's has."""
    board = _with_judge(path, POOLED) if path.exists() else pd.DataFrame()
    if board.empty:
        raise ValueError(no_pooled(corpus))
    return board[["judge", *Leaderboard._fields]]


def no_pooled(corpus: str) -> str:
    """Return why there is no board of all judges together, and what makes one."""
    return (
        f"no pooled leaderboard of {corpus!r}: it takes two judges whose ratings stand, on "
        f"common battles; run another judge: judgeline run --corpus {corpus} --judge JUDGE"
    )


def _configured(corpus: str, stored: dict[str, UPath]) -> list[str]:
    """Return the judges with a leaderboard that were not retired."""
    if chosen := sorted(stored.keys() & load_judges().keys()):
        return chosen
    raise ValueError(
        f"all judges with a leaderboard of {corpus!r} are retired: {', '.join(sorted(stored))} no "
        "longer stand in judges.yaml; name one with --judge to see what it left, or run a "
        f"judge: judgeline run --corpus {corpus}"
    )


def _none_yet(corpus: str) -> str:
    tables = UPath(tables_uri())
    told = f"no leaderboard of {corpus!r} yet; run: judgeline run --corpus {corpus}"
    anchored = tables / "reference_ratings" / corpus
    if not anchored.exists():
        return told
    scored = tables / "scored_battles" / corpus
    why = (
        "ran into a gate before it, which a run names"
        if scored.exists()
        else "has verdicts without rubric scores"
    )
    return (
        f"{corpus!r} has no leaderboard on the human scale: it {why}; its reference-anchored "
        f"ratings, which need no votes, are in {anchored}"
    )


def _no_leaderboard(corpus: str, judge: str, stored: dict[str, UPath]) -> str:
    judges = load_judges()
    if judge not in judges and judge not in stored:
        return unknown_name("judge", judge, {*judges, *stored}, "judges.yaml")
    there = f"; there are those of {', '.join(sorted(stored))}" if stored else ""
    return (
        f"no leaderboard of {corpus!r} by judge {judge!r} yet{there}; "
        f"run: judgeline run --corpus {corpus} --judge {judge}"
    )


def _with_judge(path: UPath, judge: str) -> pd.DataFrame:
    with path.open("rb") as source:
        board = pd.read_parquet(source)
    board.insert(0, "judge", judge)
    return board


def plan_lines(corpus: str, judge: str) -> list[tuple[str, str, str]]:
    """Return per corpus or model and way of choosing battles what to label, in words."""
    from assets.winrate.assets import label_plan  # loads the orchestrator
    from resources.config.catalog import Catalog
    from resources.tables.store import open_store

    catalog = Catalog()
    rating = catalog.corpus(corpus).rating
    catalog.judge(judge)  # an unknown name is said before a table that is missing
    scored = open_store().stored("scored_battles", corpus, judge)
    if scored is None:
        raise ValueError(
            f"no battle of corpus {corpus!r} was scored by judge {judge!r} yet; make it first: "
            f"judgeline run --corpus {corpus} --judge {judge}"
        )
    return [
        (
            "the corpus" if row["grouping"] == "all" else str(row["level"]),
            str(row["chosen_by"]),
            "; ".join(filter(None, row[["plan", "note"]].dropna().astype(str))),
        )
        for _, row in label_plan(scored, rating).iterrows()
    ]


# ---------------------------------------------------------------- at the end of a run

_IN_WORDS = {"hard": "its preferences alone", "soft": "its calibrated scores, as published"}


def print_conclusion(console: Console, corpus: str) -> None:
    """Print the board of the judge nearest to people, how near it is, and what to do next."""
    from resources.tables.store import open_store  # loads the orchestrator

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
    truth = _beside_truth(board, definition) if definition.reader == "arena" else []
    for sentence in [*truth, *_sentences(errors, ranked, corpus)]:
        console.print(plain(sentence), highlight=False, soft_wrap=True)


def _beside_truth(board: pd.DataFrame, definition: CorpusDefinition) -> list[str]:
    """Say how far a simulation's board is from its truth, which no real arena tells."""
    from resources.arena.simulation import arena_options, build_arena
    from resources.arena.truth import true_ratings

    options = arena_options(definition.arena, definition.seed, definition.slug)
    true = board["model"].map(true_ratings(build_arena(options)))
    off, votes = ((board[name] - true).abs().mean() for name in ("rating", "human_rating"))
    held = int(true.between(board["lower"], board["upper"]).sum())
    return [
        f"This is a simulation, whose truth is known: the board is {off:.0f} Elo off on average "
        f"(the votes alone {votes:.0f}), and {held} of {len(board)} intervals hold it."
    ]


def _sentences(errors: pd.DataFrame, ranked: pd.Series, corpus: str) -> list[str]:
    nearest, *others = ranked.index
    told = "".join(f"; {judge} is {ranked[judge]:.0f} off" for judge in others)
    known = errors.loc[nearest].dropna()
    by_method = [
        f"{known[method]:.0f} by {words}" for method, words in _IN_WORDS.items() if method in known
    ]
    return [
        f"Nearest to people is {nearest}: {ranked[nearest]:.0f} Elo off on average, each model "
        f"rated without its own votes{told}.",
        f"It would be {' and '.join(by_method)}.",
        f"Where a rating comes from: judgeline why MODEL --corpus {corpus} --judge {nearest}",
        "Every table, check and run in a browser: judgeline ui. Your own battles: "
        "judgeline doctor FILE",
    ]
