"""Measure `vip mcp` from the side of a client: first answer, keyframes of a long video, cancelling, and a client that vanishes.

    python benchmarks/agent_server.py ../shared/videos/real/cockatoo_720p.mp4

The video is repeated until it lasts ten minutes. It has another name than the SDK (`mcp`), which it would hide.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio
import av
from mcp import Client, StdioServerParameters

MINUTES = 10
BARE = """
import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import ListToolsResult

async def tools(context, params):
    return ListToolsResult(tools=[])

async def main():
    server = Server("bare", on_list_tools=tools)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())

anyio.run(main)
"""
"""The yardstick: a server of the SDK that does nothing."""
REPEATS = 5


def lengthen(source: Path, target: Path, seconds: float) -> None:
    """Write the video stream again and again, without decoding it, until it lasts so long."""
    with av.open(str(target), "w") as output:
        stream, offset = None, 0
        while True:
            with av.open(str(source)) as given:
                video = given.streams.video[0]
                if stream is None:
                    stream = output.add_stream_from_template(video)
                end = offset
                for packet in given.demux(video):
                    if packet.dts is None or packet.pts is None:
                        continue
                    packet.pts, packet.dts = packet.pts + offset, packet.dts + offset
                    end = max(end, packet.pts + (packet.duration or 1))
                    base = packet.time_base
                    packet.stream = stream
                    output.mux(packet)
                offset = end
                if offset * base >= seconds:
                    return


def workers() -> list[int]:
    """The processes of calls that run now."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and b"vip.mcp.worker" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


async def seconds_until(holds: Callable[[], bool]) -> float:
    """Wait until it holds, and return how long that took."""
    start = time.perf_counter()
    while not holds():
        await anyio.sleep(0.005)
    return time.perf_counter() - start


async def measure(name: str, run: Callable[[], Awaitable[float]]) -> None:
    found = sorted([await run() for _ in range(REPEATS)])
    print(f"{name:46} {found[0]:6.2f} s at best, {found[len(found) // 2]:6.2f} s in the middle of {REPEATS}", flush=True)


async def main(root: Path) -> None:
    server = StdioServerParameters(command=sys.executable, args=["-m", "vip", "mcp", "--root", str(root)])

    async def first_answer(server: StdioServerParameters) -> float:
        start = time.perf_counter()
        async with Client(server, mode="legacy") as client:
            await client.list_tools()
            return time.perf_counter() - start

    async def keyframes() -> float:
        async with Client(server) as client:  # a new server each time: nothing is kept
            start = time.perf_counter()
            found = await client.call_tool("keyframes", {"video": "long.mp4", "count": 12})
            assert not found.is_error, found.content
            return time.perf_counter() - start

    async def cancelled() -> float:
        async with Client(server) as client:
            with anyio.CancelScope() as scope:

                async def on_progress(progress: float, total: float | None, message: str | None) -> None:
                    scope.cancel()

                await client.call_tool("keyframes", {"video": "long.mp4"}, progress_callback=on_progress)
            return await seconds_until(lambda: not workers())

    async def vanished() -> float:
        process = subprocess.Popen([server.command, *server.args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdin is not None
        assert process.stdout is not None
        for line in (
            '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
            '"clientInfo":{"name":"x","version":"1"}}}',
            '{"jsonrpc":"2.0","method":"notifications/initialized"}',
            '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"keyframes","arguments":{"video":"long.mp4"},'
            '"_meta":{"progressToken":1}}}',
        ):
            process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()
        for _ in range(2):  # the answer to initialize, and the first progress
            process.stdout.readline()
        process.stdin.close()
        process.stdout.close()
        took = await seconds_until(lambda: process.poll() is not None and not workers())
        process.wait()
        return took

    bare = StdioServerParameters(command=sys.executable, args=["-c", BARE])
    await measure("the SDK alone, to the list of tools", partial(first_answer, bare))
    await measure("from the start to the list of tools", partial(first_answer, server))
    await measure(f"keyframes of {MINUTES} minutes", keyframes)
    await measure("a cancelled call has no process", cancelled)
    await measure("a client that is gone leaves no process", vanished)


if __name__ == "__main__":
    folder = Path(tempfile.mkdtemp())
    try:
        lengthen(Path(sys.argv[1]), folder / "long.mp4", MINUTES * 60)
        anyio.run(main, folder)
    finally:
        shutil.rmtree(folder)
