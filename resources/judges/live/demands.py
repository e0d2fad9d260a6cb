"""Whether an endpoint does what a judge's definition and its form demand."""

from resources.judges.forms.form import Form
from resources.judges.live.fields import ServedFields, require_chance
from resources.judges.live.probe import Capabilities


def require_demands(
    slug: str, fields: ServedFields, form: Form, url: str, found: Capabilities
) -> None:
    """Check what an endpoint supports against what is asked of it.

    Raises
    ------
    ValueError
        If it lacks what the definition demands, its context is shorter than the answers, or
        the same question would have to be asked several times at temperature 0.
    """
    comes = found.has_logs(with_alternatives=form.needs_alternatives)
    for key, has in (("structured_output", found.json_schema), ("log_probabilities", comes)):
        if getattr(fields, key) == "on" and not has:
            raise ValueError(
                f"judge {slug!r} demands {key!r}, which {url} does not do for {fields.model!r}; "
                f"set {key}: auto or off in config/judges.yaml"
            )
    has_logs = comes and fields.log_probabilities != "off"
    if form.needs_alternatives and not has_logs:
        require_chance(slug, form.name, form.samples, fields.decoding)
    limit = fields.decoding.max_tokens
    if found.max_context is not None and found.max_context <= limit:
        raise ValueError(
            f"judge {slug!r} asks for answers of up to {limit} tokens, but the context of "
            f"{fields.model!r} is {found.max_context}; lower decoding.max_tokens"
        )
