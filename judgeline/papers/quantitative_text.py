"""Numbers in the text of "Quantitative LLM Judges" that follow from its printed tables."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgeline.papers.tables import Cell, printed_cells

DATASETS = ("Summarize from Feedback", "HelpSteer2", "Offset Bias", "Nectar")
_FITS = {
    form: [f"{judge} / {form} ({n})" for judge in ("Prometheus", "Llama") for n in (100, 200, 500)]
    for form in ("LS", "MN", "BTL2")
}
_BASES = [f"{judge} / Base" for judge in ("Prometheus", "Llama") for _ in range(3)]
_CORRELATIONS = ("pearson", "spearman", "kendall")


def _printed(table: int, rows: Sequence[str], columns: Sequence[str]) -> NDArray[np.float64]:
    """Return printed cells of a table, (rows, columns)."""
    cells = printed_cells("quantitative").set_index(["item", "row", "column"])["value"]
    name = f"quantitative.table{table}"
    return np.array([[float(cells[name, row, column]) for column in columns] for row in rows])


def _gain(
    table: int, rows: Sequence[str], others: Sequence[str], dataset: str, *metrics: str
) -> NDArray[np.float64]:
    """Return how much printed cells are above those of other rows, in percent."""
    columns = [f"{dataset} / {metric}" for metric in metrics]
    return 100 * (_printed(table, rows, columns) / _printed(table, others, columns) - 1)


def text(_: Any) -> Iterator[Cell]:
    """Yield the text's numbers, in percent or as ratios."""
    rated, offset = DATASETS[:2], ("Offset Bias", *_CORRELATIONS)
    for row, form, metric, sign in (
        ("MSE reduction of LS", "LS", "mse", -1),
        ("accuracy gain of MN", "MN", "accuracy", 1),
    ):
        gains = np.concatenate([sign * _gain(1, _FITS[form], _BASES, one, metric) for one in rated])
        eighth = float(np.sort(gains, axis=None)[-8])
        yield Cell(row, "most cells", eighth, "8 of 12 cells of Table 1 reach it", "at least")
    for name, others in (("base judge", _BASES), ("JudgeLM", ["JudgeLM"]), ("TRACT", ["TRACT"])):
        ratio = 1 + _gain(2, _FITS["BTL2"], others, *offset) / 100
        row = f"correlation ratio of BTL2 on Offset Bias against {name}"
        yield Cell(row, "min", float(ratio.min()), "all sizes and correlations")
        yield Cell(row, "max", float(ratio.max()), "all sizes and correlations")
    best, tract = ["Prometheus / BTL2 (500)"], ["TRACT"]
    nectar = {one: _gain(2, best, [one], "Nectar", "accuracy") for one in ("JudgeLM", "70B")}
    ours = _printed(1, _FITS["LS"] + _FITS["MN"], [f"{rated[0]} / accuracy"]).max()
    tracts = _printed(1, tract, [f"{rated[0]} / accuracy"])
    errors = _gain(1, _FITS["LS"][2::3], tract, rated[1], "mse", "mae")
    ratio = 1 + _gain(2, _FITS["BTL2"][3:], ["Llama / Base"], *offset) / 100
    lost = -_gain(8, ["BTL2 / No embedding"], ["BTL2 / Full"], *offset)
    for row, column, value, note, rule in (
        *((f"BTL2 below {one} on Nectar", "relative", -gain, "accuracy, Prometheus", "near")
          for one, gain in nectar.items()),
        ("correlation gain of Prometheus BTL2 over 70B on Offset Bias", "relative",
         _gain(2, best, ["70B"], *offset).min(), "the least, Kendall's", "at least"),
        ("TRACT accuracy above ours, Summarize from Feedback", "relative",
         100 * (tracts / ours - 1), "ours: the best", "near"),
        ("MSE and MAE above TRACT, HelpSteer2", "relative", errors.mean(), "mean of LS (500)",
         "near"),
        ("MN accuracy above TRACT, HelpSteer2", "relative",
         _gain(1, _FITS["MN"], tract, rated[1], "accuracy").max(), "the best", "near"),
        ("correlations of BTL2 over Llama base, Offset Bias", "ratio", ratio.mean(), "mean",
         "near"),
        ("drop of correlations without embedding", "lower bound", lost.min(), "the least",
         "at least"),
    ):  # fmt: skip
        yield Cell(row, column, np.asarray(value).item(), note, rule)
    yield from _run_times()


def _run_times() -> Iterator[Cell]:
    """Yield what Table 4 says of embeddings and quantitative judges: the largest of its rows."""
    stages = np.hstack(
        [
            [_printed(4, forms, [f"{one} / {stage}" for one in data]).ravel()
             for stage in ("base judge", "embedding", "quantitative judge")]
            for forms, data in ((("LS", "MN"), DATASETS[:2]), (("BTL", "BTL2"), DATASETS[2:]))
        ]
    )  # fmt: skip
    base, _, own = stages
    added = 100 * float((1 - base / stages.sum(axis=0)).max())
    yield Cell("embedding plus judge, share of run time", "total", added, "the largest of Table 4")
    alone, row = 100 * float((own / base).max()), "overhead if embeddings are a by-product"
    yield Cell(row, "upper bound", alone, "the largest of Table 4", "at most")
