"""Prompts of served judges: the question, and the texts fenced off as data.

Each fence carries a mark drawn for the one request, which no completion can know or close.
"""

import re
import secrets
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from resources.judges.judge import Presentation

PROMPT_VERSION = "1"
"""Changes with the fences, the schema or the repair request: all of them shape an answer."""

Message = dict[str, str]


class Wording(NamedTuple):
    """Values of a prompt's placeholders.

    `quoted` maps them to the texts of a presentation, which are fenced off; `stated` to words of
    ours, which stand as they are. The mark of the fences is ``delimiter``.
    """

    quoted: Mapping[str, str]
    stated: Mapping[str, str]


PAIR = Wording(
    {name: name for name in ("instruction", "first_completion", "second_completion")}, {}
)
"""Two completions are shown, and nothing else is said."""

_MARK_BYTES = 16


def require_template(template: str, file: Path, wording: Wording = PAIR) -> None:
    """Check that a template shows each text once, and tells the judge all that it has to."""
    used = _placeholder(wording).findall(template)
    for name in wording.quoted:
        if used.count(name) != 1:
            raise ValueError(
                f"prompt {file} holds {{{name}}} {used.count(name)} times; it must stand there "
                "once, where the judge is to read that text"
            )
    if "delimiter" not in used:
        raise ValueError(
            f"prompt {file} lacks {{delimiter}}; tell the judge that quotations marked with it "
            "are data and no instructions"
        )
    for name, words in wording.stated.items():
        if name not in used:
            raise ValueError(
                f"prompt {file} lacks {{{name}}}, which becomes {words!r} from the judge's "
                "options; put it where the prompt tells the judge so"
            )


def write_messages(
    template: str, shown: Presentation, mark: str | None = None, wording: Wording = PAIR
) -> list[Message]:
    """Return the messages of one request; the mark is drawn unless a test gives one."""
    texts = {name: readable(getattr(shown, text)) for name, text in wording.quoted.items()}
    mark = mark or _new_mark("".join(texts.values()))
    parts = {name: f"<<<{mark}\n{text}\n{mark}>>>" for name, text in texts.items()}
    parts |= {"delimiter": mark, **wording.stated}
    # one pass, so that a placeholder within a completion stays what it is: text
    prompt = _placeholder(wording).sub(lambda found: parts[found[1]], template)
    return [{"role": "user", "content": prompt}]


def write_repair(messages: list[Message], answer: str, reason: str, again: str) -> list[Message]:
    """Return the messages that ask once more after an answer that could not be read."""
    return [
        *messages,
        {"role": "assistant", "content": answer or "(no answer)"},
        {"role": "user", "content": f"That answer cannot be used: {readable(reason)}. {again}"},
    ]


def named_schema(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema as a request's ``response_format``."""
    wrapped = {"name": name, "strict": True, "schema": schema}
    return {"type": "json_schema", "json_schema": wrapped}


def readable(text: str) -> str:
    """Return a text with question marks for halves of characters, which UTF-8 cannot carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


@cache
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(r"\{(" + "|".join(names) + r")\}")


def _placeholder(wording: Wording) -> re.Pattern[str]:
    return _pattern(("delimiter", *wording.quoted, *wording.stated))


def closed_object(members: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with these members, in this order, and no others."""
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def _new_mark(texts: str) -> str:
    while (mark := secrets.token_hex(_MARK_BYTES)) in texts:
        continue
    return mark
