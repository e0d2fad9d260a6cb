"""Whether a prompt asks for the value where and as the form reads it, by its own words.

A prompt that asks for another place, format or scale would buy answers that nobody can use.
"""

import re
from pathlib import Path

from judgeline.judges.forms.form import Form, ShortForm
from judgeline.verdict import Pattern, RubricError, pattern_of

_REASONS = r"(?:reason(?:s|ing)?|explanation|feedback|rationale|analysis|assessment)"
_ENDS = re.compile(
    r"\b(?:end|finish|close|conclude)\s+(?:your|the|this|it)\b[^.]*\bwith\b"
    rf"|\b(?:after|following|once)\b[^.,]{{0,40}}\b{_REASONS}\b"
    rf"|\b{_REASONS}\s+first\b"
    r"|\bfinal(?:ly)?\b[^.]{0,40}\b(?:score|grade|rating|verdict|object)\b",
    re.IGNORECASE,
)
_BEGINS = re.compile(r"\b(?:begin|start)\b[^.]*\bwith\b|\bfirst line\b", re.IGNORECASE)
_SET_OFF = re.compile(  # double brackets, a tag, brackets behind a label, an object
    r"\[\[[^\[\]\n]{1,40}\]\]|\[[A-Z]{3,}\]|\b[A-Z]\w+:\s*\[[^\[\]\n]{1,40}\]|\{\s*\"\w+\":"
)
_KNOWN_PATTERNS = ("[RESULT] {value}", "[[{value}]]", "Score: {value}", '"score": {value}')
_WORDED_FOR = {"trustjudge-5.txt": 5}
"""End of the scale that a prompt of ours is worded for, where its words fit no other."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


def require_order(template: str, file: Path, form: Form) -> None:
    """Check that a prompt asks for the value where the form reads it; ValueError with a remedy.

    Who states the order, `value: first` too, is believed of a prompt that only seems otherwise.
    """
    options, key = form.options, f"{form.name}.value"
    if not options.is_last:
        telling = _asks_last(template, form)
        if telling and "value" not in options.model_fields_set:
            raise ValueError(
                f"prompt {file} asks for the value after the reasons ({telling!r}), and the form "
                f"reads it first: add '{key}: last'{_with_pattern(template, form)}, or "
                f"'{key}: first' if the prompt does ask for it first"
            )
    elif isinstance(form, ShortForm) and form.pattern is not None:
        if not _shows(template, form.pattern):
            raise ValueError(
                f"prompt {file} nowhere shows {form.pattern.text!r}, in which the value is "
                f"looked for: name another '{form.name}.template', or write under "
                f"'{form.name}.pattern' how this prompt has the value set off"
            )
    elif not _ENDS.search(template):
        raise ValueError(
            f"prompt {file} does not ask for reasons before the value, as '{key}: last' wants: "
            f"name another 'template', such as {_ours(form)}, or say in it 'End your answer with'"
        )


def require_format(template: str, file: Path, form: Form) -> None:
    """Check that a prompt shows the object and the scale that are read; ValueError with a remedy.

    An object is shown by the name of its member, a scale by a value in the form's pattern.
    """
    if not isinstance(form, ShortForm):
        return
    if form.options.structured and f'"{form.name}"' not in template:
        raise ValueError(
            f"prompt {file} nowhere shows the member '\"{form.name}\"' of the JSON object that "
            f"'{form.name}.structured' reads: name another '{form.name}.template', such as "
            f"{form.own_template}, or remove '{form.name}.structured'"
        )
    end, scale = _WORDED_FOR.get(file.name), getattr(form, "scale", None)
    if scale and end not in (None, scale[1]):
        raise ValueError(
            f"prompt {file} is worded for a scale that ends at {end}, and '{form.name}.scale' ends "
            f"at {scale[1]}: set '{form.name}.scale: [1, {end}]', or name another "
            f"'{form.name}.template', such as {form.usual_prompt}"
        )
    for value in _shown_values(template, form):
        try:
            form.kind.read(value)
        except RubricError as error:
            raise ValueError(
                f"prompt {file} shows {value} as a value, and {error}: name the "
                f"'{form.name}.template' of that scale, or the '{form.name}.scale' of this prompt"
            ) from None


def _shown_values(template: str, form: ShortForm) -> list[str]:
    """Return the values that a prompt shows as examples in the pattern of the form."""
    if form.pattern is None:
        return []
    example = rf"(?:{form.pattern.opens.pattern})\[{{0,2}}[ \t]*((?-i:{form.kind.looks}))"
    return re.findall(example, template, re.IGNORECASE)


def _asks_last(template: str, form: Form) -> str | None:
    """Return the words by which a prompt asks for reasons first; None if there are none."""
    sentences = [one for one in _SENTENCE.split(template) if not _BEGINS.search(one)]
    is_worded = isinstance(form, ShortForm) and not form.options.structured
    for telling in (_ENDS, _SET_OFF) if is_worded else (_ENDS,):
        for said in filter(None, map(telling.search, sentences)):
            return said[0]
    return None


def _shows(template: str, pattern: Pattern) -> bool:
    """Return whether a prompt shows a pattern, with anything that stands for the value."""
    if pattern.key is not None:
        return bool(pattern.opens.search(template))
    shown = rf"(?:{pattern.opens.pattern})[^\n]{{1,80}}?{pattern.closes}"
    return bool(re.search(shown, template, re.IGNORECASE))


def _with_pattern(template: str, form: Form) -> str:
    """Return the pattern that a prompt shows, if it is not the form's own, for the remedy."""
    if not isinstance(form, ShortForm) or form.options.structured:
        return ""
    known = (form.usual_pattern, *_KNOWN_PATTERNS)
    shown = next((text for text in known if _shows(template, pattern_of(text))), None)
    if shown == form.usual_pattern:
        return ""
    told = f" {shown!r}" if shown else ", the words that set the value off, with {value}"
    return f" and '{form.name}.pattern'{told}"


def _ours(form: Form) -> str:
    return form.own_template if isinstance(form, ShortForm) else "rubric-last.txt"
