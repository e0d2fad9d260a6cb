"""The judges that a person has configured, as `judges.yaml` declares them."""

from typing import Literal

from pydantic import Field, model_validator

from judgeline.verdict import POOLED
from resources.config.entries import SLUG, EntryKind
from resources.judges.forms.registered import FORMS, AskedForms, FormName
from resources.judges.live.fields import ServedFields, Switch, require_chance
from resources.judges.managed.options import VllmOptions
from resources.judges.simulated.judge import BuiltinTraits

_ELSEWHERE = ("base_url", "endpoint_name", "api_key_env", "headers", "query")
# Somebody may have put the key itself there.
_NEVER_SHOWN = {"api_key_env", "base_url", "vllm.extra_args", "headers", "query", "extra_body"}


class JudgeDefinition(AskedForms, ServedFields):
    """A judge by name, and how its answers are obtained; `ServedFields` has the rest."""

    slug: str = Field(pattern=SLUG)
    display_name: str = Field(min_length=1)
    family: str = Field(min_length=1)
    kind: Literal["recorded", "builtin", "openai", "vllm"]
    builtin: BuiltinTraits | None = None
    vllm: VllmOptions | None = None

    @model_validator(mode="after")
    def _require_what_the_kind_needs(self) -> "JudgeDefinition":
        if self.slug == POOLED:
            raise ValueError(f"{POOLED!r} names all judges together: give the judge another name")
        if (self.kind == "builtin") != (self.builtin is not None):
            raise ValueError("kind 'builtin', and no other, has its traits under 'builtin'")
        self._refuse_what_is_not_asked()
        if self.kind in ("openai", "vllm"):
            if self.model is None:
                raise ValueError(f"a judge of kind {self.kind!r} needs the name of its 'model'")
            if self.batch and self.kind != "openai":
                raise ValueError("only kind 'openai' is asked in batches: remove 'batch'")
        elif given := [name for name in ServedFields.model_fields if name in self.model_fields_set]:
            raise ValueError(f"a judge of kind {self.kind!r} is not served: remove {given}")
        return self

    @model_validator(mode="after")
    def _require_what_the_forms_need(self) -> "JudgeDefinition":
        if len({*self.asks}) < len(self.asks):
            raise ValueError(f"'asks' names a form twice: {list(self.asks)}; name each once")
        told = {"asks", *self.form_options} & self.model_fields_set
        if self.kind == "recorded" and told:
            raise ValueError(f"such verdicts come with the corpus: remove {sorted(told)}")
        for name in sorted(told - {"asks"} - {*self.asks}):
            raise ValueError(f"{name!r} has options but is not in 'asks': add it there, or remove")
        structured = any(options.structured for options in self.form_options.values())
        if self.kind in ("openai", "vllm"):
            self._require_chance()
            if structured and self.structured_output == "off":
                raise ValueError("'structured' needs the schema that is off: remove one of the two")
        elif structured:
            raise ValueError("only served judges answer with JSON objects: remove 'structured'")
        return self

    def _require_chance(self) -> None:
        for name, options in self.form_options.items():
            if name in self.asks and self.log_probabilities_of(name) == "off":
                require_chance(self.slug, name, options.samples, self.decoding)

    def log_probabilities_of(self, form: FormName) -> Switch:
        """Return whether log-probabilities are wanted: forms that read them take them unasked."""
        if not FORMS[form].needs_alternatives or "log_probabilities" in self.model_fields_set:
            return self.log_probabilities
        return "auto"

    def _refuse_what_is_not_asked(self) -> None:
        if self.kind != "vllm":
            if self.vllm is not None:
                raise ValueError("only judges of kind 'vllm' have options under 'vllm'; remove it")
        elif given := [name for name in _ELSEWHERE if getattr(self, name)]:
            raise ValueError(
                f"kind 'vllm' has a server of its own, and a key of its own: remove {given}, or "
                "use kind 'openai' for a server that runs already"
            )


KIND = EntryKind("judge", "judges", "display_name, family and kind", JudgeDefinition, _NEVER_SHOWN)

load_judges = KIND.load
