"""Main finding of each folded section of the page: one sentence of its tables, or none.

A finding is computed from a table and can turn out otherwise. Columns that an earlier version did
not store make no sentence.
"""

import math
from collections.abc import Callable, Mapping, Sequence
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


def _of_win_rates(table: pd.DataFrame) -> str:
    shown = table[table["headline"].astype(bool)]
    known = shown[shown["win_rate"].notna()]
    if known.empty:
        return f"None of {len(shown)} models has an adjusted win rate."
    best = known.loc[known["win_rate"].idxmax()]
    return (
        f"{best['model']} has the highest, {number(best['win_rate'], 3)}; {len(known)} of "
        f"{len(shown)} models have one."
    )


def _of_plain_ratings(table: pd.DataFrame) -> str:
    whole = table[table["grouping"].eq("all") & table["rating"].notna()]
    first = whole.loc[whole.groupby("source")["rating"].idxmax()]
    named = [f"{row.model} by outcomes of {row.source}" for row in first.itertuples()]
    return f"Highest: {', '.join(named)}." if named else ""


def _of_reference(table: pd.DataFrame) -> str:
    known = table[table["gap"].notna()]
    if known.empty:
        return f"None of {len(table)} models has a gap to the reference."
    best = known.loc[known["gap"].idxmax()]
    return (
        f"{best['model']} stands highest, {number(best['gap'], signed=True)} Elo from "
        f"{best['reference_model']}."
    )


def _of_consistency(table: pd.DataFrame) -> str:
    whole = table[table["category"].eq("all") & table["dimension"].eq("overall")]
    whole = whole[whole["ratio"].notna()]
    if whole.empty:
        return "No ratio could be counted."
    worst = whole.loc[whole["ratio"].idxmax()]
    return (
        f"The largest ratio of contradictions is {number(worst['ratio'], 3)}: "
        f"{status_words(worst['measure'])}, comparisons by {worst['source']}."
    )


def _of_learnt(table: pd.DataFrame) -> str:
    known = table[table["metric"].eq("accuracy") & table["value"].notna()]
    if known.empty:
        return ""
    best = known.loc[known["value"].idxmax()]
    return (
        f"The highest accuracy is {number(best['value'], 3)}, by {method_words(best['method'])} "
        f"from {count(best['n_train'])} battles; its base judge has {number(best['base'], 3)}."
    )


def _of_controls(table: pd.DataFrame) -> str:
    controls = table[table["control"].notna()]
    bounded = controls[controls["rise"].notna()]
    rose = int((bounded["rise"] > 0).sum())
    return f"{rose} of {len(bounded)} controls with a bound rose above it."


def _of_drift(table: pd.DataFrame) -> str:
    latest = table[table["epoch"].eq(table["epoch"].max())]
    known = latest[latest["moved"].notna()]
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
    own = heldout[heldout["method"].eq(method) & heldout["residual"].notna()]
    if own.empty:
        return ""
    worst = own.loc[own["residual"].astype(float).abs().idxmax()]
    return (
        f"The judge is farthest from people on {worst['model']}: "
        f"{number(worst['residual'], signed=True)} Elo, judge minus people."
    )


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
    """Return the calls that were answered, the failed ones, and their price by currency."""
    n_calls, n_failed = (int(costs[name].fillna(0).sum()) for name in ("n_calls", "n_failed"))
    priced = costs[costs["price"].notna()]
    totals = priced.groupby("currency")["price"].sum() if len(priced) else {}
    price = ", ".join(f"{number(total, 2)} {currency}" for currency, total in totals.items())
    return (
        f"{count(n_calls)} calls were answered, {count(n_failed)} of them without a verdict; "
        f"{f'price {price}' if price else 'no price is configured'}."
    )


def provenance_finding(provenance: Mapping[str, str]) -> str:
    """Return the number of settings and versions behind a page, and the version of this program."""
    made = provenance.get("judgeline")
    return f"{len(provenance)} settings and versions{f'; judgeline {made}' if made else ''}."


def section_finding(board: pd.DataFrame, error: float, n_failed: int, withheld: str) -> str:
    """Return the error of a judge and its failed checks; of a withheld one, the reason."""
    checks = f"{n_failed} quality check{'' if n_failed == 1 else 's'} failed."
    if withheld:
        return f"Ratings are withheld: {withheld}. {checks}"
    if math.isnan(error):
        return checks
    n_voted = int(board["human_rating"].notna().sum())
    return f"{number(error, 1)} Elo from people on average over {n_voted} models; {checks}"


def smoothed_finding(table: pd.DataFrame) -> str:
    """Return the smallest error of the smoothed methods in a comparison of judges."""
    known = table[table["mae"].notna()]
    if known.empty:
        return "Smoothed methods: none has an error."
    best = known.loc[known["mae"].idxmin()]
    return (
        f"Smoothed methods: the smallest error is {number(best['mae'], 1)} Elo, by "
        f"{best['judge']} and {method_words(best['method'])}."
    )


def boards_finding(table: pd.DataFrame, columns: Sequence[str]) -> str:
    """Return the model on which boards differ most."""
    apart = table[list(columns)].max(axis=1) - table[list(columns)].min(axis=1)
    if apart.isna().all():
        return "Board against board."
    most = apart.astype(float).idxmax()
    return f"Board against board: they differ most on {most}, by {number(apart[most])} Elo."
