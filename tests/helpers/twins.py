"""Slow, obvious twins of the core, written from the method's text alone and never from its code.
Nothing is shared with `judgeline`. Strengths are in logits, ratings in Elo points."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy import optimize
from scipy.sparse import csgraph
from scipy.special import expit, log_expit
from scipy.stats import norm

ELO_PER_LOGIT = 400 / math.log(10)
SMOOTHING_LEVELS = (0.55, 0.65, 0.75, 0.85, 0.95)


@dataclass(frozen=True)
class Battle:
    """One battle as it is published: `human` is None when nobody voted."""

    model_a: str
    model_b: str
    human: float | None
    judge: float
    score: float

    def models(self) -> tuple[str, str]:
        return self.model_a, self.model_b

    def swapped(self) -> "Battle":
        human = None if self.human is None else 1 - self.human
        return Battle(self.model_b, self.model_a, human, 1 - self.judge, -self.score)


Outcome = Callable[[Battle], float]


def all_models(battles: Sequence[Battle]) -> list[str]:
    return sorted({model for battle in battles for model in battle.models()})


def voted_models(battles: Sequence[Battle]) -> list[str]:
    return all_models([battle for battle in battles if battle.human is not None])


# ------------------------------------------------------------------ Bradley-Terry


def strengths_exist(battles: Sequence[Battle], models: Sequence[str], outcome: Outcome) -> bool:
    """Whether unpenalised strengths are finite: wins form a chain to and from all (Ford, 1957)."""
    place = {model: k for k, model in enumerate(models)}
    beats = np.zeros((len(models), len(models)), dtype=bool)
    for battle in battles:
        a, b = place[battle.model_a], place[battle.model_b]
        beats[a, b] |= outcome(battle) > 0
        beats[b, a] |= outcome(battle) < 1
    n_parts, _ = csgraph.connected_components(beats, directed=True, connection="strong")
    return int(n_parts) == 1


def bradley_terry(
    battles: Sequence[Battle], models: Sequence[str], outcome: Outcome, l2: float
) -> dict[str, float]:
    """Maximise sum y log sigma(ti - tj) + (1 - y) log sigma(tj - ti) - l2 |t|^2, then centre."""
    if l2 == 0 and not strengths_exist(battles, models, outcome):
        raise RuntimeError("some models are never beaten by the others: no finite strengths")
    place = {model: k for k, model in enumerate(models)}
    i = np.array([place[battle.model_a] for battle in battles], dtype=int)
    j = np.array([place[battle.model_b] for battle in battles], dtype=int)
    y = np.array([outcome(battle) for battle in battles], dtype=float)
    design = np.zeros((len(battles), len(models)))
    design[np.arange(len(battles)), i] = 1.0
    design[np.arange(len(battles)), j] -= 1.0

    def loss(t: np.ndarray) -> float:
        gap = t[i] - t[j]
        return -float(np.sum(y * log_expit(gap) + (1 - y) * log_expit(-gap))) + l2 * float(t @ t)

    def gradient(t: np.ndarray) -> np.ndarray:
        return design.T @ (expit(t[i] - t[j]) - y) + 2 * l2 * t

    def hessian(t: np.ndarray) -> np.ndarray:
        p = expit(t[i] - t[j])
        return (design.T * (p * (1 - p))) @ design + 2 * l2 * np.eye(len(models))

    found = optimize.minimize(
        loss,
        np.zeros(len(models)),
        jac=gradient,
        hess=hessian,
        method="trust-exact",
        options={"gtol": 1e-7, "maxiter": 2000},
    )
    t = found.x
    for _ in range(50):  # polish: the objective's own rounding stops a trust region early
        g = gradient(t)
        if np.max(np.abs(g)) < 1e-12 * max(1, len(battles)):
            break
        t = t - np.linalg.lstsq(hessian(t), g, rcond=None)[0]
    if np.max(np.abs(gradient(t))) > 1e-10 * max(1, len(battles)):
        raise RuntimeError(f"the twin did not converge: gradient {np.abs(gradient(t)).max():.2e}")
    t = t - t.mean()
    return {model: float(t[place[model]]) for model in models}


# ------------------------------------------------------------------ temperature


def beta(battles: Sequence[Battle]) -> tuple[float | None, str]:
    """Root of the score of the no-intercept logistic on the human non-ties, by Brent."""
    decisive = [battle for battle in battles if battle.human in (0.0, 1.0)]
    s = np.array([battle.score for battle in decisive])
    y = np.array([battle.human for battle in decisive], dtype=float)
    if not np.any(s):
        return None, "no-decisive-votes"  # no vote, or none on a battle with unequal scores

    def slope(b: float) -> float:
        return float(np.sum(s * (y - expit(b * s))))

    if slope(0.0) <= 0:
        return None, reversal(s, y)
    if np.all(s * (y - 0.5) >= 0):
        return None, "separable"
    top = 1.0
    while slope(top) > 0:
        top *= 2
    return float(optimize.brentq(slope, 0.0, top, xtol=1e-14, rtol=1e-14, maxiter=1000)), "ok"


def reversal(s: np.ndarray, y: np.ndarray) -> str:
    """Whether votes turn two standard errors against the scores: the slope of turned votes."""
    against, away = s * (y - 0.5) < 0, np.count_nonzero(s * (y - 0.5))
    if against.sum() == away:
        few = optimize.root_scalar(lambda n: 0.5**n - norm.sf(2), bracket=(1, 20)).root
        return "contradicts-humans" if away >= few else "votes-cannot-tell"

    def rises(b: float) -> float:
        return float(np.sum(s * (1 - y - expit(b * s))))

    low = 0.0 if rises(0.0) > 0 else -1.0  # balanced: the root is 0, but for rounding
    top = 1.0
    while rises(top) > 0:
        top *= 2
    size = optimize.brentq(rises, low, top, xtol=1e-14, rtol=1e-14, maxiter=1000)
    information = np.sum(s**2 * expit(size * s) * expit(-size * s))
    clear = size >= 2 / math.sqrt(information)
    return "contradicts-humans" if clear else "votes-cannot-tell"


def beta_without(battles: Sequence[Battle], model: str) -> tuple[float | None, str]:
    return beta([battle for battle in battles if model not in battle.models()])


# ------------------------------------------------------------------ Algorithm 1


def tied_together(battles: Sequence[Battle], models: Sequence[str]) -> bool:
    """Whether battles among these models connect all of them: spread from the first."""
    if not models:
        return True
    reached = {models[0]}
    while True:
        grown = set(reached)
        for battle in battles:
            if set(battle.models()) <= set(models) and reached & set(battle.models()):
                grown |= set(battle.models())
        if grown == reached:
            return reached == set(models)
        reached = grown


def placement_rows(
    battles: Sequence[Battle], model: str, anchors: dict[str, float], outcome: Outcome
) -> tuple[np.ndarray, np.ndarray]:
    """The model's own battles against anchors: opponent strength, and its share of the win."""
    rows = []
    for battle in battles:
        if battle.model_a == model and battle.model_b in anchors:
            rows.append((anchors[battle.model_b], outcome(battle)))
        if battle.model_b == model and battle.model_a in anchors:
            rows.append((anchors[battle.model_a], 1 - outcome(battle)))
    table = np.array(rows, dtype=float).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def place(opponent: np.ndarray, y: np.ndarray, l2: float) -> float:
    """One strength with the opponents' fixed, the same penalty on it, by Brent."""

    def slope(t: float) -> float:
        return float(np.sum(y - expit(t - opponent))) - 2 * l2 * t

    low, high = -1.0, 1.0
    while slope(low) < 0:
        low *= 2
    while slope(high) > 0:
        high *= 2
    return float(optimize.brentq(slope, low, high, xtol=1e-14, rtol=1e-14, maxiter=1000))


@dataclass(frozen=True)
class Placement:
    """A held-out model's strength with everything it was computed from."""

    strength: float
    opponent: np.ndarray
    y: np.ndarray
    l2: float
    common_error: float = 0.0  # logits that all of the outcomes are off by together

    @property
    def rating(self) -> float:
        return 1500 + ELO_PER_LOGIT * self.strength

    def std_error(self) -> float:
        """Closed form of the bootstrap within the model's own battles, in Elo points."""
        if len(self.y) < 2:
            return math.nan
        p = expit(self.strength - self.opponent)
        spread = max(0.0, np.sum((self.y - p) ** 2) - np.sum(self.y - p) ** 2 / len(p))
        own = math.sqrt(spread) / (float(np.sum(p * (1 - p))) + 2 * self.l2)
        return ELO_PER_LOGIT * (
            math.hypot(own, self.common_error) if spread > len(p) * 2.0**-29 else own
        )

    def bootstrap(self, rng: np.random.Generator, n_resamples: int) -> np.ndarray:
        """Ratings of resampled sets of the model's own battles, one full refit each."""
        ratings = []
        for _ in range(n_resamples):
            rows = rng.integers(len(self.y), size=len(self.y))
            strength = place(self.opponent[rows], self.y[rows], self.l2)
            ratings.append(1500 + ELO_PER_LOGIT * strength)
        return np.array(ratings)


def used_battles(battles: Sequence[Battle], model: str) -> list[Battle]:
    """Battles of the fold that holds a model out: those of the voted models, and its own."""
    taking_part = {*voted_models(battles), model}
    return [b for b in battles if b.model_a in taking_part and b.model_b in taking_part]


def fold_anchors(
    battles: Sequence[Battle], model: str, outcome: Outcome, l2: float, *, only_votes: bool = False
) -> dict[str, float] | None:
    """Strengths of the other voted models by battles between them; None if those do not connect."""
    anchors = [name for name in voted_models(battles) if name != model]
    without = [
        b
        for b in battles
        if set(b.models()) <= set(anchors) and not (only_votes and b.human is None)
    ]
    if not tied_together(without, anchors):
        return None
    return bradley_terry(without, anchors, outcome, l2)


def placed_among(
    battles: Sequence[Battle],
    model: str,
    anchors: dict[str, float] | None,
    outcome: Outcome,
    l2: float,
    *,
    only_votes: bool = False,
) -> Placement | None:
    """The model among fixed anchors; None if it never met one, or the anchors are not one group."""
    own = [b for b in battles if model in b.models() and not (only_votes and b.human is None)]
    opponent, y = placement_rows(own, model, anchors or {}, outcome)
    return Placement(place(opponent, y, l2), opponent, y, l2) if len(y) else None


def held_out(
    battles: Sequence[Battle], model: str, outcome: Outcome, l2: float, *, only_votes: bool = False
) -> Placement | None:
    """Algorithm 1 for one model and one kind of outcome."""
    anchors = fold_anchors(battles, model, outcome, l2, only_votes=only_votes)
    return placed_among(battles, model, anchors, outcome, l2, only_votes=only_votes)


def human_outcome(battle: Battle) -> float:
    if battle.human is None:
        raise ValueError("nobody voted in this battle")
    return battle.human


def judge_outcome(battle: Battle) -> float:
    return battle.judge


def soft_outcome(slope: float) -> Outcome:
    return lambda battle: float(expit(slope * battle.score))


def smoothed_outcome(level: float) -> Outcome:
    """Decisive outcomes become `level` or its complement; ties stay."""

    def outcome(battle: Battle) -> float:
        return {1.0: level, 0.5: 0.5, 0.0: 1 - level}[battle.judge]

    return outcome


def human_placement(battles: Sequence[Battle], model: str, l2: float) -> Placement | None:
    return held_out(battles, model, human_outcome, l2, only_votes=True)


def judge_placement(
    battles: Sequence[Battle], model: str, method: str, l2: float
) -> Placement | None:
    """Hard, soft or smoothed placement; no soft one without a temperature."""
    if method == "hard":
        return held_out(battles, model, judge_outcome, l2)
    if method == "soft":
        slope, _ = beta_without(battles, model)
        return None if slope is None else held_out(battles, model, soft_outcome(slope), l2)
    level = float(method.removeprefix("smoothed-"))
    return held_out(battles, model, smoothed_outcome(level), l2)


# ------------------------------------------------------------------ on the human ruler


@dataclass(frozen=True)
class Mixed:
    """A rating made of placements: each one's distance from 1500 times its weight, summed."""

    parts: Sequence[tuple[float, Placement]]

    @property
    def rating(self) -> float:
        return 1500 + sum(weight * (part.rating - 1500) for weight, part in self.parts)

    def std_error(self) -> float:
        return sum(weight * part.std_error() for weight, part in self.parts)


def ruler_slope(judge: dict[str, float] | None, human: dict[str, float] | None) -> float:
    """Slope through the origin from judge to human strengths of a fold's anchors; NaN for none."""
    if judge is None or human is None or len(human) < 2:
        return math.nan
    product = sum(judge[name] * human[name] for name in human)
    square = sum(u * u for u in judge.values())
    return product / square if product > 1e-9 * square else math.nan


def gap_features(battles: Sequence[Battle], l2: float) -> np.ndarray:
    """Score difference and the judge's strength gap in standard deviations, (n, 2): no votes."""
    strength = bradley_terry(battles, all_models(battles), judge_outcome, l2 or 0.01)
    rows = np.array([[b.score, strength[b.model_a] - strength[b.model_b]] for b in battles])
    return np.asarray(rows / np.where(rows.std(axis=0) > 0, rows.std(axis=0), 1.0))


def gap_weights(z: np.ndarray, y: np.ndarray, penalty: float = 1.0) -> np.ndarray:
    """Highest likelihood less half the squared weights over weights that are not negative."""

    def loss(w: np.ndarray) -> float:
        return float(
            -np.sum(y * log_expit(z @ w) + (1 - y) * log_expit(-z @ w)) + penalty / 2 * w @ w
        )

    def slope(w: np.ndarray) -> np.ndarray:
        return z.T @ (expit(z @ w) - y) + penalty * w

    def bend(w: np.ndarray) -> np.ndarray:
        p = expit(z @ w)
        return (z.T * (p * (1 - p))) @ z + penalty * np.eye(2)

    both = optimize.root(slope, np.zeros(2), jac=bend, tol=1e-14).x
    if (both >= 0).all():
        return both
    options = [np.zeros(2)]
    for axis in np.eye(2):
        if axis @ slope(np.zeros(2)) < 0:
            top = optimize.brentq(lambda w, axis=axis: axis @ slope(w * axis), 0, 1e3, xtol=1e-14)
            options.append(top * axis)
    return min(options, key=loss)


def gap_placement(
    battles: Sequence[Battle], model: str, human: dict[str, float] | None, l2: float
) -> Placement | None:
    """The model by its gap outcomes among the human anchors of its fold."""
    z = gap_features(battles, l2)
    rows = [k for k, b in enumerate(battles) if b.human is not None and model not in b.models()]
    weights = gap_weights(z[rows], np.array([battles[k].human for k in rows], dtype=float))
    share = {id(battle): float(expit(z[k] @ weights)) for k, battle in enumerate(battles)}
    found = (
        placed_among(battles, model, human, lambda b: share[id(b)], l2) if any(weights) else None
    )
    return found and replace(found, common_error=weights[1] * own_gap_error(battles, model, l2))


def own_gap_error(battles: Sequence[Battle], model: str, l2: float) -> float:
    """Error of the model's strength by the judge, the others held, in deviations of the gap."""
    strength = bradley_terry(battles, all_models(battles), judge_outcome, l2 or 0.01)
    gaps = np.array([strength[b.model_a] - strength[b.model_b] for b in battles])
    of_model = np.array([model in b.models() for b in battles])
    gap, y = gaps[of_model], np.array([judge_outcome(b) for b in battles])[of_model]
    p = expit(gap)
    error = math.sqrt(np.sum((y - p) ** 2)) / (np.sum(p * (1 - p)) + 2 * (l2 or 0.01))
    return float(error / (gaps.std() or 1.0))


def headline_ratings(
    battles: Sequence[Battle], model: str, l2: float
) -> dict[str, Placement | Mixed | None]:
    """Every rating of a model on the human ruler, by method."""
    human = fold_anchors(battles, model, human_outcome, l2, only_votes=True)
    beta_m, _ = beta_without(battles, model)
    kinds = {"hard": judge_outcome, "soft": None if beta_m is None else soft_outcome(beta_m)}
    parts: dict[str, tuple[float, Placement | None]] = {}
    for kind, outcome in kinds.items():
        judge = None if outcome is None else fold_anchors(battles, model, outcome, l2)
        found = None if outcome is None else placed_among(battles, model, judge, outcome, l2)
        parts[kind] = ruler_slope(judge, human), found
    known = {kind: pair for kind, pair in parts.items() if pair[1] and pair[0] > 0}
    found: dict[str, Placement | Mixed | None] = {
        f"{kind}-rescaled": Mixed([known[kind]]) if kind in known else None for kind in kinds
    }
    halves = [(slope / 2, placed) for slope, placed in known.values()]
    found["average"] = Mixed(halves) if len(halves) == 2 else None
    found["gap"] = gap_placement(battles, model, human, l2)
    found["auto"] = found["average" if len(set(voted_models(battles)) - {model}) >= 20 else "gap"]
    return found


# ------------------------------------------------------------------ conformal


def conformal_rank(n: int, miscoverage: str) -> int:
    """ceil((1 - miscoverage) (n + 1)) in rational arithmetic; may exceed n."""
    return math.ceil((1 - Fraction(miscoverage)) * (n + 1))


def conformal_threshold(scores: Sequence[float], miscoverage: str) -> float:
    rank = conformal_rank(len(scores), miscoverage)
    return sorted(scores)[rank - 1] if rank <= len(scores) else math.inf
