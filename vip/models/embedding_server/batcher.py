"""One thread that embeds the items of several client threads, in batches as large as the embedder takes well."""

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
    """The items of one client, texts or pictures."""

    items: Sequence[Any]
    are_texts: bool
    rows: Future[Vectors] = field(default_factory=Future)


class EmbeddingBatcher:
    """A thread that embeds in batches until it is closed."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder, self._max_items = embedder, embedder.capabilities.batch
        self._queue: deque[_QueuedEmbedding] = deque()
        self._clients = 0
        self._is_closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @contextmanager
    def register_client(self) -> Iterator[None]:
        """Count as a client inside the block. A client has one request at a time: once as many wait, the batch is not held open."""
        with self._changed:
            self._clients += 1
        try:
            yield
        finally:
            with self._changed:
                self._clients -= 1
                self._changed.notify()

    def embed(self, items: Sequence[Any], *, are_texts: bool) -> Vectors:
        """Return the rows of these items. Raises what the embedder raises."""
        job = _QueuedEmbedding(items, are_texts)
        with self._changed:
            if self._is_closed:
                raise BackendError("The embedding server was ended. Start it again.")
            self._queue.append(job)
            self._changed.notify()
        return job.rows.result()

    def close(self) -> None:
        """End the thread after its present batch; requests still in the queue get an error."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()
        while self._queue:
            self._queue.popleft().rows.set_exception(BackendError("The embedding server was ended. Start it again."))

    # ------------------------------------------------------------ in the thread

    def _run(self) -> None:
        while jobs := self._next_batch():
            self._embed_batch(jobs)

    def _next_batch(self) -> list[_QueuedEmbedding]:
        """Return the oldest request, and others of its kind as long as they fit into its batch; none once it is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._is_closed)
            self._changed.wait_for(self._is_due, GATHER_S)
            if self._is_closed:
                return []
            jobs: list[_QueuedEmbedding] = []
            count = 0
            for job in list(self._queue):
                if not jobs or (job.are_texts == jobs[0].are_texts and count + len(job.items) <= self._max_items):
                    self._queue.remove(job)
                    jobs.append(job)
                    count += len(job.items)
            return jobs

    def _is_due(self) -> bool:
        return self._is_closed or len(self._queue) >= self._clients or sum(len(job.items) for job in self._queue) >= self._max_items

    def _embed_batch(self, jobs: Sequence[_QueuedEmbedding]) -> None:
        embed = self._embedder.embed_texts if jobs[0].are_texts else self._embedder.embed_images
        try:
            rows = embed([item for job in jobs for item in job.items])
        except Exception as exc:
            if len(jobs) == 1:
                jobs[0].rows.set_exception(exc)
            else:  # one of them may be to blame, and the others shall have their answers
                for job in jobs:
                    self._embed_batch([job])
            return
        ends = accumulate((len(job.items) for job in jobs), initial=0)
        for job, (start, end) in zip(jobs, pairwise(ends), strict=True):
            job.rows.set_result(rows[start:end])
