"""The driver's side of the caption server, the one process that asks models: a cluster has one rate limit, one budget and one cache.

In: parts without descriptions. Out: the same parts with them, and their cost. Many videos are described at once, as many keyframes as
the model server answers well. If it is gone, the parts wait here and it is asked again later. With `--batch` the questions of many parts
go to its Batch API together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from vip.config import CaptionSettings
from vip.processes.supervisor import ChildDiedError, Supervisor

if TYPE_CHECKING:
    from vip.llm.outage import OutagePause

AHEAD = 64  # videos at the caption server, so that no request waits for a video


class CaptionTask(NamedTuple):
    """A part to be described."""

    key: str
    part: Path
    topic: str | None


class CostSoFar(NamedTuple):
    """The cost in all runs of the batch."""

    usd: float
    tokens: int


class Described(NamedTuple):
    """The part has its descriptions."""

    key: str
    undescribed: tuple[tuple[str, str, str], ...]
    """Keyframes that could not be described: id, type, message."""
    size_bytes: int
    failure: str | None
    """Why not one keyframe could be described; None if any could."""


class KeyframesInBatch(NamedTuple):
    """The questions about a part are in a batch; its answers are awaited."""

    key: str


class CaptionServerReady(NamedTuple):
    """The engines are loaded: for dense captions, and for FAMOuS. No question has been asked."""

    describe_engine: str
    structure_engine: str


class ExpectedKeyframes(NamedTuple):
    """The number of keyframes to come in all, for the estimate of the cost."""

    keyframes: int


class SubmitBatches(NamedTuple):
    """A request to submit the collected questions: no more parts come for now."""


class ServerAnswered(NamedTuple):
    """The model server has answered, so its address is right."""


class ServerPaused(NamedTuple):
    """The model server is not asked for a while; None: it answers again."""

    pause: OutagePause | None


@dataclass(frozen=True, slots=True)
class CaptionServerConfig:
    """The first message to the caption server.

    Args:
        home: the folder of the batch's state.
        paid: in earlier runs of the batch; it counts towards the budget.
        retry_wait_s: the first pause of a model server that is gone.
        in_batches: ask through the Batch API.
        answered: the model server has answered in this batch before, so its address is right.
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
        note: called with each note of the process.
    """

    config: CaptionServerConfig
    note: Callable[[str], None]
    pause: OutagePause | None = None
    """While the model server is not asked."""
    _process: Supervisor = field(init=False)
    _waiting: deque[CaptionTask] = field(default_factory=deque)
    _under_way: dict[str, CaptionTask] = field(default_factory=dict)
    _in_batch: dict[str, CaptionTask] = field(default_factory=dict)
    _has_unsubmitted: bool = False
    """Questions were collected for a batch since the last one was submitted."""

    def __post_init__(self) -> None:
        self._process = Supervisor("vip.corpus.workers.caption_server", "asks for captions", lambda: self.config)

    @property
    def paid(self) -> CostSoFar:
        return self.config.paid

    def check(self) -> CaptionServerReady:
        """Load the engines.

        Raises:
            VipError: they cannot be asked: a key, a price, a package or a model is missing.
        """
        while True:
            try:
                message = self._process.receive()
            except ChildDiedError:
                continue
            if isinstance(message, CaptionServerReady):
                return message
            self._handle(message)

    def expect(self, keyframes: int) -> None:
        """Let the process note what so many keyframes will cost."""
        self._process.send(ExpectedKeyframes(keyframes))

    def submit(self, task: CaptionTask) -> None:
        self._waiting.append(task)
        self._send_waiting()

    def submit_batches(self) -> None:
        """Submit the collected questions, unless more are about to be collected."""
        if self._has_unsubmitted and self._process.is_running and not (self._waiting or self._under_way):
            self._process.send(SubmitBatches())
            self._has_unsubmitted = False

    def _send_waiting(self) -> None:
        while self._waiting and len(self._under_way) < AHEAD:
            task = self._waiting.popleft()
            self._under_way[task.key] = task
            self._process.send(task)

    def events(self, timeout_s: float = 0.0) -> list[Described]:
        """Return the parts described since the last call; wait at most so long for one.

        Raises:
            VipError: the engine cannot be asked, or the budget is spent.
        """
        found: list[Described] = []
        while self._process.has_message(0.0 if found else timeout_s):
            try:
                # while the model server is gone nothing can be described, however often the process is killed
                message = self._process.receive(excused=self.pause is not None)
            except ChildDiedError:
                self._requeue()
                break
            if isinstance(message, Described):
                self._finish(message)
                found.append(message)
            else:
                self._handle(message)
        self._send_waiting()
        return found

    def _finish(self, described: Described) -> None:
        self._process.deaths.reset()
        self._under_way.pop(described.key, None)
        self._in_batch.pop(described.key, None)
        self.config = replace(self.config, answered=self.config.answered or described.failure is None)

    def _handle(self, message: object) -> None:
        match message:
            case KeyframesInBatch(key):
                self._process.deaths.reset()
                if key in self._under_way:
                    self._in_batch[key] = self._under_way.pop(key)
                self._has_unsubmitted = True
            case CostSoFar():
                self.config = replace(self.config, paid=message)
            case ServerPaused(pause):
                self.pause = pause
            case ServerAnswered():
                self.config = replace(self.config, answered=True)
            case str():
                self.note(message)

    def _requeue(self) -> None:
        """Put the parts of a dead process first; its answers are cached, and not asked for again."""
        self._waiting.extendleft(reversed([*self._in_batch.values(), *self._under_way.values()]))
        self._under_way.clear()
        self._in_batch.clear()
        self.pause = None

    def close(self) -> None:
        """End the process. Its answers are cached, and not asked for again."""
        self._process.close()
