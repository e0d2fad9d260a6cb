"""Score and choice distributions: outcomes of battles, and contradictions of a judge.

Conflicts: the judge scored two completions alone and compared them, and the signs differ.
Violations: among the answers to one question its comparisons are no ranking with ties. Rubric
outcomes are held against single scores: with their own scores they agree by construction.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from judgeline.io import each_category
from judgeline.steps.outcomes import SCORE_SOURCES, outcomes_by_source
from judgeline.steps.step import Made, step
from judgeline.tables.judging import CHOICE_VERDICTS, SCORE_VERDICTS
from judgeline.tables.trust import ALL, CONFLICT, CONSISTENCY, OVERALL, SOFT_OUTCOMES, VIOLATION
from judgeline.trust import (
    MOST_SUBSETS,
    ViolationCounts,
    count_violations,
    outcome_matrices,
    score_conflicts,
    violation_rates,
)
from judgeline.verdict import CRITERIA, criterion_difference, hard_outcome, sign_outcome

COMPARISONS = ("likelihood", "choice", "rubric")
"""Sources of comparisons, the one that uses most of the answer first."""

SIZES = (3, 4, 5)

_Row = dict[str, Any]


def rubric_outcomes(battles: pd.DataFrame, verdicts: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the rubric's outcomes by battle, overall and by criterion, as of `hard_outcome`."""
    ours, theirs = ([f"{criterion}_{side}" for criterion in CRITERIA] for side in "ab")
    parsed = verdicts[verdicts["status"].eq("ok")].dropna(subset=[*ours, *theirs])
    scores = [parsed[side].to_numpy(dtype=float) for side in (ours, theirs)]
    gaps = pd.DataFrame(scores[0] - scores[1], columns=list(CRITERIA))
    gaps.insert(0, OVERALL, criterion_difference(*scores))
    means = gaps.groupby([parsed["order"].to_numpy(), parsed["battle_id"].to_numpy()]).mean()
    by_order = [
        means[means.index.get_level_values(0) == order].droplevel(0).reindex(battles["battle_id"])
        for order in ("AB", "BA", "mean")
    ]
    first, second = (single.fillna(by_order[2]) for single in by_order[:2])
    both = first[OVERALL].notna() & second[OVERALL].notna()
    return {
        dimension: pd.Series(
            hard_outcome(first.loc[both, dimension], second.loc[both, dimension]),
            index=first.index[both],
        )
        for dimension in gaps
    }


def consistency_table(
    battles: pd.DataFrame,
    outcomes: Mapping[tuple[str, str], pd.Series],
    score_differences: Mapping[str, pd.Series],
    *,
    tolerance: float,
) -> pd.DataFrame:
    """Return conflict ratios and non-transitivity ratios of one judge, overall and by category.

    Where no battle has a category, languages stand for them. Outcomes are A's share of
    the win, score differences A minus B in points, equal within `tolerance`. ``n`` counts battles
    scored and compared, or subsets of ``size`` answers whose pairs were all compared; it is 0, and
    the ratio null, where a question has over `MOST_SUBSETS`.
    """
    # Questions and models are numbers, the lower model first.
    question, _ = pd.factorize(battles["question_id"])
    models = battles[["model_a", "model_b"]].to_numpy(dtype=object)
    first, second = pd.factorize(models.ravel())[0].reshape(-1, 2).T
    column = "category" if battles["category"].notna().any() else "language"
    keyed = pd.DataFrame(
        {
            "question": question,
            "low": np.minimum(first, second),
            "high": np.maximum(first, second),
            "swapped": first > second,
            "category": battles[column].fillna("unknown").to_numpy(dtype=object),
        },
        index=battles["battle_id"].to_numpy(dtype=object),
    )
    rows = []
    for (source, dimension), outcome in outcomes.items():
        place = {"measure": CONFLICT, "source": source, "dimension": dimension}
        for scores in SCORE_SOURCES if dimension == OVERALL else ():
            if scores in score_differences:
                both = pd.DataFrame({"outcome": outcome, "gap": score_differences[scores]}).dropna()
                found = _conflicts(both, keyed["category"].reindex(both.index), tolerance)
                rows += [{**place, "scores": scores, **row} for row in found]
    for (source, dimension), outcome in outcomes.items():
        place = {"measure": VIOLATION, "source": source, "dimension": dimension}
        rows += [{**place, **row} for row in _violations(keyed, outcome)]
    return CONSISTENCY.typed(pd.DataFrame(rows, columns=CONSISTENCY.columns))


def _conflicts(both: pd.DataFrame, categories: pd.Series, tolerance: float) -> Iterator[_Row]:
    """Yield the conflict ratio over all battles, then by category where there are several."""
    zero = np.zeros(len(both))
    conflicts = pd.Series(score_conflicts(both["gap"], zero, both["outcome"], tolerance=tolerance))
    named = _each(categories)
    parts = list(conflicts[named.index].groupby(named.to_numpy()))
    for name, part in [(ALL, conflicts), *(parts if len(parts) > 1 else [])]:
        yield {"category": name, "n": len(part), "ratio": part.astype(float).mean()}


def _each(categories: pd.Series) -> pd.Series:
    """Return the categories one a row; one called all is told from the whole."""
    return each_category(categories).replace(ALL, f"{ALL} (category)")


def _violations(keyed: pd.DataFrame, outcome: pd.Series) -> Iterator[_Row]:
    """Yield violations by size of subset, of one outcome a pair: the sign of its battles' mean."""
    known = keyed.loc[outcome.index]
    share = np.where(known["swapped"], 1 - outcome.to_numpy(), outcome.to_numpy())
    table = known[["question", "low", "high"]].assign(outcome=share)
    pairs = table.groupby(["question", "low", "high"], as_index=False)["outcome"].mean()
    pairs = pairs.assign(outcome=sign_outcome(pairs["outcome"] - 0.5))
    categories = keyed.drop_duplicates("question").set_index("question")["category"]
    n_models = keyed["high"].max() + 1
    for size in SIZES:
        is_dense = False
        while not is_dense:  # an answer that met fewer than size - 1 others is in no subset
            ends = [
                (pairs["question"] * n_models + pairs[end]).to_numpy() for end in ("low", "high")
            ]
            met = np.bincount(np.concatenate(ends), minlength=1)
            kept = np.all([met[end] >= size - 1 for end in ends], axis=0)
            pairs, is_dense = pairs[kept], kept.all()
        found = list(_rates(pairs, categories, size))
        yield from found or [{"size": size, "category": ALL, "n": 0}]


def _rates(dense: pd.DataFrame, categories: pd.Series, size: int) -> Iterator[_Row]:
    """Yield the ratio over all questions, then by category where several have subsets."""
    if dense.empty:
        return
    comparisons = outcome_matrices(*(dense[column].to_numpy() for column in dense))
    if max(math.comb(len(answers), size) for answers in comparisons.answers) > MOST_SUBSETS:
        return
    counts = count_violations(comparisons.outcomes, sizes=(size,))
    if not counts.n_subsets.any():
        return
    named = _each(categories.reindex(comparisons.questions))
    found = [violation_rates(counts)]
    if len({*named}) > 1:
        of_each = ViolationCounts(counts.sizes, *(column[named.index] for column in counts[1:]))
        found.append(violation_rates(of_each, named.to_numpy(dtype=object)))
    for rates in found:
        shares = {name: getattr(rates, name)[:, 0] for name in ("ratio", "circular", "equality")}
        table = pd.DataFrame({"category": rates.categories, "n": rates.n_subsets[:, 0], **shares})
        yield from table[table["n"].gt(0)].assign(size=size).to_dict("records")


NOT_ASKED = (
    "there are neither single scores nor choices of this judge: the notes of score_verdicts and "
    "choice_verdicts say why (its 'asks' in judges.yaml)"
)


@step(SOFT_OUTCOMES, reads=("scale", "tolerance"))
def soft_outcomes(
    sampled_battles: pd.DataFrame,
    choice_verdicts: pd.DataFrame | None,
    score_verdicts: pd.DataFrame | None,
    *,
    settings: Any,
) -> Made:
    """One battle by one source: probabilities, perplexity, plain choice, or either kind of score.

    Outcomes are A's share of the win, score differences A minus B in points of 1 to 10.
    """
    outcomes = outcomes_by_source(
        sampled_battles,
        CHOICE_VERDICTS.empty() if choice_verdicts is None else choice_verdicts,
        SCORE_VERDICTS.empty() if score_verdicts is None else score_verdicts,
        scale=settings.scale,
        tolerance=settings.tolerance,
    )
    counts = outcomes["source"].value_counts(sort=False).to_dict()
    notes = {
        "n_sampled": len(sampled_battles),
        "tolerance": settings.tolerance,
        **{f"n_{source}": n for source, n in counts.items()},
    }
    return Made(outcomes, notes | _why_empty(outcomes))


@step(CONSISTENCY, reads=("tolerance",))
def consistency(
    sampled_battles: pd.DataFrame,
    verdicts: pd.DataFrame | None,
    soft_outcomes: pd.DataFrame,
    *,
    settings: Any,
) -> Made:
    """Rates at which a judge contradicts itself, of the pairs and subsets that can be compared.

    Conflicts of its single scores with its comparisons, and subsets of 3, 4 and 5 answers to one
    question whose comparisons are no ranking; by criterion of the rubric, and by category, or by
    language where no battle has a category.
    """
    by_source = {name: of.set_index("battle_id") for name, of in soft_outcomes.groupby("source")}
    compared = {
        (source, OVERALL): by_source[source]["outcome"]
        for source in COMPARISONS
        if source in by_source
    }
    rubric = {} if verdicts is None else rubric_outcomes(sampled_battles, verdicts)
    compared |= {("rubric", name): outcome for name, outcome in rubric.items() if len(outcome)}
    differences = {name: of["score_difference"] for name, of in by_source.items()}
    tolerance = settings.tolerance
    table = consistency_table(sampled_battles, compared, differences, tolerance=tolerance)
    return Made(table, _why_empty(soft_outcomes))


def _why_empty(outcomes: pd.DataFrame) -> dict[str, str]:
    return {"note": NOT_ASKED} if outcomes.empty else {}
