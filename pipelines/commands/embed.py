"""Command `judgeline embed`: a file with the vectors of one of its columns of texts."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from judgeline.atomic import write_whole
from judgeline.io.formats import file_columns, read_columns
from judgeline.judges.embeddings.buying import Account, VectorBuyer
from judgeline.judges.embeddings.embedder import open_embedder
from judgeline.judges.managed.options import Hosting
from judgeline.suggest import unknown_name
from resources.config.catalog import Catalog
from resources.exchange.games import require_free
from resources.stores import StoredEmbeddings


def embed_file(
    file: Path, column: str, embedder: str, out: Path, tell: Callable[[str], None], *, force: bool
) -> tuple[Account, int]:
    """Write a file with the column ``embedding``, null where a text has no vector.

    Returns the account of the texts, and the length of the vectors. A vector that was bought
    before, by any command, is not bought again.
    """
    if out.suffix not in (".jsonl", ".parquet"):
        raise ValueError(f"{out} ends in {out.suffix!r}; write to a .jsonl or .parquet file")
    require_free({"out": out}, force=force)
    names = file_columns(file)
    if column not in names:
        raise ValueError(unknown_name("column", column, names, str(file)))
    table = read_columns(file, [name for name in names if name != "embedding"], texts=[column])
    texts = table[column].fillna("").astype(str)
    with Hosting(tell, warn=tell) as hosting:
        buyer = VectorBuyer(
            open_embedder(Catalog().embedder(embedder), hosting),
            StoredEmbeddings().open(),
            on_wait=lambda: tell(f"{embedder} waits: another run is asking it"),
        )
        vectors = buyer.vectors(texts.tolist())
    table["embedding"] = pd.Series([vectors.get(text) for text in texts], table.index, dtype=object)
    write_whole(out, _written(table, out.suffix))
    return buyer.account, next((vector.size for vector in vectors.values()), 0)


def _written(table: pd.DataFrame, suffix: str) -> bytes:
    if suffix == ".parquet":
        return bytes(table.to_parquet(index=False))
    lists = table["embedding"].map(lambda vector: None if vector is None else vector.tolist())
    lines = table.assign(embedding=lists)
    return bytes(lines.to_json(orient="records", lines=True, force_ascii=False), "utf-8")
