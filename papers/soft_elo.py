"""Tables and figures of the Soft-Elo paper (Kargi and Salinas 2026, arXiv:2606.13221)."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pandas as pd

from judgeline.diagnostics import expected_calibration_error, label_calibration, sides_agree
from judgeline.intervals import conformal_quantile, nonconformity_scores
from papers.soft_elo_data import (
    BUDGETS,
    CORPORA,
    MISCOVERAGE,
    N_SPLITS,
    SPLITS,
    ByCorpus,
    Judged,
    over_judges,
    read,
    residuals_of,
)
from papers.soft_elo_text import count_languages, languages, size_by_language, text
from papers.tables import Cell, Items, Paper, mean_of, printed_names, row_of

SIZES = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, np.inf)
SIZE_NAMES = ("small |s|", "0.5 to 1", "1 to 2", "2 to 3", "3 to 4", "|s| > 4")
QUARTILES = ("Q1", "Q2", "Q3", "Q4")

Make = Callable[[ByCorpus], Iterator[Cell]]


def by_judge(
    table: str, corpora: Sequence[str] = ("LMArena 100K",), columns: Sequence[str] = ()
) -> Make:
    """Return a printed table's columns, or given ones, by judge, and by corpus if several."""

    def make(judged: ByCorpus) -> Iterator[Cell]:
        names = columns or printed_names(f"soft_elo.{table}", "column")
        for one in (one for corpus in corpora for one in judged[corpus]):
            row = one.judge if len(corpora) == 1 else f"{one.corpus} / {one.judge}"
            yield from one.cells(row, names)

    return make


def calibration_errors(judged: ByCorpus) -> Iterator[Cell]:
    """Yield Table 7: calibration error of the pooled slope, and the mean slope of the folds."""
    for corpus in CORPORA.values():
        found = judged[corpus]
        for one in found:
            yield from one.cells(one.judge, ("ece", "beta_star"), f"{corpus} / ")
        mean = Cell("Mean", f"{corpus} / ece", mean_of(one.numbers["ece"] for one in found))
        yield from over_judges(found, [mean])


def smoothing(judged: ByCorpus) -> Iterator[Cell]:
    """Yield Table 8: errors of hard outcomes smoothed to five levels, beside hard and soft."""
    yield from by_judge("table8")(judged)
    found, names = judged["LMArena 100K"], printed_names("soft_elo.table8", "column")
    means = {name: mean_of(one.numbers[name] for one in found) for name in names}
    yield from over_judges(found, row_of("Mean", **means))


def agreement_by_size(judged: ByCorpus) -> Iterator[Cell]:
    """Yield Figure 3: agreement with decisive votes by size of score, and calibration errors."""
    found = judged["LMArena 100K"]
    shares = pd.DataFrame([_agreement(one) for one in found])
    for name in shares:
        cell = Cell("agreement on non-tied battles", str(name), 100 * shares[name].mean())
        yield from over_judges(found, [cell])
    for one in found:
        bins = label_calibration(one.score, one.human, one.label, 1.0)
        plain = expected_calibration_error(bins)
        values = {"beta = 1": plain, "fitted beta": one.numbers["ece"]}
        yield from row_of(f"ECE of {one.judge}", **values)


def _agreement(one: Judged) -> pd.Series:
    """Return the share of equal sides by size of score, where people and the judge chose one."""
    sided, agrees = sides_agree(one.human, one.label)
    sizes = pd.cut(np.abs(one.score[sided]), SIZES, labels=SIZE_NAMES, include_lowest=True)
    return pd.Series(agrees).groupby(sizes, observed=False).mean()


def correlation_by_size(judged: ByCorpus) -> Iterator[Cell]:
    """Yield Figure 7b: correlation of a score's size with agreement, of judges and corpora."""
    for corpus in CORPORA.values():
        for one in judged[corpus]:
            r = one.diagnostics["score_agreement_correlation"]
            yield Cell(f"{corpus} / {one.judge}", "r of |s| and agreement", r)


def by_budget(judged: ByCorpus) -> Iterator[Cell]:
    """Yield Figure 6: errors and widths of random subsets of b battles per model, and the slope.

    Votes and verdicts of a subset alone make both its ratings. Means of a few subsets.
    """
    found = judged["LMArena 100K"]
    rows = [
        (name, budget, one.judge, value)
        for one in found
        for budget in BUDGETS
        for name, value in one.at_budget(budget).items()
    ]
    table = pd.DataFrame(rows, columns=["name", "budget", "judge", "value"])
    for name, budget, judge, value in rows:
        yield Cell(f"{name} / {judge}", f"b={budget}", value)
    for (name, budget), middle in table.groupby(["name", "budget"])["value"].median().items():
        cell = Cell(f"{name} / cross-judge median", f"b={budget}", float(middle))
        yield from over_judges(found, [cell])
    slopes = table[table["name"].eq("beta")].pivot_table("value", "judge", "budget")
    if 200 in slopes:
        moved = slopes[[50, 100]].sub(slopes[200], axis=0).abs().to_numpy().max()
        row = "per-judge mean beta within this distance of its b=200 value"
        yield from over_judges(found, [Cell(row, "from b=50", float(moved), rule="at most")])


def every_interval(corpus: str, judged: ByCorpus) -> Iterator[Cell]:
    """Yield Figures 8 and 9: one judge's intervals, the threshold set by all models of a corpus."""
    for one in judged[corpus]:
        if one.judge != "Gemma4-26B-A4B":
            continue
        widths, held = [], np.array([])
        for method in ("hard", "soft"):
            own = residuals_of(one.heldout, method)
            scores = nonconformity_scores(own.residual, own.std_error)
            half = conformal_quantile(scores, miscoverage=MISCOVERAGE) * own.std_error
            widths.append(2 * float(np.median(half)))
            held = np.abs(own.residual) <= half
        n_printed = {"LMArena 140K": 52, "ComparIA": 116}[corpus]
        yield from row_of(
            f"{corpus}, {n_printed} models",
            median_width_hard=widths[0],
            median_width_soft=widths[1],
            contraction=widths[0] / widths[1],
            coverage=100 * float(held.mean()),
            covered_models=int(held.sum()),
        )


def by_quartile(judged: ByCorpus) -> Iterator[Cell]:
    """Yield Figure 14: mean residual by quartile of the human rating, mean over judges."""
    found = judged["LMArena 100K"]
    for method in ("hard", "soft") if found else ():
        name, row = f"residual_{method}_by_human_rating", f"mean signed residual {method}"
        table = np.array([[one.diagnostics[f"{name} {q}"] for q in QUARTILES] for one in found])
        means = dict(zip(QUARTILES, table.mean(axis=0).tolist(), strict=True))
        span = {"span Q1 to Q4": abs(means["Q4"] - means["Q1"])}
        yield from over_judges(found, row_of(row, **means, **span))
        if len(found) > 1:
            spread = Cell("cross-judge SD at Q4", method, float(table[:, 3].std(ddof=1)))
            yield from over_judges(found, [spread])


_100K, _OTHERS = "annotations of LMArena 100K", "annotations of LMArena 140K or ComparIA"
_140K, _COMPARIA = "annotations of LMArena 140K", "annotations of ComparIA"
_ALL = "annotations of LMArena 100K, 140K or ComparIA"
_ELSEWHERE = ("LMArena 140K", "ComparIA")
_HALVES = [f"{name}_{method}" for method in ("hard", "soft") for name in SPLITS]
ITEMS: Items = {
    "table1": ("agreement of hard labels", _100K, by_judge("table1")),
    "table2": ("hard and soft errors", _100K, by_judge("table2")),
    "table3": ("coverage and width over splits", _100K, by_judge("table3", columns=_HALVES)),
    "table4": ("errors on other corpora", _OTHERS, by_judge("table4", _ELSEWHERE)),
    "table5": ("widths on other corpora", _OTHERS, by_judge("table5", _ELSEWHERE)),
    "table6": ("ratings by language", _100K, languages),
    "table7": ("calibration errors and slopes", _ALL, calibration_errors),
    "table8": ("label smoothing", _100K, smoothing),
    "fig3": ("agreement by size of score", _100K, agreement_by_size),
    "fig5": ("languages", f"{_100K} and 140K", count_languages),
    "fig6": ("error and width by annotation budget", _100K, by_budget),
    "fig7": ("size of score and agreement", _ALL, correlation_by_size),
    "fig8": ("intervals of all models", _140K, partial(every_interval, "LMArena 140K")),
    "fig9": ("intervals of all models", _COMPARIA, partial(every_interval, "ComparIA")),
    "fig10": ("size of score by language", _100K, size_by_language),
    "fig14": ("residuals by quartile", _100K, by_quartile),
    "text": ("position, length, family and slopes of languages", _ALL, text),
}
_HALF = math.sqrt(26 * 2 * (28 + 28) / (28 * 28**2 * (28 + 1)))
ALLOWED = {"coverage_": 200 * _HALF * np.sqrt(2 / N_SPLITS)}
"""Random halves of Table 3: two standard deviations of the difference of two means of five halves.

Whatever the judge does, a half's covered models are beta-binomial (28; 26, 2): 28 models are
tested, and the threshold is the 26th of the other 27.
"""
PAPER = Paper("soft_elo", ITEMS, read, ALLOWED)
RELEASED = Paper("soft_elo", ITEMS, partial(read, stream="released"))
"""The same by the draws and the penalty of the authors' program: rounding alone is allowed."""
