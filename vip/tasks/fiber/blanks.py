"""Blanks from captions: one noun phrase of a caption becomes the blank, and the answer (Castro et al. 2022, section 3.1).

A chunker finds the noun phrases: spaCy's, as in the paper, or any that another package adds by an entry point of the group
`vip.chunkers`, a class without arguments that is called with a text.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec

from vip.errors import BackendError, InputError
from vip.tasks.fiber.records import BLANK, FiberRecord
from vip.tasks.fiber.vatex import CaptionedVideo
from vip.untrusted import one_line

Chunker = Callable[[str], Sequence[tuple[int, int]]]
"""Returns where the noun phrases of a text begin and end, in letters."""
GROUP = "vip.chunkers"
DEFAULT_CHUNKER = "spacy:en_core_web_trf"
DEFAULT_SEED = 2
"""That of the authors."""


@dataclass(slots=True)
class BlankCounts:
    """What was not made into a blank, and why."""

    made: int = 0
    not_available: int = 0
    without_noun_phrase: int = 0
    examples: list[str] = field(default_factory=list)
    """Videos without a noun phrase, the first ones."""


def prepare_caption(caption: str) -> str:
    """Return the caption without outer space, with a capital at its beginning and a full stop at its end."""
    text = caption.strip()
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


def make_blanks(
    videos: Iterable[CaptionedVideo],
    chunker: Chunker,
    *,
    seed: int = DEFAULT_SEED,
    available: Container[str] | None = None,
    counts: BlankCounts | None = None,
) -> Iterator[FiberRecord]:
    """Yield one record a video: a noun phrase, drawn by the seed, of the first caption that has one.

    Args:
        available: ids of the videos that can still be had; None: all.
        counts: is kept up to date.

    Raises:
        InputError: the chunker names a phrase that the caption does not have.
    """
    draw = random.Random(seed)
    counts = counts if counts is not None else BlankCounts()
    for video in videos:
        if available is not None and video.video_id not in available:
            counts.not_available += 1
            continue
        for caption in map(prepare_caption, video.captions):
            spans = [] if not caption or BLANK in caption else list(chunker(caption))
            if spans:
                counts.made += 1
                yield _record(video, caption, draw.choice(spans))
                break
        else:
            counts.without_noun_phrase += 1
            if len(counts.examples) < 3:
                counts.examples.append(video.video_id)


def _record(video: CaptionedVideo, caption: str, span: tuple[int, int]) -> FiberRecord:
    start, end = span
    if not 0 <= start < end <= len(caption):
        raise InputError(f'The chunker names letters {start} to {end} of "{one_line(caption)[:80]}". Use another one, or repair it.')
    return FiberRecord(
        video_id=video.video_id,
        video_start_time=video.start_s,
        video_end_time=video.end_s,
        caption=caption,
        masked_caption=caption[:start] + BLANK + caption[end:],
        label=caption[start:end],
    )


def load_chunker(name: str) -> Chunker:
    """Return a chunker: `spacy:en_core_web_trf`, or one that a package adds.

    Raises:
        BackendError: it is not installed, or broken.
    """
    kind, _, model = name.partition(":")
    if kind == "spacy":
        return _load_spacy(model or DEFAULT_CHUNKER.partition(":")[2])
    for point in entry_points(group=GROUP, name=name):
        try:
            added: Chunker = point.load()()
        except Exception as exc:
            raise BackendError(f'The chunker "{name}" of {point.value} cannot be loaded: {exc}. Repair or remove its package.') from exc
        return added
    names = ", ".join(["spacy:MODEL", *sorted(point.name for point in entry_points(group=GROUP))])
    raise BackendError(f'There is no chunker "{name}". There is: {names}.')


def _load_spacy(model: str) -> Chunker:
    if find_spec("spacy") is None:
        raise BackendError(f"Noun phrases need spaCy. Run `pip install spacy` and `python -m spacy download {model}`.")
    try:
        pipeline = import_module("spacy").load(model)
    except OSError as exc:
        raise BackendError(f"spaCy has no model {model} here. Run `python -m spacy download {model}`.") from exc
    return lambda text: [(chunk.start_char, chunk.end_char) for chunk in pipeline(text).noun_chunks]
