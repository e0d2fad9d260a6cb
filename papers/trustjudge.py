"""Tables and figures of the TrustJudge paper (Wang et al. 2025, arXiv:2509.21117).

As in the released program, scores are held against the comparison in both orders, a tie where they
differ, and each circle of three answers is a violation, also one of two wins and a tie.
"""

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
import pandas as pd

from judgeline.trust import (
    RELEASED_TEMPERATURE,
    TokenPosition,
    aggregate_orders,
    expected_score,
    score_distribution,
)
from papers.tables import (
    Cell,
    Items,
    Paper,
    in_print,
    printed_cells,
    printed_names,
    row_of,
)
from papers.trustjudge_data import METHODS, Judged, read

TOLERANCES = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Of choices by probability or perplexity, and of scores in points of 1 to 5."""
OURS = {
    "cr_baseline": "cr_baseline_5",
    "cr_geval": "cr_geval_5",
    "cr_trustjudge": "cr_softmax_100",
    "exact_match_trustjudge": "exact_match_likelihood",
    "ntr3_trustjudge": "ntr3_likelihood",
    "ntr4_trustjudge": "ntr4_likelihood",
}
"""Names of the numbers of `Judged` that printed columns of other names hold."""
PARTS = {
    "single: 5-scale baseline": "cr_baseline_5",
    "single: + softmax": "cr_softmax_5",
    "single: + 100-scale": "cr_baseline_100",
    "single: + both": "cr_softmax_100",
    "pairwise: baseline": "ntr4_baseline",
    "pairwise: + likelihood": "ntr4_likelihood",
    "pairwise: + PPL-based": "ntr4_ppl",
}
"""Rows of Table 2, and the two parts together."""

Judges = list[Judged]


def as_printed(
    table: str, row: str, numbers: Mapping[str, float], names: Mapping[str, str] = OURS
) -> Iterator[Cell]:
    """Yield the numbers that the columns of a printed table hold."""
    for column in printed_names(f"trustjudge.{table}", "column"):
        if (own := names.get(column, column)) in numbers:
            yield Cell(row, column, numbers[own])


# ------------------------------------------------------------------ judges


def by_judge(table: str, judges: Judges) -> Iterator[Cell]:
    """Yield Table 1 or 3; under Table 1, numbers of other scales, rules and sizes too."""
    for one in judges:
        row = in_print(one.judge, printed_names(f"trustjudge.{table}", "row"))
        yield from as_printed(table, row, one.numbers)
        if table == "table1":
            listed = {
                OURS.get(column, column)
                for column in printed_names(f"trustjudge.{table}", "column")
            }
            rest = {name: value for name, value in one.numbers.items() if name not in listed}
            yield from row_of(row, n_pairs=float(len(one.pairs)), **rest)


def parts_alone(judges: Judges) -> Iterator[Cell]:
    """Yield Table 2: scores by probability or on the fine scale alone, and either rule."""
    for one in judges:
        column = in_print(one.judge, printed_names("trustjudge.table2", "column"))
        for row, name in PARTS.items():
            if name in one.numbers:
                yield Cell(row, column, one.numbers[name])


def over_dimensions(judges: Judges) -> Iterator[Cell]:
    """Yield Table 5: means over dimensions, of judges that were asked by several."""
    for one in judges:
        own = pd.DataFrame([part.numbers for _, part in one.by("dimension")])
        if len(own) > 1:
            row = in_print(one.judge, printed_names("trustjudge.table5", "row"))
            yield from as_printed("table5", row, own.dropna(axis=1).mean().to_dict())


def by_category(judges: Judges) -> Iterator[Cell]:
    """Yield Table 6: ratios by category of the question, all scores on 1 to 5."""
    names = OURS | {"cr_trustjudge": "cr_softmax_5"}
    labels = [str(row).partition(" / ") for row in printed_names("trustjudge.table6", "row")]
    for one in judges:
        judge = in_print(one.judge, (label[2] for label in labels))
        for category, own in one.by("category"):
            row = f"{in_print(category, (label[0] for label in labels))} / {judge}"
            yield from as_printed("table6", row, own.numbers, names)
            if "cr_expectation_5" in own.numbers:
                yield Cell(row, "cr_expectation", own.numbers["cr_expectation_5"])


def by_tolerance(judges: Judges) -> Iterator[Cell]:
    """Yield Figure 3: ratios by scale, and by what counts as a tie."""
    for one in judges:
        for level in TOLERANCES:
            for scale in one.scales:
                row = f"{one.judge}, 1 to {scale}"
                for name, value in one.conflicts(scale, level).items():
                    yield Cell(row, f"cr_{name} at tolerance {level:g}", value)
            for name, value in one.violations(level).items():
                yield Cell(one.judge, f"{name} at tolerance {level:g}", value)


def information(judges: Judges) -> Iterator[Cell]:
    """Yield what probabilities tell beyond the number said, in bits; Section 3 has the theorem.

    ``entropy`` is the mean over answers; ``bits`` of a method, the entropy of its scores over all
    answers: the number of answers of which it could tell each, as a power of two.
    """
    for one in judges:
        for scale, own in one.scales.items():
            row = f"{one.judge}, 1 to {scale}"
            yield from row_of(row, n_answers=len(own), **own[["entropy", "covered"]].mean())
            for name in METHODS:
                share = own[name].round(9).value_counts(normalize=True).to_numpy()
                yield Cell(row, f"bits {name}", float(-(share * np.log2(share)).sum()))


# ------------------------------------------------------------------ printed examples


def _listed(figure: str) -> "pd.Series[float]":
    """Return the printed probabilities of a figure's token by what was said."""
    cells = printed_cells("trustjudge")
    own = cells[cells["item"].eq(f"trustjudge.{figure}") & cells["row"].str.endswith(" token")]
    return own.set_index("column")["value"].astype(float)


def example_choice(_: Judges) -> Iterator[Cell]:
    """Yield Figure 5: shares of the printed probabilities, which add up to more than 1."""
    listed = _listed("fig5")
    note = f"divided by the sum of those printed, {listed.sum():.4f}"
    shares = listed / listed.sum()
    for token, share in shares.items():
        yield Cell("pairwise verdict token", str(token), share, note, "apart")
    one = shares[["A", "C", "B"]].to_numpy()[None]
    for name, other in (("the same tokens", one), ("the same answers", one[:, ::-1])):
        both = aggregate_orders(one, other, tolerance=0.0)
        row = f"likelihood rule, the other order with {name}"
        yield from row_of(row, outcome=both.outcome[0], soft_outcome=both.soft_outcome[0])


def example_score(_: Judges) -> Iterator[Cell]:
    """Yield Figure 6: the printed distribution, and its score by each method."""
    listed = _listed("fig6")
    position = TokenPosition([*listed.index], np.log(listed.to_numpy()))
    found = score_distribution(position, digits_per_token=1, scale=(1, 5))
    for value, p in zip(*found[1:3], strict=True):
        yield Cell("score token", str(value), float(p))
    yield from row_of(
        "score of the example",
        likeliest=float(listed.idxmax()),
        geval=found.weighted_sum,
        expectation=expected_score(found, target=(1, 5)),
        softmax=expected_score(found, target=(1, 5), logit_temperature=RELEASED_TEMPERATURE),
        entropy=found.entropy,
    )


_FILES = "scores and comparisons of judges with their probabilities"
_TRAINED = "models trained on preferences, and verdicts of GPT-4o on their AlpacaEval 2 answers"
_EXAMPLE, _SCORES = "the printed example", "scores of judges with their probabilities"
_ACCURACY = "conflicts, non-transitivity and accuracy by judge"
ITEMS: Items = {
    "table1": (_ACCURACY, _FILES, partial(by_judge, "table1")),
    "table2": ("parts of the method alone", _FILES, parts_alone),
    "table3": ("a reasoning model", _FILES, partial(by_judge, "table3")),
    "table4": ("win rates after preference training", _TRAINED, lambda _: ()),
    "table5": ("means over dimensions", f"{_FILES}, by dimension", over_dimensions),
    "table6": ("ratios by category", f"{_FILES}, by category", by_category),
    "fig3": ("ratios by scale and tolerance", _FILES, by_tolerance),
    "fig5": ("example probabilities of a comparison", _EXAMPLE, example_choice),
    "fig6": ("example probabilities of a score", _EXAMPLE, example_score),
    "information": ("entropy of scores", _SCORES, information),
}
PAPER = Paper("trustjudge", ITEMS, read)
