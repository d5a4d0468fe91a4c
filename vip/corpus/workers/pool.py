"""A crew: the processes of one machine, or of one place in a cluster, that fetch and extract.

In: jobs. Out: events. Fetchers and extractors are processes of their own, so that the network and the cores are busy at the same
time, whatever hangs can be ended, and what crashes costs one video. Nothing is fetched when enough lies here already: so many videos, or
as many bytes as the disk's budget has for all crews of the machine.
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
from vip.corpus.workers.worker import VIDEOS, WORK, PartInfo, WorkerConfig, WorkerRole, WorkItem, part_path, too_slow
from vip.dataset.items import DownloadedVideo
from vip.errors import FailureKind, VipError
from vip.processes.supervisor import MOST_DEATHS, ChildProcess, too_many_deaths

GRACE_S = 60.0  # that an extractor may take longer than its time limit, which it keeps itself
DOES: dict[WorkerRole, str] = {"fetch": "fetches videos", "extract": "extracts keyframes"}


class Downloaded(NamedTuple):
    """The video lies here: its host has a free slot."""

    id: int


class ItemDone(NamedTuple):
    """A part is made: the file, or its bytes where it was made elsewhere."""

    id: int
    part: Path | bytes
    facts: PartInfo


class ItemFailed(NamedTuple):
    id: int
    kind: FailureKind
    message: str
    retry_after_s: float | None = None


class ItemLost(NamedTuple):
    """The crew is gone; nothing is known about the item."""

    id: int


Event = Downloaded | ItemDone | ItemFailed | ItemLost


class Executor(Protocol):
    """Who does the work: a crew here, or many elsewhere."""

    def has_capacity(self, *, fetch: bool) -> bool:
        """Whether another job finds something to do, soon."""

    def submit(self, job: WorkItem) -> None: ...

    def events(self, timeout_s: float) -> list[Event]:
        """What has happened; waits for something at most so long.

        Raises:
            VipError: no job can be done: a backend is missing.
        """

    def close(self) -> None:
        """End all work, at once."""


@dataclass(slots=True)
class _Worker:
    """A fetcher or an extractor."""

    role: WorkerRole
    child: ChildProcess
    is_here: bool = False
    job: WorkItem | None = None
    deadline: float | None = None


@dataclass(slots=True)
class ProcessPool:
    """Processes of this machine.

    Args:
        plan: its `home` is the crew's own folder.
        workers: extractors.
        fetchers: 0 where nothing is to be fetched.
        cores: that the extractors share.
        embedding: the process that embeds for all of them, which ends with the crew; None where each does that itself.
    """

    plan: WorkerConfig
    workers: int
    fetchers: int
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    embedding: EmbedderProcess | None = None
    _processes: list[_Worker] = field(default_factory=list)
    _to_fetch: deque[WorkItem] = field(default_factory=deque)
    _to_extract: deque[tuple[WorkItem, DownloadedVideo | None]] = field(default_factory=deque)
    _failed_starts: int = 0
    _disk: DiskHolder | None = field(init=False)

    def __post_init__(self) -> None:
        self._disk = DiskHolder(self.plan.disk, self.plan.home / VIDEOS) if self.fetchers else None
        for name in (VIDEOS, WORK):  # what a killed run left
            shutil.rmtree(self.plan.home / name, ignore_errors=True)
        (self.plan.home / PARTS).mkdir(parents=True, exist_ok=True)

    def has_capacity(self, *, fetch: bool) -> bool:
        fetching = len(self._to_fetch) + self._busy("fetch")
        ready = len(self._to_extract) + self._busy("extract")
        if fetch:
            return fetching < self.fetchers and ready < 2 * self.workers + 1
        return ready < 2 * self.workers

    def _busy(self, role: WorkerRole) -> int:
        return sum(process.role == role and process.job is not None for process in self._processes)

    def submit(self, job: WorkItem) -> None:
        if job.item.kind == "file":
            self._to_extract.append((job, None))
        else:
            self._to_fetch.append(job)

    # ------------------------------------------------------------ the loop

    def events(self, timeout_s: float) -> list[Event]:
        self._assign()
        found: list[Event] = []
        ready = wait([process.child.pipe for process in self._processes], self._patience(timeout_s)) if self._processes else []
        if not self._processes:
            time.sleep(timeout_s)
        for process in [process for process in self._processes if process.child.pipe in ready]:
            try:
                found += self._heard(process, process.child.pipe.recv())
            except (EOFError, OSError):
                found += self._ended(process)
        now = time.monotonic()
        for process in [process for process in self._processes if process.deadline is not None and process.deadline < now]:
            found += self._late(process)
        self._assign()
        return found

    def _patience(self, timeout_s: float) -> float:
        deadlines = [process.deadline for process in self._processes if process.deadline is not None]
        return max(0.0, min([timeout_s, *(deadline - time.monotonic() + 0.01 for deadline in deadlines)]))

    def _heard(self, process: _Worker, message: tuple[object, ...]) -> list[Event]:
        how, *values = message
        if how == "stop":
            assert isinstance(values[0], VipError)
            raise values[0]
        if how == "here":
            process.is_here, self._failed_starts = True, 0
            return []
        if how == "waits":
            process.deadline = None if values[0] else time.monotonic() + self.plan.batch.download_timeout
            return []
        job, process.job, process.deadline = process.job, None, None
        assert job is not None
        if how == "fetched":
            assert isinstance(values[0], DownloadedVideo)
            self._to_extract.append((job, values[0]))
            return [Downloaded(job.id)]
        self._free(job)
        if how == "done":
            assert isinstance(values[0], PartInfo)
            return [ItemDone(job.id, part_path(self.plan.home, job.item.key), values[0])]
        return [ItemFailed(job.id, *values)]  # type: ignore[arg-type]

    def _ended(self, process: _Worker) -> list[Event]:
        """A process is gone, and with it what it worked on; another takes its place when it is needed."""
        code = self._end(process)
        if not process.is_here:
            self._failed_starts += 1
            if self._failed_starts >= MOST_DEATHS:
                raise too_many_deaths(DOES[process.role], code)
        if process.job is None:
            return []
        why = "by the system, most likely because memory ran out" if code == -9 else f"(exit code {code})"
        return [self._given_up(process, "crash", f"The process that worked on it ended {why}.")]

    def _late(self, process: _Worker) -> list[Event]:
        self._end(process)
        if process.role == "fetch":
            limit = self.plan.batch.download_timeout
            return [self._given_up(process, "download_timeout", f"Not downloaded within {limit:g} s. Set --download-timeout higher.")]
        return [self._given_up(process, "timeout", too_slow(self.plan))]

    def _given_up(self, process: _Worker, kind: FailureKind, message: str) -> Event:
        assert process.job is not None
        for name in (VIDEOS, WORK):
            shutil.rmtree(self.plan.home / name / process.job.item.key, ignore_errors=True)
        self._free(process.job)
        return ItemFailed(process.job.id, kind, message)

    def _free(self, job: WorkItem) -> None:
        """Nothing of it lies here any more."""
        if self._disk is not None and job.item.kind != "file":
            self._disk.free(job.item.key)

    # ------------------------------------------------------------ processes

    def _assign(self) -> None:
        """Give waiting jobs to idle processes; start those that are missing."""
        if self._to_fetch:
            self._fill("fetch", self.fetchers)
        if self._to_extract or self._to_fetch:
            self._fill("extract", self.workers)
        for process in [process for process in self._processes if process.is_here and process.job is None]:
            if process.role == "fetch" and self._to_fetch:
                self._begin(process, self._to_fetch.popleft(), None, self.plan.batch.download_timeout)
            elif process.role == "extract" and self._to_extract:
                at_once = min(self.workers, len(self._to_extract) + self._busy("extract"))
                job, video = self._to_extract.popleft()
                limit = self.plan.extraction.timeout
                self._begin(process, job, video, None if limit is None else limit + GRACE_S, max(1, self.cores // at_once))

    def _begin(self, process: _Worker, job: WorkItem, video: DownloadedVideo | None, limit_s: float | None, cores: int = 1) -> None:
        process.job = job
        process.deadline = None if limit_s is None else time.monotonic() + limit_s
        process.child.send((job,) if process.role == "fetch" else (job, video, cores))

    def _fill(self, role: WorkerRole, count: int) -> None:
        for _ in range(count - sum(process.role == role for process in self._processes)):
            self._processes.append(self._start(role))

    def _start(self, role: WorkerRole) -> _Worker:
        child = ChildProcess("vip.corpus.workers.worker", (role,))
        child.send(self.plan)
        return _Worker(role, child)

    def _end(self, process: _Worker) -> int:
        self._processes.remove(process)
        return process.child.kill()

    def close(self) -> None:
        for process in list(self._processes):
            self._end(process)
        if self.embedding is not None:
            self.embedding.close()
        for name in (VIDEOS, WORK):
            shutil.rmtree(self.plan.home / name, ignore_errors=True)
        if self._disk is not None:
            self._disk.close()


def crew_here(choices: BatchConfig, home: Path, *, fetch: bool) -> ProcessPool:
    """The crew of this machine."""
    embedding = EmbedderProcess(choices.extraction) if wants_gpu(choices.extraction) and has_gpu() else None
    if embedding is not None:
        embedding.start()
    workers, fetchers = choices.workers, fetchers_for(choices.workers) if fetch else 0
    return ProcessPool(plan_of(choices, home, ledger=home), workers, fetchers, embedding=embedding)


def plan_of(choices: BatchConfig, home: Path, *, ledger: Path) -> WorkerConfig:
    """The plan of a crew.

    Args:
        ledger: the folder in which all crews of this machine note what they have of the disk's budget.
    """
    disk = DiskBudget(ledger, f"crew-{os.getpid()}-{secrets.token_hex(4)}", choices.batch.disk_budget)
    return WorkerConfig(home, choices.limited, choices.batch, disk, choices.measured)


def fetchers_for(workers: int) -> int:
    """For each worker one download goes on beside the one that is worked on."""
    return max(2, workers)
