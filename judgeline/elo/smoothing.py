"""Label smoothing, a baseline of the paper: what a decisive outcome of the judge counts as."""

from collections.abc import Collection

SMOOTHING_LEVELS: tuple[float, ...] = (0.55, 0.65, 0.75, 0.85, 0.95)
"""Label-smoothing baselines of the paper: what a decisive judge outcome counts as."""


def baseline(level: float) -> str:
    """Return the name of the method that smooths hard outcomes to a level."""
    return f"smoothed-{level!r}"


def levels_in(methods: Collection[str]) -> tuple[float, ...]:
    """Return the smoothing levels that methods name: each is a fit of its own."""
    return tuple(level for level in SMOOTHING_LEVELS if baseline(level) in methods)


def is_baseline(method: str) -> bool:
    """Return whether a method smooths hard outcomes, whose random stream it shares."""
    return method.startswith("smoothed-")
