"""failures.jsonl of a batch: what stands in it, and that it is not written anew all the time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.corpus.test_state import fill, item
from vip.corpus.failures import FailuresFile
from vip.corpus.inputs.rows import BadRow
from vip.corpus.state import StateDatabase
from vip.dataset.items import ListItem


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("vip.corpus.failures.time", SimpleNamespace(monotonic=lambda: clock.now_s))
    return clock


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDatabase]:
    state = StateDatabase(tmp_path)
    fill(state, [item(number) for number in range(3)])
    yield state
    state.close()


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "failures.jsonl").read_text().splitlines()]


def test_rows_tell_what_failed_where_it_was_named_and_from_where_it_came(state: StateDatabase, tmp_path: Path) -> None:
    list(state.add([BadRow("???", "list.txt, line 7", "no video")]))
    state.record_failure(1, "missing", "Gone.")
    FailuresFile(state, str(tmp_path)).write()
    bad, failed = rows(tmp_path)
    assert (bad["item"], bad["kind"], bad["where"], bad["source"], bad["tries"]) == ("???", "bad_row", "list.txt, line 7", None, 0)
    assert (failed["item"], failed["kind"], failed["message"], failed["tries"]) == ("video0", "missing", "Gone.", 1)
    assert (failed["source"], failed["exit_code"]) == ("http://example.org/0.mp4", 3)


def test_it_is_written_while_the_batch_runs_but_not_at_once_and_not_in_vain(state: StateDatabase, tmp_path: Path, clock: Clock) -> None:
    file = FailuresFile(state, str(tmp_path))
    state.record_failure(1, "missing", "Gone.")
    clock.now_s += 9
    file.write_if_due()
    assert not (tmp_path / "failures.jsonl").exists()
    clock.now_s += 2
    file.write_if_due()
    assert len(rows(tmp_path)) == 1
    state.record_failure(2, "missing", "Gone too.")
    clock.now_s += 9
    file.write_if_due()
    assert len(rows(tmp_path)) == 1
    clock.now_s += 2
    file.write_if_due()
    assert len(rows(tmp_path)) == 2
    (tmp_path / "failures.jsonl").unlink()
    clock.now_s += 20
    file.write_if_due()
    assert not (tmp_path / "failures.jsonl").exists(), "nothing else has failed"


def test_where_nothing_fails_any_more_there_is_no_file(state: StateDatabase, tmp_path: Path) -> None:
    file = FailuresFile(state, str(tmp_path))
    state.record_failure(1, "missing", "Gone.")
    file.write()
    state.retry_failed(None)
    file.write()
    assert not (tmp_path / "failures.jsonl").exists()


def test_a_file_of_an_earlier_run_goes_where_nothing_failed(state: StateDatabase, tmp_path: Path) -> None:
    (tmp_path / "failures.jsonl").write_text("{}\n")
    FailuresFile(state, str(tmp_path)).write()
    assert not (tmp_path / "failures.jsonl").exists()


def test_a_list_of_failures_that_takes_long_to_write_is_written_the_more_seldom(
    state: StateDatabase, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, real = FailuresFile(state, str(tmp_path)), state.each_failure

    def slow() -> Iterator[tuple[str, str, str, int, str, str | None]]:
        clock.now_s += 3
        yield from real()

    monkeypatch.setattr(state, "each_failure", slow)
    state.record_failure(1, "missing", "Gone.")
    file.write()
    state.record_failure(2, "missing", "Gone too.")
    clock.now_s += 149
    file.write_if_due()
    assert len(rows(tmp_path)) == 1
    clock.now_s += 2
    file.write_if_due()
    assert len(rows(tmp_path)) == 2, "3 s are two per cent of 150"


def test_keyframes_without_a_description_stand_in_it_though_no_video_failed(state: StateDatabase, tmp_path: Path) -> None:
    state.record_extracted(2, rows=3, size_bytes=9, length_s=1.0, youtube_id=None, ready=True)
    state.record_undescribed(2, [("video1:0002", "refusal", "It says no.")])
    FailuresFile(state, str(tmp_path)).write()
    (row,) = rows(tmp_path)
    assert (row["item"], row["kind"], row["message"], row["where"]) == ("video1:0002", "refusal", "It says no.", "list.txt, line 2")
    assert (row["exit_code"], row["tries"], row["source"]) == (6, 1, None)


def test_a_video_of_which_nothing_was_described_has_the_exit_code_of_captions_and_no_secret_is_told(
    state: StateDatabase, tmp_path: Path
) -> None:
    fill(state, [ListItem("key", "address", "http://me:s3cret@example.org/a.mp4?token=s3cret", "list.txt, line 9")])
    state.record_failure(4, "caption", "Nothing was described.")
    FailuresFile(state, str(tmp_path)).write()
    (row,) = rows(tmp_path)
    assert (row["exit_code"], row["source"]) == (6, "http://…@example.org/a.mp4?…")
