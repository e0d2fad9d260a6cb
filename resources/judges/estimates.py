"""Token estimates of calls, before anything is asked."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from resources.judges.forms.form import Form
from resources.judges.forms.rubric import RUBRIC
from resources.judges.judge import Presentation
from resources.judges.live.costs import least_tokens, most_of
from resources.judges.live.fields import ServedFields
from resources.judges.live.prompt import write_messages

BYTES_PER_TOKEN = 4.0
"""A rule of thumb for byte-pair encodings of prose; code and other scripts take more tokens."""

_EXPLAINED_ANSWER = 400  # tokens of twelve keys and scores, with reasons
_LOOKED_AT = 2000


class TokenEstimate(NamedTuple):
    """Expected tokens of some calls, the most that they can cost, and where the numbers are from.

    `most_tokens` counts every byte of a prompt as a token and every answer at its full length,
    once: repairs and lost requests come on top.
    """

    prompt_tokens: int
    completion_tokens: int
    most_prompt_tokens: int
    most_completion_tokens: int
    basis: str


def total(estimates: Mapping[str, TokenEstimate]) -> TokenEstimate:
    """Return the sum of estimates by name; where they rest on different things it says so."""
    bases = {estimate.basis for estimate in estimates.values()}
    told = [f"{name}: {estimate.basis}" for name, estimate in estimates.items()]
    sums = [sum(one[place] for one in estimates.values()) for place in range(4)]
    return TokenEstimate(*sums, bases.pop() if len(bases) == 1 else "; ".join(told))


Answered = tuple[Sequence[Presentation], pd.DataFrame]
"""Presentations with the stored answers to them, row by row."""


def estimate_tokens(
    fields: ServedFields,
    template: str,
    needed: Sequence[Presentation],
    answered: Answered | None = None,
    form: Form = RUBRIC,
) -> TokenEstimate:
    """Return the tokens that calls would take.

    Prompts are counted with the model's tokenizer where it lies on this machine, else by the
    stored answers of the same judge, else by their bytes; the `basis` says which. Bytes are
    those of all prompts; of many, some drawn at random tell how many tokens a byte has.
    """
    if not needed:
        return TokenEstimate(0, 0, 0, 0, "nothing to ask")
    n_bytes = sum(_size(template, shown, form) for shown in needed)
    schema = form.response_format
    constraint = {} if schema is None else {"response_format": schema}
    beside = most_of([{"content": ""}], constraint, None).prompt_tokens
    shown, answers = _counted(answered, template, form)
    per_byte, basis = _tokens_per_byte(fields, template, needed, (shown, answers), form)
    is_free = schema is not None and fields.structured_output == "off"
    guess = _EXPLAINED_ANSWER if is_free else form.typical_tokens
    completion = float(answers["completion_tokens"].mean()) if shown else guess
    if not shown:
        basis = f"{basis}; {guess} tokens an answer, a guess"
    return TokenEstimate(
        round(n_bytes * per_byte),
        round(completion * len(needed)),
        n_bytes + beside * len(needed),
        fields.decoding.max_tokens * len(needed),
        basis,
    )


def _tokens_per_byte(
    fields: ServedFields,
    template: str,
    needed: Sequence[Presentation],
    answered: Answered,
    form: Form,
) -> tuple[float, str]:
    shown, answers = answered
    counter = find_tokenizer(fields)
    if counter is not None:
        drawn = np.random.default_rng(0).permutation(len(needed))[:_LOOKED_AT]
        prompts = [_prompt(template, needed[number], form) for number in drawn]
        seen = sum(len(prompt.encode()) for prompt in prompts)
        some = f" in {len(prompts):,} prompts" if len(prompts) < len(needed) else ""
        told = f", answers estimated from {len(answers):,} of this judge" if shown else ""
        return sum(map(counter, prompts)) / seen, f"counted with the model's tokenizer{some}{told}"
    if shown:
        seen = sum(_size(template, one, form) for one in shown)
        told = f"estimated from {len(answers):,} answers of this judge"
        return float(answers["prompt_tokens"].sum()) / seen, told
    return 1 / BYTES_PER_TOKEN, f"estimated at {BYTES_PER_TOKEN:g} bytes a token"


def _counted(answered: Answered | None, template: str, form: Form) -> Answered:
    """Return the answers with plausible usage; servers that state none are stored as zero."""
    shown, answers = answered or ((), pd.DataFrame({"prompt_tokens": []}))
    least = [max(1, least_tokens(_size(template, one, form))) for one in shown]
    counted = answers["prompt_tokens"].ge(np.array(least, dtype=float))
    return [one for one, has in zip(shown, counted, strict=True) if has], answers[counted]


def find_tokenizer(fields: ServedFields) -> Callable[[str], int] | None:
    """Return what counts the tokens of a text as the judge's model does, without any download.

    From the model's folder or the hub's local cache, if the package ``tokenizers`` is there;
    None otherwise.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        return None
    file = _tokenizer_file(fields)
    if file is None:
        return None
    tokenizer: Any = Tokenizer.from_file(str(file))
    return lambda text: len(tokenizer.encode(text).ids)


def _tokenizer_file(fields: ServedFields) -> Path | None:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    if fields.model is None:
        return None
    local = Path(fields.model) / "tokenizer.json"
    if local.is_file():
        return local
    try:
        cached = try_to_load_from_cache(fields.model, local.name, revision=fields.revision)
    except HFValidationError:  # the name is no repository of the hub
        return None
    return Path(cached) if isinstance(cached, str) else None


def _size(template: str, shown: Presentation, form: Form) -> int:
    return len(_prompt(template, shown, form).encode())


def _prompt(template: str, shown: Presentation, form: Form) -> str:
    messages = write_messages(template, shown, wording=form.wording)
    return "".join(message["content"] for message in messages)
