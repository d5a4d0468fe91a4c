"""The one process that asks for captions: for a whole cluster there is one rate limit, one ceiling, and one file of answers.

In: parts that wait for their descriptions. Out: the same parts with them, and what that cost. Many videos are described at once,
as many keyframes as the servers answer well. A server that is gone is left alone for a while, and the parts wait here. With `--batch`
the questions of many parts go to the server's Batch API together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from vip.config import CaptionSettings
from vip.errors import VipError
from vip.processes.supervisor import MOST_DEATHS, ChildProcess, too_many_deaths

if TYPE_CHECKING:
    from vip.llm.outage import OutagePause

AHEAD = 64  # videos that wait here, so that no request waits for a video


class CaptionTask(NamedTuple):
    """A part to be described."""

    key: str
    part: Path
    topic: str | None


class CostSoFar(NamedTuple):
    """What was spent so far, earlier runs of the batch included."""

    usd: float
    tokens: int


class Described(NamedTuple):
    """Its descriptions are in the part; `failure`: not one keyframe could be described."""

    key: str
    undescribed: tuple[tuple[str, str, str], ...]
    """Keyframes that could not be described: id, type, message."""
    size_bytes: int
    failure: str | None


class KeyframesInBatch(NamedTuple):
    """Its questions are in a batch, and nothing more can be done until that comes back."""

    key: str


class CaptionServerReady(NamedTuple):
    """The engines can be asked, as far as that can be told without asking: who looks, and who writes FAMOuS."""

    describe_engine: str
    structure_engine: str


class ExpectedKeyframes(NamedTuple):
    """So many keyframes are to come in all, for the estimate of what they cost."""

    keyframes: int


class SubmitBatches(NamedTuple):
    """No more parts come for now: what is collected for a batch should go."""


class ServerAnswered(NamedTuple):
    """A server has answered, so its address is right."""


class ServerPaused(NamedTuple):
    """A server is left alone; None: it answers again."""

    rest: OutagePause | None


@dataclass(frozen=True, slots=True)
class CaptionServerConfig:
    """What the process is told at its start.

    Args:
        home: the folder of the batch's state.
        paid: by earlier runs of the batch, which counts towards the ceiling.
        retry_wait_s: the first rest of a server that is gone.
        in_batches: ask through the server's Batch API.
        answered: the server has answered in this batch before, so its address is right.
    """

    settings: CaptionSettings
    home: Path
    paid: CostSoFar
    retry_wait_s: float
    in_batches: bool = False
    answered: bool = False


@dataclass(slots=True)
class CaptionClient:
    """The driver's side. The process starts with `check`, or with the first part.

    Args:
        note: told what the process says.
    """

    orders: CaptionServerConfig
    note: Callable[[str], None]
    rest: OutagePause | None = None
    """While a server is left alone."""
    _waiting: deque[CaptionTask] = field(default_factory=deque)
    _under_way: dict[str, CaptionTask] = field(default_factory=dict)
    _in_batch: dict[str, CaptionTask] = field(default_factory=dict)
    _to_hand_in: bool = False
    """Something was collected for a batch since the last one was to go."""
    _child: ChildProcess | None = None
    _deaths: int = 0

    @property
    def paid(self) -> CostSoFar:
        """So far, kept up to date."""
        return self.orders.paid

    def check(self) -> CaptionServerReady:
        """Load the engines.

        Raises:
            VipError: they cannot be asked: a key, a price, a package or a model is missing.
        """
        while True:
            child = self._start()
            try:
                found = child.pipe.recv()
            except (EOFError, OSError):
                self._died()
                continue
            if isinstance(found, VipError):
                raise found
            if isinstance(found, CaptionServerReady):
                return found
            self.note(found)

    def expect(self, keyframes: int) -> None:
        """Let the process say what so many will cost."""
        self._start().send(ExpectedKeyframes(keyframes))

    def submit(self, wanted: CaptionTask) -> None:
        self._waiting.append(wanted)
        self._pass_on()

    def hand_in(self) -> None:
        """What is collected for a batch should go: no more parts come for now."""
        if self._to_hand_in and self._child is not None and not (self._waiting or self._under_way):
            self._child.send(SubmitBatches())
            self._to_hand_in = False

    def _start(self) -> ChildProcess:
        if self._child is None:
            self._child = ChildProcess("vip.corpus.workers.caption_server")
            self._child.send(self.orders)
        return self._child

    def _pass_on(self) -> None:
        while self._waiting and len(self._under_way) < AHEAD:
            wanted = self._waiting.popleft()
            self._under_way[wanted.key] = wanted
            self._start().send(wanted)

    def events(self, timeout_s: float = 0.0) -> list[Described]:
        """What has been described.

        Raises:
            VipError: the engine cannot be asked, or the money is spent.
        """
        found: list[Described] = []
        while self._child is not None and self._child.pipe.poll(0.0 if found else timeout_s):
            try:
                message = self._child.pipe.recv()
            except (EOFError, OSError):
                self._died()
                break
            if isinstance(message, Described):
                self._deaths = 0
                self._under_way.pop(message.key, None)
                self._in_batch.pop(message.key, None)
                self.orders = replace(self.orders, answered=self.orders.answered or message.failure is None)
                found.append(message)
            else:
                self._heard(message)
        self._pass_on()
        return found

    def _heard(self, message: object) -> None:
        match message:
            case KeyframesInBatch(key):
                self._deaths = 0
                if key in self._under_way:
                    self._in_batch[key] = self._under_way.pop(key)
                self._to_hand_in = True
            case CostSoFar():
                self.orders = replace(self.orders, paid=message)
            case ServerPaused(rest):
                self.rest = rest
            case ServerAnswered():
                self.orders = replace(self.orders, answered=True)
            case VipError():
                raise message
            case str():
                self.note(message)

    def _died(self) -> None:
        """Another takes its place, unless that happens again and again; answers that it had are not asked for again."""
        code = self._child.kill() if self._child else 0
        self._child = None
        self._deaths += self.rest is None  # while a server is gone nothing can be described, however often it is killed
        if self._deaths >= MOST_DEATHS:
            raise too_many_deaths("asks for captions", code)
        self._waiting.extendleft(reversed([*self._in_batch.values(), *self._under_way.values()]))
        self._under_way.clear()
        self._in_batch.clear()
        self.rest = None

    def close(self) -> None:
        """End it. What was answered is kept, and not asked for again."""
        if self._child is not None:
            self._child.kill()
            self._child = None
