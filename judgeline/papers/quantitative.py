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
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, softmax

from judgeline.elo import keyed_rng
from judgeline.io import SUFFIXES, Rationales, as_numbers, read_rationales
from judgeline.papers.quantitative_text import DATASETS, text
from judgeline.papers.tables import Allowance, Cell, Item, Paper, plain_name
from judgeline.quantitative import (
    Battles,
    Design,
    Labels,
    LearningCurve,
    TooLittleToLearnError,
    Trials,
    base_judge,
    base_logit,
    base_logit_of_scores,
    confusion_matrix,
    presentations,
    trials,
    two_headed,
)

DESIGN = Design()
DROPPED = (0.0, 50.0, 75.0, 87.5)
"""Percent of the embedding's features that are dropped at random."""
PRINTED_ONCE = ("JudgeLM", "70B", "TRACT")
"""Judges that the paper prints without quantitative judges of theirs."""
JUDGES = ("Prometheus", "Llama", *PRINTED_ONCE)
WIDTH, SCALES = 4096, {"Summarize from Feedback": 7, "HelpSteer2": 5}
LEAST_CHANCE = 1e-6
"""Mass added to each rating's probability, which must not be 0."""


# ------------------------------------------------------------------ a user's files


@dataclass(frozen=True)
class Source:
    """One form's labels of a judge in a data set; what is tested, and the base judge's row."""

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
    """Return the labels of ``ratings``, ``pairs`` and ``rankings`` (any format) in a folder."""
    if data is not None and not data.is_dir():
        raise ValueError(f"{data} is no folder; name the one that holds ratings, pairs or rankings")
    sources: list[Source] = []
    for kind, forms in (("ratings", _rated), ("pairs", _paired), ("rankings", _ranked)):
        paths = [data / f"{kind}{suffix}" for suffix in SUFFIXES] if data else []
        for path in filter(Path.is_file, paths):
            say(f"reading {path.name}")
            labels = read_rationales(path, kind)
            groups = labels.table.groupby(["dataset", "judge"], sort=False).indices
            for names, rows in groups.items():
                try:
                    sources += _sources(names, forms(labels.take(rows)))
                except ValueError as error:
                    raise ValueError(f"{path}, {' of '.join(names[::-1])}: {error}") from error
    return sources


def _sources(names: tuple[str, str], forms: "_Forms") -> Iterator[Source]:
    """Yield the forms of a data set and judge, in the paper's spelling of their names."""
    dataset, judge = (
        {plain_name(one): one for one in known}.get(plain_name(name), name)
        for name, known in zip(names, (DATASETS, JUDGES), strict=True)
    )
    base = judge if judge in PRINTED_ONCE else f"{judge} / Base"
    for place, (form, task, rows) in enumerate(forms):
        split = _among(rows, "split", "train", "test")
        tested = split.eq("test").to_numpy() if "split" in rows else None
        yield Source(dataset, judge, form, task, tested, f"{base} of {form}" if place else base)


_Forms = Iterator[tuple[str, Battles | Labels, pd.DataFrame]]


def _among(rows: pd.DataFrame, column: str, usual: str, other: str) -> "pd.Series[str]":
    """Return a column of two words, the usual one where there is no such column."""
    words = rows[column] if column in rows else pd.Series(usual, rows.index)
    wrong = words[~words.isin([usual, other])]
    if len(wrong):
        raise ValueError(
            f"{column} is {wrong.iloc[0]!r} in row {wrong.index[0]}; expected {usual} or {other}: "
            "rename it, or leave the row out"
        )
    return words


def _rated(own: Rationales) -> _Forms:
    """Yield LS, and MN where the judge's probabilities of ratings are known."""
    rows, vectors = own.table, own.vectors["embedding"]
    rating, score = as_numbers(rows["human_rating"]), as_numbers(rows["judge_score"])
    scale = own.scale if own.scale.size else np.unique(rating)
    labels = partial(Labels.of, label=rating, question=rows["question_id"], scale=scale)
    yield "LS", labels("ls", vectors, score), rows
    if own.scale.size > 2:
        chance = softmax(own.log_probabilities, axis=1) + LEAST_CHANCE
        yield "MN", labels("mn", vectors, chance / chance.sum(axis=1, keepdims=True)), rows


def _paired(own: Rationales) -> _Forms:
    """Yield BTL where a rationale speaks of both answers, BTL2 where two speak of one each."""
    rows = own.table
    names = rows["battle_id"] if "battle_id" in rows else pd.Series(rows.index.astype(str))
    place, _ = pd.factorize(names)
    battles = rows[~names.duplicated()]
    votes = as_numbers(battles["human_outcome"]), battles["question_id"]
    if "embedding" in own.vectors and {"judge_probability", "score_difference"} & {*rows}:
        swapped = _among(rows, "order", "AB", "BA").eq("BA").to_numpy()
        if "judge_probability" in rows:
            share = as_numbers(rows["judge_probability"])
            score = base_logit(share)
        else:
            score = as_numbers(rows["score_difference"])
            share = (1 + np.sign(score)) / 2
        base, score = pd.Series(share).groupby(place).mean(), np.where(swapped, -score, score)
        shown = presentations(own.vectors["embedding"], score, place, swapped)
        yield "BTL", Battles.of(shown, base, *votes), battles
    if {"embedding_a", "embedding_b", "judge_score_a", "judge_score_b"} <= {*own.vectors, *rows}:
        scores = [as_numbers(battles[f"judge_score_{side}"]) for side in "ab"]
        both = (own.vectors[f"embedding_{side}"][battles.index] for side in "ab")
        base = expit(base_logit_of_scores(*scores))
        yield "BTL2", Battles.of(two_headed(*both, *scores), base, *votes), battles


def _ranked(own: Rationales) -> _Forms:
    """Yield PL: K alternatives a set, of which people ranked the T best; here best first."""
    sets = own.table.groupby("ranking_id")
    size, placed = sets.size(), sets["human_rank"].count()
    for count, what in ((size, "alternatives"), (placed, "ranks")):
        usual = count.mode()[0]
        if count.ne(usual).any() or not usual:
            odd = count.index[np.argmax(count.ne(usual) | count.eq(0))]
            raise ValueError(
                f"ranking {odd!r} has {count[odd]} {what}, most have {usual}; all sets of a data "
                "set need one number, above 0: leave out the others, or empty lower ranks"
            )
    order = own.table.sort_values(["ranking_id", "human_rank"], kind="stable").index
    place = order.to_numpy().reshape(size.size, -1)
    ranks = as_numbers(own.table["human_rank"])[place][:, : placed.iloc[0]]
    tied = (np.diff(ranks, axis=1) == 0).any(axis=1)
    if tied.any():
        raise ValueError(
            f"ranking {size.index[np.argmax(tied)]!r} has a human_rank twice; give each "
            "alternative its own, or leave the set out"
        )
    first, score = own.table.iloc[place[:, 0]], as_numbers(own.table["judge_score"])[place]
    best = np.tile(np.arange(placed.iloc[0]), (size.size, 1))
    vectors = own.vectors["embedding"][place]
    yield "PL", Labels.of("pl", vectors, score, best, first["question_id"]), first


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
    for penalty, value in zip(DESIGN.penalties, loss.tolist(), strict=True):
        yield Cell(row, f"{source.dataset} / loss at gamma={penalty:g}", value)


def confusion(source: Source) -> Iterator[Cell]:
    """Yield how often each label is predicted as which, over the largest training sets."""
    human, scale = source.task.human, np.array([0.0, 1.0])
    if isinstance(source.task, Labels):
        scale = source.task.scale
    else:
        human = (1 + np.sign(human - 0.5)) / 2  # a tie is no class
    full, form = source.full, f"{source.form} ({source.size})"
    counts = {name: np.zeros((len(scale), len(scale))) for name in ("Base", form)}
    for place in np.flatnonzero(full.n_train == source.size):
        tested = full.tested[place]
        rows = tested[np.isin(human[tested], scale)]
        for name, share in (("Base", full.task.base), (form, full.fits[place].ours)):
            counts[name] += confusion_matrix(share[rows], human[rows], categories=scale)
    for name, table in counts.items():
        for (i, j), value in np.ndenumerate(table / table.sum()):
            row = f"{source.judge} / {name} / human {scale[i]:g}"
            column = f"{source.dataset} / {source.form} / predicted {scale[j]:g}"
            yield Cell(row, column, float(value))


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


def _nothing(_: list[Source]) -> Iterator[Cell]:
    """Yield nothing: seconds of a GPU cannot be made of files."""
    return iter(())


# ------------------------------------------------------------------ items

_RATED = "ratings: vectors of rationales, judge scores and human ratings"
_PAIRED = "pairs: vectors of rationales, judge scores and human choices"
_ANY = "ratings, pairs or rankings"
_LS, _BTL = ("LS", "MN"), ("BTL", "BTL2")
_ERRORS, _CLASSES = partial(dropped, ("mse", "accuracy")), partial(dropped, ("accuracy", "f1"))


def _item(name: str, title: str, source: str, make: Any) -> Item:
    return Item(f"quantitative.{name}", title, source, make)


ITEMS = (
    _item("table1", "LS and MN against human ratings", _RATED, partial(_made, _LS, learning)),
    _item("table2", "BTL and BTL2 against human choices", _PAIRED, partial(_made, _BTL, learning)),
    _item("table3", "numbers of parameters", "the sizes of embedding and scale", parameters),
    _item("table4", "seconds per 1,000 requests", "times of the base judges on a GPU", _nothing),
    _item("table6", "features dropped, LS and MN", _RATED, partial(_made, _LS, _ERRORS)),
    _item("table7", "features dropped, BTL and BTL2", _PAIRED, partial(_made, _BTL, _CLASSES)),
    _item("table8", "score or embedding dropped", _ANY, partial(_made, (*_LS, *_BTL, "PL"), parts)),
    _item("penalty", "loss by penalty", _ANY, partial(_made, (*_LS, *_BTL, "PL"), penalties)),
    _item("confusion", "confusion matrices", _ANY, partial(_made, (*_LS, *_BTL), confusion)),
    _item("rankings", "Plackett-Luce", "rankings", partial(_made, ("PL",), learning)),
    _item("text", "numbers of the text", "printed cells of the tables", text),
)
ALLOWED = {
    "correlation ratio": Allowance(relative=0.05),
    "TRACT accuracy above": Allowance(5.0),
    "MSE and MAE above": Allowance(5.0),
    "BTL2 below": Allowance(1.0),
    "/ mse": Allowance(relative=0.05),
    "/ mae": Allowance(relative=0.05),
    "/ accuracy": Allowance(0.02),
    "/ precision": Allowance(0.03),
    "/ recall": Allowance(0.03),
    "/ f1": Allowance(0.03),
    "/ pearson": Allowance(0.03),
    "/ spearman": Allowance(0.03),
    "/ kendall": Allowance(0.03),
}
"""Numbers of the text are rounded words; the training sets of the tables are drawn at random."""
PAPER = Paper("quantitative", ITEMS, read, ALLOWED)
