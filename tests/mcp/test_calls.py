"""Which calls run at the same time, and what they spend."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from vip.config import CaptionSettings
from vip.mcp.calls import Calls, OnProgress
from vip.mcp.results import ServerSettings, ToolResult

pytestmark = pytest.mark.extra("mcp")


class SlowCalls(Calls):
    """Notes which calls run beside each other, and does nothing."""

    async def _run(self, name: str, given: object, on_progress: OnProgress) -> ToolResult:
        running.append(name)
        beside.append(sorted(running))
        await asyncio.sleep(0.01)
        running.remove(name)
        return ToolResult(name)


running: list[str] = []
beside: list[list[str]] = []


@pytest.fixture
def together(tmp_path: Path) -> Any:
    """Start calls at the same time, and return which ran beside each other."""
    for name in ("a.mp4", "b.mp4", "c.mp4"):
        (tmp_path / name).write_bytes(b"x")
    root = tmp_path.resolve()

    def start(*calls: tuple[str, dict[str, Any]]) -> list[list[str]]:
        async def run() -> None:
            slow = SlowCalls(ServerSettings(roots=(root,), work=root, max_usd=1.0, captions=CaptionSettings()))

            async def tell(steps: int, text: str) -> None:
                pass

            results = await asyncio.wait_for(asyncio.gather(*(slow.run(name, given, tell) for name, given in calls)), 20)
            assert [one.text for one in results] == [name for name, _ in calls]

        beside.clear()
        asyncio.run(run())
        return list(beside)

    return start


def search(*sources: str) -> tuple[str, dict[str, Any]]:
    return "search", {"query": "pump", "sources": list(sources)}


def test_two_calls_run_at_once_and_no_third(together: Any) -> None:
    found = together(search("a.mp4"), ("sheet", {"video": "b.mp4"}), ("frame", {"video": "c.mp4", "number": 1}))
    assert max(map(len, found)) == 2


@pytest.mark.parametrize("place", [0, 1])
def test_calls_about_one_video_wait_for_each_other_wherever_it_is_named(place: int, together: Any) -> None:
    sources = ["a.mp4", "b.mp4"] if place else ["b.mp4", "a.mp4"]
    assert sorted(together(search(*sources), ("sheet", {"video": "b.mp4"}))) == [["search"], ["sheet"]]
    assert together(search("a.mp4", "b.mp4"), search("b.mp4", "a.mp4")) == [["search"]] * 2, "and not for ever"
    assert together(search("a.mp4", "a.mp4")) == [["search"]]


def test_calls_that_cost_money_run_one_at_a_time(together: Any) -> None:
    asked = [("ask", {"question": "why?", "sources": [name]}) for name in ("a.mp4", "b.mp4")]
    assert together(*asked) == [["ask"], ["ask"]]
    assert sorted(together(asked[0], ("describe", {"video": "b.mp4"}))) == [["ask"], ["describe"]]
    assert max(map(len, together(asked[0], ("sheet", {"video": "b.mp4"})))) == 2
