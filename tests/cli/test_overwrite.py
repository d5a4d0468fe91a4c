"""Files that are there: without --overwrite no command of tasks replaces one, whichever of its files it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.review.questions import write_options
from tests.review.test_blanks import write_blanks
from vip.cli.app import run
from vip.tasks.fiber.collected_files import BESIDE

SAMPLES = "samples q.csv --task nextqa-mc -o there.jsonl"
OWN = "samples --task nextqa-mc --from q.csv -o there.jsonl"
ANNOTATIONS = "predict --task nextqa-mc --annotations q.csv -o there.jsonl"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (SAMPLES, "there.jsonl"),
        *((OWN, f"there{ending}") for ending in (".jsonl", ".csv", ".html", "-1.html")),
        (ANNOTATIONS, "there.jsonl"),
        ("predict s.jsonl --baseline longest -o there.jsonl", "there.jsonl"),
        ("predict s.jsonl --model run -o there.jsonl", "there.jsonl"),
        ("fiber hits b.json -o .", "hits.csv"),
        *(("fiber collect r.csv -o there.jsonl", f"there.{ending}") for ending in ("jsonl", *BESIDE)),
        *(("fiber errors p.jsonl --annotations s.jsonl -o there.html", f"there.{ending}") for ending in ("html", "csv")),
        ("fiber map r.json -o there.html", "there.html"),
    ],
)
def test_a_file_that_is_there_is_not_replaced_unasked(
    command: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_options(Path("q.csv"))
    write_blanks(Path("b.json"))
    before = sorted(path.name for path in tmp_path.iterdir())
    Path(name).write_text("mine")
    assert run(command.split()) == 2
    assert f"{name} exists already. Add --overwrite to replace it" in " ".join(capsys.readouterr().err.split())
    assert Path(name).read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, name])
