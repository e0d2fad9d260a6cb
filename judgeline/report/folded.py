"""Main finding of each folded section of the page: one sentence of its tables, or none.

A finding is computed from a table and can turn out otherwise. Columns that an earlier version did
not store make no sentence.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from string import Formatter
from typing import Any

import numpy as np
import pandas as pd

from judgeline.report.battles import Evidence
from judgeline.report.wording import (
    count,
    method_words,
    number,
    percent,
    rating_text,
    status_words,
)

Tables = Mapping[str, pd.DataFrame]


def _of_gate(table: pd.DataFrame) -> str:
    measured = table[table["passed"].notna()]
    failed = measured.loc[~measured["passed"].astype(bool), "criterion"]
    if measured.empty:
        return "No criterion could be measured."
    names = f": {', '.join(map(status_words, failed))}" if len(failed) else ""
    return f"{len(failed)} of {len(measured)} measured criteria failed{names}."


_WORDS: Mapping[str, Callable[[Any], str]] = {
    "": str,
    "1": partial(number, digits=1),
    "3": partial(number, digits=3),
    "signed": partial(number, signed=True),
    "count": count,
    "method": method_words,
    "status": status_words,
}


class _Sentence(Formatter):
    """A sentence with fields of a row, such as ``{mae:1}``, in the words that `_WORDS` names."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return a value of the row in words."""
        return _WORDS[format_spec](value)


def _extreme(table: pd.DataFrame, column: str, text: str, none: str = "", *, sign: int = 1) -> str:
    """Return the sentence on the row with the largest value, or with sign -1 the smallest."""
    known = table[table[column].notna()]
    if known.empty:
        return none
    return _Sentence().vformat(text, (), known.loc[(sign * known[column].astype(float)).idxmax()])


def _of_win_rates(table: pd.DataFrame) -> str:
    shown = table[table["headline"].astype(bool)]
    n_known = shown["win_rate"].notna().sum()
    text = f"{{model}} has the highest, {{win_rate:3}}; {n_known} of {len(shown)} models have one."
    none = f"None of {len(shown)} models has an adjusted win rate."
    return _extreme(shown, "win_rate", text, none)


def _of_plain_ratings(table: pd.DataFrame) -> str:
    whole = table[table["grouping"].eq("all") & table["rating"].notna()]
    first = whole.loc[whole.groupby("source")["rating"].idxmax()]
    named = [f"{row.model} by outcomes of {row.source}" for row in first.itertuples()]
    return f"Highest: {', '.join(named)}." if named else ""


def _of_reference(table: pd.DataFrame) -> str:
    text = "{model} stands highest, {gap:signed} Elo from {reference_model}."
    return _extreme(table, "gap", text, f"None of {len(table)} models has a gap to the reference.")


def _of_consistency(table: pd.DataFrame) -> str:
    whole = table[table["category"].eq("all") & table["dimension"].eq("overall")]
    text = (
        "The largest ratio of contradictions is {ratio:3}: {measure:status}, comparisons by "
        "{source}."
    )
    return _extreme(whole, "ratio", text, "No ratio could be counted.")


def _of_learnt(table: pd.DataFrame) -> str:
    text = (
        "The highest accuracy is {value:3}, by {method:method} from {n_train:count} battles; its "
        "base judge has {base:3}."
    )
    return _extreme(table[table["metric"].eq("accuracy")], "value", text)


def _of_controls(table: pd.DataFrame) -> str:
    controls = table[table["control"].notna()]
    bounded = controls[controls["rise"].notna()]
    if bounded.empty:
        return "No control has a bound." if len(controls) else ""
    rose = int((bounded["rise"] > 0).sum())
    return f"{rose} of {len(bounded)} controls with a bound rose above it."


def _of_drift(table: pd.DataFrame) -> str:
    latest = table[table["epoch"].eq(table["epoch"].max())]
    known = latest[latest["moved"].notna()]
    if known.empty:
        return "No statistic could be compared."
    return f"{int(known['moved'].astype(bool).sum())} of {len(known)} statistics moved."


def _of_predictions(table: pd.DataFrame) -> str:
    by_method = table.groupby("method", sort=True)
    return " ".join(_held_text(method_words(str(name)), rows) for name, rows in by_method)


def _held_text(method: str, table: pd.DataFrame) -> str:
    scored, by = table[table["covered"].notna()], f"By {method}"
    if scored.empty:
        return f"{by}: none of {count(len(table))} predictions could be held against votes yet."
    held, asked = scored["covered"].astype(bool).mean(), 1 - scored["miscoverage"].astype(float)
    return (
        f"{by}: {count(len(scored))} of {count(len(table))} predictions could be held against "
        f"votes: {percent(held)} of their intervals held the human rating, "
        f"{percent(asked.mean())} was asked for."
    )


_FINDINGS: dict[str, tuple[Callable[[pd.DataFrame], str], str]] = {
    "judge_gate": (_of_gate, "criterion passed"),
    "adjusted_win_rates": (_of_win_rates, "model headline win_rate"),
    "plain_ratings": (_of_plain_ratings, "source grouping model rating"),
    "reference_ratings": (_of_reference, "model reference_model gap"),
    "consistency": (_of_consistency, "category dimension ratio measure source"),
    "quantitative_judges": (_of_learnt, "method metric value n_train base"),
    "candidate_ratings": (_of_controls, "control rise"),
    "judge_drift": (_of_drift, "epoch moved"),
    "predictions": (_of_predictions, "method covered miscoverage"),
}


def companion_finding(assets: Sequence[str], tables: Tables) -> str:
    """Return the finding of a companion section from its first table that is there."""
    for asset in assets:
        table = tables.get(asset)
        if table is not None and not table.empty and asset in _FINDINGS:
            finding, columns = _FINDINGS[asset]
            return finding(table) if {*columns.split()} <= {*table} else ""
    return ""


def residual_finding(heldout: pd.DataFrame, method: str) -> str:
    """Return the model that the judge misjudges most, by a rating method."""
    own = heldout[heldout["method"].eq(method)]
    own = own.assign(distance=own["residual"].astype(float).abs())
    text = (
        "The judge is farthest from people on {model}: {residual:signed} Elo, judge minus people."
    )
    return _extreme(own, "distance", text)


def methods_finding(summary: pd.DataFrame, ranking: str) -> str:
    """Return the rating method with the smallest error, and the error of the ranking one."""
    errors = summary.set_index("method")["mae"].drop("human", errors="ignore").dropna()
    if errors.empty:
        return ""
    best = errors.idxmin()
    text = f"{method_words(str(best))} has the smallest error, {number(errors[best], 1)} Elo"
    if best == ranking:
        return f"{text}, and ranks."
    ranks = number(errors.get(ranking, math.nan), 1)
    return f"{text}; {method_words(ranking)}, which ranks, has {ranks}."


def coverage_finding(conformal: pd.DataFrame, ranking: str) -> str:
    """Return the width of intervals by the ranking method, and how often groups set apart held."""
    own = conformal[conformal["method"].eq(ranking)].to_dict("records")
    if not own:
        return ""
    row: dict[str, Any] = own[0]
    if np.isinf(row["threshold"]):
        return f"Intervals by {method_words(ranking)} are unbounded."
    median, by = row["median_width"], method_words(ranking)
    width = f"Median width {number(median)} Elo" if np.isfinite(median) else "Width not tried"
    held = row.get("structured_coverage", math.nan)  # not of earlier versions
    if pd.isna(held):
        return f"{width} by {by}; not tried on models unlike those that calibrate."
    asked = percent(1 - row["miscoverage"])
    return (
        f"{width} by {by}; {percent(held)} held of models unlike those that calibrate, {asked} "
        "was asked for."
    )


def battles_finding(battles: Sequence[Evidence]) -> str:
    """Return how many battles are shown, and the one that moves a rating most."""
    most = max(battles, key=lambda one: abs(one.influence))
    return (
        f"{count(len(battles))} battles; the strongest moves {most.model} by "
        f"{number(most.influence, 2, signed=True)} Elo."
    )


def diagnostics_finding(diagnostics: pd.DataFrame) -> str:
    """Return Cohen's kappa of judge and votes, and the number of diagnostics."""
    values = diagnostics.drop_duplicates("diagnostic").set_index("diagnostic")["value"]
    kappa = values.get("cohen_kappa", math.nan)
    return (
        f"{len(values)} numbers; Cohen's kappa of judge and human votes is "
        f"{'unknown' if pd.isna(kappa) else number(kappa, 2)}."
    )


def board_finding(board: pd.DataFrame) -> str:
    """Return the first model of a leaderboard with its rating; empty where none is rated."""
    rated = board[board["rating"].notna()]
    if rated.empty:
        return ""
    return f"{rated['model'].iloc[0]} stands first: {rating_text(rated.iloc[0].to_dict())}."


def scoring_finding(rated: pd.DataFrame) -> str:
    """Return the judge and scoring method with the smallest error, of rows in that order."""
    if rated.empty:
        return "No scoring method could be rated."
    best, worst = rated.iloc[0], rated.iloc[-1]
    return (
        f"{best['named']} by {method_words(best['method'])} is nearest to people, "
        f"{number(best['mae'], 1)} Elo off on average; the farthest of {len(rated)} is "
        f"{number(worst['mae'], 1)} off."
    )


def costs_finding(costs: pd.DataFrame) -> str:
    """Return the number of calls, of those without a verdict, and the price by currency."""
    n_calls, n_failed = (int(costs[name].fillna(0).sum()) for name in ("n_calls", "n_failed"))
    priced = costs[costs["price"].notna()]
    totals = priced.groupby("currency")["price"].sum() if len(priced) else {}
    price = ", ".join(f"{number(total, 2)} {currency}" for currency, total in totals.items())
    return (
        f"{count(n_calls)} calls were made, {count(n_failed)} of them without a verdict; "
        f"{f'price {price}' if price else 'no price is configured'}."
    )


def provenance_finding(provenance: Mapping[str, str]) -> str:
    """Return the number of settings and versions behind a page, and the version of this program."""
    made = provenance.get("judgeline")
    return f"{len(provenance)} settings and versions{f'; judgeline {made}' if made else ''}."


def section_finding(summary: pd.DataFrame, ranking: str, n_failed: int, withheld: str) -> str:
    """Return the error of a judge and its failed checks; of a withheld one, the reason."""
    checks = f"{n_failed} quality check{'' if n_failed == 1 else 's'} failed."
    if withheld:
        return f"Ratings are withheld: {withheld}. {checks}"
    own = summary[summary["method"].eq(ranking)]
    text = f"{{mae:1}} Elo from people on average over {{n_models:count}} models; {checks}"
    return _extreme(own, "mae", text, checks)


def smoothed_finding(table: pd.DataFrame) -> str:
    """Return the smallest error of the smoothed methods in a comparison of judges."""
    text = "Smoothed methods: the smallest error is {mae:1} Elo, by {judge} and {method:method}."
    return _extreme(table, "mae", text, "Smoothed methods: none has an error.", sign=-1)


def boards_finding(table: pd.DataFrame, columns: Sequence[str]) -> str:
    """Return the model on which boards differ most."""
    apart = table[list(columns)].max(axis=1) - table[list(columns)].min(axis=1)
    if apart.isna().all():
        return "Board against board."
    most = apart.astype(float).idxmax()
    return f"Board against board: they differ most on {most}, by {number(apart[most])} Elo."
