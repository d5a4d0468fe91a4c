"""`vip export`, as a user runs it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.terminal import vip


def test_captions_become_subtitles(undisturbed: Path, tmp_path: Path) -> None:
    done = vip(tmp_path, "export", undisturbed, "--to", "vtt")
    assert done.code == 0
    assert re.fullmatch(
        r"Of 4 captions, \d ends? early with … for lack of time .* Export with --to jsonl to have all of the text.", done.sentence
    )
    assert done.out == "4 keyframes of 1 video, 4 described, in 1 file in sample-vtt\n"
    assert (tmp_path / "sample-vtt" / "sample.vtt").read_text().count(" --> ") >= 4


def test_json_says_what_was_written(undisturbed: Path, tmp_path: Path) -> None:
    done = vip(tmp_path, "export", undisturbed, "--to", "hf", "-o", "out", "--json")
    assert done.code == 0, done.err
    (row,) = done.rows
    assert (row["format"], row["out"], row["videos"], row["keyframes"], row["files"]) == ("hf", "out", 1, 4, 2)
    assert row == json.loads((tmp_path / "out" / "export.json").read_text())


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("none.vip", "--to", "vtt"), 3, "none.vip is not a folder."),
        (("{run}", "--to", "avi"), 2, 'There is no format "avi".'),
        (("{run}",), 2, "Missing option '--to'."),
        (("{run}", "--to", "hf", "-o", "file"), 7, "file cannot be written: File exists."),
        (("nosuch://x", "--to", "hf"), 2, "nosuch://x/shards is no address of files."),
    ],
)
def test_a_mistake_is_one_sentence(arguments: tuple[str, ...], code: int, sentence: str, undisturbed: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    done = vip(tmp_path, "export", *(one.format(run=undisturbed) for one in arguments))
    assert (done.code, done.out) == (code, "")
    assert done.sentence.startswith(sentence)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_run_that_is_not_described_says_what_to_do(extracted: Path, tmp_path: Path) -> None:
    done = vip(tmp_path, "export", extracted, "--to", "vtt", "--json")
    assert done.code == 3
    assert done.sentence.endswith("Run `vip caption` first.")
    assert done.rows[0]["exit_code"] == 3
