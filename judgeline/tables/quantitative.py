"""Declared tables of quantitative judges: vectors of reasons, predicted outcomes, their errors."""

import pandas as pd

from judgeline.tables.rules import holds, known, unique, within
from judgeline.tables.schema import stops, table, warns

_ANSWER = ["source", "key", "order", "replicate"]

RATIONALE_EMBEDDINGS = table(
    "rationale_embeddings",
    f"{' '.join(_ANSWER)} embedding",
    _ANSWER,
    stops(
        "embeddings_are_unique",
        "A reason has one vector, and all vectors of a table have one length.",
        "Remake verdicts, or set a 'revision' in config/embeddings.yaml if the "
        "endpoint changed its model.",
        holds("is_single", lambda t: ~t.duplicated(_ANSWER), "an answer has one vector"),
        holds(
            "has_the_length",
            lambda t: t["length"].eq(t["length"].iloc[0] if len(t) else 0),
            "vectors have one length",
        ),
        rows=lambda t: t.drop(columns="embedding").assign(length=t["embedding"].map(len)),
    ),
)


def _complete(table: pd.DataFrame) -> "pd.Series[bool]":
    n_models = table.groupby("method")["held_out_model"].transform("nunique")
    n_rows = table.groupby(["method", "battle_id"])["held_out_model"].transform("nunique")
    return n_rows.eq(n_models) & ~table.duplicated(["method", "battle_id", "held_out_model"])


QUANTITATIVE_OUTCOMES = table(
    "quantitative_outcomes",
    "held_out_model battle_id method outcome",
    ["held_out_model", "battle_id", "method"],
    stops(
        "every_model_has_every_battle",
        "Ratings without a model need the outcome of every battle, by judges that lacked it.",
        "Remake rationale_embeddings and quantitative_outcomes: their battles differ.",
        holds("complete", _complete, "a battle has one row per held-out model"),
        *known("outcome"),
        within("outcome", 0, 1),
    ),
)

LEARNT_RATINGS = table(
    "learnt_ratings",
    "file row question_id ranking_id judge_score human_points human_rank ls mn pl",
    ["file", "row"],
    stops(
        "predictions_have_their_answers",
        "A row is one answer of a file, and a chance lies between 0 and 1.",
        "Give each file of the corpus a name of its own, and make learnt_ratings again.",
        unique("file", "row", note="a row of a file stands once"),
        within("pl", 0, 1),
    ),
)

WARN_WORSE = 1.02
"""A judge that learnt from a few hundred votes may err by so much more than its scores alone."""


def _largest_training_sets(table: pd.DataFrame) -> pd.DataFrame:
    errors = table[table["metric"].eq("mse")]
    return errors[errors["n_train"].eq(errors.groupby("method")["n_train"].transform("max"))]


QUANTITATIVE_JUDGES = table(
    "quantitative_judges",
    "method n_train metric value std_dev score_only base n_sets n_test",
    ["method", "n_train"],
    warns(
        "reasons_do_not_mislead",
        "A judge that errs more with its reasons than with its scores alone has learnt noise.",
        "Use calibrated scores (method soft), another embedding, or more votes.",
        within(
            "ratio",
            high=WARN_WORSE,
            of=lambda t: t["value"] / t["score_only"],
            note=f"the squared error is at most {WARN_WORSE:g} times that of scores alone",
        ),
        rows=_largest_training_sets,
    ),
    types={"n_test": "float64"},
)
