"""The thread that embeds for several clients: what shares a batch, in which order, whose error is whose, and how it ends.

The embedder is a fake that remembers its batches; a row is what it is made from. A batch is held open for a minute, so that nothing but
the rules under test ends the waiting.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from vip.errors import BackendError
from vip.models.embedding_server import batcher as module
from vip.models.embedding_server.batcher import EmbeddingBatcher
from vip.records import Vectors

LONG_S = 60.0
SOON_S = 10.0


class Embedder:
    """A fake that can be held in its first batch; items below zero are refused."""

    def __init__(self, batch: int) -> None:
        self.capabilities = SimpleNamespace(batch=batch)
        self.batches: list[tuple[str, list[int]]] = []
        self.may_go_on, self.is_working = threading.Event(), threading.Event()
        self.may_go_on.set()

    def embed_texts(self, items: Sequence[int]) -> Vectors:
        return self._embed("texts", items, 1)

    def embed_images(self, items: Sequence[int]) -> Vectors:
        return self._embed("images", items, 2)

    def _embed(self, kind: str, items: Sequence[int], sign: int) -> Vectors:
        self.batches.append((kind, list(items)))
        self.is_working.set()
        assert self.may_go_on.wait(SOON_S)
        if any(item < 0 for item in items):
            raise ValueError(f"no {min(items)}")
        return np.array([[sign, item] for item in items], np.float32).reshape(-1, 2)


@pytest.fixture(autouse=True)
def _long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GATHER_S", LONG_S)


@contextmanager
def running(embedder: Embedder, clients: int = 0) -> Iterator[tuple[EmbeddingBatcher, ThreadPoolExecutor]]:
    """A batcher with so many clients, and threads that ask."""
    made: Any = embedder
    batcher = EmbeddingBatcher(made)
    with ThreadPoolExecutor(16) as pool, ExitStack() as stack:
        try:
            for _ in range(clients):
                stack.enter_context(batcher.register_client())
            yield batcher, pool
        finally:
            embedder.may_go_on.set()
            batcher.close()


def soon(condition: Callable[[], bool]) -> None:
    """Wait until it is so."""
    end = time.monotonic() + SOON_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def queued(batcher: EmbeddingBatcher, pool: ThreadPoolExecutor, *jobs: tuple[str, list[int]]) -> list[Future[Vectors]]:
    """Ask one after the other, each as soon as the one before is in the queue."""
    asked = []
    for kind, items in jobs:
        before = len(batcher._queue)
        asked.append(pool.submit(batcher.embed, items, are_texts=kind == "texts"))
        soon(lambda before=before: len(batcher._queue) > before)  # type: ignore[misc]
    return asked


def held(
    batcher: EmbeddingBatcher, embedder: Embedder, pool: ThreadPoolExecutor, *jobs: tuple[str, list[int]]
) -> tuple[Future[Vectors], list[Future[Vectors]]]:
    """Ask while the first batch is worked on, so that all of these wait together; then let it go on."""
    embedder.may_go_on.clear()
    first = pool.submit(batcher.embed, [0] * embedder.capabilities.batch, are_texts=True)
    assert embedder.is_working.wait(SOON_S)
    asked = queued(batcher, pool, *jobs)
    embedder.may_go_on.set()
    return first, asked


def rows(future: Future[Vectors]) -> list[list[float]]:
    return future.result(SOON_S).tolist()  # type: ignore[no-any-return]


# ---------------------------------------------------------------- what shares a batch


def test_what_waits_is_embedded_together_and_each_gets_its_own_rows() -> None:
    embedder = Embedder(8)
    with running(embedder) as (batcher, pool):
        _, asked = held(batcher, embedder, pool, ("texts", [1, 2]), ("texts", [3]), ("texts", [4, 5, 6]))
        assert [rows(one) for one in asked] == [[[1, 1], [1, 2]], [[1, 3]], [[1, 4], [1, 5], [1, 6]]]
    assert embedder.batches[1:] == [("texts", [1, 2, 3, 4, 5, 6])]


def test_texts_and_pictures_are_never_in_one_batch_and_the_oldest_goes_first() -> None:
    embedder = Embedder(8)
    with running(embedder) as (batcher, pool):
        _, asked = held(batcher, embedder, pool, ("images", [1]), ("texts", [2]), ("images", [3]), ("texts", [4]))
        assert [rows(one) for one in asked] == [[[2, 1]], [[1, 2]], [[2, 3]], [[1, 4]]]
    assert embedder.batches[1:] == [("images", [1, 3]), ("texts", [2, 4])]


def test_a_batch_is_filled_to_the_last_item_and_what_does_not_fit_waits_for_the_next() -> None:
    embedder = Embedder(4)
    with running(embedder) as (batcher, pool):
        _, asked = held(batcher, embedder, pool, ("texts", [1, 2]), ("texts", [3, 4, 5]), ("texts", [6, 7]), ("texts", [8]))
        assert [len(rows(one)) for one in asked] == [2, 3, 2, 1]
    assert embedder.batches[1:] == [("texts", [1, 2, 6, 7]), ("texts", [3, 4, 5, 8])]


def test_more_items_than_a_batch_takes_are_embedded_alone() -> None:
    embedder = Embedder(2)
    with running(embedder) as (batcher, pool):
        _, asked = held(batcher, embedder, pool, ("texts", [1, 2, 3]), ("texts", [4]))
        assert [len(rows(one)) for one in asked] == [3, 1]
    assert embedder.batches[1:] == [("texts", [1, 2, 3]), ("texts", [4])]


def test_no_items_have_no_rows() -> None:
    embedder = Embedder(2)
    with running(embedder) as (batcher, pool):
        _, asked = held(batcher, embedder, pool, ("texts", []), ("texts", [1]))
        assert [rows(one) for one in asked] == [[], [[1, 1]]]


# ---------------------------------------------------------------- how long a batch is held open


def test_a_batch_is_held_open_for_clients_that_have_not_asked_yet() -> None:
    embedder = Embedder(100)
    with running(embedder, clients=3) as (batcher, pool):
        asked = queued(batcher, pool, ("texts", [1]), ("texts", [2]))
        time.sleep(0.05)
        assert embedder.batches == []
        asked.append(pool.submit(batcher.embed, [3], are_texts=True))
        assert [rows(one) for one in asked] == [[[1, 1]], [[1, 2]], [[1, 3]]]
    assert embedder.batches == [("texts", [1, 2, 3])]


def test_a_client_that_leaves_is_not_waited_for_even_if_it_leaves_by_an_error() -> None:
    embedder = Embedder(100)
    with running(embedder, clients=1) as (batcher, pool):
        leaver = ExitStack()
        leaver.enter_context(batcher.register_client())
        (asked,) = queued(batcher, pool, ("texts", [1]))
        time.sleep(0.05)
        assert not asked.done()
        error = ZeroDivisionError()
        assert not leaver.__exit__(ZeroDivisionError, error, None), "its error stays its own"
        assert rows(asked) == [[1, 1]]


def test_a_batch_that_is_full_waits_for_nobody() -> None:
    embedder = Embedder(3)
    with running(embedder, clients=9) as (batcher, pool):
        asked = queued(batcher, pool, ("texts", [1, 2]))
        time.sleep(0.05)
        assert embedder.batches == []
        asked.append(pool.submit(batcher.embed, [3], are_texts=True))
        assert [len(rows(one)) for one in asked] == [2, 1]
    assert embedder.batches == [("texts", [1, 2, 3])]


def test_where_the_others_are_silent_it_is_embedded_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GATHER_S", 0.02)
    embedder = Embedder(100)
    with running(embedder, clients=5) as (batcher, pool):
        assert rows(pool.submit(batcher.embed, [1], are_texts=False)) == [[2, 1]]
        assert rows(pool.submit(batcher.embed, [2], are_texts=True)) == [[1, 2]]


# ---------------------------------------------------------------- errors


def test_an_error_is_that_of_the_request_to_blame_and_the_others_get_their_rows() -> None:
    embedder = Embedder(8)
    with running(embedder) as (batcher, pool):
        _, (good, bad, other) = held(batcher, embedder, pool, ("texts", [1, 2]), ("texts", [-3]), ("texts", [4]))
        with pytest.raises(ValueError, match=r"^no -3$"):
            bad.result(SOON_S)
        assert (rows(good), rows(other)) == ([[1, 1], [1, 2]], [[1, 4]])
        assert embedder.batches[1:] == [("texts", [1, 2, -3, 4]), ("texts", [1, 2]), ("texts", [-3]), ("texts", [4])]
        assert rows(pool.submit(batcher.embed, [5] * 8, are_texts=False)) == [[2, 5]] * 8, "the thread goes on"


def test_pictures_are_asked_for_again_as_pictures() -> None:
    embedder = Embedder(8)
    with running(embedder) as (batcher, pool):
        _, (bad, good) = held(batcher, embedder, pool, ("images", [-1]), ("images", [2]))
        with pytest.raises(ValueError, match="no -1"):
            bad.result(SOON_S)
        assert rows(good) == [[2, 2]]


def test_a_request_alone_is_tried_once() -> None:
    embedder = Embedder(1)
    with running(embedder) as (batcher, _), pytest.raises(ValueError, match="no -1"):
        batcher.embed([-1], are_texts=True)
    assert embedder.batches == [("texts", [-1])]


# ---------------------------------------------------------------- the end


def test_the_batch_at_work_is_finished_and_what_waits_gets_an_error() -> None:
    embedder = Embedder(1)
    with running(embedder) as (batcher, pool):
        embedder.may_go_on.clear()
        first = pool.submit(batcher.embed, [0], are_texts=True)
        assert embedder.is_working.wait(SOON_S)
        waiting = queued(batcher, pool, ("texts", [1]), ("images", [2]))
        closing = pool.submit(batcher.close)
        soon(lambda: batcher._is_closed)
        assert not closing.done()
        embedder.may_go_on.set()
        closing.result(SOON_S)
        assert rows(first) == [[1, 0]]
        for one in waiting:
            with pytest.raises(BackendError, match=r"The embedding server was ended\. Start it again\."):
                one.result(SOON_S)
        assert embedder.batches == [("texts", [0])]
        assert not batcher._thread.is_alive()


def test_a_batch_that_is_held_open_is_given_up_at_once() -> None:
    embedder = Embedder(9)
    with running(embedder, clients=2) as (batcher, pool):
        (waiting,) = queued(batcher, pool, ("texts", [1]))
        pool.submit(batcher.close).result(SOON_S)
        with pytest.raises(BackendError, match="was ended"):
            waiting.result(SOON_S)
    assert embedder.batches == []


def test_nothing_is_taken_on_after_the_end_and_it_may_be_ended_again() -> None:
    embedder = Embedder(1)
    with running(embedder) as (batcher, _):
        batcher.close()
        asked: Future[Vectors] = Future()

        def ask() -> None:
            try:
                asked.set_result(batcher.embed([1], are_texts=True))
            except BackendError as exc:
                asked.set_exception(exc)

        threading.Thread(target=ask, daemon=True).start()  # it may wait for ever, where the test fails
        with pytest.raises(BackendError, match=r"The embedding server was ended\. Start it again\."):
            asked.result(SOON_S)
        batcher.close()
