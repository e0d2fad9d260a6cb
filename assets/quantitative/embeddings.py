"""Vectors of the judges' reasons, from which quantitative judges learn; with their checks."""

from collections.abc import Iterable
from typing import Any

import dagster as dg
import pandas as pd

from assets.checks import table_check
from assets.conditions import AFTER_THE_BOARD, ASKS, table_asset
from assets.judging.pools import hosting_of
from assets.partitions import corpus_and_judge
from assets.settings import EMBEDDER, corpus_of
from judgeline.judges.embeddings.buying import Account, VectorBuyer
from judgeline.judges.embeddings.embedder import open_embedder
from judgeline.judges.embeddings.vector import Vector
from judgeline.judges.forms.score import ScoreForm
from judgeline.tables.quantitative import RATIONALE_EMBEDDINGS
from judgeline.tables.rules import within
from judgeline.verdict import Pattern, RubricError, explanation, reason_of_score
from resources.config.catalog import Catalog
from resources.stores import StoredEmbeddings, StoredVerdicts
from resources.tables.expectations import evaluate

_REASON_TYPES = dict.fromkeys(("source", "key", "order", "answer", "reasoning"), "str")
_REASON_TYPES["replicate"] = "int64"


def rationales(
    verdicts: pd.DataFrame, score_verdicts: pd.DataFrame, pattern: Pattern | None = None
) -> pd.DataFrame:
    """Return the reasons of one judge's usable answers, as ``text``, empty where there is none.

    Where an answer gives none, it is what the judge thought before it. A `pattern` says where its
    scores stand in answers whose reasons come first.
    """
    sources = {"verdict": (verdicts, "battle_id"), "score": (score_verdicts, "completion_id")}
    parts = []
    for source, (table, key) in sources.items():
        usable = table[table["status"].eq("ok")]
        order = usable["order"] if source == "verdict" else None
        own = usable.reindex(columns=[key, "replicate", "answer", "reasoning"])
        parts.append(own.rename(columns={key: "key"}).assign(source=source, order=order))
    both = pd.concat(parts, ignore_index=True).astype(_REASON_TYPES)
    words = both[["answer", "reasoning"]].fillna("")
    answers = zip(both["source"], words["answer"], both["order"], words["reasoning"], strict=True)
    texts = [
        (_of_verdict(text, order) if source == "verdict" else reason_of_score(text, pattern))
        or thoughts
        for source, text, order, thoughts in answers
    ]
    return both[["key", "replicate", "source", "order"]].assign(text=pd.Series(texts, dtype="str"))


def embedded(reasons: pd.DataFrame, vectors: dict[str, Vector]) -> pd.DataFrame:
    """Return the rationales that have a vector, as declared."""
    own = reasons["text"].map(vectors.get)
    table = reasons.assign(embedding=own.astype(object))
    return table.loc[own.notna(), RATIONALE_EMBEDDINGS.columns].reset_index(drop=True)


def _of_verdict(answer: str, order: str) -> str:
    """Return the reason of a verdict: the text about its scores, or after a published label."""
    if order == "mean":  # a record of numbers
        return ""
    try:
        return explanation(answer)
    except RubricError:
        return answer.partition("\n")[2].strip()


def _pattern_of(catalog: Catalog, slug: str) -> Pattern | None:
    """Return the pattern in which a judge gives its scores last; None for any other judge."""
    judge = catalog.judges().get(slug)
    return ScoreForm(judge.score).pattern if judge is not None else None


WARN_EMBEDDED = 0.95
NO_EMBEDDER = (
    "corpus {!r} names no 'embeddings' in corpora.yaml, so there are no quantitative judges; name "
    "one of config/embeddings.yaml, such as hashed"
)
_NO_REASONS = (
    "none of the {:,} usable answers of judge {!r} gives a reason, so there is nothing to embed; "
    "ask a judge that explains itself, or publish its words"
)
_NO_VECTORS = (
    "none of the {:,} reasons has a vector; of {:,} different texts: {}. Choose a model that reads "
    "longer texts, or raise 'max_characters' in config/embeddings.yaml"
)


# No automation condition: an endpoint may charge for vectors, so somebody has to ask for them.
@table_asset("2", op_tags=AFTER_THE_BOARD, **ASKS)
def rationale_embeddings(
    context: dg.AssetExecutionContext,
    verdicts: pd.DataFrame,
    score_verdicts: pd.DataFrame,
    catalog: Catalog,
    verdict_store: StoredVerdicts,
    embedding_store: StoredEmbeddings,
) -> dg.MaterializeResult[pd.DataFrame]:
    """One vector of the reason that a judge gave with a verdict or with a score.

    A usable answer without a reason, or whose reason has no vector, has no row and is counted.
    Only vectors that are not in the store are asked for.
    """
    corpus, slug = corpus_and_judge(context)
    embedding = corpus_of(context, catalog, EMBEDDER, "embeddings").embeddings
    every = rationales(verdicts, score_verdicts, _pattern_of(catalog, slug))
    reasons = every[every["text"].ne("")].reset_index(drop=True)
    n_missing = len(every) - len(reasons)
    if embedding is None or reasons.empty:
        note = _NO_REASONS.format(n_missing, slug) if embedding else NO_EMBEDDER.format(corpus)
        return dg.MaterializeResult(
            value=RATIONALE_EMBEDDINGS.empty(),
            metadata={"note": note, "n_without_rationale": n_missing},
        )
    verdict_store.lease.end()  # the embedder's server may need the judge's place
    vectors, account, told = embed(context, catalog, embedding_store, embedding, reasons["text"])
    table = embedded(reasons, vectors)
    failed = ", ".join(f"{n:,} {why}" for why, n in sorted(account.failed.items()))
    note = _NO_VECTORS.format(len(reasons), account.n_texts, failed)
    return dg.MaterializeResult(
        value=table,
        metadata={
            **({"note": note} if table.empty else {}),
            "n_without_rationale": n_missing,
            "n_without_vector": len(reasons) - len(table),
            **told,
        },
    )


def embed(
    context: dg.AssetExecutionContext,
    catalog: Catalog,
    store: StoredEmbeddings,
    embedding: str,
    texts: Iterable[str],
) -> tuple[dict[str, Vector], Account, dict[str, Any]]:
    """Return vectors by text, made now where the store lacks them, with their account."""
    with hosting_of(context, context.log.info, context.log.warning) as hosting:
        buyer = VectorBuyer(
            open_embedder(catalog.embedder(embedding), hosting),
            store.open(),
            on_wait=lambda: context.log.info(f"{embedding} waits: another run is asking it"),
        )
        vectors = buyer.vectors([*texts])
    account, counts = buyer.account, buyer.embedder.counts
    for file in account.damaged:
        context.log.warning(f"{file} is damaged; what it held was asked for again")
    return (
        vectors,
        account,
        {
            "n_texts": account.n_texts,
            "n_from_store": account.n_stored,
            "n_made_now": account.n_made,
            "failures": dg.MetadataValue.json(dict(account.failed)),
            "requests": counts["requests"],
            "tokens": counts["tokens"],
            "embedder": dg.MetadataValue.json(dict(buyer.embedder.identity)),
        },
    )


@table_check(rationale_embeddings)
def most_rationales_are_embedded(
    context: dg.AssetCheckExecutionContext,
    rationale_embeddings: pd.DataFrame,
    verdicts: pd.DataFrame,
    score_verdicts: pd.DataFrame,
    catalog: Catalog,
) -> dg.AssetCheckResult:
    """Reasons that are missing or too long are rarely so at random: hard battles go first.

    Verdicts and single scores are counted apart. Those of a judge that explains none of them,
    and a corpus without embeddings, have nothing to count.
    """
    corpus, slug = corpus_and_judge(context)
    has_embedder = catalog.corpus(corpus).embeddings is not None
    reasons = rationales(verdicts, score_verdicts, _pattern_of(catalog, slug))
    explained = reasons.loc[reasons["text"].ne(""), "source"]
    sources = {"verdict": verdicts, "score": score_verdicts}
    n_usable = [int(table["status"].eq("ok").sum()) for table in sources.values()]
    n_embedded = [int(rationale_embeddings["source"].eq(source).sum()) for source in sources]
    shares = pd.DataFrame({"source": list(sources), "n_usable": n_usable, "n": n_embedded})
    usable = shares["n_usable"].where(shares["n_usable"] > 0)
    shares = shares.assign(embedded=shares["n"] / usable)
    note = f"at least {WARN_EMBEDDED:.0%} of usable answers have a vector"
    return evaluate(
        shares[shares["source"].isin(explained) & has_embedder],
        [within("embedded", WARN_EMBEDDED, note=note)],
        ids=["source", "n_usable"],
        remedy="Look at `failures` of rationale_embeddings: texts may be too long for the model, "
        "or the judge does not explain every answer.",
        severity=dg.AssetCheckSeverity.WARN,
    )
