"""The process that asks for captions, see `vip.corpus.workers.caption_client`.

In: orders, and then parts, over a pipe. Out: the same parts with their descriptions, and messages.
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
from vip.corpus.workers.worker import undescribed
from vip.errors import VipError
from vip.processes.supervisor import child_pipe
from vip.protocols import SilentObserver

if TYPE_CHECKING:
    from vip.captioning.caption_job import RunCaptioner
    from vip.llm.budget import Budget, Usage
    from vip.llm.outage import OutagePause

DESCRIBING = "describing"  # folder in the state for the videos that are being described
PAID_S = 0.5  # between two tellings of what was spent
FIRST_LOOK_S, LONGEST_LOOK_S = 1.0, 60.0  # between looks at batches


@dataclass(slots=True)
class CaptionServer:
    """Describes the parts that come over the pipe, as many at once as the servers answer well."""

    pipe: Connection
    home: Path
    captioner: RunCaptioner
    budget: Budget
    _under_way: int = 0
    """Keyframes."""
    _parts: int = 0
    """Parts of which some keyframe is under way."""
    _change: asyncio.Event = field(default_factory=asyncio.Event)
    _keyframes: int = 0
    """To be expected, until that was said."""
    _in_batch: dict[str, tuple[CaptionTask, frozenset[bytes], Usage]] = field(default_factory=dict)
    """Parts whose answers are to come from a batch: their questions, and what was used for them so far."""
    _hands_in: bool = False

    async def serve(self) -> None:
        """Until the first error that is not one keyframe's own, or until the driver is gone."""
        async with asyncio.TaskGroup() as group:
            if self.captioner.batches is not None:
                group.create_task(self._look_at_batches(group))
            while True:
                message = await _received(self.pipe)
                if isinstance(message, ExpectedKeyframes):
                    self._keyframes = message.keyframes
                elif isinstance(message, SubmitBatches):
                    self._hands_in = True
                    self._change.set()
                elif isinstance(message, CaptionTask):
                    await self._begin(group, message, None)

    async def _begin(self, group: asyncio.TaskGroup, wanted: CaptionTask, usage: Usage | None) -> None:
        folder = self.home / DESCRIBING / wanted.key
        count = await asyncio.to_thread(_unpacked, wanted.part, folder)
        if self._keyframes and (cost := self.captioner.cost(folder, self._keyframes)):
            self.pipe.send(cost)
        self._keyframes = 0
        while self._under_way and self._under_way >= self.captioner.width:
            self._change.clear()
            await self._change.wait()
        self._under_way += count
        self._parts += 1
        group.create_task(self._one(wanted, folder, count, usage))

    async def _one(self, wanted: CaptionTask, folder: Path, count: int, usage: Usage | None) -> None:
        from vip.dataset.parts import add_descriptions
        from vip.llm.budget import Usage
        from vip.store import Run

        try:
            used = usage or Usage()
            if questions := await self.captioner.caption(folder, wanted.topic, used):
                self._in_batch[wanted.key] = wanted, questions, used
                self.pipe.send(KeyframesInBatch(wanted.key))
                return
            run = Run(folder)
            failed = undescribed(run)
            failure = failed[0][2] if len(failed) >= count > 0 else None
            await asyncio.to_thread(add_descriptions, wanted.part, run)
            self.pipe.send(_paid(self.budget))
            self.pipe.send(Described(wanted.key, failed, wanted.part.stat().st_size, failure))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            self._under_way -= count
            self._parts -= 1
            self._change.set()

    # ------------------------------------------------------------ batches

    async def _look_at_batches(self, group: asyncio.TaskGroup) -> None:
        """Hand them in, and go on with the parts whose answers have come."""
        assert self.captioner.batches is not None
        wait_s = FIRST_LOOK_S
        with self.captioner.batches as batches:
            while True:
                if self._hands_in and not self._parts:
                    self._hands_in, wait_s = False, FIRST_LOOK_S
                    batches.hand_in()
                if await batches.look():
                    wait_s = FIRST_LOOK_S
                for key, (wanted, questions, usage) in list(self._in_batch.items()):
                    if not batches.waits_for(questions):
                        del self._in_batch[key]
                        await self._begin(group, wanted, usage)
                await self._waited(wait_s)
                wait_s = min(LONGEST_LOOK_S, 2 * wait_s)

    async def _waited(self, seconds: float) -> None:
        """So long, or until a batch is to be handed in."""
        end_s = asyncio.get_running_loop().time() + seconds
        while (left_s := end_s - asyncio.get_running_loop().time()) > 0 and not (self._hands_in and not self._parts):
            self._change.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._change.wait()


def _unpacked(part: Path, folder: Path) -> int:
    from vip.dataset.parts import unpack

    shutil.rmtree(folder, ignore_errors=True)
    return len(unpack(part, folder).keyframes)


async def _received(pipe: Connection) -> object:
    """The next message. No thread waits for it: one could not be ended.

    Raises:
        EOFError: the driver is gone.
    """
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    if not pipe.poll():
        loop.add_reader(pipe.fileno(), readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(pipe.fileno())
    return pipe.recv()


def main(fd: str) -> None:
    """In a new interpreter: orders and then parts come over this pipe."""
    from vip.llm.budget import Budget, Usage

    with child_pipe(fd) as pipe:
        orders = pipe.recv()
        shutil.rmtree(orders.home / DESCRIBING, ignore_errors=True)  # of a process that was killed
        budget = Budget(usage=Usage(usd=orders.paid.usd, tokens_in=orders.paid.tokens))
        try:
            asyncio.run(_serve(pipe, orders, budget))
        except VipError as exc:
            pipe.send(exc)
        except ExceptionGroup as several:
            first = several.exceptions[0]
            if isinstance(first, VipError):
                pipe.send(first)
            elif not isinstance(first, EOFError | OSError):
                raise


async def _serve(pipe: Connection, orders: CaptionServerConfig, budget: Budget) -> None:
    from vip.captioning.caption_job import OutagePolicy, RunCaptioner

    outages = OutagePolicy(orders.retry_wait_s, lambda rest: _tell_rest(pipe, rest), orders.answered)
    batches = orders.home / BATCHES if orders.in_batches else None
    captioner = RunCaptioner(orders.settings, _NoteSender(pipe), budget, outages=outages, batches=batches)
    telling = asyncio.create_task(_keep_telling(pipe, budget, captioner))
    try:
        pipe.send(CaptionServerReady(*captioner.engines))
        await CaptionServer(pipe, orders.home, captioner, budget).serve()
    finally:
        telling.cancel()
        await captioner.close()
        with suppress(OSError):
            pipe.send(_paid(budget))


def _tell_rest(pipe: Connection, rest: OutagePause | None) -> None:
    """To the driver, for the status and in words."""
    pipe.send(ServerPaused(rest))
    if rest is None:
        pipe.send("The captions server answers again, and captions go on.")
    else:
        pipe.send(f"{rest.why} Captions rest for {duration(rest.seconds)}; all else goes on.")


def _paid(budget: Budget) -> CostSoFar:
    usage = budget.usage
    return CostSoFar(usage.usd + usage.unsure_usd, usage.tokens_in + usage.tokens_out)


async def _keep_telling(pipe: Connection, budget: Budget, captioner: RunCaptioner) -> None:
    """What was spent, and that the server answers: so that also a run that is killed has it written down."""
    told, answered = None, False
    while True:
        if (now := _paid(budget)) != told:
            pipe.send(told := now)
        if captioner.has_answered and not answered:
            pipe.send(ServerAnswered())
            answered = True
        await asyncio.sleep(PAID_S)


class _NoteSender(SilentObserver):
    """Notes go to the driver."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def note(self, text: str) -> None:
        self._pipe.send(text)
