"""Which requests fail, and how: decided by the texts alone, so that a storm can be repeated."""

import hashlib
from collections.abc import Sequence

import numpy as np
from fault_server import FINAL, ODD, TRANSIENT, UNREADABLE

Texts = tuple[str, ...]

PASSING = [*TRANSIENT, *ODD, "slow"]
ONCE = {*ODD, "slow"}
"""Those that may have been paid for, so that one of them is all that asking again mends."""
LASTING = {
    **{name: failure for name, (failure, _) in FINAL.items()},
    **dict.fromkeys(UNREADABLE, "parse_error"),
}
"""Faults that asking again at once does not mend, by the failure class that they must get."""


def lot(texts: Texts, what: str) -> np.random.Generator:
    """Chance that is the same whenever the same texts are shown."""
    digest = hashlib.sha256("\0".join((what, *texts)).encode()).digest()
    return np.random.default_rng(list(digest))


class Storm:
    """A fault per request, by the texts alone; `seen` has the name of each, or None."""

    def __init__(self) -> None:
        self.seen: list[tuple[Texts, str | None]] = []

    def __call__(self, texts: Texts, n: int) -> str | None:
        faults = self.faults(texts)
        name = faults[n] if n < len(faults) else self.in_the_end(texts)
        self.seen.append((texts, name))
        return name

    def faults(self, texts: Texts) -> list[str]:
        raise NotImplementedError

    def in_the_end(self, texts: Texts) -> str | None:
        return None

    def names(self) -> list[str]:
        return [name for _, name in self.seen if name is not None]

    def share(self) -> float:
        return len(self.names()) / len(self.seen)


def passing(texts: Texts, counts: Sequence[int]) -> list[str]:
    """Faults of the way: as many as chance takes from the counts, of `ONCE` one at most."""
    chance = lot(texts, "passing")
    weights = np.where([name == "slow" for name in PASSING], 0.2, 1.0)  # each takes a timeout
    drawn = chance.choice(PASSING, chance.choice(counts), p=weights / weights.sum())
    first = next((n for n, name in enumerate(drawn) if name in ONCE), None)
    return [str(name) for n, name in enumerate(drawn) if n == first or name not in ONCE]


class PassingStorm(Storm):
    """Faults of the way, one unreadable answer at most, and refusals that do not last."""

    def faults(self, texts: Texts) -> list[str]:
        chance = lot(texts, "spoilt")
        found = passing(texts, (0, 0, 1, 1, 2))
        if chance.random() < 0.2:
            found.insert(int(chance.integers(len(found) + 1)), str(chance.choice(list(UNREADABLE))))
        if chance.random() < 0.05:
            found.append(str(chance.choice(["refusal-field", "refusal-prose"])))
        return found


class LastingStorm(Storm):
    """Faults of the way, and presentations that never get a usable answer."""

    calm = False

    def faults(self, texts: Texts) -> list[str]:
        return [] if self.calm else passing(texts, (0, 0, 0, 1, 2))

    def in_the_end(self, texts: Texts) -> str | None:
        chance = lot(texts, "lasting")
        kind = str(chance.choice(list(LASTING)))
        return kind if not self.calm and chance.random() < 0.15 else None
