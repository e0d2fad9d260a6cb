"""What anchors have answered: the questions on which a new model can meet one of them."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from judgeline.elo import settled_models
from judgeline.sampling import choose_battles, tiebreak_keys

UNKNOWN_LANGUAGE = ""


class AnchorAnswers(NamedTuple):
    """What models with votes enough answered: one row of `answers` per question and anchor.

    `answers` has question_id, instruction, language (empty where unknown), model and completion;
    `voted` names all models of the corpus that have votes enough; `has_texts` says whether the
    corpus publishes texts at all.
    """

    answers: pd.DataFrame
    voted: frozenset[str]
    has_texts: bool


def anchor_answers(battles: pd.DataFrame) -> AnchorAnswers:
    """Return the answers of a corpus' anchors: models with votes enough, on single questions.

    Conversations of several turns are left out, since what was asked later is not kept. Of
    several answers of one model to one question the one in the battle with the smallest hash of
    its id counts, whatever the order of the table.
    """
    names = rated_models(battles)
    texts = battles[["instruction", "completion_a", "completion_b"]].notna().all(axis=1)
    single = battles[texts & (battles["n_turns"].isna() | battles["n_turns"].eq(1))]
    single = single.assign(key=tiebreak_keys(single["battle_id"], 0)).sort_values("key")
    sides = [
        single[["question_id", "instruction", "language"]].assign(
            model=single[f"model_{side}"],
            completion=single[f"completion_{side}"],
            key=single["key"],
        )
        for side in "ab"
    ]
    both = pd.concat(sides).sort_values("key", kind="stable")
    both = both[both["model"].isin(names)].drop_duplicates(["question_id", "model"])
    both["language"] = both["language"].fillna(UNKNOWN_LANGUAGE)
    asked = both.drop_duplicates("question_id").set_index("question_id")
    both["instruction"] = both["question_id"].map(asked["instruction"])
    both["language"] = both["question_id"].map(asked["language"])
    both = both.sort_values(["question_id", "model"]).drop(columns="key")
    return AnchorAnswers(both.reset_index(drop=True), names, bool(texts.any()))


def rated_models(battles: pd.DataFrame) -> frozenset[str]:
    """Return the models with votes enough to be rated by people; see `settled_models`."""
    voted = battles[battles["human_outcome"].notna()]
    codes, names = pd.factorize(pd.concat([voted["model_a"], voted["model_b"]]))
    settled = settled_models(codes[: len(voted)], codes[len(voted) :], len(names))
    return frozenset(np.array(names, dtype=object)[settled].tolist())


def language_shares(answers: pd.DataFrame) -> pd.Series:
    """Return the share of each language in the answers that anchors gave."""
    return answers["language"].value_counts(normalize=True)


def questions_to_answer(answers: pd.DataFrame, n_questions: int, seed: int) -> pd.DataFrame:
    """Return the questions that a new model should answer first: those of most anchors.

    Languages come in their shares of the corpus.
    """
    asked = answers.groupby("question_id", sort=True, as_index=False).agg(
        instruction=("instruction", "first"),
        language=("language", "first"),
        n_anchors=("model", "size"),
    )
    if asked.empty:
        return asked
    rank = asked["n_anchors"].rank(method="dense", ascending=False).astype(int)
    same = np.zeros(len(asked), dtype=np.int64)
    keys = pd.Series(tiebreak_keys(asked["question_id"], seed))
    order = pd.DataFrame({"rank": rank, "key": keys}).sort_values(["rank", "key"]).index
    place = np.empty(len(asked), dtype=np.int64)
    place[order] = np.arange(len(asked))
    rows = choose_battles(
        same,
        asked["language"].to_numpy(dtype=str),
        same,
        same,
        place,
        share=asked["language"].map(language_shares(answers)).to_numpy(),
        n_battles=n_questions,
    )
    return asked.iloc[rows].reset_index(drop=True)
