"""Settings of a table, recorded with it and compared with the present ones; tags of runs."""

from collections.abc import Collection, Iterable
from typing import Any, cast

import dagster as dg
from dagster._core.errors import DagsterInvalidPropertyError
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from assets.candidates.accepting import contents
from assets.partitions import corpus_and_judge
from judgeline.rating_options import RatingOptions
from judgeline.settings import Restricted
from judgeline.verdict import identity_hash
from resources.candidates.folder import folder_of, hash_of, list_files, list_votes
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.corpora.locations import content_revision

SETTINGS = "settings"
"""Metadata of a table: by name, the settings that its code reads."""
CONTENTS = "contents"
"""Metadata of a table that was read from a folder: a hash of the files it was made of."""
CONTENT = "content"
"""Name of what a corpus publishes; see `content_revision`."""
FILES = "candidate files"
"""Name of what was dropped for new models of a corpus; see `contents`."""
VOTES = "vote files"
"""Name of what was dropped of people's votes on a corpus; see `hash_of`."""
EVERY_JUDGE = "every judge"
"""Name of the entries of all judges together."""
EMBEDDER = "embedder"
"""Name of the whole entry of what embeds for a corpus."""
JUDGE = "judge"
"""Name of the whole entry of a judge; its parts are such as ``judge.choice.tolerance``."""


def corpus_of(context: dg.AssetExecutionContext, catalog: Catalog, *names: str) -> CorpusDefinition:
    """Return the corpus of the partition that is made, and record the named settings with it.

    The corpus has the named settings alone: to read another is an error, so that no table depends
    on a setting that is not recorded.
    """
    corpus, judge = context.partition_key, None
    if isinstance(corpus, dg.MultiPartitionKey):
        corpus, judge = corpus_and_judge(context)
    context.add_output_metadata({SETTINGS: stated(catalog, corpus, judge, names)})
    return cast(CorpusDefinition, narrowed(catalog.corpus(corpus), {"slug", *names}))


def rating_of(context: dg.AssetExecutionContext, catalog: Catalog, *names: str) -> RatingOptions:
    """Return the named settings of the corpus's ratings alone, as `corpus_of` does."""
    return corpus_of(context, catalog, *(f"rating.{name}" for name in names)).rating


def narrowed(definition: Any, names: Collection[str]) -> Any:
    """Return an entry with the named settings alone; to read another is an AttributeError."""
    if not isinstance(definition, BaseModel):
        return Restricted(**{name: getattr(definition, name) for name in names})
    own = definition.model_copy()
    for field in type(definition).model_fields:
        parts = {
            rest for first, _, rest in (name.partition(".") for name in names) if first == field
        }
        if not parts:
            del own.__dict__[field]
        elif "" not in parts:
            own.__dict__[field] = narrowed(getattr(definition, field), parts)
    return own


def stated(
    catalog: Catalog, corpus: str, judge: str | None, names: Iterable[str], **known: Any
) -> dg.JsonMetadataValue:
    """Return the values of settings by name, as metadata; `known` ones are not read again."""
    found = {name: value(catalog, corpus, judge, name) for name in names}
    return dg.MetadataValue.json({**found, **known})


def value(catalog: Catalog, corpus: str, judge: str | None, name: str) -> Any:
    """Return the present value of a setting in JSON's types; a hash of a whole entry."""
    definition = catalog.corpus(corpus)
    if name == CONTENT:
        return content_revision(definition)
    if name == VOTES:
        return hash_of(list_votes(corpus))
    if name == FILES:
        return contents(list_files(folder_of(corpus)), definition.candidates)
    if name == EVERY_JUDGE:
        return _hashed(*catalog.judges().values())
    if name == EMBEDDER:
        slug = definition.embeddings
        return None if slug is None else _hashed(catalog.embedder(slug))
    if name == JUDGE:
        return _hashed(catalog.judge(str(judge)))
    first, *rest = name.split(".")
    found: Any = catalog.judge(str(judge)) if first == JUDGE else getattr(definition, first)
    for part in rest:
        found = getattr(found, part)
    return to_jsonable_python(found)


def _hashed(*entries: BaseModel) -> str:
    return identity_hash({str(i): one.model_dump_json() for i, one in enumerate(entries)})


BUDGET_TAG = "judgeline/budget"
"""Caps what judges are asked, such as ``2000calls 5USD``."""
SPENT_TAG = "judgeline/spent"
"""In which a capped run says what it has spent, as JSON."""
SAMPLE_TAG = "judgeline/sample_size"
"""How many battles to choose, where that is more than the corpus' own ``sample_size``."""
REFRESH_TAG = "judgeline/refresh"
"""Marks the runs that a scheduled refresh of a corpus consists of."""


def run_of(context: dg.AssetExecutionContext) -> dg.DagsterRun | None:
    """Return the run that makes an asset, None where it is called as a function."""
    try:
        return context.run
    except DagsterInvalidPropertyError:
        return None


def tag_of(context: dg.AssetExecutionContext, name: str) -> str | None:
    """Return a tag of the run that makes an asset, None where there is none."""
    run = run_of(context)
    return run.tags.get(name) if run is not None else None
