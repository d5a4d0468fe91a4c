"""vip.tasks.value.archive: what a zip may unpack to, and how its files are named."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.cli.terminal import vip
from tests.tasks.value.made import write_lines
from vip.errors import InputError
from vip.tasks.value.archive import unpacked_submission


def write_zip(path: Path, **files: str) -> Path:
    with ZipFile(path, "w", 8) as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "/") + "_predictions.json", text)
    return path


def test_the_files_of_a_zip_are_bounded_together_before_one_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.tasks.value.archive.MOST_UNPACKED_BYTES", 1000)
    with unpacked_submission(write_zip(tmp_path / "s.zip", vlep__vlep_dev="a" * 500, tvqa__tvqa_val="b" * 500)) as folder:
        assert len(list(folder.rglob("*.json"))) == 2
    monkeypatch.setattr("vip.tasks.value.archive._unpack", lambda *_: pytest.fail("unpacked"))
    path = write_zip(tmp_path / "t.zip", vlep__vlep_dev="a" * 500, tvqa__tvqa_val="b" * 501)
    with pytest.raises(InputError, match=r"t\.zip unpacks to more than 1,000 bytes"), unpacked_submission(path):
        pass


def test_names_are_looked_at_before_a_file_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.tasks.value.archive._unpack", lambda *_: pytest.fail("unpacked"))
    path = write_zip(tmp_path / "s.zip", tvqa__tvqa_val="{}", tvr__mine="{}")
    with (
        pytest.raises(InputError, match=r"s\.zip holds tvr/mine_predictions\.json\. Name the predictions tvr/tvr_val_predictions\.json"),
        unpacked_submission(path),
    ):
        pass


def test_a_message_names_the_zip_and_its_file(tmp_path: Path) -> None:
    rows = [{"example_id": number, "events": ["a", "b"], "answer": 0, "vid_name": "v"} for number in (7, 8)]
    (tmp_path / "annotations").mkdir()
    write_lines(tmp_path / "annotations" / "vlep_dev_release.jsonl", rows)
    write_zip(tmp_path / "s.zip", vlep__vlep_dev=json.dumps({"7": 5, "8": 1}))
    for command in (("submit", "s.zip", "-o", "out"), ("score", "s.zip", "--suite", "value", "-o", "scores")):
        done = vip(tmp_path, *command, "--annotations", "annotations")
        assert (done.code, done.err.split(": ")[1]) == (3, "s.zip/vlep/vlep_dev_predictions.json"), done.err
        assert "vip-zip-" not in done.err
