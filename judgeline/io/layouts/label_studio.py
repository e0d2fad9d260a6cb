"""Label Studio's export of pairwise tasks: a vote for each annotation.

HumanSignal/label-studio, tag `Pairwise`; both models are keys of the task's data.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from judgeline.io.layout import VOTES, Given, Layout


def _votes(row: int, data: Mapping[str, Any], annotations: Any) -> Iterator[dict[str, Any]]:
    if not {"model_a", "model_b"} <= data.keys():
        raise ValueError(
            f"the data of task {row} names no models ({', '.join(data)}): add model_a and model_b "
            "to each task, the models of the left and the right answer"
        )
    battle = {"model_a": data["model_a"], "model_b": data["model_b"], "battle_id": str(row)}
    for annotation in annotations or []:
        for result in annotation.get("result") or []:
            chosen = (result.get("value") or {}).get("selected")  # nothing of an unanswered one
            if result.get("type") == "pairwise" and chosen and not annotation.get("was_cancelled"):
                yield {**battle, "winner": chosen}


def _battles(given: Given) -> pd.DataFrame:
    table = given.read(["data", "annotations"], [])
    rows = table[["row", "data", "annotations"]].itertuples(index=False)
    return pd.DataFrame(
        [vote for row in rows for vote in _votes(*row)],
        columns=["model_a", "model_b", "battle_id", "winner"],
    )


LABEL_STUDIO = Layout("label-studio", ("data annotations",), advice=VOTES, battles=_battles)
