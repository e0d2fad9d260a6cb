"""Every scoring method of a judge, rated on the battles that all of them scored."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judgeline.elo import HeldOutRatings, ScoringMethod, rate, summarise
from judgeline.io import LEAST_SHARE, as_table
from judgeline.steps.coding import coded, rating_settings, units
from judgeline.steps.intervals import calibrated
from judgeline.steps.step import Made, step
from judgeline.tables.elo import SCORING_METHODS
from judgeline.tables.ids import is_among
from judgeline.tables.quantitative import QUANTITATIVE_OUTCOMES
from judgeline.tables.trust import SOFT_OUTCOMES


class _Kind(NamedTuple):
    """Where a method comes from: the table, rows (`source`) and column, whose calls it costs."""

    table: str
    source: str
    column: str
    spent_on: str


_CHOICES, _SCORES, _RUBRIC = "choice_verdicts", "score_verdicts", "verdicts"

KINDS: dict[str, _Kind] = {
    "hard": _Kind("scored_battles", "", "judge_outcome", _RUBRIC),
    "soft": _Kind("scored_battles", "", "score_difference", _RUBRIC),
    "choice": _Kind("soft_outcomes", "choice", "outcome", _CHOICES),
    "perplexity": _Kind("soft_outcomes", "perplexity", "outcome", _CHOICES),
    "likelihood": _Kind("soft_outcomes", "likelihood", "soft_outcome", _CHOICES),
    "likelihood-calibrated": _Kind("soft_outcomes", "likelihood", "lean", _CHOICES),
    "score-plain": _Kind("soft_outcomes", "score-plain", "score_difference", _SCORES),
    "score": _Kind("soft_outcomes", "score", "score_difference", _SCORES),
    "btl": _Kind("quantitative_outcomes", "btl", "outcome", _RUBRIC),
    "btl2": _Kind("quantitative_outcomes", "btl2", "outcome", _SCORES),
}
"""Every scoring method, in the order in which they are shown."""

_SPENT = ("n_calls", "prompt_tokens", "completion_tokens")
_ERRORS = ("mae", "mae_rescaled", "bias", "stretch", "spearman", "kendall", "mean_beta")
FIGURES = (*_ERRORS, "threshold", "coverage", "median_width")
"""Columns that rest on ratings, and are null where there are none to show."""

_BOUNDS = ["threshold", "coverage", "median_width", "note"]
_OWN = ("hard", "soft")
_WHY_ABSENT = {
    "scored_battles": "no battle has rubric scores",
    "soft_outcomes": "the judge is not asked for it, or its answers do not support it; see the "
    "note of soft_outcomes",
    "quantitative_outcomes": "no embedded rationales, or too few votes to learn from; see the note "
    "of quantitative_outcomes",
}


@dataclass(frozen=True)
class GatheredMethods:
    """Scoring methods on the battles that all of them scored.

    The battles carry ``hard`` and ``soft`` themselves, `methods` has the others. `available`
    counts the battles that a method scored by itself; `notes` say why a method is left out.
    """

    battles: pd.DataFrame
    methods: Mapping[str, ScoringMethod]
    available: Mapping[str, int]
    notes: Mapping[str, str]


def gather_methods(
    scored_battles: pd.DataFrame,
    soft_outcomes: pd.DataFrame,
    quantitative_outcomes: pd.DataFrame,
) -> GatheredMethods:
    """Return every scoring method that a judge's tables support, on the same battles.

    The last two tables may be empty. ValueError if a table has a battle twice for a method, or an
    outcome for one fold and not another.
    """
    tables = {
        "scored_battles": scored_battles.assign(source=""),
        "soft_outcomes": soft_outcomes.assign(lean=soft_outcomes["soft_outcome"] - 0.5),
    }
    found: dict[str, pd.DataFrame] = {}
    for name, kind in KINDS.items():
        if kind.table == "quantitative_outcomes":
            found[name] = _by_fold(quantitative_outcomes, kind.source)
        else:
            found[name] = _by_battle(tables[kind.table], kind, name)
    index = pd.Index(scored_battles["battle_id"])
    available = {name: int(is_among(table.index, index).sum()) for name, table in found.items()}
    notes = {name: _WHY_ABSENT[KINDS[name].table] for name, n in available.items() if not n}
    index, left_out = _common(index, found, [name for name in KINDS if name not in notes])
    notes |= left_out
    kept = [name for name in KINDS if name not in notes]
    battles = scored_battles[is_among(scored_battles["battle_id"], index)].reset_index(drop=True)
    models = sorted({*battles["model_a"], *battles["model_b"]})
    methods = {
        name: _method(found[name].loc[battles["battle_id"]], KINDS[name], models)
        for name in kept
        if name not in _OWN
    }
    return GatheredMethods(battles, methods, available, notes)


def _by_battle(table: pd.DataFrame, kind: _Kind, name: str) -> pd.DataFrame:
    """Return a method's values by battle, without those that it does not have."""
    own = table.loc[table["source"].eq(kind.source), ["battle_id", kind.column]].dropna()
    if own["battle_id"].duplicated().any():
        twice = own.loc[own["battle_id"].duplicated(), "battle_id"].iloc[0]
        raise ValueError(f"{kind.table} has battle {twice!r} twice for {name!r}; remake it")
    return own.set_index("battle_id").astype(float)


def _by_fold(outcomes: pd.DataFrame, method: str) -> pd.DataFrame:
    """Return a learnt method's outcomes, battles by held-out model, only battles with all."""
    own = outcomes[outcomes["method"].eq(method)]
    # pivot refuses a battle that is there twice, pivot_table averages it away
    wide = own.pivot(index="battle_id", columns="held_out_model", values="outcome")  # noqa: PD010
    return wide.dropna().astype(float)


def _common(
    scored: pd.Index, found: Mapping[str, pd.DataFrame], names: list[str]
) -> tuple[pd.Index, dict[str, str]]:
    """Return the battles of all methods that are kept, and why others are not.

    The rubric's own methods come first, then the others by scored battles. A method that would
    leave less than `LEAST_SHARE` of the scored battles to all is left out.
    """
    common, notes = scored, {}
    for name in sorted(names, key=lambda name: (name not in _OWN, -len(found[name]))):
        shared = common[is_among(common, found[name].index)]
        if len(shared) >= LEAST_SHARE * len(scored):
            common = shared
            continue
        notes[name] = (
            f"it would leave {len(shared):,} of {len(scored):,} battles to all methods, below "
            f"{LEAST_SHARE:.0%}: left out, so that the others keep theirs"
        )
    return common, notes


def _method(values: pd.DataFrame, kind: _Kind, models: list[str]) -> ScoringMethod:
    if kind.table == "quantitative_outcomes":
        lacking = [model for model in models if model not in values.columns]
        if lacking:
            raise ValueError(
                f"quantitative_outcomes of {kind.source!r} has no fold for {lacking[:5]}; remake it"
            )
        return ScoringMethod(outcome=values[models].to_numpy().T)
    column = values[kind.column].to_numpy()
    if kind.column in ("score_difference", "lean"):
        return ScoringMethod(score_difference=column)
    return ScoringMethod(outcome=column)


Spent = tuple[int, float, float]
_NOTHING: Spent = (0, np.nan, np.nan)


def count_spending(verdicts: Mapping[str, pd.DataFrame]) -> dict[str, Spent]:
    """Return calls, prompt tokens and completion tokens behind every scoring method.

    `verdicts` has a judge's ``verdicts``, ``choice_verdicts`` and ``score_verdicts``. Rows with
    one identity are one call; tokens are NaN where a call does not tell its own.
    """
    spent = {name: _calls(table) for name, table in verdicts.items()}
    return {method: spent.get(kind.spent_on, _NOTHING) for method, kind in KINDS.items()}


def tabulate_methods(
    gathered: GatheredMethods,
    summary: pd.DataFrame,
    intervals: pd.DataFrame,
    spent: Mapping[str, Spent],
) -> pd.DataFrame:
    """Return one row per scoring method: its errors, its intervals, its battles and its price.

    `summary` and `intervals` have by ``method`` the agreement with human ratings and the conformal
    intervals; `spent` is from `count_spending`. A method that was left out has a note.
    """
    errors, bounds = summary.set_index("method"), intervals.set_index("method")
    table = pd.DataFrame(index=pd.Index(KINDS, name="method")).join(errors).join(bounds[_BOUNDS])
    ruled = errors["mae"].reindex([f"{name}-rescaled" for name in KINDS])
    n_common = len(gathered.battles)
    table = table.assign(
        mae_rescaled=ruled.to_numpy(),
        n_models=table["n_models"].fillna(0).astype("int64"),
        n_battles=[0 if name in gathered.notes else n_common for name in KINDS],
        n_available=[gathered.available[name] for name in KINDS],
        note=[gathered.notes.get(name) or table["note"].get(name) for name in KINDS],
        **{part: [spent[name][place] for name in KINDS] for place, part in enumerate(_SPENT)},
    )
    table = _without_partial(table.fillna({"note": ""}))
    return table.reset_index()[SCORING_METHODS.columns]


def _without_partial(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table without the figures of methods that rate some of the models only."""
    whole = table.loc["hard", "n_models"]
    partial = table["n_battles"].gt(0) & table["n_models"].lt(whole)
    notes = [
        f"it rates {n} of {whole} models: its score goes with votes in the wrong direction, or "
        "not at all, where the others are held out"
        for n in table.loc[partial, "n_models"]
    ]
    table.loc[partial, "note"] = notes
    table.loc[partial, list(FIGURES)] = np.nan
    return table


def _calls(table: pd.DataFrame) -> Spent:
    named = table["identity"].notna() & table["identity"].ne("")
    calls = pd.concat([table[named].drop_duplicates("identity"), table[~named]])
    tokens = calls[["prompt_tokens", "completion_tokens"]].astype("Float64").sum(skipna=False)
    asked, said = tokens.to_numpy(dtype=float, na_value=np.nan)
    return len(calls), float(asked), float(said)


_NO_VOTES = (
    "nobody voted on a scored battle: methods have no human rating to be held against; "
    "reference_ratings need none"
)


@step(
    SCORING_METHODS,
    reads=(
        "hard_outcome", "l2", "n_resamples", "std_error", "seed", "resample_by", "miscoverage",
        "n_splits", "families",
    ),
)  # fmt: skip
def scoring_methods(
    scored_battles: pd.DataFrame,
    soft_outcomes: pd.DataFrame | None,
    quantitative_outcomes: pd.DataFrame | None,
    verdicts: pd.DataFrame | None,
    choice_verdicts: pd.DataFrame | None,
    score_verdicts: pd.DataFrame | None,
    *,
    settings: Any,
) -> Made:
    """A scoring method of the judge: how near and how sure its ratings are, and what they cost.

    All methods rate on the same battles; ratings by `hard` and `soft` differ from those of
    heldout_ratings where another method did not score a battle. Errors and widths in Elo points,
    the threshold in standard errors. A method that the judge's verdicts do not support has a note
    in place of numbers.
    """
    if scored_battles["human_outcome"].isna().all():
        return Made(SCORING_METHODS.empty(), {"note": _NO_VOTES})
    gathered = gather_methods(
        scored_battles,
        SOFT_OUTCOMES.empty() if soft_outcomes is None else soft_outcomes,
        QUANTITATIVE_OUTCOMES.empty() if quantitative_outcomes is None else quantitative_outcomes,
    )
    ratings = rate_methods(gathered, settings)
    asked = {
        "verdicts": verdicts,
        "choice_verdicts": choice_verdicts,
        "score_verdicts": score_verdicts,
    }
    spent = count_spending({name: table for name, table in asked.items() if table is not None})
    summary, intervals = as_table(summarise(ratings)), calibrated(ratings, settings)
    table = tabulate_methods(gathered, summary, intervals, spent)
    by_model = as_table(ratings).pivot_table("rating", "model", "method")
    by_model = by_model.reindex(columns=["human", "hard", "soft", *gathered.methods])
    return Made(
        table,
        {
            "ratings": by_model.reset_index(),
            "n_battles": len(gathered.battles),
            "n_scored_battles": len(scored_battles),
            "left_out": gathered.notes,
        },
    )


def rate_methods(gathered: GatheredMethods, settings: Any) -> HeldOutRatings:
    """Return the ratings of all models by every gathered method."""
    battles, rating = gathered.battles, rating_settings(settings)
    n_resamples = rating.n_resamples if settings.std_error == "bootstrap" else 0
    rating = replace(rating, n_resamples=n_resamples, smoothing_levels=())
    cluster = units(battles, settings)
    return rate(coded(battles, settings), rating, gathered.methods, cluster=cluster)
