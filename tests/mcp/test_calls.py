"""Which calls run beside each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from vip.config import CaptionSettings
from vip.mcp.calls import Calls, OnProgress
from vip.mcp.results import Committed, Progress, ServerSettings, ToolResult

pytestmark = pytest.mark.extra("mcp")
PATIENCE_S = 20

Call = tuple[str, dict[str, Any]]
Together = Callable[..., int]


class IdleCalls(Calls):
    """Does nothing, and notes how many calls do so at once."""

    async def _run(self, name: str, given: object, on_progress: OnProgress) -> ToolResult:
        running.append(name)
        await asyncio.sleep(0.05)  # room for a call that must not run now
        while len(running) < expected and most[-1] < expected:
            most.append(max(most[-1], len(running)))
            await asyncio.sleep(0.005)
        most.append(max(most[-1], len(running)))
        running.remove(name)
        return ToolResult(name)


running: list[str] = []
most: list[int] = []
expected = 1


@pytest.fixture
def together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Together:
    """Start calls at the same time, and return how many ran at once; so many as are expected are waited for."""
    for name in ("a.mp4", "b.mp4", "c.mp4"):
        (tmp_path / name).write_bytes(b"x")
    root = tmp_path.resolve()

    def start(*calls: Call, at_once: int = 1) -> int:
        async def tell(steps: int, text: str) -> None:
            pass

        async def run() -> list[ToolResult]:
            idle = IdleCalls(ServerSettings(roots=(root,), work=root, max_usd=1.0, captions=CaptionSettings()))
            return await asyncio.wait_for(asyncio.gather(*(idle.run(name, given, tell) for name, given in calls)), PATIENCE_S)

        monkeypatch.setitem(globals(), "expected", at_once)
        most[:] = [0]
        assert [one.text for one in asyncio.run(run())] == [name for name, _ in calls]
        return most[-1]

    return start


def search(*sources: str) -> Call:
    return "search", {"query": "pump", "sources": list(sources)}


def sheet(video: str) -> Call:
    return "sheet", {"video": video}


def test_two_calls_run_at_once_and_no_third(together: Together) -> None:
    assert together(search("a.mp4"), sheet("b.mp4"), sheet("c.mp4"), at_once=2) == 2


def test_calls_about_one_video_wait_for_each_other_wherever_it_is_named(together: Together) -> None:
    for sources in (("a.mp4", "b.mp4"), ("b.mp4", "a.mp4")):
        assert together(search(*sources), sheet("b.mp4")) == 1
    assert together(search("a.mp4", "b.mp4"), search("b.mp4", "a.mp4")) == 1, "and not for ever"
    assert together(search("a.mp4", "a.mp4")) == 1


def test_calls_that_name_the_same_videos_in_another_order_do_not_wait_for_each_other_for_ever(
    together: Together, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def at_once(check: Callable[..., object], *given: object) -> object:
        return check(*given)

    monkeypatch.setattr(asyncio, "to_thread", at_once)  # so that they come to the locks in this order
    monkeypatch.setitem(globals(), "PATIENCE_S", 5)
    assert together(sheet("b.mp4"), search("b.mp4", "a.mp4"), search("a.mp4", "b.mp4")) == 1


def test_calls_that_cost_money_run_one_at_a_time(together: Together) -> None:
    first, second = (("ask", {"question": "why?", "sources": [name]}) for name in ("a.mp4", "b.mp4"))
    assert together(first, second) == 1
    assert together(first, ("describe", {"video": "b.mp4"})) == 1
    assert together(first, sheet("b.mp4"), at_once=2) == 2


def test_what_a_cancelled_call_had_put_aside_counts_though_nobody_has_read_it_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        """A process whose last words come when it is ended."""

        def __init__(self, call: object) -> None:
            self.child, self.messages = object(), asyncio.Queue[object]()

        def end(self) -> list[object]:
            return [Committed(0.01), Committed(0.03), None]

    async def tell(steps: int, text: str) -> None:
        pass

    async def cancelled(calls: Calls) -> None:
        call = asyncio.create_task(calls._run("ask", {}, tell))
        await asyncio.sleep(0)
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call

    monkeypatch.setattr("vip.mcp.calls._ProcessOfCall", Silent)
    calls = Calls(ServerSettings(roots=(tmp_path,), work=tmp_path, max_usd=1.0, captions=CaptionSettings()), spent_usd=0.5)
    asyncio.run(cancelled(calls))
    assert calls.spent_usd == pytest.approx(0.53)
    assert not calls._running


def test_steps_of_a_call_are_added_up_for_the_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy:
        """A process that tells of three steps, and is done."""

        def __init__(self, call: object) -> None:
            self.child, self.messages = object(), asyncio.Queue[object]()
            for message in (Progress(1, "Looking: 1 of 3"), Progress(2, "Looking: 3 of 3"), ToolResult("done")):
                self.messages.put_nowait(message)

        def end(self) -> list[object]:
            return []

    told: list[tuple[int, str]] = []

    async def tell(steps: int, text: str) -> None:
        told.append((steps, text))

    monkeypatch.setattr("vip.mcp.calls._ProcessOfCall", Busy)
    calls = Calls(ServerSettings(roots=(tmp_path,), work=tmp_path, max_usd=1.0, captions=CaptionSettings()))
    assert asyncio.run(calls._run("ask", {}, tell)).text == "done"
    assert told == [(1, "Looking: 1 of 3"), (3, "Looking: 3 of 3")]


def test_a_wrong_path_is_refused_without_a_process(tmp_path: Path) -> None:
    async def tell(steps: int, text: str) -> None:
        raise AssertionError

    class NoProcess(Calls):
        async def _run(self, name: str, given: object, on_progress: OnProgress) -> ToolResult:
            raise AssertionError(name)

    calls = NoProcess(ServerSettings(roots=(tmp_path.resolve(),), work=tmp_path, max_usd=1.0, captions=CaptionSettings()))
    for named in ("none.mp4", "/etc/hostname"):
        assert asyncio.run(calls.run("sheet", {"video": named}, tell)).is_error
