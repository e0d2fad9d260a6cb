"""Errors of ratings, coverage of intervals and worth of trust signals, on simulated arenas.

True ratings are those of the simulation. A row per arena is appended to a file as it is finished;
a second call goes on where the first one stopped, and `--report` writes docs/study.md from the rows
that there are. README.md says more.
"""

import argparse
import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

from assets.diagnostics.missing import MAX_CHANCE
from assets.elo.ratings import MEDIAN_STD_ERROR_RATIO, STD_ERROR_RATIO, WORSE_BY
from assets.reference.assets import errors_result, reach_result
from assets.winrate.assets import covered
from judgeline.diagnostics import bound_missing, diagnose_judge, excess_p_values, width_limit
from judgeline.elo import (
    ELO_ORIGIN,
    ELO_PER_LOGIT,
    HEADLINE,
    BetaFolds,
    CodedBattles,
    HeldOutRatings,
    RatingSettings,
    code_battles,
    fit_beta_folds,
    human_anchors,
    keyed_rng,
    rate,
    rate_outcomes,
    summarise,
)
from judgeline.elo.battle_counts import Sums
from judgeline.intervals import (
    BEYOND,
    calibrate_intervals,
    calibrating_models,
    conformal_quantile,
    nonconformity_scores,
    rank_models,
    rate_by_votes,
    rate_with_votes,
    refit_errors,
    running_coverage,
)
from judgeline.io import family_of
from judgeline.rating_options import RatingOptions
from judgeline.reliability import (
    Judgement,
    Measurement,
    detect_drift,
    hold_to,
    panel_measurements,
)
from judgeline.report.drawing import Chart
from judgeline.report.figures import Illustration, picture
from judgeline.steps.anchoring import against, meetings, rate_against
from judgeline.steps.reference import LIKELIHOOD, diagnose
from judgeline.steps.winrate import adjustment_coverage
from judgeline.trust import count_violations, outcome_matrices, score_conflicts, violation_rates
from judgeline.verdict.outcomes import hard_outcome
from resources.config.corpora import ReferenceOptions

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))  # its oracle
from jackknife import jackknife_intervals

MISCOVERAGE, NEW, OWN_BATTLES, REFITS = 0.1, 4, 30, 10
FLAGS = (
    "few-battles", "anchors-disconnected", "no-slope", "no-ruler", "no-weights",
    "judge-always-prefers", "judge-never-prefers", "humans-always-prefer", "humans-never-prefer",
    "no-battles-with-anchors", "no-spread", BEYOND,
)  # fmt: skip
FAMILIES = ("alpha", "beta", "gamma")  # the judge is of the first
Floats = np.ndarray
Row = dict[str, Any]


class Kind(NamedTuple):
    """A judge and its arena. Gaps, noises and biases are in human logits.

    `unseen` is a question's own gap, seen by people and judge; `noise` what the judge alone sees in
    a battle, `run` in a call; `bias` its taste in models. `points` are rubric points per logit,
    `position` points for what is shown first. `length` is per standard deviation of log length,
    `family` for models of its own; `uneven` makes some models harder to judge. `stranger` is a
    bias of every new model, `drift` the share of its points that is lost, `failing` the share of
    unreadable answers about two of the models, `halo` the share by which gaps between models, but
    not between answers, are exaggerated, `blind` a further bias in the strongest third. `stray`
    leaves one new model without battles against voted ones, and another with one; `reference` is
    the rank by strength of the model that all others meet, from 0 (weakest) to 1.
    """

    unseen: float = 0.0
    noise: float = 0.8
    run: float = 0.2
    bias: float = 0.15
    points: float = 1.5
    position: float = 0.0
    length: float = 0.0
    family: float = 0.0
    uneven: bool = False
    levels: bool = False
    votes: float = 1.0
    ties: float = 0.2
    stranger: float = 0.0
    drift: float = 0.0
    failing: float = 0.0
    halo: float = 0.0
    blind: float = 0.0
    stray: bool = False
    reference: float = 0.5
    battles: int = 120


KINDS = {
    "calibrated": Kind(unseen=0.9, noise=0.1),
    "stretched": Kind(noise=0.3, points=3.0),
    "noisy": Kind(noise=3.0, run=1.5),
    "position": Kind(position=2.0),
    "length": Kind(length=0.6),
    "family": Kind(family=0.6),
    "uneven": Kind(noise=1.5, bias=0.3, uneven=True),
    "few votes": Kind(votes=0.2),
    "many ties": Kind(ties=0.8, levels=True),
}
SIGNAL_SIZE = 12
SIGNAL_KINDS = {  # for signals alone: what none of the judges above does
    "coin": Kind(noise=5.0, run=40.0, points=0.1, bias=0.0),
    "stranger": Kind(stranger=1.2),
    "drifting": Kind(drift=0.4),
    "failing": Kind(failing=0.6),
    "short": Kind(battles=24),
    "very short": Kind(battles=9),
    "halo": Kind(unseen=0.9, noise=0.1, halo=0.8),
    "eight models": Kind(),
    "blind to the strong": Kind(blind=1.5),
    "stray models": Kind(stray=True),
    "strongest is reference": Kind(unseen=0.9, noise=0.1, reference=1.0),
}


class Arena(NamedTuple):
    """Battles of one arena, with everything that the judge said of them.

    `before` has no votes on the new models, `with_own` those of the first `OWN_BATTLES` of each,
    `later` all;
    `truth` (M,) and ratings are Elo points among the voted models. `runs` (k, 2, n) are
    differences in both orders of repeated calls; the first one counts.
    """

    kind: Kind
    before: CodedBattles
    with_own: CodedBattles
    later: CodedBattles
    truth: Floats
    is_new: Floats
    runs: Floats
    length: Floats
    failed: Floats
    pairs: Floats
    seen: Callable[..., Floats]


def make_arena(kind: Kind, size: int, rng: np.random.Generator) -> Arena:
    """Return an arena of `size` voted models and `NEW` others."""
    whole = size + NEW
    is_new = np.arange(whole) >= size
    family = np.arange(whole) % len(FAMILIES)
    names = np.array([f"{FAMILIES[f]}-{k:02d}" for k, f in enumerate(family)])
    order = np.argsort(names)  # as coded battles have them
    is_new, family, names = is_new[order], family[order], names[order]
    strength, wordy = rng.normal(0, 0.7, whole), rng.normal(0, 0.5, whole)
    hard_to_judge = np.exp(rng.normal(0, 0.8, whole)) if kind.uneven else np.ones(whole)
    taste = _taste(kind, strength, hard_to_judge, kind.family * (family == 0), is_new, rng)
    n = kind.battles * whole // 2
    a = rng.integers(0, whole, n)
    b = (a + rng.integers(1, whole, n)) % whole
    a[:whole], b[:whole] = np.arange(whole), np.roll(np.arange(whole), 1)
    if kind.stray:
        a, b = without_battles_of_two(a, b, is_new)
        n = a.size

    def seen_by(first: Floats, second: Floats, length: Floats, unseen: Floats) -> Floats:
        """Return the gap that the judge sees in a battle, in every call alike."""
        own = np.sqrt((hard_to_judge[first] ** 2 + hard_to_judge[second] ** 2) / 2)
        liked = (1 + kind.halo) * strength + taste
        gap = liked[first] - liked[second] + unseen
        return gap + kind.length * length + kind.noise * own * rng.standard_normal(first.size)

    unseen = rng.normal(0, kind.unseen, n)
    length = wordy[a] - wordy[b] + rng.normal(0, 0.5, n)
    chance = expit(strength[a] - strength[b] + unseen)
    tie = kind.ties * 2 * np.minimum(chance, 1 - chance)  # of either side alike: the mean stays
    draw = rng.random(n)
    vote = np.where(draw < tie, 0.5, draw < tie + chance - tie / 2)
    vote = np.where((rng.random(n) < kind.votes) | (np.arange(n) < whole), vote, np.nan)
    seen = seen_by(a, b, length, unseen)
    runs = np.array([call(kind, seen, rng) for _ in range(3)])
    failed = rng.random(n) < np.where((a < 2) | (b < 2), kind.failing, 0.02 * (kind.failing > 0))
    score = runs[0].mean(axis=0)
    coded = [
        code_battles(
            names[a][~failed],
            names[b][~failed],
            human_outcome=np.where(shown, vote, np.nan)[~failed],
            judge_outcome=hard_outcome(*runs[0])[~failed],
            score_difference=score[~failed],
        )
        for shown in _with_votes(is_new, a, b)
    ]
    # unlimited votes on questions with gaps of their own: sigmoid of a normal, by its usual slope
    told = strength / math.sqrt(1 + math.pi * kind.unseen**2 / 8)
    truth = ELO_ORIGIN + ELO_PER_LOGIT * (told - told[~is_new].mean())
    pairs = np.column_stack([a, b])
    return Arena(kind, *coded, truth, is_new, runs, length, failed, pairs, seen_by)


def _taste(
    kind: Kind,
    strength: Floats,
    hard_to_judge: Floats,
    of_family: Floats,
    is_new: Floats,
    rng: np.random.Generator,
) -> Floats:
    """Return the judge's bias towards each model beyond its strength, in logits."""
    taste = rng.normal(0, kind.bias, strength.size) * hard_to_judge
    taste += of_family + kind.stranger * is_new
    if kind.blind:
        unseen = np.abs(rng.normal(0, kind.blind, strength.size))
        taste += unseen * (strength > np.quantile(strength, 2 / 3))
    return np.asarray(taste)


def _with_votes(is_new: Floats, a: Floats, b: Floats) -> tuple[Floats, Floats, Floats]:
    """Return which battles show their votes: of no new model, of some of its own, of all these."""
    of_new = is_new[a] | is_new[b]
    settled = is_new[a] ^ is_new[b]  # a new model against a voted one
    own = np.where(is_new[a], a, b)
    rank = pd.Series(own).groupby(own).cumcount().to_numpy()
    is_own = settled & (rank < OWN_BATTLES)
    return ~of_new, ~of_new | is_own, ~of_new | settled


def without_battles_of_two(a: Floats, b: Floats, is_new: Floats) -> tuple[Floats, Floats]:
    """Return battles without those of a new model with voted ones, all but one of another's."""
    none, once = np.flatnonzero(is_new)[:2]
    settled = is_new[a] ^ is_new[b]
    of_none, of_once = (settled & ((a == k) | (b == k)) for k in (none, once))
    of_once[np.flatnonzero(of_once)[0]] = False
    kept = ~of_none & ~of_once
    return a[kept], b[kept]


def call(kind: Kind, seen: Floats, rng: np.random.Generator) -> Floats:
    """Return score differences A minus B (2, n) in either order, in rubric points."""
    noise = rng.normal(0, kind.run, (2, seen.size))
    points = kind.points * (seen + noise) + kind.position * np.array([[1.0], [-1.0]])
    if kind.levels:
        return np.sign(points) * (np.abs(points) > 1)
    return np.clip(np.rint(6 * points) / 6, -9, 9)


# ------------------------------------------------------------------ ratings and intervals


def measure_ratings(arena: Arena, heldout: HeldOutRatings) -> Iterator[tuple[str, float]]:
    """Yield each method's mean absolute error on new models, to the truth and to later votes."""
    truth, people = arena.truth[arena.is_new], later_ratings(arena)
    ratings = {m: of_new(arena, heldout, m).rating for m in heldout.judge_methods()}
    one = arena.before
    plain, _ = rate_outcomes(
        np.array(one.models)[one.model_a], np.array(one.models)[one.model_b], one.judge_outcome / 4
    )
    rating = dict(zip(plain.model.tolist(), plain.rating.tolist(), strict=True))
    everybody = np.array([rating[name] for name in one.models])
    ratings["plain"] = (everybody - everybody[~arena.is_new].mean() + ELO_ORIGIN)[arena.is_new]
    ratings["judge and own votes"] = with_votes(arena, heldout)[0]
    ratings["own votes alone"] = later_ratings(arena, arena.with_own)
    for method, values in ratings.items():
        yield f"error:{method}", mean_of(np.abs(values - truth))
        if "own votes" not in method:
            yield f"residual:{method}", mean_of(np.abs(values - people))


def mean_of(values: Floats) -> float:
    """Return the mean of measurements that are numbers; NaN of none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else math.nan


def later_ratings(arena: Arena, battles: CodedBattles | None = None) -> Floats:
    """Return new models' ratings by votes alone, among the voted models."""
    voted, anchors = human_anchors(arena.before, l2=0.01)
    votes = Sums.of(battles or arena.later).human[:, voted]
    return np.array(
        [
            rate_by_votes(votes[k] @ [0, 0.5, 1], votes[k].sum(axis=1), anchors[k]).rating
            for k in np.flatnonzero(arena.is_new)
        ]
    )


def of_new(arena: Arena, heldout: HeldOutRatings, method: str) -> HeldOutRatings:
    """Return a method's rows of the new models, in the order of the models."""
    return heldout.take(heldout.method == method).take(arena.is_new)


def with_votes(arena: Arena, heldout: HeldOutRatings) -> tuple[Floats, Floats, Floats]:
    """Return rating, lower and upper end of new models by judge and their own votes."""
    found = rate_with_votes(arena.with_own, arena.before, heldout, method=HEADLINE)
    rows = {name: row for row, name in enumerate(found.model.tolist())}
    new = np.array(arena.before.models)[arena.is_new]
    at = [rows.get(name, -1) for name in new.tolist()]
    columns = np.array([*found[1:5], found.rating])[:, at]
    rating, _, lower, upper, _ = np.where(np.array(at) < 0, np.nan, columns)
    return rating, lower, upper


def intervals_of(
    arena: Arena, heldout: HeldOutRatings, rng: np.random.Generator, *, plus: bool, refits: bool
) -> Iterator[tuple[str, Floats, Floats]]:
    """Yield the ends of new models' intervals by every way to make them."""
    own = of_new(arena, heldout, HEADLINE)
    board = rank_models(heldout)
    board = board.take(np.argsort(board.model)).take(arena.is_new)
    yield "headline", board.judge_lower, board.judge_upper
    basis = str(own.basis[0]).split(":")[0]
    voted = calibrating_models(heldout, basis, "analytic")
    new = own.std_error_analytic, own.vote_std_error

    def ends(half_width: Floats) -> tuple[Floats, Floats]:
        return own.rating - half_width, own.rating + half_width

    half = voted.take(rng.permutation(voted.residual.size) < voted.residual.size // 2)
    yield "split in halves", *ends(half.threshold(MISCOVERAGE) * half.spread(*new))
    scale = voted.rating.std()
    near = [
        conformal_quantile(voted.scores(), miscoverage=MISCOVERAGE, weight=np.exp(-(gap**2) / 2))
        for gap in (voted.rating - own.rating[:, None]) / scale
    ]
    yield "weighted by rating", *ends(np.array(near) * voted.spread(*new))
    soft, of_soft = calibrating_models(heldout, "soft", "analytic"), of_new(arena, heldout, "soft")
    scores = nonconformity_scores(soft.residual, soft.std_error)
    reach = conformal_quantile(scores, miscoverage=MISCOVERAGE) * of_soft.std_error_analytic
    yield "soft, as published", of_soft.rating - reach, of_soft.rating + reach
    if plus:
        found = jackknife_intervals(arena.before, miscoverage=MISCOVERAGE)
        yield "jackknife+", found.lower[arena.is_new], found.upper[arena.is_new]
    if refits:
        error = refit_errors(arena.before, method=basis, n_refits=REFITS).std_error
        by_model = dict(zip(arena.before.models, error.tolist(), strict=True))
        again = voted._replace(std_error=np.array([by_model[m] for m in voted.model.tolist()]))
        reach = again.threshold(MISCOVERAGE) * again.spread(error[arena.is_new], new[1])
        yield "errors refitted", *ends(np.where(np.isnan(reach), np.inf, reach))


def measure_intervals(
    arena: Arena, heldout: HeldOutRatings, rng: np.random.Generator, *, plus: bool, refits: bool
) -> Iterator[tuple[str, float]]:
    """Yield the coverage and the median width of each kind of interval."""
    people, truth = later_ratings(arena), arena.truth[arena.is_new]
    ends = {
        n: (*e, people) for n, *e in intervals_of(arena, heldout, rng, plus=plus, refits=refits)
    }
    ends["headline, of the truth"] = (*ends["headline"][:2], truth)
    ends["judge and own votes"] = (*with_votes(arena, heldout)[1:], truth)
    for name, (lower, upper, target) in ends.items():
        known = np.isfinite(target) & ~np.isnan(lower)
        if known.any():
            yield f"held:{name}", float(((lower <= target) & (target <= upper))[known].mean())
            yield f"width:{name}", float(np.median((upper - lower)[known]))


# ------------------------------------------------------------------ trust signals


def measure_signals(
    arena: Arena, heldout: HeldOutRatings, rng: np.random.Generator
) -> Iterator[tuple[str, float]]:
    """Yield 1 for each signal that fires, 0 if it is silent, and two values without a rule."""
    kind, battles, ok = arena.kind, arena.before, ~arena.failed
    first, second = arena.runs[0][:, ok]
    folds = fit_beta_folds(battles)
    zero = np.zeros(first.size)
    table = diagnose_judge(
        battles, folds, heldout, difference_ab=first, difference_ba=second,
        length_a=arena.length[ok], length_b=zero,
    )  # fmt: skip
    found = dict(zip(table.diagnostic.tolist(), table.value.tolist(), strict=True))
    family = {name: family_of(name) for name in heldout.model.tolist()}
    tried = calibrate_intervals(heldout, family=family)
    row = tried.method.tolist().index(HEADLINE)
    few = slice(None, 100)
    panel = panel_measurements(
        arena.runs[:, :, few].mean(axis=1).T,
        np.array([hard_outcome(*r[:, few]) for r in arena.runs]).T,
    )
    conflict, violation = consistency(arena, rng)
    measured = panel | {
        name: Measurement(value, "")
        for name, value in {
            "skill": float(tried.skill[row]),
            "skill_lower": float(tried.skill_lower[row]),
            "kappa": found["kappa_both_ways"],
            "parse_rate": float(ok.mean()),
            "position_flip_rate": found.get("position_flip_rate", math.nan),
            "position_effect": abs(found["position_first_score"]),
            "conflict_ratio": conflict,
            "non_transitivity_ratio": violation,
        }.items()
    }
    gate = hold_to(measured)
    for name, passed in zip(gate.criterion.tolist(), gate.passed.tolist(), strict=True):
        yield f"signal:gate, {name}", 1.0 - passed
    for name in ("verbosity_longer_preferred", "position_first_preferred"):
        yield f"value:{name}", found.get(name, math.nan)
    gamma, error = (found.get(f"surrogacy_gamma{end}", math.nan) for end in ("", "_std_error"))
    yield "signal:surrogacy, scores carry too little", float(gamma > 2 * error)
    yield "signal:surrogacy, scores carry too much", float(gamma < -2 * error)
    now = arena.runs[1][:, ok] * (1 - kind.drift)
    votes = np.where(battles.human_outcome < 0, np.nan, battles.human_outcome / 2)[:200]
    level = 6.0 + rng.normal(0, 0.5, votes.size)
    levels = np.array([level, level + rng.normal(0, 0.3, votes.size)])
    both = (np.array(pair)[:, :200] for pair in zip((first, second), now, strict=True))
    moved = detect_drift(Judgement(*both, levels, np.ones(levels.shape, dtype=bool)), votes)
    yield "signal:drift", float(moved.moved.any())
    yield from length_effects(arena)
    yield "signal:coverage differs by group", float(tried.structured_below[row] != "")
    yield "signal:threshold is infinite", float(np.isinf(tried.threshold[row]))
    yield from warnings_of(arena, heldout, folds)


def length_effects(arena: Arena) -> Iterator[tuple[str, float]]:
    """Yield the effect of length on judge and people beside the models, and if they are apart."""
    battles, ok = arena.before, ~arena.failed
    sides = (np.array(battles.models)[side] for side in (battles.model_a, battles.model_b))
    columns = np.array([battles.judge_outcome / 4, battles.human_outcome / 2])
    columns[columns < 0] = np.nan
    rows, names = arena.length[ok], tuple(sides)
    judge, people = (
        rate_outcomes(*names, outcome, covariates={"length": rows})[1] for outcome in columns
    )
    apart = (judge.lower > people.upper) | (judge.upper < people.lower)
    yield "signal:length effects of judge and people are apart", float(apart.any())
    yield "value:length effect on the judge (Elo)", float(judge.effect[0])
    yield "value:length effect on people (Elo)", float(people.effect[0])


def consistency(arena: Arena, rng: np.random.Generator) -> tuple[float, float]:
    """Return the share of contradictions between scores and choices, and of broken triples."""
    kind, size = arena.kind, arena.is_new.size
    a, b = arena.pairs[:300].T
    seen = arena.seen(a, b, arena.length[:300], 0.0 * a)
    both = (
        seen / 2 + rng.normal(0, kind.run, seen.size),
        rng.normal(0, kind.run, seen.size) - seen / 2,
    )
    level = 5.5 + rng.normal(0, 1, seen.size)
    score = [np.clip(np.rint(6 * (level + kind.points * side)) / 6, 1, 10) for side in both]
    choice = hard_outcome(*call(kind, seen, rng))
    conflict = score_conflicts(*score, choice, tolerance=0.0).mean()
    rows = [(q, *pair) for q in range(40) for pair in combinations(rng.choice(size, 5, False), 2)]
    question, a, b = np.array(rows).T
    choice = hard_outcome(*call(kind, arena.seen(a, b, 0.0 * a, 0.0 * a), rng))
    counts = count_violations(outcome_matrices(question, a, b, choice).outcomes, sizes=(3,))
    return float(conflict), float(violation_rates(counts).ratio.ravel()[0])


def warnings_of(
    arena: Arena, heldout: HeldOutRatings, folds: BetaFolds
) -> Iterator[tuple[str, float]]:
    """Yield the checks of ratings, missing battles and predictions, and the flags."""
    found = summarise(heldout)
    error = dict(zip(found.method.tolist(), found.mae.tolist(), strict=True))
    most = WORSE_BY * np.fmin(error["hard"], error["soft"])
    yield "signal:headline is far from people", float(error[HEADLINE] > most)
    drawn = heldout.take(np.isin(heldout.method, ["hard", "soft"]) & (heldout.std_error > 0))
    if drawn.model.size:
        ratio = drawn.std_error / drawn.std_error_analytic
        middle = max(np.median(ratio), 1 / np.median(ratio)) > MEDIAN_STD_ERROR_RATIO
        apart = (np.maximum(ratio, 1 / ratio) > STD_ERROR_RATIO).any()
        yield "signal:standard errors disagree", float(middle or apart)
    yield from predictions_of(arena, heldout)
    yield from missing_of(arena, heldout, folds)
    yield "signal:intervals of win rates miss in a third", win_rates_miss(arena)
    flags = [*heldout.flags.tolist(), *rank_models(heldout).flags.tolist()]
    raised = set(";".join(flags).split(";"))
    for flag in FLAGS:
        yield f"signal:flag {flag}", float(flag in raised)


def predictions_of(arena: Arena, heldout: HeldOutRatings) -> Iterator[tuple[str, float]]:
    """Yield the checks of new models' ratings against their later votes."""
    own, people = of_new(arena, heldout, HEADLINE), later_ratings(arena)
    voted = calibrating_models(heldout, str(own.basis[0]).split(":")[0], "analytic")
    spread = voted.spread(own.std_error_analytic, own.vote_std_error)
    known = np.isfinite(own.rating - people)
    if not known.any():
        return
    fresh, pool = nonconformity_scores((own.rating - people)[known], spread[known]), voted.scores()
    held = fresh <= voted.threshold(MISCOVERAGE)
    promise = running_coverage(held, np.full(held.size, MISCOVERAGE), n_calibration=pool.size)
    yield "signal:predictions miss", float(promise.coverage[0] < promise.shared_lower[0])


def missing_of(
    arena: Arena, heldout: HeldOutRatings, folds: BetaFolds
) -> Iterator[tuple[str, float]]:
    """Yield the checks of battles without a verdict."""
    size, names = arena.is_new.size, np.array(arena.before.models)
    every, missing = (
        np.bincount(arena.pairs[rows].ravel(), minlength=size)
        for rows in (slice(None), arena.failed)
    )
    chance = excess_p_values(
        missing, every, all_missing=int(arena.failed.sum()), all_battles=len(arena.pairs)
    )
    yield "signal:missing battles fall on some models", float(chance.min() < MAX_CHANCE)
    lost = names[arena.pairs[arena.failed]]
    bounds = bound_missing(arena.before, folds, lost[:, 0], lost[:, 1], l2=0.01)
    wide = False
    for method in ("hard", "soft"):
        board = rank_models(heldout, method=method)
        reach = dict(
            zip(
                board.model.tolist(),
                ((board.judge_upper - board.judge_lower) / 2).tolist(),
                strict=True,
            )
        )
        mine = bounds.method == method
        limit = width_limit([reach[m] for m in bounds.model[mine].tolist()])
        wide |= bool(((bounds.best_rating - bounds.worst_rating)[mine] > limit).any())
    yield "signal:missing battles matter", float(wide)


def scored_battles(arena: Arena) -> pd.DataFrame:
    """Return the battles of an arena as the lineage has them, with votes on voted models."""
    battles, names = arena.before, np.array(arena.before.models)
    ids = np.arange(battles.model_a.size).astype(str)
    columns = {
        "battle_id": ids,
        "question_id": ids,
        "model_a": names[battles.model_a],
        "model_b": names[battles.model_b],
        "human_outcome": np.where(battles.human_outcome < 0, np.nan, battles.human_outcome / 2),
        "judge_outcome": battles.judge_outcome / 4,
        "score_difference": battles.score_difference,
    }
    return pd.DataFrame(columns)


def win_rates_miss(arena: Arena) -> float:
    """Return 1 if intervals of the strongest or weakest third hold too seldom, else 0."""
    coverage = adjustment_coverage(scored_battles(arena), RatingOptions(miscoverage=MISCOVERAGE))
    return 1.0 - covered(coverage).passed


def reference_of(arena: Arena, rng: np.random.Generator) -> Iterator[tuple[str, float]]:
    """Yield the checks of a reference that every model meets.

    There is a prompt for each battle that a model has in the arena. The judge's probabilities are
    its points at 1.5 to the logit, which is right for most kinds.
    """
    kind, names = arena.kind, np.array(arena.before.models)
    reference = np.argsort(arena.truth)[int(kind.reference * (names.size - 1))]
    others = np.delete(np.arange(names.size), reference)
    prompt, row = np.divmod(np.arange(kind.battles * others.size), others.size)
    first, second = others[row], np.full(row.size, reference)
    unseen = rng.normal(0, kind.unseen, row.size)
    calls = call(kind, arena.seen(first, second, np.zeros(row.size), unseen), rng)
    columns = {
        "battle_id": [f"reference-{k}" for k in range(row.size)],
        "question_id": [f"prompt-{k}" for k in prompt.tolist()],
        "model_a": names[first],
        "model_b": names[second],
        "judge_outcome": hard_outcome(*calls),
    }
    battles, name = pd.DataFrame(columns), str(names[reference])
    chance = pd.Series(expit(calls.mean(axis=0) / Kind().points), battles["battle_id"])
    met = meetings(battles, chance)
    table = against(met, name)
    ratings = rate_against(table, name, LIKELIHOOD, ReferenceOptions(), miscoverage=MISCOVERAGE)
    runs = np.empty((*table.shape, 0))
    found = diagnose(table, ratings, met, runs, seed=1, stream=("study",))
    yield "signal:reference lacks reach", 1.0 - reach_result(found).passed
    yield "signal:errors are not those of resampling", 1.0 - errors_result(found).passed


# ------------------------------------------------------------------ arenas


def measure(task: tuple[str, int, int], seed: int) -> Row:
    """Return errors, coverage and signals of the ratings of one arena."""
    name, size, number = task
    stream = partial(keyed_rng, seed, "study", name, str(size), str(number))
    rng = stream()
    kind = (KINDS | SIGNAL_KINDS)[name]
    arena = make_arena(kind, size, rng)
    draws = 30 if number % 4 == 0 else 0  # resamples are for one signal alone
    settings = RatingSettings(n_resamples=draws, smoothing_levels=(0.75,), seed=seed)
    found: Row = {"kind": name, "size": size, "arena": number}
    try:
        heldout = rate(arena.before, settings)
        if name in KINDS:
            again = number % (4 if size <= 24 else 10) == 0  # what fits everything many times
            plus = again or (size <= 12 and number < 100)
            found |= measure_ratings(arena, heldout)
            found |= measure_intervals(arena, heldout, rng, plus=plus, refits=again)
        found |= measure_signals(arena, heldout, rng)
        fresh = make_arena(kind, size, stream())  # its judge has drawn nothing further
        return found | dict(reference_of(fresh, stream("reference")))
    except (ValueError, RuntimeError) as reason:
        return found | {"refused": str(reason)}


def tasks_of(sizes: list[int], n_arenas: int) -> Iterator[tuple[str, int, int]]:
    """Yield every arena, smallest sizes first."""
    for size, number in product(sizes, range(n_arenas)):
        yield from ((name, size, number) for name in KINDS)
        if size == SIGNAL_SIZE:
            few = {"eight models": 8, "blind to the strong": 55}
            names = SIGNAL_KINDS if number < 60 else set(SIGNAL_KINDS) - {"blind to the strong"}
            yield from ((name, few.get(name, size), number) for name in sorted(names))


def read_rows(path: Path) -> list[Row]:
    """Return the rows of measured arenas in a file; a last one that was cut off is not read."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def run(path: Path, sizes: list[int], n_arenas: int, jobs: int, seed: int) -> None:
    """Append the rows of all arenas that the file does not have yet."""
    rows = read_rows(path)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = {(row["kind"], row["size"], row["arena"]) for row in rows}
    left = [task for task in tasks_of(sizes, n_arenas) if task not in done]
    one = partial(measure, seed=seed)
    with path.open("a", encoding="utf-8") as file, ProcessPoolExecutor(jobs) as pool:
        for row in map(one, left) if jobs == 1 else pool.map(one, left):
            file.write(json.dumps(row) + "\n")
            file.flush()


# ------------------------------------------------------------------ report


def summarise_rows(rows: list[Row]) -> pd.DataFrame:
    """Return mean measurements by kind and size (widths: medians), standard errors of shares.

    Arenas are the independent unit: models of one share votes, judge and thresholds. An error is
    at least that of independent models, since a few arenas may happen to be alike.
    """
    table = pd.DataFrame(rows)
    table["price:jackknife+"] = table["width:jackknife+"] / table["width:headline"]
    groups = table.drop(columns=["arena", "refused"], errors="ignore").groupby(["kind", "size"])
    widths = [name for name in table if name.startswith(("width:", "price:"))]
    held = groups[[name for name in table if name.startswith("held:")]]
    share = held.mean()
    alone = np.sqrt(share * (1 - share) / (NEW * held.count()))
    error = (held.std() / np.sqrt(held.count())).clip(lower=alone)
    error = error.rename(columns=lambda name: name.replace("held", "se"))
    means = groups.mean().assign(**groups[widths].median())
    counts = groups.size().rename("arenas")
    refused = table.get("refused", pd.Series(index=table.index, dtype=object)).notna()
    counts = pd.concat([counts, refused.groupby([table["kind"], table["size"]]).sum()], axis=1)
    return pd.concat([counts.set_axis(["arenas", "refused"], axis=1), means, error], axis=1)


def part(found: pd.DataFrame, prefix: str) -> pd.DataFrame:
    """Return the columns of one quantity, such as ``error``, without its prefix."""
    names = [name for name in found if name.startswith(f"{prefix}:")]
    return found[names].set_axis([name.split(":", 1)[1] for name in names], axis=1)


def tables_of(found: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Yield the name of each table of the page, and the table in Markdown."""
    for size in found.loc["calibrated"].index.tolist():
        own = found.xs(size, level="size").reindex(KINDS)
        errors = part(own, "error").map("{:.1f}".format)
        yield f"errors {size}", errors.assign(arenas=own["arenas"].astype(int)).to_markdown()
        held, error, width = (part(own, name) for name in ("held", "se", "width"))
        cells = held.map("{:.2f}".format) + " (" + width.map("{:.0f}".format) + ")"
        below = held < np.where(held.columns == "jackknife+", 0.8, 0.9) - 2 * error
        yield f"coverage {size}", cells.where(~below, "**" + cells + "**").T.to_markdown()
    first = found.groupby(level="kind", sort=False).first().reindex([*KINDS, *SIGNAL_KINDS])
    rates = part(first, "signal")
    most = rates.max().map("{:.0%}".format) + " " + rates.idxmax().fillna("")
    signals = pd.DataFrame({"fires most": most, "calibrated": rates.loc["calibrated"]})
    for name in ("noisy", "position", "few votes"):
        signals[name] = rates.loc[name]
    signals["kinds that fire it in half of the arenas"] = [
        ", ".join(rates.index[rates[name] >= 0.5]) or "none" for name in rates
    ]
    shown = signals.map(lambda cell: cell if isinstance(cell, str) else f"{cell:.0%}")
    yield "signals", shown.to_markdown()
    price = found.reset_index().pivot_table("price:jackknife+", "size", "kind")[[*KINDS]]
    yield "price", price.map("{:.2f}".format).to_markdown()
    yield "values", part(first, "value").map("{:.2f}".format).T.to_markdown()


def draw(found: pd.DataFrame, folder: Path, size: int) -> None:
    """Draw errors of ratings and coverage of intervals by kind of judge at one size."""
    own, rows = found.xs(size, level="size").reindex(KINDS), np.arange(len(KINDS))
    looks = (("soft", "o"), ("hard", "s"), ("headline", "^"), ("new", "*"), ("ink", "X"))
    for key, quantity, label, names in (
        ("errors", "error", "mean absolute error to the truth (Elo points)",
         ("soft", "hard-rescaled", "auto", "judge and own votes", "own votes alone")),
        ("coverage", "held", "share of new models whose 90 % interval held",
         ("soft, as published", "errors refitted", "headline", "jackknife+")),
    ):  # fmt: skip
        held = quantity == "held"
        chart = Chart(label, names=list(KINDS), x_range=(0.78, 1.01) if held else None)
        if held:
            chart.lines([0.9, 0.9], [-0.6, len(KINDS) - 0.4], "muted", dash="3 3")
        for name, (role, mark) in zip(names, looks, strict=False):
            chart.marks(own[f"{quantity}:{name}"], rows, role, mark, label=name)
        title = f"{label}, {size} voted models"
        svg = chart.svg(key=key, title=title, description=f"By judge: {', '.join(KINDS)}.")
        drawing = picture(Illustration(title, "", svg))
        (folder / f"study-{key}.svg").write_text(drawing.svg, encoding="utf-8")


def report(found: pd.DataFrame, page: Path) -> None:
    """Write the tables into their places on the page, the summary and the drawings beside it."""
    found.round(4).to_csv(page.with_suffix(".csv"))
    draw(found, page.parent / "images", 12)
    text = page.read_text(encoding="utf-8")
    for name, table in tables_of(found):
        place = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- end -->)", re.DOTALL)
        text = place.sub(lambda at, table=table: at[1] + "\n" + table + "\n" + at[2], text)
    page.write_text(text, encoding="utf-8")


def main() -> None:
    """Measure the arenas that the file lacks, or write the page from its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("rows", type=Path, help="file of rows, made or gone on with")
    parser.add_argument("--arenas", type=int, default=200, help="of each kind and size")
    parser.add_argument("--sizes", type=int, nargs="+", default=[12, 24, 55], help="voted models")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=Path, help="page to write, as docs/study.md")
    chosen = parser.parse_args()
    if chosen.report:
        report(summarise_rows(read_rows(chosen.rows)), chosen.report)
    else:
        run(chosen.rows, chosen.sizes, chosen.arenas, chosen.jobs, chosen.seed)


if __name__ == "__main__":
    main()
