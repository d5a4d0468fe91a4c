"""Workers in a Ray cluster: each actor has a pool of one worker, on any machine with a free core.

In: work items. Out: events, as of a pool on this machine. Parts come back as bytes, so actors keep nothing and may vanish at any moment.
Each actor is polled, one call at a time. An actor that does not answer is given up, and its items are queued again.
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

from vip import registry, telemetry, wording
from vip.config import ExtractSettings
from vip.corpus.settings import BatchConfig
from vip.corpus.workers.disk_budget import shared_folder
from vip.corpus.workers.embedder_process import VARIABLE, wants_gpu
from vip.corpus.workers.pool import Downloaded, Event, Executor, ItemDone, ItemLost, ProcessPool, fetchers_for, worker_config
from vip.corpus.workers.worker import WorkItem
from vip.dataset.storage import library
from vip.errors import BackendError, VipError

TICK_S = 0.05  # the longest wait of an actor for an event of its pool
POLL_S, SHORT_POLL_S = 5.0, 0.5  # how long a poll waits for an event: of an actor at capacity, and of one that could take more items
SILENT_S = 120.0  # an actor that does not answer for so long is given up
HOME = "vip-ray-"  # an actor's folder: this and its process id
CLIENT_PORT, CONNECT_S = 10001, 5.0
MOST_FAILED_STARTS = 5  # in a row, beside one for each actor
FIRST_ACTOR_S = 300.0  # to wait for the first actor: the cluster may have to grow


class RayWorker:
    """The actor: a pool of one worker in a folder of its own. A thread keeps it at work between two polls."""

    def __init__(self, choices: BatchConfig, fetch: bool, server: str | None, batch: str) -> None:
        os.environ[wording.VARIABLE] = "1"  # the user who reads messages from here has typed `vip batch`
        if server:
            os.environ[VARIABLE] = server
        _delete_leftovers()
        self._home = Path(tempfile.mkdtemp(prefix=f"{HOME}{os.getpid()}-"))
        self._batch = batch
        self._submitted: SimpleQueue[WorkItem] = SimpleQueue()
        self._events: SimpleQueue[Event | Exception] = SimpleQueue()
        self._closing = threading.Event()
        self._executor = self.make_executor(choices, fetch)
        self._thread = threading.Thread(target=self._work, daemon=True)  # it starts the worker processes, which end with it
        self._thread.start()

    def make_executor(self, choices: BatchConfig, fetch: bool) -> Executor:
        """Return the pool; simulations override this."""
        config = worker_config(choices, self._home, ledger=shared_folder(self._batch))
        return ProcessPool(config, 1, fetchers_for(1) if fetch else 0, 1)

    def _work(self) -> None:
        try:
            while not self._closing.is_set():
                while not self._submitted.empty():
                    self._executor.submit(self._submitted.get())
                for event in self._executor.events(TICK_S):
                    self._events.put(_attach_bytes(event))
        except Exception as exc:  # the next poll raises it in the driver
            self._events.put(exc)

    def poll(self, items: Sequence[WorkItem], timeout_s: float) -> list[Event]:
        """Take new items. Return the events since the last poll; wait at most so long for one."""
        for item in items:
            self._submitted.put(item)
        found: list[Event] = []
        with suppress(Empty):
            while True:
                event = self._events.get(timeout=0 if found else timeout_s)
                if isinstance(event, Exception):
                    raise event
                found.append(event)
        return found

    def close(self) -> None:
        self._closing.set()
        self._thread.join()
        self._executor.close()
        shutil.rmtree(self._home, ignore_errors=True)


def _delete_leftovers() -> None:
    """Delete the folders of killed actors on this machine: they may hold gigabytes."""
    if os.name == "nt":
        return  # there a signal 0 is Ctrl-C
    for path in Path(tempfile.gettempdir()).glob(f"{HOME}*-*"):
        try:
            os.kill(int(path.name.removeprefix(HOME).partition("-")[0]), 0)
        except ProcessLookupError:
            shutil.rmtree(path, ignore_errors=True)
        except (ValueError, PermissionError):  # not an actor of this user
            continue


def _attach_bytes(event: Event) -> Event:
    """Return the event with the bytes of its part instead of the file."""
    if not isinstance(event, ItemDone) or isinstance(event.part, bytes):
        return event
    data = event.part.read_bytes()
    event.part.unlink()
    return event._replace(part=data)


class RayEmbeddingServer:
    """The actor on a GPU: the embedder for all workers that have its address."""

    def __init__(self, settings: ExtractSettings) -> None:
        import ray

        host = str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]
        self._address, _ = registry.serve_embedder(settings.embedder, host, device=settings.device, precision=settings.precision)

    def address(self) -> str:
        return self._address


class RayEmbeddingServers:
    """The embedding servers: one on each GPU of the cluster if the embedder is a model, else none."""

    def __init__(self, ray: Any, settings: ExtractSettings) -> None:
        self._ray, self._settings = ray, settings
        count = int(ray.cluster_resources().get("GPU", 0)) if wants_gpu(settings) else 0
        self._make = ray.remote(num_gpus=1, num_cpus=0)(RayEmbeddingServer)
        self._handles = [self._make.remote(settings) for _ in range(count)]
        self._addresses: dict[str, Any] = {}
        self._next = 0

    def next_address(self) -> str | None:
        """Return the address for the next worker, in turn; None without servers.

        Raises:
            VipError: the model cannot be loaded there.
        """
        if not self._handles:
            return None
        handle = self._handles[self._next % len(self._handles)]
        self._next += 1
        try:
            address = str(self._ray.get(handle.address.remote(), timeout=FIRST_ACTOR_S))
        except self._ray.exceptions.RayTaskError as exc:
            if isinstance(exc.cause, VipError):
                raise exc.cause from exc
            raise
        except self._ray.exceptions.RayError as exc:
            raise BackendError(f"The model cannot be loaded on a GPU of the cluster: {_last_sentence(exc)} Look at `ray status`.") from exc
        self._addresses[address] = handle
        return address

    def replace_if_dead(self, address: str | None) -> bool:
        """Replace the server at an address if it does not answer. Return whether it did not."""
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
    """An actor, in the driver."""

    handle: Any
    server: str | None
    assigned: dict[int, WorkItem] = field(default_factory=dict)
    unsent: list[WorkItem] = field(default_factory=list)
    """Assigned items for its next poll."""
    poll: Any = None
    """The poll without an answer."""
    polled_at: float = 0.0
    is_ready: bool = False


class RayPool:
    """The driver's side.

    Args:
        worker: the class of the actors; another one for simulations.

    Raises:
        BackendError: Ray is not installed, or the cluster cannot be reached.
    """

    def __init__(self, choices: BatchConfig, home: Path, *, fetch: bool, worker: type = RayWorker) -> None:
        telemetry.turn_off()
        self._ray = library("ray")
        self._choices, self._fetch, self._batch = choices, fetch, str(home)
        self._start_ray()
        self._failed_starts = 0
        self._capacity = 2 + (fetchers_for(1) if fetch else 0)
        self._servers = RayEmbeddingServers(self._ray, choices.extraction)
        self._worker_class = self._ray.remote(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")(worker)
        self._actors = [self._start_actor() for _ in range(choices.workers)]
        self._last_ready = time.monotonic()

    def _start_ray(self) -> None:
        address = self._choices.batch.ray_address
        options = {"address": address} if address else {"address": "local", "include_dashboard": False, "num_cpus": self._choices.workers}
        try:
            if address and address != "auto":
                _check_address(address)
            self._ray.init(**options, log_to_driver=False, logging_level=logging.ERROR, ignore_reinit_error=True, namespace="vip")
        except (OSError, RuntimeError, ValueError) as exc:
            where = f"The Ray cluster at {address}" if address else "A Ray cluster on this machine"
            raise BackendError(f"{where} cannot be used: {_last_sentence(exc)} Check --ray-address, or use --runner local.") from exc

        with suppress(AttributeError):
            self._ray._private.worker._worker_logs_enabled = False  # else it prints about its machines on stdout

    def _start_actor(self) -> _WorkerHandle:
        server = self._servers.next_address()
        return _WorkerHandle(self._worker_class.remote(self._choices, self._fetch, server, self._batch), server)

    # ------------------------------------------------------------ items and events

    def has_capacity(self, *, fetch: bool) -> bool:
        return self._least_busy() is not None

    def _least_busy(self) -> _WorkerHandle | None:
        free = [actor for actor in self._actors if actor.is_ready and len(actor.assigned) < self._capacity]
        return min(free, key=lambda actor: len(actor.assigned), default=None)

    def submit(self, work: WorkItem) -> None:
        actor = self._least_busy() or self._actors[0]
        actor.assigned[work.id] = work
        actor.unsent.append(work)

    def events(self, timeout_s: float) -> list[Event]:
        for actor in self._actors:
            if actor.poll is None:
                self._poll(actor)
        polls = {actor.poll: actor for actor in self._actors}
        ready, _ = self._ray.wait(list(polls), num_returns=len(polls), timeout=0)
        if not ready:
            ready, _ = self._ray.wait(list(polls), num_returns=1, timeout=timeout_s)
        found = [event for poll in ready for event in self._events_of(polls[poll])]
        now = time.monotonic()
        for actor in [actor for actor in self._actors if actor.is_ready and actor.poll is not None and actor.polled_at < now - SILENT_S]:
            found += self._replace(actor)
        self._require_an_actor(now)
        return found

    def _poll(self, actor: _WorkerHandle) -> None:
        items, actor.unsent = actor.unsent, []
        timeout_s = POLL_S if len(actor.assigned) >= self._capacity else SHORT_POLL_S
        actor.poll, actor.polled_at = actor.handle.poll.remote(items, timeout_s), time.monotonic()

    def _events_of(self, actor: _WorkerHandle) -> list[Event]:
        try:
            events: list[Event] = self._ray.get(actor.poll)
        except self._ray.exceptions.RayTaskError as exc:
            if isinstance(exc.cause, BackendError) and self._servers.replace_if_dead(actor.server):
                return self._replace(actor, exc)
            if isinstance(exc.cause, VipError):
                raise exc.cause from exc
            raise
        except self._ray.exceptions.RayError as exc:  # the process, its machine, or the way there is gone
            return self._replace(actor, exc)
        actor.poll, actor.is_ready, self._failed_starts = None, True, 0
        for event in events:
            if not isinstance(event, Downloaded):
                actor.assigned.pop(event.id, None)
        return events

    def _replace(self, actor: _WorkerHandle, why: Exception | None = None) -> list[Event]:
        """Start another actor instead of a dead one. Return its items as lost."""
        self._failed_starts += not actor.is_ready
        if self._failed_starts > MOST_FAILED_STARTS + len(self._actors):
            hint = "Every machine needs the same vip; look at `ray status`."
            raise BackendError(f"Ray's workers do not start: {_last_sentence(why)} {hint}") from why
        self._ray.kill(actor.handle)
        self._actors[self._actors.index(actor)] = self._start_actor()
        return [ItemLost(id_) for id_ in actor.assigned]

    def _require_an_actor(self, now: float) -> None:
        if any(actor.is_ready for actor in self._actors):
            self._last_ready = now
        elif now > self._last_ready + FIRST_ACTOR_S:
            raise BackendError(f"Ray has had no worker for {FIRST_ACTOR_S:.0f} s. Look at `ray status`: each needs one free core.")

    def close(self) -> None:
        for actor in self._actors:
            if actor.is_ready:
                actor.handle.close.remote()
        self._ray.shutdown()


def _check_address(address: str) -> None:
    """Connect to the cluster and hang up: Ray itself would try for minutes.

    Raises:
        OSError: the cluster does not answer.
    """
    parts = urlsplit(address if "://" in address else f"//{address}")
    with socket.create_connection((parts.hostname or "", parts.port or CLIENT_PORT), CONNECT_S):
        pass


def _last_sentence(why: Exception | None) -> str:
    """Return the last line of a library's message, as a sentence."""
    said = str(why or "they do not answer").strip().splitlines()[-1][:300]
    return said if said.endswith(".") else f"{said}."
