"""The tables of candidates: their columns, types, and what a file that fits no rule leaves."""

CANDIDATE_DTYPES: dict[str, str] = {
    "model": "str",
    "control": "str",
    "file": "str",
    "content_hash": "str",
    "question_id": "str",
    "instruction": "str",
    "language": "str",
    "completion": "str",
    "family": "str",
    "metadata": "str",
}
"""Columns of candidates: one row per answered question."""

REFUSED_DTYPES: dict[str, str] = {
    "file": "str",
    "content_hash": "str",
    "reason": "str",
    "detail": "str",
}
"""Columns of candidate files that are set aside whole."""

CONTROL_PREFIX = "control:"
"""What the names of attack controls begin with, and no other model's."""

HAS_VOTES_NOW = "has-votes-now"
"""The reason of a file whose model was placed as a candidate, and has got votes since."""


class RefusedError(ValueError):
    """Why a candidate file is set aside: a slug of the reason, and a sentence with the remedy."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


def told(value: object, width: int = 60) -> str:
    """Return a found value for a message: quoted on one line, shortened, and never markup."""
    text = repr(value)
    text = text if len(text) <= width else f"{text[: width - 1]}…"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
