"""The SDK's own client, and the processes that a server leaves."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
from mcp import Client, StdioServerParameters

from tests.cli.terminal import PATIENCE_S, environment, start

MARK = "VIP_TEST_MARK"  # in the environment of a server, and so of all that it starts


def over_stdio(*roots: Path, options: tuple[str, ...] = (), mark: str = "", **variables: str) -> StdioServerParameters:
    """`vip mcp` as an agent's settings start it."""
    arguments = ["-m", "vip", "mcp", *(word for root in roots for word in ("--root", str(root))), *options]
    return StdioServerParameters(command=sys.executable, args=arguments, env=environment(**{MARK: mark}, **variables), cwd=roots[0])


def talk(server: Any, conversation: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    """Return what a conversation with a server returns."""

    async def run() -> Any:
        with anyio.fail_after(PATIENCE_S):
            async with Client(server, **options) as client:
                return await conversation(client)

    return anyio.run(run)


def call(server: Any, tool: str, **arguments: Any) -> Any:
    """Return the result of one call."""
    return talk(server, lambda client: client.call_tool(tool, arguments))


def text_of(result: Any) -> str:
    """All texts of a result."""
    return "\n".join(block.text for block in result.content if block.type == "text")


def refusal_of(result: Any) -> str:
    """The one sentence of a call that failed."""
    assert result.is_error
    (block,) = result.content
    assert "Traceback" not in block.text
    assert "\n" not in block.text
    return str(block.text)


def data_of(result: Any) -> list[dict[str, Any]]:
    """The rows that come from the video."""
    from vip.mcp.results import MARK as DATA

    (block,) = [block for block in result.content if block.type == "text" and block.text.startswith(DATA)]
    return [json.loads(line) for line in block.text.splitlines()[1:]]


def new_mark() -> str:
    return uuid4().hex


def processes_of(mark: str) -> list[int]:
    """The processes that a server and its calls are, by their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            is_one = folder.name.isdigit() and f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0")
        except OSError:  # it ended, or is another user's
            continue
        if is_one:
            found.append(int(folder.name))
    return found


def wait_for_processes(mark: str, number: int) -> None:
    """Wait until so many are left."""
    deadline = time.monotonic() + PATIENCE_S
    while len(found := processes_of(mark)) != number:
        assert time.monotonic() < deadline, f"{len(found)} processes instead of {number}"
        time.sleep(0.02)


@contextmanager
def over_http(*roots: Path, options: tuple[str, ...] = (), mark: str = "") -> Iterator[tuple[str, str, subprocess.Popen[str]]]:
    """The address, the token and the process of `vip mcp --http`."""
    words = [word for root in roots for word in ("--root", str(root))]
    process = start(roots[0], "mcp", *words, "--http", "--json", *options, **{MARK: mark})
    try:
        assert process.stdout is not None
        row = json.loads(process.stdout.readline())
        yield row["address"], row["token"], process
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
