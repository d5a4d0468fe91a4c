"""The files of batches: whole or not there, on the disk where they have to be, and never handed in where they are not as written."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from vip.errors import StoreError
from vip.llm.batch_files import BatchFileWriter, BatchFolder, BatchJob, BatchJobList

NOW = "2026-11-22T00:00:00+00:00"


@pytest.fixture
def place(tmp_path: Path) -> BatchFolder:
    place = BatchFolder(tmp_path, tmp_path / "batches")
    place.make()
    return place


def written(place: BatchFolder, *rows: str, part: int = 1) -> BatchJob:
    writer = place.writer(part, 1)
    for row in rows:
        writer.write(f"key of {row}", f"{row}\n".encode())
    return writer.finish()


def test_a_part_says_how_much_it_holds(place: BatchFolder) -> None:
    job = written(place, "one", "two")
    assert (job.part, job.rows, job.size_bytes, job.tries, job.status) == (1, 2, 8, 1, "written")
    assert place.rows_of(1).read_bytes() == b"one\ntwo\n"
    assert place.keys_of(1) == ["key of one", "key of two"]


def test_keys_and_jobs_survive_a_power_cut_and_rows_need_not(place: BatchFolder, disk_steps: list[str]) -> None:
    written(place, "one")
    assert disk_steps == ["11 bytes", "name", "folder", "name"], "the keys, then the rows"
    disk_steps.clear()
    place.note(BatchJobList())
    assert disk_steps[1:] == ["name", "folder"]


def test_rows_for_another_try_are_copied_with_their_keys(place: BatchFolder) -> None:
    job = written(place, "one", "two", "three")
    copy = place.copy_rows(job, {"key of three", "key of one"}, 5)
    assert (copy.part, copy.rows, copy.tries) == (5, 2, 2)
    assert place.rows_of(5).read_bytes() == b"one\nthree\n"
    assert place.keys_of(5) == ["key of one", "key of three"]


@pytest.mark.parametrize("rows", [b"one\n", b"one\ntwo\nthree\n"])
def test_rows_that_are_not_as_many_as_their_keys_are_damage(rows: bytes, place: BatchFolder) -> None:
    job = written(place, "one", "two")
    place.rows_of(1).write_bytes(rows)
    with pytest.raises(StoreError, match=r"part-0001\.jsonl is damaged .*Delete .*batches and try again") as caught:
        place.copy_rows(job, {"key of one", "key of two"}, 2)
    assert sorted(path.name for path in place.folder.iterdir()) == ["part-0001.jsonl", "part-0001.keys"]
    assert caught.tb is not None, "what it holds is not closed by being forgotten"


def test_a_full_disk_leaves_no_half_a_part(place: BatchFolder) -> None:
    writer = place.writer(1, 1)

    class Full:
        def write(self, data: bytes) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    writer._rows = Full()  # type: ignore[assignment]
    with pytest.raises(StoreError, match=r"cannot be written: No space left on device"):
        writer.write("key", b"row\n")
    assert list(place.folder.iterdir()) == []


@pytest.mark.parametrize(("size", "most_bytes", "most_rows", "takes"), [(6, 10, 2, True), (7, 10, 2, False), (6, 10, 1, False)])
def test_a_part_takes_rows_up_to_both_of_its_limits(size: int, most_bytes: int, most_rows: int, takes: bool, place: BatchFolder) -> None:
    writer: BatchFileWriter = place.writer(1, 1)
    writer.write("key", b"one\n")
    assert writer.has_room(b"x" * size, most_bytes, most_rows) is takes
    writer.drop()
    assert list(place.folder.iterdir()) == []


def test_what_belongs_to_no_job_is_deleted_and_nothing_else(place: BatchFolder) -> None:
    written(place, "one", part=1)
    written(place, "two", part=12)
    for name in ("part-0002.keys", ".part-0001.jsonl.vip-part", "jobs.json", "notes.txt"):
        (place.folder / name).touch()
    place.delete_others({1})
    assert sorted(path.name for path in place.folder.iterdir()) == ["jobs.json", "notes.txt", "part-0001.jsonl", "part-0001.keys"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "written"),
        ({"job": "batch_1", "status": "in_progress"}, "not handed in by this machine"),
        ({"job": "batch_1", "status": "collected"}, "collected"),
    ],
)
def test_a_job_of_a_stranger_is_told_as_one_while_it_waits(fields: dict[str, Any], told: str) -> None:
    job = BatchJob(part=1, rows=1, size_bytes=1, created_utc=NOW, **fields)
    assert job.status_text == told
    assert not job.is_at_server
