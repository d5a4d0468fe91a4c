"""Questions that can wait are put into files, handed in as batches, and their answers are collected when they are there.

In: requests with the keys by which the caller knows them. Out: their answers, through a callback. What was handed in stands in
`jobs.json` before and after each step, so that a process that dies loses no job and pays for none twice. Only jobs that this machine
handed in are collected, and only rows that this process wrote are handed in: the folder may have come with a download.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from itertools import count
from pathlib import Path
from typing import Self

from vip import user_state
from vip.errors import BusyError, EngineError, OutageError, ReplyError, StoreError, VipError
from vip.llm.batch_files import FOLDER, LONGEST_REASON, BatchFileWriter, BatchFolder, BatchJob, BatchJobList, status
from vip.protocols import BatchApi, BatchState, Reply, Request
from vip.wording import again, option

__all__ = ["BatchJob", "BatchJobs", "status"]

PART_BYTES = 190 * 2**20  # the server takes 200 MB a file; some count the form around it too
PART_ROWS = 50_000  # the most that the server takes
TRIES = 3  # that often a row is handed in at most
BUSY_IN_A_ROW = 20  # failed calls to the server, before the run ends; a later one can continue
BUSY_BEFORE_AN_ANSWER = 5  # of a server that has answered nothing yet: a mistyped address is likelier than an outage
FIRST_POLL_S, LONGEST_POLL_S = 1.0, 60.0  # a small batch may be done at once, a large one takes hours

OnAnswer = Callable[[str, Reply | VipError], Awaitable[None]]


class BatchJobs:
    """The batches of one run folder; use it in a `with` block.

    Args:
        folder: the one that the command names.
        below: the place in it that these batches are noted in.
    """

    def __init__(
        self, folder: Path, api: BatchApi, *, below: Path = Path(), part_bytes: int = PART_BYTES, part_rows: int = PART_ROWS
    ) -> None:
        self.place, self.api = BatchFolder(folder, folder / below / FOLDER), api
        self.part_bytes, self.part_rows = part_bytes, part_rows
        self.jobs = {job.part: job for job in status(folder, below=below)}
        self._ours = {job.part for job in self.jobs.values() if job.is_open and job.is_ours}
        self._written: set[int] = set()
        """Parts of this process: what was handed in of them was counted here."""
        self._keys = {key for part in self._ours for key in self.place.keys_of(part)}
        self._writing: BatchFileWriter | None = None
        self._full = False
        self._busy = 0
        self._has_answered = False

    def __enter__(self) -> Self:
        self.place.make()
        self.jobs = {part: job for part, job in self.jobs.items() if not job.is_open or job.job or part in self._ours}
        self.place.delete_others({job.part for job in self.jobs.values() if job.is_open})
        return self

    def __exit__(self, kind: object, exc: BaseException | None, trace: object) -> None:
        if self._writing is not None and exc is not None:
            self._writing.drop()
            self._writing = None
        self.close()

    @property
    def open_jobs(self) -> list[BatchJob]:
        """Return the jobs of this machine that are not collected yet."""
        return [job for job in self.jobs.values() if job.is_open and job.part in self._ours]

    @property
    def strange_jobs(self) -> list[BatchJob]:
        """Return the jobs that wait at the server and were not handed in by this machine; they are left alone."""
        return [job for job in self.jobs.values() if job.is_strange]

    # ------------------------------------------------------------ rows

    def __contains__(self, key: str) -> bool:
        """Return whether the answer to this key is waited for."""
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: str, request: Request) -> None:
        """Put a request into the next batch; one whose key is waited for already is left out.

        Args:
            key: one line. In `on_answer` too: what an answer leads to can be asked in the next batch.

        Raises:
            ReplyError: it is larger than a batch may be.
            StoreError: the disk is full, or not writable.
        """
        if key in self._keys:
            return
        row = self.api.row(key, request)
        if len(row) > self.part_bytes:
            text = f"This request has {len(row)} bytes, and a batch takes {self.part_bytes}. Ask without {option('batch')}."
            raise ReplyError(text, kind="too_large")
        if self._writing is not None and not self._writing.has_room(row, self.part_bytes, self.part_rows):
            self.close()
        if self._writing is None:
            self._writing = self.place.writer(self._next_part, 1)
        self._writing.write(key, row)
        self._keys.add(key)

    def close(self) -> None:
        """End the part that is being written; `run` does so by itself."""
        if self._writing is not None:
            writer, self._writing = self._writing, None
            self._note_written(writer.finish())

    # ------------------------------------------------------------ jobs

    async def run(
        self, on_answer: OnAnswer, *, poll_s: float | None = None, on_status: Callable[[Sequence[BatchJob]], None] = lambda jobs: None
    ) -> set[str]:
        """Hand in what is written, wait for all jobs, collect their answers.

        Args:
            poll_s: the first wait for news, by default a second; the next ones are longer.
            on_answer: gets each answer, or what was wrong with it. It may get one a second time where the process before
                died in the middle of them.
            on_status: called with all jobs whenever one of them has changed.

        Returns:
            Keys that got no answer in three submissions, for the caller to ask by themselves. Those of earlier processes that got none
            are waited for no longer: they can be added again.

        Raises:
            EngineError: the server took a whole file for wrong, was out of reach for too long, or somebody cancelled the job.
        """
        given_up: set[str] = set()
        wait_s = first_s = FIRST_POLL_S if poll_s is None else poll_s
        while True:
            self.close()
            before = self._reported_jobs
            left, busy = await self.step(on_answer)
            given_up |= left
            if busy and self._busy >= (BUSY_IN_A_ROW if self._has_answered else BUSY_BEFORE_AN_ANSWER):
                on = f" The batches go on. {again()} to collect them." if any(job.job for job in self.open_jobs) else ""
                raise OutageError(f"{busy}{on}", busy.kind) from busy
            now = self._reported_jobs
            if now != before:
                on_status(now)
                wait_s = first_s
            if self._writing is None and not self.open_jobs:
                return given_up
            if busy or self._full or (self._writing is None and all(job.job for job in self.open_jobs)):
                await asyncio.sleep(wait_s)
                wait_s = min(LONGEST_POLL_S, 2 * wait_s)

    @property
    def _reported_jobs(self) -> tuple[BatchJob, ...]:
        return tuple(job for job in self.jobs.values() if not job.is_open or job.part in self._ours)

    @property
    def has_rows(self) -> bool:
        """Return whether a part is being written."""
        return self._writing is not None

    @property
    def has_steps(self) -> bool:
        """Return whether `step` asks the server for anything."""
        return bool(self._to_step())

    def _to_step(self) -> list[BatchJob]:
        return [job for job in self.open_jobs if job.job or not self._full]

    async def step(self, on_answer: OnAnswer) -> tuple[set[str], BusyError | None]:
        """Take one step with every job: hand in what is closed, collect what has ended.

        Returns:
            Keys that got no answer in three submissions; and why some job could not be asked about, where that may pass.

        Raises:
            EngineError: the server took a whole file for wrong, or somebody cancelled the job.
        """
        left: set[str] = set()
        busy = None
        for job in self._to_step():
            try:
                left |= await self._step(job, on_answer)
                self._busy, self._has_answered = 0, True
            except BusyError as exc:
                self._busy, busy = self._busy + 1, exc
                self._has_answered |= exc.kind in ("rate_limit", "server")
        return left, busy

    async def look(self) -> list[BatchJob]:
        """Return the jobs as the server reports them. Nothing is noted, since another process may be waiting for them."""
        jobs = []
        for job in self.jobs.values():
            if job.is_open and job.job and job.part in self._ours:
                state = await self.api.state(job.job)
                job = job.model_copy(update={"status": state.status, "completed": state.completed, "failed": state.failed})
            jobs.append(job)
        return jobs

    async def _step(self, job: BatchJob, on_answer: OnAnswer) -> set[str]:
        """Take one step with a job. Returns the keys that are given up."""
        if job.job is None:
            await self._submit(job)
            return set()
        state = await self.api.state(job.job)
        job = job.model_copy(update={"status": state.status, "completed": state.completed, "failed": state.failed})
        if job != self.jobs[job.part]:
            self._note(job)
        if state.status == "failed":
            await self._handle_rejected(job, state)
        elif state.ended:
            return await self._collect(job, on_answer, cancelled=state.status == "cancelled")
        return set()

    async def _submit(self, job: BatchJob) -> None:
        """Hand a part in, unless a process that died before it could note the job has done so."""
        found = await self.api.find(job.tag) if job.tag else None
        if found is None and job.part not in self._written:
            self._drop(job)
            return
        if found is None:
            job = job.model_copy(update={"tag": job.tag or secrets.token_hex(16), "error": None})
            user_state.remember("jobs", job.mark(str(job.tag)))
            self._note(job)
            found = await self._upload(job)
        user_state.remember("jobs", job.mark(found))
        self._note(job.model_copy(update={"job": found, "status": "validating"}))

    async def _upload(self, job: BatchJob) -> str:
        path = self.place.rows_of(job.part)
        try:
            return await self.api.submit(path, str(job.tag))
        except OSError as exc:
            raise StoreError(f"{path} cannot be read: {exc.strerror}. Run again to ask its {job.rows} requests anew.") from exc

    async def _handle_rejected(self, job: BatchJob, state: BatchState) -> None:
        """Handle a file of which the server took no row: it is handed in again, later or by another run."""
        assert job.job is not None
        if job.part in self._written:
            error = state.error[:LONGEST_REASON] if state.error else None
            self._note(job.model_copy(update={"tag": None, "job": None, "error": error}))
            self._forget(job)
        else:
            self._drop(job)
        await self._discard(job.job)
        if job.part not in self._written:
            return
        if not state.full or not any(other.job for other in self.open_jobs):
            why = (state.error or "it does not say why").rstrip(".")
            raise EngineError(f"The server does not take batch {job.part} of {job.rows} requests ({why}). Nothing of it was asked.")
        self._full = True  # until one of ours has ended

    async def _collect(self, job: BatchJob, on_answer: OnAnswer, *, cancelled: bool) -> set[str]:
        """Pass the answers on. Rows without one are written into a new part, or given up. Returns the keys of the latter.

        Rows of an earlier process are neither: they can be added again.
        """
        assert job.job is not None
        keys = self.place.keys_of(job.part)
        missing = dict.fromkeys(keys)
        async with aclosing(self.api.results(job.job)) as results:
            async for key, answer in results:
                if key in missing and not isinstance(answer, BusyError):
                    await on_answer(key, answer)
                    del missing[key]
        self._full = False
        again = job.tries < TRIES and not cancelled
        is_copied = again and job.part in self._written
        parts = [self.place.copy_rows(job, set(missing), self._next_part)] if is_copied and missing else []
        self._note_written(*parts, collected=job)
        self._keys -= {key for key in keys if not is_copied or key not in missing}
        self._forget(job)
        self.place.delete(job.part)
        await self._discard(job.job)
        if cancelled:
            raise EngineError(f"Batch {job.part} was cancelled at the server. Run again to ask its other {len(missing)}.")
        return set() if again else set(missing)

    async def _discard(self, job: str) -> None:
        with suppress(EngineError):  # what stays there expires by itself
            await self.api.discard(job)

    # ------------------------------------------------------------ what stands on the disk

    @property
    def _next_part(self) -> int:
        taken = {*self.jobs, self._writing.part if self._writing else 0}
        return next(number for number in count(1) if number not in taken)

    def _note_written(self, *parts: BatchJob, collected: BatchJob | None = None) -> None:
        """Note parts of this process, and at once the job that they come from."""
        self._written |= {job.part for job in parts}
        self._ours |= {job.part for job in parts}
        self._note(*([collected.model_copy(update={"status": "collected"})] if collected else []), *parts)

    def _note(self, *jobs: BatchJob) -> None:
        """Write it down, all at once."""
        self.jobs |= {job.part: job for job in jobs}
        self.place.note(BatchJobList(jobs=tuple(self.jobs.values())))

    def _drop(self, job: BatchJob) -> None:
        """Wait no longer for a part of an earlier process: who needs its answers asks anew."""
        self._keys -= set(self.place.keys_of(job.part))
        del self.jobs[job.part]
        self._note()
        self._forget(job)
        self.place.delete(job.part)

    def _forget(self, job: BatchJob) -> None:
        for name in filter(None, (job.tag, job.job)):
            user_state.forget("jobs", job.mark(name))
