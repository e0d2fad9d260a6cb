"""Finds the batches that calls are in already, and submits the calls that are in none."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, NamedTuple, Self

from resources.judges.batch.lines import Limits, Part, Result, write_parts
from resources.judges.batch.provider import Provider
from resources.judges.batch.records import Record, Records
from resources.judges.budget import Budget, Cost
from resources.judges.judge import Presentation
from resources.judges.live.costs import Usage, counted, most_of, text_bytes
from resources.judges.live.endpoint import EndpointError
from resources.judges.live.fields import Price


class Reservations:
    """What a budget holds back by request; a context manager that leaves nothing held.

    What was submitted and has no result when the context ends counts in full: it is carried out
    and billed all the same. `counts` is added ``implausible_usage``; the first is a warning.
    """

    def __init__(
        self,
        budget: Budget,
        price: Price | None,
        warn: Callable[[str], None],
        counts: Counter[str],
    ) -> None:
        self._budget, self._price, self._warn, self._counts = budget, price, warn, counts
        self._held: dict[str, tuple[Cost, int]] = {}
        self._submitted: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for identity, (most, _) in self._held.items():
            self._budget.settle(most, most if identity in self._submitted else Cost())

    def reserve(self, identity: str, body: dict[str, Any]) -> bool:
        """Return whether the budget covers a request, and hold back what it may cost."""
        if identity in self._held:
            return True
        most = most_of(body["messages"], body, self._price)
        if not self._budget.reserve(most):
            return False
        self._held[identity] = most, text_bytes(body["messages"])
        return True

    def submit(self, identities: list[str]) -> None:
        """Note that requests are about to be submitted."""
        self._submitted.update(identities)

    def settle(self, identity: str, result: Result) -> bool:
        """Replace what is held back for a request by what it cost; return whether it was ours.

        Requests of an earlier run were paid for under its budget, and cost this one nothing.
        """
        held = self._held.pop(identity, None)
        if held is not None:
            self._budget.settle(held[0], self._cost(result, *held))
        return held is not None

    def _cost(self, result: Result, most: Cost, prompt_bytes: int) -> Cost:
        if not result.is_billed:
            return Cost()
        answer = result.answer
        said = len((answer.text or "").encode("utf-8", "surrogatepass"))
        usage = Usage(answer.prompt_tokens, answer.completion_tokens, prompt_bytes, said)
        cost, implausible = counted(usage, most, self._price)
        if implausible:
            if not self._counts["implausible_usage"]:
                self._warn(implausible)
            self._counts["implausible_usage"] += 1
        return cost


class Awaited(NamedTuple):
    """A batch, and the calls in it whose results are wanted."""

    record: Record
    identities: list[str]


class Submitter:
    """Submits each call at most once, however often the program is killed meanwhile.

    The order is: write down the calls; upload them; write down the file; create the batch; write
    down the batch. Whoever is killed in between leaves a record without a batch. One without a
    file has none. For one with a file, the provider's batches are searched; if there is none, the
    file is deleted, so that a creation still on its way must fail, and they are searched again.

    Attributes
    ----------
    awaited : dict
        Batches with wanted calls, by token; whoever collects one takes it out.
    """

    def __init__(
        self,
        provider: Provider,
        records: Records,
        held: Reservations,
        write: Callable[[Presentation], dict[str, Any]],
        *,
        limits: Limits,
    ) -> None:
        self._provider, self._records, self._held = provider, records, held
        self._write, self._limits = write, limits
        self.awaited: dict[str, Awaited] = {}

    def cover(self, wanted: Mapping[str, Presentation]) -> None:
        """Await a batch for each of the wanted calls that the budget covers."""
        with self._records.exclusive():
            there = self._there(wanted)
            missing = {i: shown for i, shown in wanted.items() if i not in there}
            for identity, record in there.items():
                self._await(record, identity)
            for part in write_parts(self._requests(missing), self._limits):
                self._await(self._submit(part), *part.identities)

    def _await(self, record: Record, *identities: str) -> None:
        self.awaited.setdefault(record.token, Awaited(record, [])).identities.extend(identities)

    def _there(self, wanted: Mapping[str, Presentation]) -> dict[str, Record]:
        """Return the latest record of each wanted call that is not to be asked anew."""
        latest: dict[str, Record] = {}
        for record in map(self._resolved, self._records.all()):
            if record is not None:
                latest |= dict.fromkeys(wanted.keys() & set(record.identities), record)
                for identity in record.answered:
                    latest.pop(identity, None)
        return {identity: latest[identity] for identity in wanted if identity in latest}

    def _requests(
        self, missing: Mapping[str, Presentation]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        for identity, shown in missing.items():
            body = self._write(shown)
            if not self._held.reserve(identity, body):
                return
            yield identity, body

    def _submit(self, part: Part) -> Record:
        self._held.submit(part.identities)
        for _ in self._provider.attempts():
            if (record := self._attempt(part)) is not None:
                return record
        raise EndpointError(
            f"the provider took {len(part.identities)} requests, but made no batch of them however "
            "often it was asked to; nothing was submitted, run again later"
        )

    def _attempt(self, part: Part) -> Record | None:
        """Return the record of a batch made of a part, or None if certainly none was."""
        record = self._records.open(part.identities)
        try:
            file_id = self._provider.upload(f"{record.token}.jsonl", part.file)
            record = self._records.save(replace(record, file_id=file_id))
            batch_id = self._provider.create(record)
        except EndpointError:
            self._records.drop(record)
            raise
        if batch_id is None:
            return self._resolved(record)
        return self._records.save(replace(record, batch_id=batch_id))

    def _resolved(self, record: Record) -> Record | None:
        """Return a record with its batch, or None, and forget it, if no batch can come of it."""
        if record.batch_id is not None:
            return record
        batch_id = self._search(record) if record.file_id is not None else None
        if batch_id is None:
            self._records.drop(record)
            return None
        return self._records.save(replace(record, batch_id=batch_id))

    def _search(self, record: Record) -> str | None:
        file_id = record.file_id or ""
        found = self._provider.find(record)
        if found is None:
            if not record.is_withdrawn:
                self._require_known(record, file_id)
                self._records.save(replace(record, is_withdrawn=True))
            self._provider.delete(file_id)
            self._provider.pause()
            found = self._provider.find(record)
        return found

    def _require_known(self, record: Record, file_id: str) -> None:
        if not self._provider.has_file(file_id):
            raise EndpointError(
                f"{len(record.identities)} requests were uploaded on {record.written_at[:10]} as "
                f"file {file_id}, which this endpoint does not show to this key; use the key that "
                "uploaded it, or, if you are sure that no batch came of it, delete "
                f"{self._records.file(record)}"
            )
