"""A further contestant of the built-in arena, as a candidate file."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from resources.arena.simulation import ArenaOptions, arena_options, build_arena


class Newcomer(NamedTuple):
    """A model that no battle of the arena knows, and its answers."""

    model: str
    family: str
    rows: list[dict[str, Any]]


def newcomer(arena: dict[str, Any], *, seed: int = 0, number: int = 1) -> Newcomer:
    """The contestant that would enter an arena of some options as its `number`-th further."""
    own: ArenaOptions = arena_options(arena, seed, "newcomer")
    larger = build_arena(own.model_copy(update={"n_new": own.n_new + number}))
    contestant, completions = larger.contestants[-1], larger.completions[-1]
    rows = [
        {"question_id": prompt.question_id, "completion": text}
        for prompt, text in zip(larger.prompts, completions, strict=True)
    ]
    return Newcomer(contestant.name, contestant.family, rows)


def drop(folder: Path, entrant: Newcomer, name: str | None = None, **columns: Any) -> Path:
    """Write a contestant's file as a person would: under another name first, then renamed."""
    folder.mkdir(parents=True, exist_ok=True)
    constant = {"model": entrant.model, "family": entrant.family, **columns}
    lines = [json.dumps({**row, **constant}) for row in entrant.rows]
    final = folder / (name or f"{entrant.model}.jsonl")
    part = final.with_name(f"{final.name}.part")
    part.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return part.rename(final)
