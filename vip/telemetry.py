"""Libraries that report their use to those who made them. What vip is given is nobody else's business, so it is turned off."""

from __future__ import annotations

import os

SWITCHES = {
    "ORT_DISABLE_TELEMETRY": "1",  # onnxruntime keeps an id of the machine in ~/.cache/Microsoft, and sends events with it
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""Variables that the libraries read when they are loaded."""


def turn_off() -> None:
    """Tell the libraries to report nothing, unless the user's environment says something else; to be called before they are loaded."""
    for name, value in SWITCHES.items():
        os.environ.setdefault(name, value)
