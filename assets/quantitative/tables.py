"""Tables to inputs of quantitative judges: rationales, base scores and votes by battle.

Battles without a rationale, or without a score, are left out.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from judgeline.io import verdict_differences
from judgeline.quantitative import Presentations, presentations, two_headed
from resources.judges.forms.score import completion_ids

_ANSWER = ["battle_id", "order", "replicate"]


class Material(NamedTuple):
    """Training data of one method; `shown` is None if no battle is complete.

    `battles`: n rows of the scored battles; `shown`: their presentations; `base_outcome` (n,):
    the base judge's own share of the win for A.
    """

    battles: pd.DataFrame
    shown: Presentations | None
    base_outcome: NDArray[np.float64]


def pair_material(
    scored_battles: pd.DataFrame, verdicts: pd.DataFrame, embeddings: pd.DataFrame
) -> Material:
    """Return the data of BTL: each order's rationale and score difference."""
    own = embeddings[embeddings["source"].eq("verdict")].rename(columns={"key": "battle_id"})
    usable = verdicts[verdicts["status"].eq("ok") & verdicts["order"].isin(["AB", "BA"])]
    rows = own.merge(usable, on=_ANSWER, how="inner", validate="one_to_one")
    rows = rows[rows["battle_id"].isin(scored_battles["battle_id"])]
    battles = scored_battles[scored_battles["battle_id"].isin(rows["battle_id"])]
    battles = battles.reset_index(drop=True)
    if rows.empty:
        return Material(battles, None, np.empty(0))
    swapped = rows["order"].eq("BA").to_numpy(dtype=bool)
    shown = presentations(
        _stacked(rows["embedding"]),
        np.where(swapped, -1, 1) * verdict_differences(rows),
        pd.Index(battles["battle_id"]).get_indexer(rows["battle_id"]),
        swapped,
    )
    return Material(battles, shown, battles["judge_outcome"].to_numpy(dtype=float))


def single_material(
    scored_battles: pd.DataFrame,
    sampled_battles: pd.DataFrame,
    score_verdicts: pd.DataFrame,
    embeddings: pd.DataFrame,
) -> Material:
    """Return the data of BTL2: the rationale and the expected score of either completion."""
    own = embeddings[embeddings["source"].eq("score")].rename(columns={"key": "completion_id"})
    rows = score_verdicts[
        score_verdicts["status"].eq("ok") & score_verdicts["expected_score"].notna()
    ].merge(
        own[["completion_id", "replicate", "embedding"]],
        on=["completion_id", "replicate"],
        how="inner",
        validate="one_to_one",
    )
    if rows.empty:
        return Material(scored_battles.iloc[:0], None, np.empty(0))
    group, known = pd.factorize(rows["completion_id"])
    texts = sampled_battles.set_index("battle_id").loc[scored_battles["battle_id"]]
    places = [pd.Index(known).get_indexer(completion_ids(texts, side)) for side in "ab"]
    has_both = (places[0] >= 0) & (places[1] >= 0)
    battles = scored_battles[has_both].reset_index(drop=True)
    if battles.empty:
        return Material(battles, None, np.empty(0))
    vectors = _means(_stacked(rows["embedding"]), group)
    scores = _means(rows["expected_score"].to_numpy(dtype=float)[:, None], group)[:, 0]
    first, second = places[0][has_both], places[1][has_both]
    shown = two_headed(vectors[first], vectors[second], scores[first], scores[second])
    return Material(battles, shown, expit(np.log(scores[first]) - np.log(scores[second])))


def _stacked(embeddings: pd.Series) -> NDArray[np.float64]:
    return np.stack(embeddings.to_list()).astype(float)


def _means(values: NDArray[np.float64], group: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the mean of the rows (n, d) of each group, shape (g, d)."""
    sums = np.zeros((int(group.max()) + 1, values.shape[1]))
    np.add.at(sums, group, values)
    return sums / np.bincount(group)[:, None]
