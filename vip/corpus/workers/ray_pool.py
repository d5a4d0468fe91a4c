"""Many crews in a Ray cluster: each is an actor with a crew of one worker, wherever Ray finds a core for it.

In: jobs. Out: events, as of a crew here; parts come back as bytes, so that crews keep nothing and may vanish at any moment. An actor is
asked for its news again and again, one question at a time; one that does not answer is given up, and what it held is handed out again.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import urlsplit

from vip import registry, wording
from vip.config import ExtractSettings
from vip.corpus.settings import BatchConfig
from vip.corpus.workers.disk_budget import shared_folder
from vip.corpus.workers.embedder_process import VARIABLE, wants_gpu
from vip.corpus.workers.pool import Downloaded, Event, Executor, ItemDone, ItemLost, ProcessPool, fetchers_for, plan_of
from vip.corpus.workers.worker import WorkItem
from vip.dataset.storage import library
from vip.errors import BackendError, VipError

LOOK_S = 0.05  # between looks of an actor at what it was given
TURN_S, SHORT_TURN_S = 5.0, 0.5  # how long an actor waits for news: one that has all it takes, and one that might be given more
SILENT_S = 120.0  # an actor that does not answer for so long is given up
HOME = "vip-ray-"  # and the process, of an actor's folder
CLIENT_PORT, KNOCK_S = 10001, 5.0
STARTS = 5  # in a row that may fail, beside one for each actor
FIRST_S = 300.0  # without any actor, in a cluster that may have to grow first


class RayWorker:
    """The actor: a crew of one worker in a folder of its own, which a thread keeps at work whether the driver asks or not."""

    def __init__(self, choices: BatchConfig, fetch: bool, server: str | None, batch: str) -> None:
        os.environ[wording.VARIABLE] = "1"  # what goes wrong here is read by who typed `vip batch`
        if server:
            os.environ[VARIABLE] = server
        _clear_up()
        self._home = Path(tempfile.mkdtemp(prefix=f"{HOME}{os.getpid()}-"))
        self._batch = batch
        self._jobs: SimpleQueue[WorkItem] = SimpleQueue()
        self._news: SimpleQueue[Event | Exception] = SimpleQueue()
        self._over = threading.Event()
        self._crew = self.pool(choices, fetch)
        self._thread = threading.Thread(target=self._work, daemon=True)  # it starts the crew's processes, which end with it
        self._thread.start()

    def pool(self, choices: BatchConfig, fetch: bool) -> Executor:
        """Who does the work; a simulation has another."""
        plan = plan_of(choices, self._home, ledger=shared_folder(self._batch))
        return ProcessPool(plan, 1, fetchers_for(1) if fetch else 0, 1)

    def _work(self) -> None:
        try:
            while not self._over.is_set():
                while not self._jobs.empty():
                    self._crew.submit(self._jobs.get())
                for event in self._crew.events(LOOK_S):
                    self._news.put(_carried(event))
        except Exception as exc:  # whatever it is, the driver is to know
            self._news.put(exc)

    def turn(self, jobs: Sequence[WorkItem], timeout_s: float) -> list[Event]:
        """Take jobs, and tell what has happened; waits for something at most so long."""
        for job in jobs:
            self._jobs.put(job)
        found: list[Event] = []
        with suppress(Empty):
            while True:
                event = self._news.get(timeout=0 if found else timeout_s)
                if isinstance(event, Exception):
                    raise event
                found.append(event)
        return found

    def leave(self) -> None:
        self._over.set()
        self._thread.join()
        self._crew.close()
        shutil.rmtree(self._home, ignore_errors=True)


def _clear_up() -> None:
    """Delete what actors on this machine left behind that were killed: it may be gigabytes."""
    if os.name == "nt":
        return  # there a signal 0 is Ctrl-C
    for path in Path(tempfile.gettempdir()).glob(f"{HOME}*-*"):
        try:
            os.kill(int(path.name.removeprefix(HOME).partition("-")[0]), 0)
        except ProcessLookupError:
            shutil.rmtree(path, ignore_errors=True)
        except (ValueError, PermissionError):  # not ours
            continue


def _carried(event: Event) -> Event:
    """With the bytes of the part in the place of its file."""
    if not isinstance(event, ItemDone) or isinstance(event.part, bytes):
        return event
    data = event.part.read_bytes()
    event.part.unlink()
    return event._replace(part=data)


class RayEmbeddingServer:
    """The actor on a GPU: the embedder for all seats that are told its address."""

    def __init__(self, settings: ExtractSettings) -> None:
        import ray

        host = str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]
        self._address, _ = registry.serve_embedder(settings.embedder, host, device=settings.device, precision=settings.precision)

    def address(self) -> str:
        return self._address


class RayEmbeddingServers:
    """One on each GPU of the cluster, where the embedder is a model; none else."""

    def __init__(self, ray: Any, settings: ExtractSettings) -> None:
        self._ray, self._settings = ray, settings
        count = int(ray.cluster_resources().get("GPU", 0)) if wants_gpu(settings) else 0
        self._make = ray.remote(num_gpus=1, num_cpus=0)(RayEmbeddingServer)
        self._handles = [self._make.remote(settings) for _ in range(count)]
        self._addresses: dict[str, Any] = {}
        self._turn = 0

    def next(self) -> str | None:
        """The address for the next seat, in turn.

        Raises:
            VipError: the model cannot be loaded there.
        """
        if not self._handles:
            return None
        handle = self._handles[self._turn % len(self._handles)]
        self._turn += 1
        try:
            address = str(self._ray.get(handle.address.remote(), timeout=FIRST_S))
        except self._ray.exceptions.RayTaskError as exc:
            if isinstance(exc.cause, VipError):
                raise exc.cause from exc
            raise
        except self._ray.exceptions.RayError as exc:
            raise BackendError(f"The model cannot be loaded on a GPU of the cluster: {_short(exc)} Look at `ray status`.") from exc
        self._addresses[address] = handle
        return address

    def gone(self, address: str | None) -> bool:
        """Whether the server at an address does not answer any more; another one takes its place then."""
        handle = self._addresses.get(address or "")
        if address is None or handle is None:
            return address is not None
        try:
            self._ray.get(handle.address.remote(), timeout=SILENT_S)
        except self._ray.exceptions.RayError:
            del self._addresses[address]
            self._ray.kill(handle)
            self._handles[self._handles.index(handle)] = self._make.remote(self._settings)
            return True
        return False


@dataclass(slots=True)
class _WorkerHandle:
    """An actor as the driver sees it."""

    handle: Any
    server: str | None
    held: dict[int, WorkItem] = field(default_factory=dict)
    pending: list[WorkItem] = field(default_factory=list)
    """Of the held ones those that it does not know of yet."""
    turn: Any = None
    asked: float = 0.0
    is_here: bool = False


class RayPool:
    """The driver's side.

    Args:
        seat: the class of the actors; another one for simulations.

    Raises:
        BackendError: Ray is not installed, or the cluster cannot be reached.
    """

    def __init__(self, choices: BatchConfig, home: Path, *, fetch: bool, worker: type = RayWorker) -> None:
        self._ray = library("ray")
        self._choices, self._fetch, self._batch = choices, fetch, str(home)
        self._start_ray()
        self._failed_starts = 0
        self._room = 2 + (fetchers_for(1) if fetch else 0)
        self._servers = RayEmbeddingServers(self._ray, choices.extraction)
        self._worker_class = self._ray.remote(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")(worker)
        self._actors = [self._actor() for _ in range(choices.workers)]
        self._seen = time.monotonic()

    def _start_ray(self) -> None:
        address = self._choices.batch.ray_address
        how = {"address": address} if address else {"address": "local", "include_dashboard": False, "num_cpus": self._choices.workers}
        try:
            if address and address != "auto":
                _knock(address)
            self._ray.init(**how, log_to_driver=False, logging_level=logging.ERROR, ignore_reinit_error=True, namespace="vip")
        except (OSError, RuntimeError, ValueError) as exc:
            where = f"The Ray cluster at {address}" if address else "A Ray cluster on this machine"
            raise BackendError(f"{where} cannot be used: {_short(exc)} Check --ray-address, or use --runner local.") from exc

        with suppress(AttributeError):
            self._ray._private.worker._worker_logs_enabled = False  # else it prints what happens to its machines on stdout

    def _actor(self) -> _WorkerHandle:
        server = self._servers.next()
        return _WorkerHandle(self._worker_class.remote(self._choices, self._fetch, server, self._batch), server)

    # ------------------------------------------------------------ jobs

    def has_capacity(self, *, fetch: bool) -> bool:
        return self._freest() is not None

    def _freest(self) -> _WorkerHandle | None:
        free = [actor for actor in self._actors if actor.is_here and len(actor.held) < self._room]
        return min(free, key=lambda actor: len(actor.held), default=None)

    def submit(self, job: WorkItem) -> None:
        actor = self._freest() or self._actors[0]
        actor.held[job.id] = job
        actor.pending.append(job)

    def events(self, timeout_s: float) -> list[Event]:
        for actor in self._actors:
            if actor.turn is None:
                self._ask(actor)
        turns = {actor.turn: actor for actor in self._actors}
        ready, _ = self._ray.wait(list(turns), num_returns=len(turns), timeout=0)
        if not ready:
            ready, _ = self._ray.wait(list(turns), num_returns=1, timeout=timeout_s)
        found = [event for turn in ready for event in self._heard(turns[turn])]
        now = time.monotonic()
        for actor in [actor for actor in self._actors if actor.is_here and actor.turn is not None and actor.asked < now - SILENT_S]:
            found += self._lost(actor)
        self._check_that_some_are_here(now)
        return found

    def _ask(self, actor: _WorkerHandle) -> None:
        jobs, actor.pending = actor.pending, []
        timeout_s = TURN_S if len(actor.held) >= self._room else SHORT_TURN_S
        actor.turn, actor.asked = actor.handle.turn.remote(jobs, timeout_s), time.monotonic()

    def _heard(self, actor: _WorkerHandle) -> list[Event]:
        try:
            events: list[Event] = self._ray.get(actor.turn)
        except self._ray.exceptions.RayTaskError as exc:
            if isinstance(exc.cause, BackendError) and self._servers.gone(actor.server):
                return self._lost(actor, exc)
            if isinstance(exc.cause, VipError):
                raise exc.cause from exc
            raise
        except self._ray.exceptions.RayError as exc:  # the process, its machine, or the way there is gone
            return self._lost(actor, exc)
        actor.turn, actor.is_here, self._failed_starts = None, True, 0
        for event in events:
            if not isinstance(event, Downloaded):
                actor.held.pop(event.id, None)
        return events

    def _lost(self, actor: _WorkerHandle, why: Exception | None = None) -> list[Event]:
        """Another actor takes its place, where Ray finds one."""
        self._failed_starts += not actor.is_here
        if self._failed_starts > STARTS + len(self._actors):
            hint = "Every machine needs the same vip; look at `ray status`."
            raise BackendError(f"Ray's workers do not start: {_short(why)} {hint}") from why
        self._ray.kill(actor.handle)
        self._actors[self._actors.index(actor)] = self._actor()
        return [ItemLost(id_) for id_ in actor.held]

    def _check_that_some_are_here(self, now: float) -> None:
        if any(actor.is_here for actor in self._actors):
            self._seen = now
        elif now > self._seen + FIRST_S:
            raise BackendError(f"Ray has had no worker for {FIRST_S:.0f} s. Look at `ray status`: each needs one free core.")

    def close(self) -> None:
        for actor in self._actors:
            if actor.is_here:
                actor.handle.leave.remote()
        self._ray.shutdown()


def _knock(address: str) -> None:
    """Ray itself would try for minutes.

    Raises:
        OSError: nobody is there.
    """
    parts = urlsplit(address if "://" in address else f"//{address}")
    with socket.create_connection((parts.hostname or "", parts.port or CLIENT_PORT), KNOCK_S):
        pass


def _short(why: Exception | None) -> str:
    """The last line of a library's message, as a sentence."""
    said = str(why or "they do not answer").strip().splitlines()[-1][:300]
    return said if said.endswith(".") else f"{said}."
