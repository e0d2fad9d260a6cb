"""Errors and coverage of a board's ratings, intervals and brackets, where a truth is known.

Parts, each a table: `halves` hides half of the votes on real files by question; `claims` holds the
claimed errors of human ratings against halves of the questions; `extremes` hides the strongest and
weakest quarter of the models; `simulation` has eleven worlds with a known truth; `beyond` has new
models above all that people have rated; `skill` has judges of noise, reversed and good ones.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

import judgeline
from judgeline.elo import ELO_PER_LOGIT, RatingSettings, rate, spearman
from judgeline.io import as_coded, questions_of, read_judged_battles

PARTS = ("halves", "claims", "extremes", "simulation", "beyond", "skill")
QUICK = judgeline.Settings(n_resamples=0)


def scored(path: Path) -> pd.DataFrame:
    """Return the scored battles of a file."""
    return read_judged_battles(path).scored


def boards_of(table: pd.DataFrame, settings: Any = None) -> pd.DataFrame:
    """Return the leaderboard of a table by model."""
    board = judgeline.rank(table, settings or judgeline.Settings()).leaderboard
    return board.set_index("model")


def human_ratings(table: pd.DataFrame) -> pd.Series:
    """Return each model's held-out rating by votes alone."""
    return _human(table, "human_rating")


def _human(table: pd.DataFrame, column: str) -> pd.Series:
    coded = as_coded(table, "derived")
    settings = RatingSettings(n_resamples=0, smoothing_levels=())
    rated = rate(coded, settings, cluster=questions_of(table))
    own = rated.take(rated.method == "human")
    return pd.Series(getattr(own, column), index=own.model)


def without_votes(table: pd.DataFrame, hidden: np.ndarray) -> pd.DataFrame:
    """Return battles with some votes hidden."""
    return table.assign(human_outcome=table["human_outcome"].mask(hidden))


def in_half(table: pd.DataFrame, seed: int) -> np.ndarray:
    """Return which battles lie in a random half of the questions, or of the battles without any."""
    rng, units = np.random.default_rng(seed), questions_of(table)
    units = np.arange(len(table)) if units is None else units
    names = np.unique(units)
    return np.isin(units, rng.permutation(names)[: names.size // 2])


def halves(files: list[Path], n_splits: int) -> pd.DataFrame:
    """Return errors of ratings made of half of the votes, against those of the other half."""
    rows = []
    for path in files:
        table = scored(path)
        for seed in range(n_splits):
            half = in_half(table, seed)
            try:
                truth = human_ratings(without_votes(table, half))
                board = boards_of(without_votes(table, ~half))
            except (ValueError, judgeline.QualityGateError) as error:
                print(f"{path.stem}, split {seed}: {error}")
                continue
            both = board.join(truth.rename("truth"), how="inner").dropna(subset=["truth", "rating"])
            place = both["truth"].rank(ascending=False)
            finite = np.isfinite(both["upper"])
            width = (both["upper"] - both["lower"])[finite]
            rows.append({
                "file": path.stem, "split": seed, "models": len(both),
                **{f"error {name}": (both[column] - both["truth"]).abs().mean()
                   for name, column in (("judge", "judge_rating"), ("votes", "human_rating"),
                                        ("board", "rating"))},
                "spearman judge": spearman(both["judge_rating"].fillna(0), both["truth"]),
                "spearman board": spearman(both["rating"], both["truth"]),
                "first judge": place[both["judge_rating"].idxmax()],
                "first board": place[both["rating"].idxmax()],
                "finite": finite.mean(),
                "width": width.median(),
                "bracket": ((both["worst_rank"] - both["best_rank"] + 1) / len(board)).mean(),
            })  # fmt: skip
    return pd.DataFrame(rows)


def claims(files: list[Path], n_splits: int) -> pd.DataFrame:
    """Return claimed standard deviations of human ratings, and those of halves of the questions."""
    rows = []
    for path in files:
        table = scored(path)
        claimed = np.sqrt((_human(table, "human_std_error") ** 2).mean())
        halves_sd = []
        for seed in range(n_splits):
            half = in_half(table, seed)
            first, second = (human_ratings(without_votes(table, part)) for part in (half, ~half))
            halves_sd.append(((first - second).dropna() ** 2).mean() / 4)
        seen = float(np.sqrt(np.mean(halves_sd)))
        tripled = pd.concat([table.drop(columns="battle_id")] * 3, ignore_index=True)
        again, once = (boards_of(one, QUICK) for one in (tripled, table))
        ends = ["lower", "upper", "judge_lower", "judge_upper"]
        same = (again[ends] - once[ends]).abs().replace(np.inf, np.nan).max().max()
        rows.append({
            "file": path.stem, "claimed": claimed, "split half": seen, "ratio": claimed / seen,
            "an end moves when tripled": same,
        })  # fmt: skip
    return pd.DataFrame(rows)


def newcomers(
    table: pd.DataFrame, hidden: list[str], human: pd.Series
) -> Iterator[dict[str, float]]:
    """Yield how the intervals of models that are new together hold their human ratings."""
    of_them = table["model_a"].isin(hidden) | table["model_b"].isin(hidden)
    board = boards_of(without_votes(table, of_them.to_numpy()))
    voted = human.drop(hidden)
    for name in hidden:
        row = board.loc[name]
        # the zero of its human rating is the mean of all others, of its new one that of the voted
        truth = human[name] + voted.mean() - human.drop(name).mean()
        reach = min(row["upper"] - row["rating"], row["rating"] - row["lower"])
        yield {
            "error": row["rating"] - truth,
            "held": float(row["lower"] <= truth <= row["upper"]),
            "held before": float(abs(row["rating"] - truth) <= reach),
            "width": row["upper"] - row["lower"],
            "width before": 2 * reach,
            "flagged": float("beyond-anchors" in row["flags"]),
        }


def extremes(files: list[Path]) -> pd.DataFrame:
    """Return how intervals hold where a quarter of the models is new at once, or each by itself."""
    rows = []
    for path in files:
        table = scored(path)
        human = human_ratings(table).dropna().sort_values()
        quarter = max(len(human) // 4, 1)
        groups = {
            "strongest quarter at once": [human.index[-quarter:].tolist()],
            "weakest quarter at once": [human.index[:quarter].tolist()],
            "each by itself": [[name] for name in human.index],
        }
        for what, hidden in groups.items():
            found = [one for names in hidden for one in newcomers(table, names, human)]
            rows += [{"file": path.stem, "new": what, **one} for one in found]
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class World:
    """A simulated arena with people, a judge and a known truth; sizes in Elo points.

    `own_votes` are numbers of votes on one model each; `n_new` models have none. `bent` bends the
    judge's view of a gap in logits; `question_sd` is how far a question suits a model, in logits.
    """

    n_voted: int = 25
    n_new: int = 3
    own_votes: tuple[int, ...] = (15, 40, 100)
    above: tuple[float, ...] = ()
    new_above: bool = False
    bias: float = 45.0
    heavy: bool = False
    noise_with_strength: bool = False
    uneven: bool = False
    tie_width: float = 0.25
    per_model: int = 300
    question_sd: float = 0.0
    bent: Callable[[np.ndarray], np.ndarray] | None = None


WORLDS = {
    "12 voted": World(n_voted=12),
    "25 voted": World(),
    "25, bias t3": World(heavy=True),
    "25, bias 0": World(bias=0.0),
    "25, bias 100": World(bias=100.0),
    "25, newcomers above all": World(new_above=True),
    "12, newcomers above all": World(n_voted=12, new_above=True),
    "25, noise grows with strength": World(noise_with_strength=True),
    "25, uneven battles": World(uneven=True),
    "25, ties a third": World(tie_width=0.75),
    "55 voted": World(n_voted=55),
    "25, questions suit models": World(question_sd=0.5),
}


def simulate(world: World, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Return scored battles, each model's true rating, and how many votes it has (-1 for all)."""
    kinds = [-1] * world.n_voted + [0] * world.n_new + [*world.own_votes] + [0] * len(world.above)
    names = np.array([f"m{k:03d}" for k in range(len(kinds))])
    kind = np.array(kinds)
    strength = rng.normal(0, 0.6, kind.size)
    voted = kind == -1
    best = strength[voted].max()
    if world.new_above:
        strength[kind == 0] = best + rng.uniform(0, 0.5, (kind == 0).sum())
    if world.above:
        strength[-len(world.above) :] = best + np.array(world.above) / ELO_PER_LOGIT
    draw = rng.standard_t(3, kind.size) / np.sqrt(3) if world.heavy else rng.normal(size=kind.size)
    bias = world.bias / ELO_PER_LOGIT * draw
    weight = rng.lognormal(0, 1.2 if world.uneven else 0.0, kind.size)
    n = world.per_model * kind.size // 2
    a = rng.choice(kind.size, n, p=weight / weight.sum())
    b = (a + rng.integers(1, kind.size, n)) % kind.size
    question = rng.integers(0, max(n // 10, 1), n)
    taste = rng.normal(0, world.question_sd, (question.max() + 1, kind.size))
    gap = strength[a] - strength[b] + taste[question, a] - taste[question, b]
    latent = gap + rng.logistic(size=n)
    vote = np.where(np.abs(latent) < world.tie_width, 0.5, (latent > 0).astype(float))
    view = strength + bias
    seen = view[a] - view[b] + taste[question, a] - taste[question, b]
    seen = seen if world.bent is None else world.bent(seen)
    scale = 1.0 + (
        0.5 * (strength[a] + strength[b]).clip(-1, 2) if world.noise_with_strength else 0
    )
    # the judge sees the same answers as people, and errs on a battle in both orders alike
    shared = 0.3 * (latent - gap) + rng.normal(0, 1.0, n)
    criteria = 1.2 * (seen + shared)[:, None, None] + rng.normal(0, 1.2, (n, 2, 6)) * np.reshape(
        scale * np.ones(n), (n, 1, 1)
    )
    score = np.clip(np.rint(criteria), -9, 9).mean(axis=(1, 2))
    human = np.full(n, np.nan)
    anchor = voted[a] & voted[b]
    human[anchor] = vote[anchor]
    for model in np.flatnonzero(kind > 0):
        own = np.flatnonzero(((a == model) & voted[b]) | ((b == model) & voted[a]))
        human[own[: kind[model]]] = vote[own[: kind[model]]]
    table = pd.DataFrame({
        "question_id": [f"q{k}" for k in question], "model_a": names[a], "model_b": names[b],
        "score_difference": score, "human_outcome": human,
    })  # fmt: skip
    # what unlimited votes would give: tastes of questions and ties flatten the odds alike
    flat = _flattening(world, rng)
    others = (strength[voted].sum() - np.where(voted, strength, 0)) / (voted.sum() - voted)
    truth = 1500 + ELO_PER_LOGIT * flat * (strength - others)
    return table, pd.Series(truth, index=names), pd.Series(kind, index=names)


def _flattening(world: World, rng: np.random.Generator) -> float:
    """Return what a Bradley-Terry fit makes of a logit of true gap, by half a million draws."""
    gap = rng.normal(0, 0.85, 500_000)
    shift = gap + rng.normal(0, world.question_sd * np.sqrt(2), gap.size)
    latent = shift + rng.logistic(size=gap.size)
    vote = np.where(np.abs(latent) < world.tie_width, 0.5, (latent > 0).astype(float))
    slope = 1.0
    for _ in range(30):
        chance = expit(slope * gap)
        slope += (gap @ (vote - chance)) / ((gap**2) @ (chance * (1 - chance)))
    return float(slope)


def simulation(n_boards: int, names: list[str]) -> pd.DataFrame:
    """Return coverage of ratings by number of own votes, and of brackets, in each world."""
    rows = []
    for name in names:
        world = WORLDS[name]
        for seed in range(max(n_boards // 5, 2) if "55" in name else n_boards):
            rng = np.random.default_rng([seed, len(name), *name.encode()])
            table, truth, kind = simulate(world, rng)
            board = boards_of(table)
            true, votes = truth[board.index], kind[board.index]
            held = (board["lower"] <= true) & (true <= board["upper"])
            rank = true.rank(ascending=False)
            inside = (board["best_rank"] <= rank) & (rank <= board["worst_rank"])
            bracket = (board["worst_rank"] - board["best_rank"] + 1)[votes == -1] / len(board)
            row = {"world": name, "all ranks inside": float(inside.all()),
                   "bracket": bracket.mean()}  # fmt: skip
            for n in (0, *world.own_votes, -1):
                own = votes == n
                row[f"held {'all' if n < 0 else n}"] = held[own].mean()
                row[f"error {'all' if n < 0 else n}"] = (board["rating"] - true)[own].abs().mean()
            row["width 0"] = (board["upper"] - board["lower"])[votes == 0].median()
            rows.append(row)
    return pd.DataFrame(rows)


ABOVE = (0.0, 52.0, 104.0, 174.0, 350.0)
BENT = {
    "linear": None,
    "saturates": lambda gap: np.tanh(0.6 * gap) / 0.6,
    "stretches": lambda gap: np.sinh(0.6 * gap) / 0.6,
}


def beyond(n_boards: int) -> pd.DataFrame:
    """Return how intervals hold new models so many Elo points above the best voted one."""
    rows = []
    for judge, bent in BENT.items():
        for seed in range(n_boards):
            world = replace(World(20, 0, (), ABOVE, per_model=400), bent=bent, bias=20.0)
            table, truth, _ = simulate(world, np.random.default_rng([seed, len(judge)]))
            board = boards_of(table)
            for elo, name in zip(ABOVE, truth.index[-len(ABOVE) :], strict=True):
                row = board.loc[name]
                reach = min(row["upper"] - row["rating"], row["rating"] - row["lower"])
                rows.append({
                    "judge": judge, "above": elo,
                    "held": float(row["lower"] <= truth[name] <= row["upper"]),
                    "held before": float(abs(row["rating"] - truth[name]) <= reach),
                    "bias": row["rating"] - truth[name],
                    "flagged": float("beyond-anchors" in row["flags"]),
                })  # fmt: skip
    return pd.DataFrame(rows)


def skill(n_draws: int) -> pd.DataFrame:
    """Return skill and the gate's answer for judges of noise, reversed and good ones."""
    rows = []
    for seed in range(n_draws):
        rng = np.random.default_rng([seed, 7])
        table, _, _ = simulate(replace(World(15, 0, ()), per_model=150), rng)
        noise = np.rint(12 * rng.normal(0, 1.5, len(table))) / 12
        judges = {
            "noise": noise,
            "reversed": -table["score_difference"],
            "good": table["score_difference"],
        }
        for judge, score in judges.items():
            row = {"judge": judge, "draw": seed, "skill": np.nan, "answer": ""}
            try:
                found = judgeline.rank(table.assign(score_difference=score), QUICK)
            except judgeline.QualityGateError as error:
                rows.append({**row, "answer": "refused: " + str(error).split(":")[0][:40]})
                continue
            own = found.coverage.set_index("method").loc["auto"]
            warns = "warns: may add nothing" if own["skill_lower"] <= 0 else "passes"
            rows.append({**row, "skill": own["skill"],
                         "answer": "withheld" if found.withheld else warns})  # fmt: skip
    return pd.DataFrame(rows)


def show(title: str, table: pd.DataFrame) -> None:
    """Print a table of coverage and errors of ratings."""
    print(f"\n== {title}\n{table.to_string(float_format='{:.3f}'.format)}", flush=True)


def main() -> None:
    """Print errors and coverage of boards on the real files and in simulated arenas."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("files", nargs="*", type=Path, help="judged battles with votes")
    parser.add_argument("--quick", action="store_true", help="a taste of everything")
    parser.add_argument(
        "--only", action="append", choices=PARTS, help="a part to measure; all by default"
    )
    parser.add_argument("--boards", type=int, default=50, help="simulated boards a world")
    options = parser.parse_args()
    n_boards, n_splits = (2, 1) if options.quick else (options.boards, 5)
    parts = set(options.only or PARTS)
    pd.set_option("display.width", 250, "display.max_columns", 40)
    if options.files and "halves" in parts:
        found = halves(options.files, n_splits)
        show("Half of the votes hidden", found.groupby("file").mean(numeric_only=True))
        firsts = found.pivot_table(index="file", columns="split", values="first board")
        show("True place of the board's first model, by split", firsts)
        show("Mean of the files", found.groupby("file").mean(numeric_only=True).mean().to_frame().T)
    if options.files and "claims" in parts:
        show("Claimed errors of human ratings", claims(options.files, 4 * n_splits))
    if options.files and "extremes" in parts:
        found = extremes(options.files)
        show("New models by kind", found.groupby("new").mean(numeric_only=True))
        show("... and file", found.groupby(["new", "file"]).mean(numeric_only=True))
    if "simulation" in parts:
        found = simulation(n_boards, [*WORLDS])
        show("Simulated boards", found.groupby("world", sort=False).mean(numeric_only=True).T)
    if "beyond" in parts:
        found = beyond(n_boards)
        show("Above all voted models", found.groupby(["judge", "above"]).mean(numeric_only=True))
    if "skill" in parts:
        found = skill(2 * n_boards)
        show("Skill", found.groupby("judge")["skill"].describe())
        show("Answers of the gate", found.groupby(["judge", "answer"]).size().to_frame("draws"))


if __name__ == "__main__":
    main()
