"""Human ratings of single answers, predicted by quantitative judges."""

from typing import Any

import dagster as dg
import pandas as pd

from assets.conditions import ASKS, table_asset
from assets.engine import as_metadata
from assets.quantitative.embeddings import NO_EMBEDDER, embed
from assets.settings import CONTENT, EMBEDDER, corpus_of
from judgeline.io.layouts.ratings import RATINGS, read_ratings
from judgeline.steps.rationales import learnt
from judgeline.tables.quantitative import LEARNT_RATINGS
from resources.config.catalog import Catalog
from resources.corpora.locations import corpus_files
from resources.stores import StoredEmbeddings
from resources.tables.store import empty_result

_OTHER = (
    "corpus {!r} holds battles; people's ratings of single answers are a corpus of their own, with "
    "'reader: ratings'"
)


# No automation condition: an endpoint may charge for vectors, so somebody has to ask for them.
@table_asset("1", **ASKS)
def learnt_ratings(
    context: dg.AssetExecutionContext, catalog: Catalog, embedding_store: StoredEmbeddings
) -> dg.MaterializeResult[pd.DataFrame]:
    """One answer, its human rating or rank if it has one, and the predictions of both.

    A rating is in points, a chance that of being the best of its set. No label on the question of
    an answer taught its prediction. Empty for a corpus of battles.
    """
    slug = context.partition_key
    settings = corpus_of(context, catalog, "reader", CONTENT, EMBEDDER, "embeddings", "rating.seed")
    if settings.reader != RATINGS.name:
        return empty_result(LEARNT_RATINGS, _OTHER.format(slug))
    rows = read_ratings(corpus_files(catalog.corpus(slug)))
    told: dict[str, Any] = {}
    if "embedding" not in rows:
        if settings.embeddings is None:
            raise ValueError(NO_EMBEDDER.format(slug))
        texts = rows["text"].astype("str").fillna("")
        vectors, _, told = embed(context, catalog, embedding_store, settings.embeddings, texts)
        rows["embedding"] = pd.Series([vectors.get(text) for text in texts], dtype=object)
    predictions, agreement, note = learnt(rows, settings.rating.seed)
    own = rows.rename(columns={"human_rating": "human_points"})
    return dg.MaterializeResult(
        value=LEARNT_RATINGS.filled(pd.concat([own, predictions], axis=1)),
        metadata={
            **({"note": note} if note else {}),
            "agreement": as_metadata(agreement),
            "n_without_vector": int(rows["embedding"].isna().sum()),
            **told,
        },
    )
