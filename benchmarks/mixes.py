"""Videos with known content: segments of clips, one after another, encoded as one stream.

Because it is known which clip every moment comes from, a choice of keyframes can be scored (`scores.py`). Some segments open with
a fault, a stretch that no keyframe should come from: out of focus, black, or cross-fading from the segment before.

Clips come from a folder of videos, or, without one, are photographs inside the scikit-image wheel with a moving camera.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Protocol, TypedDict

import av
import cv2
import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.uint8]
"""uint8 (H, W, 3), RGB."""

CODECS = {"h264": "libx264", "hevc": "libx265", "vp9": "libvpx-vp9", "av1": "libsvtav1"}
VIDEOS = frozenset({".avi", ".mkv", ".mov", ".mp4", ".webm"})
PHOTOS = (
    *("astronaut.png", "brick.png", "camera.png", "cell.png", "chelsea.png", "clock_motion.png", "coffee.png", "coins.png"),
    *("color.png", "grass.png", "gravel.png", "hubble_deep_field.jpg", "ihc.png", "logo.png", "moon.png", "motorcycle_left.png"),
    *("page.png", "retina.jpg", "rocket.jpg", "text.png"),
)
NEVER = 2_000_000  # frames between sync frames: more than any of these videos has
FAULTS: tuple[FaultKind, ...] = ("defocus", "black", "crossfade")
SHARE_WITH_FAULT = 0.35
FAULT_S = (0.4, 0.8)
DEFOCUS_PX = 14.0  # sigma of the blur
VERSION = 1  # of what `build` writes; part of the names of files, so that old ones are not taken for new ones

FaultKind = Literal["defocus", "black", "crossfade"]


class SegmentTruth(TypedDict):
    clip: str
    start_s: float
    end_s: float


class FaultTruth(TypedDict):
    kind: str
    start_s: float
    end_s: float


class Truth(TypedDict):
    """What a mix shows when; the segments follow one another without gaps."""

    video: str
    fps: int
    seed: int
    codec: str
    gop: int
    duration_s: float
    segments: list[SegmentTruth]
    faults: list[FaultTruth]


@dataclass(frozen=True)
class Recipe:
    """How a mix is cut and encoded."""

    codec: str
    width: int
    height: int
    seed: int
    gop: int = 150
    """Most frames from one sync frame to the next; 0: only the first frame is one."""
    segments: int = 22
    shortest_s: float = 2.0
    longest_s: float = 20.0
    fps: int = 30

    @property
    def name(self) -> str:
        """`h264 1280x720 GOP 150`."""
        return f"{self.codec} {self.width}x{self.height} {f'GOP {self.gop}' if self.gop else 'one sync frame'}"


@dataclass(frozen=True)
class Mix:
    recipe: Recipe
    video: Path
    truth: Truth


class Clip(Protocol):
    """Something to cut segments from."""

    name: str
    length_s: float

    def frames(self, start_s: float, count: int, recipe: Recipe) -> Iterator[Image]:
        """`count` pictures of the size and rate of the mix, from `start_s` on; fewer where the clip ends."""


class VideoClip:
    """A video file."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name

    @cached_property
    def length_s(self) -> float:
        with av.open(str(self.path)) as container:
            stream = container.streams.video[0]
            if container.duration:
                return container.duration / av.time_base
            return float((stream.duration or 0) * (stream.time_base or 0))

    def frames(self, start_s: float, count: int, recipe: Recipe) -> Iterator[Image]:
        given = 0
        first_s: float | None = None
        with av.open(str(self.path)) as container:
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            for frame in container.decode(stream):
                if frame.time is None:
                    continue
                first_s = frame.time if first_s is None else first_s
                due = int(max(0.0, frame.time - first_s - start_s) * recipe.fps + 1 + 1e-6) if frame.time - first_s >= start_s else 0
                if due <= given:
                    continue
                image = fit(frame.to_ndarray(format="rgb24"), recipe.width, recipe.height)
                for _ in range(given, min(due, count)):
                    yield image
                given = due
                if given >= count:
                    return


class PhotoClip:
    """A photograph inside the scikit-image wheel, over which a camera moves slowly."""

    length_s = 20.0

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def picture(self) -> Image:
        data = np.frombuffer(resources.files("skimage").joinpath("data", self.name).read_bytes(), np.uint8)
        return np.asarray(cv2.cvtColor(cv2.imdecode(data, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB), np.uint8)

    def frames(self, start_s: float, count: int, recipe: Recipe) -> Iterator[Image]:
        tall, wide = self.picture.shape[:2]
        whole = min(wide, tall * recipe.width / recipe.height)  # the widest window that the photograph has room for
        chance = random.Random(zlib.crc32(self.name.encode()))
        # width, and place from 0 (left, top) to 1 (right, bottom), at the start and at the end of the clip
        begin, end = ((chance.uniform(0.65, 1.0), chance.random(), chance.random()) for _ in range(2))
        for number in range(count):
            share = (start_s + number / recipe.fps) / self.length_s
            width, x, y = (a + (b - a) * share for a, b in zip(begin, end, strict=True))
            step = width * whole / recipe.width
            left, top = x * (wide - step * recipe.width), y * (tall - step * recipe.height)
            to_photo = np.array([[step, 0, left], [0, step, top]])
            size = (recipe.width, recipe.height)
            flags = cv2.WARP_INVERSE_MAP | cv2.INTER_LINEAR
            yield np.asarray(cv2.warpAffine(self.picture, to_photo, size, flags=flags, borderMode=cv2.BORDER_REPLICATE), np.uint8)


def clips_in(folder: Path | None) -> list[Clip]:
    """The videos of a folder in the order of their names; without a folder the photographs."""
    if folder is None:
        return [PhotoClip(name) for name in PHOTOS]
    return [VideoClip(path) for path in sorted(folder.iterdir()) if path.suffix.lower() in VIDEOS]


def fit(image: Image, width: int, height: int) -> Image:
    """The picture inside black bars: uint8 (height, width, 3)."""
    tall, wide = image.shape[:2]
    scale = min(width / wide, height / tall)
    new_wide, new_tall = max(2, round(wide * scale)), max(2, round(tall * scale))
    left, top = (width - new_wide) // 2, (height - new_tall) // 2
    shown = np.zeros((height, width, 3), np.uint8)
    shown[top : top + new_tall, left : left + new_wide] = cv2.resize(image, (new_wide, new_tall), interpolation=cv2.INTER_AREA)
    return shown


@dataclass(frozen=True)
class Segment:
    """A stretch of a clip, and the fault that it opens with."""

    clip: Clip
    start_s: float
    frames: int
    fault: FaultKind | None
    fault_frames: int


def plan(recipe: Recipe, clips: Sequence[Clip]) -> list[Segment]:
    """Segments of different clips, in an order by chance; fewer than asked for where there are not as many clips.

    Raises:
        ValueError: no clip is long enough.
    """
    chance = random.Random(recipe.seed)
    usable = [clip for clip in clips if clip.length_s >= recipe.shortest_s + 0.5]
    if not usable:
        raise ValueError(f"None of the {len(clips)} clips lasts {recipe.shortest_s + 0.5:g} s. Give another folder with --clips.")
    chance.shuffle(usable)
    segments: list[Segment] = []
    for clip in usable[: recipe.segments]:
        length_s = min(chance.uniform(recipe.shortest_s, recipe.longest_s), clip.length_s - 0.2)
        start_s = chance.uniform(0, max(0.0, clip.length_s - length_s - 0.1))
        fault = chance.choice(FAULTS) if chance.random() < SHARE_WITH_FAULT else None
        fault_frames = int(chance.uniform(*FAULT_S) * recipe.fps)
        segments.append(Segment(clip, start_s, round(length_s * recipe.fps), fault, fault_frames))
    return segments


def build(recipe: Recipe, clips: Sequence[Clip], folder: Path) -> Mix:
    """The mix of this recipe, from the folder if an earlier run left it there.

    Raises:
        ValueError: no clip is long enough.
    """
    key = json.dumps([VERSION, asdict(recipe), [clip.name for clip in clips]])
    size = f"{recipe.width}x{recipe.height}"
    video = folder / f"{recipe.codec}-{size}-{recipe.gop}-{recipe.seed}-{hashlib.sha256(key.encode()).hexdigest()[:8]}.mp4"
    known = video.with_suffix(".json")
    if not known.exists():
        truth = write_mix(video, recipe, plan(recipe, clips))
        partial = known.with_suffix(".part")
        partial.write_text(json.dumps(truth, indent=1))
        partial.replace(known)  # last: where it exists, the video is whole
    return Mix(recipe, video, json.loads(known.read_text()))


def write_mix(video: Path, recipe: Recipe, segments: Sequence[Segment]) -> Truth:
    """Write the video of these segments, and return what it shows when."""
    shown: list[SegmentTruth] = []
    faults: list[FaultTruth] = []
    with av.open(str(video), "w") as container:
        stream = _stream(container, recipe)
        number = 0
        last: Image | None = None
        for segment in segments:
            first = number
            for count, image in enumerate(segment.clip.frames(segment.start_s, segment.frames, recipe)):
                last = _faulty(image, segment, count, last)
                frame = av.VideoFrame.from_ndarray(last, format="rgb24")
                frame.pts, frame.time_base = number, Fraction(1, recipe.fps)
                container.mux(stream.encode(frame))
                number += 1
            if number == first:
                continue
            shown.append({"clip": segment.clip.name, "start_s": first / recipe.fps, "end_s": number / recipe.fps})
            if segment.fault and not (segment.fault == "crossfade" and first == 0):  # at the very start nothing is faded from
                until = min(first + segment.fault_frames, number)
                faults.append({"kind": segment.fault, "start_s": first / recipe.fps, "end_s": until / recipe.fps})
        container.mux(stream.encode(None))
    settings = {"fps": recipe.fps, "seed": recipe.seed, "codec": recipe.codec, "gop": recipe.gop}
    return Truth(video=video.name, **settings, duration_s=number / recipe.fps, segments=shown, faults=faults)


def _faulty(image: Image, segment: Segment, count: int, last: Image | None) -> Image:
    """The picture as its segment's fault leaves it; `last` is the picture before it in the mix."""
    if segment.fault is None or count >= segment.fault_frames:
        return image
    match segment.fault:
        case "defocus":
            return np.asarray(cv2.GaussianBlur(image, (0, 0), DEFOCUS_PX), np.uint8)
        case "black":
            return np.zeros_like(image)
        case "crossfade" if last is not None:
            share = count / segment.fault_frames
            return np.asarray(cv2.addWeighted(image, share, last, 1 - share, 0), np.uint8)
    return image


def _stream(container: Any, recipe: Recipe) -> Any:
    gop = recipe.gop or NEVER
    cuts = 40 if recipe.gop else 0  # x264's threshold for a sync frame at a cut
    options = {
        "h264": {"preset": "veryfast", "crf": "26", "x264-params": f"keyint={gop}:min-keyint=1:scenecut={cuts}"},
        "hevc": {"preset": "ultrafast", "crf": "30", "x265-params": f"keyint={gop}:scenecut={cuts}:log-level=none"},
        "vp9": {"deadline": "realtime", "cpu-used": "8", "b": "1500k"},
        "av1": {"preset": "12", "crf": "45"},
    }
    os.environ.setdefault("SVT_LOG", "1")  # errors only
    stream = container.add_stream(CODECS[recipe.codec], rate=recipe.fps, options=options[recipe.codec])
    stream.width, stream.height, stream.pix_fmt = recipe.width, recipe.height, "yuv420p"
    stream.time_base = Fraction(1, recipe.fps)
    stream.codec_context.gop_size = gop
    return stream
