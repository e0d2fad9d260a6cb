"""Judge verdicts in, ratings on the human Elo scale with honest intervals out.

`rank` rates the models of a table or file of judged battles; the ten packages of the science
(`judgeline.elo`, `judgeline.intervals`, ...) take arrays and need numpy and scipy alone.
"""

from importlib import import_module
from typing import Any

_API = (
    "Board",
    "Diagnosis",
    "QualityGateError",
    "Settings",
    "agreement",
    "ask",
    "consistency",
    "doctor",
    "gate",
    "judge_gate",
    "learn_judge",
    "learn_ratings",
    "pass_rates",
    "plain",
    "plan",
    "pool",
    "rank",
    "reference_ratings",
    "score",
    "split_labels",
    "vote",
    "win_rates",
)


def __getattr__(name: str) -> Any:
    """Return the version, or a name of `judgeline.api`, when it is first asked for."""
    if name == "__version__":
        return import_module("importlib.metadata").version("judgeline")
    if name in _API:
        return getattr(import_module("judgeline.api"), name)
    raise AttributeError(f"module 'judgeline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*_API, "__version__"})
