"""The process that asks for captions, see `vip.corpus.work.captions`.

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
from vip.corpus.work.captions import (
    Answered,
    Checked,
    Described,
    ExpectedKeyframes,
    HandIn,
    InBatch,
    Orders,
    Paid,
    Resting,
    Wanted,
)
from vip.corpus.work.hand import undescribed
from vip.corpus.work.process import at_the_other_end
from vip.errors import VipError
from vip.protocols import Silent

if TYPE_CHECKING:
    from vip.asking.outage import Rest
    from vip.asking.spending import Ledger, Spent
    from vip.describing import Captioner

DESCRIBING = "describing"  # folder in the state for the videos that are being described
PAID_S = 0.5  # between two tellings of what was spent
FIRST_LOOK_S, LONGEST_LOOK_S = 1.0, 60.0  # between looks at batches


@dataclass(slots=True)
class _Desk:
    """Describes the parts that come over the pipe, as many at once as the servers answer well."""

    pipe: Connection
    home: Path
    captioner: Captioner
    ledger: Ledger
    _under_way: int = 0
    """Keyframes."""
    _parts: int = 0
    """Parts of which some keyframe is under way."""
    _change: asyncio.Event = field(default_factory=asyncio.Event)
    _keyframes: int = 0
    """To be expected, until that was said."""
    _in_batch: dict[str, tuple[Wanted, frozenset[bytes], Spent]] = field(default_factory=dict)
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
                elif isinstance(message, HandIn):
                    self._hands_in = True
                    self._change.set()
                elif isinstance(message, Wanted):
                    await self._begin(group, message, None)

    async def _begin(self, group: asyncio.TaskGroup, wanted: Wanted, spent: Spent | None) -> None:
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
        group.create_task(self._one(wanted, folder, count, spent))

    async def _one(self, wanted: Wanted, folder: Path, count: int, spent: Spent | None) -> None:
        from vip.asking.spending import Spent
        from vip.corpus.output.parts import with_descriptions
        from vip.store import Run

        try:
            used = spent or Spent()
            if questions := await self.captioner.caption(folder, wanted.topic, used):
                self._in_batch[wanted.key] = wanted, questions, used
                self.pipe.send(InBatch(wanted.key))
                return
            run = Run(folder)
            failed = undescribed(run)
            failure = failed[0][2] if len(failed) >= count > 0 else None
            await asyncio.to_thread(with_descriptions, wanted.part, run)
            self.pipe.send(_paid(self.ledger))
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
                for key, (wanted, questions, spent) in list(self._in_batch.items()):
                    if not batches.waits_for(questions):
                        del self._in_batch[key]
                        await self._begin(group, wanted, spent)
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
    from vip.corpus.output.parts import unpack

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
    from vip.asking.spending import Ledger, Spent

    with at_the_other_end(fd) as pipe:
        orders = pipe.recv()
        shutil.rmtree(orders.home / DESCRIBING, ignore_errors=True)  # of a process that was killed
        ledger = Ledger(spent=Spent(usd=orders.paid.usd, tokens_in=orders.paid.tokens))
        try:
            asyncio.run(_serve(pipe, orders, ledger))
        except VipError as exc:
            pipe.send(exc)
        except ExceptionGroup as several:
            first = several.exceptions[0]
            if isinstance(first, VipError):
                pipe.send(first)
            elif not isinstance(first, EOFError | OSError):
                raise


async def _serve(pipe: Connection, orders: Orders, ledger: Ledger) -> None:
    from vip.describing import Captioner, Outages

    outages = Outages(orders.retry_wait_s, lambda rest: _tell_rest(pipe, rest), orders.answered)
    batches = orders.home / BATCHES if orders.in_batches else None
    captioner = Captioner(orders.settings, _Telling(pipe), ledger, outages=outages, batches=batches)
    telling = asyncio.create_task(_keep_telling(pipe, ledger, captioner))
    try:
        pipe.send(Checked(*captioner.engines))
        await _Desk(pipe, orders.home, captioner, ledger).serve()
    finally:
        telling.cancel()
        await captioner.close()
        with suppress(OSError):
            pipe.send(_paid(ledger))


def _tell_rest(pipe: Connection, rest: Rest | None) -> None:
    """To the driver, for the status and in words."""
    pipe.send(Resting(rest))
    if rest is None:
        pipe.send("The captions server answers again, and captions go on.")
    else:
        pipe.send(f"{rest.why} Captions rest for {duration(rest.seconds)}; all else goes on.")


def _paid(ledger: Ledger) -> Paid:
    spent = ledger.spent
    return Paid(spent.usd + spent.unsure_usd, spent.tokens_in + spent.tokens_out)


async def _keep_telling(pipe: Connection, ledger: Ledger, captioner: Captioner) -> None:
    """What was spent, and that the server answers: so that also a run that is killed has it written down."""
    told, answered = None, False
    while True:
        if (now := _paid(ledger)) != told:
            pipe.send(told := now)
        if captioner.has_answered and not answered:
            pipe.send(Answered())
            answered = True
        await asyncio.sleep(PAID_S)


class _Telling(Silent):
    """Notes go to the driver."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def note(self, text: str) -> None:
        self._pipe.send(text)
