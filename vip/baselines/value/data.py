"""Annotations of VALUE as HERO learns from them: examples of text, which become items of ids and frames, and these become batches.

In: examples, and a function that returns the channels of a video. Out: batches of `vip.baselines.value.batches`. Nothing here reads files
of the benchmark: their readers make the `Example`s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any, Literal, Protocol

from vip.baselines.value.batches import best_frames, collate_captions, collate_questions, collate_retrieval, frame_range, frame_span
from vip.baselines.value.interface import (
    Batch,
    CaptionItem,
    CollateOptions,
    QuestionItem,
    RetrievalItem,
    Sentence,
    VideoItem,
)
from vip.errors import InputError
from vip.records import Vectors
from vip.untrusted import one_line

ExampleKind = Literal["retrieval", "qa", "captioning"]
KEPT_VIDEOS, KEPT_BYTES = 64, 2**30
"""Videos that stay in memory, and the bytes of their features: 100 frames of 4,352 numbers are 1.7 MB."""
KEPT_TEXTS = 50_000
MOST_PLACES = 2**22
"""Frames of all sentences of a video together; one that is said for 16 s has eleven."""


@dataclass(frozen=True, slots=True)
class Example:
    """One query, question or caption."""

    id: str
    kind: ExampleKind
    video: str
    """As features and subtitles name it; empty where the video of a query is hidden."""
    texts: tuple[tuple[str, ...], ...]
    """Retrieval: ((query,),). Questions: of each option its texts, (question, answer), (event,) or (statement,). Captions:
    ((caption,),), or () where it is to be predicted."""
    answer: int | None = None
    """Of a question: the index of the option; with one option 1 is true and 0 false."""
    span_s: tuple[float, float] | None = None
    """The moment, in seconds: that of a query, that which shows an answer, that which a caption describes."""


class SpokenSentence(Protocol):
    """A sentence of the subtitles."""

    @property
    def text(self) -> str: ...
    @property
    def start_s(self) -> float: ...
    @property
    def end_s(self) -> float: ...


class ChannelsOfVideo(Protocol):
    """Both channels of a video: a feature each 1.5 s, and sentences with their frames."""

    @property
    def features(self) -> Vectors: ...  # float32 (V, D)
    @property
    def sentences(self) -> Sequence[SpokenSentence]: ...
    @property
    def frames(self) -> Sequence[range]: ...


class ItemMaker:
    """Makes items of examples.

    Args:
        encode: a text to ids of RoBERTa's vocabulary, without special ones.
        channels: the channels of a video by its name.
        options: how items become batches.
    """

    def __init__(
        self, encode: Callable[[str], tuple[int, ...]], channels: Callable[[str], ChannelsOfVideo], options: CollateOptions
    ) -> None:
        self.options = options
        self._encode = lru_cache(KEPT_TEXTS)(encode)
        self._channels = channels
        self._kept: dict[str, VideoItem] = {}

    def video(self, name: str) -> VideoItem:
        """Return both channels of a video. Those that were asked for last are kept."""
        item = self._kept.pop(name, None) or self._read_video(name)
        self._kept[name] = item
        while len(self._kept) > KEPT_VIDEOS or sum(one.frames.nbytes for one in self._kept.values()) > KEPT_BYTES:
            del self._kept[next(iter(self._kept))]
        return item

    def _read_video(self, name: str) -> VideoItem:
        channels = self._channels(name)
        if (places := sum(map(len, channels.frames))) > MOST_PLACES:
            raise InputError(
                f"The sentences of {one_line(name)[:80]} are said in {places:,} frames together, and more than {MOST_PLACES:,} are not"
                " read. Give subtitles with a few seconds each."
            )
        frames = [tuple(some) for some in channels.frames]
        if self.options.alignment == "best":
            frames = best_frames([(one.start_s, one.end_s) for one in channels.sentences], channels.frames)
        sentences = tuple(Sentence(self._encode(one.text), places) for one, places in zip(channels.sentences, frames, strict=True))
        return VideoItem(name, channels.features[: self.options.frames].copy(), sentences)  # so that the others are not kept

    def query(self, example: Example) -> tuple[int, ...]:
        """Return the ids of a query."""
        return self._encode(example.texts[0][0])

    def item(self, example: Example) -> RetrievalItem | QuestionItem | CaptionItem:
        """Return the item of an example."""
        video = self.video(example.video)
        count, span = len(video.frames), example.span_s
        if example.kind == "retrieval":
            return RetrievalItem(video, self.query(example), None if span is None else frame_span(*span, count))
        if example.kind == "qa":
            options = tuple(tuple(self._encode(text) for text in texts) for texts in example.texts)
            return QuestionItem(video, options, example.answer, None if span is None else frame_span(*span, count))
        caption = self._encode(example.texts[0][0]) if example.texts else None
        return CaptionItem(video, None if span is None else frame_range(*span, count), caption)

    def batch(self, examples: Sequence[Example]) -> Batch:
        """Return the batch of examples of one kind."""
        items: list[Any] = [self.item(example) for example in examples]
        if examples[0].kind == "retrieval":
            return collate_retrieval(items, self.options)
        return collate_questions(items, self.options) if examples[0].kind == "qa" else collate_captions(items, self.options)


def examples_sha256(examples: Mapping[str, Sequence[Example]]) -> str:
    """Return the SHA-256 of all examples of all tasks, in order."""
    digest = sha256()
    for task, some in examples.items():
        for one in some:
            digest.update(repr((task, one.id, one.kind, one.video, one.texts, one.answer, one.span_s)).encode())
    return digest.hexdigest()
