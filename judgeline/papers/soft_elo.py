"""Tables and figures of the Soft-Elo paper (Kargi and Salinas 2026, arXiv:2606.13221)."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from judgeline.diagnostics import expected_calibration_error, reliability_curve
from judgeline.intervals import conformal_quantile, nonconformity_scores
from judgeline.papers.annotated import (
    BUDGETS,
    CORPORA,
    MISCOVERAGE,
    SETTINGS,
    Judges,
    elsewhere,
    mean_of,
    on,
    over_judges,
    read,
)
from judgeline.papers.soft_elo_text import count_languages, languages, text
from judgeline.papers.tables import Allowance, Cell, Item, Paper, row_of

SIZES = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, np.inf)
SIZE_NAMES = ("small |s|", "0.5 to 1", "1 to 2", "2 to 3", "3 to 4", "|s| > 4")
QUARTILES = ("Q1", "Q2", "Q3", "Q4")


def agreement(judged: Judges) -> Iterator[Cell]:
    """Yield Table 1: size of scores, kappa of three classes, and hard ratings against people's."""
    for one in on("LMArena 100K", judged):
        yield from row_of(
            one.judge,
            mean_abs_s=one.diagnostic("mean_absolute_score"),
            kappa=one.diagnostic("cohen_kappa"),
            spearman_rho=one.errors["hard"].spearman,
            elo_mae_hard=one.errors["hard"].mae,
        )


def hard_and_soft(judged: Judges) -> Iterator[Cell]:
    """Yield Table 2: errors of hard and soft ratings, and the mean slope of the folds."""
    for one in on("LMArena 100K", judged):
        hard, soft = one.errors["hard"], one.errors["soft"]
        yield from row_of(
            one.judge,
            beta_star=soft.mean_beta,
            elo_mae_hard=hard.mae,
            elo_mae_soft=soft.mae,
            mae_reduction=one.mae_reduction,
            delta_spearman_soft_minus_hard=soft.spearman - hard.spearman,
        )


def coverage_and_width(judged: Judges) -> Iterator[Cell]:
    """Yield Table 3: published intervals over random splits, and what their width is made of."""
    for one in on("LMArena 100K", judged):
        for method, split in one.splits.items():
            values = {
                "coverage": 100 * split.coverage,
                "median_width": split.width,
                "width_min": split.width_min,
                "width_max": split.width_max,
                "threshold": split.threshold,
                "median_std_error": split.std_error,
            }
            yield from row_of(one.judge, **{f"{k}_{method}": v for k, v in values.items()})


def cross_corpus(judged: Judges) -> Iterator[Cell]:
    """Yield Table 4: Tables 1 and 2 on the other two corpora."""
    for one in elsewhere(judged):
        hard, soft = one.errors["hard"], one.errors["soft"]
        yield from row_of(
            f"{one.corpus} / {one.judge}",
            kappa=one.diagnostic("cohen_kappa"),
            beta_star=soft.mean_beta,
            elo_mae_hard=hard.mae,
            elo_mae_soft=soft.mae,
            spearman_hard=hard.spearman,
            spearman_soft=soft.spearman,
            mae_reduction=one.mae_reduction,
        )


def cross_corpus_widths(judged: Judges) -> Iterator[Cell]:
    """Yield Table 5: widths on the other two corpora."""
    for one in elsewhere(judged):
        yield from row_of(
            f"{one.corpus} / {one.judge}",
            median_width_hard=one.splits["hard"].width,
            median_width_soft=one.splits["soft"].width,
            width_reduction=one.width_reduction,
        )


def calibration_errors(judged: Judges) -> Iterator[Cell]:
    """Yield Table 7: calibration error of the pooled slope, and the mean slope of the folds."""
    for corpus in CORPORA.values():
        found = on(corpus, judged)
        for one in found:
            column = {"ece": one.ece, "beta_star": one.errors["soft"].mean_beta}
            yield from row_of(one.judge, **{f"{corpus} / {k}": v for k, v in column.items()})
        if found:
            mean = Cell("Mean", f"{corpus} / ece", mean_of(one.ece for one in found))
            yield from over_judges(found, [mean])


def smoothing(judged: Judges) -> Iterator[Cell]:
    """Yield Table 8: errors of hard outcomes smoothed to five levels, beside hard and soft."""
    found = on("LMArena 100K", judged)
    rows = [
        {
            "elo_mae_hard": one.errors["hard"].mae,
            **{f"elo_mae_c{c}": one.errors[f"smoothed-{c}"].mae for c in SETTINGS.smoothing_levels},
            "elo_mae_soft": one.errors["soft"].mae,
        }
        for one in found
    ]
    for one, row in zip(found, rows, strict=True):
        yield from row_of(one.judge, **row)
    if rows:
        means = {key: mean_of(row[key] for row in rows) for key in rows[0]}
        yield from over_judges(found, row_of("Mean", **means))


def agreement_by_size(judged: Judges) -> Iterator[Cell]:
    """Yield Figure 3: agreement with decisive votes by size of score, and calibration errors."""
    found = on("LMArena 100K", judged)
    row = "agreement on non-tied battles"
    for low, high, name in zip(SIZES[:-1], SIZES[1:], SIZE_NAMES, strict=True):
        share = mean_of(one.agreement_between(low, high) for one in found)
        yield from over_judges(found, [Cell(row, name, 100 * share)])
    for one in found:
        row = f"ECE of {one.judge}"
        curve = reliability_curve(one.score, one.human, 1.0)
        yield Cell(row, "beta = 1", expected_calibration_error(curve))
        yield Cell(row, "fitted beta", one.ece)


def by_budget(judged: Judges) -> Iterator[Cell]:
    """Yield Figure 6: errors and widths of random subsets of b battles per model, and the slope.

    Votes and verdicts of a subset alone make both its ratings. Means of `N_SUBSETS` subsets.
    """
    judges = on("LMArena 100K", judged)
    found = {one.judge: one.by_budget for one in judges}
    for judge, budgets in found.items():
        for budget, values in budgets.items():
            for key, value in values.items():
                yield Cell(f"{key} / {judge}", f"b={budget}", value)
    for budget in BUDGETS if found else ():
        rows = [budgets[budget] for budgets in found.values() if budget in budgets]
        for key in rows[0] if rows else ():
            middle = float(np.median([row[key] for row in rows]))
            cell = Cell(f"{key} / cross-judge median", f"b={budget}", middle)
            yield from over_judges(judges, [cell])
    moved = [
        abs(budgets[b]["beta"] - budgets[200]["beta"])
        for budgets in found.values()
        for b in (50, 100)
        if 200 in budgets
    ]
    if moved:
        row = "per-judge mean beta within this distance of its b=200 value"
        yield from over_judges(judges, [Cell(row, "from b=50", max(moved), rule="at most")])


def every_interval(corpus: str, judged: Judges) -> Iterator[Cell]:
    """Yield Figures 8 and 9: intervals of one judge whose threshold all models of a corpus set."""
    for one in on(corpus, judged):
        if one.judge != "Gemma4-26B-A4B":
            continue
        widths = {}
        for method in ("hard", "soft"):
            residual, std_error = one.residuals(method)
            scores = nonconformity_scores(residual, std_error)
            half = conformal_quantile(scores, miscoverage=MISCOVERAGE) * std_error
            widths[method], held = 2 * float(np.median(half)), np.abs(residual) <= half
        printed = {"LMArena 140K": 52, "ComparIA": 116}[corpus]
        yield from row_of(
            f"{corpus}, {printed} models",
            median_width_hard=widths["hard"],
            median_width_soft=widths["soft"],
            contraction=widths["hard"] / widths["soft"],
            coverage=100 * float(held.mean()),
            covered_models=int(held.sum()),
        )


def by_quartile(judged: Judges) -> Iterator[Cell]:
    """Yield Figure 14: mean residual by quartile of the human rating, mean over judges."""
    found = on("LMArena 100K", judged)
    for method in ("hard", "soft") if found else ():
        name, row = f"residual_{method}_by_human_rating", f"mean signed residual {method}"
        table = np.array([[one.diagnostic(name, q) for q in QUARTILES] for one in found])
        means = dict(zip(QUARTILES, table.mean(axis=0).tolist(), strict=True))
        span = {"span Q1 to Q4": abs(means["Q4"] - means["Q1"])}
        yield from over_judges(found, row_of(row, **means, **span))
        if len(found) > 1:
            spread = Cell("cross-judge SD at Q4", method, float(table[:, 3].std(ddof=1)))
            yield from over_judges(found, [spread])


_100K, _OTHERS = "annotations of LMArena 100K", "annotations of LMArena 140K and ComparIA"
_140K, _COMPARIA = "annotations of LMArena 140K", "annotations of ComparIA"
_ALL = "annotations of all three corpora"
ITEMS = (
    Item("soft_elo.table1", "agreement of hard labels", _100K, agreement),
    Item("soft_elo.table2", "hard and soft errors", _100K, hard_and_soft),
    Item("soft_elo.table3", "coverage and width over splits", _100K, coverage_and_width),
    Item("soft_elo.table4", "errors on other corpora", _OTHERS, cross_corpus),
    Item("soft_elo.table5", "widths on other corpora", _OTHERS, cross_corpus_widths),
    Item("soft_elo.table6", "ratings by language", _100K, languages),
    Item("soft_elo.table7", "calibration errors and slopes", _ALL, calibration_errors),
    Item("soft_elo.table8", "label smoothing", _100K, smoothing),
    Item("soft_elo.fig3", "agreement by size of score", _100K, agreement_by_size),
    Item("soft_elo.fig5", "languages", f"{_100K} and 140K", count_languages),
    Item("soft_elo.fig6", "error and width by annotation budget", _100K, by_budget),
    Item(
        "soft_elo.fig8", "intervals of all models", _140K, partial(every_interval, "LMArena 140K")
    ),
    Item(
        "soft_elo.fig9", "intervals of all models", _COMPARIA, partial(every_interval, "ComparIA")
    ),
    Item("soft_elo.fig14", "residuals by quartile", _100K, by_quartile),
    Item("soft_elo.text", "numbers of the text", _ALL, text),
)
ALLOWED = {
    "kappa": Allowance(0.005),
    "spearman": Allowance(0.002),
    "width_reduction": Allowance(6),
    "width reduction": Allowance(6),
    "mae_reduction": Allowance(1),
    "mae reduction": Allowance(1),
    "elo_mae_c": Allowance(0.5),
    "/ b=": Allowance(relative=0.1),
    "within this distance": Allowance(),
    "mae": Allowance(0.3),
    "beta": Allowance(0.005),
    "coverage": Allowance(5),
    "width": Allowance(relative=0.2),
    "contraction": Allowance(relative=0.2),
    "covered_models": Allowance(3),
    "residual": Allowance(1.5),
    "cross-judge sd": Allowance(1.5),
    "ece": Allowance(0.005),
    "agreement": Allowance(1),
    "languages": Allowance(relative=0.1),
    "share": Allowance(2),
    "preferred": Allowance(1),
    "median |s|": Allowance(0.05),
}
"""Beyond rounding: where a definition is not printed, or splits and resamples are the authors'."""
PAPER = Paper("soft_elo", ITEMS, read, ALLOWED)
