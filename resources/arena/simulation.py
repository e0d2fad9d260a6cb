"""The arena as a whole: prompts, contestants, true quality and ratings, battles, its corpus."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from scipy.special import expit

from judgeline.elo import fit_strengths, keyed_rng, strength_to_rating
from judgeline.io import CorpusRead, empty, typed
from judgeline.tables.corpus import BATTLE_DTYPES, QUARANTINE_DTYPES, VERDICT_DTYPES
from resources.arena.checker import quality, read_completion
from resources.arena.contestants import Contestant, enter_contestants, write_completions
from resources.arena.prompts import Prompt, write_prompts
from resources.config.corpora import CorpusDefinition


class ArenaOptions(BaseModel):
    """Size of the arena.

    `n_voted` contestants meet each other, and humans vote on `vote_share` of those battles;
    `n_new` meet only voted ones and nobody votes. All appear in about equally many battles, as
    long as new models take part in no more than half of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    n_prompts: int = Field(default=300, ge=1, le=10_000)
    n_voted: int = Field(default=20, ge=2, le=500)
    n_new: int = Field(default=4, ge=0, le=500)
    n_battles: int = Field(default=4000, ge=1, le=1_000_000)
    vote_share: float = Field(default=0.9, gt=0, le=1)
    seed: int = Field(default=0, ge=0)


def arena_options(given: Mapping[str, Any], seed: int, corpus: str) -> ArenaOptions:
    """Return the options that a corpus gives under ``arena``, with the seed of the corpus."""
    if "seed" in given:
        raise ValueError(
            f"corpus {corpus!r}: 'arena.seed' is no option; set 'seed' of the corpus itself"
        )
    try:
        return ArenaOptions.model_validate({**given, "seed": seed})
    except ValidationError as error:
        first, known = error.errors()[0], [*ArenaOptions.model_fields][:-1]
        key = ".".join(str(part) for part in first["loc"])
        raise ValueError(
            f"corpus {corpus!r}: option 'arena.{key}' is {first['input']!r}: {first['msg']}; "
            f"correct it in corpora.yaml (options: {', '.join(known)})"
        ) from error


@dataclass(frozen=True)
class Arena:
    """A simulated arena: voted contestants, then new ones; the same options make the same one.

    `completions` are by contestant, then prompt; `quality` (n_prompts, M) is true, in [0, 1].
    """

    options: ArenaOptions
    prompts: tuple[Prompt, ...]
    contestants: tuple[Contestant, ...]
    completions: tuple[tuple[str, ...], ...]
    quality: NDArray[np.float64]

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the contestants."""
        return tuple(contestant.name for contestant in self.contestants)


@lru_cache(maxsize=1)
def build_arena(options: ArenaOptions) -> Arena:
    """Return the arena of some options: every prompt completed by every contestant, and read."""
    prompts = write_prompts(options.n_prompts, options.seed)
    contestants = enter_contestants(options.n_voted + options.n_new, options.seed)
    completions = tuple(
        write_completions(contestant, prompts, options.seed) for contestant in contestants
    )
    levels = [
        [quality(read_completion(prompt, text)) for prompt, text in zip(prompts, own, strict=True)]
        for own in completions
    ]
    return Arena(options, prompts, contestants, completions, np.array(levels).T)


def draw_battles(arena: Arena) -> pd.DataFrame:
    """Return distinct battles, each a random question and pair, and the votes on some of them.

    prompt, model_a and model_b are positions; human_outcome is NaN where there is no vote. Each new
    model has as many battles, against voted ones, as a voted model has against other voted ones,
    which are those that count, unless half of the battles would not do for that.
    """
    options, n_voted = arena.options, arena.options.n_voted
    n_models = n_voted + options.n_new
    n_each = min(
        round(2 * options.n_battles / (n_models + options.n_new)),
        options.n_battles // (2 * max(options.n_new, 1)),
    )
    first, second = np.triu_indices(n_voted, 1)
    n_among = options.n_battles - n_each * options.n_new
    cells = _choose(n_among, options.n_prompts * first.size, options, "voted models")
    prompt, pair = np.divmod(cells, first.size)
    drawn = [(prompt, first[pair], second[pair])]
    for new in range(n_voted, n_models):
        n_cells = options.n_prompts * n_voted
        cells = _choose(n_each, n_cells, options, f"new model {new}")
        drawn.append((*np.divmod(cells, n_voted), np.full(n_each, new)))
    prompt, one, two = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    swap = keyed_rng(options.seed, "arena", "sides").random(prompt.size) < 0.5
    model_a, model_b = np.where(swap, two, one), np.where(swap, one, two)
    rng = keyed_rng(options.seed, "arena", "votes")
    votes = cast_votes(arena.quality[prompt, model_a], arena.quality[prompt, model_b], rng)
    silent = rng.random(prompt.size) >= options.vote_share
    silent |= np.maximum(one, two) >= n_voted
    outcome = np.where(silent, np.nan, votes)
    columns = {"prompt": prompt, "model_a": model_a, "model_b": model_b, "human_outcome": outcome}
    return pd.DataFrame(columns)


def _choose(n_battles: int, n_cells: int, options: ArenaOptions, whose: str) -> NDArray[np.int64]:
    if n_battles > n_cells:
        raise ValueError(
            f"{options.n_prompts} prompts give {whose} only {n_cells} different battles, but "
            f"n_battles: {options.n_battles} asks for {n_battles}; raise n_prompts in the "
            "corpus' arena options or lower n_battles"
        )
    rng = keyed_rng(options.seed, "arena", "battles", whose)
    return rng.permutation(n_cells)[:n_battles]


DISCERNMENT = 5.0
"""Log-odds of preferring a perfect completion to a worthless one."""

TIE_SHARE = 0.6
"""Ties between equals are half of this."""


def expected_outcome(quality_a: ArrayLike, quality_b: ArrayLike) -> NDArray[np.float64]:
    """Return the mean vote, ``sigmoid(DISCERNMENT * (quality_a - quality_b))``, ties one half."""
    gap = np.asarray(quality_a, dtype=float) - np.asarray(quality_b, dtype=float)
    mean: NDArray[np.float64] = expit(DISCERNMENT * gap)
    return mean


def cast_votes(
    quality_a: ArrayLike, quality_b: ArrayLike, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return votes of 1, 0.5 or 0 whose mean is exactly `expected_outcome`.

    With p that mean, a tie has probability ``2 * TIE_SHARE * p * (1 - p)`` and takes half of it
    from either side.
    """
    mean = expected_outcome(quality_a, quality_b)
    tie = 2 * TIE_SHARE * mean * (1 - mean)
    draw = rng.random(mean.shape)
    return np.where(draw < mean - tie / 2, 1.0, np.where(draw < mean + tie / 2, 0.5, 0.0))


def mean_outcomes(arena: Arena) -> NDArray[np.float64]:
    """Return the mean outcome of each model (row) against each other, shape (M, M)."""
    return np.stack(
        [
            expected_outcome(arena.quality[:, [m]], arena.quality).mean(axis=0)
            for m in range(len(arena.contestants))
        ]
    )


def true_ratings(arena: Arena) -> dict[str, float]:
    """Return the rating of every contestant that unlimited votes would give, in Elo points.

    The fit is to each pair's mean outcome over all questions; 1500 is the mean of the voted.
    """
    wins = mean_outcomes(arena)
    np.fill_diagonal(wins, 0.0)
    # a penalty this small moves no rating by a millionth of a point
    strengths = fit_strengths(1.0 - np.eye(len(wins)), wins.sum(axis=1), l2=1e-9)
    strengths -= strengths[: arena.options.n_voted].mean()
    return dict(zip(arena.models, strength_to_rating(strengths).tolist(), strict=True))


def read_arena(definition: CorpusDefinition) -> CorpusRead:
    """Return the battles of the arena that a corpus' options and seed make, with unique ids."""
    options = arena_options(definition.arena, definition.seed, definition.slug)
    arena = build_arena(options)
    drawn = draw_battles(arena)
    prompts = [arena.prompts[number] for number in drawn["prompt"]]
    completions = np.array(arena.completions, dtype=object)
    table = pd.DataFrame(
        {
            "question_id": [prompt.question_id for prompt in prompts],
            "model_a": np.array(arena.models)[drawn["model_a"]],
            "model_b": np.array(arena.models)[drawn["model_b"]],
            "human_outcome": drawn["human_outcome"],
            "instruction": [prompt.instruction for prompt in prompts],
            "completion_a": completions[drawn["model_a"], drawn["prompt"]],
            "completion_b": completions[drawn["model_b"], drawn["prompt"]],
            "language": [prompt.language for prompt in prompts],
            "category": [prompt.kind for prompt in prompts],
            "n_turns": 1,
        }
    )
    ids = table["question_id"] + ":" + table["model_a"] + ":" + table["model_b"]
    battles = typed(table.assign(battle_id=ids, cluster_id=table["question_id"]), BATTLE_DTYPES)
    return CorpusRead(battles, empty(QUARANTINE_DTYPES), empty(VERDICT_DTYPES))
