"""The captioning stage (section 3.2): for each keyframe a dense caption, then FAMOuS from it.

In: keyframes whose pictures are read one by one, an engine, the prompts. Out, through callbacks and in any order: a
Description for each that worked and a Failure for each that did not. A picture or an answer that is no good costs its
keyframe; an engine that cannot be asked stops everything.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import cv2
from pydantic import ValidationError

from vip.captioning.colours import shrink
from vip.captioning.ground import grounding, measure
from vip.captioning.view import LONGEST_SIDE_PX as VIEW_SIDE_PX
from vip.errors import InputError, ReplyError, UsageError, VipError
from vip.prompts import Prompt
from vip.protocols import Engine, Facts, Picture, Reply, Request
from vip.records import Call, Description, Failure, Famous, Image
from vip.store import KeyframePicture

CONCURRENT = 4  # keyframes on their way at once; a later stage of vip adapts this to the server
LONGEST_SIDE_PX, JPEG_QUALITY = 1024, 90  # of the picture that the engine gets
MAX_TOKENS = 2048  # a caption has about 114; models that think aloud need the rest
STRUCTURE_TRIES = 2
NOT_DETERMINED = "not determined"


async def describe(
    items: Sequence[KeyframePicture],
    engine: Engine,
    prompts: Mapping[str, Prompt],
    *,
    detector_name: str | None,
    done: Container[str] = frozenset(),
    on_description: Callable[[Description], None],
    on_failure: Callable[[Failure], None],
    advance: Callable[[], None] = lambda: None,
) -> None:
    """Describe the keyframes that are not in `done`; at most four are in memory at once.

    Args:
        items: in the order of the video: each is compared with the one before it.
        detector_name: who made the detections of the records; None when nobody looked.
        on_description, on_failure, advance: called in this thread; `advance` once for each keyframe, when it is over.

    Raises:
        EngineError: the engine cannot be asked; keyframes on their way are given up.
        UsageError: a prompt is missing.
    """
    for name in ("describe", "structure"):
        if name not in prompts:
            raise UsageError(f'There is no prompt "{name}". Put a {name}.md into the folder of prompts.')
    stage = _Stage(engine, prompts, on_description, on_failure, advance)
    looks = _Looks(detector_name)
    try:
        async with asyncio.TaskGroup() as group:
            for before, item in zip([None, *items[:-1]], items, strict=True):
                if item.id in done:
                    continue
                await stage.slots.acquire()
                try:
                    look = await asyncio.to_thread(looks.at, item, before)
                except InputError as exc:
                    stage.failed(item, exc)
                else:
                    group.create_task(stage.run(item, look))
    except ExceptionGroup as several:
        first = several.exceptions[0]
        raise first from first.__cause__


@dataclass(frozen=True, slots=True)
class _Look:
    """What one reading of a picture gives: it is decoded, measured and encoded once."""

    facts: Facts
    picture: Picture


class _Looks:
    """Reads pictures in order and keeps a small copy of the last one, to compare the next with."""

    def __init__(self, detector_name: str | None) -> None:
        self.detector_name = detector_name
        self.last: tuple[str, Image] | None = None

    def at(self, item: KeyframePicture, before: KeyframePicture | None) -> _Look:
        previous = self._small(before) if before is not None and before.record.video_id == item.record.video_id else None
        self.last = None
        image = item.image
        self.last = item.id, shrink(image, VIEW_SIDE_PX)
        return _Look(measure(image, item.record, previous=previous, detector=self.detector_name), encoded(image))

    def _small(self, before: KeyframePicture) -> Image | None:
        """None where the picture cannot be read: then there is nothing to compare with."""
        if self.last is not None and self.last[0] == before.id:
            return self.last[1]
        try:
            return shrink(before.image, VIEW_SIDE_PX)
        except InputError:
            return None


def encoded(image: Image) -> Picture:
    """The picture as the engine gets it: JPEG, its longest side at most 1024 px."""
    small = cv2.cvtColor(shrink(image, LONGEST_SIDE_PX), cv2.COLOR_RGB2BGR)
    _, data = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return Picture(data.tobytes(), "image/jpeg")


@dataclass(slots=True)
class _Stage:
    """What all keyframes of one call share."""

    engine: Engine
    prompts: Mapping[str, Prompt]
    on_description: Callable[[Description], None]
    on_failure: Callable[[Failure], None]
    advance: Callable[[], None]
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CONCURRENT))

    async def run(self, item: KeyframePicture, look: _Look) -> None:
        try:
            description = await self._describe(item, look)
        except ReplyError as exc:
            self.failed(item, exc)
        except BaseException:
            self.slots.release()
            raise
        else:
            self.on_description(description)
            self._over()

    def failed(self, item: KeyframePicture, exc: VipError) -> None:
        self.on_failure(Failure(item=item.id, kind=type(exc).__name__, message=str(exc), exit_code=exc.exit_code))
        self._over()

    def _over(self) -> None:
        self.slots.release()
        self.advance()

    async def _describe(self, item: KeyframePicture, look: _Look) -> Description:
        calls: list[Call] = []
        ground = grounding(look.facts)
        facts = "\n".join(f"- {statement}" for statement in ground)
        when = "unknown, the picture comes from no video" if item.time_s is None else f"{item.time_s:.1f} s"
        prompt = self.prompts["describe"]
        question = Request("describe", prompt.render({"time": when, "facts": facts}), look.facts, (look.picture,), max_tokens=MAX_TOKENS)
        dense_caption = (await self._ask(question, prompt, calls)).text.strip()
        famous = await self._structure(dense_caption, facts, look.facts, calls)
        return Description(
            keyframe_id=item.id,
            time_s=item.time_s,
            engine=self.engine.name,
            grounding=ground,
            dense_caption=dense_caption,
            famous=famous,
            calls=tuple(calls),
        )

    async def _structure(self, dense_caption: str, statements: str, facts: Facts, calls: list[Call]) -> Famous:
        """FAMOuS from the dense caption; an answer outside the schema is sent back once with what is wrong with it."""
        prompt = self.prompts["structure"]
        text = prompt.render({"caption": dense_caption, "facts": statements})
        problem = ""
        for _ in range(STRUCTURE_TRIES):
            again = f"\n\nYour last answer could not be used ({problem}). Answer again with the JSON object alone." if problem else ""
            question = Request("structure", text + again, facts, schema=prompt.schema or Famous.model_json_schema(), max_tokens=MAX_TOKENS)
            reply = await self._ask(question, prompt, calls)
            try:
                return _filled(Famous.model_validate_json(reply.text))
            except ValidationError as exc:
                problem = _problem(exc)
        raise ReplyError(f"{self.engine.name} answered {STRUCTURE_TRIES} times outside the schema of FAMOuS ({problem}).")

    async def _ask(self, question: Request, prompt: Prompt, calls: list[Call]) -> Reply:
        created, start = datetime.now(UTC), time.perf_counter()
        reply = await self.engine.generate(question)
        calls.append(
            Call(
                engine=self.engine.name,
                model=reply.model,
                prompt=prompt.name,
                prompt_version=prompt.version,
                prompt_sha256=prompt.sha256,
                parameters=_parameters(question, prompt),
                tokens_in=reply.tokens_in,
                tokens_out=reply.tokens_out,
                usd=None,
                latency_s=round(time.perf_counter() - start, 3),
                created_utc=created.isoformat(timespec="seconds"),
            )
        )
        return reply


def _parameters(question: Request, prompt: Prompt) -> dict[str, object]:
    picture = {"longest_side_px": LONGEST_SIDE_PX, "jpeg_quality": JPEG_QUALITY} if question.pictures else {}
    schema = {"schema": prompt.output} if question.schema is not None else {}
    return {"max_tokens": question.max_tokens, **picture, **schema}


def _filled(famous: Famous) -> Famous:
    """An empty text says that nothing was determined, and is made to say so."""
    said = {name: getattr(famous, name).strip() or NOT_DETERMINED for name in ("focus", "action", "mood", "setting")}
    return Famous(objects=tuple(filter(None, (one.strip() for one in famous.objects))), **said)


def _problem(exc: ValidationError) -> str:
    first = exc.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])[:60]
    return f"{where}: {first['msg']}" if where else first["msg"][:200]
