"""`caption`: describe the keyframes of one or many run folders (section 3.2).

    load engines ▸ open folders ▸ estimate the cost ▸ describe (see vip/captioning/describe.py) ▸ verify ▸ write, note what was spent

A description is in the folder's journal before its keyframe counts as done. Every answer that was paid for is in the answer cache
before that. So a job that is started again continues after the last description, and asks nothing twice.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, aclosing, contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from vip import registry, store
from vip.captioning import in_batches, session
from vip.captioning.describe import DeferredKeyframe, KeyframeSequence, Outcome, describe, width
from vip.captioning.described_folder import DescribedFolder
from vip.captioning.estimate import Estimate, estimate
from vip.captioning.in_batches import RollingBatches
from vip.captioning.run_async import run_async, task_group
from vip.captioning.session import CaptionSession, open_session
from vip.captioning.verify import Verifier
from vip.config import CaptionSettings, chosen
from vip.errors import ReplyError, SomeFailedError, StoreError, VipError
from vip.llm.batch_jobs import BatchJob
from vip.llm.budget import Budget, Usage, dollars
from vip.llm.outage import Outage, OutagePause
from vip.protocols import Observer, SilentObserver
from vip.records import Failure
from vip.store import Run
from vip.wording import again, counted, option
from vip.words.run_words import words_digest

EXTRAPOLATED_FROM = 5  # requests
SAMPLE = 8  # keyframes from which the cost is estimated
RunOrPath = Run | str | Path
ListPictures = Callable[[Path, CaptionSettings, Observer], tuple[Failure, ...]]
"""Lists a plain folder of pictures as keyframes, see `vip.extraction.picture_folder`. Returns the pictures that cannot be read."""


def skip_picture_folder(folder: Path, settings: CaptionSettings, observer: Observer) -> tuple[Failure, ...]:
    """Skip plain folders of pictures."""
    return ()


def expected_cost(
    runs: RunOrPath | Sequence[RunOrPath],
    *,
    overwrite: bool = False,
    in_batches: bool = False,
    settings: CaptionSettings | None = None,
    list_pictures: ListPictures = skip_picture_folder,
    **options: Any,
) -> Estimate:
    """Return what `vip.pipeline.caption` would ask and spend; nothing is asked."""
    given = [runs] if isinstance(runs, Run | str | Path) else list(runs)
    settings = chosen(CaptionSettings, settings, options)
    with open_job(given, settings, SilentObserver(), list_pictures, overwrite=overwrite, in_batches=in_batches) as job:
        return job.cost()


def check(settings: CaptionSettings, *, asks: bool = True) -> None:
    """Refuse what cannot work before any video is looked at: a missing key or package, a ceiling without a price.

    Args:
        asks: the engines will be asked, so their keys have to be there.

    Raises:
        UsageError, BackendError, EngineError: as for `caption`.
    """
    session.check_settings(settings, os.environ, asks=asks)


def batches_of(folders: Sequence[Path], settings: CaptionSettings, observer: Observer) -> list[BatchJob]:
    """Return the batches of these folders: as the server reports them, or as last seen where it cannot be asked.

    Raises:
        InputError: there is no such folder.
    """
    for folder in folders:
        store.check_folder(folder)
    home = in_batches.batches_home(folders)
    jobs = in_batches.jobs_in(home)
    if not any(job.is_at_server for job in jobs):
        return jobs
    try:
        session = open_session(settings, os.environ)
    except VipError as exc:
        observer.note(f"As last seen, since the server cannot be asked: {exc}")
        return jobs
    try:
        return run_async(in_batches.refreshed_jobs(session.describer, home))
    except VipError as exc:
        observer.note(f"As last seen, since the server does not answer: {exc}")
        return jobs
    finally:
        session.close()


def home_of(run: RunOrPath) -> Path:
    """Return the folder that is meant by a run, its folder, or its keyframes/ folder."""
    return run.folder if isinstance(run, Run) else store.home_of(Path(run))


# ---------------------------------------------------------------- one call


@dataclass(slots=True)
class CaptionJob:
    """One call of `caption`."""

    session: CaptionSession
    folders: list[DescribedFolder]
    settings: CaptionSettings
    observer: Observer
    verifier: Verifier | None
    batch: bool = False
    before: Usage = field(default_factory=Usage)
    start_s: float = field(default_factory=perf_counter)
    expected: Estimate | None = field(init=False, default=None)
    _open_folders: dict[Path, DescribedFolder] = field(init=False, default_factory=dict)

    @property
    def todo(self) -> int:
        return sum(folder.todo for folder in self.folders)

    def check(self) -> None:
        """Refuse to begin where an engine cannot be asked.

        Raises:
            EngineError: its key is missing.
        """
        for client in self.session.describer.clients if self.todo else ():
            session.check_engine(client.engine)

    def cost(self, keyframes: int | None = None) -> Estimate:
        sample = [one for folder in self.folders for one in folder.first(SAMPLE)]
        return estimate(self.session.describer, sample[:: max(1, len(sample) // SAMPLE)], keyframes or self.todo, batch=self.batch)

    def note_cost(self, keyframes: int | None = None) -> None:
        """Note the expected cost and the ceiling; nothing where nothing is paid for.

        Args:
            keyframes: how many there will be; None for those that are here.
        """
        paid = [client for client in self.session.describer.clients if client.engine.capabilities.address]
        if not self.todo or not paid:
            return
        self.expected, budget = self.cost(keyframes), self.session.budget
        unknown = [client.engine.name for client in paid if client.price is None]
        if unknown:
            ceiling = f"the price of {unknown[0]} is unknown, so no ceiling in dollars can be kept"
        elif budget.given:
            ceiling = f"at most {dollars(budget.max_usd or 0.0)}"
        else:
            ceiling = f"at most {budget.max_usd:g} dollars, since no {option('max_usd')} is given"
        more = f"; second looks of {option('verify')} come on top" if self.verifier else ""
        self.observer.note(f"{self.expected}{more}; {ceiling}.")

    def spent_so_far(self) -> str:
        """Return `$0.12 of about $0.40`, or tokens where no price is known."""
        usage, expected = self.session.budget.usage, self.expected
        if expected is None:
            return ""
        known = usage.requests >= EXTRAPOLATED_FROM  # from then on, what was used predicts better than the estimate
        times = max(1.0, expected.requests / usage.requests) if known else 0.0
        if expected.usd is None:
            used = usage.tokens_in + usage.tokens_out
            return f"{used:,} of about {round(used * times) if known else expected.tokens_in + expected.tokens_out:,} tokens"
        return f"{dollars(usage.usd)} of about {dollars(usage.usd * times if known else max(expected.usd, usage.usd))}"

    def note_spent(self) -> None:
        """Note what this call used; of a budget that other calls share, the difference."""
        usage = self.session.budget.usage - self.before
        if self.batch:
            usage.cached = 0  # the answers of the batches are found where all answers are
        if usage.tokens_in or usage.tokens_out or usage.cached:
            self.observer.note(f"Used {usage}.")

    def run(self) -> list[Run]:
        """Describe all there is. Returns the runs with their descriptions; errors as of `caption`."""
        self.check()
        self.note_cost()
        try:
            run_async(self._describe_and_close())
        finally:
            self.note_spent()
        self._note_failed_second_looks()
        self.raise_for_failures()
        return [Run(folder.path) for folder in self.folders]

    async def _describe_and_close(self) -> None:
        try:
            await self.describe()
        finally:
            for client in self.session.describer.clients:
                await client.close()

    async def describe(self) -> None:
        """Describe all there is; the engines stay open."""
        try:
            if self.batch:
                await self._describe_in_rounds()
            else:
                await self._describe_round()
        finally:
            for folder in self.folders:
                if folder.usage.requests and (folder.deferred or not folder.is_finished):
                    with suppress(StoreError):  # the first error is the one to report
                        self._note(folder)
                folder.close()

    async def _describe_round(self) -> None:
        """Describe what can be described now."""
        topic_usage = next((folder.usage for folder in self.folders if folder.todo), Usage())
        outcomes = describe(self.session.describer, self._sequences(), topic_usage)
        with self.observer.track("Describing", self.todo, self.spent_so_far) as advance:
            async with task_group() as group, aclosing(outcomes):
                await self._add(outcomes, group, advance)
        for folder in self.folders:
            if not folder.is_finished:
                await self._finish_folder(folder)

    async def _add(self, outcomes: AsyncIterator[Outcome], group: asyncio.TaskGroup, advance: Callable[[], None]) -> None:
        """Write each outcome into its folder, and end a folder as soon as it has all of them."""
        ending = set[asyncio.Task[None]]()
        async for outcome in outcomes:
            folder = self._open_folders[outcome.item.folder]
            folder.add(outcome)
            if not isinstance(outcome, DeferredKeyframe):
                advance()
            if folder.is_over:
                ending.add(group.create_task(self._finish_folder(folder)))
            if len(ending) > width(self.session.describer):  # each has files open
                _, ending = await asyncio.wait(ending, return_when=asyncio.FIRST_COMPLETED)

    async def _describe_in_rounds(self) -> None:
        """Describe in batches, until nothing is left to wait for."""
        home = in_batches.batches_home([folder.path for folder in self.folders])
        with store.in_use(home), in_batches.BatchRounds(self.session.describer, home, self.observer.note) as rounds:
            await self._describe_round()
            while any(folder.deferred for folder in self.folders):
                await rounds.collect()
                for folder in self.folders:
                    folder.start_round()
                await self._describe_round()

    def _sequences(self) -> Iterator[KeyframeSequence]:
        """Yield the keyframes of a folder as one sequence where each question holds the captions before it, else each by itself."""
        in_order = self.settings.context > 0 and not self.session.describer.measures
        for folder in self.folders:
            if folder.todo:
                folder.open()
                self._open_folders[folder.path] = folder
                tasks = folder.tasks(with_known=in_order)
                yield from [tasks] if in_order else ([task] for task in tasks)

    async def _finish_folder(self, folder: DescribedFolder) -> None:
        """Verify and finish a folder of which every keyframe was tried."""
        if not folder.is_open:
            folder.open()
        if self.verifier and not folder.deferred:
            await self.verifier.verify(folder)
        if folder.deferred or folder.is_noted(self._manifest_entry(folder)):
            folder.close()
        else:
            await asyncio.to_thread(folder.finish)
            self._note(folder, caption=round(perf_counter() - self.start_s, 3))
        folder.is_finished = True

    def _manifest_entry(self, folder: DescribedFolder) -> dict[str, Any]:
        return {**made_with(self.settings, self.session), "spent": folder.spent_in_all}

    def _note(self, folder: DescribedFolder, **seconds: float) -> None:
        """Put into the manifest how it was described and what that cost; without seconds it is not finished."""
        if folder.manifest:
            changed = {"captioning": self._manifest_entry(folder), "seconds": {**folder.manifest.seconds, **seconds}}
            store.write_json(folder.path / store.MANIFEST, folder.manifest.model_copy(update=changed))

    def _note_failed_second_looks(self) -> None:
        failed = [folder for folder in self.folders if folder.second_look_failures]
        count = sum(len(folder.second_look_failures) for folder in failed)
        for folder in failed[:1]:
            more = f", and in {counted(len(failed) - 1, 'more folder')}" if failed[1:] else ""
            where = f"{folder.path / store.FAILURES}{more}"
            self.observer.note(f"{counted(count, 'second look')} failed, and the marked claims stay; see {where}.")

    def raise_for_failures(self) -> None:
        failed = [folder for folder in self.folders if folder.failed]
        if not failed:
            return
        count, of = sum(folder.failed for folder in failed), sum(folder.keyframes + len(folder.unreadable) for folder in self.folders)
        says = " says" if len(failed) == 1 else f" and that of {len(failed) - 1} more folders say"
        where = f"{failed[0].path / store.FAILURES}{says} why. {again()} to try only those."
        if count >= of:
            raise ReplyError(f"None of {of} keyframes could be described: {failed[0].failures[0].message} {where}")
        raise SomeFailedError(f"{count} of {of} keyframes could not be described; {where}")


@dataclass(frozen=True, slots=True)
class OutagePolicy:
    """A server that is gone is left alone for a while and asked again, instead of ending the work.

    Args:
        first_s: the first rest; each further one is twice as long, see `vip.llm.outage`.
        on_pause: called with each pause, and with None when the server answers again.
        answered: it has answered before. One that never did may be a wrong address, and ends the work.
    """

    first_s: float
    on_pause: Callable[[OutagePause | None], None]
    answered: bool


class RunCaptioner:
    """A captioner of run folders as they come, many at once: all through the same engines, within their limits and one ceiling.

    Args:
        budget: what was spent before counts towards the ceiling.
        outages: None where a server that is gone ends the work.
        batches: the folder in which batches are noted, where the questions go into batches; None: they are asked one by one.

    Raises:
        UsageError, BackendError, EngineError, StoreError: as for `caption`.
    """

    def __init__(
        self,
        settings: CaptionSettings,
        observer: Observer,
        budget: Budget,
        *,
        outages: OutagePolicy | None = None,
        batches: Path | None = None,
    ) -> None:
        self._settings, self._observer = settings, observer
        with ExitStack() as stack:
            self._session = open_session(settings, os.environ, budget)
            stack.callback(self._session.close)
            clients = self._session.describer.clients
            for client in clients:
                session.check_engine(client.engine)
            for note in self._session.notes:
                observer.note(note)
            for client in clients:
                client.limiter.on_long_wait = observer.note
                if outages:
                    client.circuit_breaker.answered = outages.answered
                    client.limiter.outage = client.limiter.outage or Outage(outages.first_s, outages.on_pause)
            self.batches = RollingBatches(self._session.describer, batches, observer.note) if batches else None
            self._verifier = _verifier(settings, self._session, observer) if settings.verify else None
            stack.pop_all()  # from here on `close` does it

    @property
    def has_answered(self) -> bool:
        """Return whether a server has answered, now or before."""
        return any(client.circuit_breaker.answered for client in self._session.describer.clients)

    @property
    def engines(self) -> tuple[str, str]:
        """Return the engines that see the pictures and that write FAMOuS."""
        describer = self._session.describer
        return describer.describing_client.engine.name, describer.structuring_client.engine.name

    @property
    def width(self) -> int:
        """Return how many keyframes are under way at once."""
        return width(self._session.describer)

    def cost(self, folder: Path, keyframes: int) -> str:
        """Return the expected cost of so many keyframes like those of a folder, and the ceiling, in words; "" where nothing is paid for."""
        notes = _NoteCollector()
        job = self._new_job(folder, None, notes)
        job.batch = self.batches is not None
        job.note_cost(keyframes)
        return "".join(notes.texts)

    async def caption(self, folder: Path, topic: str | None, usage: Usage | None = None) -> frozenset[bytes]:
        """Describe a run folder; its failures.jsonl names what could not be described.

        Args:
            usage: what was used for it so far, which is added to.

        Returns:
            The questions whose answers are to come from a batch; empty where all is done.

        Raises:
            EngineError: the engine cannot be asked, or the money is spent.
        """
        job = self._new_job(folder, topic, SilentObserver())
        (one,) = job.folders
        one.usage = one.usage if usage is None else usage
        await job.describe()
        return frozenset(one.deferred)

    def _new_job(self, folder: Path, topic: str | None, observer: Observer) -> CaptionJob:
        describer = self._session.describer
        settings = self._settings.model_copy(update={"topic": topic or self._settings.topic})
        session = replace(self._session, describer=replace(describer, config=replace(describer.config, topic=settings.topic)))
        return CaptionJob(session, [_described_folder(folder, settings, session)], settings, observer, self._verifier)

    async def close(self) -> None:
        for client in self._session.describer.clients:
            await client.close()
        self._session.close()


class _NoteCollector(SilentObserver):
    """An observer that keeps the notes."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


def made_with(settings: CaptionSettings, session: CaptionSession) -> dict[str, Any]:
    """Return what the manifest says about how the descriptions were made."""
    describer = session.describer
    names = {"recipe", "schema", "language", "context", "topic", "verify", "picture_side", "picture_detail"}
    wanted = settings.model_dump(mode="json", include=names)
    return {"engine": describer.engine, **wanted, "prompts": {name: describer.prompts[name].version for name in describer.names}}


@contextmanager
def open_job(
    runs: Sequence[RunOrPath],
    settings: CaptionSettings,
    observer: Observer,
    list_pictures: ListPictures,
    *,
    overwrite: bool = False,
    in_batches: bool = False,
    budget: Budget | None = None,
) -> Iterator[CaptionJob]:
    """Load the engines, open the folders, and yield the job; arguments and errors as of `vip.pipeline.caption`."""
    session = open_session(settings, os.environ, budget)
    try:
        folders = []
        for run in runs:
            home = home_of(run)
            failures = list_pictures(home, settings, observer)
            folders.append(_described_folder(home, settings, session, failures))
        for note in session.notes:
            observer.note(note)
        for folder in folders:
            folder.check(overwrite)
            if folder.kept_note:
                observer.note(folder.kept_note)
        for client in session.describer.clients:
            client.limiter.on_long_wait = observer.note
        verifier = _verifier(settings, session, observer) if settings.verify else None
        yield CaptionJob(session, folders, settings, observer, verifier, in_batches, copy(session.budget.usage))
    finally:
        session.close()


def _described_folder(
    home: Path, settings: CaptionSettings, session: CaptionSession, failures: tuple[Failure, ...] = ()
) -> DescribedFolder:
    manifest = store.load_run(home).manifest
    detector = manifest.backends.get("detector", settings.detector) if manifest else settings.detector
    describer = session.describer
    fingerprint = describer.fingerprint._replace(
        words=words_digest(home, *(describer.prompts[name].sha256 for name in ("words", "text", "speech")))
    )
    return DescribedFolder(home, fingerprint, detector=detector, failures=failures, keeps_asked=session.is_auto_offline)


def _verifier(settings: CaptionSettings, session: CaptionSession, observer: Observer) -> Verifier:
    name, why = registry.auto_embedder(settings.embedder)
    embedder = registry.embedder(name, device=settings.device, precision=settings.precision)
    if embedder.capabilities.joint_space:
        return Verifier(session.describer, embedder)
    reason = why or "it knows no texts"
    observer.note(f"{option('verify')}: only the detector has a say, since the embedder is {name}, {reason}.")
    return Verifier(session.describer, None)
