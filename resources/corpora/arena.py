"""The built-in arena as a corpus: simulated battles, the only ones whose truth is known."""

from typing import Any

import numpy as np
import pandas as pd

from judgeline.io import BATTLE_DTYPES, QUARANTINE_DTYPES, CorpusRead, empty, no_verdicts, typed
from resources.arena.simulation import Arena, ArenaBattles, arena_options, build_arena, draw_battles
from resources.config.corpora import CorpusDefinition


def read_arena(definition: CorpusDefinition) -> CorpusRead:
    """Return the battles of the arena that a corpus' options and seed make.

    Battle ids name question and models and are unique by construction; the unit of dependence
    is the question. Nothing is quarantined and no verdicts come with it.
    """
    options = arena_options(definition.arena, definition.seed, definition.slug)
    arena = build_arena(options)
    return CorpusRead(
        battles=tabulate(arena, draw_battles(arena)),
        quarantine=empty(QUARANTINE_DTYPES),
        verdicts=no_verdicts(),
    )


def tabulate(arena: Arena, drawn: ArenaBattles) -> pd.DataFrame:
    """Return drawn battles as the table of raw battles, with the texts."""
    prompts = [arena.prompts[number] for number in drawn.prompt]
    question = [prompt.question_id for prompt in prompts]
    name_a, name_b = _names(arena, drawn.model_a), _names(arena, drawn.model_b)
    ids = [f"{q}:{a}:{b}" for q, a, b in zip(question, name_a, name_b, strict=True)]
    table = pd.DataFrame(
        {
            "battle_id": ids,
            "question_id": question,
            "cluster_id": question,
            "model_a": name_a,
            "model_b": name_b,
            "human_outcome": drawn.human_outcome,
            "instruction": [prompt.instruction for prompt in prompts],
            "completion_a": _texts(arena, drawn.model_a, drawn.prompt),
            "completion_b": _texts(arena, drawn.model_b, drawn.prompt),
            "language": [prompt.language for prompt in prompts],
            "n_turns": 1,
        }
    )
    return typed(table, BATTLE_DTYPES)


def _names(arena: Arena, model: np.ndarray[Any, Any]) -> list[str]:
    return [arena.models[number] for number in model]


def _texts(arena: Arena, model: np.ndarray[Any, Any], prompt: np.ndarray[Any, Any]) -> list[str]:
    return [arena.completions[m][q] for m, q in zip(model, prompt, strict=True)]
