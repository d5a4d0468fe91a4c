"""`--batch`: the questions of a run go in batches, at half the price, and are answered within a day.

In: a describer, and the folder that the batches are noted in. Out: rounds. In each, the keyframes are described as ever; what is
not answered yet is written into batches instead of being asked, and the keyframe waits for the next round. A recipe of three
questions takes three rounds. The answers go where all answers go, so that any later run finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from vip.asking.batches import Batches, Job, status
from vip.asking.room import MARGIN, Room
from vip.asking.spending import PURSE, Spent
from vip.captioning.recipes import Describer
from vip.errors import BackendError, ReplyError, UsageError, VipError
from vip.protocols import Reply, Request
from vip.wording import counted, option

SECOND = Path("batches") / "structure"  # below the folder: where the engine for structure notes its own


def home_of(folders: Sequence[Path]) -> Path:
    """Where the batches of these folders are noted: in the only one, or above them all."""
    whole = [folder.absolute() for folder in folders]
    return whole[0] if len(whole) == 1 else Path(*_common([path.parts for path in whole]))


def _common(parts: Sequence[tuple[str, ...]]) -> list[str]:
    return [level[0] for level in zip(*parts, strict=False) if len(set(level)) == 1]


def jobs_in(home: Path) -> list[Job]:
    """All jobs, as they were last seen."""
    return [*status(home), *status(home / SECOND)]


async def looked_at(describer: Describer, home: Path) -> list[Job]:
    """All jobs, as the server sees them now."""
    jobs: list[Job] = []
    try:
        for number, room in enumerate(describer.rooms):
            jobs += await _OneEngine(room, home / SECOND if number else home).batches.look()
    finally:
        for room in describer.rooms:
            await room.close()
    return jobs


class Rounds:
    """The batches of one run; use it in a `with` block.

    Raises:
        BackendError: an engine has no Batch API.
        UsageError: each question needs the answer before it.
    """

    def __init__(self, describer: Describer, home: Path, on_status: Callable[[str], None]) -> None:
        if describer.manner.context:
            raise UsageError(
                f"{option('context')} needs each answer before the next question, and {option('batch')} waits hours. Leave one of them out."
            )
        self.describer, self.on_status = describer, on_status
        self.several = [_OneEngine(room, home if not number else home / SECOND) for number, room in enumerate(describer.rooms)]
        self._stack = ExitStack()
        self._told = ""

    def __enter__(self) -> Self:
        for one in self.several:
            self._stack.enter_context(one.batches)
            one.room.postpone = one.postpone
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        for one in self.several:
            one.room.postpone = None
        self._stack.__exit__(kind, exc, trace)

    async def collect(self) -> None:
        """Hand in what this round postponed, and wait for all answers.

        Raises:
            EngineError: the server took a file for wrong, or the money is spent.
        """
        ledger, refused = self.several[0].room.ledger, max(one.refused for one in self.several)
        if refused and not any(len(one.batches) for one in self.several):
            raise ledger.used_up(refused)
        for one in self.several:
            one.direct |= await one.batches.run(one.answered, on_status=self._tell)
            one.refused = 0.0
        ledger.batches_over()

    def _tell(self, jobs: Sequence[Job]) -> None:
        open_jobs = [job for job in jobs if job.is_open]
        done, rows = sum(job.completed + job.failed for job in open_jobs), sum(job.rows for job in open_jobs)
        text = f"{counted(len(open_jobs), 'batch', 'batches')} at the server, {done:,} of {counted(rows, 'request')} done"
        if open_jobs and text != self._told:
            self._told = text
            self.on_status(f"{text}. It is safe to stop: the same command goes on later.")


class _OneEngine:
    """The batches of one engine."""

    def __init__(self, room: Room, folder: Path) -> None:
        made = getattr(room.engine, "batches", None)
        if made is None:
            raise BackendError(
                f"{room.engine.name} takes no batches. Leave {option('batch')} out, or use {option('engine', 'openai:MODEL')}."
            )
        self.room = room
        self.batches = Batches(folder, made())
        self.direct: set[str] = set()
        """Questions whose answer out of a batch could not be used: they are asked one by one."""
        self.purses: dict[str, Spent | None] = {}
        """Whose money it is."""
        self.refused = 0.0
        """Dollars of a question for which there was no room under the ceiling."""

    def postpone(self, question: bytes, request: Request) -> bool:
        key = question.hex()
        if key in self.direct or request.stage == "topic":  # a whole run does not wait for one small question
            return False
        self.purses[key] = PURSE.get()
        tokens_in, most_out = self.room.most_tokens(request)
        booked = self.room.ledger.book(self.room.price, round(tokens_in * MARGIN), most_out)
        if booked:
            self.batches.add(key, request)
        elif key not in self.batches and self.room.price:
            self.refused = self.room.price.usd(tokens_in, most_out, batch=True)
        return True

    async def answered(self, key: str, answer: Reply | VipError) -> None:
        self.direct.add(key)  # once asked is enough: what cannot be used is asked again by itself
        if isinstance(answer, Reply):
            await self.room.keep(bytes.fromhex(key), answer)
        PURSE.set(self.purses.pop(key, None))
        if isinstance(answer, Reply | ReplyError) and answer.tokens_in is not None:
            self.room.ledger.paid(self.room.price, answer.tokens_in, answer.tokens_out or 0, batch=True)
