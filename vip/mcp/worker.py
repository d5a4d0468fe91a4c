"""The process of one call: it loads what the tool needs, does the work, and sends progress and the result.

It can be ended at any time, which is how a call is cancelled, and it ends when the server is gone.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing.connection import Connection

from vip.errors import VipError, no_permission_error
from vip.llm.budget import Usage
from vip.mcp.results import Committed, Progress, ToolCall, ToolResult
from vip.mcp.tools import check_arguments, find_tool
from vip.mcp.workshop import SharedBudget, Workshop
from vip.processes.supervisor import child_pipe
from vip.protocols import Observer
from vip.untrusted import one_line

PROGRESS_S = 0.2  # between two messages about progress, at least
MOST_LETTERS = 1000  # of an error


def main(fd: str) -> None:
    """Do the call that comes through the pipe, and send its result."""
    with child_pipe(fd) as pipe:
        call = pipe.recv()
        threading.Thread(target=_end_with_server, args=(pipe,), daemon=True).start()
        sender = _Sender(pipe)
        sender.send(perform(call, _PipeObserver(sender), lambda usd: sender.send(Committed(usd))))
    os._exit(0)  # skips threads of libraries


def perform(call: ToolCall, observer: Observer, report: Callable[[float], None]) -> ToolResult:
    """Return the result of a call; an error is one sentence.

    Args:
        report: called with the dollars of this call before each of them may be spent.
    """
    budget = SharedBudget(usage=Usage(usd=call.spent_usd), report=report, spent_before_usd=call.spent_usd)
    try:
        tool = find_tool(call.tool)
        module, _, name = tool.function.partition(":")
        function = getattr(import_module(module), name)
        result = function(check_arguments(tool, call.arguments), Workshop(call.settings, observer, budget))
    except VipError as exc:
        return refusal(exc)
    except PermissionError as exc:
        return refusal(no_permission_error(exc))
    except MemoryError:
        return ToolResult("Memory ran out. Ask for a part of the video, with start and end.", is_error=True)
    except Exception:  # a bug; the client is told, and the log of the server has the rest
        traceback.print_exc(file=sys.stderr)
        return ToolResult("A bug in vip ended this call. Its traceback is in the log of the server.", is_error=True)
    finally:
        report(budget.committed_usd - call.spent_usd)
    assert isinstance(result, ToolResult)
    return result


def refusal(error: VipError) -> ToolResult:
    """Return the result of a call that failed: one sentence, in which names of others stand on one line."""
    return ToolResult(one_line(str(error))[:MOST_LETTERS], is_error=True)


class _Sender:
    """A pipe that several threads may write to."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._lock = pipe, threading.Lock()

    def send(self, message: Progress | Committed | ToolResult) -> None:
        with self._lock:
            self._pipe.send(message)


class _PipeObserver:
    """An observer that sends progress, several steps at once."""

    def __init__(self, sender: _Sender) -> None:
        self._sender = sender

    def note(self, text: str) -> None:
        """Leave the note aside: those that matter stand in the manifest of the run."""

    @contextmanager
    def track(self, title: str, total: int, extra: Callable[[], str] | None = None) -> Iterator[Callable[[], None]]:
        lock, done, sent, sent_at = threading.Lock(), 0, 0, 0.0

        def advance() -> None:
            nonlocal done, sent, sent_at
            with lock:
                done += 1
                if done < total and time.monotonic() - sent_at < PROGRESS_S:
                    return
                steps, sent, sent_at = done - sent, done, time.monotonic()
                text = f"{title}: {done} of {total}"
            self._sender.send(Progress(steps, text))

        yield advance


def _end_with_server(pipe: Connection) -> None:
    """End this process when the other end of the pipe is closed, on every system."""
    with suppress(EOFError, OSError):
        pipe.recv()
    os._exit(1)
