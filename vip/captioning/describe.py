"""The captioning stage (section 3.2): many keyframes at once, in the order that each needs.

In: sequences of keyframes, and a Describer. Out, in the order in which they are ready: one outcome for each keyframe. It is described, it
failed, or its question waits for a batch. Keyframes of one sequence go one after the other, since each question holds the captions before
it; sequences go side by side, as many as the servers answer well. A picture or an answer that cannot be used costs its keyframe; an
engine that cannot be asked ends everything.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, field, replace

from vip.captioning.describer import Describer, KeyframePosition
from vip.captioning.encoded_pictures import EncodedKeyframe, KeyframeReader, encode_keyframe
from vip.captioning.rich_fields import camera_movement
from vip.captioning.run_async import task_group
from vip.errors import InputError, ReplyError
from vip.llm.budget import Usage
from vip.llm.client import Deferred
from vip.records import Description, Failure
from vip.store import KeyframePicture

APART_S = 0.002  # between the first requests, so that the first one does not wait until all others are ready to go
AHEAD = 4  # sequences beyond those that the servers take: their pictures are read meanwhile


@dataclass(frozen=True, slots=True)
class KeyframeTask:
    """One keyframe to be described."""

    item: KeyframePicture
    previous: KeyframePicture | None
    """The keyframe in front of it; None for the first."""
    number: int
    of: int
    detector: str | None
    usage: Usage
    """What its folder has used; what its description uses is added."""
    known: Description | None = None
    """Its description of an earlier run: it is not described again, but the next questions hold its caption."""
    words: str | None = None
    """The subtitles around it."""
    words_digest: str | None = None
    text: Sequence[str] = ()
    """The lines of text in it."""
    speech: str | None = None
    """What was transcribed of the sound around it."""


KeyframeSequence = Sequence[KeyframeTask] | Iterator[KeyframeTask]


@dataclass(frozen=True, slots=True)
class DescribedKeyframe:
    """A keyframe that was described."""

    item: KeyframePicture
    description: Description


@dataclass(frozen=True, slots=True)
class FailedKeyframe:
    """A keyframe that could not be described."""

    item: KeyframePicture
    failure: Failure


@dataclass(frozen=True, slots=True)
class DeferredKeyframe:
    """A keyframe whose question waits for a batch."""

    item: KeyframePicture
    question: bytes


Outcome = DescribedKeyframe | FailedKeyframe | DeferredKeyframe


async def describe(describer: Describer, sequences: Iterator[KeyframeSequence], topic_usage: Usage) -> AsyncGenerator[Outcome, None]:
    """Yield the outcome of each keyframe as soon as it is there; the next keyframe of its sequence begins when the caller comes back.

    Args:
        topic_usage: where the question about the topic is counted, which all keyframes share.

    Raises:
        EngineError: the engine cannot be asked. Outcomes that were there before are yielded first; keyframes under way are given up.
    """
    scheduler = _Scheduler(describer, topic_usage)
    work = asyncio.create_task(scheduler.run(sequences))
    work.add_done_callback(lambda _: scheduler.outcomes.put_nowait(None))
    try:
        while (entry := await scheduler.outcomes.get()) is not None:
            outcome, handled = entry
            yield outcome
            handled.set()
        await work
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


def width(describer: Describer) -> int:
    """Return how many sequences are under way at once."""
    return sum(int(client.limiter.limit) for client in describer.clients) + AHEAD


@dataclass(slots=True)
class _Scheduler:
    """All sequences of one call, side by side."""

    describer: Describer
    topic_usage: Usage
    outcomes: asyncio.Queue[tuple[Outcome, asyncio.Event] | None] = field(default_factory=asyncio.Queue)
    """Each with the event to set when it was handled."""
    _under_way: int = 0
    _sequence_ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, sequences: Iterator[KeyframeSequence]) -> None:
        """Describe everything; the first error that is not one keyframe's own ends all."""
        started, expected = 0, None
        reader = KeyframeReader(self.describer.config.longest_side_px) if self.describer.measures else None
        async with task_group() as group:
            for sequence in sequences:
                if expected is None:
                    expected = await self.describer.expected(self.topic_usage)
                while self._under_way >= (1 if reader else width(self.describer)):  # what is measured needs the picture before it
                    self._sequence_ended.clear()
                    await self._sequence_ended.wait()
                self._under_way += 1
                group.create_task(self._walk(sequence, expected, reader))
                if reader is None and (started := started + 1) < width(self.describer):
                    await asyncio.sleep(APART_S)

    async def _walk(self, sequence: KeyframeSequence, expected: Sequence[str], reader: KeyframeReader | None) -> None:
        before: deque[str] = deque(maxlen=self.describer.config.context)
        try:
            for task in sequence:
                if task.known is not None:
                    before.append(task.known.dense_caption)
                    continue
                outcome = await self._outcome(task, tuple(before), expected, reader)
                if isinstance(outcome, DescribedKeyframe):
                    before.append(outcome.description.dense_caption)
                handled = asyncio.Event()
                self.outcomes.put_nowait((outcome, handled))
                await handled.wait()
        finally:
            self._under_way -= 1
            self._sequence_ended.set()

    async def _outcome(self, task: KeyframeTask, before: Sequence[str], expected: Sequence[str], reader: KeyframeReader | None) -> Outcome:
        try:
            picture = await asyncio.to_thread(self._picture, task, reader)
            position = KeyframePosition(task.number, task.of, task.detector, before, task.words, task.words_digest, task.text, task.speech)
            return DescribedKeyframe(task.item, await self.describer.describe(task.item, picture, position, expected, task.usage))
        except (ReplyError, InputError) as exc:
            return FailedKeyframe(task.item, failure_of(task.item.id, exc))
        except Deferred as exc:
            return DeferredKeyframe(task.item, exc.question)

    def _picture(self, task: KeyframeTask, reader: KeyframeReader | None) -> EncodedKeyframe:
        config = self.describer.config
        if reader is None:
            picture = EncodedKeyframe(encode_keyframe(task.item, config.longest_side_px))
        else:
            picture = reader.at(task.item, task.previous, task.detector)
            if picture.facts and (task.words or task.text or task.speech):
                picture = replace(picture, facts=replace(picture.facts, words=task.words, text=tuple(task.text), speech=task.speech))
        if config.schema != "rich":
            return picture
        change = picture.facts.change if picture.facts else None
        return replace(picture, movement=camera_movement(task.previous, task.item, change))


def failure_of(item: str, exc: ReplyError | InputError) -> Failure:
    """Return the row of failures.jsonl."""
    kind = exc.kind if isinstance(exc, ReplyError) and exc.kind else exc.failure_kind
    return Failure(item=item, kind=kind, message=str(exc), exit_code=exc.exit_code)
