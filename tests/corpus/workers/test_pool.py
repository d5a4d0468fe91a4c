"""A pool of processes: it takes enough work that none is idle and no more than its downloads may hold, and each item ends once.

Its processes are tried by whole batches; here they send what the test tells them to send.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.corpus.workers.children import Children, FakeChild, Gone, Pipe, children_of
from tests.corpus.workers.test_disk_budget import held
from vip.config import BatchSettings, ExtractSettings
from vip.corpus.settings import BatchConfig
from vip.corpus.workers.disk_budget import DiskAllowance
from vip.corpus.workers.pool import Downloaded, ItemDone, ItemFailed, ProcessPool, fetchers_for, local_pool, worker_config
from vip.corpus.workers.worker import (
    DiskWait,
    ExtractTask,
    FetchTask,
    PartInfo,
    PartWritten,
    TaskFailed,
    VideoFetched,
    WorkerReady,
    WorkItem,
)
from vip.dataset.items import DownloadedVideo, ListItem
from vip.errors import BackendError


def job(number: int, kind: str) -> WorkItem:
    return WorkItem(number, ListItem(f"v{number}", kind, f"/v{number}.mp4", "list.txt, line 1"))  # type: ignore[arg-type]


def taken(pool: ProcessPool, kind: str) -> int:
    """How many jobs of a kind it takes before any is done."""
    count = 0
    while count < 100 and pool.has_capacity(fetch=kind != "file"):
        pool.submit(job(count, kind))
        count += 1
    return count


@pytest.mark.parametrize(("workers", "files"), [(1, 2), (3, 6)])
def test_each_worker_has_a_video_and_another_that_waits(workers: int, files: int, tmp_path: Path) -> None:
    pool = ProcessPool(worker_config(BatchConfig(), tmp_path, ledger=tmp_path), workers, 0)
    assert taken(pool, "file") == files
    assert not pool.has_capacity(fetch=True), "nobody fetches"


@pytest.mark.parametrize(("waiting", "downloads"), [(0, 4), (2, 4), (3, 0)])
def test_as_many_are_fetched_as_there_are_fetchers_unless_too_many_wait_already(waiting: int, downloads: int, tmp_path: Path) -> None:
    pool = ProcessPool(worker_config(BatchConfig(), tmp_path, ledger=tmp_path), 1, 4)
    for number in range(waiting):
        pool.submit(job(1000 + number, "file"))
    assert taken(pool, "address") == downloads
    pool.close()


# ---------------------------------------------------------------- ends of jobs

INFO = PartInfo(rows=3, size_bytes=9, length_s=1.0, youtube_id=None)
VIDEO = DownloadedVideo(Path("/videos/v1/a.mp4"))


class Clock:
    now_s = 1000.0


class Looks(list[float]):
    """How long each look for news would have waited."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("vip.corpus.workers.pool.time", SimpleNamespace(monotonic=lambda: clock.now_s, sleep=lambda seconds: None))
    return clock


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    looks = Looks()

    def wait(pipes: list[Pipe], timeout_s: float) -> list[Pipe]:
        looks.append(timeout_s)
        return [pipe for pipe in pipes if pipe.said]

    monkeypatch.setattr("vip.corpus.workers.pool.wait", wait)
    return looks


@pytest.fixture
def children(clock: Clock, looks: Looks, monkeypatch: pytest.MonkeyPatch) -> Children:
    return children_of(monkeypatch)


@pytest.fixture
def pools(tmp_path: Path, children: Children) -> Iterator[Any]:
    made: list[ProcessPool] = []

    def make(workers: int = 1, fetchers: int = 0, cores: int = 8, **batch: Any) -> ProcessPool:
        settings = BatchConfig(BatchSettings(download_timeout=60, **batch), ExtractSettings(timeout=100))
        made.append(ProcessPool(worker_config(settings, tmp_path, ledger=tmp_path), workers, fetchers, cores))
        return made[-1]

    yield make
    for pool in made:
        pool.close()


def here(pool: ProcessPool, children: Children, role: str) -> FakeChild:
    """The process of a role, ready for jobs."""
    pool.events(0.0)
    child = next(child for child in children if child.arguments == (role,) and not child.killed)
    child.pipe.said.append(WorkerReady())
    assert pool.events(0.0) == []
    return child


def test_a_file_goes_to_an_extractor_as_soon_as_that_is_here(pools: Any, children: Children, tmp_path: Path) -> None:
    pool = pools()
    pool.submit(job(1, "file"))
    pool.events(0.0)
    assert [child.arguments for child in children] == [("extract",)]
    assert children[0].sent == [pool.config], "it is not here yet"
    child = here(pool, children, "extract")
    assert child.sent[1:] == [ExtractTask(job(1, "file"), None, 8)]
    child.pipe.said.append(PartWritten(INFO))
    assert pool.events(0.0) == [ItemDone(1, tmp_path / "parts" / "v1.tar", INFO)]
    pool.submit(job(2, "file"))
    pool.events(0.0)
    assert child.sent[2:] == [ExtractTask(job(2, "file"), None, 8)], "the same process"
    assert len(children) == 1


def test_a_download_is_fetched_and_then_extracted_and_then_its_room_is_free(pools: Any, children: Children, tmp_path: Path) -> None:
    pool = pools(fetchers=1)
    pool.submit(job(1, "address"))
    fetcher = here(pool, children, "fetch")
    assert fetcher.sent[1:] == [FetchTask(job(1, "address"))]
    DiskAllowance(pool.config.disk, "v1").settle(500)
    fetcher.pipe.said.append(VideoFetched(VIDEO))
    assert pool.events(0.0) == [Downloaded(1)]
    extractor = here(pool, children, "extract")
    assert extractor.sent[1:] == [ExtractTask(job(1, "address"), VIDEO, 8)]
    assert held(tmp_path) == 500
    extractor.pipe.said.append(PartWritten(INFO))
    pool.events(0.0)
    assert held(tmp_path) == 0


def test_an_extractor_has_nothing_to_do_with_downloads_that_wait(pools: Any, children: Children) -> None:
    pool = pools(fetchers=1)
    for number in (1, 2):
        pool.submit(job(number, "address"))
    extractor, fetcher = here(pool, children, "extract"), here(pool, children, "fetch")
    pool.events(0.0)
    assert (extractor.sent[1:], fetcher.sent[1:]) == ([], [FetchTask(job(1, "address"))])
    pool.submit(job(3, "file"))
    pool.events(0.0)
    assert (extractor.sent[1:], len(fetcher.sent)) == ([ExtractTask(job(3, "file"), None, 8)], 2)


def test_what_failed_is_told_with_the_servers_word_and_holds_nothing(pools: Any, children: Children, tmp_path: Path) -> None:
    pool = pools(fetchers=1)
    pool.submit(job(1, "address"))
    fetcher = here(pool, children, "fetch")
    DiskAllowance(pool.config.disk, "v1").settle(500)
    fetcher.pipe.said.append(TaskFailed("rate_limit", "Too many requests.", 7.0))
    assert pool.events(0.0) == [ItemFailed(1, "rate_limit", "Too many requests.", 7.0)]
    assert held(tmp_path) == 0


def test_an_idle_worker_is_never_late(pools: Any, children: Children, clock: Clock) -> None:
    pool = pools(fetchers=1)
    pool.submit(job(1, "address"))
    here(pool, children, "fetch").pipe.said.append(VideoFetched(VIDEO))
    pool.events(0.0)
    here(pool, children, "extract").pipe.said.append(PartWritten(INFO))
    pool.events(0.0)
    clock.now_s += 10_000
    assert pool.events(0.0) == []
    assert [child.killed for child in children] == [0, 0]


def test_a_download_that_takes_too_long_is_ended_and_what_lies_of_it_goes(
    pools: Any, children: Children, clock: Clock, tmp_path: Path
) -> None:
    pool = pools(fetchers=1)
    pool.submit(job(1, "address"))
    fetcher = here(pool, children, "fetch")
    DiskAllowance(pool.config.disk, "v1").settle(500)
    (tmp_path / "videos" / "v1").mkdir(parents=True)
    clock.now_s += 59.9
    assert pool.events(0.0) == []
    clock.now_s += 0.2
    message = "Not downloaded within 60 s. Set --download-timeout higher."
    assert pool.events(0.0) == [ItemFailed(1, "download_timeout", message)]
    assert (fetcher.killed, held(tmp_path), (tmp_path / "videos" / "v1").exists()) == (1, 0, False)


def test_a_download_that_waits_for_room_has_all_its_time_afterwards(pools: Any, children: Children, clock: Clock) -> None:
    pool = pools(fetchers=1)
    pool.submit(job(1, "address"))
    fetcher = here(pool, children, "fetch")
    fetcher.pipe.said.append(DiskWait(True))
    pool.events(0.0)
    clock.now_s += 1000
    assert pool.events(0.0) == [], "nor is it late while it waits"
    fetcher.pipe.said.append(DiskWait(False))
    assert pool.events(0.0) == []
    clock.now_s += 59
    assert pool.events(0.0) == []
    clock.now_s += 2
    assert len(pool.events(0.0)) == 1


def test_an_extractor_that_does_not_keep_its_limit_is_ended_a_minute_later(
    pools: Any, children: Children, clock: Clock, tmp_path: Path
) -> None:
    pool = pools()
    pool.submit(job(1, "file"))
    child = here(pool, children, "extract")
    (tmp_path / "work" / "v1").mkdir(parents=True)
    clock.now_s += 159
    assert pool.events(0.0) == []
    clock.now_s += 2
    (failed,) = pool.events(0.0)
    assert (failed.id, failed.kind) == (1, "timeout")
    assert failed.message.startswith("Not extracted within 100 s.")
    assert (child.killed, (tmp_path / "work" / "v1").exists()) == (1, False)


@pytest.mark.parametrize(
    ("code", "why"), [(-9, "by the system, most likely because memory ran out"), (-11, "(exit code -11)"), (1, "(exit code 1)")]
)
def test_a_process_that_ends_costs_its_video_and_another_takes_its_place(code: int, why: str, pools: Any, children: Children) -> None:
    pool = pools()
    pool.submit(job(1, "file"))
    pool.submit(job(2, "file"))
    child = here(pool, children, "extract")
    child.code = code
    child.pipe.said.append(Gone())
    assert pool.events(0.0) == [ItemFailed(1, "crash", f"The process that worked on it ended {why}.")]
    assert here(pool, children, "extract").sent[1:] == [ExtractTask(job(2, "file"), None, 8)]


def test_three_processes_in_a_row_that_end_at_once_end_the_batch(pools: Any, children: Children) -> None:
    pool = pools()
    pool.submit(job(1, "file"))
    pool.events(0.0)
    for _ in range(2):
        children.say(Gone())
        assert pool.events(0.0) == []
    here(pool, children, "extract")
    children.say(Gone())
    pool.events(0.0)  # it was here, so that is another matter
    pool.submit(job(2, "file"))
    pool.events(0.0)
    for _ in range(2):
        children.say(Gone())
        assert pool.events(0.0) == []
    children.say(Gone())
    with pytest.raises(BackendError, match="extracts keyframes was ended by the system 3 times in a row"):
        pool.events(0.0)


def test_a_backend_that_is_missing_ends_the_batch(pools: Any, children: Children) -> None:
    pool = pools()
    pool.submit(job(1, "file"))
    pool.events(0.0)
    children.say(BackendError("It is not installed."))
    with pytest.raises(BackendError, match=r"It is not installed\."):
        pool.events(0.0)


@pytest.mark.parametrize(("jobs", "cores", "each"), [(1, 8, [8]), (2, 8, [4, 4]), (3, 8, [2, 2, 2]), (4, 8, [2, 2, 2]), (3, 2, [1, 1, 1])])
def test_the_cores_are_shared_among_the_videos_that_are_there(
    jobs: int, cores: int, each: list[int], pools: Any, children: Children
) -> None:
    pool = pools(workers=3, cores=cores)
    for number in range(jobs):
        pool.submit(job(number, "file"))
    pool.events(0.0)
    for child in children:
        child.pipe.said.append(WorkerReady())
    pool.events(0.0)
    assert [message[2] for child in children for message in child.sent[1:]] == each  # type: ignore[index]


def test_a_poll_wakes_for_the_first_deadline(pools: Any, children: Children, clock: Clock, looks: Looks) -> None:
    pool = pools(fetchers=1)
    pool.submit(job(1, "address"))
    here(pool, children, "fetch")
    pool.events(5.0)
    clock.now_s += 58
    pool.events(5.0)
    assert [round(wait_s, 2) for wait_s in looks[-2:]] == [5.0, 2.01]


def test_a_pool_leaves_nothing_behind(children: Children, tmp_path: Path) -> None:
    for name in ("videos", "work"):
        (tmp_path / name / "killed").mkdir(parents=True)
    embedding = SimpleNamespace(closed=False, close=lambda: setattr(embedding, "closed", True))
    pool = ProcessPool(worker_config(BatchConfig(), tmp_path, ledger=tmp_path), 1, 1, embedding=embedding)  # type: ignore[arg-type]
    assert sorted(path.suffix or path.name for path in tmp_path.iterdir()) == [".lock", ".sqlite", "parts"]
    pool.submit(job(1, "address"))
    here(pool, children, "fetch")
    (tmp_path / "videos" / "v1").mkdir(parents=True)
    DiskAllowance(pool.config.disk, "v1").settle(500)
    pool.close()
    assert [child.killed for child in children] == [1, 1]
    assert embedding.closed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk.sqlite", "parts"]
    assert held(tmp_path) == 0


# ---------------------------------------------------------------- whom it is made of


@pytest.mark.parametrize(("workers", "fetchers"), [(1, 2), (2, 2), (5, 5)])
def test_for_each_worker_there_is_a_fetcher_and_two_at_least(workers: int, fetchers: int) -> None:
    assert fetchers_for(workers) == fetchers


@pytest.mark.parametrize("gpu", [True, False])
@pytest.mark.parametrize("fetch", [True, False])
def test_the_pool_of_this_machine_has_one_model_for_all_where_there_is_a_gpu(
    gpu: bool, fetch: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[ExtractSettings] = []
    monkeypatch.setattr("vip.corpus.workers.pool.has_gpu", lambda: gpu)
    monkeypatch.setattr("vip.corpus.workers.embedder_process.EmbedderProcess.start", lambda self: started.append(self.settings))
    choices = BatchConfig(BatchSettings(workers=3), ExtractSettings(embedder="clip"))
    pool = local_pool(choices, tmp_path, fetch=fetch)
    assert (pool.workers, pool.fetchers, len(started)) == (3, 3 if fetch else 0, int(gpu))
    pool.close()
