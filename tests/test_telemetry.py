"""Reports of use by libraries: off, unless the user wants them."""

from __future__ import annotations

import os

import pytest

from vip import telemetry


def test_reports_are_turned_off_and_what_the_user_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"RAY_USAGE_STATS_ENABLED": "1"}
    monkeypatch.setattr(os, "environ", environment)
    telemetry.turn_off()
    assert environment == {"ORT_DISABLE_TELEMETRY": "1", "RAY_USAGE_STATS_ENABLED": "1"}
