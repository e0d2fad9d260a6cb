"""Steps: pandas in, a declared table out, no orchestrator; run in memory or by Dagster."""

from judgeline.steps.memory import STEPS, run
from judgeline.steps.step import Step, step

__all__ = ["STEPS", "Step", "run", "step"]
