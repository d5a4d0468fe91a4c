"""`vip mcp --http`: loopback, a token, and clients that come and go."""

from __future__ import annotations

import http.client
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("mcp")

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.cli.terminal import PATIENCE_S, environment, vip
from tests.mcp.clients import new_mark, over_http, text_of, wait_for_processes

pytestmark = [pytest.mark.extra("mcp"), pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")]


def ask(address: str, **headers: str) -> int:
    """The status of a request that lists the tools."""
    at = urlsplit(address)
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=30)
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    try:
        connection.request("POST", at.path, b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}', sent)
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_request_without_the_token_or_from_another_site_is_refused(root: Path) -> None:
    with over_http(root) as (address, token, _):
        key = {"Authorization": f"Bearer {token}"}
        assert urlsplit(address).hostname == "127.0.0.1"
        assert ask(address) == 401
        assert ask(address, Authorization="Bearer wrong") == 401
        assert ask(address, **key, Host="example.org") == 421
        assert ask(address, **key, Origin="https://example.org") == 403
        assert ask(address, **key) not in (401, 403, 421)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_sees_a_video_and_cancels(mode: str, long_root: Path) -> None:
    mark = new_mark()
    with over_http(long_root, mark=mark) as (address, token, _):
        wait_for_processes(mark, 1)

        async def conversation() -> None:
            headers = {"Authorization": f"Bearer {token}"}
            async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as web:
                transport: Any = streamable_http_client(address, http_client=web)
                async with Client(transport, mode=mode) as client:
                    with anyio.CancelScope() as scope:

                        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
                            scope.cancel()

                        await client.call_tool("keyframes", {"video": "long.mp4"}, progress_callback=on_progress)
                    assert scope.cancelled_caught
                    await anyio.to_thread.run_sync(wait_for_processes, mark, 1)
                    assert "6 keyframes" in text_of(await client.call_tool("keyframes", {"video": "short.mp4"}))

        anyio.run(conversation)
    wait_for_processes(mark, 0)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_call_ends_with_the_connection_of_its_client(mode: str, long_root: Path) -> None:
    mark = new_mark()
    with over_http(long_root, mark=mark) as (address, token, _):
        command = [sys.executable, "-m", "tests.mcp.vanishing", address, token, mode]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == "working\n"
            client.kill()
        wait_for_processes(mark, 1)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--http", "70000"], "a port is a number"),
        (["--json"], "stdout is the protocol's"),
        (["--root", "nothing"], "nothing is not a folder"),
    ],
)
def test_wrong_options_are_a_sentence(arguments: list[str], sentence: str, root: Path) -> None:
    done = vip(root, "mcp", "--root", str(root), *arguments)
    assert done.code in (2, 3)
    assert sentence in done.sentence
