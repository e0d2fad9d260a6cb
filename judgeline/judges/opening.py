"""From a judge's definition to a judge that answers: at an endpoint, or with its own server."""

from pathlib import Path
from typing import Any

from judgeline.judges.definition import JudgeDefinition
from judgeline.judges.forms.form import Prompt, require_template
from judgeline.judges.forms.marks import Marks
from judgeline.judges.forms.order import require_format, require_order
from judgeline.judges.forms.registered import FormName, form_with
from judgeline.judges.judge import Judge
from judgeline.judges.live.endpoint import find_endpoint
from judgeline.judges.managed.options import Hosting, VllmOptions
from judgeline.paths import config_dir, home


def open_served(
    definition: JudgeDefinition,
    form: FormName = "rubric",
    hosting: Hosting | None = None,
    *,
    secret_in: Path | None = None,
) -> Judge:
    """Return a judge behind an endpoint, or with a server of its own; nothing is sent yet.

    The secret of the marks is kept in the home, unless it is said in which folder.
    """
    hosting, marks = hosting or Hosting(), Marks(secret_in or home(), definition.slug)
    fields, prompt = in_form(definition, form), prompt_of(definition, form)._replace(marks=marks)
    if definition.kind == "vllm":
        from judgeline.judges.managed.judge import ManagedJudge

        options = definition.vllm or VllmOptions()
        return ManagedJudge(definition.slug, fields, options, prompt, hosting)
    from judgeline.judges.batch.judge import BatchJudge, LiveJudge
    from judgeline.judges.live.judge import Site

    site = Site(find_endpoint(definition.slug, definition), home(), warn=hosting.warn)
    served = (definition.slug, fields, prompt, site)
    return BatchJudge(*served, tell=hosting.tell) if definition.batch else LiveJudge(*served)


_PROMPTS = Path(__file__).with_name("prompts")


def template_file(name: str = "rubric.txt") -> Path:
    """Return the file of a prompt: an absolute path, one of the configuration, or one of ours."""
    own = config_dir() / "prompts" / name
    file = own if own.is_file() else _PROMPTS / name
    if not file.is_file():
        there = ", ".join(sorted(path.name for path in _PROMPTS.glob("*.txt")))
        raise FileNotFoundError(
            f"no judge prompt at {own}; correct the judge's 'template', or write the file. "
            f"judgeline brings {there}"
        )
    return file


def read_template(name: str = "rubric.txt") -> str:
    """Return the instruction given to judges, from its file."""
    return template_file(name).read_text(encoding="utf-8")


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
    name = asked.template or definition.template
    template = read_template(name)
    file = template_file(name)
    require_template(template, file, asked.wording)
    require_order(template, file, asked)
    require_format(template, file, asked)
    return Prompt(template, asked)


def require_prompts(definition: JudgeDefinition) -> None:
    """Check the prompt of each form in which a judge is asked; ValueError with the remedy."""
    for form in definition.asks if definition.kind != "recorded" else ():
        try:
            prompt_of(definition, form)
        except (ValueError, OSError) as error:
            raise ValueError(f"judge {definition.slug!r}, form {form!r}: {error}") from None


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
    from judgeline.judges.live.probe import remembered

    place = definition.endpoint_name or find_endpoint(definition.slug, definition).url
    model = definition.model
    found = remembered(home(), place, model) if model else None
    if found is None:
        return False
    needs_more = form_with(form, definition).needs_alternatives and found.log_probabilities
    return not needs_more or found.alternatives is not None
