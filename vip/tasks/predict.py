"""Predictions: every sample of a file is answered by an engine or a baseline.

In: samples.jsonl. Out: predictions.jsonl, a row a sample in the order of the samples. Answers lie in a journal beside the file until all
are there, so the same command goes on where it was stopped. An answer that cannot be read is `unparsed`; it is never guessed.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path

from vip import files, store
from vip.captioning.estimate import Estimate
from vip.captioning.in_batches import BatchRounds
from vip.captioning.run_async import run_async, task_group
from vip.captioning.session import CaptionSession, check_engine, check_settings, open_session, quick_describing_engine
from vip.config import CaptionSettings, PredictSettings
from vip.errors import BackendError, InputError, ReplyError, ReplyKind, UsageError, did_you_mean
from vip.llm.client import Deferred, EngineClient
from vip.metrics import Status
from vip.prompts import Prompt
from vip.protocols import Engine, Observer, Request
from vip.tasks.files import check_is_file, check_new, digest_of, read_predictions, read_samples
from vip.tasks.records import Prediction, Sample
from vip.tasks.registry import load_task
from vip.tasks.sample_pictures import PictureSources, load_pictures, pictures_of
from vip.tasks.task import Task, TrainableTask
from vip.wording import option

EXAMPLES_KEPT = 64  # samples of different videos, from which demonstrations are taken
WAITING = 256  # questions prepared at once; the limiter says how many are in flight
SAMPLE_OF_COST = 20
UNPARSED: frozenset[ReplyKind] = frozenset({"schema", "empty", "broken", "length"})
REFUSED: frozenset[ReplyKind] = frozenset({"refusal", "content_filter"})


@dataclass(frozen=True, slots=True)
class PredictionSummary:
    """What `vip predict` wrote."""

    path: Path
    task: str
    engine: str
    statuses: dict[Status, int]


@dataclass(frozen=True, slots=True)
class SampleFile:
    """Facts about a file of samples, from one pass over it."""

    path: Path
    task: Task
    count: int
    has_pictures: bool
    examples: tuple[Sample, ...]
    """For demonstrations: samples with references, each of another video."""
    sources: PictureSources

    def read(self) -> Iterator[Sample]:
        return read_samples(self.path)


def open_samples(path: Path, *, seed: int = 0, sources: Sequence[Path] = ()) -> SampleFile:
    """Read a file of samples once and check it.

    Args:
        sources: folders that the pictures may lie in, whoever made the file.

    Raises:
        InputError: it is empty or damaged, has an id twice, or samples of several tasks.
    """
    task, ids, names = None, set[bytes](), Counter[str]()
    examples: dict[str, tuple[bytes, Sample]] = {}
    has_pictures = False
    for sample in read_samples(path):
        task = task or load_task(sample.task)
        names[sample.task] += 1
        digest = digest_of(sample.id, 16)
        if digest in ids:
            raise InputError(f"{path}: the id {sample.id} is there twice. Make the samples again.")
        ids.add(digest)
        has_pictures = has_pictures or any(True for _ in pictures_of(sample))
        if sample.reference is not None and task.demonstrates:
            rank = digest_of(f"{seed} {sample.id}", 8)
            if sample.video not in examples or rank < examples[sample.video][0]:
                examples[sample.video] = rank, sample
                if len(examples) > EXAMPLES_KEPT:
                    del examples[max(examples, key=lambda video: examples[video][0])]
    if task is None:
        raise InputError(f"{path} has no samples. Make some with `vip samples`.")
    if len(names) > 1:
        raise InputError(f"{path} has samples of several tasks ({', '.join(sorted(names))}). Make a file for each.")
    ordered = tuple(sample for _, sample in heapq.nsmallest(EXAMPLES_KEPT, examples.values(), key=lambda one: one[0]))
    return SampleFile(path, task, len(ids), has_pictures, ordered, PictureSources(path, tuple(sources)))


# ---------------------------------------------------------------- without a model


def predict_with_baseline(
    samples: Path, out: Path, baseline: str, *, train: Path | None = None, seed: int = 0, overwrite: bool = False, observer: Observer
) -> PredictionSummary:
    """Answer all samples by a baseline of their task.

    Args:
        train: the training set in its published form, for baselines that count its answers.

    Raises:
        UsageError: the task has no such baseline, or no use for a training set, or the file is there already.
        InputError: the samples or the training set cannot be used.
    """
    check_new(out, overwrite=overwrite)
    file = open_samples(samples, seed=seed)
    if train is not None:
        if not isinstance(file.task, TrainableTask):
            raise UsageError(f"No baseline of {file.task.name} counts answers of a training set. Leave {option('train')} out.")
        file = replace(file, task=file.task.with_training(train))
    if baseline not in file.task.baselines:
        raise UsageError(f'{file.task.name} has no baseline "{baseline}".{did_you_mean(baseline, file.task.baselines)}')
    statuses = Counter[Status]()

    def rows() -> Iterator[Prediction]:
        with observer.track("Answering", file.count) as advance:
            for row in file.task.baselines[baseline](file.read, seed):
                statuses[row.status] += 1
                advance()
                yield row

    store.write_rows(out, rows())
    return PredictionSummary(out, file.task.name, f"baseline:{baseline}", dict(statuses))


# ---------------------------------------------------------------- with an engine


def predict(
    samples: Path,
    out: Path,
    *,
    settings: PredictSettings | None = None,
    asking: CaptionSettings | None = None,
    sources: Sequence[Path] = (),
    in_batches: bool = False,
    overwrite: bool = False,
    observer: Observer,
) -> PredictionSummary:
    """Ask an engine about all samples.

    Args:
        sources: folders whose pictures may be sent, whoever made the samples; others of a file of another machine are refused.
        asking: the engine, its server, the money, the cache.
        in_batches: through the server's Batch API, for half the price and within a day.
        overwrite: forget what is there, also of an unfinished run.

    Raises:
        UsageError: the file holds answers of another engine or prompt.
        InputError: the samples cannot be used.
        BackendError: the engine cannot answer questions, or sees no pictures.
        EngineError: the engine cannot be asked, or the money is spent; the same command goes on.
    """
    settings, asking = settings or PredictSettings(), asking or CaptionSettings()
    run = _open_run(samples, out, settings, asking, sources, overwrite=overwrite, observer=observer)
    try:
        check_engine(run.client.engine)
        for note in run.session.notes:
            observer.note(note)
        run_async(run.answer_in_batches() if in_batches else run.answer_and_close())
        return run.finish()
    finally:
        run.session.close()


def expected_cost(
    samples: Path,
    *,
    settings: PredictSettings | None = None,
    asking: CaptionSettings | None = None,
    sources: Sequence[Path] = (),
    in_batches: bool = False,
) -> Estimate:
    """Return what asking about all samples would cost; nothing is sent. Arguments and errors as of `predict`."""
    settings, asking = settings or PredictSettings(), asking or CaptionSettings()
    file = open_samples(samples, seed=settings.seed, sources=sources)
    session = open_session(asking, os.environ, shows_pictures=False)
    try:
        client = _client_for(file, session)
        some = [_question(file, sample, settings, asking)[0] for sample in islice(file.read(), SAMPLE_OF_COST)]
        tokens_in = round(file.count * sum(client.most_tokens(request)[0] for request in some) / len(some))
        tokens_out = round(file.count * sum(request.max_tokens for request in some) / len(some) / 3)
        usd = client.price.usd(tokens_in, tokens_out, batch=in_batches) if client.price else None
        priced = (f"{client.price.model}, price of {client.price.as_of or 'no date'}",) if client.price else ()
        return Estimate(0, file.count, tokens_in, tokens_out, usd, priced)
    finally:
        session.close()


@dataclass(slots=True)
class _PredictionRun:
    """One call of `predict`."""

    file: SampleFile
    out: Path
    settings: PredictSettings
    asking: CaptionSettings
    session: CaptionSession
    client: EngineClient
    observer: Observer
    deferred: int = 0
    """Samples whose answer comes with a batch."""

    @property
    def journal(self) -> Path:
        return self.out.with_name(f"{self.out.name}.journal")

    @property
    def batches(self) -> Path:
        """Return the folder in which batches are noted."""
        return self.out.with_name(f"{self.out.name}.batches")

    async def answer_and_close(self) -> None:
        try:
            await self.answer_all()
        finally:
            await self.client.close()

    async def answer_in_batches(self) -> None:
        """Ask in batches, until nothing is left to wait for."""
        store.make_folder(self.batches, inside=self.out.parent)
        try:
            with store.in_use(self.batches), BatchRounds(self.session.describer, self.batches, self.observer.note) as rounds:
                await self.answer_all()
                while self.deferred:
                    await rounds.collect()
                    await self.answer_all()
        finally:
            await self.client.close()
        files.remove_folder(self.batches)

    async def answer_all(self) -> None:
        """Ask about each sample that has no answer yet; each answer is in the journal before its place is free for the next."""
        self.deferred = 0
        done = self._answered()
        gate = asyncio.Semaphore(WAITING)
        with (
            self.observer.track("Asking", self.file.count - len(done)) as advance,
            store.appending(self.journal, durable=False) as append,
        ):
            async with task_group() as group:
                for sample in self.file.read():
                    if sample.id not in done:
                        await gate.acquire()
                        group.create_task(self._answer_one(sample, gate, append, advance))

    def _answered(self) -> set[str]:
        """Return the ids of the samples that were answered by an earlier call; one that failed is asked about again.

        Raises:
            UsageError: other questions were answered, or by another engine.
        """
        found: dict[str, str | None] = {}
        for path in filter(store.exists, (self.out, self.journal)):
            for row in store.read_rows(path, Prediction, torn_end=path == self.journal):
                if row.engine != self.client.engine.name:
                    raise self._others_error(path, row.engine or "another engine")
                if row.status != "failed":
                    found[row.sample_id] = row.question_sha256
        for sample in self.file.read() if found else ():
            if sample.id in found and found[sample.id] != question_sha256(self.file, sample, self.settings):
                raise self._others_error(self.out, f"{self.client.engine.name} to other questions")
        return set(found)

    def _others_error(self, path: Path, whose: str) -> UsageError:
        return UsageError(f"{path} holds answers of {whose}. Add {option('overwrite')}, or name another file with {option('out')}.")

    async def _answer_one(
        self, sample: Sample, gate: asyncio.Semaphore, append: Callable[[Prediction], None], advance: Callable[[], None]
    ) -> None:
        try:
            append(await self._prediction(sample))
            advance()
        except Deferred:
            self.deferred += 1
        finally:
            gate.release()

    async def _prediction(self, sample: Sample) -> Prediction:
        about = {"engine": self.client.engine.name, "question_sha256": question_sha256(self.file, sample, self.settings)}
        request, asked, parameters = _question(self.file, sample, self.settings, self.asking)
        try:
            answer = await self.client.ask(request, asked, parameters)
        except ReplyError as exc:
            status: Status = "unparsed" if exc.kind in UNPARSED else "refused" if exc.kind in REFUSED else "failed"
            return Prediction(sample_id=sample.id, value=None, status=status, reason=str(exc), **about)
        parsed = self.file.task.parse(sample, str(answer.value))
        return parsed.model_copy(update={**about, "calls": answer.calls})

    def finish(self) -> PredictionSummary:
        """Put the answers in the order of the samples into one file."""
        order = (sample.id for sample in self.file.read())
        store.merge_rows(self.out, [self.out, self.journal], Prediction, key=lambda row: row.sample_id, order=order)
        with suppress(OSError):
            self.journal.unlink()
        statuses = Counter(row.status for row in read_predictions(self.out))
        return PredictionSummary(self.out, self.file.task.name, self.client.engine.name, dict(statuses))


def _open_run(
    samples: Path,
    out: Path,
    settings: PredictSettings,
    asking: CaptionSettings,
    sources: Sequence[Path],
    *,
    overwrite: bool,
    observer: Observer,
) -> _PredictionRun:
    check_is_file(out)
    store.make_folder(out.parent)
    file = open_samples(samples, seed=settings.seed, sources=sources)
    file.sources.check_all(file.read())
    if file.task.demonstrates and settings.shots and len({sample.video for sample in file.examples}) < 2:
        raise UsageError(
            f"{samples} has samples of one video only, and the prompt shows an example of another. Add runs, or {option('shots', 0)}."
        )
    session = open_session(asking, os.environ, shows_pictures=False)
    try:
        client = _client_for(file, session)
        if file.task.info.over_videos and not file.has_pictures:
            observer.note(f"These samples show nothing of their videos: {client.engine.name} answers by the words alone.")
        run = _PredictionRun(file, out, settings, asking, session, client, observer)
        if overwrite:
            for path in (out, run.journal):
                check_is_file(path)
                files.remove(path)
    except BaseException:
        session.close()
        raise
    return run


def check_asking(asking: CaptionSettings) -> None:
    """Refuse settings of an engine that cannot answer, before anything is made; no model is loaded.

    Raises:
        UsageError, BackendError, EngineError: as of `predict`.
    """
    check_settings(asking, os.environ)
    if (engine := quick_describing_engine(asking, os.environ)) is not None:
        _check_answers(engine)


def _check_answers(engine: Engine) -> None:
    can = engine.capabilities
    if can.measures or can.captions_only:
        raise BackendError(
            f"{engine.name} only describes pictures and answers no questions. Name another {option('engine')}, or"
            f" {option('baseline', 'NAME')}."
        )


def _client_for(file: SampleFile, session: CaptionSession) -> EngineClient:
    """Return the client of the engine, if it can answer these samples.

    Raises:
        BackendError: it cannot.
    """
    client = session.describer.describing_client
    _check_answers(client.engine)
    if file.has_pictures and not client.engine.capabilities.sees:
        raise BackendError(f"{client.engine.name} takes no pictures, and these samples show some. Name another {option('engine')}.")
    return client


def question_sha256(file: SampleFile, sample: Sample, settings: PredictSettings) -> str:
    """Return the SHA-256 of what is asked about a sample: its text, schema and pictures."""
    asked = file.task.request(sample, _demonstration(file, sample, settings), variant=settings.variant)
    shown = [picture.sha256 or f"{picture.source} {picture.keyframe_id}" for picture in pictures_of(sample)]
    return sha256(json.dumps([asked.text, asked.schema, asked.max_tokens, shown], sort_keys=True).encode()).hexdigest()


def _question(
    file: SampleFile, sample: Sample, settings: PredictSettings, asking: CaptionSettings
) -> tuple[Request, Prompt, dict[str, object]]:
    """Return the request, its prompt, and its parameters for the record."""
    asked = file.task.request(sample, _demonstration(file, sample, settings), variant=settings.variant)
    pictures = load_pictures(sample, asking.picture_side, file.sources) if file.has_pictures else ()
    request = Request("describe", asked.text, None, pictures, asked.schema, asked.max_tokens, is_greedy=True)
    parameters: dict[str, object] = {
        "variant": settings.variant,
        "seed": settings.seed,
        "demonstration": asked.demonstration,
        "greedy": True,
    }
    if pictures:
        parameters["longest_side_px"] = asking.picture_side
    return request, asked.prompt, parameters


def _demonstration(file: SampleFile, sample: Sample, settings: PredictSettings) -> Sample | None:
    """Return the example for a sample: of another video, chosen by the seed and the sample's id; None where none is shown."""
    if not settings.shots or not file.task.demonstrates:
        return None
    others = [one for one in file.examples if one.video != sample.video]
    if not others:
        raise InputError(f"{sample.id} has no example of another video. Add runs, or {option('shots', 0)}.")
    return min(others, key=lambda one: digest_of(f"{settings.seed} {sample.id} {one.id}", 8))
