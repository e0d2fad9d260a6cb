"""Opens a configured judge for a corpus, or says why it cannot be asked."""

from judgeline.judges.definition import JudgeDefinition
from judgeline.judges.forms.registered import FORM_TABLES, FormName
from judgeline.judges.judge import Judge
from judgeline.judges.managed.options import Hosting
from judgeline.judges.opening import open_served, prompt_of, read_template
from resources.arena.judge import BuiltinJudge
from resources.arena.prompts import write_prompts
from resources.arena.simulation import arena_options
from resources.config.corpora import CorpusDefinition


def open_judge(
    definition: JudgeDefinition,
    corpus: CorpusDefinition,
    hosting: Hosting | None = None,
    form: FormName = "rubric",
) -> Judge:
    """Return a judge that is ready to answer about a corpus in one form, or ValueError."""
    require_asked(definition, form)
    if definition.kind in ("openai", "vllm"):
        return open_served(definition, form, hosting)
    return _open_builtin(definition, corpus, form)


def require_asked(definition: JudgeDefinition, form: FormName) -> None:
    """Refuse a form in which a judge is not asked."""
    if definition.kind != "recorded" and form not in definition.asks:
        others = " ".join(f"{FORM_TABLES[name].name}+" for name in definition.asks)
        raise ValueError(
            f"judge {definition.slug!r} is not asked for {form!r} (asks: "
            f"[{', '.join(definition.asks)}]), so nothing can rest on it; add {form} to its asks "
            "in judges.yaml, or make what rests on the others alone: --select "
            f"{others!r}"
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
