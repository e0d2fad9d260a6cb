"""Vectors of the judges' reasons, from which quantitative judges learn; with their checks."""

import dagster as dg
import pandas as pd

from assets.conditions import OF_CORPUS_AND_JUDGE, judge_check
from assets.partitions import corpus_and_judge
from resources.catalog import Catalog
from resources.embeddings.buying import VectorBuyer
from resources.embeddings.catalog import open_embedder
from resources.embeddings.rationales import COLUMNS, Rationales, embedded, rationales
from resources.embeddings.resource import StoredEmbeddings
from resources.expectations import evaluate

WARN_EMBEDDED = 0.95


# No automation condition: an endpoint may charge for vectors, so somebody has to ask for them.
@dg.asset(**OF_CORPUS_AND_JUDGE, group_name="scoring", code_version="1")
def rationale_embeddings(
    context: dg.AssetExecutionContext,
    verdicts: pd.DataFrame,
    score_verdicts: pd.DataFrame,
    catalog: Catalog,
    embedding_store: StoredEmbeddings,
) -> dg.MaterializeResult[pd.DataFrame]:
    """One vector of the reason that a judge gave with a verdict or with a score.

    A usable answer without a reason, or whose reason has no vector, has no row and is counted.
    Only vectors that are not in the store are asked for.
    """
    corpus, slug = corpus_and_judge(context)
    embedding = catalog.corpus(corpus).embeddings
    found = rationales(verdicts, score_verdicts)
    if note := _nothing_to_do(found, corpus, embedding, slug):
        empty = pd.DataFrame({name: pd.Series(dtype=object) for name in COLUMNS})
        return dg.MaterializeResult(
            value=empty.astype({"replicate": "int64"}),
            metadata={"note": note, "n_without_rationale": found.n_missing},
        )
    buyer = VectorBuyer(
        open_embedder(catalog.embedder(str(embedding))),
        embedding_store.open(),
        on_wait=lambda: context.log.info(f"{embedding} waits: another run is asking it"),
    )
    table = embedded(found, buyer.vectors(found.table["text"].tolist()))
    for file in buyer.account.damaged:
        context.log.warning(f"{file} is damaged; what it held was asked for again")
    return dg.MaterializeResult(value=table, metadata=_account(buyer, found, table))


def _nothing_to_do(found: Rationales, corpus: str, embedding: str | None, slug: str) -> str:
    if embedding is None:
        return (
            f"corpus {corpus!r} names no 'embeddings' in config/corpora.yaml, so there are no "
            "quantitative judges; name one of config/embeddings.yaml, such as hashed"
        )
    if found.table.empty:
        return (
            f"none of the {found.n_missing:,} usable answers of judge {slug!r} gives a reason, so "
            "there is nothing to embed; ask a judge that explains itself, or publish its words"
        )
    return ""


def _account(buyer: VectorBuyer, found: Rationales, table: pd.DataFrame) -> dict[str, object]:
    account = buyer.account
    return {
        "n_texts": account.n_texts,
        "n_from_store": account.n_stored,
        "n_made_now": account.n_made,
        "n_without_rationale": found.n_missing,
        "n_without_vector": len(found.table) - len(table),
        "failures": dg.MetadataValue.json(dict(account.failed)),
        "requests": buyer.embedder.counts["requests"],
        "tokens": buyer.embedder.counts["tokens"],
        "embedder": dg.MetadataValue.json(dict(buyer.embedder.identity)),
    }


@judge_check(rationale_embeddings, blocking=True)
def embeddings_are_unique(rationale_embeddings: pd.DataFrame) -> dg.AssetCheckResult:
    """A reason has one vector, and all vectors of a table have one length."""
    import great_expectations.expectations as gxe

    lengths = rationale_embeddings["embedding"].map(len)
    return evaluate(
        rationale_embeddings.drop(columns="embedding").assign(
            is_repeated=rationale_embeddings.duplicated(["source", "key", "order", "replicate"]),
            has_another_length=lengths.ne(lengths.iloc[0] if len(lengths) else 0),
        ),
        [
            gxe.ExpectColumnValuesToBeInSet(
                column="is_repeated", value_set=[False], notes="an answer has one vector"
            ),
            gxe.ExpectColumnValuesToBeInSet(
                column="has_another_length", value_set=[False], notes="vectors have one length"
            ),
        ],
        ids=["source", "key", "order", "replicate"],
        remedy="Remake verdicts, or set a 'revision' in config/embeddings.yaml if the endpoint "
        "changed its model.",
    )


@judge_check(rationale_embeddings, verdicts=dg.AssetIn("verdicts"))
def most_rationales_are_embedded(
    rationale_embeddings: pd.DataFrame, verdicts: pd.DataFrame
) -> dg.AssetCheckResult:
    """Reasons that are missing or too long are rarely so at random: hard battles go first."""
    import great_expectations.expectations as gxe

    own = rationale_embeddings[rationale_embeddings["source"].eq("verdict")]
    n_usable = int(verdicts["status"].eq("ok").sum())
    share = len(own) / n_usable if n_usable and len(own) else 1.0  # none at all: see the note
    return evaluate(
        pd.DataFrame({"usable_verdicts": [n_usable], "embedded": [share]}),
        [
            gxe.ExpectColumnValuesToBeBetween(
                column="embedded",
                min_value=WARN_EMBEDDED,
                notes=f"at least {WARN_EMBEDDED:.0%} of usable verdicts have a vector",
            )
        ],
        ids=["usable_verdicts"],
        remedy="Look at `failures` of rationale_embeddings: texts may be too long for the model, "
        "or the judge does not explain every verdict.",
        severity=dg.AssetCheckSeverity.WARN,
    )
