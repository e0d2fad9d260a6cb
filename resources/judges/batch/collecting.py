"""Waits for batches, and reads what came of their requests."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from resources.judges.batch.lines import LOST, NOTHING, Result, read_lines, read_result
from resources.judges.batch.provider import Provider
from resources.judges.batch.records import Record, Records
from resources.judges.batch.submitting import Awaited
from resources.judges.forms.form import Form
from resources.judges.forms.rubric import RUBRIC
from resources.judges.judge import Presentation
from resources.judges.live.endpoint import EndpointError, OutOfReachError
from resources.judges.live.troubles import RetryPolicy

_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_GROWTH = 1.5
_SHOWN = 3

R = TypeVar("R")
Tell = Callable[[str], None]


class Pace(NamedTuple):
    """How batches are waited for.

    Attributes
    ----------
    first_s, longest_s : float
        Seconds between two looks at a batch, at first and at most.
    outage_s : float
        Seconds for which the endpoint may be out of reach at a time, once it was reached.
    """

    first_s: float = 5.0
    longest_s: float = 60.0
    outage_s: float = 7200.0


class Collector:
    """Collects the results of batches as they end.

    Attributes
    ----------
    counts : Counter
        ``unknown``: lines that belong to no request of their batch.
    """

    def __init__(
        self,
        provider: Provider,
        records: Records,
        policy: RetryPolicy,
        pace: Pace,
        tell: Tell,
        form: Form = RUBRIC,
        *,
        warn: Tell,
    ) -> None:
        self._provider, self._records, self._policy = provider, records, policy
        self._pace, self._tell, self._warn, self._form = pace, tell, warn, form
        self.counts: Counter[str] = Counter()
        self._was_reached = False

    def ended(
        self, batches: Sequence[Awaited], shown: Mapping[str, Presentation]
    ) -> Iterator[tuple[Record, dict[str, Result]]]:
        """Yield the batches as they end, with the results of their awaited calls.

        Calls whose results the provider has deleted are lost, and may be asked anew.
        """
        wanted = {one.record.token: {i: shown[i] for i in one.identities} for one in batches}
        for record, batch in self._watch([one.record for one in batches]):
            results = self._read(record, batch, wanted[record.token])
            gone = [i for i, result in results.items() if result.is_lost or not result.is_billed]
            self._records.close(record.token, gone)
            yield record, results

    def _watch(self, records: Sequence[Record]) -> Iterator[tuple[Record, Any]]:
        """Yield batches as they end, looking less and less often."""
        awaited = {record.batch_id or "": record for record in records}
        told: dict[str, str] = {}
        wait = min(self._pace.first_s, self._pace.longest_s)
        while True:
            for batch_id, record in list(awaited.items()):
                batch = self._look(record)
                state = _state(batch)
                if told.get(batch_id) != state:
                    self._tell(f"batch {batch_id} of {len(record.identities):,} requests: {state}")
                told[batch_id] = state
                if batch.status in _ENDED:
                    del awaited[batch_id]
                    yield record, batch
            if not awaited:
                return
            time.sleep(wait)
            wait = min(_GROWTH * wait, self._pace.longest_s)

    def _patiently(self, ask: Callable[[], R]) -> R:
        """Return what the provider says, after an outage too: a batch goes on through it."""
        began, is_told = time.monotonic(), False
        while True:
            try:
                said = ask()
                self._was_reached = True
                return said
            except OutOfReachError as error:
                if not self._was_reached or time.monotonic() - began > self._pace.outage_s:
                    raise
                if not is_told:
                    self._warn(f"tried again for {self._pace.outage_s:,.0f} s at most: {error}")
                is_told = True
            time.sleep(self._pace.longest_s)

    def _look(self, record: Record) -> Any:
        batch = self._patiently(lambda: self._provider.look(record.batch_id or ""))
        if batch is None:
            raise EndpointError(
                f"batch {record.batch_id}, submitted on {record.written_at[:10]} with "
                f"{len(record.identities)} requests, is unknown to this endpoint and key; use the "
                f"key that submitted it, or delete {self._records.file(record)} to ask, and pay, "
                "anew"
            )
        return batch

    def _read(
        self, record: Record, batch: Any, wanted: Mapping[str, Presentation]
    ) -> dict[str, Result]:
        """Return the results of an ended batch by call; also of those that were not carried out."""
        files = [name for name in (batch.output_file_id, batch.error_file_id) if name]
        if batch.status == "failed" and not files:
            self._records.drop(record)
            refused = f"batch {batch.id} was refused: {_reasons(batch)}"
            return dict.fromkeys(wanted, NOTHING._replace(hopeless=refused))
        found: dict[str, Result] = {}
        contents = [self._patiently(partial(self._provider.lines, name)) for name in files]
        there = [lines for lines in contents if lines is not None]
        for lines in there:
            self._add(found, lines, record, wanted)
        missing = wanted.keys() - found.keys()
        is_whole = len(there) == len(files)
        if missing and not is_whole:
            self._tell(f"results of batch {batch.id} are gone: {len(missing):,} calls are lost")
        return found | dict.fromkeys(missing, NOTHING if is_whole else LOST)

    def _add(
        self,
        found: dict[str, Result],
        lines: Iterator[bytes],
        record: Record,
        wanted: Mapping[str, Presentation],
    ) -> None:
        own = set(record.identities)
        for identity, line in read_lines(lines):
            if identity not in own:
                self.counts["unknown"] += 1
            elif identity in wanted and identity not in found:
                found[identity] = read_result(line, wanted[identity], self._policy, self._form)


def _state(batch: Any) -> str:
    counts = getattr(batch, "request_counts", None)
    if counts is None:
        return str(batch.status)
    return f"{batch.status}, {counts.completed:,} answered, {counts.failed:,} failed"


def _reasons(batch: Any) -> str:
    errors = getattr(getattr(batch, "errors", None), "data", None) or []
    said = [
        f"{one.message or one.code}" + (f" (line {one.line})" if one.line else "")
        for one in errors[:_SHOWN]
    ]
    more = f" and {len(errors) - _SHOWN} more" if len(errors) > _SHOWN else ""
    return "; ".join(said) + more if said else "the provider does not say why"
