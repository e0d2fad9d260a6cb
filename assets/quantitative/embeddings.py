"""Vectors of the judges' reasons, from which quantitative judges learn; with their checks."""

from typing import NamedTuple

import dagster as dg
import pandas as pd

from assets.conditions import table_asset, table_check
from assets.partitions import corpus_and_judge
from assets.settings import EMBEDDER, corpus_of
from judgeline.verdict import explanation, reason_of_score
from resources.config.catalog import Catalog
from resources.embeddings.buying import StoredEmbeddings, VectorBuyer
from resources.embeddings.embedder import Vector, open_embedder
from resources.tables.expectations import evaluate
from resources.tables.quantitative import RATIONALE_EMBEDDINGS
from resources.tables.rules import within


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
    return [str(text) for text in answers["answer"].fillna("")]


def _of_verdict(answer: str, order: str) -> str:
    """Return the reason of a verdict: the text after its scores, or after a published label."""
    if order == "mean":  # a record of numbers
        return ""
    if answer.lstrip("\ufeff \t\r\n").startswith(("{", "```")):
        return explanation(answer)
    return answer.partition("\n")[2].strip()


WARN_EMBEDDED = 0.95


# No automation condition: an endpoint may charge for vectors, so somebody has to ask for them.
@table_asset("2")
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
    embedding = corpus_of(context, catalog, EMBEDDER, "embeddings").embeddings
    found = rationales(verdicts, score_verdicts)
    if note := _nothing_to_do(found, corpus, embedding, slug):
        return dg.MaterializeResult(
            value=RATIONALE_EMBEDDINGS.empty(),
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
    note = "" if len(table) else _nothing_made(buyer, found)
    account, counts = buyer.account, buyer.embedder.counts
    return dg.MaterializeResult(
        value=table,
        metadata={
            **({"note": note} if note else {}),
            "n_texts": account.n_texts,
            "n_from_store": account.n_stored,
            "n_made_now": account.n_made,
            "n_without_rationale": found.n_missing,
            "n_without_vector": len(found.table) - len(table),
            "failures": dg.MetadataValue.json(dict(account.failed)),
            "requests": counts["requests"],
            "tokens": counts["tokens"],
            "embedder": dg.MetadataValue.json(dict(buyer.embedder.identity)),
        },
    )


def _nothing_to_do(found: Rationales, corpus: str, embedding: str | None, slug: str) -> str:
    if embedding is None:
        return (
            f"corpus {corpus!r} names no 'embeddings' in corpora.yaml, so there are no "
            "quantitative judges; name one of config/embeddings.yaml, such as hashed"
        )
    if found.table.empty:
        return (
            f"none of the {found.n_missing:,} usable answers of judge {slug!r} gives a reason, so "
            "there is nothing to embed; ask a judge that explains itself, or publish its words"
        )
    return ""


def _nothing_made(buyer: VectorBuyer, found: Rationales) -> str:
    failed = ", ".join(f"{n:,} {why}" for why, n in sorted(buyer.account.failed.items()))
    return (
        f"none of the {len(found.table):,} reasons has a vector; of {buyer.account.n_texts:,} "
        f"different texts: {failed}. Choose a model that reads longer texts, or raise "
        "'max_characters' in config/embeddings.yaml"
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
    corpus, _ = corpus_and_judge(context)
    has_embedder = catalog.corpus(corpus).embeddings is not None
    explained = rationales(verdicts, score_verdicts).table["source"]
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
