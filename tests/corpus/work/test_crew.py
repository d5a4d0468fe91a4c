"""What a crew takes on: enough that nobody waits, and no more than its downloads may hold. Its processes are tried by whole batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from vip.corpus.choices import Choices
from vip.corpus.work.crew import Crew, plan_of
from vip.corpus.work.hand import Job
from vip.download.items import Item


def job(number: int, kind: str) -> Job:
    return Job(number, Item(f"v{number}", kind, f"/v{number}.mp4", "list.txt, line 1"))  # type: ignore[arg-type]


def taken(crew: Crew, kind: str) -> int:
    """How many jobs of a kind it takes before any is done."""
    count = 0
    while count < 100 and crew.takes(fetch=kind != "file"):
        crew.give(job(count, kind))
        count += 1
    return count


@pytest.mark.parametrize(("workers", "files"), [(1, 2), (3, 6)])
def test_each_worker_has_a_video_and_another_that_waits(workers: int, files: int, tmp_path: Path) -> None:
    crew = Crew(plan_of(Choices(), tmp_path, ledger=tmp_path), workers, 0)
    assert taken(crew, "file") == files
    assert not crew.takes(fetch=True), "nobody fetches"


@pytest.mark.parametrize(("waiting", "downloads"), [(0, 4), (2, 4), (3, 0)])
def test_as_many_are_fetched_as_there_are_fetchers_unless_too_many_wait_already(waiting: int, downloads: int, tmp_path: Path) -> None:
    crew = Crew(plan_of(Choices(), tmp_path, ledger=tmp_path), 1, 4)
    for number in range(waiting):
        crew.give(job(1000 + number, "file"))
    assert taken(crew, "address") == downloads
    crew.close()
