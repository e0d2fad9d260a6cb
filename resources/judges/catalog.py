"""From a judge's definition to something that answers, or to the answers that came already."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from resources.arena.prompts import write_prompts
from resources.arena.simulation import arena_options
from resources.corpora.definitions import CorpusDefinition
from resources.judges.annotation import VERDICT_DTYPES
from resources.judges.builtin import BuiltinJudge
from resources.judges.definitions import JudgeDefinition
from resources.judges.judge import Judge
from resources.judges.managed.hosting import Hosting
from resources.judges.managed.options import VllmOptions
from resources.paths import config_dir, home


def open_judge(
    definition: JudgeDefinition,
    corpus: CorpusDefinition,
    on_news: Callable[[str], None] | None = None,
    hosting: Hosting | None = None,
) -> Judge:
    """Return a judge that is ready to answer about a corpus.

    Parameters
    ----------
    definition : JudgeDefinition
        The judge.
    corpus : CorpusDefinition
        What it is to judge.
    on_news : callable, optional
        Is told how batches are, if the judge is asked in such.
    hosting : Hosting, optional
        Where a judge of kind ``vllm`` runs its server once it is asked; by default anywhere.

    Raises
    ------
    ValueError
        If the judge's kind cannot judge this corpus, or a judge cannot be opened as configured.
    """
    if definition.kind == "openai":
        return open_served(definition, on_news)
    if definition.kind == "vllm":
        return open_managed(definition, hosting)
    if definition.kind != "builtin" or definition.builtin is None:
        raise ValueError(_unopened(definition))
    if corpus.reader != "arena":
        raise ValueError(
            f"judge {definition.slug!r} is simulated and can judge the built-in arena only, not "
            f"corpus {corpus.slug!r} (reader {corpus.reader!r}); choose a judge of another kind"
        )
    options = arena_options(corpus.arena, corpus.seed, corpus.slug)
    prompts = write_prompts(options.n_prompts, options.seed)
    return BuiltinJudge(definition.builtin, definition.family, prompts, read_template())


def read_template(path: Path | None = None) -> str:
    """Return the instruction given to judges: ``prompts/rubric.txt`` of the configuration."""
    file = path or config_dir() / "prompts" / "rubric.txt"
    if not file.is_file():
        raise FileNotFoundError(
            f"no judge prompt at {file}; restore config/prompts/{file.name} from the checkout, or "
            "correct the judge's 'template' in config/judges.yaml"
        )
    return file.read_text(encoding="utf-8")


def open_served(definition: JudgeDefinition, on_news: Callable[[str], None] | None = None) -> Judge:
    """Return a judge behind an endpoint; nothing is sent yet.

    Raises
    ------
    ValueError
        If an environment variable is unset, or the prompt lacks a placeholder.
    FileNotFoundError
        If there is no such prompt.
    """
    # the client takes half a second to import, and simulated judges do without it
    from resources.judges.batch.live import LiveJudge
    from resources.judges.served.endpoint import find_endpoint
    from resources.judges.served.prompt import require_template

    template = template_of(definition)
    require_template(template, _template_file(definition))
    endpoint = find_endpoint(definition.slug, definition)
    if definition.batch:
        from resources.judges.batch.judge import BatchJudge

        return BatchJudge(
            definition.slug,
            definition,
            template,
            endpoint,
            home() / "endpoints",
            folder=home() / "batches",
            tell=on_news,
        )
    return LiveJudge(
        definition.slug,
        definition,
        template,
        endpoint,
        home() / "endpoints",
        folder=home() / "batches",
    )


def open_managed(definition: JudgeDefinition, hosting: Hosting | None = None) -> Judge:
    """Return a judge on a vLLM server of our own; the server starts when it is first asked.

    Raises
    ------
    ValueError
        If the prompt lacks a placeholder.
    FileNotFoundError
        If there is no such prompt.
    """
    from resources.judges.managed.judge import ManagedJudge
    from resources.judges.served.prompt import require_template

    template = template_of(definition)
    require_template(template, _template_file(definition))
    options = definition.vllm or VllmOptions()
    return ManagedJudge(definition.slug, definition, options, template, hosting or Hosting())


def template_of(definition: JudgeDefinition) -> str:
    """Return the prompt of a served judge."""
    return read_template(_template_file(definition))


def _template_file(definition: JudgeDefinition) -> Path:
    return config_dir() / "prompts" / definition.template  # an absolute path stays itself


def was_probed(definition: JudgeDefinition) -> bool:
    """Return whether the endpoint of a judge of kind ``openai`` was ever asked what it supports.

    Before that, no verdict of the judge can be stored: what it supports is in their identity.
    """
    from resources.judges.served.endpoint import find_endpoint
    from resources.judges.served.probe import remembered

    place = definition.endpoint_name or find_endpoint(definition.slug, definition).url
    model = definition.model
    return model is not None and remembered(home() / "endpoints", place, model) is not None


def recorded(verdicts: pd.DataFrame, battles: pd.DataFrame, slug: str) -> pd.DataFrame:
    """Return the verdicts of a judge that came with a corpus, on the battles at hand.

    Parameters
    ----------
    verdicts : DataFrame
        All verdicts that came with the corpus.
    battles : DataFrame
        Battles to keep the verdicts of, by ``battle_id``.
    slug : str
        The judge.

    Raises
    ------
    ValueError
        If the corpus has no verdicts of the judge.
    """
    own = verdicts[verdicts["judge"].eq(slug)]
    if own.empty:
        there = ", ".join(sorted(verdicts["judge"].unique())) or "none at all"
        raise ValueError(
            f"no recorded verdicts of judge {slug!r} came with this corpus (it has: {there}); "
            "name one of those in config/judges.yaml, or choose a judge of another kind"
        )
    kept = own[own["battle_id"].isin(battles["battle_id"])]
    return kept[list(VERDICT_DTYPES)].reset_index(drop=True)


def _unopened(definition: JudgeDefinition) -> str:
    return (
        f"judge {definition.slug!r} is {definition.kind}: its verdicts come with the corpus and it "
        "cannot be asked for others"
    )
