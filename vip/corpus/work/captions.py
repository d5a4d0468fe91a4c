"""The one process that asks for captions: for a whole cluster there is one rate limit, one ceiling, and one file of answers.

In: parts that wait for their descriptions. Out: the same parts with them, and what that cost. Many videos are described at once,
as many keyframes as the servers answer well. A server that is gone is left alone for a while, and the parts wait here. With `--batch`
the questions of many parts go to the server's Batch API together.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from vip.config import CaptionSettings
from vip.corpus.status import BATCHES, duration
from vip.corpus.work.hand import undescribed
from vip.corpus.work.process import DEATHS, Child, at_the_other_end, given_up
from vip.errors import VipError
from vip.protocols import Silent

if TYPE_CHECKING:
    from vip.asking.outage import Rest
    from vip.asking.spending import Ledger, Spent
    from vip.describing import Captioner

DESCRIBING = "describing"  # folder in the state for the videos that are being described
PAID_S = 0.5  # between two tellings of what was spent
AHEAD = 64  # videos that wait here, so that no request waits for a video
FIRST_LOOK_S, LONGEST_LOOK_S = 1.0, 60.0  # between looks at batches


class Wanted(NamedTuple):
    """A part to be described."""

    key: str
    part: Path
    topic: str | None


class Paid(NamedTuple):
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


class InBatch(NamedTuple):
    """Its questions are in a batch, and nothing more can be done until that comes back."""

    key: str


class Checked(NamedTuple):
    """The engines can be asked, as far as that can be told without asking: who looks, and who writes FAMOuS."""

    describe_engine: str
    structure_engine: str


class ExpectedKeyframes(NamedTuple):
    """So many keyframes are to come in all, for the estimate of what they cost."""

    keyframes: int


class HandIn(NamedTuple):
    """No more parts come for now: what is collected for a batch should go."""


class Answered(NamedTuple):
    """A server has answered, so its address is right."""


class Resting(NamedTuple):
    """A server is left alone; None: it answers again."""

    rest: Rest | None


@dataclass(frozen=True, slots=True)
class Orders:
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
    paid: Paid
    retry_wait_s: float
    in_batches: bool = False
    answered: bool = False


@dataclass(slots=True)
class Captions:
    """The driver's side. The process starts with `check`, or with the first part.

    Args:
        note: told what the process says.
    """

    orders: Orders
    note: Callable[[str], None]
    rest: Rest | None = None
    """While a server is left alone."""
    _waiting: deque[Wanted] = field(default_factory=deque)
    _under_way: dict[str, Wanted] = field(default_factory=dict)
    _in_batch: dict[str, Wanted] = field(default_factory=dict)
    _to_hand_in: bool = False
    """Something was collected for a batch since the last one was to go."""
    _child: Child | None = None
    _deaths: int = 0

    @property
    def paid(self) -> Paid:
        """So far, kept up to date."""
        return self.orders.paid

    def check(self) -> Checked:
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
            if isinstance(found, Checked):
                return found
            self.note(found)

    def expect(self, keyframes: int) -> None:
        """Let the process say what so many will cost."""
        self._start().send(ExpectedKeyframes(keyframes))

    def give(self, wanted: Wanted) -> None:
        self._waiting.append(wanted)
        self._pass_on()

    def hand_in(self) -> None:
        """What is collected for a batch should go: no more parts come for now."""
        if self._to_hand_in and self._child is not None and not (self._waiting or self._under_way):
            self._child.send(HandIn())
            self._to_hand_in = False

    def _start(self) -> Child:
        if self._child is None:
            self._child = Child("vip.corpus.work.captions")
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
            case InBatch(key):
                self._deaths = 0
                if key in self._under_way:
                    self._in_batch[key] = self._under_way.pop(key)
                self._to_hand_in = True
            case Paid():
                self.orders = replace(self.orders, paid=message)
            case Resting(rest):
                self.rest = rest
            case Answered():
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
        if self._deaths >= DEATHS:
            raise given_up("asks for captions", code)
        self._waiting.extendleft(reversed([*self._in_batch.values(), *self._under_way.values()]))
        self._under_way.clear()
        self._in_batch.clear()
        self.rest = None

    def close(self) -> None:
        """End it. What was answered is kept, and not asked for again."""
        if self._child is not None:
            self._child.kill()
            self._child = None


# ---------------------------------------------------------------- in the process


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
