"""The questions about one keyframe (section 3.2), and their answers put together.

    paper    caption (picture) ▸ dense caption (caption, objects, regions, expected objects) ▸ FAMOuS (dense caption)
    direct   dense caption and FAMOuS in one question (picture, objects, regions, expected objects)

In: a keyframe, its picture, what is expected from the topic, the captions before it. Out: its Description.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pydantic import BaseModel

from vip.asking.room import Answer, Room
from vip.captioning.ground import detected, grounding, stated
from vip.captioning.pictures import JPEG_QUALITY, Look
from vip.prompts import Prompt
from vip.protocols import Picture, Request, Stage
from vip.records import NOT_DETERMINED, Call, Description, Detection, Direct, Expected, Famous
from vip.store import KeyframePicture

Recipe = Literal["direct", "paper"]
RECIPES: dict[Recipe, tuple[str, ...]] = {"direct": ("direct",), "paper": ("caption", "describe", "structure")}
"""The prompts of each recipe, in their order."""

STAGES: dict[str, Stage] = {"direct": "describe"}  # of the prompts whose name is not that of their stage
SEES = frozenset({"direct", "caption", "verify"})
READS = frozenset({"topic", "structure"})  # asked of the engine for structure; `describe` as well where it has no picture
MAX_TOKENS = 2048  # a caption has about 114; models that think aloud need the rest
MOST_EXPECTED = 20


@dataclass(frozen=True, slots=True)
class Manner:
    """How keyframes are described."""

    recipe: Recipe = "direct"
    language: str = "English"
    longest_side_px: int = 1024
    context: int = 0
    """How many captions of the keyframes before go into the question."""
    topic: str | None = None


class How(NamedTuple):
    """What two descriptions of one keyframe have in common where one need not be made when the other is there."""

    engine: str
    recipe: str
    language: str
    context: int
    topic: str | None
    prompts: tuple[str, ...]
    """SHA-256 of the recipe's prompts."""


def how_of(row: Description) -> How:
    """How a description was made."""
    asked = {call.prompt: call.prompt_sha256 for call in row.calls}
    prompts = tuple(asked.get(name, "") for name in RECIPES[row.recipe])
    return How(row.engine, row.recipe, row.language, row.context, row.topic, prompts)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a keyframe stands in its video."""

    number: int
    of: int
    detector: str | None
    """Who looked for objects; None when nobody did."""
    before: Sequence[str] = ()
    """The captions in front of it, the last one just before."""


@dataclass(slots=True)
class Describer:
    """Asks the questions of one recipe. `describe_room` sees, `structure_room` reads; they may be the same."""

    describe_room: Room
    structure_room: Room
    prompts: Mapping[str, Prompt]
    manner: Manner = field(default_factory=Manner)

    @property
    def engine(self) -> str:
        """Who describes, as a user would name it."""
        names = [self.describe_room.engine.name]
        if self.manner.recipe == "paper":
            names.append(self.structure_room.engine.name)
        return " + ".join(dict.fromkeys(names))

    @property
    def how(self) -> How:
        manner, reads = self.manner, not self.measures
        prompts = tuple(self.prompts[name].sha256 for name in RECIPES[manner.recipe])
        return How(self.engine, manner.recipe, manner.language, manner.context * reads, manner.topic if reads else None, prompts)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the prompts that are asked."""
        return (*RECIPES[self.manner.recipe], *(["topic"] if self.manner.topic else []))

    @property
    def measures(self) -> bool:
        return bool(getattr(self.describe_room.engine, "measures", False))

    @property
    def rooms(self) -> tuple[Room, ...]:
        same = self.describe_room is self.structure_room
        return (self.describe_room,) if same else (self.describe_room, self.structure_room)

    def room_for(self, name: str) -> Room:
        return self.describe_room if name in SEES or (name == "describe" and self.measures) else self.structure_room

    # ------------------------------------------------------------ one keyframe

    async def expected(self) -> tuple[str, ...]:
        """The grounding list: objects that the topic lets one expect. Asked once; later it is known."""
        if not self.manner.topic or self.measures:
            return ()
        values = {"topic": self.manner.topic, "language": self.manner.language}
        answer = await self.ask("topic", values)
        listed = answer.value.objects if isinstance(answer.value, Expected) else ()
        return tuple(dict.fromkeys(one.strip() for one in listed if one.strip()))[:MOST_EXPECTED]

    async def describe(self, item: KeyframePicture, look: Look, place: Place, expected: Sequence[str] = ()) -> Description:
        """The description of one keyframe.

        Raises:
            ReplyError: an answer cannot be used.
            EngineError: an engine cannot be asked, or the money is spent.
            Postponed: a question waits for a batch.
        """
        values = self.values(item, place, expected)
        calls: list[Call] = []
        text = None
        if self.manner.recipe == "direct":
            answer = await self.ask("direct", values, look, calls)
            dense_caption, famous = _both(answer.value)
        else:
            text = str((await self.ask("caption", values, look, calls)).value).strip()
            answer = await self.ask("describe", {**values, "caption": text}, look, calls)
            dense_caption = str(answer.value).strip()
            answer = await self.ask("structure", {**values, "caption": dense_caption}, look, calls)
            famous = answer.value if isinstance(answer.value, Famous) else _both(answer.value)[1]
        return Description(
            keyframe_id=item.id,
            time_s=item.time_s,
            engine=self.engine,
            recipe=self.manner.recipe,
            language=self.manner.language,
            context=self.how.context,
            topic=self.how.topic,
            grounding=self._grounding(item, look, place, expected),
            caption=text,
            dense_caption=dense_caption,
            famous=_filled(famous),
            calls=tuple(calls),
        )

    async def ask(self, name: str, values: Mapping[str, str], look: Look | None = None, calls: list[Call] | None = None) -> Answer:
        """Ask with the prompt of that name; the calls are added to `calls`."""
        request, parameters = self.request(name, values, look)
        answer = await self.room_for(name).ask(request, self.prompts[name], parameters)
        if calls is not None:
            calls.extend(answer.calls)
        return answer

    def request(self, name: str, values: Mapping[str, str], look: Look | None = None) -> tuple[Request, dict[str, object]]:
        """The question as it goes out, and its parameters for the record."""
        prompt, room = self.prompts[name], self.room_for(name)
        pictures: tuple[Picture, ...] = ()
        parameters: dict[str, object] = {"schema": prompt.output} if prompt.output else {}
        if look is not None and name in SEES:
            pictures = (look.picture,)
            parameters |= {"longest_side_px": self.manner.longest_side_px, "jpeg_quality": JPEG_QUALITY}
        facts = look.facts if look is not None and getattr(room.engine, "measures", False) else None
        text = prompt.render({name: values[name] for name in prompt.inputs})
        return Request(STAGES.get(name, name), text, facts, pictures, prompt.schema, MAX_TOKENS), parameters  # type: ignore[arg-type]

    # ------------------------------------------------------------ what goes into the questions

    def values(self, item: KeyframePicture, place: Place, expected: Sequence[str]) -> dict[str, str]:
        found = item.record.detections
        time_s = item.time_s
        return {
            "time": "unknown, the picture comes from no video" if time_s is None else f"{time_s:.1f} s",
            "position": f"{'picture' if time_s is None else 'keyframe'} {place.number} of {place.of}",
            "objects": _listed(found, "object", place.detector),
            "regions": _listed(found, "region", place.detector),
            "expected": ", ".join(expected) or "no topic is given",
            "context": "\n".join(f"- {caption}" for caption in place.before) or "none",
            "language": self.manner.language,
            "caption": "",
        }

    def _grounding(self, item: KeyframePicture, look: Look, place: Place, expected: Sequence[str]) -> tuple[str, ...]:
        if look.facts is not None:
            return grounding(look.facts)
        found = detected(item.record.detections, place.detector) if place.detector else []
        return (*found, *([f"expected from the topic: {', '.join(expected)}"] if expected else []))


def _listed(found: Sequence[Detection] | None, kind: str, detector: str | None) -> str:
    lines = [f"- {stated(one)}" for one in found or () if one.kind == kind]
    if lines:
        return "\n".join(lines)
    looked = found is not None and detector is not None
    return f"{detector} found none" if looked and kind == "object" else "none were described" if looked else "nobody looked for any"


def _both(value: BaseModel | str) -> tuple[str, Famous]:
    if not isinstance(value, Direct):
        raise TypeError(f"expected Direct, got {type(value).__name__}")
    return value.dense_caption.strip(), value.famous


def _filled(famous: Famous) -> Famous:
    """An empty text says that nothing was determined, and is made to say so."""
    said = {name: getattr(famous, name).strip() or NOT_DETERMINED for name in ("focus", "action", "mood", "setting")}
    return Famous(objects=tuple(filter(None, (one.strip() for one in famous.objects))), **said)
