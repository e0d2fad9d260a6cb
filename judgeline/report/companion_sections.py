"""Sections of the companion methods, each from its tables, where a judge has them."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pandas as pd

from judgeline.report.companions import Companion, Table
from judgeline.report.grid import Column, make_grid
from judgeline.report.wording import (
    MISSING,
    count,
    flag_words,
    method_words,
    number,
    percent,
    significant,
    status_words,
)
from judgeline.winrate import HEADLINE_RULE

_one = partial(number, digits=1)
_three = partial(number, digits=3)
_rise = partial(number, digits=1, signed=True)


def _verdict_words(passed: Any) -> str:
    return MISSING if pd.isna(passed) else "passed" if passed else "failed"


def _yes(value: Any) -> str:
    return MISSING if pd.isna(value) else "yes" if value else "no"


def _flags(value: Any) -> str:
    return ", ".join(flag_words(value))


class _Part(NamedTuple):
    """One table of a section: the asset it is, its caption, its columns, which rows and marks.

    Several parts of one asset are told apart by `suffix`.
    """

    asset: str
    caption: str
    columns: tuple[Column, ...]
    rows: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table
    marked: Callable[[Any], bool] = lambda _row: False
    suffix: str = ""


class _Section(NamedTuple):
    """One method's part of the page; one that places models is not of a withheld judge."""

    title: str
    sentence: str
    parts: tuple[_Part, ...]
    places_models: bool = False


def _text(field: str, label: str, show: Callable[[Any], str] = str) -> Column:
    return Column(field, label, "", show, numeric=False)


_NOTE = _text("note", "Note")

_GATE = _Part(
    "judge_gate",
    "One row per criterion; marked where the judge fails it",
    (
        _text("criterion", "Criterion", status_words),
        Column("value", "Value", "", significant),
        _text("direction", "Limit"),
        Column("threshold", "", "", significant),
        _text("passed", "Result", _verdict_words),
        _text("withholds", "Withholds ratings", _yes),
        _NOTE,
    ),
    marked=lambda row: pd.notna(row.passed) and not row.passed,
)
_CONSISTENCY_COLUMNS = (
    _text("measure", "Measure", status_words),
    _text("source", "Comparisons by"),
    _text("scores", "Scores by"),
    Column("size", "Answers", "in a subset", count),
    _text("category", "Category"),
    _text("dimension", "Dimension"),
    Column("n", "Counted", "pairs or subsets", count),
    Column("ratio", "Ratio", "share", _three),
    Column("circular", "Circular", "share", _three),
    Column("equality", "Equality", "share", _three),
)


def _is_whole(table: pd.DataFrame) -> pd.Series:
    return table["category"].eq("all") & table["dimension"].eq("overall")


_CONSISTENCY = _Part(
    "consistency",
    "One row per measure and source, over everything",
    _CONSISTENCY_COLUMNS,
    rows=lambda table: table[_is_whole(table)],
)
_CONSISTENCY_PARTS = _Part(
    "consistency",
    "One row per measure, source, category and criterion that was counted",
    _CONSISTENCY_COLUMNS,
    rows=lambda table: table[~_is_whole(table) & table["n"].gt(0)],
    suffix="-parts",
)
_WIN_RATES = _Part(
    "adjusted_win_rates",
    "One row per model: the win rate in people's eyes, the judge's own, and people's votes",
    (
        _text("model", "Model"),
        Column("win_rate", "Win rate", "in people's eyes", _three),
        Column("win_rate_lower", "from", "share", _three),
        Column("win_rate_upper", "to", "share", _three),
        _text("estimator", "Estimator", status_words),
        Column("naive_win_rate", "Judge's own", "share", _three),
        Column("human_win_rate", "Humans", "share", _three),
        Column("n_votes", "Votes", "of its own", count),
        Column("n_battles", "Battles", "judged", count),
        Column("n_labelled", "Labelled", "battles", count),
        _text("calibration", "Labels of"),
        _text("status", "Status", status_words),
        _NOTE,
    ),
    rows=lambda table: table[table["headline"].astype(bool)],
    marked=lambda row: row.status != "ok",
)
_PUBLISHED = _Part(
    "adjusted_win_rates",
    "The published corrections, valid under label shift with a judge that errs alike on all models",
    (
        _text("model", "Model"),
        _text("estimator", "Estimator", status_words),
        Column("win_rate", "Corrected", "share", _three),
        Column("win_rate_lower", "from", "share", _three),
        Column("win_rate_upper", "to", "share", _three),
        Column("human_win_rate", "Humans", "as the row treats ties", _three),
        Column("sensitivity", "Sensitivity", "of the judge", _three),
        Column("specificity", "Specificity", "of the judge", _three),
        _text("calibration", "Labels of"),
        _text("status", "Status", status_words),
        _NOTE,
    ),
    rows=lambda table: table[table["estimator"].isin(_CORRECTIONS)],
    suffix="-published",
)
_CORRECTIONS = ("mean-outcome", "ternary", "binary", "binary-by-length")
_COVERAGE = _Part(
    "adjustment_coverage",
    "One row per estimator: each voted model left out, as if it were new; or a third of them left "
    "out of the threshold alone",
    (
        _text("estimator", "Estimator", status_words),
        _text("left_out", "Left out"),
        _text("truth", "Held to"),
        Column("bias", "Bias", "share", _three),
        Column("mean_absolute_error", "Mean absolute error", "share", _three),
        Column("mean_width", "Mean width", "share", _three),
        Column("win_rate_coverage", "Coverage", "share of models", _three),
        Column("n_models", "Models", "with an estimate", count),
        Column("n_without", "Without", "models", count),
    ),
    rows=lambda table: table[table["grouping"].eq("all")] if "grouping" in table else table,
)
_PLAN = _Part(
    "label_plan",
    "One row per model, or for the corpus, and way of choosing",
    (
        _text("level", "Model"),
        _text("chosen_by", "Chosen by"),
        Column("win_rate_half_width", "Half-width", "now", _three),
        Column("wanted_half_width", "Wanted", "half-width", _three),
        Column("n_more_won", "More labels", "won", count),
        Column("n_more_lost", "More labels", "lost", count),
        _text("plan", "In words"),
    ),
)
_REFERENCE = _Part(
    "reference_ratings",
    "One row per model: its gap to the reference in the judge's eyes, no votes needed",
    (
        Column("rank", "Rank", "", count),
        _text("model", "Model"),
        Column("gap", "Gap", "Elo", _one),
        Column("lower", "from", "Elo", _one),
        Column("upper", "to", "Elo", _one),
        Column("win_share", "Win share", "against the reference", _three),
        Column("n_prompts", "Prompts", "", number),
        _text("flags", "Flags", _flags),
    ),
)
_REACH = _Part(
    "reference_diagnostics",
    "One row per diagnostic; marked where the reference fails it",
    (
        _text("diagnostic", "Diagnostic", status_words),
        _text("level", "Level"),
        Column("value", "Value", "", significant),
        _text("unit", "Unit"),
        Column("threshold", "Threshold", "", significant),
        _text("passed", "Result", _verdict_words),
        _NOTE,
    ),
    marked=lambda row: pd.notna(row.passed) and not row.passed,
)
_LEARNT = _Part(
    "quantitative_judges",
    "One row per method, size of training set and measure; the base judge beside",
    (
        _text("method", "Method", method_words),
        Column("n_train", "Trained on", "battles", count),
        _text("metric", "Measure", status_words),
        Column("value", "Quantitative judge", "", _three),
        Column("score_only", "The same fit", "without reasons", _three),
        Column("base", "Base judge", "", _three),
        Column("std_dev", "Spread", "over training sets", _three),
    ),
)
_CONTROLS = _Part(
    "attack_controls",
    "One row per attack control; marked where it rose above its bound",
    (
        _text("control", "Control", status_words),
        _text("model", "Name"),
        Column("rating", "Rating", "Elo", _one),
        Column("lower", "from", "Elo", _one),
        Column("upper", "to", "Elo", _one),
        Column("bound", "Bound", "Elo", _one),
        Column("rise", "Rise", "Elo above the bound", _rise),
        Column("n_battles", "Battles", "judged", count),
        _text("bound_is", "The bound is"),
        _NOTE,
    ),
    marked=lambda row: pd.notna(row.rise) and row.rise > 0,
)
_PREDICTIONS = _Part(
    "predictions",
    "One row per model that stood here without votes, one more once it had some; marked where its "
    "interval missed",
    (
        _text("model", "Model"),
        _text("predicted_at", "Predicted"),
        _text("method", "Method", method_words),
        Column("rating", "Rating", "Elo", _one),
        Column("lower", "from", "Elo", _one),
        Column("upper", "to", "Elo", _one),
        Column("human_rating", "Human rating", "Elo, later", _one),
        Column("origin_shift", "Zero moved", "Elo", _rise),
        Column("residual", "Residual", "Elo, zero as then", _rise),
        Column("n_votes", "Votes", "human", count),
        _text("covered", "Held", _yes),
        _text("scored_at", "Scored"),
    ),
    marked=lambda row: pd.notna(row.covered) and not row.covered,
)
_DRIFT = _Part(
    "judge_drift",
    "One row per statistic, from the latest answers; marked where it moved",
    (
        _text("statistic", "Statistic", status_words),
        Column("baseline", "Baseline", "", significant),
        Column("now", "Now", "", significant),
        Column("change", "Change", "", significant),
        Column("std_error", "Standard error", "of the change", significant),
        Column("z", "z", "standard errors", partial(number, digits=2, signed=True)),
        Column("n_battles", "Battles", "asked again", count),
        Column("epoch", "Epoch", "", count),
        _text("asked_at", "Asked"),
        _text("moved", "Moved", _yes),
    ),
    rows=lambda table: table[table["epoch"].eq(table["epoch"].max())],
    marked=lambda row: pd.notna(row.moved) and bool(row.moved),
)

SECTIONS = (
    _Section(
        "Attack controls",
        "Contestants that try to win without answering: a constant answer, an instruction to the "
        "judge, a copy of the opponent. They stand apart from the leaderboard. A judge that rates "
        "one above its bound can be gamed that way.",
        (_CONTROLS,),
        places_models=True,
    ),
    _Section(
        "Predictions kept",
        "What was said of models before people voted on them, and what people said then. A row is "
        "never rewritten.",
        (_PREDICTIONS,),
        places_models=True,
    ),
    _Section(
        "Drift of the judge",
        "A fixed set of battles, put to the judge again from time to time.",
        (_DRIFT,),
    ),
    _Section(
        "Judge gate",
        "A judge that fails a criterion that withholds has no ratings here. What could not be "
        "measured is said and withholds nothing.",
        (_GATE,),
    ),
    _Section(
        "Adjusted win rates",
        "How often people would prefer each model to its opponents: the judge's outcomes plus the "
        f"mean of vote minus judge's outcome. {HEADLINE_RULE} The former takes it from votes on "
        "the model, the latter from votes on the other models, whose own errors make the interval.",
        (_WIN_RATES, _COVERAGE, _PUBLISHED, _PLAN),
        places_models=True,
    ),
    _Section(
        "Against a reference",
        "Elo gaps to one model in the eyes of this judge: a ranking without votes, which inherits "
        "all of its errors.",
        (_REFERENCE, _REACH),
        places_models=True,
    ),
    _Section(
        "Consistency",
        "Whether single scores and choices agree, and whether choices can be put in an order.",
        (_CONSISTENCY, _CONSISTENCY_PARTS),
    ),
    _Section(
        "Quantitative judges",
        "Regressions of votes on what the judge wrote, tested on questions that they did not see.",
        (_LEARNT,),
    ),
)
"""The companions, in the order of the page."""

COMPANIONS: tuple[str, ...] = tuple(
    dict.fromkeys(part.asset for one in SECTIONS for part in one.parts)
)
"""Assets whose tables are shown where a judge has them."""

PLACING: frozenset[str] = frozenset(
    part.asset for one in SECTIONS if one.places_models for part in one.parts
)
"""Those that place models, so that nothing of them is shown of a withheld judge."""


def companions_of(
    tables: Mapping[str, pd.DataFrame], key: str, *, withheld: bool = False
) -> list[Companion]:
    """Return the companion sections of a judge."""
    shown_of = [section for section in SECTIONS if not (withheld and section.places_models)]
    made = [(section, _tables(section.parts, tables, key)) for section in shown_of]
    return [
        Companion(section.title, [section.sentence, *_particulars(section, tables)], shown)
        for section, shown in made
        if shown
    ]


def _particulars(section: _Section, tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return what has to be said of this corpus: to whom gaps are, how predictions fared."""
    asset = section.parts[0].asset
    tell = {"reference_ratings": _reference, "predictions": _coverage_so_far}.get(asset)
    return [tell(tables[asset])] if tell else []


def _reference(table: pd.DataFrame) -> str:
    names = table["reference_model"].unique()
    return f"The reference is {', '.join(names)}; another one gives other gaps."


def _coverage_so_far(table: pd.DataFrame) -> str:
    by_method = table.groupby("method", sort=True)
    return " ".join(_coverage_by(method_words(str(name)), rows) for name, rows in by_method)


def _coverage_by(method: str, table: pd.DataFrame) -> str:
    scored, by = table[table["covered"].notna()], f"By {method}"
    if scored.empty:
        return f"{by}: none of {count(len(table))} predictions could be held against votes yet."
    held, asked = scored["covered"].astype(bool).mean(), 1 - scored["miscoverage"].astype(float)
    return (
        f"{by}: {count(len(scored))} of {count(len(table))} predictions could be held against "
        f"votes: {percent(held)} of their intervals held the human rating, "
        f"{percent(asked.mean())} was asked for."
    )


def _tables(parts: Sequence[_Part], tables: Mapping[str, pd.DataFrame], key: str) -> list[Table]:
    found = [
        (part, part.rows(tables[part.asset]))
        for part in parts
        if part.asset in tables and len(tables[part.asset])
    ]
    return [
        Table(
            f"{key}-{part.asset.replace('_', '-')}{part.suffix}",
            make_grid(rows, part.caption, part.columns, marked=part.marked, mark="warns"),
        )
        for part, rows in found
        if len(rows)
    ]
