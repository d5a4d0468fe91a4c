"""The process that asks models for captions; `caption_client` is the driver's side.

In: its configuration and then parts, over a pipe. Out: the same parts with their descriptions, and messages.
"""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from vip.corpus.status import BATCHES, duration
from vip.corpus.workers.caption_client import (
    CaptionServerConfig,
    CaptionServerReady,
    CaptionTask,
    CostSoFar,
    Described,
    ExpectedKeyframes,
    KeyframesInBatch,
    ServerAnswered,
    ServerPaused,
    SubmitBatches,
)
from vip.corpus.workers.worker import undescribed_keyframes
from vip.errors import StoreError, VipError
from vip.processes.supervisor import child_pipe
from vip.protocols import SilentObserver

if TYPE_CHECKING:
    from vip.captioning.caption_job import RunCaptioner
    from vip.llm.budget import Budget, Usage
    from vip.llm.outage import OutagePause

DESCRIBING = "describing"  # folder in the state for the videos that are being described
COST_INTERVAL_S = 0.5  # between two messages about the cost
PIPE_POLL_S = 0.05  # where a pipe cannot be watched
FIRST_POLL_S, LONGEST_POLL_S = 1.0, 60.0  # between two polls of the batches at the model server


@dataclass(slots=True)
class CaptionServer:
    """A describer of the parts that come over the pipe, as many at once as the model server answers well."""

    pipe: Connection
    home: Path
    captioner: RunCaptioner
    budget: Budget
    _under_way: int = 0
    """Keyframes."""
    _parts: int = 0
    """Parts with a keyframe under way."""
    _change: asyncio.Event = field(default_factory=asyncio.Event)
    _expected_keyframes: int = 0
    """0 once their cost was noted."""
    _in_batch: dict[str, tuple[CaptionTask, frozenset[bytes], Usage]] = field(default_factory=dict)
    """Parts whose answers come from a batch: their questions, and their usage so far."""
    _submits: bool = False
    """Submit the collected questions as soon as no keyframe is under way."""

    async def serve(self) -> None:
        """Do the tasks until the driver is gone, or until an error that is not that of one keyframe."""
        async with asyncio.TaskGroup() as group:
            if self.captioner.batches is not None:
                group.create_task(self._poll_batches(group))
            while True:
                message = await _receive(self.pipe)
                if isinstance(message, ExpectedKeyframes):
                    self._expected_keyframes = message.keyframes
                elif isinstance(message, SubmitBatches):
                    self._submits = True
                    self._change.set()
                elif isinstance(message, CaptionTask):
                    await self._begin(group, message, None)

    async def _begin(self, group: asyncio.TaskGroup, task: CaptionTask, usage: Usage | None) -> None:
        """Unpack a part, and describe it as soon as the model server can take it."""
        folder = self.home / DESCRIBING / task.key
        count = await asyncio.to_thread(_unpack, task.part, folder)
        if self._expected_keyframes and (cost := self.captioner.cost(folder, self._expected_keyframes)):
            self.pipe.send(cost)
        self._expected_keyframes = 0
        while self._under_way and self._under_way >= self.captioner.width:
            self._change.clear()
            await self._change.wait()
        self._under_way += count
        self._parts += 1
        group.create_task(self._describe(task, folder, count, usage))

    async def _describe(self, task: CaptionTask, folder: Path, count: int, usage: Usage | None) -> None:
        from vip.dataset.parts import add_descriptions
        from vip.llm.budget import Usage
        from vip.store import Run

        try:
            usage = usage or Usage()
            if questions := await self.captioner.caption(folder, task.topic, usage):
                self._in_batch[task.key] = task, questions, usage
                self.pipe.send(KeyframesInBatch(task.key))
                return
            run = Run(folder)
            failed = undescribed_keyframes(run)
            failure = failed[0][2] if len(failed) >= count > 0 else None
            await asyncio.to_thread(add_descriptions, task.part, run)
            self.pipe.send(_cost(self.budget))
            self.pipe.send(Described(task.key, failed, task.part.stat().st_size, failure))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            self._under_way -= count
            self._parts -= 1
            self._change.set()

    # ------------------------------------------------------------ batches

    async def _poll_batches(self, group: asyncio.TaskGroup) -> None:
        """Submit batches, and go on with the parts whose answers have come."""
        assert self.captioner.batches is not None
        wait_s = FIRST_POLL_S
        with self.captioner.batches as batches:
            while True:
                if self._submits and not self._parts:
                    self._submits, wait_s = False, FIRST_POLL_S
                    batches.hand_in()
                if await batches.look():
                    wait_s = FIRST_POLL_S
                for key, (task, questions, usage) in list(self._in_batch.items()):
                    if not batches.waits_for(questions):
                        del self._in_batch[key]
                        await self._begin(group, task, usage)
                await self._wait(wait_s)
                wait_s = min(LONGEST_POLL_S, 2 * wait_s)

    async def _wait(self, seconds: float) -> None:
        """Wait so long, or until a batch is to be submitted."""
        end_s = asyncio.get_running_loop().time() + seconds
        while (left_s := end_s - asyncio.get_running_loop().time()) > 0 and not (self._submits and not self._parts):
            self._change.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._change.wait()


def _unpack(part: Path, folder: Path) -> int:
    """Unpack a part into a run folder. Return the number of its keyframes."""
    from vip.dataset.parts import unpack

    shutil.rmtree(folder, ignore_errors=True)
    return len(unpack(part, folder).keyframes)


async def _receive(pipe: Connection) -> object:
    """Return the next message. No thread waits for it: a waiting thread could not be ended.

    Raises:
        EOFError: the driver is gone.
    """
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    if not pipe.poll():
        try:
            loop.add_reader(pipe.fileno(), readable.set)
        except NotImplementedError:  # on Windows
            while not pipe.poll():
                await asyncio.sleep(PIPE_POLL_S)
            return pipe.recv()
        try:
            await readable.wait()
        finally:
            loop.remove_reader(pipe.fileno())
    return pipe.recv()


def main(fd: str) -> None:
    """Describe the parts that come over this pipe, after the configuration; in a new interpreter."""
    from vip.llm.budget import Budget, Usage

    with child_pipe(fd) as pipe:
        config = pipe.recv()
        shutil.rmtree(config.home / DESCRIBING, ignore_errors=True)  # of a killed process
        budget = Budget(usage=Usage(usd=config.paid.usd, tokens_in=config.paid.tokens))
        try:
            asyncio.run(_serve(pipe, config, budget))
        except VipError as exc:
            pipe.send(exc)
        except ExceptionGroup as several:
            first = several.exceptions[0]
            if isinstance(first, VipError):
                pipe.send(first)
            elif isinstance(first, OSError) and not isinstance(first, ConnectionError):
                pipe.send(StoreError(f"Descriptions cannot be kept: {first.strerror or first}. Mend that, and run the same command again."))
            elif not isinstance(first, EOFError | ConnectionError):
                raise


async def _serve(pipe: Connection, config: CaptionServerConfig, budget: Budget) -> None:
    from vip.captioning.caption_job import OutagePolicy, RunCaptioner

    outages = OutagePolicy(config.retry_wait_s, lambda pause: _send_pause(pipe, pause), config.answered)
    batches = config.home / BATCHES if config.in_batches else None
    captioner = RunCaptioner(config.settings, _NoteSender(pipe), budget, outages=outages, batches=batches)
    reporting = asyncio.create_task(_report_cost(pipe, budget, captioner))
    try:
        pipe.send(CaptionServerReady(*captioner.engines))
        await CaptionServer(pipe, config.home, captioner, budget).serve()
    finally:
        reporting.cancel()
        await captioner.close()
        with suppress(OSError):
            pipe.send(_cost(budget))


def _send_pause(pipe: Connection, pause: OutagePause | None) -> None:
    """Send a pause, or its end, to the driver: for the status, and as a note."""
    pipe.send(ServerPaused(pause))
    if pause is None:
        pipe.send("The captions server answers again, and captions go on.")
    else:
        pipe.send(f"{pause.why} Captions rest for {duration(pause.seconds)}; all else goes on.")


def _cost(budget: Budget) -> CostSoFar:
    usage = budget.usage
    return CostSoFar(usage.usd + usage.unsure_usd, usage.tokens_in + usage.tokens_out)


async def _report_cost(pipe: Connection, budget: Budget, captioner: RunCaptioner) -> None:
    """Send the cost, and that the model server answers, as soon as they change: a killed run must have recorded them."""
    sent, has_answered = None, False
    while True:
        if (now := _cost(budget)) != sent:
            pipe.send(sent := now)
        if captioner.has_answered and not has_answered:
            pipe.send(ServerAnswered())
            has_answered = True
        await asyncio.sleep(COST_INTERVAL_S)


class _NoteSender(SilentObserver):
    """An observer that sends notes to the driver."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def note(self, text: str) -> None:
        self._pipe.send(text)
