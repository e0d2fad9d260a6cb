"""A served judge that is asked live, and that does not buy what is under way in batches."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from resources.judges.batch.records import Records
from resources.judges.budget import Budget
from resources.judges.calls import call_identity, judge_key
from resources.judges.judge import Answer, Presentation
from resources.judges.live.judge import ServedJudge


class LiveJudge(ServedJudge):
    """A judge of kind ``openai`` without ``batch``.

    Parameters
    ----------
    *arguments, **options
        As of `ServedJudge`.
    folder : Path
        Where is written down what was submitted in batches.
    """

    def __init__(self, *arguments: Any, folder: Path, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._folder = folder

    def answer(
        self, presentations: Sequence[Presentation], budget: Budget
    ) -> Iterator[tuple[int, Answer]]:
        """Yield what a served judge yields.

        Raises
        ------
        RuntimeError
            If any of it was submitted in a batch and not collected: it would be paid for twice.
        """
        if presentations:
            self._require_collected(presentations)
        yield from super().answer(presentations, budget)

    def acknowledge(self, stored: Mapping[str, datetime]) -> None:
        """Take note of failures that are stored: batches have nothing more to say about them."""
        self._records.close_stored(stored)

    @property
    def _records(self) -> Records:
        return Records(self._folder / judge_key(self))

    def _require_collected(self, presentations: Sequence[Presentation]) -> None:
        under_way = self._records.under_way()
        if not under_way:
            return
        wanted = {call_identity(self, shown) for shown in presentations}
        if pending := wanted & under_way:
            raise RuntimeError(
                f"{len(pending):,} of {len(wanted):,} calls to judge {self._slug!r} were submitted "
                "in batches and are not collected; asked live, they would be paid for twice. Set "
                "'batch: true' in config/judges.yaml and run again to collect them (they may "
                f"take a day), or delete {self._records.folder} to give them up"
            )
