"""ComparIA's votes of people, a battle a row."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgeline.io import assemble
from judgeline.io.formats import file_columns
from judgeline.io.layout import VOTES, Layout, Stated, read_layout
from judgeline.io.published import categories, language_code, names, truths
from judgeline.io.schema import CorpusRead, fault


def _read(_layout: Layout, paths: Sequence[Path], _stated: Stated) -> CorpusRead:
    """Return ComparIA's votes: a tie where both are equal, else the side that was chosen.

    Ids are ``conversation_pair_id``, which repeats, and the first vote is kept. The cluster is
    ``session_hash``. A file that has ``languages`` and no votes is the conversations release: it
    gives the language of a pair, which is French otherwise.
    """
    wanted = {"conversation_pair_id", "languages"}
    columns = {path: set(file_columns(path)) for path in paths}
    spoken = [path for path, own in columns.items() if wanted <= own and "both_equal" not in own]
    votes = [path for path in paths if path not in spoken]
    if not votes:
        raise ValueError(
            f"{', '.join(str(path) for path in paths)} holds conversations and no votes; add "
            "votes.parquet to the location in corpora.yaml"
        )
    known = None
    if spoken:
        tables = [pd.read_parquet(path, columns=sorted(wanted)) for path in spoken]
        firsts = [one.drop_duplicates("conversation_pair_id") for one in tables]
        by_pair = pd.concat(firsts).set_index("conversation_pair_id")["languages"]
        known = by_pair.map(_first_language)
    return assemble.assemble(votes, lambda path: _converted(path, known))


def _first_language(published: Any) -> str | None:
    listed = published.tolist() if isinstance(published, np.ndarray) else published
    if isinstance(listed, str):
        listed = [part.strip(" '\"") for part in listed.strip("[]").split(",")]
    codes = [language_code(one) for one in listed] if isinstance(listed, list) else []
    return next((code for code in codes if code is not None), None)


def _converted(path: Path, known: pd.Series | None) -> assemble.Converted:
    optional = "opening_msg conv_turns session_hash timestamp languages selected_category"
    table = read_layout(path, COMPARIA, optional)
    given = {name: assemble.column_of(table, name) for name in optional.split()}
    texts, faults = assemble.conversations(table)
    n_turns = pd.to_numeric(given["conv_turns"], errors="coerce").astype(float)
    wrong = given["conv_turns"].notna() & ~assemble.is_count(n_turns)
    turns = fault(table, wrong, "unreadable-turns", "conv_turns is {conv_turns!r}, no count")
    time, untimely = assemble.read_times(table)
    battles = assemble.identified(
        table,
        "conversation_pair_id",
        "session_hash",
        "model_a_name model_b_name",
        **texts.assign(
            instruction=given["opening_msg"].fillna(texts["instruction"]),
            n_turns=n_turns.where(assemble.is_count(n_turns))
            .astype("Int64")
            .fillna(texts["n_turns"]),
        ),
        category=categories(given["selected_category"]),
        timestamp=time,
    )
    language = given["languages"].map(_first_language)
    if known is not None:
        language = language.fillna(battles["battle_id"].map(known))
    chosen = names(table["chosen_model_name"])
    outcome = pd.Series(np.nan, index=table.index)
    for side, share in (("model_b", 0.0), ("model_a", 1.0)):
        outcome[chosen.eq(battles[side]).fillna(value=False)] = share
    outcome[truths(table["both_equal"])] = 0.5
    silent = table["chosen_model_name"].isna() & outcome.isna()
    sentence = (
        "chosen_model_name is {chosen_model_name!r}, which is neither {model_a_name!r} nor "
        "{model_b_name!r}"
    )
    undecided = [
        fault(table, silent, "no-decision", "no model was chosen and none called equal"),
        fault(table, outcome.isna(), "unknown-winner", sentence),
    ]
    battles = battles.assign(human_outcome=outcome, language=language.fillna("fr"))
    return assemble.Converted(battles, [*undecided, turns, untimely, *faults])


COMPARIA = Layout(
    "comparia",
    (
        "conversation_pair_id model_a_name model_b_name chosen_model_name both_equal "
        "conversation_a conversation_b",
    ),
    advice=VOTES,
    corpus=_read,
)
