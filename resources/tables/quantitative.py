"""Declared tables of quantitative judges: vectors of reasons, predicted outcomes, their errors."""

import pandas as pd

from resources.tables.rules import among, holds, known, within
from resources.tables.schema import Check, Table

_ANSWER = ["source", "key", "order", "replicate"]

RATIONALE_EMBEDDINGS = Table(
    "rationale_embeddings",
    "source key order replicate embedding",
    key=_ANSWER,
    checks=[
        Check(
            "embeddings_are_unique",
            "A reason has one vector, and all vectors of a table have one length.",
            [
                among(
                    "is_repeated",
                    [False],
                    "an answer has one vector",
                    of=lambda t: t.duplicated(_ANSWER),
                ),
                among(
                    "has_another_length",
                    [False],
                    "vectors have one length",
                    of=lambda t: t["length"].ne(t["length"].iloc[0] if len(t) else 0),
                ),
            ],
            remedy="Remake verdicts, or set a 'revision' in config/embeddings.yaml if the "
            "endpoint changed its model.",
            blocking=True,
            rows=lambda t: t.drop(columns="embedding").assign(length=t["embedding"].map(len)),
        )
    ],
)


def _complete(table: pd.DataFrame) -> "pd.Series[bool]":
    n_models = table.groupby("method")["held_out_model"].transform("nunique")
    n_rows = table.groupby(["method", "battle_id"])["held_out_model"].transform("nunique")
    return n_rows.eq(n_models) & ~table.duplicated(["method", "battle_id", "held_out_model"])


QUANTITATIVE_OUTCOMES = Table(
    "quantitative_outcomes",
    "held_out_model battle_id method outcome",
    key=["held_out_model", "battle_id", "method"],
    checks=[
        Check(
            "every_model_has_every_battle",
            "Ratings without a model need the outcome of every battle, by judges that never saw "
            "it.",
            [
                holds("complete", _complete, "a battle has one row per held-out model"),
                *known("outcome", note="every outcome is known"),
                within("outcome", 0, 1, note="outcome lies in [0, 1]"),
            ],
            remedy="Remake rationale_embeddings and quantitative_outcomes: they belong to "
            "different battles.",
            blocking=True,
        )
    ],
)

WARN_WORSE = 1.02
"""A judge that learnt from a few hundred votes may err by so much more than its scores alone."""


def _largest_training_sets(table: pd.DataFrame) -> pd.DataFrame:
    errors = table[table["metric"].eq("mse")]
    most = errors.groupby("method")["n_train"].transform("max")
    return errors[errors["n_train"].eq(most)]


QUANTITATIVE_JUDGES = Table(
    "quantitative_judges",
    "method n_train metric value std_dev score_only base n_sets n_test",
    key=["method", "n_train"],
    types={"n_test": "float64"},
    checks=[
        Check(
            "reasons_do_not_mislead",
            "A judge that errs more with its reasons than with its scores alone has learnt noise.",
            [
                within(
                    "ratio",
                    high=WARN_WORSE,
                    of=lambda t: t["value"] / t["score_only"],
                    note=f"the squared error is at most {WARN_WORSE:g} times that of the scores "
                    "alone",
                )
            ],
            remedy="Use calibrated scores (method soft), another embedding, or more votes.",
            warns=True,
            rows=_largest_training_sets,
        )
    ],
)
