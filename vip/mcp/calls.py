"""Calls of tools on their way: a process for each, its progress, its end, and the money of all of them.

A call that is cancelled, whose client is gone, or that outlives the server, is ended by ending its process.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from vip.errors import VipError
from vip.mcp.results import Committed, Progress, ServerSettings, ToolCall, ToolResult
from vip.mcp.roots import Roots
from vip.mcp.tools import check_arguments, find_tool
from vip.processes.supervisor import ChildProcess
from vip.untrusted import one_line

MOST_AT_ONCE = 2  # calls; the others wait, and can be cancelled meanwhile
WORKER = "vip.mcp.worker"
Message = Progress | Committed | ToolResult | None
OnProgress = Callable[[int, str], Awaitable[None]]
"""Called with the steps since the call began, and with what is being done."""


@dataclass(slots=True)
class Calls:
    """The calls of a server, from the thread of its event loop."""

    settings: ServerSettings
    spent_usd: float = 0.0
    """Of calls that ended; where one was cancelled, the most that it may have cost."""
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_AT_ONCE))
    _spending: asyncio.Lock = field(default_factory=asyncio.Lock)
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    """One call at a time about a video, since the first makes the run that the others read."""
    _running: set[ChildProcess] = field(default_factory=set)

    async def run(self, name: str, given: object, on_progress: OnProgress) -> ToolResult:
        """Return the result of a call; an error is a result too."""
        try:
            tool = find_tool(name)
            arguments = check_arguments(tool, given)
            for text in arguments.named:  # a wrong path needs no process to be refused; the process looks again
                await asyncio.to_thread(Roots(self.settings.roots, self.settings.work).find, text)
        except VipError as exc:
            return ToolResult(one_line(str(exc)), is_error=True)
        async with AsyncExitStack() as stack:
            for text in sorted(set(arguments.named)):
                await stack.enter_async_context(self._locks.setdefault(text, asyncio.Lock()))
            async with self._spending if tool.is_paid else nullcontext(), self._slots:
                return await self._run(name, given, on_progress)

    async def _run(self, name: str, given: object, on_progress: OnProgress) -> ToolResult:
        assert isinstance(given, dict)
        committed_usd, steps = 0.0, 0
        process = _ProcessOfCall(ToolCall(name, given, self.settings, self.spent_usd))
        self._running.add(process.child)
        try:
            while True:
                message = await process.messages.get()
                if isinstance(message, Committed):
                    committed_usd = message.usd
                elif isinstance(message, Progress):
                    steps += message.steps
                    await on_progress(steps, message.text)
                elif message is None:
                    return ToolResult("The process of this call crashed, most likely on a damaged video.", is_error=True)
                else:
                    return message
        finally:
            self._running.discard(process.child)
            for message in process.end():  # what it sent before it was ended
                if isinstance(message, Committed):
                    committed_usd = message.usd
            self.spent_usd += committed_usd

    def end_all(self) -> None:
        """End the processes of all calls at once."""
        for child in self._running:
            child.stop()


class _ProcessOfCall:
    """The process of one call, and a thread that reads what it sends."""

    def __init__(self, call: ToolCall) -> None:
        self.messages: asyncio.Queue[Message] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._late: list[Message] = []
        self.child = ChildProcess(WORKER)  # in the thread of the loop, with which it ends
        self.child.send(call)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        message: Message = None
        while not isinstance(message, ToolResult):
            try:
                message = self.child.pipe.recv()
            except (EOFError, OSError):
                message = None
            self._late.append(message)
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self.messages.put_nowait, message)
            if message is None:
                return

    def end(self) -> list[Message]:
        """End the process and return all that it sent."""
        self.child.stop()
        self._reader.join()
        self.child.kill()
        return self._late
