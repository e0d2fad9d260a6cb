"""A judge of kind ``vllm``: known without its server, which runs only while it answers."""

import json
import logging
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property

from resources.judges.budget import Budget
from resources.judges.forms.form import Form, Reading
from resources.judges.forms.rubric import RUBRIC
from resources.judges.judge import Evidence, Presentation
from resources.judges.live.endpoint import Endpoint
from resources.judges.live.fields import ServedFields
from resources.judges.live.judge import ServedJudge
from resources.judges.live.probe import FEW_ALTERNATIVES, MOST_ALTERNATIVES, Capabilities
from resources.judges.managed.hosting import Hosting
from resources.judges.managed.options import VllmOptions
from resources.judges.managed.server import Server, running

_LOG = logging.getLogger(__name__)

_NOWHERE = Endpoint("http://127.0.0.1/v1", "none")


class ManagedJudge:
    """A judge on a vLLM server of our own.

    What the server supports is declared, not asked: an identity needs no server, so that
    answers that are stored need none either.
    """

    def __init__(
        self,
        slug: str,
        fields: ServedFields,
        options: VllmOptions,
        template: str,
        hosting: Hosting,
        form: Form = RUBRIC,
        warn: Callable[[str], None] = _LOG.warning,
    ) -> None:
        self._slug, self._fields, self._options = slug, fields, options
        self._template, self._hosting = template, hosting
        self.form, self._warn = form, warn
        self._last: Server | None = None
        self.counts: Counter[str] = Counter()

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """Everything but the presentation that shapes an answer; not how many GPUs give it."""
        return self._served(_NOWHERE).identity

    @property
    def evidence(self) -> Evidence:
        """Source of the probabilities of its answers."""
        return self._served(_NOWHERE).evidence

    @property
    def metadata(self) -> Mapping[str, str]:
        """Metadata of the server that answered last, if one was needed."""
        if self._last is None:
            return {"server": "none was started"}
        return {
            "server": f"vLLM {self._last.version}",
            "command": shlex.join(self._last.command),
            "log": str(self._last.log),
        }

    def answer(
        self, presentations: Sequence[Presentation], budget: Budget
    ) -> Iterator[tuple[int, Reading]]:
        """Yield what a served judge yields, on a server that runs until then and no longer."""
        if not presentations:
            return
        self._served(_NOWHERE).require_price(budget)
        with self._hosting.scope() as scope:
            scope.enter_context(self._hosting.claim(self._options.pool))
            server = scope.enter_context(
                running(
                    self._slug,
                    self._fields,
                    self._options,
                    self._hosting.logs,
                    self._hosting.tell,
                )
            )
            self._last = server
            asked = self._served(server.endpoint)
            asked.counts = self.counts
            for position, reading in scope.enter_context(
                closing(asked.answer(presentations, budget))
            ):
                self._require_server(reading, server)
                yield position, reading

    def _served(self, endpoint: Endpoint) -> ServedJudge:
        shaping = self._options.shaping()
        return ServedJudge(
            self._slug,
            self._fields,
            self._template,
            endpoint,
            self._hosting.logs,
            declared=Capabilities(
                "max_tokens",
                True,
                True,
                self._options.max_model_len,
                self._options.alternatives(MOST_ALTERNATIVES, FEW_ALTERNATIVES),
            ),
            named={
                "kind": "vllm",
                "endpoint": "vllm",
                "dtype": shaping.dtype,
                "max_model_len": str(shaping.max_model_len or ""),
                "extra_args": json.dumps(shaping.extra_args),
            },
            form=self.form,
            warn=self._warn,
        )

    def _require_server(self, reading: Reading, server: Server) -> None:
        """Tell a server that died from one battle that got lost: nothing more would come."""
        if reading.status == "transport" and server.has_ended():
            raise server.failure(
                f"judge {self._slug!r}: vLLM stopped with exit code {server.exit_code} while it "
                "answered; what it had answered is kept"
            )
