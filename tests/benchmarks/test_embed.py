"""The benchmark of embedding runs on a short video and says what it measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "embed.py"


@pytest.mark.slow
def test_quick_figures_are_those_of_each_way(tmp_path: Path) -> None:
    pytest.importorskip("open_clip")
    report = tmp_path / "embed.json"
    program = [sys.executable, BENCHMARK, "--quick", "--rounds", "1", "--device", "cpu", "--json", report]
    subprocess.run(program, check=True, capture_output=True, timeout=300)
    found = json.loads(report.read_text())
    assert found["device"].startswith("cpu")
    assert set(found["rates"]) == {"README, one at a time", "README, batches of 32", "vip"}
    assert min(found["rates"].values()) > 0
    assert found["whole"]["model loaded, ten minutes: candidates"] > 8
