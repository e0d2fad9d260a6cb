"""Numbers of the reference-anchored paper that follow from others that it prints."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import expit, logit

from judgeline.elo import ELO_PER_LOGIT, kendall
from judgeline.papers.tables import Cell, printed_cells
from judgeline.reference import anchored_elo, compare_references, finite_population_factor
from judgeline.reliability import pooled_variance

TARGETS = ("gpt-4o", "gemini-2.5-flash", "o4-mini")
SIZES = (16, 24, 32, 40, 64, 80, 120)
N_POPULATION, N_COUNTS, FACTOR = 160, 800, 0.85
"""Prompts of MT-Bench; a judge's judgments of them in five runs; the paper's reliability factor."""

Formula = Callable[..., Any]
Place = tuple[str, str, str]  # table, row, column


@cache
def printed() -> dict[Place, str]:
    """Return the printed values with their digits, by table, row and column."""
    cells = printed_cells("reference_anchored")
    tables = cells["item"].str.removeprefix("reference_anchored.")
    places = zip(tables, cells["row"], cells["column"], strict=True)
    return dict(zip(places, cells["value"], strict=True))


def places(table: str, column: str, *, row: str = "", but: str = "none") -> list[Place]:
    """Return the places of a column in rows that begin with a name, but for one row."""
    known = (one for one in printed() if (one[0], one[2]) == (table, column))
    return [one for one in known if one[1].startswith(row) and one[1] != but]


def follows(
    row: str, column: str, formula: Formula, of: list[Place], rule: str = "near", note: str = ""
) -> Cell:
    """Return a cell by a formula of printed numbers, with what their rounding may move it."""
    texts = [printed()[place] for place in of]
    values = np.array([float(text) for text in texts])
    value = formula(*values)
    moves = np.diag([0.5 * 10.0 ** -len(text.partition(".")[2]) for text in texts])
    slack = sum(abs(formula(*(values + move)) - value) for move in moves)
    tables = ", ".join(dict.fromkeys(table.replace("table", "Table ") for table, _, _ in of))
    return Cell(row, column, float(value), f"from {tables or 'the formula'}{note}", rule, slack)


def mean(*values: float) -> float:
    """Return the mean."""
    return float(np.mean(values))


def reduction(before: float, after: float) -> float:
    """Return by how much a number fell, in per cent."""
    return 100 * (1 - after / before) if before else np.nan


def _ratio(one: float, other: float) -> float:
    return one / other


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
    ("table9", "empirical_over_theoretical", _ratio, "empirical_se theoretical_se"),
    ("table9", "empirical_over_fpc", _ratio, "empirical_se fpc_se"),
    ("table9", "empirical_over_kappa", _ratio, "empirical_se kappa_adjusted_se"),
    ("table10", "se_elo_gap", _gap_error, "mean_p se_p"),
    ("table11", "se_elo_gap", _gap_error, "mean_p se_p"),
    ("table12", "elo_all", gap_of, "p_all"),
    ("table12", "elo_trust", gap_of, "p_trust"),
    ("table12", "delta_p", np.subtract, "p_trust p_all"),
    ("table12", "delta_elo", np.subtract, "elo_trust elo_all"),
    ("table14", "empirical_over_kappa", _ratio, "empirical_se kappa_adjusted_se"),
)
"""Columns that follow from others of the same row: table, column, formula, other columns."""


def by_row(table: str) -> Iterator[Cell]:
    """Yield the columns of a table that follow from others of the same row."""
    for name, column, formula, columns in _IN_ROW:
        for _, row, _ in places(table, column) if name == table else ():
            of = [(table, row, one) for one in columns.split()]
            if all(one in printed() for one in of):
                yield follows(row, column, formula, of)


def table1() -> Iterator[Cell]:
    """Yield means over the judges of Table 8, and over the targets."""
    for model in TARGETS:
        for column, name in (("direct_score_mean", "mean"), ("kurtosis", "kurtosis")):
            own = places("table8", f"{name} / {model}", but="Total")
            yield follows(model, column, mean, own)
    for column in ("pearson_between_judges", "kendall_between_judges", "kappa_between_judges"):
        yield follows("Total", column, mean, places("table1", column, but="Total"))


def table2() -> Iterator[Cell]:
    """Yield reductions, and plain means of Table 3, whose weights in Table 2 are not stated."""
    yield from by_row("table2")
    for row, column in (("SE(p)", "se_p"), ("CV (judges)", "cv_p")):
        yield follows(row, "raee", mean, places("table3", column), "apart", ", a plain mean")


def table5() -> Iterator[Cell]:
    """Yield how the three targets' gaps of Table 3 move with the reference."""
    for pair in combinations(TARGETS, 2):
        of = [
            ("table3", f"{m} / {reference}", "mean_elo_gap") for reference in pair for m in TARGETS
        ]
        row = " <-> ".join(pair)
        yield follows(row, "kendall_tau", lambda *g: kendall(g[:3], g[3:]), of)
        yield follows(
            row, "mean_abs_centred_elo_shift",
            lambda *g: compare_references([g[:3], g[3:]]).mean_abs_shift[1], of,
        )  # fmt: skip


def table8() -> Iterator[Cell]:
    """Yield the means over judges."""
    for _, row, column in printed():
        if row == "Total" and (own := places("table8", column, but="Total")):
            yield follows(row, column, mean, own)


def table9() -> Iterator[Cell]:
    """Yield errors by number of prompts from that at another one, the factors, and ratios."""
    yield from by_row("table9")
    for n in SIZES:
        row, other = f"n={n}", 16 if n != 16 else 40
        scale, name = np.sqrt((other + 2) / (n + 2)), "theoretical_se"
        yield follows(row, name, lambda e, s=scale: s * e, [("table9", f"n={other}", name)])
        factor = finite_population_factor(n, N_POPULATION)
        yield follows(row, "fpc_se", lambda e, f=factor: f * e, [("table9", row, name)])


def table13() -> Iterator[Cell]:
    """Yield how far Laplace's prior would move the gaps of Table 3's shares."""
    note, of = f", at {N_COUNTS} judgments; theirs is not stated", places("table3", "mean_p")
    for column, pick in (("mae_elo", np.mean), ("max_diff_elo", np.max)):
        yield follows(
            "MT-Bench", column, lambda *p, f=pick: f(_prior_effect(*p)), of, "apart", note
        )
    yield follows("MT-Bench", "within_20_elo", lambda *p: 100 * mean(*_prior_effect(*p) <= 20), of)


def table14() -> Iterator[Cell]:
    """Yield the row n = 40 of Table 9, and ratios."""
    yield from by_row("table14")
    names = ("empirical_se", "theoretical_se", "fpc_se", "kappa_adjusted_se")
    for name in names:
        own = name.replace("theoretical", "analytic")
        yield follows("MT-Bench", own, mean, places("table9", name, row="n=40"))


def text() -> Iterator[Cell]:
    """Yield the numbers of the text."""
    for row, column, formula, of, rule in _text():
        yield follows(row, column, formula, of, rule)


def _text() -> list[tuple[str, str, Formula, list[Place], str]]:
    kappa, shift = "empirical_over_kappa", "mean_abs_centred_elo_shift"
    at_40, at, pooled = (
        "empirical over analytic SE at n=40",
        "table9",
        "variance reduction by pooling",
    )
    reliable, pearson = (
        f"{pooled} at reliability 0.90",
        "direct scores, mean Pearson between judges",
    )
    filtered, coverage = "prompts filtered by abstention", places("table12", "coverage")
    flores = places("table4", "se_p_reduction", row="FloRES / gpt-4o")
    ratio = {
        name: places(at, f"empirical_over_{name}", row="n=40") for name in ("theoretical", "fpc")
    }
    factor = [*places(at, "kappa_adjusted_se", row="n=40"), *places(at, "fpc_se", row="n=40")]
    reduced = {name: places("table2", "reduction", row=name) for name in ("SE", "CV")}
    return [
        ("reduction of per-run SE", "RAEE vs direct", mean, reduced["SE"], "near"),
        ("reduction of across-judge CV", "RAEE vs direct", mean, reduced["CV"], "near"),
        ("analytic SE against observed", "within", _off, places(at, kappa), "at most"),
        ("worst case with reliability factor", "within", _off, places(at, kappa), "at most"),
        ("empirical over kappa-adjusted SE", "within", _off, places("table14", kappa), "at most"),
        ("Elo gap 100", "win probability", lambda: 100 * expit(100 / ELO_PER_LOGIT), [], "near"),
        (reliable, "J=2", lambda: reduction(1, pooled_variance(1, 0.9, 2)), [], "near"),
        (reliable, "J infinite", lambda: reduction(1, pooled_variance(1, 0.9, 10**9)), [], "near"),
        (pearson, "all", mean, places("table1", "pearson_between_judges", row="Total"), "near"),
        ("Kendall tau between anchors", "mean", mean, places("table5", "kendall_tau"), "near"),
        ("centred Elo shift", "upper bound", max, places("table5", shift), "at most"),
        ("FloRES gpt-4o SE(p) reduction", "strong judges", mean, flores, "near"),
        (at_40, "uncorrected", lambda r: 100 * r, ratio["theoretical"], "near"),
        (at_40, "with finite-population correction", lambda r: 100 * r, ratio["fpc"], "near"),
        (
            at_40,
            "with reliability factor",
            lambda r: 100 * r,
            places(at, kappa, row="n=40"),
            "near",
        ),
        ("reliability factor kappa", "value", _ratio, factor, "near"),
        ("CV bound", "RAEE", max, places("table6", "cv", row="RAEE"), "at most"),
        ("CV bound", "direct", min, places("table6", "cv", row="Direct"), "near"),
        ("correlation with RAEE", "other systems", min, places("table7", "corr_with_raee"), "near"),
        ("Arena-Hard Auto", "mad_elo", mean, places("table15", "mad_elo"), "near"),
        (filtered, "min", lambda *c: 100 * (1 - max(c)), coverage, "near"),
        (filtered, "max", lambda *c: 100 * (1 - min(c)), coverage, "near"),
    ]


OF_PRINT: dict[str, Callable[[], Iterator[Cell]]] = {
    **{name: partial(by_row, name) for name, *_ in _IN_ROW},
    "table1": table1, "table2": table2, "table5": table5, "table8": table8, "table9": table9,
    "table13": table13, "table14": table14, "text": text,
}  # fmt: skip
