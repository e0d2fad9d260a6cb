"""Tables of candidates, made by hand from contestants that the built-in arena leaves out."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgeline.io import BATTLE_DTYPES, typed
from resources.arena.simulation import Arena, arena_options, build_arena


def further_arena(arena: dict[str, Any], n_further: int, *, seed: int = 0) -> Arena:
    """Return the arena of a corpus with further contestants, whom none of its battles knows."""
    own = arena_options(arena, seed, "tiny")
    return build_arena(own.model_copy(update={"n_new": own.n_new + n_further}))


def battles_of(
    arena: Arena,
    number: int,
    n_battles: int,
    *,
    name: str | None = None,
    control: str | None = None,
    text: str | None = None,
) -> pd.DataFrame:
    """Return battles of contestant `number` against voted ones, or of what says `text` always.

    ``"{opponent}"`` as the text is a copy of what the opponent says.
    """
    model = name or arena.models[number]
    order = np.random.default_rng(number).permutation(len(arena.prompts))
    turn, opponents = np.divmod(np.arange(n_battles), arena.options.n_voted)
    prompts = order[turn]
    rows = []
    for place, (prompt, other) in enumerate(zip(prompts, opponents, strict=True)):
        theirs = arena.completions[other][prompt]
        own = arena.completions[number][prompt] if text is None else text
        own = theirs if text == "{opponent}" else own
        sides = {"a": (model, own), "b": (arena.models[other], theirs)}
        if place % 2:
            sides = {"a": sides["b"], "b": sides["a"]}
        question = arena.prompts[prompt]
        rows.append(
            {
                "battle_id": f"{question.question_id}:{model}:{other}:{place}",
                "question_id": question.question_id,
                "cluster_id": question.question_id,
                "instruction": question.instruction,
                "language": question.language,
                "n_turns": 1,
                **{f"model_{side}": one for side, (one, _) in sides.items()},
                **{f"completion_{side}": said for side, (_, said) in sides.items()},
                "opponent": arena.models[other],
            }
        )
    table = pd.DataFrame(rows)
    return typed(table, BATTLE_DTYPES).assign(
        selection_order=np.arange(n_battles),
        candidate=model,
        opponent=table["opponent"].astype("str"),
        control=pd.Series([control] * n_battles, dtype="str"),
        content_hash=f"hash-of-{model}",
    )


def store_candidates(home: Path, *battles: pd.DataFrame, carrier: str = "") -> None:
    """Write the corpus' tables of candidates where a run of the lineage finds them."""
    table = pd.concat(battles, ignore_index=True)
    candidates = table.drop_duplicates("candidate")[["candidate", "control", "content_hash"]]
    metadata = f'{{"carrier": "{carrier}"}}' if carrier else "{}"
    candidates = candidates.rename(columns={"candidate": "model"}).assign(metadata=metadata)
    unread = ["file", "question_id", "instruction", "language", "completion", "family"]
    candidates = candidates.reindex(columns=[*candidates.columns, *unread])
    for name, one in (("candidate_battles", table), ("candidates", candidates)):
        path = home / "tables" / name / "tiny.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        one.to_parquet(path, index=False)
