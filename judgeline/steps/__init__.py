"""Steps: pandas in, a declared table out, no orchestrator; run in memory or by Dagster.

All modules here are imported, so that `STEPS` has every step.
"""

from importlib import import_module
from pkgutil import iter_modules

from judgeline.steps.memory import run
from judgeline.steps.step import STEPS, Step, step

for _found in iter_modules(__path__):
    import_module(f"judgeline.steps.{_found.name}")

__all__ = ["STEPS", "Step", "run", "step"]
