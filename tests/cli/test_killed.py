"""Killed at any moment, the same command started again finishes with the same result, and pays for nothing twice."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.api_server import ApiServer
from tests.cli.terminal import ROOT, HoldingServer, end, start, vip, wait_for_rows
from tests.clips import SAMPLE, clip, result, stamps

RUN = ("run", SAMPLE, "-n", "4", "--engine", "offline")
SMALL = ("run", "small.mp4", "-n", "2", "--engine", "offline")
WRITES = 13  # manifest, candidates, vectors, looks, thumbnails, manifest, 2 pictures, rows, manifest, descriptions, manifest, page
PIECES = (
    "candidates.jsonl",
    "embeddings.npz",
    "analysis.npz",
    "keyframes.jsonl",
    "keyframes",
    "descriptions.jsonl",
    "manifest.json",
    "report.html",
    "thumbnails.zip",
)


def killed(folder: Path, where: str, number: int, *command: str | Path, **variables: str) -> int:
    return vip(folder, where, str(number), *command, module="tests.cli.killer", PYTHONPATH=str(ROOT), **variables).code


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a short video and its run."""
    folder = tmp_path_factory.mktemp("small")
    clip(folder / "small.mp4", range(4))
    assert vip(folder, *SMALL).code == 0
    return folder


def ended(folder: Path) -> dict[str, Any]:
    """What a run came to, but for what it spent: a process that is killed can note that nowhere."""
    found = result(folder)
    del found["manifest.json"]["captioning"]["spent"]
    return found


def finished(folder: Path, command: Sequence[str | Path] = RUN) -> dict[str, Any]:
    """The result of the same command, started again."""
    done = vip(folder, *command)
    assert done.code == 0, done.err
    found = ended(folder / f"{Path(command[1]).stem}.vip")
    assert not [name for name in found if name.endswith(".vip-part")]
    assert {name.partition("/")[0] for name in found} == set(PIECES)
    return found


@pytest.mark.parametrize("write", range(1, WRITES + 1))
def test_killed_in_any_write_a_run_ends_as_if_undisturbed(write: int, small: Path, tmp_path: Path) -> None:
    shutil.copy2(small / "small.mp4", tmp_path)
    assert killed(tmp_path, "write", write, *SMALL) == -signal.SIGKILL
    assert list(tmp_path.rglob("*.vip-part"))
    assert finished(tmp_path, SMALL) == ended(small / "small.vip")


def test_those_are_all_the_writes_of_a_run(small: Path, tmp_path: Path) -> None:
    shutil.copy2(small / "small.mp4", tmp_path)
    assert killed(tmp_path, "write", WRITES + 1, *SMALL) == 0


@pytest.mark.parametrize("row", [1, 3])
def test_killed_in_a_row_of_the_journal_the_other_rows_are_kept(row: int, undisturbed: Path, tmp_path: Path) -> None:
    assert killed(tmp_path, "row", row, *RUN) == -signal.SIGKILL
    journal = tmp_path / "sample.vip" / "descriptions.partial.jsonl"
    whole = journal.read_bytes().rpartition(b"\n")[0].splitlines()
    assert len(whole) == row - 1
    assert finished(tmp_path) == ended(undisturbed)
    described = (tmp_path / "sample.vip" / "descriptions.jsonl").read_bytes().splitlines()
    assert set(whole) <= set(described)  # byte for byte: not made again
    assert not journal.exists()


def test_killed_again_and_again_at_any_time_a_run_still_ends_as_if_undisturbed(undisturbed: Path, tmp_path: Path) -> None:
    deaths = 0
    for delay_s in (0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        process = start(tmp_path, *RUN)
        time.sleep(delay_s)
        process.kill()
        deaths += end(process).code == -signal.SIGKILL
    assert deaths
    assert finished(tmp_path) == ended(undisturbed)


def test_what_was_chosen_before_the_kill_is_not_decoded_again(undisturbed: Path, tmp_path: Path) -> None:
    assert killed(tmp_path, "picture", 2, *RUN) == -signal.SIGKILL
    folder = tmp_path / "sample.vip"
    before = {name: at for name, at in stamps(folder).items() if ".vip-part" not in name and name != "manifest.json"}
    assert {"candidates.jsonl", "embeddings.npz", "analysis.npz", "thumbnails.zip"} < set(before)
    assert len([name for name in before if name.startswith("keyframes/")]) >= 1
    finished(tmp_path)
    after = stamps(folder)
    assert {name: after[name] for name in before} == before


# ---------------------------------------------------------------- captions


def test_killed_in_the_middle_of_captions_only_what_was_in_flight_is_asked_again(extracted: Path, tmp_path: Path) -> None:
    with HoldingServer(answers=2) as server:
        process = start(tmp_path, "caption", "sample.vip", OPENAI_BASE_URL=server.base_url)
        try:
            assert server.holding.wait(30)
            kept = wait_for_rows(extracted / "descriptions.partial.jsonl", 2)
        finally:
            process.kill()
            assert end(process).code == -signal.SIGKILL
        server.answers = 1000
        server.released.set()
        before = len(server.chats)
        done = vip(tmp_path, "caption", "sample.vip", OPENAI_BASE_URL=server.base_url)
        asked = len(server.chats) - before
        assert server.stats().most_answered == 1
    assert done.code == 0, done.err
    assert asked == 4 - len(kept) == 2
    rows = (extracted / "descriptions.jsonl").read_bytes().splitlines(keepends=True)
    assert len(rows) == 4
    assert set(kept) <= set(rows)


def test_rows_that_were_paid_for_survive_a_kill(extracted: Path, tmp_path: Path) -> None:
    with ApiServer() as server:
        variables = {"OPENAI_BASE_URL": server.base_url}
        assert killed(tmp_path, "row", 3, "caption", "sample.vip", **variables) == -signal.SIGKILL
        before = len(server.chats)
        assert vip(tmp_path, "caption", "sample.vip", **variables).code == 0
        assert len(server.chats) - before <= 1  # what was on its way; the answer of the third row was kept before the row was written
        assert server.stats().answered == 4
        chats = len(server.chats)
        shutil.copytree(extracted, tmp_path / "copy.vip")
        assert vip(tmp_path, "caption", "copy.vip", XDG_CACHE_HOME=str(tmp_path / "another"), **variables).code == 0
        assert len(server.chats) == chats
