"""The sound of a video as speech models want it: one channel, 16,000 samples a second, in blocks with their times.

In: a video file. Out: blocks of samples, each with the time of its first sample on the clock of the keyframes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import av
import av.error
import numpy as np
from av.audio.resampler import AudioResampler
from av.container import InputContainer
from av.stream import Discard, Disposition

from vip.errors import InputError
from vip.records import SOUND_RATE, Samples
from vip.untrusted import one_line
from vip.video.container import ANY_METADATA, single_file_options
from vip.video.source import FileSource
from vip.video.stall_guard import inside_ffmpeg

RATE = SOUND_RATE
LONGEST_BREAK_S = 0.1  # between the time that a frame states and where the one before ended: MKV and FLV round to milliseconds
MOST_DAMAGED = 100  # frames in a row that cannot be decoded


@dataclass(frozen=True, slots=True)
class SoundStream:
    """The stream of sound that is listened to."""

    number: int
    """Among all streams of the file."""
    language: str
    """`und` where the file does not say."""
    others: int
    """Streams of sound that are left aside."""
    end_s: float | None
    """Where the file ends by its header; None where it does not say."""


@dataclass(frozen=True, slots=True)
class SoundBlock:
    """Samples without a break."""

    start_s: Fraction
    """Of the first sample, on the clock of the keyframes."""
    samples: Samples
    """float32 (N,), from -1 to 1."""
    follows: bool
    """It begins where the block before ends; False behind a gap, and for the first."""

    @property
    def end_s(self) -> Fraction:
        return self.start_s + Fraction(len(self.samples), RATE)


def sound_stream(source: FileSource) -> SoundStream | None:
    """Return the stream of sound of a file that players take; None where it has none that can be decoded.

    Raises:
        InputError: FFmpeg cannot read it.
    """
    with _open(source) as container:
        readable = [stream for stream in container.streams.audio if stream.codec_context]
        if not readable:
            return None
        chosen = min(readable, key=lambda one: (not one.disposition & Disposition.default, one.index))
        language = one_line(chosen.metadata.get("language", "und"))[:20] or "und"
        end = ((container.start_time or 0) + container.duration) / av.time_base if container.duration else None
        return SoundStream(chosen.index, language, len(readable) - 1, end)


def read_sound(source: FileSource, number: int, *, start_s: float | None = None, end_s: float | None = None) -> Iterator[SoundBlock]:
    """Yield the sound of one stream between two times, in its order. A frame that is damaged is a gap.

    Raises:
        InputError: FFmpeg cannot read it.
    """
    with _open(source) as container:
        stream: Any = container.streams[number]
        for other in container.streams:
            if other is not stream:
                other.discard = Discard.all
        if start_s is not None:
            _seek(container, stream, start_s)
        position: Fraction | None = None
        heard_s: Fraction | None = None  # where the last block ends
        for block_start, samples in _decoded(container, stream, str(source)):
            follows = position is not None and abs(block_start - position) <= LONGEST_BREAK_S
            begin = position if follows and position is not None else block_start
            position = begin + Fraction(len(samples), RATE)
            if end_s is not None and begin >= end_s:
                return
            cut, kept_start = _between(begin, samples, start_s, end_s)
            if len(cut):
                yield SoundBlock(kept_start, cut, follows and kept_start == heard_s)
                heard_s = kept_start + Fraction(len(cut), RATE)


def _between(begin: Fraction, samples: Samples, start_s: float | None, end_s: float | None) -> tuple[Samples, Fraction]:
    """Return the samples between two times, and the time of the first of them."""
    first = 0 if start_s is None else max(0, -int((begin - Fraction(start_s)) * RATE // 1))
    last = len(samples) if end_s is None else min(len(samples), max(0, int((Fraction(end_s) - begin) * RATE)))
    return samples[first:last], begin + Fraction(first, RATE)


def _open(source: FileSource) -> InputContainer:
    try:
        with inside_ffmpeg:
            return cast(InputContainer, av.open(str(source.path.absolute()), options=single_file_options(), **ANY_METADATA))
    except (av.error.FFmpegError, OSError) as exc:
        raise InputError(f"{source}: its sound cannot be read ({exc.strerror}).") from exc


def _seek(container: InputContainer, stream: Any, start_s: float) -> None:
    """Go to the last place before a time that the file can be entered at; where it cannot, it is read from its start."""
    try:
        with inside_ffmpeg:
            container.seek(int((start_s - 1) / stream.time_base), stream=stream)  # a second for decoders that need a frame before
    except av.error.FFmpegError:
        return


def _decoded(container: InputContainer, stream: Any, name: str) -> Iterator[tuple[Fraction, Samples]]:
    """Yield the samples of each frame, and the time that it states; one without a time follows the one before."""
    resampler: AudioResampler | None = None
    form: tuple[object, ...] | None = None
    next_s = Fraction(0)
    for frame in _frames(container, stream, name):
        if form != (form := (frame.format.name, frame.layout.name, frame.sample_rate)) or resampler is None:
            resampler = AudioResampler(format="flt", layout="mono", rate=RATE)  # streams of broadcasts change in the middle
        start = next_s if frame.pts is None else frame.pts * Fraction(frame.time_base or stream.time_base)
        next_s = start + Fraction(frame.samples, frame.sample_rate)
        frame.pts = None  # the resampler would fill gaps, or refuse them
        samples = [one.to_ndarray().reshape(-1) for one in resampler.resample(frame)]
        if samples:
            yield start, np.concatenate(samples).astype(np.float32, copy=False)


def _frames(container: InputContainer, stream: Any, name: str) -> Iterator[Any]:
    damaged = 0
    try:
        for packet in inside_ffmpeg.each(container.demux(stream)):
            try:
                with inside_ffmpeg:
                    frames = packet.decode()
            except (av.error.FFmpegError, ValueError) as exc:
                damaged += 1
                if damaged > MOST_DAMAGED:
                    raise InputError(f"{name}: its sound cannot be decoded ({exc}).") from exc
                continue
            damaged = 0 if frames else damaged
            yield from frames
    except IndexError:  # PyAV's, at the end of a file in which a stream appeared that was not there at the start
        return
    except (av.error.FFmpegError, OSError) as exc:
        raise InputError(f"{name}: its sound cannot be read to its end ({exc.strerror}).") from exc
