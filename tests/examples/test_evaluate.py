"""The example evaluates the sample video with the baselines, and the README shows its table."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = {
    "copy-nearest": "copy the nearest keyframe",
    "nearest-text": "the answer of the sample that reads most alike",
    "random-keyframe": "a random keyframe of another part",
    "frequent-words": "the most frequent words",
}


@pytest.mark.extra("rouge_score")
def test_the_table_of_the_readme_is_what_the_example_finds(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, ROOT / "examples" / "evaluate.py", "out"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Open out/scores.html" in done.stdout
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found: dict[str, list[float]] = {}
    for path in sorted((tmp_path / "out").glob("*.result.json")):
        result = json.loads(path.read_text())
        found.setdefault(result["engine"].removeprefix("baseline:"), []).append(result["metrics"]["rouge-l"]["value"])
    assert found.keys() == ROWS.keys()
    for name, row in ROWS.items():
        shown = re.search(rf"\| {re.escape(row)} \| ([\d.]+) ± [\d.]+ \| ([\d.]+) ± [\d.]+ \|", readme)
        assert shown
        # the last digits of a JPEG differ between processors
        assert found[name] == [pytest.approx(float(shown[1]), abs=3), pytest.approx(float(shown[2]), abs=3)]
