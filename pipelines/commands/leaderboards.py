"""Leaderboards and label plans by the tables that runs have left, as people read them."""

from collections.abc import Sequence

import pandas as pd
from rich.console import Console
from upath import UPath

from judgeline.elo import HEADLINE, HeldOutRatings, summarise
from judgeline.intervals import Leaderboard
from judgeline.io import as_table
from judgeline.paths import tables_uri
from judgeline.planning import CALLS, Rated
from judgeline.rating_options import RatingOptions
from judgeline.report import changes_text
from judgeline.steps.coding import said_family
from judgeline.steps.step import as_columns
from judgeline.suggest import unknown_name
from judgeline.tables.intervals import with_judge_columns
from judgeline.terminal import plain, show_leaderboard
from judgeline.verdict import POOLED
from resources.config.corpora import CorpusDefinition, load_corpora
from resources.config.judges import load_judges


def stored_leaderboards(
    corpus: str, judge: str | None = None
) -> tuple[pd.DataFrame, CorpusDefinition]:
    """Return the leaderboards of a corpus, below one another, and the corpus.

    Attribute ``family`` of the former is that of the first judge, or its name.
    """
    known = load_corpora()
    if corpus not in known:
        raise ValueError(unknown_name("corpus", corpus, known, "corpora.yaml"))
    definition, tables = known[corpus], UPath(tables_uri())
    if judge == POOLED:
        path = tables / "pooled_leaderboard" / f"{corpus}.parquet"
        board = _with_judge(path, POOLED) if path.exists() else pd.DataFrame()
        if board.empty:
            raise ValueError(no_pooled(corpus))
        pooled = board.reindex(columns=["judge", *Leaderboard._fields])
        pooled.attrs["family"] = POOLED
        return pooled, definition
    folder = tables / "leaderboard" / corpus
    stored = {path.stem: path for path in folder.glob("*.parquet")} if folder.exists() else {}
    if judge not in stored if judge else not stored:
        raise ValueError(no_leaderboard(definition, judge, sorted(stored)))
    chosen = [judge] if judge else sorted(stored.keys() & load_judges().keys())
    if not chosen:
        raise ValueError(
            f"all judges with a leaderboard of {corpus!r} are retired: {', '.join(sorted(stored))} "
            "no longer stand in judges.yaml; name one with --judge to see what it left, or run a "
            f"judge: judgeline run --corpus {corpus}"
        )
    boards = [_with_judge(stored[name], name) for name in chosen]
    board = pd.concat(boards, ignore_index=True)
    known_family = {slug: said_family(judge.family) for slug, judge in load_judges().items()}
    board.attrs["family"] = known_family.get(chosen[0], "") or chosen[0]
    return board, definition


def no_pooled(corpus: str) -> str:
    """Return the message that there is no pooled board, with the remedy."""
    return (
        f"no pooled leaderboard of {corpus!r}: it takes two judges whose ratings stand, on "
        f"common battles; run another judge: judgeline run --corpus {corpus} --judge JUDGE"
    )


def no_leaderboard(
    definition: CorpusDefinition, judge: str | None = None, stored: Sequence[str] = ()
) -> str:
    """Return the message that a judge, or any, has no leaderboard of a corpus, with the remedy."""
    corpus, judges, tables = definition.slug, load_judges(), UPath(tables_uri())
    if judge and judge not in judges:
        return unknown_name("judge", judge, {*judges, *stored}, "judges.yaml")
    by, of = (f" by judge {judge!r}", f" --judge {judge}") if judge else ("", "")
    run, file = f"judgeline run --corpus {corpus}{of}", f"{judge}.parquet" if judge else ""
    anchored = tables / "reference_ratings" / corpus / file
    if not anchored.exists():
        if (tables / "verdicts" / corpus / file).exists():
            return f"no leaderboard of {corpus!r}{by}: it ended early, and a run says why ({run})"
        there = f"; there are those of {', '.join(stored)}" if stored else ""
        return f"no leaderboard of {corpus!r}{by} yet{there}; run: {run}"
    why, remedy = f"ran into a gate before it, which a run names ({run})", ""
    if not (tables / "scored_battles" / corpus / file).exists():
        why = "has verdicts without rubric scores"
        remedy = (
            ". Wins, ties and losses are rated where people voted on the battles: write votes into "
            f"the column human_outcome of {definition.location}, and run it again"
        )
    return (
        f"{corpus!r} has no leaderboard on the human scale{by}: it {why}; its reference-anchored "
        f"ratings, which need no votes, are in {anchored}{remedy}"
    )


def _with_judge(path: UPath, judge: str) -> pd.DataFrame:
    with path.open("rb") as source:
        board = with_judge_columns(pd.read_parquet(source))
    board.insert(0, "judge", judge)
    return board


def stored_plan(
    corpus: str, judges: Sequence[str]
) -> tuple[dict[str, Rated], RatingOptions, tuple[list[tuple[str, str, str]], list[str]] | None]:
    """Return the ratings of judges to plan by, how they were made, and of one judge its labels."""
    rated, rating = _rated(corpus, judges)
    labels = plan_lines(corpus, *rated) if len(rated) == 1 else None
    return rated, rating, labels if labels and labels[0] else None


def stored_battles(
    corpus: str, judge: str | None
) -> tuple[pd.DataFrame, pd.DataFrame, Rated, RatingOptions]:
    """Return battles with texts, those that one judge scored, its ratings, how they were made."""
    from resources.tables.store import open_store

    rated, rating = _rated(corpus, [judge] if judge else [])
    if len(rated) > 1:
        raise ValueError(
            f"{corpus!r} has leaderboards of {', '.join(rated)}; name one with --judge"
        )
    ((name, one),) = rated.items()
    store = open_store()
    battles = store.stored("sampled_battles", corpus)
    scored = store.stored("scored_battles", corpus, name)
    if battles is None or scored is None:
        raise ValueError(f"battles of {corpus!r} are gone; run: judgeline run --corpus {corpus}")
    return battles, scored, one, rating


def _rated(corpus: str, judges: Sequence[str]) -> tuple[dict[str, Rated], RatingOptions]:
    """Return held-out ratings and leaderboards by judge, and how they were made."""
    from resources.tables.store import open_store

    if POOLED in judges:
        raise ValueError("all judges together have no held-out ratings to plan by: name one judge")
    named = [stored_leaderboards(corpus, one) for one in judges] or [stored_leaderboards(corpus)]
    store, known, rated = open_store(), load_judges(), {}
    for board, _ in named:
        for name, own in board.groupby("judge", sort=False):
            heldout = store.stored("heldout_ratings", corpus, str(name))
            replicates = known[str(name)].replicates if str(name) in known else 1
            rated[str(name)] = Rated(heldout, own.reset_index(drop=True), CALLS * replicates)
    return rated, named[0][1].rating


def plan_lines(corpus: str, judge: str) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Return the labels to buy, by corpus or model and by way of choosing battles, and notes."""
    from judgeline.steps.winrate import label_plan
    from resources.config.catalog import Catalog  # loads the orchestrator
    from resources.tables.store import open_store

    catalog = Catalog()
    definition = catalog.corpus(corpus)
    catalog.judge(judge)  # an unknown name is said before a table that is missing
    scored = open_store().stored("scored_battles", corpus, judge)
    if scored is None:
        why = no_leaderboard(definition, judge)
        raise ValueError(f"no battle of {corpus!r} was scored by judge {judge!r}: {why}")
    plans = label_plan(scored, definition.rating)
    notes = plans["note"].where(plans["status"].eq("ok"), "").fillna("")  # a plan says why not
    counts = notes[notes.ne("")].value_counts()
    common = counts[counts > 1]
    rows = []
    for row, note in zip(plans.to_dict("records"), notes, strict=True):
        plan, of = str(row["plan"]), "the corpus" if row["grouping"] == "all" else str(row["level"])
        if note and note not in common:
            plan = f"{plan.removesuffix('.')}; {note}"
        rows.append((of, str(row["chosen_by"]), plan))
    return rows, [f"{n} of {len(rows)} plans: {note}." for note, n in common.items()]


def stored_evidence(corpus: str, judge: str) -> list[pd.DataFrame | None]:
    """Return thresholds, errors and predictions of a judge as stored; empty without them."""
    from resources.tables.store import open_store

    if judge == POOLED:
        return []
    calibration, heldout, predictions = (
        open_store().stored(name, corpus, judge)
        for name in ("conformal_calibration", "heldout_ratings", "predictions")
    )
    if calibration is None or heldout is None or "outward" not in heldout:  # of earlier versions
        return []
    summary = as_table(summarise(as_columns(HeldOutRatings, heldout)))
    return [calibration, summary, predictions]


def stored_changes(corpus: str, judge: str) -> str:
    """Return the changes of a judge's board since the board before it; empty for none."""
    from resources.tables.store import open_store

    store, key = open_store(), ("leaderboard", corpus, judge)
    before, board = store.before(*key), store.stored(*key)
    return "" if board is None else changes_text(before, board)


def print_conclusion(console: Console, corpus: str) -> None:
    """Print the board of the judge nearest to people, its error, and the next commands."""
    from resources.tables.store import open_store  # loads the orchestrator

    compared = open_store().stored("judge_comparison", corpus)
    if compared is None or compared.empty:
        return
    errors = compared.pivot_table(index="judge", columns="method", values="mae")
    ranked = errors.get(HEADLINE, pd.Series(dtype=float)).dropna().sort_values()
    if ranked.empty:
        return
    nearest, *others = map(str, ranked.index)
    board, definition = stored_leaderboards(corpus, nearest)
    title = plain(f"{definition.display_name} by {nearest}, in Elo")
    console.print()
    show_leaderboard(console, board, title, *stored_evidence(corpus, nearest))
    also = "".join(f"; {judge} is {ranked[judge]:.0f} off" for judge in others)
    words = {"hard": "its preferences alone", "soft": "its calibrated scores, as published"}
    known = errors.loc[nearest].dropna()
    by_method = [f"{known[name]:.0f} by {words[name]}" for name in words if name in known]
    for sentence in (
        *([_beside_truth(board, definition)] if definition.reader == "arena" else []),
        f"Nearest to people is {nearest}: {ranked[nearest]:.0f} Elo off on average, each model "
        f"rated without its own votes{also}.",
        f"It would be {' and '.join(by_method)}.",
        f"Where a rating comes from: judgeline why MODEL --corpus {corpus} --judge {nearest}",
        "Every table, check and run in a browser: judgeline ui. Your own battles: "
        "judgeline doctor FILE",
    ):
        console.print(plain(sentence), highlight=False, soft_wrap=True)


def _beside_truth(board: pd.DataFrame, definition: CorpusDefinition) -> str:
    from resources.arena.simulation import arena_options, build_arena, true_ratings

    options = arena_options(definition.arena, definition.seed, definition.slug)
    true = board["model"].map(true_ratings(build_arena(options)))
    names = ("rating", "judge_rating", "human_rating")
    off, judge, votes = ((board[name] - true).abs().mean() for name in names)
    held = int(true.between(board["lower"], board["upper"]).sum())
    return (
        f"This is a simulation, whose truth is known: the board is {off:.0f} Elo off on average "
        f"(the judge alone {judge:.0f}, the votes alone {votes:.0f}), and {held} of {len(board)} "
        "intervals hold it."
    )
