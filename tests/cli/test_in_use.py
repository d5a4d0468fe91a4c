"""Two commands at once in one folder: one of them is refused, and never a mix."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.cli.terminal import HoldingServer, end, start, vip
from tests.clips import SAMPLE, result
from vip.store import load_run

PAIRS = 5


def test_a_folder_that_is_being_described_is_refused_to_others(extracted: Path, tmp_path: Path) -> None:
    with HoldingServer(answers=1) as server:
        first = start(tmp_path, "caption", "sample.vip", "--base-url", server.base_url)
        assert server.holding.wait(30)
        for command in (
            ["caption", "sample.vip", "--base-url", server.base_url],
            ["extract", SAMPLE, "-n", "4"],
            ["run", SAMPLE, "-n", "3", "--overwrite"],
        ):
            refused = vip(tmp_path, *command)
            assert refused.code == 7, refused.err
            assert refused.sentence.startswith(f"sample.vip is in use by process {first.pid} since ")
        server.released.set()
        assert end(first).code == 0
    run = load_run(extracted)
    assert {row.engine for row in run.descriptions} == {"openai:tiny-vlm"}
    assert len(run.descriptions) == 4
    assert not list(extracted.glob(".*"))


def test_pairs_of_commands_never_mix(undisturbed: Path, tmp_path: Path) -> None:
    for number in range(PAIRS):
        folder = tmp_path / str(number)
        folder.mkdir()
        pair = [start(folder, "run", SAMPLE, "-n", "4", "--engine", "offline") for _ in range(2)]
        codes = sorted(end(process).code for process in pair)
        assert codes in ([0, 7], [0, 0])
        assert result(folder / "sample.vip") == result(undisturbed)
        assert [path.name for path in (folder / "sample.vip").iterdir() if path.name.startswith(".")] == []


def test_of_several_videos_only_the_one_in_use_is_left_out(extracted: Path, tmp_path: Path) -> None:
    shutil.copyfile(SAMPLE, tmp_path / "other.mp4")
    with HoldingServer(answers=0) as server:
        first = start(tmp_path, "caption", "sample.vip", "--base-url", server.base_url)
        assert server.holding.wait(30)
        both = vip(tmp_path, "extract", SAMPLE, "other.mp4", "-n", "4")
        assert both.code == 8, both.err
        assert any("is in use by process" in note for note in both.notes)
        assert len(load_run(tmp_path / "other.vip").keyframes) == 4
        server.released.set()
        end(first)
