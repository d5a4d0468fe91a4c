"""Processes at the other end of a pipe that are not there: they say what a test lets them say."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import pytest


class Gone:
    """Said last, by a process that ended."""


@dataclass(eq=False)
class Pipe:
    said: deque[object] = field(default_factory=deque)
    polls: list[float] = field(default_factory=list)
    """How long each look would have waited."""

    def poll(self, timeout_s: float = 0.0) -> bool:
        self.polls.append(timeout_s)
        return bool(self.said)

    def recv(self) -> object:
        message = self.said.popleft()
        if isinstance(message, Gone):
            raise EOFError
        return message


@dataclass(eq=False)
class FakeChild:
    """In the place of `ChildProcess`."""

    module: str
    arguments: tuple[str, ...] = ()
    pipe: Pipe = field(default_factory=Pipe)
    sent: list[object] = field(default_factory=list)
    killed: int = 0
    code: int = -9

    def send(self, message: object) -> None:
        self.sent.append(message)

    def kill(self) -> int:
        self.killed += 1
        return self.code


class Children(list[FakeChild]):
    """All that were started."""

    def __init__(self) -> None:
        super().__init__()
        self.first: list[object] = []
        """What each says at once."""

    def start(self, module: str, arguments: tuple[str, ...] = ()) -> FakeChild:
        self.append(FakeChild(module, arguments, Pipe(deque(self.first))))
        return self[-1]

    def say(self, *messages: object) -> None:
        """The last one says this."""
        self[-1].pipe.said.extend(messages)


def children_of(monkeypatch: pytest.MonkeyPatch) -> Children:
    """Return the list of all children that are started from now on."""
    found = Children()
    monkeypatch.setattr("vip.processes.supervisor.ChildProcess", found.start)
    return found
