"""A judge of kind ``vllm``: known without its server, which runs only while it answers."""

import json
import shlex
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from resources.judges.budget import Budget
from resources.judges.forms.form import Prompt, Reading
from resources.judges.judge import Presentation
from resources.judges.live.endpoint import Endpoint
from resources.judges.live.fields import ServedFields
from resources.judges.live.judge import ServedJudge, Site
from resources.judges.live.probe import Capabilities
from resources.judges.managed.options import Hosting, VllmOptions
from resources.judges.managed.server import Server, running

_NOWHERE = Endpoint("http://127.0.0.1/v1", "none")


class ManagedJudge(ServedJudge):
    """A judge on a vLLM server of our own; its abilities are declared, not asked."""

    def __init__(
        self,
        slug: str,
        fields: ServedFields,
        options: VllmOptions,
        prompt: Prompt,
        hosting: Hosting,
    ) -> None:
        shaping = options.shaping()
        named = {
            "kind": "vllm",
            "endpoint": "vllm",
            "dtype": shaping.dtype,
            "max_model_len": str(shaping.max_model_len or ""),
            "extra_args": json.dumps(shaping.extra_args),
        }
        declared = Capabilities(
            "max_tokens", True, True, options.max_model_len, options.alternatives
        )
        site = Site(_NOWHERE, hosting.logs, warn=hosting.warn, declared=declared, named=named)
        super().__init__(slug, fields, prompt, site)
        self._options, self._hosting = options, hosting
        self._last: Server | None = None

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
    ) -> Generator[tuple[int, Reading]]:
        """Yield the answers of a served judge, on a server that runs until then and no longer."""
        if not presentations:
            return
        self.require_price(budget)
        with self._hosting.scope() as scope:
            scope.enter_context(self._hosting.claim(self._options.pool))
            hosted = running(self._slug, self._fields, self._options, self._hosting)
            server = self._last = scope.enter_context(hosted)
            site = replace(self._site, endpoint=server.endpoint)
            asked = ServedJudge(self._slug, self._fields, self._prompt, site)
            asked.counts = self.counts
            given = scope.enter_context(closing(asked.answer(presentations, budget)))
            for position, reading in given:
                self._require_server(reading, server)
                yield position, reading

    def _require_server(self, reading: Reading, server: Server) -> None:
        """Tell a server that died from one battle that got lost: nothing more would come."""
        if reading.status == "transport" and server.has_ended():
            raise server.failure(
                f"judge {self._slug!r}: vLLM stopped with exit code {server.exit_code} while it "
                "answered; what it had answered is kept"
            )
