"""Sections of the companion methods, missing verdicts and costs, each from its own tables.

A part of the page has a title, sentences, tables and figures.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from judgeline.diagnostics import MAX_WIDTH, SCORED, width_limit
from judgeline.report.figures import Illustration
from judgeline.report.folded import companion_finding
from judgeline.report.grid import FORMATS, Grid, make_grid
from judgeline.report.wording import count, method_words, number, status_words
from judgeline.winrate import HEADLINE_RULE

FOLDED_FROM = 15
"""Rows from which a table is folded away until a reader asks for it."""


@dataclass(frozen=True)
class Table:
    """A grid of a companion, under a key of its own on the page."""

    key: str
    grid: Grid
    is_central: bool = False

    @property
    def folded(self) -> bool:
        """Whether the grid opens on demand: a long one does, unless the section is about it."""
        return len(self.grid.rows) >= FOLDED_FROM and not self.is_central


@dataclass(frozen=True)
class Companion:
    """Section on one companion method of calibrated Elo; figures stand before tables.

    One with tables is folded, and `finding` is what its summary says of them.
    """

    title: str
    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Illustration] = ()
    finding: str = ""


class _Part(NamedTuple):
    """One table of a section; `suffix` tells several parts of one asset apart."""

    asset: str
    caption: str
    columns: str
    rows: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table
    marked: Callable[[Any], bool] = lambda _row: False
    suffix: str = ""


class _Section(NamedTuple):
    """One method's part of the page; one that places models is not of a withheld judge."""

    title: str
    sentence: str
    parts: tuple[_Part, ...]
    places_models: bool = False


def _is(field: str, value: bool) -> Callable[[Any], bool]:
    """Return whether a row's answer is known and this one."""
    return lambda row: pd.notna(cell := getattr(row, field)) and bool(cell) is value


_GATE = _Part(
    "judge_gate",
    "One row per criterion; marked where the judge fails it",
    "criterion; value; direction; threshold: Limit ~significant; passed; withholds; note",
    marked=_is("passed", False),
)
_MEASURES = (
    "measure; source; scores; size; category; dimension; n: Counted | pairs or subsets; ratio; "
    "circular; equality"
)


def _is_whole(table: pd.DataFrame) -> pd.Series:
    return table["category"].eq("all") & table["dimension"].eq("overall")


_CONSISTENCY = _Part(
    "consistency",
    "One row per measure and source, over everything",
    _MEASURES,
    rows=lambda table: table[_is_whole(table)],
)
_CONSISTENCY_PARTS = _Part(
    "consistency",
    "One row per measure, source, category and criterion that was counted",
    _MEASURES,
    rows=lambda table: table[~_is_whole(table) & table["n"].gt(0)],
    suffix="-parts",
)
_WIN_RATES = _Part(
    "adjusted_win_rates",
    "One row per model: the win rate in people's eyes, the judge's own, and people's votes",
    "model; win_rate; win_rate_lower; win_rate_upper; estimator; naive_win_rate; human_win_rate; "
    "n_votes; n_battles; n_labelled; calibration; status; note",
    rows=lambda table: table[table["headline"].astype(bool)],
    marked=lambda row: row.status != "ok",
)
_CORRECTIONS = ("mean-outcome", "ternary", "binary", "binary-by-length")
_PUBLISHED = _Part(
    "adjusted_win_rates",
    "The published corrections, valid under label shift with a judge that errs alike on all models",
    "model; estimator; win_rate: Corrected | share; win_rate_lower; win_rate_upper; "
    "human_win_rate | as the row treats ties; sensitivity; specificity; calibration; status; note",
    rows=lambda table: table[table["estimator"].isin(_CORRECTIONS)],
    suffix="-published",
)
_COVERAGE = _Part(
    "adjustment_coverage",
    "One row per estimator: each voted model left out, as if it were new; or a third of them left "
    "out of the threshold alone",
    "estimator; left_out; truth; bias: Bias | share ~three; mean_absolute_error; mean_width; "
    "win_rate_coverage; n_models | with an estimate; n_without",
    rows=lambda table: table[table["grouping"].eq("all")] if "grouping" in table else table,
)
_PLAN = _Part(
    "label_plan",
    "One row per model, or for the corpus, and way of choosing",
    "level: Model; chosen_by; win_rate_half_width; wanted_half_width; n_more_won; n_more_lost; "
    "plan",
)
_PLAIN = _Part(
    "plain_ratings",
    "One row per source of outcomes, group of battles and model; 1500 is the mean of the models "
    "that chains of battles connect",
    "source: Outcomes of; grouping; group; model; rating; lower; upper; "
    "controlled_rating: Beside style | Elo ~one; n_battles: Battles | with an outcome ~count; "
    "component ~count",
)
_STYLE = _Part(
    "style_effects",
    "One row per source of outcomes, group of battles and style: what more of it adds to A's "
    "chances",
    "source: Outcomes of; grouping; group; covariate: More; "
    "effect: Effect | Elo per standard deviation ~signed; lower; upper; "
    "n_battles: Battles | with an outcome ~count",
    marked=lambda row: row.grouping == "all" and row.lower * row.upper > 0,
)
_REFERENCE = _Part(
    "reference_ratings",
    "One row per model: its gap to the reference in the judge's eyes, no votes needed",
    "rank; model; gap; lower; upper; win_share; n_prompts; flags",
)
_REACH = _Part(
    "reference_diagnostics",
    "One row per diagnostic; marked where the reference fails it",
    "diagnostic; level; value; unit; threshold | ~significant; passed; note",
    marked=_is("passed", False),
)
_LEARNT = _Part(
    "quantitative_judges",
    "One row per method, size of training set and measure; the base judge beside",
    "method; n_train; metric; value: Quantitative judge ~three; score_only; base; std_dev",
)
_CONTROLS = _Part(
    "candidate_ratings",
    "One row per attack control; marked where it rose above its bound",
    "control; model: Name; rating; lower; upper; bound; rise; n_battles; bound_is; note",
    rows=lambda table: (
        table[table["control"].notna()].sort_values("control")
        if "bound" in table
        else table.head(0)
    ),
    marked=lambda row: pd.notna(row.rise) and row.rise > 0,
)
_PREDICTIONS = _Part(
    "predictions",
    "One row per model that stood here without votes, one more once it had some; marked where its "
    "interval missed",
    "model; predicted_at; method; rating; lower; upper; human_rating; origin_shift; residual; "
    "n_votes | human; covered; scored_at",
    marked=_is("covered", False),
)
_DRIFT = _Part(
    "judge_drift",
    "One row per statistic, from the latest answers; marked where it moved",
    "statistic; baseline; now; change; std_error | of the change ~significant; z; "
    "n_battles | asked again; epoch; asked_at; moved; e_value ~significant; fresh_moved; verdict",
    rows=lambda table: table[table["epoch"].eq(table["epoch"].max())],
    marked=_is("moved", True),
)
_COSTS = "judge asset n_calls n_failed prompt_tokens completion_tokens price currency n_bought"
COST_COLUMNS = tuple(_COSTS.split())
"""One row per judge and table of verdicts; prices are of these tokens at the configured price."""

SECTIONS = (
    _Section(
        "Attack controls",
        "Contestants that try to win without answering: a constant answer, an instruction to the "
        "judge. They stand apart from the leaderboard. A judge that rates one above its bound can "
        "be gamed that way.",
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
        "Plain ratings",
        "Bradley-Terry ratings of the outcomes of people and of the judge as they are, as other "
        "leaderboards make them: not on the human scale, and only beside the board above. Length "
        "and Markdown are held equal in the column beside style. Components are of models that "
        "chains of battles connect; a language or category needs 100 battles with an outcome.",
        (_PLAIN, _STYLE),
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
    """Return the companion sections of a judge, those of which it has tables."""
    shown = []
    for section in (one for one in SECTIONS if not (withheld and one.places_models)):
        grids = []
        for part in section.parts:
            table = tables.get(part.asset)
            rows = None if table is None or table.empty else part.rows(table)
            if rows is not None and len(rows):
                name = f"{key}-{part.asset.replace('_', '-')}{part.suffix}"
                grid = make_grid(rows, part.caption, part.columns, marked=part.marked, mark="warns")
                grids.append(Table(name, grid))
        if grids:
            finding = companion_finding([part.asset for part in section.parts], tables)
            said = _sentences(section, tables)
            shown.append(Companion(section.title, said, grids, finding=finding))
    return shown


def _sentences(section: _Section, tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return the sentence of a section, the tables it lacks, and its reference."""
    said, table = [section.sentence], tables.get(section.parts[0].asset)
    missing = dict.fromkeys(part.asset for part in section.parts if part.asset not in tables)
    if missing:
        said.append(f"Not here, since not made or deleted: {', '.join(missing)}.")
    if table is not None and section.title == "Against a reference":
        names = ", ".join(table["reference_model"].unique())
        said.append(f"The reference is {names}; another one gives other gaps.")
    return said


def cost_grid(costs: pd.DataFrame | None) -> Grid | None:
    """Return the grid of calls, tokens and cost; None where no judge was asked."""
    if costs is None or costs.empty:
        return None
    return make_grid(
        costs,
        "One row per judge and table of verdicts",
        "judge; asset: Asked for; n_calls; n_failed | of them; prompt_tokens; "
        "completion_tokens: Answer tokens; price; currency; n_bought",
    )


# Battles without a score, and what they could change

_TITLE = "Missing verdicts"
_CLASSES = "status: Class; n_battles | without a score; share; n_verdicts | of that class"
_LEVELS = "grouping: By; level: Group; n_battles | sampled; n_missing; share; classes | battles"
_BOUNDS = (
    "model; method; rating; worst_rating; best_rating; width; half_width; "
    "n_missing | against voted models; n_battles: Scored | against voted models"
)


def missing_section(
    missingness: pd.DataFrame | None, missing_bounds: pd.DataFrame | None, key: str
) -> list[Companion]:
    """Return the section on a judge's missing verdicts; nothing without their table."""
    if missingness is None:
        return []
    whole = missingness[missingness["grouping"] == "all"]
    n_battles = int(whole["n_battles"].sum())
    failed = whole[whole["status"] != SCORED].sort_values("n_battles", ascending=False)
    n_missing, n_failed = int(failed["n_battles"].sum()), int(failed["n_verdicts"].sum())
    if not n_missing:
        said = f"Every one of the {count(n_battles)} sampled battles has a score"
        stood_in = f"; {count(n_failed)} verdicts failed and another replicate stood in"
        return [Companion(_TITLE, [f"{said}{stood_in if n_failed else ''}."])]
    finding = (
        f"{count(n_missing)} of {count(n_battles)} sampled battles "
        f"({FORMATS['share'](n_missing / n_battles)}) have no score."
    )
    told = [
        "They count as nothing, neither a tie nor a loss; a battle takes the class of its first "
        "order that failed."
    ]
    absent = {"language", "length"} - set(missingness["grouping"])
    if absent:
        told.append(f"The corpus publishes no {' and no '.join(sorted(absent))} to count them by.")
    classes = make_grid(failed, "One row per class of battles without a score", _CLASSES)
    tables = [Table(f"{key}-missing", classes, is_central=True)]
    if missing_bounds is not None and (missing_bounds["n_missing"] > 0).any():
        sentences, grid = _bounds(missing_bounds[missing_bounds["n_missing"] > 0])
        told += sentences
        tables.append(Table(f"{key}-bounds", grid))
    tables.append(Table(f"{key}-missing-levels", _levels(missingness)))
    return [Companion(_TITLE, told, tables, finding=finding)]


def _bounds(bounds: pd.DataFrame) -> tuple[list[str], Grid]:
    """Return sentences on the ranges of ratings that missing battles leave open, and their grid."""
    bounds = bounds.assign(
        width=bounds["best_rating"] - bounds["worst_rating"],
        limit=width_limit(bounds["half_width"]),
    ).sort_values(["width", "model"], ascending=[False, True], na_position="first")
    is_wide = bounds["width"].isna() | (bounds["width"] > bounds["limit"])
    return _bound_sentences(bounds), make_grid(
        bounds.assign(is_wide=is_wide),
        "One row per model with missing battles, by hard and by soft ratings; marked where the "
        "range exceeds what the interval reaches to either side, or "
        f"{MAX_WIDTH:g} Elo where that is unbounded",
        _BOUNDS,
        marked=lambda row: bool(row.is_wide),
        mark="warns",
    )


def _levels(missingness: pd.DataFrame) -> Grid:
    """Return groups in which battles are missing, the classes of each in one cell."""
    grouped = missingness[missingness["grouping"] != "all"]
    failed = grouped[(grouped["status"] != SCORED) & (grouped["n_battles"] > 0)]
    words = [
        f"{status_words(status)} {count(n)}"
        for status, n in zip(failed["status"], failed["n_battles"], strict=True)
    ]
    keys = ["grouping", "level"]
    totals = grouped.groupby(keys)["n_battles"].sum()
    rows = failed.assign(classes=words).groupby(keys, sort=False)
    table = rows.agg(n_missing=("n_battles", "sum"), classes=("classes", ", ".join))
    table = table.join(totals).reset_index()
    table = table.assign(share=table["n_missing"] / table["n_battles"])
    caption = "One row per group with missing battles; by model, a battle counts for both models"
    return make_grid(table, caption, _LEVELS)


def _bound_sentences(bounds: pd.DataFrame) -> list[str]:
    told = [
        "Had they a score, whatever it were, a model's rating would lie between its worst case "
        "(all of its missing battles lost, as clearly as a verdict can say) and its best (all "
        "won), with the models it is placed among and the slope as they are. Where one order of a "
        "battle was read, that verdict is not used: the range holds, and may be wider than needed. "
        "Ranges are of hard and soft ratings; a board ranked by another method, such as auto, has "
        "none of its own."
    ]
    known = bounds[bounds["width"].notna()]
    if len(known):
        widest = known.iloc[0]
        told.append(
            f"The widest such range is {number(widest['width'], 1)} Elo, of {widest['model']} "
            f"({method_words(widest['method'])})."
        )
    unrated = sorted(set(bounds.loc[bounds["width"].isna(), "model"]))
    if unrated:
        told.append(f"No rating to bound: {', '.join(unrated)}.")
    return told
