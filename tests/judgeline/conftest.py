"""Put the slow twins beside these tests within reach of an import, and keep Hypothesis steady."""

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("likeness")

# Two contended cores: a slow example is no failure; the same examples every time, so that a
# failure on one machine is a failure on all.
settings.register_profile(
    "judgeline", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("judgeline")
