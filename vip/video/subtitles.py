"""Subtitles as FFmpeg reads them: streams of text in a video, and files of subtitles (SubRip, WebVTT, ASS).

In: a video, or the bytes of a file. Out: cues as they stand there, without markup. FFmpeg opens nothing but what it is given.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import av
import av.error
from av.container import InputContainer
from av.stream import Discard, Disposition

from vip.errors import InputError
from vip.untrusted import one_line
from vip.video.container import ANY_METADATA, single_file_options
from vip.video.source import FileSource
from vip.video.stall_guard import inside_ffmpeg

FORMATS = {".srt": "srt", ".vtt": "webvtt", ".ass": "ass", ".ssa": "ass"}
"""Suffix of a file of subtitles -> FFmpeg's name of its format."""
TEXT_CODECS = frozenset({"subrip", "srt", "ass", "ssa", "webvtt", "mov_text", "text"})
OVERRIDES, TAGS = re.compile(r"\{\\[^{}]*\}"), re.compile(r"</?[A-Za-z][^<>]*>")
BREAKS = re.compile(r"\\[Nnh]")
BRACES, DRAWS = re.compile(r"\{[^{}]*\}"), re.compile(r"\\p[1-9]")  # ASS: what follows such braces is a shape and no text


@dataclass(frozen=True, slots=True)
class SubtitleStream:
    """A stream of subtitles in a video."""

    number: int
    """Among all streams of the file."""
    codec: str
    language: str
    """`und` where the file does not say."""
    is_text: bool
    """False for pictures of text (DVD, Blu-ray, DVB), which nobody reads here."""
    is_forced: bool
    """It holds only what is foreign to the other language of the film."""
    is_default: bool


@dataclass(frozen=True, slots=True)
class TimedText:
    """A cue; damaged files have cues that end before they begin."""

    start_s: float
    end_s: float
    text: str
    """On one line."""


@dataclass(frozen=True, slots=True)
class SubtitleStreams:
    """The streams of subtitles of a video, and where its clock starts."""

    streams: tuple[SubtitleStream, ...]
    start_s: float
    """A player's zero on the clock of the keyframes; files of subtitles count from it."""


def subtitle_streams(source: FileSource) -> SubtitleStreams:
    """Return the streams of subtitles of a file.

    Raises:
        InputError: FFmpeg cannot read it.
    """
    with _open(source) as container:
        start_s = (container.start_time or 0) / av.time_base
        found = tuple(_describe(stream) for stream in container.streams if stream.type == "subtitle")
    return SubtitleStreams(found, start_s)


def read_stream(source: FileSource, number: int) -> Iterator[TimedText]:
    """Yield the cues of one stream; the whole file is read for them.

    Raises:
        InputError: FFmpeg cannot read it.
    """
    with _open(source) as container:
        chosen = container.streams[number]
        for stream in container.streams:
            if stream is not chosen:
                stream.discard = Discard.all
        yield from _cues(container, chosen, str(source))


def read_text(data: bytes, suffix: str, name: str) -> Iterator[TimedText]:
    """Yield the cues of a file of subtitles in UTF-8.

    Args:
        suffix: of its name, in lower case: one of `FORMATS`.
        name: for messages.

    Raises:
        InputError: FFmpeg cannot read it.
    """
    try:
        with av.open(io.BytesIO(data), format=FORMATS[suffix], options=single_file_options(), **ANY_METADATA) as container:
            yield from _cues(container, container.streams[0], name)
    except (av.error.FFmpegError, IndexError) as exc:
        raise InputError(f"{name} holds no subtitles that FFmpeg can read. Is it damaged? Delete it, or save it again as SubRip.") from exc


def _open(source: FileSource) -> InputContainer:
    try:
        with inside_ffmpeg:
            return cast(InputContainer, av.open(str(source.path.absolute()), options=single_file_options(), **ANY_METADATA))
    except (av.error.FFmpegError, OSError) as exc:
        raise InputError(f"{source}: its subtitles cannot be read ({exc.strerror}).") from exc


def _describe(stream: Any) -> SubtitleStream:
    codec = stream.codec_context.name if stream.codec_context else "unknown"
    return SubtitleStream(
        number=stream.index,
        codec=codec,
        language=one_line(stream.metadata.get("language", "und"))[:20] or "und",
        is_text=codec in TEXT_CODECS,
        is_forced=bool(stream.disposition & Disposition.forced),
        is_default=bool(stream.disposition & Disposition.default),
    )


def _cues(container: InputContainer, stream: Any, name: str) -> Iterator[TimedText]:
    packets = inside_ffmpeg.each(container.demux(stream))
    try:
        for packet in packets:
            if not packet.size or packet.pts is None or packet.time_base is None:
                continue
            text = _text_of(packet, has_entities=stream.codec_context.name in {"subrip", "srt"})
            if text:
                start = packet.pts * packet.time_base
                yield TimedText(float(start), float(start + (packet.duration or 0) * Fraction(packet.time_base)), text)
    except (av.error.FFmpegError, OSError) as exc:
        raise InputError(f"{name}: its subtitles cannot be read to their end ({exc.strerror}).") from exc


def _text_of(packet: Any, *, has_entities: bool) -> str:
    """Return the words of a packet; "" where it has none, or cannot be decoded.

    Args:
        has_entities: `&amp;` stands for &, as web pages write it; FFmpeg resolves it for WebVTT alone.
    """
    try:
        decoded = packet.decode()
    except (av.error.FFmpegError, ValueError):
        return ""
    text = " ".join(_plain(rect.dialogue.decode("utf-8", "replace")) for rect in decoded if rect.type == b"ass")
    return one_line(html.unescape(text) if has_entities else text)


def _plain(text: str) -> str:
    """Return the text without ASS overrides and what is left of HTML tags."""
    if any(map(DRAWS.search, BRACES.findall(text))):
        return ""
    return TAGS.sub("", BREAKS.sub(" ", OVERRIDES.sub("", text)))
