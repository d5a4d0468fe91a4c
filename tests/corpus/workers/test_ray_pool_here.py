"""The pool of Ray's actors without Ray: which of them are given up."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from vip.corpus.workers.ray_pool import SILENT_S, RayPool


def pool_of(*actors: Any) -> tuple[RayPool, list[str]]:
    """A pool of actors of which none answers, and the names of those that it replaces."""
    pool: Any = object.__new__(RayPool)
    pool._ray = SimpleNamespace(wait=lambda polls, **_: ([], polls))
    pool._actors, replaced = list(actors), []
    pool._replace = lambda actor: replaced.append(actor.name) or []
    pool._require_an_actor = lambda now: None
    return pool, replaced


def actor(name: str, *, is_ready: bool, silent_s: float) -> Any:
    return SimpleNamespace(name=name, poll=name, is_ready=is_ready, polled_at=time.monotonic() - silent_s)


@pytest.mark.parametrize(("is_ready", "silent_s", "is_given_up"), [(True, 10, True), (True, -10, False), (False, 1000, False)])
def test_an_actor_that_was_ready_and_does_not_answer_is_given_up_and_one_that_starts_is_not(
    is_ready: bool, silent_s: float, is_given_up: bool
) -> None:
    pool, replaced = pool_of(actor("one", is_ready=is_ready, silent_s=SILENT_S + silent_s), actor("other", is_ready=True, silent_s=0))
    assert pool.events(0.0) == []
    assert replaced == (["one"] if is_given_up else [])
