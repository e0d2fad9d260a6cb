"""A judge as it is declared: an entry of `judges.yaml`, or the keys given to `judgeline.ask`."""

from typing import Literal

from pydantic import Field, model_validator

from judgeline.judges.forms.form import ShortOptions
from judgeline.judges.forms.registered import FORMS, AskedForms, FormName
from judgeline.judges.live.fields import ServedFields, Switch, require_chance
from judgeline.judges.managed.options import VllmOptions
from judgeline.judges.options import SLUG, Options
from judgeline.verdict import POOLED

NEVER_SHOWN = {"api_key_env", "base_url", "vllm.extra_args", "headers", "query", "extra_body"}
"""Keys whose values no error quotes: somebody may have put the key itself there."""

_ELSEWHERE = ("base_url", "endpoint_name", "api_key_env", "headers", "query")


class BuiltinTraits(Options):
    """Errors of a simulated judge, in rubric points, or as rates in [0, 1].

    `noise` is the standard deviation per criterion and presentation, `mood` per response and
    presentation, `taste` of a lasting opinion of a completion, `style_taste` of one of a
    contestant's ornament: an error that more battles do not average out. Biases are added: to the
    response shown first, per doubling of length over the other (half of it to either), and to a
    completion in the style of the judge's own family. Rates are shares of answers that nobody can
    use.
    """

    seed: int = Field(ge=0)
    noise: float = Field(ge=0, le=9)
    mood: float = Field(ge=0, le=9)
    taste: float = Field(ge=0, le=9)
    style_taste: float = Field(ge=0, le=9)
    position_bias: float = Field(ge=-9, le=9)
    verbosity_bias: float = Field(ge=-9, le=9)
    family_bias: float = Field(ge=-9, le=9)
    malformed_rate: float = Field(ge=0, le=1)
    refusal_rate: float = Field(ge=0, le=1)
    truncated_rate: float = Field(ge=0, le=1)


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
        structured = any(options.structured for options in self._short_options.values())
        if self.kind in ("openai", "vllm"):
            self._require_chance()
            if structured and self.structured_output == "off":
                raise ValueError("'structured' needs the schema that is off: remove one of the two")
        elif structured:
            raise ValueError("only served judges answer with JSON objects: remove 'structured'")
        elif any(options.is_last for options in self.form_options.values()):
            raise ValueError("only served judges give reasons first: remove 'value: last'")
        return self

    @property
    def _short_options(self) -> dict[str, ShortOptions]:
        given = self.form_options.items()
        return {name: options for name, options in given if isinstance(options, ShortOptions)}

    def _require_chance(self) -> None:
        for name, options in self._short_options.items():
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
