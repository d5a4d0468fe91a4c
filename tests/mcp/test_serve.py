"""Where the server works, and what is left of it when it is told to end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("mcp")

from vip.config import CaptionSettings
from vip.mcp import serve
from vip.mcp.calls import Calls
from vip.mcp.results import ServerSettings

pytestmark = pytest.mark.extra("mcp")


@pytest.fixture
def told_to_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """A client whose first word is SIGTERM; the codes with which the server ends."""
    codes: list[int] = []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(os, "_exit", codes.append)

    @asynccontextmanager
    async def client() -> AsyncIterator[tuple[None, None]]:
        os.kill(os.getpid(), signal.SIGTERM)
        while not codes:
            await asyncio.sleep(0.001)
        yield None, None

    async def answer_nothing(*given: object) -> None:
        pass

    monkeypatch.setattr(serve, "stdio_server", client)
    monkeypatch.setattr(serve, "make_server", lambda calls: SimpleNamespace(run=answer_nothing, create_initialization_options=dict))
    return codes


def settings(root: Path) -> ServerSettings:
    return ServerSettings(roots=(root,), work=Path(), max_usd=1.0, captions=CaptionSettings())


def test_a_folder_that_was_named_keeps_its_runs_when_the_server_is_told_to_end(told_to_end: list[int], tmp_path: Path) -> None:
    run = tmp_path / "work" / "talk.vip" / "manifest.json"
    run.parent.mkdir(parents=True)
    run.write_text("{}")
    serve.serve_stdio(settings(tmp_path), tmp_path / "work")
    assert (told_to_end, run.read_text()) == ([128 + signal.SIGTERM], "{}")


def test_a_folder_of_its_own_goes_with_the_server_and_its_calls_end(
    told_to_end: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[list[str]] = []
    monkeypatch.setattr(Calls, "end_all", lambda calls: ended.append([path.name for path in tmp_path.iterdir()]))
    serve.serve_stdio(settings(tmp_path), None)
    assert told_to_end == [128 + signal.SIGTERM]
    assert [name.startswith("vip-mcp-") for names in ended for name in names] == [True], "while the folder was still there"
    assert list(tmp_path.iterdir()) == []
