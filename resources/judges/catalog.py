"""From a judge's definition to a judge that answers, or to its recorded verdicts."""

from pathlib import Path
from typing import Any

from resources.arena.prompts import write_prompts
from resources.arena.simulation import arena_options
from resources.config.corpora import CorpusDefinition
from resources.config.judges import JudgeDefinition
from resources.config.paths import config_dir, home
from resources.judges.forms.form import Prompt, require_template
from resources.judges.forms.registered import FORM_TABLES, FormName, form_with
from resources.judges.judge import Judge
from resources.judges.live.endpoint import find_endpoint
from resources.judges.managed.options import Hosting, VllmOptions
from resources.judges.simulated.judge import BuiltinJudge


def open_judge(
    definition: JudgeDefinition,
    corpus: CorpusDefinition,
    hosting: Hosting | None = None,
    form: FormName = "rubric",
) -> Judge:
    """Return a judge that is ready to answer about a corpus in one form, or ValueError."""
    hosting = hosting or Hosting()
    if definition.kind != "recorded" and form not in definition.asks:
        others = " ".join(f"{FORM_TABLES[name].name}+" for name in definition.asks)
        raise ValueError(
            f"judge {definition.slug!r} is not asked for {form!r} (asks: "
            f"[{', '.join(definition.asks)}]), so nothing can rest on it; add {form} to its asks "
            "in judges.yaml, or make what rests on the others alone: --select "
            f"{others!r}"
        )
    if definition.kind == "openai":
        return open_served(definition, form, hosting)
    if definition.kind != "vllm":
        return _open_builtin(definition, corpus, form)
    from resources.judges.managed.judge import ManagedJudge

    return ManagedJudge(
        definition.slug,
        in_form(definition, form),
        definition.vllm or VllmOptions(),
        prompt_of(definition, form),
        hosting,
    )


def _open_builtin(definition: JudgeDefinition, corpus: CorpusDefinition, form: FormName) -> Judge:
    if definition.kind != "builtin" or definition.builtin is None:
        raise ValueError(
            f"judge {definition.slug!r} is {definition.kind}: its verdicts come with the corpus "
            "and it cannot be asked for others"
        )
    if corpus.reader != "arena":
        raise ValueError(
            f"judge {definition.slug!r} is simulated and can judge the built-in arena only, not "
            f"corpus {corpus.slug!r} (reader {corpus.reader!r}); choose a judge of another kind"
        )
    options = arena_options(corpus.arena, corpus.seed, corpus.slug)
    prompts = write_prompts(options.n_prompts, options.seed)
    asked = None if form == "rubric" else prompt_of(definition, form)
    return BuiltinJudge(definition.builtin, definition.family, prompts, read_template(), asked)


def read_template(path: Path | None = None) -> str:
    """Return the instruction given to judges: ``prompts/rubric.txt`` of the configuration."""
    file = path or config_dir() / "prompts" / "rubric.txt"
    if not file.is_file():
        raise FileNotFoundError(
            f"no judge prompt at {file}; restore config/prompts/{file.name} from the checkout, or "
            "correct the judge's 'template' in judges.yaml"
        )
    return file.read_text(encoding="utf-8")


def open_served(
    definition: JudgeDefinition, form: FormName = "rubric", hosting: Hosting | None = None
) -> Judge:
    """Return a judge behind an endpoint; nothing is sent yet."""
    # the client takes half a second to import, and simulated judges do without it
    from resources.judges.batch.judge import BatchJudge, LiveJudge
    from resources.judges.live.judge import Site

    hosting = hosting or Hosting()
    site = Site(find_endpoint(definition.slug, definition), home(), warn=hosting.warn)
    served = (definition.slug, in_form(definition, form), prompt_of(definition, form), site)
    return BatchJudge(*served, tell=hosting.tell) if definition.batch else LiveJudge(*served)


def in_form(definition: JudgeDefinition, form: FormName) -> JudgeDefinition:
    """Return a definition with the switches of a form: a schema is for answers in JSON."""
    if form == "rubric":
        return definition
    changes: dict[str, Any] = {"log_probabilities": definition.log_probabilities_of(form)}
    if form_with(form, definition).response_format is None:
        changes["structured_output"] = "off"
    return definition.model_copy(update=changes)


def prompt_of(definition: JudgeDefinition, form: FormName = "rubric") -> Prompt:
    """Return the prompt of a served judge, checked."""
    asked = form_with(form, definition)
    # an absolute path stays itself
    file = config_dir() / "prompts" / (asked.template or definition.template)
    template = read_template(file)
    require_template(template, file, asked.wording)
    return Prompt(template, asked)


def missing_variable(definition: JudgeDefinition) -> str:
    """Return why a judge has no key or no URL, with the variable; empty if it has both."""
    if definition.kind != "openai":
        return ""
    try:
        return find_endpoint(definition.slug, definition).no_key
    except ValueError as error:
        return str(error)


def was_probed(definition: JudgeDefinition, form: FormName = "rubric") -> bool:
    """Return whether the endpoint of a judge of kind ``openai`` was ever probed."""
    from resources.judges.live.probe import remembered

    place = definition.endpoint_name or find_endpoint(definition.slug, definition).url
    model = definition.model
    found = remembered(home(), place, model) if model else None
    if found is None:
        return False
    needs_more = form_with(form, definition).needs_alternatives and found.log_probabilities
    return not needs_more or found.alternatives is not None
