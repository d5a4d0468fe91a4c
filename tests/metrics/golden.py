"""Published figures in ../shared/golden, where they are here."""

from __future__ import annotations

from pathlib import Path

import pytest

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "golden"


def golden(name: str) -> Path:
    """The path of a file with published figures; the test is skipped where it is not here."""
    path = GOLDEN / name
    if not path.is_file():
        pytest.skip(f"there is no {name} beside this checkout")
    return path
