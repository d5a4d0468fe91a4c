"""The one process that asks for captions: for a whole cluster there is one rate limit, one ceiling, and one file of answers.

In: parts that wait for their descriptions. Out: the same parts with them, and what that cost. Many videos are described at once,
as many keyframes as the servers answer well.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from vip.config import CaptionSettings
from vip.corpus.work.hand import WORK, undescribed
from vip.corpus.work.process import Child, at_the_other_end
from vip.errors import VipError
from vip.protocols import Silent

if TYPE_CHECKING:
    from vip.asking.spending import Ledger
    from vip.describing import Captioner

DEATHS = 3  # without a description in between
PAID_S = 0.5  # between two tellings of what was spent
AHEAD = 64  # videos that wait here, so that no request waits for a video


class Wanted(NamedTuple):
    """A part to be described."""

    id: int
    part: Path
    topic: str | None


class Paid(NamedTuple):
    """What was spent so far, earlier runs of the batch included."""

    usd: float
    tokens: int


class Described(NamedTuple):
    """Its descriptions are in the part; `failure`: not one keyframe could be described."""

    id: int
    undescribed: tuple[tuple[str, str, str], ...]
    """Keyframes that could not be described: id, type, message."""
    size_bytes: int
    failure: str | None


@dataclass(slots=True)
class Captions:
    """The driver's side. The process starts with the first part.

    Args:
        paid: by earlier runs of the batch, which counts towards the ceiling; kept up to date.
        keyframes: to be expected in all, for the estimate of what they cost.
        note: told what the process says.
    """

    settings: CaptionSettings
    home: Path
    paid: Paid
    keyframes: int
    note: Callable[[str], None]
    _waiting: deque[Wanted] = field(default_factory=deque)
    _under_way: dict[int, Wanted] = field(default_factory=dict)
    _child: Child | None = None
    _deaths: int = 0

    def give(self, wanted: Wanted) -> None:
        self._waiting.append(wanted)
        self._pass_on()

    def _pass_on(self) -> None:
        while self._waiting and len(self._under_way) < AHEAD:
            if self._child is None:
                self._child = Child("vip.corpus.work.captions")
                self._child.send((self.settings, self.home, self.paid, self.keyframes))
            wanted = self._waiting.popleft()
            self._under_way[wanted.id] = wanted
            self._child.send(wanted)

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
                del self._under_way[message.id]
                found.append(message)
            elif isinstance(message, Paid):
                self.paid = message
            elif isinstance(message, VipError):
                raise message
            else:
                self.note(message)
        self._pass_on()
        return found

    def _died(self) -> None:
        """Another takes its place, unless that happens again and again; answers that it had are not asked for again."""
        code = self._child.kill() if self._child else 0
        self._child, self._deaths = None, self._deaths + 1
        if self._deaths >= DEATHS:
            raise RuntimeError(f"the process that asks for captions ended {DEATHS} times without a word (exit code {code})")
        self._waiting.extendleft(reversed(self._under_way.values()))
        self._under_way.clear()

    def close(self) -> None:
        """End it. What was answered is kept, and not asked for again."""
        if self._child is not None:
            self._child.kill()
            self._child = None


# ---------------------------------------------------------------- in the process


class _Desk:
    """Describes the parts that come over the pipe, as many at once as the servers answer well."""

    def __init__(self, pipe: Connection, home: Path, captioner: Captioner, ledger: Ledger, keyframes: int) -> None:
        self.ledger = ledger
        self.pipe, self.home, self.captioner, self.keyframes = pipe, home / WORK, captioner, keyframes
        self.under_way = 0
        self.change = asyncio.Event()

    async def serve(self) -> None:
        """Until the first error that is not one keyframe's own, or until the driver is gone."""
        told = False
        async with asyncio.TaskGroup() as group:
            while True:
                wanted = await _received(self.pipe)
                folder = self.home / f"{wanted.part.stem}.captions"
                count = await asyncio.to_thread(self._unpacked, wanted.part, folder)
                if not told:
                    told = True
                    if cost := self.captioner.cost(folder, self.keyframes):
                        self.pipe.send(cost)
                while self.under_way and self.under_way >= self.captioner.width:
                    self.change.clear()
                    await self.change.wait()
                self.under_way += count
                group.create_task(self._one(wanted, folder, count))

    @staticmethod
    def _unpacked(part: Path, folder: Path) -> int:
        from vip.corpus.output.parts import unpack

        shutil.rmtree(folder, ignore_errors=True)
        return len(unpack(part, folder).keyframes)

    async def _one(self, wanted: Wanted, folder: Path, count: int) -> None:
        from vip.corpus.output.parts import with_descriptions
        from vip.store import Run

        try:
            await self.captioner.caption(folder, wanted.topic)
            run = Run(folder)
            failed = undescribed(run)
            failure = failed[0][2] if len(failed) >= count > 0 else None
            await asyncio.to_thread(with_descriptions, wanted.part, run)
            self.pipe.send(_paid(self.ledger))
            self.pipe.send(Described(wanted.id, failed, wanted.part.stat().st_size, failure))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            self.under_way -= count
            self.change.set()


async def _received(pipe: Connection) -> Wanted:
    """The next part. No thread waits for it: one could not be ended.

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
    wanted = pipe.recv()
    assert isinstance(wanted, Wanted)
    return wanted


def main(fd: str) -> None:
    """In a new interpreter: settings and then parts come over this pipe."""
    from vip.asking.spending import Ledger, Spent
    from vip.describing import Captioner

    with at_the_other_end(fd) as pipe:
        settings, home, before, keyframes = pipe.recv()
        ledger = Ledger(spent=Spent(usd=before.usd, tokens_in=before.tokens))

        async def work() -> None:
            captioner = Captioner(settings, _Telling(pipe), ledger)
            telling = asyncio.create_task(_tell_paid(pipe, ledger))
            try:
                await _Desk(pipe, home, captioner, ledger, keyframes).serve()
            finally:
                telling.cancel()
                await captioner.close()
                with suppress(OSError):
                    pipe.send(_paid(ledger))

        try:
            asyncio.run(work())
        except VipError as exc:
            pipe.send(exc)
        except ExceptionGroup as several:
            first = several.exceptions[0]
            if isinstance(first, VipError):
                pipe.send(first)
            elif not isinstance(first, EOFError | OSError):
                raise


def _paid(ledger: Ledger) -> Paid:
    spent = ledger.spent
    return Paid(spent.usd + spent.unsure_usd, spent.tokens_in + spent.tokens_out)


async def _tell_paid(pipe: Connection, ledger: Ledger) -> None:
    """Every now and then, so that also a run that is killed has it written down."""
    told = None
    while True:
        if (now := _paid(ledger)) != told:
            pipe.send(told := now)
        await asyncio.sleep(PAID_S)


class _Telling(Silent):
    """Notes go to the driver."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def note(self, text: str) -> None:
        self._pipe.send(text)
