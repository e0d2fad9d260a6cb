"""The built-in arena as a corpus: simulated battles, the only ones whose truth is known."""

import numpy as np
import pandas as pd

from judgeline.io import BATTLE_DTYPES, QUARANTINE_DTYPES, CorpusRead, empty, no_verdicts, typed
from resources.arena.simulation import Arena, ArenaBattles, arena_options, build_arena, draw_battles
from resources.config.corpora import CorpusDefinition


def read_arena(definition: CorpusDefinition) -> CorpusRead:
    """Return the battles of the arena that a corpus' options and seed make, with unique ids."""
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
    completions = np.array(arena.completions, dtype=object)
    table = pd.DataFrame(
        {
            "question_id": [prompt.question_id for prompt in prompts],
            "model_a": np.array(arena.models)[drawn.model_a],
            "model_b": np.array(arena.models)[drawn.model_b],
            "human_outcome": drawn.human_outcome,
            "instruction": [prompt.instruction for prompt in prompts],
            "completion_a": completions[drawn.model_a, drawn.prompt],
            "completion_b": completions[drawn.model_b, drawn.prompt],
            "language": [prompt.language for prompt in prompts],
            "n_turns": 1,
        }
    )
    ids = table["question_id"] + ":" + table["model_a"] + ":" + table["model_b"]
    return typed(table.assign(battle_id=ids, cluster_id=table["question_id"]), BATTLE_DTYPES)
