"""How often sensors look is one number, which the environment may set."""

import os
import subprocess
import sys

import pytest

from pipelines.sensors.automation import SENSORS
from pipelines.sensors.durations import sensor_seconds
from resources.config.paths import ROOT

LISTED = """
from pipelines.sensors.automation import SENSORS
print(*(f"{one.name}={one.minimum_interval_seconds}" for one in SENSORS))
"""


def intervals(seconds: str) -> dict[str, int]:
    """Return each sensor's interval in a process whose environment says how often to look."""
    done = subprocess.run(
        [sys.executable, "-c", LISTED],
        cwd=ROOT,
        env={**os.environ, "JUDGELINE_SENSOR_SECONDS": seconds},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {name: int(value) for name, value in (one.split("=") for one in done.stdout.split())}


def test_every_sensor_looks_as_often_as_the_environment_says() -> None:
    each, purge = {sensor.name for sensor in SENSORS}, {"old_evaluations": 120}
    assert intervals("7") == dict.fromkeys(each, 7) | {"lost_runs": 14} | purge
    assert intervals("") == dict.fromkeys(each, 30) | {"lost_runs": 60} | purge


@pytest.mark.parametrize("wrong", ["0", "-3", "2.5", "soon"])
def test_a_number_that_is_none_is_refused(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGELINE_SENSOR_SECONDS", wrong)
    with pytest.raises(ValueError, match=rf"JUDGELINE_SENSOR_SECONDS is '{wrong}'.*seconds.*unset"):
        sensor_seconds()
