"""Endpoint of a served judge: address and key; the key stays out of everything that is written."""

import os
from dataclasses import dataclass, field
from typing import NamedTuple

from judgeline.judges.live.fields import ENVIRONMENT_NAME, EndpointFields, require_url, variable_of

OPENAI_URL = "https://api.openai.com/v1"
_ACCOUNT = {"OPENAI_ORG_ID": "OpenAI-Organization", "OPENAI_PROJECT_ID": "OpenAI-Project"}
_NO_KEY = "none"
_SHORTEST_SECRET = 8  # what servers without keys are given is shorter: EMPTY, x, token


class EndpointError(RuntimeError):
    """The endpoint cannot be used as configured: no further request could succeed."""


class OutOfReachError(EndpointError):
    """The endpoint could not be asked however often it was tried; later it may be."""


@dataclass(frozen=True)
class Endpoint:
    """A URL and the key to it; the key shows in no representation.

    Without a key (`no_key` says why) what was asked before can still be looked up.
    """

    url: str
    key: str | None = field(repr=False)
    no_key: str = field(default="", compare=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    query: tuple[tuple[str, str], ...] = ()
    header_secrets: tuple[str, ...] = field(default=(), repr=False)

    def redact(self, text: str) -> str:
        """Return a text without the key and the secret headers."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, "[key]")
        return text

    def is_repeated_in(self, text: str) -> bool:
        """Return whether a text holds the key or a secret header."""
        return any(len(one) >= _SHORTEST_SECRET and one in text for one in self._secrets)

    @property
    def _secrets(self) -> set[str]:
        """The key, and of a secret header the whole and its last word: ``Bearer abc``."""
        words = {*self.header_secrets, *(one.split()[-1] for one in self.header_secrets)}
        long = {word for word in words if len(word) >= _SHORTEST_SECRET}
        return long if self.key in (None, _NO_KEY) else {self.key, *long}

    @property
    def sent_headers(self) -> dict[str, str]:
        """Headers of every request: no key where only other headers hold a secret."""
        sent = {"Accept-Encoding": "identity", **dict(self.headers)}
        if self.url == OPENAI_URL:  # others need not know whose account there is
            sent |= {
                _ACCOUNT[name]: os.environ[name] for name in _ACCOUNT.keys() & os.environ.keys()
            }
        names_key = "authorization" in {name.casefold() for name, _ in self.headers}
        if not names_key and (self.key != _NO_KEY or not self.header_secrets):
            sent["Authorization"] = f"Bearer {self.key}"
        return sent


def find_endpoint(slug: str, fields: EndpointFields, *, what: str = "judge") -> Endpoint:
    """Return an entry's endpoint; a missing key is missed when it is first asked."""
    variables = _Variables(what, slug)
    url, query = _url(fields, variables), tuple(fields.query.items())
    name = fields.api_key_env or (None if fields.base_url else "OPENAI_API_KEY")
    try:
        key = variables.printable("api_key_env", name, has_blanks=False) if name else _NO_KEY
        secret = {
            name: variables.printable(f"headers.{name}", named)
            for name, value in fields.headers.items()
            if (named := variable_of(value)) is not None
        }
    except ValueError as error:
        return Endpoint(url, None, str(error), query=query)
    headers = tuple({**fields.headers, **secret}.items())
    return Endpoint(url, key, headers=headers, query=query, header_secrets=tuple(secret.values()))


class _Variables(NamedTuple):
    """Environment variables that an entry of a configuration file reads; none is ever shown."""

    what: str
    slug: str

    def value(self, key: str, name: str) -> str:
        """Return the variable that a key of the entry names."""
        value = os.environ.get(name, "").strip()
        if not value:
            raise ValueError(
                f"{self.what} {self.slug!r} reads its {key!r} from the environment variable "
                f"{name}, which is not set; set {name}, or name another in "
                f"config/{self.what}s.yaml"
            )
        return value

    def printable(self, key: str, name: str, *, has_blanks: bool = True) -> str:
        """Return a variable that a header can carry."""
        value = self.value(key, name)
        if not value.isascii() or not value.isprintable() or (" " in value and not has_blanks):
            raise ValueError(
                f"{self.what} {self.slug!r}: variable {name} holds characters that no key has, "
                "such as spaces or line breaks; set it again (its value is not shown)"
            )
        return value


def _url(fields: EndpointFields, variables: _Variables) -> str:
    named = fields.base_url
    if named is None:
        named, value = "OPENAI_BASE_URL", os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
    elif ENVIRONMENT_NAME.fullmatch(named):
        value = variables.value("base_url", named)
    else:
        return require_url(named)
    try:
        return require_url(value.strip())
    except ValueError as error:
        whose = f"{variables.what} {variables.slug!r}"
        message = f"{whose}: variable {named} is no endpoint: {error}"
    raise ValueError(message)  # not while handling one that may quote the value
