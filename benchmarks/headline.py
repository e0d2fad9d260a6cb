"""The number on the front page: errors, widths and coverage of every method, on real votes.

Prints tables over files of battles with votes (the data folder's `real/` and the released sample)
and over simulations; README.md beside this file says how to read them. `--help` says the rest.
"""

import argparse
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from judgeline.elo import (
    ELO_PER_LOGIT,
    CodedBattles,
    HeldOutRatings,
    RatingSettings,
    code_battles,
    fit_beta_folds,
    rate,
    spearman,
    strength_to_rating,
)
from judgeline.elo.battles import OwnBattles
from judgeline.elo.gap import fit_weights, gap_features, standardised
from judgeline.elo.placements import Placements, place
from judgeline.elo.strengths import place_models
from judgeline.intervals import (
    calibrate_intervals,
    calibrating_models,
    rank_models,
    rate_pooled,
)
from judgeline.io import as_coded, family_of, questions_of, read_judged_battles
from judgeline.reliability import cohen_kappa

Weigh = Callable[[np.ndarray], np.ndarray]
METHODS = ("hard", "soft", "average", "gap", "auto")
SETTINGS = RatingSettings(n_resamples=0, smoothing_levels=())
SAMPLE = "softelo_lmarena100k_sample.csv"


class World(NamedTuple):
    """A simulated judge. Gaps and noises are in human logits, scores in `points` per logit.

    `unseen` is the spread of a question's own quality gap, which people and judge both see;
    `noise` that of what the judge alone sees in a battle, `bias` in a model. `bent` below 1
    compresses large gaps; `levels` leaves but the sign.
    """

    strength: float = 0.8
    unseen: float = 0.0
    noise: float = 1.0
    bias: float = 0.25
    points: float = 1.5
    bent: float = 1.0
    levels: bool = False
    ties: float = 0.2


WORLDS = {
    "noisy": World(noise=3.0),
    "compressed": World(unseen=0.5, noise=0.2, points=0.5, bent=0.5),
    "sharp": World(noise=0.3),
    "biased": World(unseen=0.7, noise=0.8, bias=0.6),
    "two-level": World(unseen=0.7, levels=True),
    "surrogate": World(unseen=1.5, noise=0.3, bias=0.15),
}

PRINTED = {  # slope, mean |s|, kappa, hard and soft error of Kargi and Salinas (2026)
    "DeepSeek-V3.2": (0.36, 2.08, 0.182, 63.4, 17.1),
    "GPT-OSS-120B": (0.58, 1.34, 0.200, 47.4, 14.4),
}
LIKE = {  # tuned to the printed values, and to nothing else
    "DeepSeek-V3.2": World(0.31, unseen=0.80, noise=0.0, bias=0.11, points=1 / 0.36, ties=0.42),
    "GPT-OSS-120B": World(0.28, unseen=0.90, noise=0.0, bias=0.10, points=1 / 0.58, ties=0.42),
}


def simulate(world: World, rng: np.random.Generator, n: int, size: int) -> CodedBattles:
    """Return battles of random pairs of models, each with a score and a vote."""
    first = rng.integers(0, size, n)
    second = (first + rng.integers(1, size, n)) % size
    strength, bias = rng.normal(0, world.strength, size), rng.normal(0, world.bias, size)
    gap = strength[first] - strength[second] + rng.normal(0, world.unseen, n)
    seen = gap + bias[first] - bias[second]
    seen = np.sign(seen) * np.abs(seen) ** world.bent + rng.normal(0, world.noise, n)
    score = np.sign(seen) if world.levels else np.rint(12 * world.points * seen) / 12
    chance = expit(gap)
    tied = rng.random(n) < 4 * world.ties * chance * (1 - chance)
    vote = np.where(tied, 0.5, rng.random(n) < chance)
    names = np.array([f"model-{k:03d}" for k in range(size)])
    return code_battles(
        names[first],
        names[second],
        human_outcome=vote,
        judge_outcome=(np.sign(score) + 1) / 2,
        score_difference=np.clip(score, -9, 9),
    )


class Judged(NamedTuple):
    """Battles, and the question of each; none where they are independent."""

    battles: CodedBattles
    questions: np.ndarray | None = None


def real(data: Path) -> Iterator[tuple[str, Judged]]:
    """Yield battles of every file with votes."""
    outcomes = dict.fromkeys(sorted((data / "real").glob("*.csv")), "derived")
    for path, outcome in {**outcomes, data / SAMPLE: "recorded"}.items():
        scored = read_judged_battles(path).scored
        name = "released sample" if path.name == SAMPLE else path.stem
        yield name, Judged(as_coded(scored, outcome), questions_of(scored))


def published_width(ratings: HeldOutRatings, miscoverage: float = 0.1) -> float:
    """Return the median width of soft intervals that standard errors alone scale, Elo points."""
    voted = calibrating_models(ratings, "soft", "analytic", published=True)
    return float(2 * voted.threshold(miscoverage) * np.median(voted.std_error))


def methods_table(sets: Mapping[str, Judged]) -> None:
    """Print errors, order, skill, widths and coverage by file and method."""
    print("mean absolute error in Elo (in brackets that of a perfect judge), Spearman, skill with")
    print("its 90 % interval, median width of 90 % intervals by the judge, and what they held over")
    print("structured splits (-: too few models); p: soft as published, by standard errors alone")
    errors: dict[str, list[float]] = {method: [] for method in METHODS}
    for name, (battles, questions) in sets.items():
        ratings = rate(battles, SETTINGS, cluster=questions)
        family = {name: family_of(name) for name in ratings.model.tolist()}
        tried = calibrate_intervals(ratings, family=family)
        evidence = tried.skill, tried.skill_lower, tried.skill_upper, tried.floor
        print(f"\n{name}: {len(battles)} battles, {int(battles.voted_models().sum())} models")
        for method in METHODS:
            rows = (ratings.method == method) & np.isfinite(ratings.residual)
            board = rank_models(ratings, method=method)
            error = float(np.abs(ratings.residual[rows]).mean())
            errors[method].append(error)
            place_of = tried.method.tolist().index(method)
            groups = tried.structured_coverage[place_of]
            shown = "-" if np.isnan(groups) else f"{groups:.2f} of {tried.n_structured[place_of]}"
            order = spearman(ratings.rating[rows], ratings.human_rating[rows])
            width = float(np.median(board.judge_upper - board.judge_lower))
            skill, lower, upper, floor = (column[place_of] for column in evidence)
            below = f"  below: {tried.structured_below[place_of]}".removesuffix("  below: ")
            print(
                f"  {method:<8} {error:6.1f} ({floor:.0f})  {order:5.3f}  {skill:.2f} ({lower:.2f} "
                f"to {upper:.2f})  {width:6.0f}  {shown}{below}"
            )
        print(f"  p        width {published_width(ratings):.0f}")
    means = (f"{method} {np.mean(values):.1f}" for method, values in errors.items())
    print(f"\nmean error: {', '.join(means)}")


# ------------------------------------------------------------------ rules of the headline


def fold_misfits(found: Placements, base: str, scale: np.ndarray) -> np.ndarray:
    """Return the mean squared distance of a base's anchors from people's in every fold, (M,)."""
    human, own = found.placed["human"].anchors, found.placed[base].anchors
    n_others = found.sums.voted.sum() - found.sums.voted
    return ((scale[:, None] * own - human) ** 2).sum(axis=1) / n_others


def rules_of(battles: CodedBattles) -> dict[str, float]:
    """Return the mean absolute error of every rule that was tried, in Elo points.

    No rule sees a vote on the model: misfits are those of the other models in its fold.
    """
    found = place(battles, fit_beta_folds(battles), l2=0.01)
    voted = found.sums.voted
    at = {name: found.placed[name].strength[voted] for name in ("human", "hard", "soft", "gap")}
    slope = {name: found.mixtures[f"{name}-rescaled"][name] for name in ("hard", "soft")}
    one = np.ones(voted.size)
    at |= {f"{name}R": slope[name][voted] * at[name] for name in slope}
    at["average"] = (at["hardR"] + at["softR"]) / 2
    scales = {"hard": ("hard", one), "soft": ("soft", one)}
    scales |= {f"{name}R": (name, value) for name, value in slope.items()}
    misfit = {name: fold_misfits(found, *of)[voted] for name, of in scales.items()}
    four, ruled = ("soft", "hardR", "softR", "gap"), ("soft", "hardR", "softR")
    best = np.array(ruled)[np.argmin([misfit[name] for name in ruled], axis=0)]
    n_others = int(voted.sum()) - 1
    tried = {
        **{name: at[name] for name in ("hard", "soft", "hardR", "softR", "average", "gap")},
        **{
            f"average from {least} others, else gap": at["average" if n_others >= least else "gap"]
            for least in (8, 12, 20)
        },
        "mean of average and gap": (at["average"] + at["gap"]) / 2,
        "mean of soft, hardR, softR, gap": np.mean([at[name] for name in four], axis=0),
        "mean of all five": np.mean([at[name] for name in (*four, "hard")], axis=0),
        "least misfit of soft, hardR, softR": np.array(
            [at[name][k] for k, name in enumerate(best.tolist())]
        ),
        "weights 1/misfit of soft, hardR, softR": np.average(
            [at[name] for name in ruled], axis=0, weights=[1 / misfit[name] for name in ruled]
        ),
    }
    return {
        name: ELO_PER_LOGIT * float(np.nanmean(np.abs(value - at["human"])))
        for name, value in tried.items()
    }


def rules_table(sets: Mapping[str, CodedBattles]) -> None:
    """Print every rule's mean error, and its worst ratio to the better of hard and soft."""
    columns = {name: rules_of(battles) for name, battles in sets.items()}
    print("mean error in Elo, and the worst ratio to the better of hard and soft")
    for rule in next(iter(columns.values())):
        errors = np.array([of[rule] for of in columns.values()])
        better = np.array([min(of["hard"], of["soft"]) for of in columns.values()])
        shown = " ".join(f"{error:6.1f}" for error in errors) if len(errors) <= 12 else ""
        print(f"  {rule:<40} {np.nanmean(errors):6.1f}  {np.nanmax(errors / better):5.2f}  {shown}")


# ------------------------------------------------------------------ judges together


def hanna(data: Path) -> list[CodedBattles]:
    """Return five real judges of one set of battles, turned alike: files turn them at random."""
    return [in_one_order(path) for path in sorted((data / "real").glob("hanna_*.csv"))]


def in_one_order(path: Path) -> CodedBattles:
    """Return battles by question and names, the first name by the alphabet as A."""
    table = read_judged_battles(path).scored
    turned = table["model_a"] > table["model_b"]
    sides = {"model_a": table["model_b"], "model_b": table["model_a"]}
    others = {name: 1 - table[name] for name in ("human_outcome", "judge_outcome")}
    others["score_difference"] = -table["score_difference"]
    for name, other in {**sides, **others}.items():
        table = table.assign(**{name: table[name].mask(turned, other)})
    return as_coded(table.sort_values(["question_id", "model_a", "model_b"]), "derived")


def simulate_judges(kind: str, rng: np.random.Generator, n: int, size: int) -> list[CodedBattles]:
    """Return five judges of one set of battles: alike, unlike, or one good one and four poor.

    They share some of their bias in models.
    """
    first = rng.integers(0, size, n)
    second = (first + rng.integers(1, size, n)) % size
    strength, shared = rng.normal(0, 0.8, size), rng.normal(0, 0.25, size)
    gap = strength[first] - strength[second] + rng.normal(0, 0.7, n)
    chance, names = expit(gap), np.array([f"model-{k:03d}" for k in range(size)])
    vote = np.where(rng.random(n) < 0.8 * chance * (1 - chance), 0.5, rng.random(n) < chance)
    judges = []
    for k in range(5):
        noise, spread = {
            "alike": (1.0, 0.3),
            "unlike": (np.exp(rng.uniform(np.log(0.3), np.log(3))), rng.uniform(0.1, 0.6)),
            "one good": (3.0, 0.7) if k else (0.5, 0.1),
        }[kind]
        bias = rng.normal(0, spread, size) + shared
        score = np.rint(18 * (gap + bias[first] - bias[second] + rng.normal(0, noise, n))) / 12
        judges.append(
            code_battles(
                names[first],
                names[second],
                human_outcome=vote,
                judge_outcome=(np.sign(score) + 1) / 2,
                score_difference=np.clip(score, -9, 9),
            )
        )
    return judges


def weighted(ratings: np.ndarray, residual: np.ndarray, weigh: Weigh) -> np.ndarray:
    """Return judges' ratings (J, M) averaged by weights from the residuals of other models."""
    pooled = np.empty(ratings.shape[1])
    for model in range(pooled.size):
        weights = np.maximum(weigh(np.delete(residual, model, axis=1)), 0)
        pooled[model] = weights @ ratings[:, model] / weights.sum()
    return pooled


def shrunk(residual: np.ndarray, share: float) -> np.ndarray:
    """Return the weights of least variance, the covariance of residuals shrunk to equal."""
    product, n_judges = residual @ residual.T, len(residual)
    equal = np.trace(product) / n_judges * np.eye(n_judges)
    return np.linalg.solve((1 - share) * product + share * equal, np.ones(n_judges))


def best_of(residual: np.ndarray) -> np.ndarray:
    """Return weights of judges: all on the one with the least residuals."""
    return np.eye(len(residual))[np.abs(residual).mean(axis=1).argmin()]


def regressed(battles: CodedBattles, features: np.ndarray, penalty: float) -> np.ndarray:
    """Return ratings by one regression of votes on features, none with a negative weight."""
    found = place(battles, fit_beta_folds(battles), l2=0.01)
    voted, anchors = battles.human_outcome >= 0, found.placed["human"].anchors
    rating = np.empty(len(battles.models))
    for model, own in enumerate(OwnBattles.of_all(battles, found.sums.voted, None)):
        fitted = voted & (battles.model_a != model) & (battles.model_b != model)
        used = np.ones(features.shape[1], dtype=bool)
        weights = np.zeros(used.size)
        while used.any():
            weights[:] = 0
            weights[used] = fit_weights(
                features[fitted][:, used], battles.human_outcome[fitted] / 2, penalty=penalty
            )
            if weights.min() >= 0:
                break
            used[weights.argmin()] = False
        won = own.turned(expit(features @ weights)).sum()
        met = np.bincount(own.opponent, minlength=rating.size).astype(float)
        rating[model] = place_models([won], met[None], anchors[model], l2=0.01)[0]
    return strength_to_rating(rating)


def pooled_of(judges: list[CodedBattles]) -> dict[str, float]:
    """Return the mean absolute error of every way to pool judges that was tried, in Elo points."""
    rated = [rate(battles, SETTINGS) for battles in judges]
    ratings = np.array([one.rating[one.method == "auto"] for one in rated])
    human = rated[0].human_rating[rated[0].method == "auto"]
    residual, battles = ratings - human, judges[0]
    parts = [gap_features(one).values for one in judges]
    score, gap = np.array(parts).transpose(2, 1, 0)
    every = np.hstack([score, gap])
    together = rate_pooled({str(k): one for k, one in enumerate(judges)}, SETTINGS)
    tried = {
        "mean of headlines": ratings.mean(axis=0),
        "median of headlines": np.median(ratings, axis=0),
        **{
            f"covariance shrunk to equal by {share}": weighted(
                ratings, residual, partial(shrunk, share=share)
            )
            for share in (0.3, 0.5, 0.8)
        },
        "weights 1 / squared error": weighted(
            ratings, residual, lambda others: 1 / (others**2).mean(axis=1)
        ),
        "the best judge of the others": weighted(ratings, residual, best_of),
        "regression on all scores and gaps": regressed(battles, every, 1.0),
        "the same, penalty 30": regressed(battles, every, 30.0),
        "regression on all gaps": regressed(battles, gap, 1.0),
        "regression on all scores": regressed(battles, score, 1.0),
        "regression on the mean score": regressed(battles, score.mean(1, keepdims=True), 1.0),
        "on all scores and the mean gap": regressed(
            battles, np.column_stack([score, standardised(gap.mean(axis=1))[0]]), 1.0
        ),
        "on mean score and mean gap: pooled": together.rating[together.method == "pooled"],
    }
    alone = np.abs(residual).mean(axis=1)
    errors = {name: float(np.abs(value - human).mean()) for name, value in tried.items()}
    return {"mean judge": alone.mean(), "best judge, in hindsight": alone.min(), **errors}


def pooled_table(data: Path | None, seed: int, n_worlds: int) -> None:
    """Print the error of every way to pool judges, on real judges and on simulated ones."""
    sets = {"HANNA": [hanna(data)]} if data else {}
    for kind in ("alike", "unlike", "one good"):
        sets[kind] = [
            simulate_judges(kind, np.random.default_rng([seed, size, k]), 150 * size, size)
            for size in (11, 20, 40)
            for k in range(n_worlds)
        ]
    errors = {name: [pooled_of(judges) for judges in worlds] for name, worlds in sets.items()}
    print(f"five judges pooled, mean error in Elo: {', '.join(sets)}")
    for way in next(iter(errors.values()))[0]:
        means = (np.mean([one[way] for one in found]) for found in errors.values())
        print(f"  {way:<38} " + " ".join(f"{mean:6.1f}" for mean in means))


# ------------------------------------------------------------------ simulations


def papers_regime(n: int, size: int, seed: int) -> None:
    """Print simulated judges beside the printed values that they were tuned to."""
    for name, world in LIKE.items():
        battles = simulate(world, np.random.default_rng([seed, 1]), n, size)
        ratings = rate(battles, SETTINGS)
        errors = {
            method: float(np.nanmean(np.abs(ratings.residual[ratings.method == method])))
            for method in METHODS
        }
        kappa = cohen_kappa(battles.judge_outcome / 4, battles.human_outcome / 2)
        slope = float(np.mean(ratings.beta[ratings.method == "soft"]))
        size_of_s = float(np.abs(battles.rubric_points()).mean())
        told = (slope, size_of_s, kappa, errors["hard"], errors["soft"])
        print(f"{name}: printed (simulated)")
        for label, printed, simulated in zip(
            ("slope", "mean |s|", "kappa", "hard", "soft"), PRINTED[name], told, strict=True
        ):
            print(f"  {label:<9} {printed:6.3g} ({simulated:.3g})")
        rest = ", ".join(f"{method} {errors[method]:.1f}" for method in METHODS[2:])
        print(f"  {rest}; auto less soft {errors['auto'] - errors['soft']:+.1f}")


def main() -> None:
    """Print the errors of rating methods, of rules among them, and of pooled judges."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("JUDGELINE_DATA"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything simulated")
    parser.add_argument("tables", nargs="*", help="methods, rules, pooled, paper; all by default")
    options = parser.parse_args()
    wanted = options.tables or ["methods", "rules", "pooled", "paper"]
    n = 2_500 if options.quick else 25_000
    sets = dict(real(options.data)) if options.data else {}
    make = partial(simulate, n=n, size=55)
    if "methods" in wanted:
        noisy = make(WORLDS["noisy"], np.random.default_rng([options.seed, 0]))
        methods_table({**sets, f"simulated, noisy judge, {n} x 55": Judged(noisy)})
    if "rules" in wanted and sets:
        print("\nreal files:")
        rules_table({name: judged.battles for name, judged in sets.items()})
    if "rules" in wanted:
        print("\nsimulated, 6 kinds of judges x 4 sizes x 5 worlds:")
        rules_table(
            {
                f"{name} {size} {k}": simulate(
                    world, np.random.default_rng([options.seed, size, k]), 150 * size, size
                )
                for name, world in WORLDS.items()
                for size in (6, 11, 20, 40)
                for k in range(1 if options.quick else 5)
            }
        )
    if "pooled" in wanted:
        print()
        pooled_table(options.data, options.seed, 1 if options.quick else 3)
    if "paper" in wanted:
        print()
        papers_regime(n, 55, options.seed)


if __name__ == "__main__":
    main()
