"""Coroutines from sync code, and the first error of several tasks."""

from __future__ import annotations

import asyncio

import pytest

from vip.captioning.run_async import run_async, task_group
from vip.errors import EngineError, ReplyError


async def answer() -> int:
    await asyncio.sleep(0)
    return 42


def test_a_coroutine_is_run_to_its_end() -> None:
    assert run_async(answer()) == 42


def test_it_is_so_where_a_loop_runs_already() -> None:
    async def notebook() -> int:
        return run_async(answer())

    assert asyncio.run(notebook()) == 42


def test_the_first_error_of_a_group_is_raised_as_it_is_with_its_cause() -> None:
    cause = ReplyError("No.")

    async def fail() -> None:
        raise EngineError("The server is gone.") from cause

    async def wait() -> None:
        await asyncio.Event().wait()

    async def go() -> None:
        async with task_group() as group:
            group.create_task(wait())
            group.create_task(fail())

    with pytest.raises(EngineError, match="gone") as caught:
        asyncio.run(go())
    assert caught.value.__cause__ is cause
