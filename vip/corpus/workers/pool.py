"""A pool of worker processes on one machine: fetchers and extractors.

In: work items. Out: events. Fetchers and extractors are separate processes, so the network and the cores are busy at the same time. A
process that hangs is ended, and a crash costs one video. Nothing more is fetched while enough videos lie here, or while the disk budget
of all pools of the machine is used up.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections import deque
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import NamedTuple, Protocol

from vip.corpus.settings import BatchConfig
from vip.corpus.state_dir import PARTS
from vip.corpus.workers.disk_budget import DiskBudget, DiskHolder
from vip.corpus.workers.embedder_process import EmbedderProcess, has_gpu, wants_gpu
from vip.corpus.workers.worker import (
    VIDEOS,
    WORK,
    DiskWait,
    ExtractTask,
    FetchTask,
    PartInfo,
    PartWritten,
    TaskFailed,
    VideoFetched,
    WorkerConfig,
    WorkerReady,
    WorkerRole,
    WorkItem,
    part_path,
    timeout_message,
)
from vip.dataset.items import DownloadedVideo
from vip.errors import FailureKind
from vip.processes.supervisor import ChildDiedError, DeathsInARow, Supervisor

GRACE_S = 60.0  # an extractor keeps its time limit itself, and may take this much longer
DOES: dict[WorkerRole, str] = {"fetch": "fetches videos", "extract": "extracts keyframes"}


class Downloaded(NamedTuple):
    """The video is on this machine: its host has a free slot."""

    id: int


class ItemDone(NamedTuple):
    """The part is written: its file, or its bytes if it was written on another machine."""

    id: int
    part: Path | bytes
    info: PartInfo


class ItemFailed(NamedTuple):
    """The item could not be done."""

    id: int
    kind: FailureKind
    message: str
    retry_after_s: float | None = None


class ItemLost(NamedTuple):
    """The machine is gone; nothing is known about the item."""

    id: int


Event = Downloaded | ItemDone | ItemFailed | ItemLost


class Executor(Protocol):
    """A runner of work items: a pool on this machine, or many on others."""

    def has_capacity(self, *, fetch: bool) -> bool:
        """Return whether another item can be begun soon.

        Args:
            fetch: the item has to be fetched.
        """

    def submit(self, work: WorkItem) -> None: ...

    def events(self, timeout_s: float) -> list[Event]:
        """Return what has happened since the last call; wait at most so long for something.

        Raises:
            VipError: no item can be done: a backend is missing.
        """

    def close(self) -> None:
        """End all work at once."""


@dataclass(slots=True)
class _Worker:
    """A fetcher or an extractor."""

    role: WorkerRole
    process: Supervisor
    is_ready: bool = False
    work: WorkItem | None = None
    deadline: float | None = None


@dataclass(slots=True)
class ProcessPool:
    """Worker processes of this machine.

    Args:
        config: its `home` is the pool's own folder.
        workers: how many extractors.
        fetchers: 0 if nothing is to be fetched.
        cores: shared by the extractors.
        embedding: the process that embeds for all extractors, and ends with the pool; None if each embeds itself.
    """

    config: WorkerConfig
    workers: int
    fetchers: int
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    embedding: EmbedderProcess | None = None
    _workers: list[_Worker] = field(default_factory=list)
    _to_fetch: deque[WorkItem] = field(default_factory=deque)
    _to_extract: deque[tuple[WorkItem, DownloadedVideo | None]] = field(default_factory=deque)
    _failed_starts: DeathsInARow = field(default_factory=DeathsInARow)
    _disk: DiskHolder | None = field(init=False)

    def __post_init__(self) -> None:
        self._disk = DiskHolder(self.config.disk, self.config.home / VIDEOS) if self.fetchers else None
        for name in (VIDEOS, WORK):  # of a killed run
            shutil.rmtree(self.config.home / name, ignore_errors=True)
        (self.config.home / PARTS).mkdir(parents=True, exist_ok=True)

    def has_capacity(self, *, fetch: bool) -> bool:
        fetching = len(self._to_fetch) + self._busy("fetch")
        ready = len(self._to_extract) + self._busy("extract")
        if fetch:
            return fetching < self.fetchers and ready < 2 * self.workers + 1
        return ready < 2 * self.workers

    def _busy(self, role: WorkerRole) -> int:
        return sum(worker.role == role and worker.work is not None for worker in self._workers)

    def submit(self, work: WorkItem) -> None:
        if work.item.kind == "file":
            self._to_extract.append((work, None))
        else:
            self._to_fetch.append(work)

    # ------------------------------------------------------------ events

    def events(self, timeout_s: float) -> list[Event]:
        self._assign()
        events: list[Event] = []
        ready = wait([worker.process.pipe for worker in self._workers], self._wait_s(timeout_s)) if self._workers else []
        if not self._workers:
            time.sleep(timeout_s)
        for worker in [worker for worker in self._workers if worker.process.pipe in ready]:
            try:
                events += self._handle(worker, worker.process.receive(excused=worker.is_ready))
            except ChildDiedError as exc:
                events += self._handle_death(worker, exc.code)
        now = time.monotonic()
        for worker in [worker for worker in self._workers if worker.deadline is not None and worker.deadline < now]:
            events.append(self._end_late(worker))
        self._assign()
        return events

    def _wait_s(self, timeout_s: float) -> float:
        """Return how long to wait: to the first deadline at most."""
        deadlines = [worker.deadline for worker in self._workers if worker.deadline is not None]
        return max(0.0, min([timeout_s, *(deadline - time.monotonic() + 0.01 for deadline in deadlines)]))

    def _handle(self, worker: _Worker, message: object) -> list[Event]:
        match message:
            case WorkerReady():
                worker.is_ready = True
                self._failed_starts.reset()
            case DiskWait(is_waiting):
                worker.deadline = None if is_waiting else time.monotonic() + self.config.batch.download_timeout
            case VideoFetched() | PartWritten() | TaskFailed():
                return [self._handle_result(worker, message)]
        return []

    def _handle_result(self, worker: _Worker, result: VideoFetched | PartWritten | TaskFailed) -> Event:
        work, worker.work, worker.deadline = worker.work, None, None
        assert work is not None
        if isinstance(result, VideoFetched):
            self._to_extract.append((work, result.video))
            return Downloaded(work.id)
        self._free_disk(work)
        if isinstance(result, PartWritten):
            return ItemDone(work.id, part_path(self.config.home, work.item.key), result.info)
        return ItemFailed(work.id, *result)

    def _handle_death(self, worker: _Worker, code: int) -> list[Event]:
        """Give up the item of a dead worker; another worker is started when it is needed."""
        self._workers.remove(worker)
        if worker.work is None:
            return []
        why = "by the system, most likely because memory ran out" if code == -9 else f"(exit code {code})"
        return [self._give_up(worker.work, "crash", f"The process that worked on it ended {why}.")]

    def _end_late(self, worker: _Worker) -> Event:
        """End a worker that is past its deadline, and give up its item."""
        assert worker.work is not None
        self._workers.remove(worker)
        worker.process.close()
        if worker.role == "fetch":
            limit = self.config.batch.download_timeout
            return self._give_up(worker.work, "download_timeout", f"Not downloaded within {limit:g} s. Set --download-timeout higher.")
        return self._give_up(worker.work, "timeout", timeout_message(self.config))

    def _give_up(self, work: WorkItem, kind: FailureKind, message: str) -> Event:
        for name in (VIDEOS, WORK):
            shutil.rmtree(self.config.home / name / work.item.key, ignore_errors=True)
        self._free_disk(work)
        return ItemFailed(work.id, kind, message)

    def _free_disk(self, work: WorkItem) -> None:
        if self._disk is not None and work.item.kind != "file":
            self._disk.free(work.item.key)

    # ------------------------------------------------------------ workers

    def _assign(self) -> None:
        """Assign waiting items to idle workers; start missing workers."""
        if self._to_fetch:
            self._start_missing("fetch", self.fetchers)
        if self._to_extract or self._to_fetch:
            self._start_missing("extract", self.workers)
        for worker in [worker for worker in self._workers if worker.is_ready and worker.work is None]:
            if worker.role == "fetch" and self._to_fetch:
                work = self._to_fetch.popleft()
                self._begin(worker, FetchTask(work), self.config.batch.download_timeout)
            elif worker.role == "extract" and self._to_extract:
                at_once = min(self.workers, len(self._to_extract) + self._busy("extract"))
                work, video = self._to_extract.popleft()
                limit = self.config.extraction.timeout
                task = ExtractTask(work, video, max(1, self.cores // at_once))
                self._begin(worker, task, None if limit is None else limit + GRACE_S)

    def _begin(self, worker: _Worker, task: FetchTask | ExtractTask, limit_s: float | None) -> None:
        worker.work = task.work
        worker.deadline = None if limit_s is None else time.monotonic() + limit_s
        worker.process.send(task)

    def _start_missing(self, role: WorkerRole, count: int) -> None:
        for _ in range(count - sum(worker.role == role for worker in self._workers)):
            process = Supervisor("vip.corpus.workers.worker", DOES[role], lambda: self.config, (role,), self._failed_starts)
            process.start()
            self._workers.append(_Worker(role, process))

    def close(self) -> None:
        for worker in self._workers:
            worker.process.close()
        self._workers.clear()
        if self.embedding is not None:
            self.embedding.close()
        for name in (VIDEOS, WORK):
            shutil.rmtree(self.config.home / name, ignore_errors=True)
        if self._disk is not None:
            self._disk.close()


def local_pool(choices: BatchConfig, home: Path, *, fetch: bool) -> ProcessPool:
    """Start the pool of this machine."""
    embedding = EmbedderProcess(choices.extraction) if wants_gpu(choices.extraction) and has_gpu() else None
    if embedding is not None:
        embedding.start()
    workers, fetchers = choices.workers, fetchers_for(choices.workers) if fetch else 0
    return ProcessPool(worker_config(choices, home, ledger=home), workers, fetchers, embedding=embedding)


def worker_config(choices: BatchConfig, home: Path, *, ledger: Path) -> WorkerConfig:
    """Return the configuration of a pool.

    Args:
        ledger: the folder in which all pools of this machine note their share of the disk budget.
    """
    disk = DiskBudget(ledger, f"pool-{os.getpid()}-{secrets.token_hex(4)}", choices.batch.disk_budget)
    return WorkerConfig(home, choices.limited, choices.batch, disk, choices.measured)


def fetchers_for(workers: int) -> int:
    """Return the number of fetchers: one for each worker, so the next video is fetched while one is extracted; two at least."""
    return max(2, workers)
