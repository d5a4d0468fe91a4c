"""The questions about one keyframe (section 3.2), and their answers put together.

    paper    caption (picture) ▸ dense caption (caption, objects, regions, expected objects) ▸ FAMOuS (dense caption)
    direct   dense caption and FAMOuS in one question (picture, objects, regions, expected objects)
    + rich   the fields of the schema rich (picture, objects, regions), after either

In: a keyframe, its picture, what is expected from the topic, the captions before it. Out: its Description.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple

from pydantic import BaseModel

from vip.captioning.encoded_pictures import JPEG_QUALITY, EncodedKeyframe
from vip.captioning.facts import describe_detection, describe_detections, grounding, speech_statement, text_statement, words_statement
from vip.captioning.rich_fields import tidy
from vip.config import Schema
from vip.llm.budget import Usage
from vip.llm.client import EngineAnswer, EngineClient
from vip.prompts import Prompt
from vip.protocols import Picture, Request, Stage
from vip.records import NOT_DETERMINED, Description, Detection, Direct, Expected, Famous
from vip.store import KeyframePicture
from vip.words.around import quoted
from vip.words.picture_text import quoted_lines

Recipe = Literal["direct", "paper"]
RICH = "rich"  # the prompt that a schema of this name adds to any recipe
RECIPES: dict[Recipe, tuple[str, ...]] = {"direct": ("direct",), "paper": ("caption", "describe", "structure")}
"""The prompts of each recipe, in their order."""

STAGES: dict[str, Stage] = {"direct": "describe", "rewrite": "structure", "ask-frame": "describe", "ask-answer": "structure"}
"""The stage of each prompt whose name is not that of its stage."""
SEES = frozenset({"direct", "caption", RICH, "verify", "ask-frame"})
READS = frozenset({"topic", "structure", "rewrite", "ask-answer"})  # asked of the engine for structure; `describe` too without a picture
TAKES_WORDS = frozenset({"direct", "describe"})  # questions that subtitles and speech around a keyframe are added to
TAKES_TEXT = TAKES_WORDS | {RICH}  # questions that the text in it is added to
MAX_TOKENS = 2048  # a caption has about 114; models that think aloud need the rest
MOST_EXPECTED = 20


@dataclass(frozen=True, slots=True)
class CaptionConfig:
    """Settings for the description of keyframes."""

    recipe: Recipe = "direct"
    language: str = "English"
    longest_side_px: int = 1024
    context: int = 0
    """How many captions of the keyframes before go into the question."""
    topic: str | None = None
    schema: Schema = "famous"

    @property
    def questions(self) -> tuple[str, ...]:
        """The prompts that are asked about each keyframe, in their order."""
        return questions_of(self.recipe, self.schema)


def questions_of(recipe: Recipe, schema: Schema) -> tuple[str, ...]:
    """Return the prompts of a recipe and a schema."""
    return (*RECIPES[recipe], *([RICH] if schema == RICH else []))


class CaptionFingerprint(NamedTuple):
    """The recipe, models and prompts of a description: equal fingerprints mean that it need not be made again."""

    engine: str
    recipe: str
    language: str
    context: int
    topic: str | None
    prompts: tuple[str, ...]
    """SHA-256 of the prompts that are asked about each keyframe."""
    words: str | None = None
    schema: Schema = "famous"


def fingerprint_of(row: Description) -> CaptionFingerprint:
    """Return how a description was made."""
    asked = {call.prompt: call.prompt_sha256 for call in row.calls}
    schema: Schema = "famous" if row.rich is None else "rich"
    prompts = tuple(asked.get(name, "") for name in questions_of(row.recipe, schema))
    return CaptionFingerprint(row.engine, row.recipe, row.language, row.context, row.topic, prompts, row.words, schema)


@dataclass(frozen=True, slots=True)
class KeyframePosition:
    """The position of a keyframe in its video."""

    number: int
    of: int
    detector: str | None
    """Who looked for objects; None when nobody did."""
    before: Sequence[str] = ()
    """The captions in front of it, the last one just before."""
    words: str | None = None
    """The subtitles around it; None where there are none."""
    words_digest: str | None = None
    """See `Description.words`."""
    text: Sequence[str] = ()
    """The lines of text that a program read in it."""
    speech: str | None = None
    """What a program transcribed of the sound around it; None where that is nothing."""


@dataclass(slots=True)
class Describer:
    """A client for the questions of one recipe. `describing_client` sees, `structuring_client` reads; they may be the same."""

    describing_client: EngineClient
    structuring_client: EngineClient
    prompts: Mapping[str, Prompt]
    config: CaptionConfig = field(default_factory=CaptionConfig)

    @property
    def engine(self) -> str:
        """Return the names of the engines that describe, as a user would write them."""
        names = [self.describing_client.engine.name]
        if self.config.recipe == "paper":
            names.append(self.structuring_client.engine.name)
        return " + ".join(dict.fromkeys(names))

    @property
    def fingerprint(self) -> CaptionFingerprint:
        config, reads = self.config, not self.measures
        prompts = tuple(self.prompts[name].sha256 for name in config.questions)
        topic = config.topic if reads else None
        return CaptionFingerprint(self.engine, config.recipe, config.language, config.context * reads, topic, prompts, schema=config.schema)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the prompts that are asked."""
        return (*self.config.questions, *(["topic"] if self.config.topic else []))

    @property
    def measures(self) -> bool:
        return self.describing_client.engine.capabilities.measures

    @property
    def clients(self) -> tuple[EngineClient, ...]:
        same = self.describing_client is self.structuring_client
        return (self.describing_client,) if same else (self.describing_client, self.structuring_client)

    def client_for(self, name: str) -> EngineClient:
        return self.describing_client if name in SEES or (name == "describe" and self.measures) else self.structuring_client

    # ------------------------------------------------------------ one keyframe

    async def expected(self, usage: Usage | None = None) -> tuple[str, ...]:
        """Return the grounding list: objects that the topic lets one expect. It is asked once and then kept with all answers."""
        if not self.config.topic or self.measures:
            return ()
        values = {"topic": self.config.topic, "language": self.config.language}
        answer = await self.ask("topic", values, usage=usage)
        listed = answer.value.objects if isinstance(answer.value, Expected) else ()
        return tuple(dict.fromkeys(one.strip() for one in listed if one.strip()))[:MOST_EXPECTED]

    async def describe(
        self,
        item: KeyframePicture,
        encoded_keyframe: EncodedKeyframe,
        position: KeyframePosition,
        expected: Sequence[str] = (),
        usage: Usage | None = None,
    ) -> Description:
        """Return the description of one keyframe.

        Args:
            usage: what its folder has used; what the answers cost is added.

        Raises:
            ReplyError: an answer cannot be used.
            EngineError: an engine cannot be asked, or the money is spent.
            Deferred: a question waits for a batch.
        """
        values = self.values(item, position, expected)
        ask = partial(self.ask, encoded_keyframe=encoded_keyframe, usage=usage)
        caption = None
        if self.config.recipe == "direct":
            answers = [await ask("direct", values)]
            dense_caption, famous = _split_direct(answers[0].value)
        else:
            answers = [await ask("caption", values)]
            caption = str(answers[-1].value).strip()
            answers.append(await ask("describe", {**values, "caption": caption}))
            dense_caption = str(answers[-1].value).strip()
            answers.append(await ask("structure", {**values, "caption": dense_caption}))
            value = answers[-1].value
            famous = value if isinstance(value, Famous) else _split_direct(value)[1]
        rich = None
        if self.config.schema == RICH:
            answers.append(await ask(RICH, values))
            rich = tidy(answers[-1].value, encoded_keyframe.movement)
        return Description(
            keyframe_id=item.id,
            time_s=item.time_s,
            engine=self.engine,
            recipe=self.config.recipe,
            language=self.config.language,
            context=self.fingerprint.context,
            topic=self.fingerprint.topic,
            words=position.words_digest,
            grounding=self._grounding(item, encoded_keyframe, position, expected),
            caption=caption,
            dense_caption=dense_caption,
            famous=_fill_empty(famous),
            rich=rich,
            calls=tuple(call for answer in answers for call in answer.calls),
        )

    async def ask(
        self, name: str, values: Mapping[str, str], encoded_keyframe: EncodedKeyframe | None = None, usage: Usage | None = None
    ) -> EngineAnswer:
        """Ask with the prompt of that name."""
        request, parameters = self.request(name, values, encoded_keyframe)
        return await self.client_for(name).ask(request, self.prompts[name], parameters, usage)

    def request(
        self, name: str, values: Mapping[str, str], encoded_keyframe: EncodedKeyframe | None = None
    ) -> tuple[Request, dict[str, object]]:
        """Return the request, and its parameters for the record."""
        prompt, client = self.prompts[name], self.client_for(name)
        pictures: tuple[Picture, ...] = ()
        parameters: dict[str, object] = {"schema": prompt.output} if prompt.output else {}
        if encoded_keyframe is not None and name in SEES:
            pictures = (encoded_keyframe.picture,)
            parameters |= {"longest_side_px": self.config.longest_side_px, "jpeg_quality": JPEG_QUALITY}
        facts = encoded_keyframe.facts if encoded_keyframe is not None and client.engine.capabilities.measures else None
        text = prompt.render({name: values[name] for name in prompt.inputs})
        if values.get("words") and name in TAKES_WORDS and facts is None:
            text += "\n\n" + self.prompts["words"].render({"words": values["words"]})
        if values.get("speech") and name in TAKES_WORDS and facts is None:
            text += "\n\n" + self.prompts["speech"].render({"speech": values["speech"]})
        if values.get("text") and name in TAKES_TEXT and facts is None:
            text += "\n\n" + self.prompts["text"].render({"text": values["text"]})
        return Request(STAGES.get(name, name), text, facts, pictures, prompt.schema, MAX_TOKENS), parameters  # type: ignore[arg-type]

    # ------------------------------------------------------------ what goes into the questions

    def values(self, item: KeyframePicture, position: KeyframePosition, expected: Sequence[str]) -> dict[str, str]:
        found = item.record.detections
        time_s = item.time_s
        return {
            "time": "unknown, the picture comes from no video" if time_s is None else f"{time_s:.1f} s",
            "position": f"{'picture' if time_s is None else 'keyframe'} {position.number} of {position.of}",
            "objects": _format_grounding(found, "object", position.detector),
            "regions": _format_grounding(found, "region", position.detector),
            "expected": ", ".join(expected) or "no topic is given",
            "context": "\n".join(f"- {caption}" for caption in position.before) or "none",
            "language": self.config.language,
            "caption": "",
            "words": quoted(position.words) if position.words else "",
            "speech": quoted(position.speech) if position.speech else "",
            "text": quoted_lines(position.text) if position.text else "",
        }

    def _grounding(
        self, item: KeyframePicture, encoded_keyframe: EncodedKeyframe, position: KeyframePosition, expected: Sequence[str]
    ) -> tuple[str, ...]:
        if encoded_keyframe.facts is not None:
            return grounding(encoded_keyframe.facts)
        found = describe_detections(item.record.detections, position.detector) if position.detector else []
        said = [*words_statement(position.words), *speech_statement(position.speech), *text_statement(position.text)]
        return (*found, *([f"expected from the topic: {', '.join(expected)}"] if expected else []), *said)


def _format_grounding(found: Sequence[Detection] | None, kind: str, detector: str | None) -> str:
    lines = [f"- {describe_detection(one)}" for one in found or () if one.kind == kind]
    if lines:
        return "\n".join(lines)
    looked = found is not None and detector is not None
    return f"{detector} found none" if looked and kind == "object" else "none were described" if looked else "nobody looked for any"


def _split_direct(value: BaseModel | str) -> tuple[str, Famous]:
    if not isinstance(value, Direct):
        raise TypeError(f"expected Direct, got {type(value).__name__}")
    return value.dense_caption.strip(), value.famous


def _fill_empty(famous: Famous) -> Famous:
    """Return FAMOuS with "not determined" in place of empty texts."""
    said = {name: getattr(famous, name).strip() or NOT_DETERMINED for name in ("focus", "action", "mood", "setting")}
    return Famous(objects=tuple(filter(None, (one.strip() for one in famous.objects))), **said)
