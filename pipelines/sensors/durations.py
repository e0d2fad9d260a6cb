"""Durations that environment variables may set, as whole numbers from 1 on."""

import os
from typing import Any

import dagster as dg


def sensor_seconds() -> int:
    """Return the seconds between two looks of a sensor; Dagster's daemon looks every five."""
    return whole_number("JUDGELINE_SENSOR_SECONDS", 30, "seconds")


def whole_number(variable: str, default: int, unit: str) -> int:
    """Return a variable of the environment as a whole number, or the default."""
    text = os.environ.get(variable) or str(default)
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(
            f"{variable} is {text!r}, not a whole number of {unit} from 1; correct it, or unset it "
            f"for {default}"
        )
    return int(text)


RUNNING: dict[str, Any] = {
    "minimum_interval_seconds": sensor_seconds(),
    "default_status": dg.DefaultSensorStatus.RUNNING,
}
"""Options of a sensor that looks from the start, as often as when its definition was loaded."""
