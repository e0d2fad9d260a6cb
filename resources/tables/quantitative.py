"""Declared tables of quantitative judges: vectors of reasons, predicted outcomes, their errors."""

import pandas as pd

from resources.tables.rules import holds, known, within
from resources.tables.schema import Check, Table

_ANSWER = ["source", "key", "order", "replicate"]

RATIONALE_EMBEDDINGS = Table(
    "rationale_embeddings",
    f"{' '.join(_ANSWER)} embedding",
    key=_ANSWER,
    checks=[
        Check(
            "embeddings_are_unique",
            "A reason has one vector, and all vectors of a table have one length.",
            [
                holds("is_single", lambda t: ~t.duplicated(_ANSWER), "an answer has one vector"),
                holds(
                    "has_the_length",
                    lambda t: t["length"].eq(t["length"].iloc[0] if len(t) else 0),
                    "vectors have one length",
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
            "Ratings without a model need the outcome of every battle, by judges that lacked it.",
            [
                holds("complete", _complete, "a battle has one row per held-out model"),
                *known("outcome"),
                within("outcome", 0, 1),
            ],
            remedy="Remake rationale_embeddings and quantitative_outcomes: their battles differ.",
            blocking=True,
        )
    ],
)

WARN_WORSE = 1.02
"""A judge that learnt from a few hundred votes may err by so much more than its scores alone."""


def _largest_training_sets(table: pd.DataFrame) -> pd.DataFrame:
    errors = table[table["metric"].eq("mse")]
    return errors[errors["n_train"].eq(errors.groupby("method")["n_train"].transform("max"))]


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
                    note=f"the squared error is at most {WARN_WORSE:g} times that of scores alone",
                )
            ],
            remedy="Use calibrated scores (method soft), another embedding, or more votes.",
            warns=True,
            rows=_largest_training_sets,
        )
    ],
)
