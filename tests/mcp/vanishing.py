"""A client that starts a long call, says so, and waits to be killed: `python -m tests.mcp.vanishing ROOT MARK` or `… URL TOKEN [MODE]`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.mcp.clients import over_stdio


async def main(where: str, key: str, mode: str = "auto") -> None:
    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        print("working", flush=True)
        await anyio.sleep_forever()

    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60) as http:
        server: Any = streamable_http_client(where, http_client=http) if where.startswith("http") else over_stdio(Path(where), mark=key)
        async with Client(server, mode=mode) as client:
            await client.call_tool("keyframes", {"video": "long.mp4"}, progress_callback=on_progress)


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
