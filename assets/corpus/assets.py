"""Battles of a corpus: as published, clean, and chosen for judging; with the checks on each."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.checks import table_check
from assets.conditions import TABLE, follows, table_asset
from assets.partitions import CORPUS
from assets.settings import CONTENT, SAMPLE_TAG, SETTINGS, corpus_of, stated, tag_of
from judgeline.sampling import appearances, balanced_sample, tiebreak_keys
from judgeline.tables.ids import is_among
from judgeline.tables.rules import at_least, holds, n_rows, unique, within
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.corpora.cleaning import filter_battles
from resources.corpora.locations import content_revision
from resources.corpora.reading import read_corpus
from resources.tables.expectations import evaluate
from resources.tables.store import ParquetStore

MAX_QUARANTINED = 0.5
WARN_QUARANTINED = 0.05
MIN_SHARE_OF_UNIFORM = 0.5
MIN_DECISIVE_VOTES = 30

_OUTS = {
    "raw_battles": "A battle as published, converted to our words and outcome codes; "
    "`human_outcome` is A's share of the win, null where nobody voted.",
    "quarantined_battles": "A published row that fits no rule, with its position, the reason and "
    "the offending value; never turned into a tie.",
    "recorded_verdicts": "A verdict that came with the corpus: rubric scores in points, 1 to 10, "
    "oriented to the models; no rows where a corpus publishes none.",
}


@dg.multi_asset(
    outs={
        name: dg.AssetOut(description=text, **{**TABLE, "code_version": "2"})
        for name, text in _OUTS.items()
    },
    partitions_def=CORPUS,
)
def published_corpus(
    context: dg.AssetExecutionContext, catalog: Catalog
) -> Iterator[dg.MaterializeResult[pd.DataFrame]]:
    """Read a corpus once, into battles, rows that could not be read, and verdicts."""
    corpus = catalog.corpus(context.partition_key)
    revision = content_revision(corpus)  # before reading: what comes later is new next time
    read = {SETTINGS: stated(catalog, corpus.slug, None, (), **{CONTENT: revision})}
    battles, quarantine, verdicts = read_corpus(corpus)
    reasons = quarantine["reason"].value_counts()
    share = _share(len(quarantine), len(quarantine) + len(battles))
    read_as = {"n_quarantined": len(quarantine), "content_revision": revision}
    told = {"share": share, "reasons": dg.MetadataValue.md(reasons.to_markdown())}
    made: dict[str, tuple[pd.DataFrame, dict[str, Any]]] = {
        "raw_battles": (battles, {**_description(battles), **read_as}),
        "quarantined_battles": (quarantine, told),
        "recorded_verdicts": (verdicts, {"judges": sorted(verdicts["judge"].unique().tolist())}),
    }
    for asset, (table, metadata) in made.items():
        yield dg.MaterializeResult(asset_key=asset, value=table, metadata={**metadata, **read})


@table_asset("2", follows)
def battles(
    context: dg.AssetExecutionContext, raw_battles: pd.DataFrame, catalog: Catalog
) -> dg.MaterializeResult[pd.DataFrame]:
    """One clean battle that passes the corpus' filters: unique id, two different models."""
    kept, dropped = filter_battles(raw_battles, corpus_of(context, catalog, "filters").filters)
    return dg.MaterializeResult(
        value=kept,
        metadata={**_description(kept), "n_filtered_out": sum(dropped.values()), **dropped},
    )


@table_asset("2", follows)
def sampled_battles(
    context: dg.AssetExecutionContext,
    battles: pd.DataFrame,
    catalog: Catalog,
    io_manager: dg.ResourceParam[ParquetStore],
) -> dg.MaterializeResult[pd.DataFrame]:
    """One battle chosen for judging, in the order of choice, balanced over models.

    Battles chosen before stay chosen, so that a larger corpus or sample adds calls and repeats
    none. The run tag `SAMPLE_TAG` asks for a larger one than the corpus' own.
    """
    corpus = corpus_of(context, catalog, "sample_size", "seed")
    asked = tag_of(context, SAMPLE_TAG)
    if asked is not None and corpus.sample_size is not None:
        if not asked.isdecimal() or int(asked) < 1:
            raise ValueError(f"the run tag {SAMPLE_TAG} is {asked!r}; expected a number of battles")
        size = max(corpus.sample_size, int(asked))
        corpus = corpus.model_copy(update={"sample_size": size})
    before = io_manager.stored("sampled_battles", context.partition_key)
    chosen = choose(battles, corpus, before)
    spread = appearances(battles["model_a"], battles["model_b"], _places(battles, chosen))
    return dg.MaterializeResult(
        value=chosen,
        metadata={
            "n_kept": 0 if before is None else len(_places(chosen, before)),
            "sample_seed": corpus.seed,
            **{f"appearances_{name}": value for name, value in spread.items()},
        },
    )


def choose(
    battles: pd.DataFrame, corpus: CorpusDefinition, before: pd.DataFrame | None
) -> pd.DataFrame:
    """Return the battles to judge: those chosen before and still there, then further ones."""
    rows = balanced_sample(
        battles["model_a"],
        battles["model_b"],
        tiebreak_keys(battles["battle_id"], corpus.seed),
        n_battles=min(corpus.sample_size or len(battles), len(battles)),
        chosen=() if before is None else _places(battles, before.sort_values("selection_order")),
    )
    picked = battles.iloc[rows].reset_index(drop=True)
    return picked.assign(selection_order=np.arange(len(picked), dtype=np.int64))


def _places(battles: pd.DataFrame, chosen: pd.DataFrame) -> np.ndarray:
    """Return the rows of chosen battles in a table; those that the table lacks are left out."""
    places = pd.Index(battles["battle_id"]).get_indexer(pd.Index(chosen["battle_id"]))
    return np.asarray(places[places >= 0])


def _share(part: int, whole: int) -> float:
    return float(part / whole) if whole else 0.0


def _description(battles: pd.DataFrame) -> dict[str, Any]:
    return {
        "n_models": int(_appearances(battles, battles).size),
        "n_voted": int(battles["human_outcome"].notna().sum()),
        "n_questions": int(battles["question_id"].nunique()),
        "with_text": _share(int(battles["completion_a"].notna().sum()), len(battles)),
    }


def _appearances(chosen: pd.DataFrame, battles: pd.DataFrame) -> pd.Series:
    """Return in how many chosen battles each model of the corpus appears, by model."""
    names = pd.concat([battles["model_a"], battles["model_b"]]).unique()
    seen = pd.concat([chosen["model_a"], chosen["model_b"]]).value_counts()
    return seen.reindex(sorted(names), fill_value=0)


def _share_is_small(
    raw_battles: pd.DataFrame, quarantined: pd.DataFrame, most: float, remedy: str, **options: Any
) -> dg.AssetCheckResult:
    """Check the share of published rows that could not be read; a failure names the reasons."""
    reasons = quarantined["reason"].value_counts()
    told = ", ".join(f"{reason} {count}" for reason, count in reasons.items()) or "none"
    share = _share(len(quarantined), len(raw_battles) + len(quarantined))
    note = f"at most {most:.0%} of the published rows are quarantined"
    return evaluate(
        pd.DataFrame({"reasons": [told], "share": [share]}),
        [within("share", high=most, note=note)],
        ids=["reasons"],
        remedy=f"Read the details in quarantined_battles{remedy}.",
        **options,
    )


@table_check(dg.AssetKey("raw_battles"), blocking=True)
def most_rows_could_be_read(
    raw_battles: pd.DataFrame, quarantined_battles: pd.DataFrame
) -> dg.AssetCheckResult:
    """A corpus of which most rows fit no rule is being read by the wrong reader."""
    remedy = "; another reader may fit this file"
    return _share_is_small(raw_battles, quarantined_battles, MAX_QUARANTINED, remedy)


@table_check(dg.AssetKey("quarantined_battles"))
def few_rows_are_quarantined(
    quarantined_battles: pd.DataFrame, raw_battles: pd.DataFrame
) -> dg.AssetCheckResult:
    """Many unreadable rows weaken the corpus, and may not be missing at random."""
    return _share_is_small(
        raw_battles,
        quarantined_battles,
        WARN_QUARANTINED,
        " before trusting the ratings",
        severity=dg.AssetCheckSeverity.WARN,
    )


@table_check(battles)
def humans_voted(battles: pd.DataFrame) -> dg.AssetCheckResult:
    """Calibration rests on battles that people decided."""
    decisive = int(battles["human_outcome"].isin([0.0, 1.0]).sum())
    return evaluate(
        pd.DataFrame({"n_decisive": [decisive]}),
        [within("n_decisive", MIN_DECISIVE_VOTES)],
        ids=["n_decisive"],
        remedy="Add voted battles: without them a judge's scores cannot be put on a human scale.",
        severity=dg.AssetCheckSeverity.WARN,
    )


@table_check(sampled_battles, blocking=True)
def sample_is_a_sample(sampled_battles: pd.DataFrame, battles: pd.DataFrame) -> dg.AssetCheckResult:
    """Each chosen battle is one of the corpus, chosen once, in a definite order."""
    known = is_among(sampled_battles["battle_id"], battles["battle_id"])
    return evaluate(
        sampled_battles.assign(in_corpus=known),
        [
            n_rows(1, "at least one battle is chosen"),
            unique("battle_id"),
            holds("in_corpus", None, "the battle is one of the corpus"),
            unique("selection_order"),
            within("selection_order", 0, max(len(sampled_battles) - 1, 0)),
        ],
        ids=["battle_id"],
        remedy="Remake sampled_battles; remake battles first if the corpus changed.",
    )


@table_check(sampled_battles)
def sample_covers_the_models(
    sampled_battles: pd.DataFrame, battles: pd.DataFrame
) -> dg.AssetCheckResult:
    """A model with few chosen battles gets a rating that says little."""
    available = _appearances(battles, battles)
    fair = MIN_SHARE_OF_UNIFORM * 2 * len(sampled_battles) / max(available.size, 1)
    needed = np.minimum(available, np.ceil(fair))
    chosen = _appearances(sampled_battles, battles)
    note = "a model appears half as often as the average one, or in all of its battles"
    return evaluate(
        pd.DataFrame({"appearances": chosen, "needed": needed}).reset_index(names="model"),
        [at_least("appearances", "needed", note)],
        ids=["model"],
        remedy="Raise sample_size, or add battles of these models.",
        severity=dg.AssetCheckSeverity.WARN,
    )
