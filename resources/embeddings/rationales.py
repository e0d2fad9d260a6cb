"""The judge's reasons, cut out of its answers, and the table of their vectors.

A verdict that parsed but gives no reason, or whose reason has no vector, has no row: it is
counted and never filled in.
"""

from typing import NamedTuple

import pandas as pd

from judgeline.verdict import explanation, reason_of_score
from resources.embeddings.embedder import Vector
from resources.tables.quantitative import RATIONALE_EMBEDDINGS


class Rationales(NamedTuple):
    """Rationales, one a row with its ``text``, and how many usable answers have none."""

    table: pd.DataFrame
    n_missing: int


def rationales(verdicts: pd.DataFrame, score_verdicts: pd.DataFrame) -> Rationales:
    """Return the reasons in the answers of one judge."""
    usable = verdicts[verdicts["status"].eq("ok")]
    scored = score_verdicts[score_verdicts["status"].eq("ok")]
    pairs = pd.DataFrame(
        {
            "source": "verdict",
            "key": usable["battle_id"],
            "order": usable["order"],
            "replicate": usable["replicate"],
            "text": [
                _of_verdict(answer, order)
                for answer, order in zip(_texts(usable), usable["order"], strict=True)
            ],
        }
    )
    singles = pd.DataFrame(
        {
            "source": "score",
            "key": scored["completion_id"],
            "order": None,
            "replicate": scored["replicate"],
            "text": [reason_of_score(answer) for answer in _texts(scored)],
        }
    )
    both = pd.concat([pairs, singles], ignore_index=True).astype(
        {"source": "str", "key": "str", "order": "str", "replicate": "int64", "text": "str"}
    )
    told = both["text"].ne("")
    return Rationales(both[told].reset_index(drop=True), int((~told).sum()))


def embedded(found: Rationales, vectors: dict[str, Vector]) -> pd.DataFrame:
    """Return the rationales that have a vector, as declared."""
    own = found.table["text"].map(vectors.get)
    table = found.table.assign(embedding=own.astype(object))
    return table.loc[own.notna(), RATIONALE_EMBEDDINGS.columns].reset_index(drop=True)


def _texts(answers: pd.DataFrame) -> list[str]:
    return answers["answer"].fillna("").astype(str).tolist()


def _of_verdict(answer: str, order: str) -> str:
    """Return what follows the scores, or the label in the first line of a published answer.

    What is published as one verdict for both orders is a record of numbers, not of reasons.
    """
    if order == "mean":
        return ""
    if answer.lstrip("\ufeff \t\r\n").startswith(("{", "```")):
        return explanation(answer)
    return answer.partition("\n")[2].strip()
