"""The two sides of Ray without Ray: an actor that works beside the driver's calls, and a driver whose actors are told what to answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vip.config import BatchSettings, ExtractSettings
from vip.corpus.settings import BatchConfig
from vip.corpus.workers.pool import Downloaded, Event, ItemDone, ItemFailed, ItemLost
from vip.corpus.workers.ray_pool import RayEmbeddingServers, RayPool, RayWorker, _check_address, _delete_leftovers, _last_sentence
from vip.corpus.workers.worker import PartInfo, WorkItem
from vip.dataset.items import ListItem
from vip.errors import BackendError, UsageError
from vip.wording import VARIABLE

INFO = PartInfo(rows=1, size_bytes=3, length_s=1.0, youtube_id=None)


def job(number: int) -> WorkItem:
    return WorkItem(number, ListItem(f"v{number}", "file", f"/v{number}.mp4", "list.txt, line 1"))


class FakeExecutor:
    """An executor that makes a part of each job; of job 13 nothing ever comes, at job 99 it breaks."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.closed = folder, False
        self._found: list[Event] = []

    def submit(self, job: WorkItem) -> None:
        if job.id == 99:
            raise BackendError("The model is missing.")
        part = self.folder / f"{job.id}.tar"
        part.write_bytes(b"abc")
        self._found += [] if job.id == 13 else [ItemDone(job.id, part, INFO)]

    def events(self, timeout_s: float) -> list[Event]:
        time.sleep(0.001)
        found, self._found = self._found, []
        return found

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayWorker]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv(VARIABLE, "1")

    class FakeRayWorker(RayWorker):
        def make_executor(self, choices: BatchConfig, fetch: bool) -> Any:
            return FakeExecutor(self._home)

    worker = FakeRayWorker(BatchConfig(), False, None, "batch")
    yield worker
    worker._closing.set()


def test_a_actor_tells_what_came_of_its_jobs_with_the_bytes_of_the_parts(worker: RayWorker) -> None:
    assert worker.poll([job(1)], 30.0) == [ItemDone(1, b"abc", INFO)]
    assert list(worker._home.iterdir()) == []
    assert worker.poll([job(13)], 0.05) == []


def test_what_goes_wrong_in_a_actor_is_raised_where_it_is_asked(worker: RayWorker) -> None:
    with pytest.raises(BackendError, match=r"The model is missing\."):
        worker.poll([job(99)], 30.0)


def test_a_actor_that_leaves_ends_its_pool_and_deletes_its_folder(worker: RayWorker) -> None:
    worker.close()
    assert worker._executor.closed  # type: ignore[attr-defined]
    assert not worker._home.exists()


# ---------------------------------------------------------------- the driver's side


class Handle:
    """An actor of Ray that answers a turn at once: each job has failed, and of jobs from 100 on nothing is known."""

    def __init__(self) -> None:
        self.killed = self.left = False
        self.given: list[WorkItem] = []
        self.poll, self.close = SimpleNamespace(remote=self._poll), SimpleNamespace(remote=self._close)

    def _poll(self, jobs: list[WorkItem], timeout_s: float) -> list[Event]:
        self.given += jobs
        return [ItemFailed(job.id, "other", "no") for job in jobs if job.id < 100]

    def _close(self) -> None:
        self.left = True


class Turn(list[Event]):
    __hash__ = object.__hash__  # type: ignore[assignment]


class FakeRay:
    """As much of Ray as the driver uses, in this process."""

    exceptions = SimpleNamespace(RayTaskError=KeyError, RayError=OSError)

    def __init__(self) -> None:
        self.handles: list[Handle] = []

    def remote(self, **how: Any) -> Any:
        return lambda kind: SimpleNamespace(remote=self._made)

    def _made(self, *about: Any) -> Handle:
        self.handles.append(Handle())
        handle = self.handles[-1]
        handle.poll = SimpleNamespace(remote=lambda jobs, timeout_s: Turn(handle._poll(jobs, timeout_s)))
        return handle

    def init(self, **how: Any) -> None: ...

    def cluster_resources(self) -> dict[str, int]:
        return {}

    def wait(self, turns: list[Turn], **how: Any) -> tuple[list[Turn], list[Turn]]:
        return turns, []

    def get(self, turn: Turn, **how: Any) -> Turn:
        return turn

    def kill(self, handle: Handle) -> None:
        handle.killed = True

    def shutdown(self) -> None: ...


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    ray = FakeRay()
    monkeypatch.setattr("vip.corpus.workers.ray_pool.library", lambda name: ray)
    return ray


def pools(ray: FakeRay, tmp_path: Path, workers: int = 2) -> RayPool:
    return RayPool(BatchConfig(BatchConfig().batch.model_copy(update={"workers": workers})), tmp_path, fetch=False)


def test_jobs_wait_until_a_actor_is_here_and_then_go_to_the_one_that_holds_least(ray: FakeRay, tmp_path: Path) -> None:
    driver = pools(ray, tmp_path)
    assert not driver.has_capacity(fetch=False)
    assert driver.events(0.0) == []
    for number in (101, 102, 103, 104):
        assert driver.has_capacity(fetch=False)
        driver.submit(job(number))
    assert not driver.has_capacity(fetch=False), "each has two, one at work and one that waits"
    driver.events(0.0)
    assert [[one.id for one in handle.given] for handle in ray.handles] == [[101, 103], [102, 104]]


def test_what_is_given_before_any_actor_is_here_is_done_by_the_first(ray: FakeRay, tmp_path: Path) -> None:
    driver = pools(ray, tmp_path, 1)
    driver.submit(job(101))
    for _ in range(2):
        driver.events(0.0)
        assert [one.id for one in ray.handles[0].given] == [101], "it is told once"


def test_what_is_told_is_held_no_more(ray: FakeRay, tmp_path: Path) -> None:
    driver = pools(ray, tmp_path, 1)
    driver.events(0.0)
    for number in (1, 2):
        driver.submit(job(number))
    assert driver.events(0.0) == [ItemFailed(1, "other", "no"), ItemFailed(2, "other", "no")]
    assert driver.has_capacity(fetch=False)


def test_the_jobs_of_a_actor_that_is_gone_are_told_as_lost_and_another_takes_its_place(ray: FakeRay, tmp_path: Path) -> None:
    driver = pools(ray, tmp_path, 1)
    driver.events(0.0)
    driver.submit(job(101))

    def gone(turn: Turn, **how: Any) -> Turn:
        raise OSError("The actor died.")

    ray.get = gone  # type: ignore[method-assign]
    assert driver.events(0.0) == [ItemLost(101)]
    assert [handle.killed for handle in ray.handles] == [True, False]
    with pytest.raises(BackendError, match=r"Ray's workers do not start: The actor died\."):
        assert [driver.events(0.0) for _ in range(20)] == []


def test_only_actors_that_are_here_are_asked_to_leave(ray: FakeRay, tmp_path: Path) -> None:
    driver = pools(ray, tmp_path)
    driver.close()
    assert [handle.left for handle in ray.handles] == [False, False]
    driver.events(0.0)
    driver.close()
    assert [handle.left for handle in ray.handles] == [True, True]


def test_an_extractor_of_a_actor_has_one_core_and_its_downloads_two_fetchers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    worker = SimpleNamespace(_home=tmp_path / "home", _batch="batch")
    for fetch, fetchers in ((True, 2), (False, 0)):
        pool: Any = RayWorker.make_executor(worker, BatchConfig(BatchSettings(workers=9)), fetch)  # type: ignore[arg-type]
        assert (pool.workers, pool.fetchers, pool.cores) == (1, fetchers, 1)
        assert pool.config.disk.folder.parent == tmp_path, "of the machine, and not of the actor"
        pool.close()


def test_folders_of_other_users_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "vip-ray-1-a").mkdir()

    def kill(pid: int, signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr("os.kill", kill)
    _delete_leftovers()
    assert (tmp_path / "vip-ray-1-a").exists()


class Clock:
    now_s = 1000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("vip.corpus.workers.ray_pool.time", SimpleNamespace(monotonic=lambda: clock.now_s))
    return clock


@pytest.fixture
def silent(ray: FakeRay, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """No actor answers any more; how each wait was asked for."""
    waits: list[dict[str, Any]] = []

    def wait(turns: list[Turn], **how: Any) -> tuple[list[Turn], list[Turn]]:
        waits.append(how)
        return [], turns

    monkeypatch.setattr(ray, "wait", wait)
    return waits


def test_a_poll_waits_for_the_first_actor_that_has_events(ray: FakeRay, silent: list[dict[str, Any]], tmp_path: Path) -> None:
    pools(ray, tmp_path, 3).events(0.25)
    assert silent == [{"num_returns": 3, "timeout": 0}, {"num_returns": 1, "timeout": 0.25}]


def test_a_actor_that_was_here_and_says_nothing_for_two_minutes_is_given_up(ray: FakeRay, clock: Clock, tmp_path: Path) -> None:
    driver = pools(ray, tmp_path)
    driver.events(0.0)
    driver.submit(job(101))
    ray.wait = lambda turns, **how: ([], turns)  # type: ignore[method-assign]
    driver.events(0.0)
    clock.now_s += 119
    assert driver.events(0.0) == []
    clock.now_s += 2
    assert driver.events(0.0) == [ItemLost(101)]
    assert [handle.killed for handle in ray.handles] == [True, True, False, False]


def test_a_cluster_without_any_actor_is_waited_for_five_minutes(
    ray: FakeRay, silent: list[dict[str, Any]], clock: Clock, tmp_path: Path
) -> None:
    driver = pools(ray, tmp_path)
    clock.now_s += 299
    assert driver.events(0.0) == []
    clock.now_s += 2
    with pytest.raises(BackendError, match=r"Ray has had no worker for 300 s\."):
        driver.events(0.0)


def test_as_long_as_one_actor_is_here_the_cluster_is_there(ray: FakeRay, clock: Clock, tmp_path: Path) -> None:
    driver = pools(ray, tmp_path, 1)
    for _ in range(5):
        clock.now_s += 250
        assert driver.events(0.0) == []
    ray.wait = lambda turns, **how: ([], turns)  # type: ignore[method-assign]
    clock.now_s += 121
    assert driver.events(0.0) == []
    clock.now_s += 178
    assert driver.events(0.0) == []


def test_a_actor_with_all_it_takes_is_asked_less_often_and_one_that_might_be_given_more_soon(
    ray: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, asked = pools(ray, tmp_path, 1), list[float]()
    handle = ray.handles[0]
    handle.poll = SimpleNamespace(remote=lambda jobs, timeout_s: asked.append(timeout_s) or Turn())
    driver.events(0.0)
    for number in (101, 102):
        driver.submit(job(number))
        driver.events(0.0)
    assert asked == [0.5, 0.5, 5.0]


@pytest.mark.parametrize(("fetch", "room"), [(False, 2), (True, 4)])
def test_a_actor_takes_one_video_ahead_and_what_its_fetchers_have(fetch: bool, room: int, ray: FakeRay, tmp_path: Path) -> None:
    driver = RayPool(BatchConfig(BatchSettings(workers=1)), tmp_path, fetch=fetch)
    driver.events(0.0)
    count = 0
    while driver.has_capacity(fetch=fetch) and count < 10:
        driver.submit(job(101 + count))
        count += 1
    assert count == room


def test_a_video_that_came_is_held_still(ray: FakeRay, tmp_path: Path) -> None:
    driver = pools(ray, tmp_path, 1)
    driver.events(0.0)
    ray.handles[0].poll = SimpleNamespace(remote=lambda jobs, timeout_s: Turn(Downloaded(one.id) for one in jobs))
    for number in (1, 2):
        driver.submit(job(number))
    driver.events(0.0)
    assert not driver.has_capacity(fetch=False)


class TaskError(KeyError):
    """Of Ray, where an actor raised something."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def test_what_no_actor_can_do_ends_the_batch(ray: FakeRay, tmp_path: Path) -> None:
    def fails(turn: Turn, **how: Any) -> Turn:
        raise TaskError(UsageError("It does not go together."))

    driver = pools(ray, tmp_path, 1)
    ray.get = fails  # type: ignore[method-assign]
    with pytest.raises(UsageError, match=r"It does not go together\."):
        driver.events(0.0)


def test_actors_that_fail_now_and_then_do_not_end_the_batch(ray: FakeRay, tmp_path: Path) -> None:
    driver = pools(ray, tmp_path, 1)
    real, count = ray.get, [0]

    def sometimes(turn: Turn, **how: Any) -> Turn:
        count[0] += 1
        if count[0] % 4:
            raise OSError("The actor died.")
        return real(turn)

    ray.get = sometimes  # type: ignore[method-assign]
    for _ in range(40):
        assert driver.events(0.0) == []


# ---------------------------------------------------------------- the cluster


@pytest.mark.parametrize(
    ("address", "asked"),
    [
        ("head:10002", ("head", 10002)),
        ("ray://head:10002", ("head", 10002)),
        ("ray://head", ("head", 10001)),
        ("[::1]:6379", ("::1", 6379)),
    ],
)
def test_a_cluster_is_knocked_at_where_it_says(address: str, asked: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    def connection(where: tuple[str, int], timeout_s: float) -> Any:
        told.append((where, timeout_s))
        return nullcontext()

    monkeypatch.setattr("socket.create_connection", connection)
    _check_address(address)
    assert told == [(asked, 5.0)]


@pytest.mark.parametrize(
    ("said", "short"),
    [("first\nlast line", "last line."), ("It is gone.", "It is gone."), ("", "they do not answer."), ("x" * 400, "x" * 300 + ".")],
)
def test_of_a_librarys_message_the_last_line_is_told(said: str, short: str) -> None:
    assert _last_sentence(Exception(said) if said else None) == short


class Gpus(FakeRay):
    """A cluster with two GPUs; a server tells its number, unless it is gone."""

    def __init__(self) -> None:
        super().__init__()
        self.gone: set[int] = set()

    def cluster_resources(self) -> dict[str, int]:
        return {"GPU": 2}

    def _made(self, *about: Any) -> Handle:
        handle = super()._made(*about)
        number = len(self.handles)
        handle.address = SimpleNamespace(remote=lambda: number)  # type: ignore[attr-defined]
        return handle

    def get(self, turn: Any, **how: Any) -> Any:
        if turn in self.gone:
            raise OSError("The actor died.")
        return f"host:{turn}"


def test_actors_share_the_servers_of_all_gpus_and_one_that_is_gone_is_replaced() -> None:
    ray = Gpus()
    servers = RayEmbeddingServers(ray, ExtractSettings(embedder="clip"))
    assert [servers.next_address() for _ in range(3)] == ["host:1", "host:2", "host:1"]
    assert not servers.replace_if_dead("host:1")
    ray.gone.add(1)
    assert servers.replace_if_dead("host:1")
    assert [handle.killed for handle in ray.handles] == [True, False, False]
    assert servers.replace_if_dead("host:1"), "actors that have its address are gone with it"
    assert [servers.next_address() for _ in range(2)] == ["host:2", "host:3"]
    assert not servers.replace_if_dead(None), "an actor without a server needs none"


def test_without_a_model_there_is_no_server_on_a_gpu() -> None:
    ray = Gpus()
    servers = RayEmbeddingServers(ray, ExtractSettings(embedder="classic"))
    assert (servers.next_address(), ray.handles) == (None, [])


def test_a_model_that_no_gpu_loads_ends_the_batch() -> None:
    ray = Gpus()
    ray.gone.add(1)
    with pytest.raises(BackendError, match=r"The model cannot be loaded on a GPU of the cluster: The actor died\."):
        RayEmbeddingServers(ray, ExtractSettings(embedder="clip")).next_address()
