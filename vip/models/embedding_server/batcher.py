"""One thread embeds what several threads ask for, as much of it at a time as the embedder takes with profit."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

from vip.errors import BackendError
from vip.protocols import Embedder
from vip.records import Vectors

GATHER_S = 0.003  # a batch waits so long for more; while one is worked on, the next gathers anyway


@dataclass(eq=False, slots=True)
class _QueuedEmbedding:
    """What one client wants, texts or pictures."""

    items: Sequence[Any]
    are_texts: bool
    rows: Future[Vectors] = field(default_factory=Future)


class EmbeddingBatcher:
    """Embeds from its making until it is ended."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder, self._most = embedder, embedder.capabilities.batch
        self._waiting: deque[_QueuedEmbedding] = deque()
        self._clients = 0
        self._ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    @contextmanager
    def client(self) -> Iterator[None]:
        """Be one of those that ask, each for one thing at a time: where as many wait, none waits for more."""
        with self._changed:
            self._clients += 1
        try:
            yield
        finally:
            with self._changed:
                self._clients -= 1
                self._changed.notify()

    def ask(self, items: Sequence[Any], *, are_texts: bool) -> Vectors:
        """Return the rows of these items. Raises what the embedder raises."""
        job = _QueuedEmbedding(items, are_texts)
        with self._changed:
            if self._ended:
                raise BackendError("The embedding server was ended. Start it again.")
            self._waiting.append(job)
            self._changed.notify()
        return job.rows.result()

    def end(self) -> None:
        """Once the batch at work is done; those who still wait get an error."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join()
        while self._waiting:
            self._waiting.popleft().rows.set_exception(BackendError("The embedding server was ended. Start it again."))

    # ------------------------------------------------------------ in the thread

    def _work(self) -> None:
        while jobs := self._gathered():
            self._do(jobs)

    def _gathered(self) -> list[_QueuedEmbedding]:
        """Return the first of those that wait, and others of its kind as long as they fit into its batch; none at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended)
            self._changed.wait_for(self._is_due, GATHER_S)
            if self._ended:
                return []
            jobs: list[_QueuedEmbedding] = []
            count = 0
            for job in list(self._waiting):
                if not jobs or (job.are_texts == jobs[0].are_texts and count + len(job.items) <= self._most):
                    self._waiting.remove(job)
                    jobs.append(job)
                    count += len(job.items)
            return jobs

    def _is_due(self) -> bool:
        return self._ended or len(self._waiting) >= self._clients or sum(len(job.items) for job in self._waiting) >= self._most

    def _do(self, jobs: Sequence[_QueuedEmbedding]) -> None:
        embed = self._embedder.embed_texts if jobs[0].are_texts else self._embedder.embed_images
        try:
            rows = embed([item for job in jobs for item in job.items])
        except Exception as exc:
            if len(jobs) == 1:
                jobs[0].rows.set_exception(exc)
            else:  # one of them may be to blame, and the others shall have their answers
                for job in jobs:
                    self._do([job])
            return
        ends = accumulate((len(job.items) for job in jobs), initial=0)
        for job, (start, end) in zip(jobs, pairwise(ends), strict=True):
            job.rows.set_result(rows[start:end])
