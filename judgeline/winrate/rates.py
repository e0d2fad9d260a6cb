"""Pass rates of single answers in people's eyes, from a judge's verdicts and some labels."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Floats, alike, require
from judgeline.winrate.corrections import adjusted_mean, require_possible
from judgeline.winrate.labels import (
    LabelPlan,
    decisive_counts,
    half_width_at_hand,
    paying_rates,
    smoothed_rates,
    split_labels,
)
from judgeline.winrate.outcomes import (
    LOSS,
    MIN_OWN_VOTES,
    NO_VOTE,
    WIN,
    NoWinRateError,
    normal_quantile,
)
from judgeline.winrate.powered import (
    Estimate,
    HeldOutModels,
    difference_estimate,
    power_tuned_estimate,
    power_tuned_half_width,
    transported,
)

RATES = {
    "prediction-powered": "valid if the labelled answers are a random part of the system's",
    "difference": "valid if the judge errs on the system as on those that people labelled",
    "corrected": "valid if the judge errs alike on labelled and on other answers, among those that "
    "people pass and among those that they fail",
    "labels": "people's labels alone; valid if the labelled answers are a random part",
    "judge": "the judge's own rate: nothing is corrected",
}
"""Rows of a system in their order, and the assumption of each."""
MANY_LABELS = 20
"""Labels of a system that stand for themselves, however nearly they are all alike."""

FEW_LABELS = 5
"""Labels from which Wilson's 90 % interval holds any rate about as often as at twenty, 80 % at the
least; of fewer it holds some rates 73 % of the time."""

RATE_RULE = (
    f"A system with at least {MIN_OWN_VOTES} labels passed and {MIN_OWN_VOTES} failed shows "
    f"'prediction-powered', another one with {MANY_LABELS} labels 'labels'. One with fewer shows "
    "'difference', from labels of other systems; where those bound no interval, 'labels' from "
    f"{FEW_LABELS} labels on."
)

WORSE_THAN_CHANCE = 0.05
"""P-value up to which labels say that a judge is no better than chance."""

_POOLED_LABELS = "by the labels of all systems: real judges do not err alike on all of them"

_WHY_NOT = {
    "chance": "the judge passes less of what people pass than of what they fail (one-sided exact "
    "test, p = {p_value:.2g}): no correction",
    "labels-cannot-tell": "labels cannot tell whether the judge passes more of what people pass "
    "than of what they fail: label more answers",
    "all-labelled": "every answer has a label: there is none to correct",
    "no-labels": "no label passed, or none failed: label more answers",
}


class PassRates(NamedTuple):
    """One row per system and estimator, shares of answers; NaN with a `status` not ok.

    `headline` marks the row to show, `basis` states its assumption. `n_answers` have a verdict,
    `n_labels` of them a label too. `sensitivity` and `specificity` are the judge's, on the labels
    that the row is corrected by. `status` is ``ok``, ``few-labels``, ``no-labels``,
    ``all-labelled``, ``refuted`` (`require_possible`), ``chance``: the labels reject by
    `reversal_p_value` that the judge is better than chance, or ``labels-cannot-tell``: they show
    no skill, and do not reject it either. `note` says what is missing.
    """

    system: NDArray[np.str_]
    estimator: NDArray[np.str_]
    headline: NDArray[np.bool_]
    rate: Floats
    lower: Floats
    upper: Floats
    n_answers: NDArray[np.int64]
    n_labels: NDArray[np.int64]
    sensitivity: Floats
    specificity: Floats
    basis: NDArray[np.str_]
    status: NDArray[np.str_]
    note: NDArray[np.str_]


class LabelSplits(NamedTuple):
    """One row per system: labels at hand, and further ones by what people will say of the answer.

    `half_width`, a share of answers, is what the interval of `corrected` is to be expected to have
    then, and `half_width_now` what the labels at hand give it. Between `pays_from`
    and `pays_to`, `corrected` is narrower than as many random labels averaged alone; both are NaN
    if it never is. Plans are NaN where `status` is not ok, and `note` says why: ``class-absent``,
    ``chance``. Of a plan that needs more answers than the system has, it says how many.
    """

    system: NDArray[np.str_]
    n_passed: NDArray[np.int64]
    n_failed: NDArray[np.int64]
    more_passed: Floats
    more_failed: Floats
    half_width: Floats
    half_width_now: Floats
    pays_from: Floats
    pays_to: Floats
    status: NDArray[np.str_]
    note: NDArray[np.str_]


def pass_rates(
    system: ArrayLike, verdict: ArrayLike, label: ArrayLike, *, miscoverage: float = 0.1
) -> PassRates:
    """Return the share of answers of each system that people would pass.

    Parameters
    ----------
    system : array_like of str, shape (n,)
        System that gave each answer.
    verdict : array_like, shape (n,)
        The judge's: 1 passed, 0 failed.
    label : array_like, shape (n,)
        A person's: 1 passed, 0 failed, NaN where nobody looked.
    miscoverage : float
        Share of misses that intervals may have, in (0, 1).

    Returns
    -------
    PassRates
        Rows by system in the order of their names, then in the order of `RATES`.

    Raises
    ------
    ValueError
        If lengths differ, there is no answer, or a value is another one.

    References
    ----------
    A. N. Angelopoulos, J. C. Duchi and T. Zrnic (2023), "PPI++", arXiv:2311.01453; C. Lee et al.
    (2025), "How to Correctly Report LLM-as-a-Judge Evaluations", arXiv:2511.21140; E. B. Wilson
    (1927), JASA 22(158), for intervals of plain shares.
    """
    systems, counts = _counted(system, verdict, label)
    tables, rest = counts[..., :NO_VOTE], counts[..., NO_VOTE]
    given = transported(
        _held_out(tables, rest),
        "labelled systems",
        miscoverage=miscoverage,
        n_meant=counts.sum(axis=(1, 2)),
    )
    everybody = tables.sum(axis=0)
    rows = [
        (name, *row)
        for name, own, alone, by_others in zip(systems.tolist(), tables, rest, given, strict=True)
        for row in _of_system(own, alone, everybody, by_others, miscoverage)
    ]
    return PassRates(*(np.array(column) for column in zip(*rows, strict=True)))


def split_of_labels(
    system: ArrayLike,
    verdict: ArrayLike,
    label: ArrayLike,
    *,
    n_labels: int,
    miscoverage: float = 0.1,
) -> LabelSplits:
    """Return how to divide labels of each system between what people pass and what they fail.

    Parameters
    ----------
    system, verdict, label
        As for `pass_rates`; labels at hand are the pilot that the division is learnt from.
    n_labels : int
        Labels of each system in all, those at hand included.
    miscoverage : float
        Share of misses that the interval to expect may have, in (0, 1).

    Returns
    -------
    LabelSplits
        A row per system in the order of their names.

    Raises
    ------
    ValueError
        As of `pass_rates`, and if a system has more labels already.

    References
    ----------
    C. Lee et al. (2025), arXiv:2511.21140, Algorithm 1; `judgeline.winrate.labels` has it.
    """
    systems, counts = _counted(system, verdict, label)
    rows: list[tuple[object, ...]] = []
    quantile = normal_quantile(miscoverage)
    for name, own in zip(systems.tolist(), counts, strict=True):
        at_hand = decisive_counts(own[:, NO_VOTE], own[:, :NO_VOTE])
        have = int(at_hand.n_won), int(at_hand.n_lost)
        if sum(have) > n_labels:
            raise ValueError(
                f"system {name!r} has {sum(have)} labels already, more than the {n_labels} in all "
                f"that are to be divided; ask for {sum(have)} or more"
            )
        try:
            plan = split_labels(at_hand, n_labels=n_labels, quantile=quantile)
            now = half_width_at_hand(at_hand, quantile=quantile)
            n_left = int(own[:, NO_VOTE].sum())
            judge = smoothed_rates(at_hand, quantile)
            pays = paying_rates(
                judge.specificity, judge.sensitivity, labels_per_test_battle=n_labels / n_left
            )
            rows.append((name, *have, *plan, now, *pays, "ok", _lacking(plan, n_left)))
        except NoWinRateError as error:
            rows.append((name, *have, *[np.nan] * 6, error.status, str(error)))
    return LabelSplits(*(np.array(column) for column in zip(*rows, strict=True)))


def _lacking(plan: LabelPlan, n_unlabelled: int) -> str:
    """Return how many answers are to be judged beside those that have no label yet."""
    more = plan.n_won + plan.n_lost
    if more <= n_unlabelled:
        return ""
    return (
        f"{more:,} more labels are planned, and {n_unlabelled:,} answers have none: have the judge "
        f"call {more - n_unlabelled:,} more answers first, or ask for fewer labels"
    )


def _counted(
    system: ArrayLike, verdict: ArrayLike, label: ArrayLike
) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    """Return the systems, and their answers by verdict (pass, tie, fail) and label (none last)."""
    names, judged, labelled = alike(system=system, verdict=verdict, label=label)
    require(names.size, "the number of answers", 0, "at least one, with a system and a verdict")
    judged, labelled = judged.astype(float), labelled.astype(float)
    known = ~np.isnan(labelled)
    require(np.isin(judged, (0, 1)), "verdict", judged, "1 or 0")
    require(np.isin(labelled, (0, 1)) | ~known, "label", labelled, "1 or 0")
    systems, code = np.unique(names.astype(str), return_inverse=True)
    by_label = np.where(known, 2 * (1 - np.nan_to_num(labelled)), NO_VOTE)
    cells = ((code * 3 + 2 * (1 - judged)) * 4 + by_label).astype(np.int64)
    return systems, np.bincount(cells, minlength=systems.size * 12).reshape(-1, 3, 4)


def _held_out(tables: NDArray[np.int64], rest: NDArray[np.int64]) -> HeldOutModels:
    """Return every system's rate by the labels of others, beside its own labels."""
    passed, n_labels = tables.sum(axis=1)[:, WIN], tables.sum(axis=(1, 2))
    fits = [
        difference_estimate(own[None], others[None]) if others.any() else (np.nan, np.nan)
        for own, others in zip(tables.sum(axis=2) + rest, tables.sum(axis=0) - tables, strict=True)
    ]
    human = np.where(n_labels > 0, passed / np.maximum(n_labels, 1), np.nan)
    rate, variance = np.array(fits).T
    return HeldOutModels(rate, variance, human, n_labels)


def _of_system(
    own: NDArray[np.int64],
    rest: NDArray[np.int64],
    everybody: NDArray[np.int64],
    by_others: Estimate,
    miscoverage: float,
) -> Iterator[tuple[object, ...]]:
    """Yield a system's rows after its name, from its labelled answers (3, 3) and others (3,)."""
    passed, _, failed = own.sum(axis=0).tolist()
    n_labels, judged = passed + failed, own.sum(axis=1) + rest
    enough = min(passed, failed) >= MIN_OWN_VOTES
    table = own if enough else everybody
    sums = np.maximum(table.sum(axis=0), 1)
    skill = table[WIN, WIN] / sums[WIN], table[LOSS, LOSS] / sums[LOSS]
    few = f"fewer than {MIN_OWN_VOTES} labels passed or failed: label more answers of this system"
    found = {
        "prediction-powered": (Estimate(note=few), "few-labels"),
        "difference": (by_others, "ok"),
        "corrected": _corrected(rest, table, miscoverage, "" if enough else _POOLED_LABELS),
        "labels": (_wilson(passed, n_labels, miscoverage), "ok"),
        "judge": (_wilson(int(judged[WIN]), int(judged.sum()), miscoverage), "ok"),
    }
    if not n_labels:
        found["labels"] = Estimate(note="nobody labelled an answer of this system"), "no-labels"
    if np.isnan(by_others.rate):
        note = "nobody labelled an answer of another system"
        found["difference"] = Estimate(note=note), "no-labels"
    if enough:
        powered = power_tuned_estimate(own, rest)
        reach = power_tuned_half_width(powered.variance, n_labels, miscoverage=miscoverage)
        found["prediction-powered"] = Estimate.around(powered.win_rate, reach), "ok"
    bounded = by_others.upper - by_others.lower < 1
    headline = "prediction-powered" if enough else "difference"
    if not enough and n_labels >= (MANY_LABELS if bounded else FEW_LABELS):
        headline = "labels"
    for estimator, basis in RATES.items():
        estimate, status = found[estimator]
        yield (
            estimator,
            estimator == headline and status == "ok",
            *estimate[:3],
            int(judged.sum()),
            n_labels,
            *(skill if estimator == "corrected" and table.any() else (np.nan, np.nan)),
            basis,
            status,
            estimate.note,
        )


def _corrected(
    rest: NDArray[np.int64], table: NDArray[np.int64], miscoverage: float, note: str
) -> tuple[Estimate, str]:
    """Return the published correction by labels `table` (3, 3), and its status."""
    p_value = np.nan
    try:
        fixed = adjusted_mean(rest[None], table[None], miscoverage=miscoverage)
        rate, lower, upper, error, _, centre = map(float, fixed)
        require_possible(centre, normal_quantile(miscoverage) * error)
        return Estimate(rate, lower, upper, error, note), "ok"
    except NoWinRateError as refusal:
        status = refusal.status
        if status == "refuted":
            return Estimate(note=str(refusal)), status
        if status == "chance":
            p_value = reversal_p_value(table[np.ix_((WIN, LOSS), (WIN, LOSS))])
            status = "chance" if p_value <= WORSE_THAN_CHANCE else "labels-cannot-tell"
        else:
            status = "no-labels" if rest.any() else "all-labelled"
        return Estimate(note=_WHY_NOT[status].format(p_value=p_value)), status


def reversal_p_value(counts: ArrayLike) -> float:
    """Return the chance of labels that speak as much against the judge, were it a coin.

    Fisher's exact test, one-sided: with `counts` (2, 2) of labelled answers by verdict and by
    label, passed first, the number that both pass is hypergeometric for a judge whose verdict
    tells nothing of the label, and larger for one better than chance (sensitivity +
    specificity above 1). A small value rejects both.

    References
    ----------
    R. A. Fisher (1935), "The Logic of Inductive Inference", JRSS 98(1).
    """
    from scipy.stats import hypergeom  # slow to import, and seldom needed

    (both, judge_only), (people_only, neither) = np.asarray(counts).tolist()
    by_judge, by_people = both + judge_only, both + people_only
    n = by_judge + people_only + neither
    return float(hypergeom.cdf(both, n, by_people, by_judge))


def _wilson(passed: int, n: int, miscoverage: float) -> Estimate:
    """Return a plain share and its interval."""
    if not n:
        return Estimate()
    square = normal_quantile(miscoverage) ** 2
    share = passed / n
    centre = (share + square / (2 * n)) / (1 + square / n)
    reach = np.sqrt(square * (share * (1 - share) / n + square / (4 * n * n))) / (1 + square / n)
    return Estimate.around(centre, reach)._replace(rate=share)
