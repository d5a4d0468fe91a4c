"""Blanks from captions: one noun phrase of a caption becomes the blank, and the answer (Castro et al. 2022, section 3.1).

A chunker finds the noun phrases: spaCy's, as in the paper, or any that another package adds by an entry point of the group
`vip.chunkers`, a class without arguments that is called with a text.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from vip.errors import InputError
from vip.tasks.fiber.language_models import load_added, load_spacy
from vip.tasks.fiber.records import BLANK, MOST_LETTERS, FiberRecord
from vip.tasks.fiber.vatex import CaptionedVideo
from vip.tasks.json_rows import open_bounded
from vip.untrusted import one_line
from vip.wording import counted

Chunker = Callable[[str], Sequence[tuple[int, int]]]
"""Returns where the noun phrases of a text begin and end, in letters."""
GROUP = "vip.chunkers"
DEFAULT_CHUNKER = "spacy:en_core_web_trf"
DEFAULT_SEED = 2
"""That of the authors."""
CLIP_NAME = re.compile(r"_\d{6}_\d{6}$")  # what VATEX puts behind the id of a video


@dataclass(slots=True)
class BlankCounts:
    """What was not made into a blank, and why."""

    made: int = 0
    not_available: int = 0
    without_noun_phrase: int = 0
    captions_left_out: int = 0
    """With a blank already, or too long."""
    examples: list[str] = field(default_factory=list)
    """Videos without a noun phrase, the first ones."""

    def notes(self) -> list[str]:
        """Return a sentence for each kind of what was left out."""
        kinds = (
            (self.not_available, "video", "that the list of available ones does not name", ""),
            (
                self.without_noun_phrase,
                "video",
                "whose captions have no noun phrase",
                f", such as {', '.join(map(one_line, self.examples))}",
            ),
            (self.captions_left_out, "caption", f"with a blank ({BLANK}) already, or of more than {MOST_LETTERS:,} letters", ""),
        )
        return [f"{counted(count, noun)} {why} left out{some}." for count, noun, why, some in kinds if count]


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
            if BLANK in caption or len(caption) > MOST_LETTERS:
                counts.captions_left_out += 1
                continue
            if spans := _spans(caption, chunker):
                counts.made += 1
                yield _record(video, caption, draw.choice(spans))
                break
        else:
            counts.without_noun_phrase += 1
            if len(counts.examples) < 3:
                counts.examples.append(video.video_id)


def _spans(caption: str, chunker: Chunker) -> list[tuple[int, int]]:
    """Return the noun phrases that can be blanked: beside an underscore the blank would have no clear ends."""
    spans = list(chunker(caption)) if caption else []
    for start, end in spans:
        if not 0 <= start < end <= len(caption):
            raise InputError(f'The chunker names letters {start} to {end} of "{one_line(caption)[:80]}". Use another one, or repair it.')
    return [(start, end) for start, end in spans if caption[start - 1 : start] != "_" and caption[end : end + 1] != "_"]


def _record(video: CaptionedVideo, caption: str, span: tuple[int, int]) -> FiberRecord:
    start, end = span
    try:
        return FiberRecord(
            video_id=video.video_id,
            video_start_time=video.start_s,
            video_end_time=video.end_s,
            caption=caption,
            masked_caption=caption[:start] + BLANK + caption[end:],
            label=caption[start:end],
        )
    except ValidationError as exc:
        raise InputError(
            f'"{one_line(video.video_id)[:80]}" makes no record: {one_line(exc.errors()[0]["msg"])[:200]}. Repair it.'
        ) from exc


def read_available(path: Path) -> frozenset[str]:
    """Return the ids of the videos that can still be had: one a line, as `<id>` or `<id>_<start>_<end>`.

    Raises:
        InputError: it cannot be read, or names none.
    """
    with open_bounded(path) as file:
        try:
            names = [line.strip() for line in file.read().decode("utf-8-sig").splitlines() if line.strip()]
        except UnicodeDecodeError as exc:
            raise InputError(f"{path} is not UTF-8 text (byte {exc.start}). Write one id of a video a line.") from exc
    if not names:
        raise InputError(f"{path} names no video. Write one id of a video a line.")
    return frozenset(names) | {CLIP_NAME.sub("", name) for name in names}


def load_chunker(name: str) -> Chunker:
    """Return a chunker: `spacy:en_core_web_trf`, or one that a package adds.

    Raises:
        BackendError: it is not installed, or broken.
    """
    kind, _, model = name.partition(":")
    if kind == "spacy":
        pipeline = load_spacy(model)
        return lambda text: [(chunk.start_char, chunk.end_char) for chunk in pipeline(text).noun_chunks]
    added: Chunker = load_added("chunker", name, group=GROUP, known=("spacy:MODEL",))
    return added
