"""Tables of "Quantitative LLM Judges" (Sahoo et al. 2025), made of a user's own labels.

A fit of one form (LS, MN, BTL, BTL2 or PL) to one judge's rationales in one data set is a `Source`.
All forms of a judge and data set, with all or some of their features, have the same training sets.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgeline.elo import keyed_rng
from judgeline.quantitative import (
    Battles,
    Design,
    Labels,
    LearningCurve,
    TooLittleToLearnError,
    Trials,
    base_judge,
    confusion_matrix,
    trials,
)
from papers.quantitative_data import read_tasks
from papers.tables import Cell, Items, Paper, in_print

DESIGN = Design()
DROPPED = (0.0, 50.0, 75.0, 87.5)
"""Percent of the embedding's features that are dropped at random."""
MOST_CLASSES = 20
"""Ratings of a confusion matrix."""
DATASETS = ("Summarize from Feedback", "HelpSteer2", "Offset Bias", "Nectar")
PRINTED_ONCE = ("JudgeLM", "70B", "TRACT")
"""Judges that the paper prints without quantitative judges of theirs."""
JUDGES = ("Prometheus", "Llama", *PRINTED_ONCE)
WIDTH, SCALES = 4096, {"Summarize from Feedback": 7, "HelpSteer2": 5}


# ------------------------------------------------------------------ a user's files


@dataclass(frozen=True)
class Source:
    """Labels of a judge in one form and data set, the task to learn, and the base judge's row."""

    dataset: str
    judge: str
    form: str
    task: Battles | Labels
    tested: NDArray[np.bool_] | None
    base: str

    def trials(self, task: Battles | Labels, sizes: Sequence[int]) -> Trials:
        """Return trials of the labels, or of a part of their features, on the same sets."""
        design = DESIGN._replace(sizes=sizes, tested=self.tested)
        return trials(task, design, rng=keyed_rng(0, "trials", self.dataset, self.judge))

    @cached_property
    def full(self) -> Trials:
        """Return trials of all sizes."""
        return self.trials(self.task, DESIGN.sizes)

    @cached_property
    def curve(self) -> LearningCurve:
        """Return means of the trials, by size and metric."""
        return self.full.curve()

    @property
    def size(self) -> int:
        """Return the largest number of labels in a training set."""
        return int(self.full.n_train.max())

    def part(self, features: Any = slice(None), *, score: bool = True) -> LearningCurve:
        """Return the curve of the largest size with some features, with or without the score."""
        return self.trials(self.task.having(features, score=score), [self.size]).curve()


def read(data: Path | None, say: Callable[[str], None]) -> list[Source]:
    """Return the forms of each data set and judge in a folder, in the paper's spelling of names."""
    sources = []
    for dataset, judge, tasks in read_tasks(data, say):
        dataset, judge = in_print(dataset, DATASETS), in_print(judge, JUDGES)
        base = judge if judge in PRINTED_ONCE else f"{judge} / Base"
        for place, (form, labels, rows) in enumerate(tasks):
            is_split = rows["split"].notna().any()
            tested = rows["split"].eq("test").to_numpy() if is_split else None
            if tested is not None and not tested.any():
                raise ValueError(
                    f"{rows['file'].iloc[0]}, {judge} of {dataset}: split is test in no row with "
                    "a label; write test in some rows, or leave the column out"
                )
            row = f"{base} of {form}" if place else base
            sources.append(Source(dataset, judge, form, labels, tested, row))
    return sources


# ------------------------------------------------------------------ tables of labels


def _made(
    forms: Sequence[str], cells: Callable[[Source], Iterator[Cell]], sources: list[Source]
) -> Iterator[Cell]:
    """Yield the cells of the sources of some forms; one that teaches too little says why."""
    for source in sources:
        if source.form in forms:
            try:
                yield from cells(source)
            except TooLittleToLearnError as error:
                row = f"{source.judge} / {source.form}"
                yield Cell(row, f"{source.dataset} / accuracy", np.nan, str(error))


def _cells(source: Source, row: str, curve: LearningCurve, field: str = "value") -> Iterator[Cell]:
    """Yield a row of the metrics of a curve's largest size."""
    n_sets = int(curve.n_sets[-1])
    note = "" if n_sets == DESIGN.n_sets else f"{n_sets} of {DESIGN.n_sets} training sets"
    values = getattr(curve, field)
    for place in np.flatnonzero(curve.n_train == curve.n_train.max()):
        metric = str(curve.metric[place])
        by_class = source.form == "BTL" and field == "value"
        rule = "apart" if by_class and metric in ("precision", "recall", "f1") else "near"
        yield Cell(row, f"{source.dataset} / {metric}", float(values[place]), note, rule)


def learning(source: Source) -> Iterator[Cell]:
    """Yield a base judge, then its quantitative judge by number of labels: Tables 1 and 2."""
    curve = source.curve
    yield from _cells(source, source.base, curve, "base")
    for size in np.unique(curve.n_train):
        part = LearningCurve(*(column[curve.n_train == size] for column in curve))
        yield from _cells(source, f"{source.judge} / {source.form} ({size})", part)


def dropped(metrics: Sequence[str], source: Source) -> Iterator[Cell]:
    """Yield judges without a random part of the embedding's features: Tables 6 and 7."""
    n_features = source.task.n_features
    order = keyed_rng(0, "features", source.dataset, source.judge).permutation(n_features)
    for share in DROPPED:
        rest = np.sort(order[round(n_features * share / 100) :])
        row = f"{source.judge} / dropped {share:g}%"
        for cell in _cells(source, row, source.part(rest) if share else source.curve):
            dataset, metric = cell.column.rsplit(" / ", 1)
            if metric in metrics:
                yield cell._replace(column=f"{dataset} / {source.form} / {metric}")


def parts(source: Source) -> Iterator[Cell]:
    """Yield judges without score, or without embedding: Table 8, whose judge is Llama."""
    form = source.form if source.judge == "Llama" else f"{source.judge} / {source.form}"
    yield from _cells(source, f"{form} / Full", source.curve)
    yield from _cells(source, f"{form} / No score", source.part(score=False))
    yield from _cells(source, f"{form} / No embedding", source.curve, "score_only")


def penalties(source: Source) -> Iterator[Cell]:
    """Yield the cross-validated loss along the penalty, mean over the largest training sets."""
    row = f"{source.judge} / {source.form} ({source.size})"
    fits = zip(source.full.fits, source.full.n_train, strict=True)
    choices = [fit.choice for fit, size in fits if fit.choice and size == source.size]
    loss = np.mean([choice.losses for choice in choices], axis=0)
    best = int(np.argmin(loss))
    note = "least of all, at an end of the penalties" if best in (0, loss.size - 1) else ""
    for place, (penalty, value) in enumerate(zip(DESIGN.penalties, loss.tolist(), strict=True)):
        column = f"{source.dataset} / loss at gamma={penalty:g}"
        yield Cell(row, column, value, note if place == best else "")


def confusion(source: Source) -> Iterator[Cell]:
    """Yield how often each label is predicted as which, over the largest training sets."""
    human, scale = source.task.human, np.array([0.0, 1.0])
    if isinstance(source.task, Labels):
        scale = source.task.scale
    else:
        human = (1 + np.sign(human - 0.5)) / 2  # a tie is no class
    if len(scale) > MOST_CLASSES:
        why = f"{len(scale)} distinct ratings, at most {MOST_CLASSES} in a matrix: round them"
        yield Cell(f"{source.judge} / {source.form}", f"{source.dataset} / matrix", np.nan, why)
        return
    full, form = source.full, f"{source.form} ({source.size})"
    counts = {name: np.zeros((len(scale), len(scale))) for name in ("Base", form)}
    for place in np.flatnonzero(full.n_train == source.size):
        tested = full.tested[place]
        rows = tested[np.isin(human[tested], scale)]
        for name, share in (("Base", full.task.base), (form, full.fits[place].ours)):
            counts[name] += _counts(source.task, share[rows], human[rows])
    for name, table in counts.items():
        for (i, j), value in np.ndenumerate(table / table.sum()):
            row = f"{source.judge} / {name} / human {scale[i]:g}"
            column = f"{source.dataset} / {source.form} / predicted {scale[j]:g}"
            yield Cell(row, column, float(value))


def _counts(task: Battles | Labels, predicted: Any, human: Any) -> NDArray[np.float64]:
    """Return counts by human and predicted label; an even preference is half a win, half a loss."""
    if isinstance(task, Labels):
        return confusion_matrix(predicted, human, categories=task.scale).astype(float)
    win = (1 + np.sign(predicted - 0.5)) / 2
    lost, even, won = confusion_matrix(win, human, categories=(0, 0.5, 1))[[0, 2]].T
    return np.stack([lost + even / 2, won + even / 2], axis=1)


# ------------------------------------------------------------------ tables of arithmetic


def parameters(sources: list[Source]) -> Iterator[Cell]:
    """Yield Table 3: fitted parameters; TRACT adapts all linear layers of an 8B model by rank 8."""
    linear = base_judge("ls", WIDTH).n_parameters
    attention, mlp = 2 * (2 * WIDTH) + 2 * (WIDTH + 1024), 3 * (WIDTH + 14336)
    for dataset in DATASETS:
        yield Cell(dataset, "LS, BTL or BTL2", linear)
        if dataset in SCALES:
            judge = base_judge("mn", WIDTH, SCALES[dataset])
            yield Cell(dataset, "MN", judge.n_parameters)
        yield Cell(dataset, "TRACT", 32 * 8 * (attention + mlp) / 1e6, "millions")
    for source in sources:
        forms = {"MN": "mn", "PL": "pl"}
        width, form = source.task.n_features, forms.get(source.form, "ls")
        size = len(source.task.scale) if isinstance(source.task, Labels) and form == "mn" else None
        row = f"{source.dataset} / {source.judge} / {width} features"
        yield Cell(row, source.form, base_judge(form, width, size).n_parameters)


# ------------------------------------------------------------------ items

_RATED = "ratings: vectors of rationales, judge scores and human ratings"
_PAIRED = "pairs: vectors of rationales, judge scores and human choices"
_ANY = "ratings, pairs or rankings"
_LS, _BTL, _ALL = ("LS", "MN"), ("BTL", "BTL2"), ("LS", "MN", "BTL", "BTL2", "PL")
_ERRORS, _CLASSES = partial(dropped, ("mse", "accuracy")), partial(dropped, ("accuracy", "f1"))


ITEMS: Items = {
    "table1": ("LS and MN against human ratings", _RATED, partial(_made, _LS, learning)),
    "table2": ("BTL and BTL2 against human choices", _PAIRED, partial(_made, _BTL, learning)),
    "table3": ("numbers of parameters", "the sizes of embedding and scale", parameters),
    "table4": ("seconds per 1,000 requests", "times of the base judges on a GPU", lambda _: ()),
    "table6": ("features dropped, LS and MN", _RATED, partial(_made, _LS, _ERRORS)),
    "table7": ("features dropped, BTL and BTL2", _PAIRED, partial(_made, _BTL, _CLASSES)),
    "table8": ("score or embedding dropped", _ANY, partial(_made, _ALL, parts)),
    "penalty": ("loss by penalty", _ANY, partial(_made, _ALL, penalties)),
    "confusion": ("confusion matrices", _ANY, partial(_made, (*_LS, *_BTL), confusion)),
    "rankings": ("Plackett-Luce", "rankings", partial(_made, ("PL",), learning)),
}
PAPER = Paper("quantitative", ITEMS, read)
