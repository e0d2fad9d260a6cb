"""Served judges beside the Batch API: asked in batches, or live where no batch is under way."""

import contextlib
import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from resources.judges.batch.batches import Awaited, Batches, Pace, Reservations, Tell
from resources.judges.batch.provider import Limits, Provider, read_result
from resources.judges.batch.records import Records
from resources.judges.budget import Budget, Meter
from resources.judges.forms.form import Reading
from resources.judges.judge import Calls, Presentation, judge_key
from resources.judges.live.asking import redacted, seeded
from resources.judges.live.endpoint import EndpointError
from resources.judges.live.judge import ServedJudge
from resources.judges.live.troubles import Retries, fit

_LOG = logging.getLogger(__name__)


class LiveJudge(ServedJudge):
    """A judge of kind ``openai``, beside the records of its batches."""

    @property
    def _records(self) -> Records:
        return Records(self._site.folder / "batches" / judge_key(self))

    def acknowledge(self, stored: Mapping[str, datetime]) -> None:
        """Take note of the times of stored failures, which are wanted for a second time."""
        self._records.close_stored(stored)

    def answer(
        self, presentations: Sequence[Presentation], budget: Budget
    ) -> Generator[tuple[int, Reading]]:
        """Yield the answers of a served judge; none that a batch is to bring."""
        if presentations:
            self._require_collected(presentations)
        yield from super().answer(presentations, budget)

    def _require_collected(self, presentations: Sequence[Presentation]) -> None:
        under_way = self._records.under_way()
        if not under_way:
            return
        wanted = set(map(Calls(self).identity, presentations))
        if pending := wanted & under_way:
            raise RuntimeError(
                f"{len(pending):,} of {len(wanted):,} calls to judge {self._slug!r} were submitted "
                "in batches and are not collected; asked live, they would be paid for twice. Set "
                "'batch: true' in judges.yaml and run again to collect them (they may "
                f"take a day), or delete {self._records.folder} to give them up"
            )


class BatchJudge(LiveJudge):
    """A judge of kind ``openai`` with ``batch: true``; asked live it has the same identity."""

    def __init__(
        self,
        *served: Any,
        limits: Limits | None = None,
        pace: Pace | None = None,
        tell: Tell = _LOG.info,
    ) -> None:
        super().__init__(*served)
        self._limits, self._said = limits or Limits(), tell
        self._pace = pace or Pace(longest_s=self._fields.batch_poll_s)

    def answer(
        self, presentations: Sequence[Presentation], budget: Budget
    ) -> Generator[tuple[int, Reading]]:
        """Yield answers as batches end, also of earlier runs; an interrupt ends no batch."""
        if not presentations:
            return
        self.require_price(budget)
        positions: dict[str, list[int]] = {}
        for position, identity in enumerate(map(Calls(self).identity, presentations)):
            positions.setdefault(identity, []).append(position)
        wanted = {identity: presentations[at[0]] for identity, at in positions.items()}
        for identity, reading in self._answers(wanted, budget):
            for position in positions[identity]:
                yield position, reading._replace(shown=presentations[position])

    def _answers(
        self, wanted: dict[str, Presentation], budget: Budget
    ) -> Iterator[tuple[str, Reading]]:
        """Yield answers by call: batch after batch, for as long as the budget covers another."""
        retries = Retries(self._site.endpoint, self._site.policy, self._warn)
        meter = Meter(budget, self._fields.price_per_million, self.counts, self._warn)
        with Reservations(meter) as held:
            batches = Batches(
                Provider(retries, self._fields.timeout_s),
                self._records,
                held,
                self._body,
                partial(read_result, policy=self._site.policy, form=self.form),
                limits=self._limits,
                pace=self._pace,
                tell=self._tell,
            )
            with self._farewell(batches.awaited):
                batches.cover(wanted)
                while batches.awaited:
                    problems: list[str] = []
                    for identity, result in batches.collected(wanted):
                        if result.hopeless is not None:
                            problems.append(result.hopeless)
                            continue
                        answer, shown = (
                            redacted(result.answer, self._site.endpoint),
                            wanted.pop(identity),
                        )
                        reading = Reading(shown, answer, answer.failure or "ok", result.value)
                        yield identity, self.as_expected(reading)
                    self._require_none(problems)
                    batches.cover(wanted)

    def _body(self, shown: Presentation) -> dict[str, Any]:
        request = seeded(self._request(), shown.replicate)
        return {"messages": self._prompt.messages(shown), **request}

    def _require_none(self, problems: Sequence[str]) -> None:
        if not problems:
            return
        first, *others = dict.fromkeys(fit(problem, self._site.endpoint) for problem in problems)
        more = f" (and {len(others)} other problems)" if others else ""
        raise EndpointError(
            f"judge {self._slug!r}: {first}{more}. Correct it in judges.yaml or in the "
            "provider's account, then run again: what was answered is kept, and only the rest "
            "is submitted"
        )

    def _tell(self, text: str) -> None:
        self._said(self._site.endpoint.redact(text))

    @contextlib.contextmanager
    def _farewell(self, awaited: Mapping[str, Awaited]) -> Iterator[None]:
        """Name the batches that go on without us, however the wait ends."""
        try:
            yield
        except BaseException as error:
            if awaited:
                n_requests = sum(len(one.record.identities) for one in awaited.values())
                said = (
                    f"{len(awaited)} batches with {n_requests:,} requests go on at {self._url}; "
                    "run the same again to collect them, nothing is paid for twice"
                )
                error.add_note(said)
                self._tell(said)
                _LOG.warning(said)  # a person who stops a run is told at once, wherever it runs
            raise
