"""`--batch`: the questions of a run go in batches, at half the price, and are answered within a day.

In: a describer, and the folder that the batches are noted in. Out: rounds. In each, the keyframes are described as without batches. A
question that is not answered yet is written into a batch instead of being asked, and its keyframe waits for the next round. A recipe of
three questions takes three rounds. The answers go into the answer cache, where any later run finds them.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from vip.captioning.describer import Describer
from vip.errors import BackendError, OutageError, ReplyError, UsageError, VipError
from vip.llm.batch_jobs import BatchJob, BatchJobs, status
from vip.llm.budget import Usage, stated_tokens, used_tokens
from vip.llm.client import MARGIN, NOT_TAKEN, TRIES_BEFORE_AN_ANSWER, EngineClient
from vip.protocols import Reply, Request
from vip.wording import counted, option

QUESTION = re.compile(r"[0-9a-f]{64}")  # as `EngineClient.digest` makes it
HAND_IN_S = 3600.0  # that the first question of a part waits for others
FIRST, SECOND = Path(), Path("batches") / "structure"  # below the folder: where the engine for structure notes its own


def batches_home(folders: Sequence[Path]) -> Path:
    """Return the folder in which the batches of these folders are noted: the only one, or the one above them all."""
    return Path(os.path.commonpath([folder.absolute() for folder in folders]))


def jobs_in(home: Path) -> list[BatchJob]:
    """Return all jobs, as they were last seen."""
    return [*status(home), *status(home, below=SECOND)]


async def refreshed_jobs(describer: Describer, home: Path) -> list[BatchJob]:
    """Return all jobs, as the server reports them now."""
    jobs: list[BatchJob] = []
    try:
        for client, below in zip(describer.clients, (FIRST, SECOND), strict=False):
            jobs += await _EngineBatches(client, home, below).batches.look()
    finally:
        for client in describer.clients:
            await client.close()
    return jobs


class _Batches:
    """The batches of all engines; use it in a `with` block.

    Raises:
        BackendError: an engine has no Batch API.
        UsageError: each question needs the answer before it.
    """

    def __init__(self, describer: Describer, home: Path, on_status: Callable[[str], None]) -> None:
        if describer.config.context:
            raise UsageError(
                f"{option('context')} needs each answer before the next question, and {option('batch')} waits hours. Leave one of them out."
            )
        self.home, self.on_status = home, on_status
        self.several = [_EngineBatches(client, home, below) for client, below in zip(describer.clients, (FIRST, SECOND), strict=False)]
        self._stack = ExitStack()
        self._reported = ""

    def __enter__(self) -> Self:
        for one in self.several:
            self._stack.enter_context(one.batches)
            one.client.defer = one.defer
        if strange := sum(len(one.batches.strange_jobs) for one in self.several):
            self.on_status(_strange_batches_note(strange, self.home))
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        for one in self.several:
            one.client.defer = None
        self._stack.__exit__(kind, exc, trace)

    @property
    def _most_refused(self) -> float:
        return max(max(one.refused.values(), default=0.0) for one in self.several)

    def _report(self, text: str) -> None:
        if text != self._reported:
            self._reported = text
            self.on_status(text)


def _strange_batches_note(count: int, home: Path) -> str:
    batches = counted(count, "batch was not handed in by this machine and is", "batches were not handed in by this machine and are")
    return f"In {home}, {batches} left alone; the questions are asked anew. To have the answers collected, run `vip trust {home}`."


class BatchRounds(_Batches):
    """The batches of keyframes that are all there: rounds in which deferred questions are handed in and waited for."""

    async def collect(self) -> None:
        """Hand in what this round deferred, and wait for all answers.

        Raises:
            EngineError: the server took a file for wrong, or the money is spent.
        """
        budget = self.several[0].client.budget
        if self._most_refused and not any(len(one.batches) for one in self.several):
            raise budget.exceeded_error(self._most_refused)
        for one in self.several:
            one.direct |= await one.batches.run(one.answered, on_status=self._report_progress)
            one.refused.clear()
            one.questions.clear()
        budget.release_batches()

    def _report_progress(self, jobs: Sequence[BatchJob]) -> None:
        open_jobs = [job for job in jobs if job.is_open and job.job]
        done, rows = sum(job.completed + job.failed for job in open_jobs), sum(job.rows for job in open_jobs)
        if open_jobs:
            text = f"{counted(len(open_jobs), 'batch', 'batches')} at the server, {done:,} of {counted(rows, 'request')} done"
            self._report(f"{text}. It is safe to stop: the same command goes on later.")


class RollingBatches(_Batches):
    """The batches of keyframes that keep coming.

    A file is handed in when it is full, when no more is to come for now (`hand_in`), when the ceiling leaves no room for another
    question, and an hour after its first one.
    """

    def __init__(self, describer: Describer, home: Path, on_status: Callable[[str], None]) -> None:
        super().__init__(describer, home, on_status)
        self._is_due = False

    def hand_in(self) -> None:
        """Hand in all that is written so far, with the next `look`."""
        self._is_due = True

    def waits_for(self, questions: Iterable[bytes]) -> bool:
        """Return whether one of these waits for a batch, or for room under the ceiling."""
        keys = [question.hex() for question in questions]
        return any(key in one.batches or key in one.refused for one in self.several for key in keys)

    async def look(self) -> bool:
        """Hand in what is due and collect what is there. Returns whether something came back.

        Raises:
            OutageError: the server has been gone for too long.
            BudgetError: there is no room under the ceiling for another question.
            EngineError: the server took a file for wrong, or cannot be asked.
        """
        budget, refused = self.several[0].client.budget, self._most_refused
        if refused and not any(len(one.batches) for one in self.several):
            raise budget.exceeded_error(refused)
        now = time.monotonic()
        for one in self.several:
            if self._is_due or refused or now > one.since_s + HAND_IN_S:
                one.batches.close()
        self._is_due = False
        waiting = sum(len(one.batches) for one in self.several)
        for one in self.several:
            await one.look()
        jobs = [job for one in self.several for job in one.batches.open_jobs if job.job]
        if jobs:
            rows = counted(sum(job.rows for job in jobs), "request")
            self._report(f"{counted(len(jobs), 'batch', 'batches')} with {rows} at the server, which may take a day.")
        came = sum(len(one.batches) for one in self.several) < waiting
        if came:
            for one in self.several:
                one.refused.clear()  # there may be room now
        return came


@dataclass(slots=True)
class _Question:
    """A question that waits for its answer."""

    usage: Usage | None
    """Of its folder."""
    tokens_in: int
    """Estimated, as `text_in`, which is its prompt alone."""
    text_in: int
    most_out: int
    booked_usd: float | None = None
    """Dollars put aside for it; None as long as there is no room under the ceiling."""


class _EngineBatches:
    """The batches of one engine."""

    def __init__(self, client: EngineClient, home: Path, below: Path) -> None:
        session = client.engine.capabilities.batches
        if session is None:
            raise BackendError(
                f"{client.engine.name} takes no batches. Leave {option('batch')} out, or use {option('engine', 'openai:MODEL')}."
            )
        self.client = client
        self.batches = BatchJobs(home, session(), below=below)
        self.direct: set[str] = set()
        """Questions whose answer out of a batch could not be used: they are asked one by one."""
        self.questions: dict[str, _Question] = {}
        self.refused: dict[str, float] = {}
        """Questions for which there was no room under the ceiling, and the dollars that each may cost."""
        self.since_s = math.inf
        """When the first question of the part that is being written came."""
        self.failed = 0
        """Looks in a row at which the server could not be asked."""
        self.failing_since_s = math.inf

    def defer(self, question: bytes, request: Request, usage: Usage | None) -> bool:
        key = question.hex()
        if key in self.direct or request.stage == "topic":  # a whole run does not wait for one small question
            return False
        tokens_in, most_out = self.client.most_tokens(request)
        waiting = self.questions.setdefault(key, _Question(usage, tokens_in, self.client.prompt_tokens(request), most_out))
        if waiting.booked_usd is None:
            waiting.booked_usd = self.client.budget.book(self.client.price, round(tokens_in * MARGIN), most_out)
        if waiting.booked_usd is not None:
            if not self.batches.has_rows:
                self.since_s = time.monotonic()
            self.batches.add(key, request)
        elif key not in self.batches and self.client.price:
            self.refused[key] = self.client.price.usd(tokens_in, most_out, batch=True)
        return True

    async def answered(self, key: str, answer: Reply | VipError) -> None:
        if isinstance(answer, Reply):
            answer = await self._keep_usable(key, answer)
        self.direct.add(key)  # once asked is enough: what cannot be used is asked again by itself, but not before it is known
        question = self._take(key)
        if isinstance(answer, Reply | ReplyError):
            self._note_cost(answer, question)

    def _take(self, key: str) -> _Question | None:
        """Take a question that is over; None for one that was not asked now."""
        question = self.questions.pop(key, None)
        if question is not None:
            self.client.budget.unbook(question.booked_usd or 0.0)
        return question

    def _note_cost(self, answer: Reply | ReplyError, question: _Question | None) -> None:
        """Note what an answer cost: what the server states, or what was estimated."""
        budget, price = self.client.budget, self.client.price
        if question is None:  # an earlier process asked, and what it estimated is forgotten
            if answer.tokens_in is not None:
                budget.paid(price, answer.tokens_in, answer.tokens_out or 0, batch=True)
        elif isinstance(answer, Reply):
            budget.paid(price, *used_tokens(answer, question.tokens_in, question.text_in), question.usage, batch=True)
        elif stated := stated_tokens(answer, question.text_in):
            budget.paid(price, *stated, question.usage, batch=True)
        elif answer.kind not in NOT_TAKEN:
            budget.lost(price, question.tokens_in, question.most_out, question.usage, batch=True)

    async def _keep_usable(self, key: str, reply: Reply) -> Reply | ReplyError:
        """Keep an answer that can be used, under a key that is a question's."""
        try:
            taken = self.client.check_reply(reply)
        except ReplyError as exc:
            return exc
        if QUESTION.fullmatch(key):
            await self.client.keep(bytes.fromhex(key), taken)
        return taken

    async def look(self) -> None:
        """Take one step with each of its jobs; a server that is gone is left alone, as for single questions."""
        if not self.batches.has_steps:
            return
        outage = self.client.limiter.outage
        is_alone = await outage.wait_turn() if outage else False
        left, busy = await self.batches.step(self.answered)
        for key in left:
            self.direct.add(key)
            self._take(key)  # rows that expire cost nothing
        if busy is None:
            self.failed = 0
            self.client.circuit_breaker.record_answer()
            if outage:
                outage.answered()
            return
        now = time.monotonic()
        self.failing_since_s = now if not self.failed else self.failing_since_s
        self.failed += 1
        if not self.client.circuit_breaker.answered and busy.kind != "rate_limit" and self.failed >= TRIES_BEFORE_AN_ANSWER:
            raise OutageError(f"{busy} Tried {self.failed} times; what is done stays done.", busy.kind) from busy
        if outage and (is_alone or (now > self.failing_since_s + outage.silent_s and not outage.is_on)):
            outage.pause(busy)
