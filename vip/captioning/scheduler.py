"""The captioning stage (section 3.2): many keyframes at once, in the order that each needs.

In: lanes of keyframes, and a Describer. Out, through callbacks and in any order: a Description for each that worked and a
Failure for each that did not. Keyframes of one lane go one after the other, since each is told the captions before it; lanes
go side by side, as many as the servers answer well. A picture or an answer that is no good costs its keyframe; an engine that
cannot be asked stops everything.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from vip.captioning.describer import Describer, KeyframePosition
from vip.captioning.encoded_pictures import EncodedKeyframe, KeyframeReader, encoded
from vip.errors import InputError, ReplyError, VipError, kind_of
from vip.llm.budget import PURSE, Usage
from vip.llm.client import Deferred
from vip.records import Description, Failure
from vip.store import KeyframePicture

APART_S = 0.002  # between the first requests, so that the first one does not wait until all others are ready to go
AHEAD = 4  # lanes beyond those that the servers take: their pictures are read meanwhile


@dataclass(frozen=True, slots=True)
class DescribeStep:
    """One keyframe to be described, and who is told."""

    item: KeyframePicture
    previous: KeyframePicture | None
    """The keyframe in front of it; None for the first."""
    number: int
    of: int
    detector: str | None
    on_description: Callable[[Description], None]
    on_failure: Callable[[Failure], None]
    on_deferred: Callable[[bytes], None]
    """Told the question that waits for a batch."""
    over: Callable[[], Awaitable[None]]
    """Called after one of the three."""
    usage: Usage
    """What the keyframe's folder has used."""
    known: Description | None = None
    """What it was described with before: it is not described again, but the next ones are told its caption."""


KeyframeSequence = Sequence[DescribeStep] | Iterator[DescribeStep]


@dataclass(slots=True)
class Scheduler:
    """All lanes of one run, side by side."""

    describer: Describer
    _under_way: int = 0
    _over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def width(self) -> int:
        return sum(int(client.limiter.limit) for client in self.describer.clients) + AHEAD

    async def run(self, sequences: Iterator[KeyframeSequence]) -> None:
        """Describe everything; the first error that is not one keyframe's own ends all.

        Raises:
            EngineError: the engine cannot be asked; keyframes on their way are given up.
        """
        started, expected = 0, None
        reader = KeyframeReader(self.describer.config.longest_side_px) if self.describer.measures else None
        try:
            async with asyncio.TaskGroup() as group:
                for sequence in sequences:
                    if expected is None:
                        expected = await self.describer.expected()
                    while self._under_way >= (1 if reader else self.width):  # what is measured needs the picture before it
                        self._over.clear()
                        await self._over.wait()
                    self._under_way += 1
                    group.create_task(self._walk(sequence, expected, reader))
                    if reader is None and (started := started + 1) < self.width:
                        await asyncio.sleep(APART_S)
        except ExceptionGroup as several:
            first = several.exceptions[0]
            raise first from first.__cause__

    async def _walk(self, sequence: KeyframeSequence, expected: Sequence[str], reader: KeyframeReader | None) -> None:
        before: deque[str] = deque(maxlen=self.describer.config.context)
        try:
            for step in sequence:
                if step.known is not None:
                    before.append(step.known.dense_caption)
                    continue
                PURSE.set(step.usage)
                try:
                    description = await self._described(step, tuple(before), expected, reader)
                except (ReplyError, InputError) as exc:
                    step.on_failure(failure_of(step.item.id, exc))
                except Deferred as exc:
                    step.on_deferred(exc.question)
                else:
                    before.append(description.dense_caption)
                    step.on_description(description)
                await step.over()
        finally:
            self._under_way -= 1
            self._over.set()

    async def _described(
        self, step: DescribeStep, before: Sequence[str], expected: Sequence[str], reader: KeyframeReader | None
    ) -> Description:
        if reader is None:
            encoded_keyframe = EncodedKeyframe(await asyncio.to_thread(encoded, step.item, self.describer.config.longest_side_px))
        else:
            encoded_keyframe = await asyncio.to_thread(reader.at, step.item, step.previous, step.detector)
        return await self.describer.describe(
            step.item, encoded_keyframe, KeyframePosition(step.number, step.of, step.detector, before), expected
        )


def failure_of(item: str, exc: VipError) -> Failure:
    """The row of failures.jsonl, with the type of what went wrong."""
    kind = getattr(exc, "kind", None) or kind_of(exc)
    return Failure(item=item, kind=kind, message=str(exc), exit_code=exc.exit_code)
