"""Small video files whose truth is known: every picture carries its number, every file the times it was written with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter

from vip.pixels import to_image, turn_of
from vip.records import Image
from vip.video.container import ANY_METADATA

WIDTH, HEIGHT = 160, 120
BITS = 8
FRAMES = 40
SHARED = Path(__file__).parents[2] / "shared" / "videos"

needs_ffprobe = pytest.mark.skipif(shutil.which("ffprobe") is None, reason="the program ffprobe is not here")


@dataclass(frozen=True)
class Clip:
    """A file and the time of each picture in it: picture n carries the number n."""

    path: Path
    times_s: tuple[Fraction, ...]


def card(number: int, width: int = WIDTH, height: int = HEIGHT) -> Image:
    """A coloured scene in motion; on top of it stands the number in black and white squares, the lowest bit at the left."""
    y, x = np.mgrid[0:height, 0:width]
    image = np.stack([x * 200 // width + 20, y * 200 // height + 20, (x + 3 * number) % 120 + 60], axis=2).astype(np.uint8)
    cv2.circle(image, (width * (number % 37) // 37, height * 2 // 3), height // 8, (230, 200, 40), -1)
    step = width // BITS
    for bit in range(BITS):
        image[: height // 4, bit * step : (bit + 1) * step] = 235 if number >> bit & 1 else 20
    return image


def number_in(image: Image) -> int:
    """The number that a card carries, at any size."""
    height, width = image.shape[:2]
    row = image[height // 8 - 1 : height // 8 + 2].mean(axis=(0, 2))
    centres = ((np.arange(BITS) + 0.5) * width / BITS).astype(int)
    return sum(1 << bit for bit, column in enumerate(centres) if row[column - 1 : column + 2].mean() > 128)


def write(
    path: Path,
    codec: str = "libx264",
    *,
    frames: int = FRAMES,
    gop: int = 10,
    rate: int | Fraction = 25,
    ticks: Sequence[int] | None = None,
    time_base: Fraction | None = None,
    pixels: str = "yuv420p",
    picture: Callable[[int], Image | VideoFrame] = card,
    aspect: Fraction | None = None,
    options: Mapping[str, str] | None = None,
    muxer: Mapping[str, str] | None = None,
    metadata: Mapping[str, str] | None = None,
    **context: Any,
) -> Clip:
    """Encode pictures 0 … frames-1.

    Args:
        ticks: PTS of the pictures in `time_base`; by default 0, 1, 2 … at the rate.
        picture: RGB, or a frame of the format `pixels`.
        options: of the encoder; `muxer`: of the container; `context`: attributes of the codec context.
        metadata: of the stream.
    """
    base = time_base or 1 / Fraction(rate)
    stamps = list(ticks) if ticks is not None else list(range(frames))
    with usual_priority(), av.open(str(path), "w", container_options=dict(muxer or {})) as output:
        stream: Any = output.add_stream(codec, rate=rate, options={"g": str(gop), **(options or {})})
        stream.pix_fmt = pixels
        stream.codec_context.time_base = stream.time_base = base
        stream.metadata.update(metadata or {})
        if aspect is not None:
            stream.codec_context.sample_aspect_ratio = aspect
        for name, value in context.items():
            setattr(stream.codec_context, name, value)
        for number, stamp in enumerate(stamps):
            shown = picture(number)
            frame = shown if isinstance(shown, VideoFrame) else VideoFrame.from_ndarray(shown, format="rgb24").reformat(format=pixels)
            if number == 0:
                stream.width, stream.height = frame.width, frame.height
            frame.pts, frame.time_base = stamp, base
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return Clip(path, tuple(stamp * base for stamp in stamps))


OPEN_GOP = {"x264-params": "open-gop=1:bframes=3:b-adapt=0:scenecut=0:keyint=10:min-keyint=10"}
QUIET = "log-level=none"
OPEN_GOP_265 = {"x265-params": f"{QUIET}:open-gop=1:bframes=4:keyint=10:min-keyint=10:scenecut=0"}
UNEVEN_MS = [round(1000 * second) for second in np.cumsum([0.02 + 0.11 * (number * 7 % 5) for number in range(FRAMES)]).tolist()]

RECIPES: dict[str, tuple[str, dict[str, Any]]] = {
    "h264.mp4": ("libx264", {}),
    "h264.mkv": ("libx264", {}),
    "h264.ts": ("libx264", {}),
    "h264.flv": ("libx264", {}),
    "h264.avi": ("libx264", {}),
    "h264.h264": ("libx264", {}),
    "h264_faststart.mp4": ("libx264", {"muxer": {"movflags": "faststart"}}),
    "h264_fragmented.mp4": ("libx264", {"muxer": {"movflags": "frag_keyframe+empty_moov"}}),
    "h264_no_cues.mkv": ("libx264", {"muxer": {"live": "1"}}),
    "h264_10bit.mp4": ("libx264", {"pixels": "yuv420p10le"}),
    "h264_444.mp4": ("libx264", {"pixels": "yuv444p"}),
    "h264_444_cavlc.mp4": ("libx264", {"pixels": "yuv444p", "options": {"x264-params": "cabac=0:8x8dct=1"}}),
    "h264_open_gop.mp4": ("libx264", {"options": OPEN_GOP}),
    "h264_open_gop.ts": ("libx264", {"options": OPEN_GOP}),
    "h264_open_gop.mkv": ("libx264", {"options": OPEN_GOP}),
    "h264_intra_refresh.mp4": ("libx264", {"options": {"x264-params": "intra-refresh=1:keyint=10:bframes=0"}}),
    "h264_intra_refresh.ts": ("libx264", {"options": {"x264-params": "intra-refresh=1:keyint=10:bframes=0"}}),
    "h264_interlaced.ts": ("libx264", {"options": {"x264-params": "tff=1:keyint=10"}}),
    "hevc.mp4": ("libx265", {"options": {"x265-params": QUIET}}),
    "hevc.hevc": ("libx265", {"options": {"x265-params": QUIET}}),
    "hevc_open_gop.mp4": ("libx265", {"options": OPEN_GOP_265}),
    "hevc_open_gop.ts": ("libx265", {"options": OPEN_GOP_265}),
    "vp8.webm": ("libvpx", {"options": {"auto-alt-ref": "1", "lag-in-frames": "16"}}),
    "vp9.webm": ("libvpx-vp9", {"options": {"auto-alt-ref": "1", "lag-in-frames": "16"}}),
    "vp9_no_duration.webm": ("libvpx-vp9", {"muxer": {"live": "1"}}),
    "av1.mp4": ("libsvtav1", {"options": {"preset": "12"}}),
    "av1.mkv": ("libsvtav1", {"options": {"preset": "12"}}),
    "mpeg4.mp4": ("mpeg4", {"max_b_frames": 2}),
    "mpeg4.avi": ("mpeg4", {}),
    "mpeg4_b_frames.avi": ("mpeg4", {"max_b_frames": 2}),
    "mpeg2.mpg": ("mpeg2video", {"max_b_frames": 2}),
    "mpeg2.mxf": ("mpeg2video", {"max_b_frames": 2, "pixels": "yuv422p"}),
    "mjpeg.avi": ("mjpeg", {"pixels": "yuvj420p"}),
    "mjpeg.mov": ("mjpeg", {"pixels": "yuvj420p"}),
    "gif.gif": ("gif", {"pixels": "rgb8"}),
    "wmv2.wmv": ("wmv2", {}),
    "ffv1.mkv": ("ffv1", {}),
    "rawvideo.avi": ("rawvideo", {}),
    "uneven.mkv": ("libx264", {"ticks": UNEVEN_MS, "time_base": Fraction(1, 1000)}),
    "uneven.mp4": ("libx264", {"ticks": UNEVEN_MS, "time_base": Fraction(1, 1000)}),
    "late.mkv": ("libx264", {"ticks": range(1500, 1500 + 40 * FRAMES, 40), "time_base": Fraction(1, 1000)}),
    "late.mp4": ("libx264", {"ticks": range(1500, 1500 + 40 * FRAMES, 40), "time_base": Fraction(1, 1000)}),
    "ntsc.mp4": ("libx264", {"rate": Fraction(30000, 1001)}),
    "one_gop.mp4": ("libx264", {"gop": 1000}),
    "one_frame.mp4": ("libx264", {"frames": 1}),
}
"""Name of the file -> encoder and what else `write` is given."""


class Clips:
    """Files by name, each written when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: dict[str, Clip] = {}

    def __call__(self, name: str) -> Clip:
        if name not in self._made:
            codec, settings = RECIPES[name]
            self._made[name] = write(self.folder / name, codec, **settings)
        return self._made[name]


def decoded(path: Path, decoder: str | None = None) -> Iterator[VideoFrame]:
    """All frames of the file from its start to its end, by PyAV alone and one thread; what is damaged is left out."""
    with av.open(str(path), **ANY_METADATA) as container:
        stream = container.streams.video[0]
        context: Any = av.CodecContext.create(decoder, "r") if decoder else stream.codec_context
        context.thread_type, context.thread_count = "NONE", 1
        try:
            for packet in container.demux(stream):
                try:
                    yield from context.decode(packet)
                except av.error.FFmpegError:
                    if not context.is_open:  # tried once more, PyAV 19 crashes
                        return
        except av.error.FFmpegError:
            return


@contextmanager
def usual_priority() -> Iterator[None]:
    """Take back what SVT-AV1 does where it runs as root: it gives the calling thread real-time priority (SCHED_FIFO 99).

    Processes that are started later inherit it, and then a thread that waits for another in a loop keeps it from running.
    """
    if not hasattr(os, "sched_setscheduler"):
        yield
        return
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        yield
    finally:
        if os.sched_getscheduler(0) != policy:
            os.sched_setscheduler(0, policy, parameters)


def linear(path: Path, decoder: str | None = None) -> list[tuple[int | None, Image]]:
    """PTS and picture of every frame, in the order in which the decoder gives them."""
    with av.open(str(path), **ANY_METADATA) as container:
        aspect = container.streams.video[0].sample_aspect_ratio or Fraction(1)
    reformatter = VideoReformatter()
    return [(frame.pts, to_image(frame, aspect, turn_of(frame), reformatter)) for frame in decoded(path, decoder)]


def remux(source: Path, target: Path, *, skip_s: Fraction) -> None:
    """Copy the packets so that time 0 lies `skip_s` later: MP4 then hides what lies before by an edit list."""
    with av.open(str(source)) as old, av.open(str(target), "w") as new:
        stream = old.streams.video[0]
        copy = new.add_stream_from_template(stream)
        shift = int(skip_s / (stream.time_base or 1))
        for packet in old.demux(stream):
            if packet.dts is not None and packet.pts is not None:
                packet.pts, packet.dts, packet.stream = packet.pts - shift, packet.dts - shift, copy
                new.mux(packet)


Matrix = tuple[int, int, int, int]
"""Where the stored x axis (a, b) and y axis (c, d) point on the screen."""


def turn(source: Path, target: Path, matrix: Matrix) -> None:
    """Copy an MP4 file and write the display matrix into its track header."""
    one, end = (1 << 16).to_bytes(4, "big"), (1 << 30).to_bytes(4, "big")
    upright = (one + bytes(12) + one + bytes(12) + end, *((value << 16).to_bytes(4, "big", signed=True) for value in matrix))
    a, b, c, d = upright[1:]
    data = source.read_bytes()
    header = data.index(b"tkhd")
    start = data.index(upright[0], header)
    target.write_bytes(data[:start] + a + b + bytes(4) + c + d + bytes(12) + end + data[start + 36 :])


def sound(path: Path, *, cover: bool = False) -> None:
    """Write a second of sound, with a cover picture as an ID3 tag in front of it if asked for."""
    with av.open(str(path), "w") as output:
        stream: Any = output.add_stream("aac", rate=44_100)
        stream.layout = "mono"
        for number in range(43):
            wave = np.sin(np.arange(1024) / 20).astype(np.float32)[None] / 2
            frame = av.AudioFrame.from_ndarray(wave, format="fltp", layout="mono")
            frame.sample_rate, frame.pts = 44_100, 1024 * number
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    if cover:
        body = b"\0image/png\0\3\0" + cv2.imencode(".png", card(1))[1].tobytes()
        tag = b"APIC" + len(body).to_bytes(4, "big") + b"\0\0" + body
        size = bytes(len(tag) >> shift & 127 for shift in (21, 14, 7, 0))
        path.write_bytes(b"ID3\3\0\0" + size + tag + path.read_bytes())


class SpyDecoder:
    """Passes everything on to a decoder, and remembers the PTS of the packets that it was given."""

    def __init__(self, inner: Any, given: list[int | None]) -> None:
        object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "given", given)

    def decode(self, packet: Any = None) -> Any:
        if packet is not None:
            self.given.append(packet.pts)
        return self.inner.decode(packet)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.inner, name, value)


def ffprobe(path: Path, entries: str) -> dict[str, Any]:
    """What the program ffprobe says about the first video stream, as JSON."""
    command = ["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", entries, "-of", "json", str(path)]
    answer = subprocess.run(command, capture_output=True, check=False, timeout=60)
    found: dict[str, Any] = json.loads(answer.stdout)
    return found
