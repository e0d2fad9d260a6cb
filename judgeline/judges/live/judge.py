"""A judge behind an endpoint: its identity, and its answers as they arrive."""

import contextlib
import json
import logging
import math
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from judgeline.judges.budget import Budget, Meter, require_price
from judgeline.judges.forms.form import PROMPT_VERSION, Prompt, Reading
from judgeline.judges.judge import Evidence
from judgeline.judges.live.asking import Asker
from judgeline.judges.live.bridge import as_completed, run_once
from judgeline.judges.live.connection import Connection
from judgeline.judges.live.endpoint import Endpoint, EndpointError, OutOfReachError
from judgeline.judges.live.fields import ServedFields, is_named
from judgeline.judges.live.probe import (
    LOG_PROBABILITIES,
    QUESTION,
    Capabilities,
    Probe,
    listing,
    remember,
    remembered,
    require_demands,
    sampling,
)
from judgeline.judges.live.replies import require_message
from judgeline.judges.live.troubles import Retries, RetryPolicy
from judgeline.judges.presentation import Presentation
from judgeline.tables.remedies import may_pass, remedy_text
from judgeline.verdict import text_hash

_LOG = logging.getLogger(__name__)

_PROBE_S = 60.0  # a small question takes no longer, once a model is loaded
_AHEAD = 4  # questions under work per request in flight: those that wait give their place away
_SILENT = 20  # answers lost in a row after which the endpoint counts as gone
_LOST = frozenset({"transport", "rejected", "unreadable_reply", "other_model"})


@dataclass(frozen=True)
class Site:
    """Where a judge is asked, and how patiently.

    Under `folder` it is remembered what endpoints support, unless that is `declared`, and which
    batches are under way. Parts of the identity that are `named` replace ours, or come on top.
    """

    endpoint: Endpoint
    folder: Path
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    warn: Callable[[str], None] = _LOG.warning
    declared: Capabilities | None = None
    named: Mapping[str, str] = field(default_factory=dict)


class ServedJudge:
    """A judge of kind ``openai``: its definition, its prompt, and where it is asked."""

    def __init__(self, slug: str, fields: ServedFields, prompt: Prompt, site: Site) -> None:
        if fields.model is None:
            raise ValueError(f"judge {slug!r} lacks the key 'model'; add it")
        self._slug, self._fields, self._prompt, self._site = slug, fields, prompt, site
        self._url, self._model = site.endpoint.url, fields.model
        self._place = fields.endpoint_name or self._url  # what the identity of a verdict calls it
        self.form, self.counts = prompt.form, Counter[str]()

    @cached_property
    def capabilities(self) -> Capabilities:
        """Capabilities of the endpoint: remembered, or else probed now."""
        found = self._known()
        if found is None:
            found = self._found(Probe.all)
        if self.form.needs_alternatives and found.log_probabilities and found.alternatives is None:
            found = self._found(Probe.with_alternatives, found)
        require_demands(self._slug, self._fields, self.form, self._url, found)
        return found

    def _known(self) -> Capabilities | None:
        site = self._site
        return site.declared or remembered(site.folder, self._place, self._model)

    def require_reachable(self) -> None:
        """Probe the endpoint with a small request that is not stored; raise if it fails."""
        known, found = self._known(), self.capabilities
        if known is not None:
            self._found(Probe.again, found)

    @property
    def evidence(self) -> Evidence:
        """Source of the probabilities of its answers."""
        return "log-probabilities" if self._has_log_probabilities else "samples"

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """Everything but the presentation that shapes an answer.

        Not in it, because they do not: concurrency, retries, timeouts, prices, the key, what the
        endpoint calls its token limit and how long its context is.
        """
        fields = self._fields
        identity = {
            "kind": "openai",
            "version": PROMPT_VERSION,
            "endpoint": self._place,
            "model": self._model,
            "revision": fields.revision or "",
            "decoding": json.dumps(fields.decoding.identity(), sort_keys=True),
            "structured_output": "json_schema" if self._is_constrained else "none",
            "log_probabilities": "on" if self._has_log_probabilities else "off",
            "template": text_hash(self._prompt.template),
            **self._site.named,
            **self.form.identity,
        }
        if (listed := self._alternatives) is not None:
            identity["alternatives"] = str(listed)
        if fields.extra_body:
            identity["extra_body"] = json.dumps(fields.extra_body, sort_keys=True)
        return identity | {name: str(value) for name, value in fields.sent.items()}

    @property
    def metadata(self) -> Mapping[str, str]:
        """Metadata of the endpoint that shape no answer."""
        found = self.capabilities
        return {
            "endpoint": self._url,
            "limit_field": found.limit_field,
            "json_schema": str(found.json_schema),
            "log_probabilities": str(found.log_probabilities),
            "max_context": "unknown" if found.max_context is None else str(found.max_context),
        }

    def answer(
        self, presentations: Sequence[Presentation], budget: Budget
    ) -> Generator[tuple[int, Reading]]:
        """Yield answers as they come, each with the position of its presentation.

        Closing the iterator, or an interrupt, cancels the requests in flight.
        """
        if not presentations:
            return
        self.require_price(budget)
        asker = self._asker(budget)
        asker.bound = self._bound
        work = partial(asker.judge, prompt=self._prompt, request=self._request())
        n_workers = _AHEAD * self._fields.concurrency
        given = as_completed(
            presentations, work, n_workers=n_workers, closing=asker.connection.close
        )
        lost = 0
        with contextlib.closing(given):
            for position, reading in given:
                if reading is None:  # for want of budget
                    continue
                reading = self.as_expected(reading)
                yield position, reading
                lost = lost + 1 if reading.status in _LOST else 0
                if lost >= _SILENT:
                    raise self._gone(reading)

    def _gone(self, last: Reading) -> EndpointError:
        """Return the error that ends asking, after many failed answers and this last one."""
        failure, said = last.status, last.answer.said or ""
        kind = OutOfReachError if may_pass(failure, said) else EndpointError
        return kind(
            f"judge {self._slug!r}: the last {_SILENT} requests to {self._url} all failed "
            f"for good ({said}); {remedy_text(failure, said)}"
        )

    def require_price(self, budget: Budget) -> None:
        """Refuse a budget in money that the judge's price cannot be counted against."""
        require_price(self._slug, self._fields.price_per_million, budget)

    @property
    def _is_constrained(self) -> bool:
        if self.form.response_format is None:
            return False
        wanted = self._fields.structured_output
        return self.capabilities.json_schema if wanted == "auto" else wanted == "on"

    @property
    def _has_log_probabilities(self) -> bool:
        wanted = self._fields.log_probabilities
        if wanted != "auto":
            return wanted == "on"
        return self.capabilities.has_logs(with_alternatives=self.form.needs_alternatives)

    @property
    def _alternatives(self) -> int | None:
        """How many alternatives are asked for; None where the form reads none."""
        wanted = self.form.needs_alternatives and self._has_log_probabilities
        return self.capabilities.alternatives if wanted else None

    def as_expected(self, reading: Reading) -> Reading:
        """Return an answer, failed as ``other_model`` if `expect_model` forbids its model."""
        rule, came = self._fields.expect_model, reading.answer.reply_model
        if rule == "any" or came == self._model:
            self._watch(came)
            return reading
        if came is None and reading.status != "ok":  # there was no reply, or it failed anyway
            return reading
        if rule == "prefix" and came is not None and came.startswith(self._model):
            return reading
        named = "no model" if came is None else f"the model {came!r}"
        said = f"the reply names {named}; 'expect_model: {rule}' wants {self._model!r}"
        answer = replace(reading.answer, failure="other_model", said=said)
        return reading._replace(answer=answer, status="other_model", value=None)

    def _watch(self, came: str | None) -> None:
        """Count a reply that names another model; warn of the first."""
        if is_named(self._fields.model_to_name, came):
            return
        if not self.counts["other_names"]:
            self._warn(
                f"judge {self._slug!r} asks for {self._model!r}, and replies name {came!r}; "
                "'expect_model: prefix' refuses these, 'expect_model: any' accepts them"
            )
        self.counts["other_names"] += 1

    def _request(self) -> dict[str, Any]:
        found, decoding = self.capabilities, self._fields.decoding
        request = {
            "model": self._model,
            **sampling(decoding),
            found.limit_field: decoding.max_tokens,
            **self._fields.extra_body,
            **self._fields.sent,
        }
        if self._is_constrained:
            request["response_format"] = self.form.response_format
        if self._has_log_probabilities:
            listed = self._alternatives
            request |= LOG_PROBABILITIES if listed is None else listing(listed)
        return request

    @property
    def most_tokens(self) -> int:
        """The most tokens that a request allows an answer."""
        return next(iter(self._bound.values()), self._fields.decoding.max_tokens)

    @property
    def _bound(self) -> dict[str, int]:
        """The token limit of answers that a schema binds, unless the definition says one."""
        fields, limit = self._fields, self.capabilities.limit_field
        is_said = "max_tokens" in fields.decoding.model_fields_set
        thinks = fields.reasoning_effort or limit != "max_tokens"  # what thinks has the other name
        most = self.form.most_tokens if self._is_constrained else None
        return {} if most is None or is_said or thinks else {limit: most}

    def _asker(self, budget: Budget, at_most_s: float = math.inf) -> Asker:
        endpoint, timeout_s = self._site.endpoint, min(self._fields.timeout_s, at_most_s)
        return Asker(
            Connection(endpoint, timeout_s),
            Retries(endpoint, self._site.policy, self._warn),
            Meter(budget, self._fields.price_per_million, self.counts, self._warn),
            concurrency=self._fields.concurrency,
            timeout_s=timeout_s,
        )

    def _warn(self, text: str) -> None:
        self._site.warn(self._site.endpoint.redact(text))

    def _found(self, ask: Callable[..., Any], *known: Capabilities) -> Capabilities:
        """Probe the endpoint's capabilities and store them."""
        asker = self._asker(Budget(), _PROBE_S)  # small, and needed to know what is stored

        def send(request: dict[str, Any]) -> Any:
            return asker.send(QUESTION, request, require_message)

        try:
            probe = Probe(send, asker.connection, self._model, self._fields.decoding)
            found: Capabilities = run_once(ask(probe, *known), asker.connection.close)
        except EndpointError as error:
            message = self._site.endpoint.redact(f"judge {self._slug!r}: {error}")
            kind = type(error)
        else:
            remember(self._site.folder, self._place, self._model, found)
            return found
        raise kind(message)
