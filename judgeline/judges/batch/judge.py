"""Judges beside the Batch API: each call is submitted once, waited for, and its result read."""

import contextlib
import logging
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, Self, TypeVar

from judgeline.judges.batch.provider import (
    LOST,
    NOTHING,
    Limits,
    Part,
    Provider,
    Result,
    read_lines,
    read_result,
    write_parts,
)
from judgeline.judges.batch.records import Record, Records
from judgeline.judges.budget import Budget, Cost, Meter, most_of, text_bytes
from judgeline.judges.forms.form import Reading
from judgeline.judges.judge import Calls, judge_key
from judgeline.judges.live.asking import redacted, seeded
from judgeline.judges.live.endpoint import EndpointError, OutOfReachError
from judgeline.judges.live.judge import ServedJudge
from judgeline.judges.live.replies import member
from judgeline.judges.live.troubles import Retries, fit
from judgeline.judges.presentation import Presentation

_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_GROWTH = 1.5
_SHOWN = 3

R = TypeVar("R")
Tell = Callable[[str], None]


class Pace(NamedTuple):
    """Seconds between two looks at a batch, at first and at most, and of an outage at most."""

    first_s: float = 5.0
    longest_s: float = 60.0
    outage_s: float = 7200.0


class Reservations:
    """Reservations of a budget by request; a context manager that releases or settles all.

    What was submitted and has no result then counts in full: it is carried out and billed all the
    same.
    """

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self._held: dict[str, tuple[Cost, int]] = {}
        self._submitted: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for identity, (most, _size) in self._held.items():
            self.meter.budget.settle(most, most if identity in self._submitted else Cost())

    def reserve(self, identity: str, body: dict[str, Any]) -> bool:
        """Reserve the greatest cost of a request; return whether the budget covers it."""
        if identity in self._held:
            return True
        most = most_of(body["messages"], body, self.meter.price)
        if not self.meter.budget.reserve(most):
            return False
        self._held[identity] = most, text_bytes(body["messages"])
        return True

    def submit(self, identities: list[str]) -> None:
        """Note that requests are about to be submitted."""
        self._submitted.update(identities)

    def settle(self, identity: str, result: Result) -> bool:
        """Replace the reservation of a request by its cost; return whether it was ours.

        Requests of an earlier run were paid for under its budget, and cost this one nothing.
        """
        if identity not in self._held:
            return False
        most, prompt_bytes = self._held.pop(identity)
        answer = result.answer
        said = len((answer.text or "").encode("utf-8", "surrogatepass"))
        stated = answer.prompt_tokens, answer.completion_tokens
        cost = self.meter.cost(stated, (prompt_bytes, said), most) if result.is_billed else Cost()
        self.meter.budget.settle(most, cost)
        return True


@dataclass(repr=False)
class Batches:
    """Submits each call at most once, however often the program is killed meanwhile, and collects.

    The order is: write down the calls; upload them; write down the file; create the batch; write
    down the batch. Whoever is killed in between leaves a record without a batch. One without a
    file has none. For one with a file, the provider's batches are searched; if there is none, the
    file is deleted, so that a creation still on its way must fail, and they are searched again.
    `awaited` has by token the batches with wanted calls, and these. The meter's `counts` are added
    ``unknown``: lines that belong to no request of their batch.
    """

    provider: Provider
    records: Records
    held: Reservations
    write: Callable[[Presentation], dict[str, Any]]
    read: Callable[[dict[str, Any], Presentation], Result]
    limits: Limits
    pace: Pace
    tell: Tell
    awaited: dict[str, tuple[Record, list[str]]] = field(default_factory=dict)
    _was_reached: bool = False

    def cover(self, wanted: Mapping[str, Presentation]) -> None:
        """Await a batch for each of the wanted calls that the budget covers."""
        with self.records.exclusive():
            there = self._there(wanted)
            missing = {i: shown for i, shown in wanted.items() if i not in there}
            for identity, record in there.items():
                self._await(record, identity)
            for part in write_parts(self._requests(missing), self.limits):
                self._await(self._submit(part), *part.identities)

    def _await(self, record: Record, *identities: str) -> None:
        self.awaited.setdefault(record.token, (record, []))[1].extend(identities)

    def _there(self, wanted: Mapping[str, Presentation]) -> dict[str, Record]:
        """Return the latest record of each wanted call that is not to be asked anew."""
        latest: dict[str, Record] = {}
        for record in map(self._resolved, self.records.all()):
            if record is not None:
                latest |= dict.fromkeys(wanted.keys() & set(record.identities), record)
                for identity in record.answered:
                    latest.pop(identity, None)
        return {identity: latest[identity] for identity in wanted if identity in latest}

    def _requests(
        self, missing: Mapping[str, Presentation]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        for identity, shown in missing.items():
            body = self.write(shown)
            if not self.held.reserve(identity, body):
                return
            yield identity, body

    def _submit(self, part: Part) -> Record:
        self.held.submit(part.identities)
        for _ in self.provider.attempts():
            if (record := self._attempt(part)) is not None:
                return record
        raise EndpointError(
            f"the provider took {len(part.identities)} requests, but made no batch of them however "
            "often it was asked to; nothing was submitted, run again later"
        )

    def _attempt(self, part: Part) -> Record | None:
        """Return the record of a batch made of a part, or None if certainly none was."""
        record = self.records.open(part.identities)
        try:
            file_id = self.provider.upload(f"{record.token}.jsonl", part.file)
            record = self.records.save(replace(record, file_id=file_id))
            batch_id = self.provider.create(record)
        except EndpointError:
            self.records.drop(record)
            raise
        if batch_id is None:
            return self._resolved(record)
        return self.records.save(replace(record, batch_id=batch_id))

    def _resolved(self, record: Record) -> Record | None:
        """Return a record with its batch, or None, and forget it, if no batch can come of it."""
        if record.batch_id is not None:
            return record
        batch_id = self._search(record) if record.file_id is not None else None
        if batch_id is None:
            self.records.drop(record)
            return None
        return self.records.save(replace(record, batch_id=batch_id))

    def _search(self, record: Record) -> str | None:
        file_id, found = record.file_id or "", self.provider.find(record)
        if found is not None:
            return found
        if not record.is_withdrawn:
            if not self.provider.has_file(file_id):
                raise EndpointError(
                    f"{len(record.identities)} requests were uploaded on {record.written_at[:10]} "
                    f"as file {file_id}, which this endpoint does not show to this key; use the "
                    "key that uploaded it, or, if you are sure that no batch came of it, delete "
                    f"{self.records.file(record.token)}"
                )
            self.records.save(replace(record, is_withdrawn=True))
        self.provider.delete(file_id)
        self.provider.pause()
        return self.provider.find(record)

    def collected(self, shown: Mapping[str, Presentation]) -> Iterator[tuple[str, Result]]:
        """Yield the results of the awaited calls, as their batches end.

        Calls whose results the provider has deleted are lost. Those of earlier runs are left out,
        to be asked anew; what this run submitted and lost is not bought twice in it.
        """
        for record, batch in self._watch([record for record, _ in self.awaited.values()]):
            wanted = {i: shown[i] for i in self.awaited[record.token][1]}
            results = self._read(record, batch, wanted)
            gone = [i for i, result in results.items() if result.is_lost or not result.is_billed]
            self.records.close(record.token, gone)
            del self.awaited[record.token]
            ours = [i for i, one in results.items() if self.held.settle(i, one) or not one.is_lost]
            yield from ((i, results[i]) for i in ours)

    def _watch(self, records: Sequence[Record]) -> Iterator[tuple[Record, Any]]:
        """Yield batches as they end, polled at growing intervals."""
        awaited = {record.batch_id or "": record for record in records}
        told: dict[str, str] = {}
        wait = min(self.pace.first_s, self.pace.longest_s)
        while True:
            for batch_id, record in list(awaited.items()):
                batch = self._look(record)
                state = _state(batch)
                if told.get(batch_id) != state:
                    self.tell(f"batch {batch_id} of {len(record.identities):,} requests: {state}")
                told[batch_id] = state
                if batch.get("status") in _ENDED:
                    del awaited[batch_id]
                    yield record, batch
            if not awaited:
                return
            time.sleep(wait)
            wait = min(_GROWTH * wait, self.pace.longest_s)

    def _patiently(self, ask: Callable[[], R]) -> R:
        """Return the provider's reply, after an outage too: a batch goes on through it."""
        began, is_told = time.monotonic(), False
        while True:
            try:
                said = ask()
                self._was_reached = True
                return said
            except OutOfReachError as error:
                if not self._was_reached or time.monotonic() - began > self.pace.outage_s:
                    raise
                if not is_told:
                    self.held.meter.warn(
                        f"tried again for {self.pace.outage_s:,.0f} s at most: {error}"
                    )
                is_told = True
            time.sleep(self.pace.longest_s)

    def _look(self, record: Record) -> Any:
        batch = self._patiently(lambda: self.provider.look(record.batch_id or ""))
        if batch is None:
            raise EndpointError(
                f"batch {record.batch_id}, submitted on {record.written_at[:10]} with "
                f"{len(record.identities)} requests, is unknown to this endpoint and key; use the "
                f"key that submitted it, or delete {self.records.file(record.token)} to ask, and "
                "pay, anew"
            )
        return batch

    def _read(
        self, record: Record, batch: Any, wanted: Mapping[str, Presentation]
    ) -> dict[str, Result]:
        """Return the results of an ended batch by call; also of those that were not carried out."""
        files = [batch[name] for name in ("output_file_id", "error_file_id") if batch.get(name)]
        if batch["status"] == "failed" and not files:
            self.records.drop(record)
            refused = f"batch {batch['id']} was refused: {_reasons(batch)}"
            return dict.fromkeys(wanted, NOTHING._replace(hopeless=refused))
        found: dict[str, Result] = {}
        contents = [self._patiently(partial(self.provider.lines, name)) for name in files]
        there = [lines for lines in contents if lines is not None]
        own = set(record.identities)
        for identity, line in chain.from_iterable(map(read_lines, there)):
            if identity not in own:
                self.held.meter.counts["unknown"] += 1
            elif identity in wanted and identity not in found:
                found[identity] = self.read(line, wanted[identity])
        missing = wanted.keys() - found.keys()
        is_whole = len(there) == len(files)
        if missing and not is_whole:
            self.tell(f"results of batch {batch['id']} are gone: {len(missing):,} calls are lost")
        return found | dict.fromkeys(missing, NOTHING if is_whole else LOST)


def _state(batch: Any) -> str:
    status, counts = str(batch.get("status")), batch.get("request_counts")
    if not isinstance(counts, dict):
        return status
    done, failed = counts.get("completed"), counts.get("failed")
    return f"{status}, {done or 0:,} answered, {failed or 0:,} failed"


def _reasons(batch: Any) -> str:
    listed = member(batch.get("errors"), "data")
    errors = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    said = [
        f"{one.get('message') or one.get('code')}"
        + (f" (line {line})" if (line := one.get("line")) else "")
        for one in errors[:_SHOWN]
    ]
    more = f" and {len(errors) - _SHOWN} more" if len(errors) > _SHOWN else ""
    return "; ".join(said) + more if said else "the provider does not say why"


_LOG = logging.getLogger(__name__)


class LiveJudge(ServedJudge):
    """A judge of kind ``openai``, beside the records of its batches."""

    @property
    def _records(self) -> Records:
        return Records(self._site.folder / "batches" / judge_key(self))

    def acknowledge(self, stored: Mapping[str, datetime]) -> None:
        """Record failures that are stored, with their times: a second answer is wanted."""
        self._records.close_stored(stored)

    def answer(
        self, presentations: Sequence[Presentation], budget: Budget
    ) -> Generator[tuple[int, Reading]]:
        """Yield the answers of a served judge; none that a batch is to bring."""
        under_way = self._records.under_way() if presentations else set()
        wanted = set(map(Calls(self).identity, presentations)) if under_way else set()
        if pending := wanted & under_way:
            raise RuntimeError(
                f"{len(pending):,} of {len(wanted):,} calls to judge {self._slug!r} were submitted "
                "in batches and are not collected; asked live, they would be paid for twice. Set "
                "'batch: true' in judges.yaml and run again to collect them (they may "
                f"take a day), or delete {self._records.folder} to give them up"
            )
        yield from super().answer(presentations, budget)


class BatchJudge(LiveJudge):
    """A judge of kind ``openai`` with ``batch: true``.

    It has the identity of the judge that is asked live. An answer that cannot be read is not asked
    for a second time in the same run.
    """

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

    @property
    def _bound(self) -> dict[str, int]:
        return {}  # an answer that it cuts off would come a batch later

    def answer(
        self, presentations: Sequence[Presentation], budget: Budget
    ) -> Generator[tuple[int, Reading]]:
        """Yield answers as their batches end, each with the position of its presentation.

        Calls that an earlier run submitted are collected, whatever became of that run. Closing the
        iterator, or an interrupt, leaves batches to go on at the provider.
        """
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
                        answer = redacted(result.answer, self._site.endpoint)
                        status = answer.failure or "ok"
                        reading = Reading(wanted.pop(identity), answer, status, result.value)
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
    def _farewell(self, awaited: Mapping[str, tuple[Record, list[str]]]) -> Iterator[None]:
        """Log the batches still under way, however the wait ends."""
        try:
            yield
        except BaseException as error:
            if awaited:
                n_requests = sum(len(record.identities) for record, _ in awaited.values())
                said = (
                    f"{len(awaited)} batches with {n_requests:,} requests go on at {self._url}; "
                    "run the same again to collect them, nothing is paid for twice"
                )
                error.add_note(said)
                self._tell(said)
                _LOG.warning(said)  # a person who stops a run is told at once, wherever it runs
            raise
