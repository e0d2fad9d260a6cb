"""Votes of people on a corpus: the files that were dropped, and whether raters vote with care."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import dagster as dg
import pandas as pd
from upath import UPath

from assets.conditions import table_asset
from assets.partitions import CORPUS, previews_silenced
from assets.settings import CONTENTS, SETTINGS, VOTES, stated
from judgeline.tables.corpus import VOTES as TABLE
from judgeline.voting import last_votes, of_battles, vote_key, vote_rows
from resources.candidates.folder import (
    MAX_BYTES,
    Seen,
    folder_of,
    hash_of,
    list_votes,
    printable_name,
    require_mounted,
    wait_until_settled,
)
from resources.config.catalog import Catalog
from resources.tables.expectations import check_result
from resources.tables.store import ParquetStore

with previews_silenced():
    READABLE = dg.AssetCheckSpec(
        "vote_files_are_readable",
        asset="votes",
        partitions_def=CORPUS,
        description="A file of votes that was left out is named here, with the reason; the votes "
        "of other files count.",
    )


# No automation condition: a folder is no asset, so that its sensor, or a person, asks for this.
@table_asset("1", check_specs=[READABLE], columns={"battles": ("battle_id",)})
def votes(
    context: dg.AssetExecutionContext,
    battles: pd.DataFrame,
    catalog: Catalog,
    io_manager: dg.ResourceParam[ParquetStore],
) -> Iterator[dg.MaterializeResult[pd.DataFrame]]:
    """The last vote of a person on a battle, with the weight of the battle's draw.

    From the files in the folder of votes that a voting page saved. A broken file is left out whole.
    """
    folder = folder_of(context.partition_key, "votes")
    before = io_manager.stored("votes", context.partition_key)
    if before is not None and len(before):
        require_mounted(folder)
    wait_until_settled(folder)
    files = list_votes(context.partition_key)
    found, dropped = read_files(folder, files, battles["battle_id"]), hash_of(files)
    yield dg.MaterializeResult(
        value=found.votes,
        metadata={
            CONTENTS: dropped,
            SETTINGS: stated(catalog, context.partition_key, None, (), **{VOTES: dropped}),
            "n_raters": int(found.votes["rater"].nunique()),
            "n_on_other_battles": found.n_foreign,
        },
        check_results=[vote_files_are_readable(found.refused)],
    )


class VotesFound(NamedTuple):
    """Votes of a folder, how many were on no battle of the corpus, and reasons by refused file."""

    votes: pd.DataFrame
    n_foreign: int
    refused: dict[str, str]


def read_files(folder: UPath, files: Sequence[Seen], battle_id: pd.Series) -> VotesFound:
    """Return the votes of complete files on battles with these ids."""
    keys = {vote_key(one) for one in battle_id}
    rows: list[dict[str, Any]] = []
    refused: dict[str, str] = {}
    for seen in files:
        name = printable_name(seen.name)
        try:
            own = vote_rows(_content(folder, seen), name)
            if own and not any(row["key"] in keys for row in own):
                raise ValueError(
                    f"{name}: none of its {len(own):,} votes is on a battle of this corpus; drop "
                    "it into the folder of the corpus that its page was made of"
                )
            rows += own
        except FileNotFoundError:
            continue  # withdrawn since the folder was listed
        except (ValueError, OSError) as error:
            refused[name] = str(error)
    if not rows:
        return VotesFound(TABLE.empty(), 0, refused)
    cast = last_votes(rows)
    known = TABLE.typed(of_battles(cast, battle_id))
    return VotesFound(known, len(cast) - len(known), refused)


def _content(folder: UPath, seen: Seen) -> bytes:
    if seen.is_waiting:
        raise ValueError(f"{seen.name}: it is not complete yet; run again when it is saved")
    if seen.size > MAX_BYTES:
        raise ValueError(f"{seen.name}: {seen.size:,} bytes, at most {MAX_BYTES:,} are read")
    content: bytes = (folder / seen.name).read_bytes()
    return content


def vote_files_are_readable(refused: dict[str, str]) -> dg.AssetCheckResult:
    """Return whether every file could be read, with the reason for each that was not."""
    said = f"Left out: {'; '.join(refused.values())}." if refused else "Every file could be read."
    remedy = "Save those votes again, or remove the file."
    result = check_result(said, remedy, passed=not refused, n_left_out=len(refused))
    return result._replace(check_name=READABLE.name)
