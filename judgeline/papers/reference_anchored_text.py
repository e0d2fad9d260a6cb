"""Numbers of the reference-anchored paper that follow from others that it prints."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import expit, logit

from judgeline.elo import ELO_PER_LOGIT, kendall
from judgeline.papers.tables import Cell, Formula, Printed, ratio, reduction, row_of
from judgeline.reference import anchored_elo, compare_references, finite_population_factor
from judgeline.reliability import pooled_variance

TARGETS = ("gpt-4o", "gemini-2.5-flash", "o4-mini")
SIZES = (16, 24, 32, 40, 64, 80, 120)
N_POPULATION, N_COUNTS, FACTOR = 160, 800, 0.85
"""Prompts of MT-Bench; a judge's judgments of them in five runs; the paper's reliability factor."""

PRINTED = Printed("reference_anchored")
places, follows = PRINTED.places, PRINTED.follows


def mean(*values: float) -> float:
    """Return the mean."""
    return float(np.mean(values))


def _off(*ratios: float) -> float:
    return 100 * max(abs(ratio - 1) for ratio in ratios)


def gap_of(share: float) -> float:
    """Return the gap of a win share, in Elo points."""
    return float(ELO_PER_LOGIT * logit(share))


def _gap_error(share: float, error: float) -> float:
    return ELO_PER_LOGIT * error / (share * (1 - share))


def _prior_effect(*shares: float) -> Any:
    wins = np.clip(np.array(shares) * (N_COUNTS + 1) - 0.5, 0, N_COUNTS)
    one, other = (anchored_elo(wins, 0 * wins, N_COUNTS - wins, prior=p).gap for p in (0.5, 1.0))
    return np.abs(one - other)


_IN_ROW: tuple[tuple[str, str, Formula, str], ...] = (
    ("table2", "reduction", reduction, "direct raee"),
    ("table3", "se_p", lambda p: np.sqrt(p * (1 - p) / (N_POPULATION + 2)), "mean_p"),
    ("table3", "se_elo_gap", _gap_error, "mean_p se_p"),
    ("table4", "elo_gap", gap_of, "mean_p"),
    ("table4", "se_p_reduction", reduction, "se_p_all se_p_strong"),
    ("table4", "se_elo_reduction", reduction, "se_elo_all se_elo_strong"),
    ("table9", "kappa_adjusted_se", lambda error: FACTOR * error, "fpc_se"),
    ("table9", "empirical_over_theoretical", ratio, "empirical_se theoretical_se"),
    ("table9", "empirical_over_fpc", ratio, "empirical_se fpc_se"),
    ("table9", "empirical_over_kappa", ratio, "empirical_se kappa_adjusted_se"),
    ("table10", "se_elo_gap", _gap_error, "mean_p se_p"),
    ("table11", "se_elo_gap", _gap_error, "mean_p se_p"),
    ("table12", "elo_all", gap_of, "p_all"),
    ("table12", "elo_trust", gap_of, "p_trust"),
    ("table12", "delta_p", np.subtract, "p_trust p_all"),
    ("table12", "delta_elo", np.subtract, "elo_trust elo_all"),
    ("table14", "empirical_over_kappa", ratio, "empirical_se kappa_adjusted_se"),
)
"""Columns that follow from others of the same row: table, column, formula, other columns."""


_FLORES = "FloRES / gpt-4o"
_BETWEEN = [f"{name}_between_judges" for name in ("pearson", "kendall", "kappa")]
_MEANS: tuple[tuple[str, str, str, str, str, str], ...] = (
    *(("table1", m, "direct_score_mean", "table8", f"mean / {m}", "") for m in TARGETS),
    *(("table1", m, "kurtosis", "table8", f"kurtosis / {m}", "") for m in TARGETS),
    *(("table1", "Total", column, "table1", column, "") for column in _BETWEEN),
    ("table2", "SE(p)", "raee", "table3", "se_p", ""),
    ("table2", "CV (judges)", "raee", "table3", "cv_p", ""),
    *(
        ("table8", "Total", f"{name} / {m}", "table8", f"{name} / {m}", "")
        for name in ("mean", "sd", "kurtosis")
        for m in TARGETS
    ),
    ("table14", "MT-Bench", "empirical_se", "table9", "empirical_se", "n=40"),
    ("table14", "MT-Bench", "analytic_se", "table9", "theoretical_se", "n=40"),
    ("table14", "MT-Bench", "fpc_se", "table9", "fpc_se", "n=40"),
    ("table14", "MT-Bench", "kappa_adjusted_se", "table9", "kappa_adjusted_se", "n=40"),
    ("text", "reduction of per-run SE", "RAEE vs direct", "table2", "reduction", "SE"),
    ("text", "reduction of across-judge CV", "RAEE vs direct", "table2", "reduction", "CV"),
    ("text", "direct scores, mean Pearson between judges", "all", "table1", _BETWEEN[0], "Total"),
    ("text", "Kendall tau between anchors", "mean", "table5", "kendall_tau", ""),
    ("text", "FloRES gpt-4o SE(p) reduction", "strong judges", "table4", "se_p_reduction", _FLORES),
    ("text", "Arena-Hard Auto", "mad_elo", "table15", "mad_elo", ""),
)  # fmt: skip
"""Cells that are a mean of others: theirs, and table, column and beginning of the row of others."""


def in_row(table: str, row: str, values: Mapping[str, float]) -> Iterator[Cell]:
    """Yield a row's values and the columns that follow from them, in the printed order."""
    found = dict(values)
    for name, column, formula, of in _IN_ROW:
        if name == table and column not in found and {*of.split()} <= {*found}:
            found[column] = formula(*(found[one] for one in of.split()))
    listed = PRINTED.columns(table)
    order = sorted(found, key=lambda one: listed.index(one) if one in listed else len(listed))
    return row_of(row, **{name: found[name] for name in order})


def of_print(table: str) -> Iterator[Cell]:
    """Yield the cells of a table that follow from other printed ones."""
    for name, column, formula, columns in _IN_ROW:
        for _, row, _ in places(table, column) if name == table else ():
            of = [(table, row, one) for one in columns.split()]
            if all(one in PRINTED.texts for one in of):
                yield follows(row, column, formula, of)
    for name, row, column, *source in _MEANS:
        if name == table:
            yield follows(row, column, mean, places(*source))
    for cell in _BY_FORMULA.get(table, tuple)():
        yield follows(*cell)


def _references() -> Iterator[tuple[Any, ...]]:
    shift = "mean_abs_centred_elo_shift"
    for pair in combinations(TARGETS, 2):
        row, names = " <-> ".join(pair), [f"{m} / {ref}" for ref in pair for m in TARGETS]
        of = [("table3", name, "mean_elo_gap") for name in names]
        yield row, "kendall_tau", lambda *g: kendall(g[:3], g[3:]), of
        yield row, shift, lambda *g: compare_references([g[:3], g[3:]]).mean_abs_shift[1], of


def _sizes() -> Iterator[tuple[Any, ...]]:
    name = "theoretical_se"
    for n in SIZES:
        row, other = f"n={n}", 16 if n != 16 else 40
        scale, factor = np.sqrt((other + 2) / (n + 2)), finite_population_factor(n, N_POPULATION)
        yield row, name, lambda e, s=scale: s * e, [("table9", f"n={other}", name)]
        yield row, "fpc_se", lambda e, f=factor: f * e, [("table9", row, name)]


def _priors() -> Iterator[tuple[Any, ...]]:
    of, note = places("table3", "mean_p"), f"from Table 3, at {N_COUNTS} judgments a pair"
    yield "MT-Bench", "mae_elo", lambda *p: np.mean(_prior_effect(*p)), of, "near", note
    yield "MT-Bench", "max_diff_elo", lambda *p: np.max(_prior_effect(*p)), of, "near", note
    yield "MT-Bench", "within_20_elo", lambda *p: 100 * mean(*_prior_effect(*p) <= 20), of


def _text() -> Iterator[tuple[Any, ...]]:
    at_40, kappa = "empirical over analytic SE at n=40", "empirical_over_kappa"
    names = {
        "uncorrected": "empirical_over_theoretical",
        "with finite-population correction": "empirical_over_fpc",
        "with reliability factor": kappa,
    }
    for column, name in names.items():
        yield at_40, column, lambda part: 100 * part, places("table9", name, "n=40")
    for row in ("analytic SE against observed", "worst case with reliability factor"):
        yield row, "within", _off, places("table9", kappa), "at most"
    yield "empirical over kappa-adjusted SE", "within", _off, places("table14", kappa), "at most"
    yield "Elo gap 100", "win probability", lambda: 100 * expit(100 / ELO_PER_LOGIT), []
    pooling = "variance reduction by pooling at reliability 0.90"
    for column, n_judges in (("J=2", 2), ("J infinite", 10**9)):
        yield pooling, column, lambda n=n_judges: reduction(1, pooled_variance(1, 0.9, n)), []
    shift = places("table5", "mean_abs_centred_elo_shift")
    yield "centred Elo shift", "upper bound", max, shift, "at most"
    factor = [("table9", "n=40", f"{name}_se") for name in ("kappa_adjusted", "fpc")]
    yield "reliability factor kappa", "value", ratio, factor
    yield "CV bound", "RAEE", max, places("table6", "cv", "RAEE"), "at most"
    yield "CV bound", "direct", min, places("table6", "cv", "Direct")
    yield "correlation with RAEE", "other systems", min, places("table7", "corr_with_raee")
    filtered, coverage = "prompts filtered by abstention", places("table12", "coverage")
    yield filtered, "min", lambda *c: 100 * (1 - max(c)), coverage
    yield filtered, "max", lambda *c: 100 * (1 - min(c)), coverage


_BY_FORMULA = {"table5": _references, "table9": _sizes, "table13": _priors, "text": _text}
