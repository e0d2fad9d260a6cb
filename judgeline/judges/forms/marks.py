"""Marks of the fences around quoted texts, which no text can know or close."""

import hmac
import json
import secrets
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from itertools import count
from pathlib import Path

from judgeline.atomic import write_whole

_FILE = "marks.secret"
_SECRET_BYTES = 32
_DIGITS = 8  # 32 bits, which a text that was written before can only guess


class Marks:
    """Marks of one judge, one for all requests about the same texts, in whatever order.

    A mark is HMAC-SHA256 of the texts under a secret that the folder keeps, for nobody else to
    read; without a folder this process keeps it. Since a battle's requests share their mark, a
    server can share what they begin with.
    """

    def __init__(self, folder: Path | None = None, judge: str = "") -> None:
        self._folder, self._judge = folder, judge

    def of(self, texts: Sequence[str]) -> str:
        """Return the mark of some texts: hexadecimal digits that stand in none of them."""
        named = [self._judge, *sorted(texts)]
        marks = (self._digest([number, *named]) for number in count())
        return next(mark for mark in marks if not any(mark in text for text in texts))

    def _digest(self, named: list[object]) -> str:
        return hmac.new(self._secret, json.dumps(named).encode(), "sha256").hexdigest()[:_DIGITS]

    @cached_property
    def _secret(self) -> bytes:
        drawn = secrets.token_bytes(_SECRET_BYTES)
        if self._folder is None:
            return drawn
        file = self._folder / _FILE
        with suppress(FileNotFoundError):
            if len(kept := file.read_bytes()) == _SECRET_BYTES:
                return kept
        write_whole(file, drawn, mode=0o600)
        return file.read_bytes()  # of another process, it may be; a mark is no part of an identity
