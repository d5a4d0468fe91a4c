"""Make the sample video that the README, the tests and a first trial run use.

Why: a trial needs a video that may be given away, is small enough for git, and holds what keyframe extraction has to cope with:
hard cuts, a defocused stretch, fades, a dissolve, a face, near-duplicates and a nearly black moment. Test patterns hold none of it.
In: photographs inside the scikit-image wheel, every one free to use (`examples/README.md` lists their sources). No network.
Out: `sample.mp4`, H.264 640x360, 25 frames a second, silent. The table `SHOTS` is the whole film; everything else only renders it.

    python examples/make_sample.py [OUT]
"""

from __future__ import annotations

import argparse
import enum
import functools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from pathlib import Path

import av
import cv2
import numpy as np
import numpy.typing as npt
from av.video.reformatter import ColorRange, Colorspace

Image = npt.NDArray[np.uint8]
"""uint8 (H, W, 3), RGB."""

WIDTH_PX, HEIGHT_PX, FPS = 640, 360, 25
FADE_S = 0.8  # from black, to black and the dissolve
DEFOCUS_S = 0.8
DEFOCUS_RADIUS_PX = 13.0  # of the blur disc when the shot opens
DARK_GAIN = 0.06  # the nearly black moment keeps 6 % of the light

BT709 = 1  # primaries and transfer curve in ITU-T H.273

ENCODER_OPTIONS = {
    "preset": "veryfast",  # the test makes the film anew; "medium" takes 2 s longer and gains 0.5 dB
    "crf": "24",
    "g": "125",  # a key frame every 5 s at the latest, and one at every cut: what cameras and web encoders write
    "sc_threshold": "40",
    "threads": "2",  # x264's output depends on the number of threads, so the machine must not choose it
    "flags": "+bitexact",
}
CONTAINER_OPTIONS = {"movflags": "+faststart", "fflags": "+bitexact"}


class Effect(enum.Enum):
    """What happens to a shot besides its camera move."""

    NONE = "starts with a hard cut"
    FADE_IN = "opens out of black"
    FADE_OUT = "closes into black"
    DEFOCUS = "opens out of focus and is pulled sharp"
    DISSOLVE = "appears through the shot before it"
    DARK = "nearly black throughout"


@dataclass(frozen=True, slots=True)
class Crop:
    """A 16:9 window on a picture, in pixels of that picture; 640 wide is full sharpness."""

    centre_x_px: float
    centre_y_px: float
    width_px: float

    @property
    def height_px(self) -> float:
        """Height that makes the window 16:9."""
        return self.width_px * HEIGHT_PX / WIDTH_PX

    def towards(self, other: Crop, progress: float) -> Crop:
        """Window at `progress` of the way to `other`: 0 is here, 1 is there, above 1 the same move goes on."""
        zoom = (other.width_px / self.width_px) ** progress  # equal ratios look like an even zoom, equal differences do not
        width_px = self.width_px * zoom
        span_px = other.width_px - self.width_px
        share = progress if abs(span_px) < 1e-6 else (width_px - self.width_px) / span_px
        return Crop(
            self.centre_x_px + (other.centre_x_px - self.centre_x_px) * share,
            self.centre_y_px + (other.centre_y_px - self.centre_y_px) * share,
            width_px,
        )


@dataclass(frozen=True, slots=True)
class Shot:
    """One row of the film: a photograph, the camera's move over it, how long, and what else happens."""

    picture: str
    """File name in skimage/data."""
    start: Crop
    end: Crop
    length_s: float
    effect: Effect = Effect.NONE

    def __post_init__(self) -> None:
        frames = self.length_s * FPS
        if frames < 1 or abs(frames - round(frames)) > 1e-6:
            raise ValueError(f"{self.picture}: length_s must be a whole number of frames at {FPS} a second, got {self.length_s}")

    @property
    def frames(self) -> int:
        """Number of frames."""
        return round(self.length_s * FPS)


SHOTS: tuple[Shot, ...] = (
    Shot("rocket.jpg", Crop(320, 245, 630), Crop(322, 262, 500), 3.2, Effect.FADE_IN),
    Shot("astronaut.png", Crop(226, 126, 420), Crop(222, 106, 350), 3.6),  # the face
    Shot("coffee.png", Crop(300, 176, 590), Crop(306, 157, 520), 3.6, Effect.DEFOCUS),
    Shot("chelsea.png", Crop(226, 158, 440), Crop(240, 168, 345), 3.0),
    Shot("retina.jpg", Crop(520, 680, 860), Crop(660, 704, 1220), 2.6),
    Shot("hubble_deep_field.jpg", Crop(420, 400, 640), Crop(500, 436, 800), 3.0, Effect.DISSOLVE),
    Shot("rocket.jpg", Crop(322, 262, 500), Crop(322, 262, 495), 0.6, Effect.DARK),
    Shot("camera.png", Crop(214, 168, 420), Crop(296, 168, 420), 3.0),
    Shot("coffee.png", Crop(306, 157, 522), Crop(306, 157, 514), 2.0),  # near-duplicate of the end of its first appearance
    Shot("astronaut.png", Crop(320, 398, 380), Crop(320, 398, 379), 2.6, Effect.FADE_OUT),  # her helmet, nearly static until the fade
)


@functools.cache
def load_picture(name: str) -> Image:
    """RGB photograph from the installed scikit-image.

    Raises:
        ModuleNotFoundError: scikit-image is not installed.
        FileNotFoundError: this version of scikit-image ships no such file.
    """
    data = np.frombuffer(resources.files("skimage").joinpath("data", name).read_bytes(), np.uint8)
    image = cv2.imdecode(data, cv2.IMREAD_COLOR)
    if image is None:
        raise ValueError(f"skimage/data/{name} is not a picture that OpenCV reads")
    return cv2.cvtColor(image, cv2.COLOR_BGR2RGB).astype(np.uint8, copy=False)


@functools.lru_cache(maxsize=2)  # a dissolve needs two shots at once
def plate(shot: Shot) -> tuple[Image, float]:
    """Photograph resized once for this shot's mean zoom, and the factor; one good resize beats a poor one in every frame."""
    picture = load_picture(shot.picture)
    scale = WIDTH_PX / (shot.start.width_px * shot.end.width_px) ** 0.5
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_LANCZOS4
    resized = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=method)
    if scale > 1:  # enlarging softens
        resized = cv2.addWeighted(resized, 1.5, cv2.GaussianBlur(resized, (0, 0), scale), -0.5, 0)
    return resized.astype(np.uint8, copy=False), scale


def view(shot: Shot, frame_index: int) -> Image:
    """RGB (360, 640, 3): what the moving camera sees at this frame of the shot, without the effect.

    Raises:
        ValueError: the window leaves the photograph, which would show as a border.
    """
    crop = shot.start.towards(shot.end, frame_index / max(shot.frames - 1, 1))
    image, scale = plate(shot)
    left_px = crop.centre_x_px - crop.width_px / 2
    top_px = crop.centre_y_px - crop.height_px / 2
    height_px, width_px = load_picture(shot.picture).shape[:2]
    if left_px < 0 or top_px < 0 or left_px + crop.width_px > width_px or top_px + crop.height_px > height_px:
        raise ValueError(f"{shot.picture} is {width_px}x{height_px}; frame {frame_index} of its shot wants {crop}")
    step = crop.width_px * scale / WIDTH_PX
    # Pixel centres lie at +0.5, hence the shift; the map runs from output to plate.
    to_plate = np.array([[step, 0, left_px * scale + step / 2 - 0.5], [0, step, top_px * scale + step / 2 - 0.5]])
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    warped = cv2.warpAffine(image, to_plate, (WIDTH_PX, HEIGHT_PX), flags=flags, borderMode=cv2.BORDER_REPLICATE)
    return warped.astype(np.uint8, copy=False)


def ease(progress: float) -> float:
    """0 to 1 with a soft start and a soft end."""
    share = min(max(progress, 0.0), 1.0)
    return share * share * (3 - 2 * share)


def blend(below: Image, above: Image, share: float) -> Image:
    """Mix of two images: `share` 0 is below, 1 is above."""
    return cv2.addWeighted(below, 1 - share, above, share, 0).astype(np.uint8, copy=False)


def defocus(image: Image, radius_px: float) -> Image:
    """Image as a lens out of focus draws it: every point becomes a disc."""
    if radius_px < 0.5:
        return image
    reach = int(radius_px) + 1
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    disc = np.clip(radius_px + 0.5 - np.hypot(x, y), 0, 1)  # soft rim, so that the radius may shrink by fractions
    return cv2.filter2D(image, -1, disc / disc.sum(), borderType=cv2.BORDER_REFLECT).astype(np.uint8, copy=False)


def render(shot: Shot, frame_index: int, before: Shot | None) -> Image:
    """RGB (360, 640, 3): one frame of a shot with its effect; `before` is the shot that a dissolve comes through."""
    image = view(shot, frame_index)
    black = np.zeros_like(image)
    time_s = frame_index / FPS
    match shot.effect:
        case Effect.FADE_IN:
            return blend(black, image, ease(time_s / FADE_S))
        case Effect.FADE_OUT:
            return blend(black, image, ease((shot.frames - 1 - frame_index) / FPS / FADE_S))
        case Effect.DARK:
            return blend(black, image, DARK_GAIN)
        case Effect.DEFOCUS:
            return defocus(image, DEFOCUS_RADIUS_PX * (1 - ease(time_s / DEFOCUS_S)))
        case Effect.DISSOLVE if before is not None and time_s < FADE_S:
            return blend(view(before, before.frames + frame_index), image, ease((time_s + 1 / FPS) / FADE_S))
        case _:
            return image


def frames(shots: Sequence[Shot]) -> Iterator[Image]:
    """Every frame of the film in order, RGB (360, 640, 3)."""
    before: Shot | None = None
    for shot in shots:
        for frame_index in range(shot.frames):
            yield render(shot, frame_index, before)
        before = shot


def write_video(path: Path, shots: Sequence[Shot] = SHOTS) -> None:
    """Film of `shots` at `path`, as H.264 in MP4; an existing file stays until the new one is whole."""
    partial = path.with_name(f".{path.stem}.partial.mp4")
    try:
        with av.open(str(partial), "w", format="mp4", options=CONTAINER_OPTIONS) as container:
            stream = container.add_stream("libx264", rate=FPS, options=ENCODER_OPTIONS)
            stream.width, stream.height, stream.pix_fmt = WIDTH_PX, HEIGHT_PX, "yuv420p"
            stream.time_base = Fraction(1, FPS)
            # Matrix of BT.601, and saying so: readers that heed the tag and readers that always take 601 both show the right colours.
            stream.codec_context.colorspace = Colorspace.ITU601
            stream.codec_context.color_range = ColorRange.MPEG
            stream.codec_context.color_primaries = BT709
            stream.codec_context.color_trc = BT709
            for index, image in enumerate(frames(shots)):
                rgb = av.VideoFrame.from_ndarray(image, format="rgb24")
                frame = rgb.reformat(format="yuv420p", dst_colorspace=Colorspace.ITU601, dst_color_range=ColorRange.MPEG)
                frame.pts, frame.time_base = index, Fraction(1, FPS)
                container.mux(stream.encode(frame))
            container.mux(stream.encode(None))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 when the film is written, 2 when scikit-image is missing."""
    parser = argparse.ArgumentParser(description="Make the sample video from photographs that scikit-image ships.")
    parser.add_argument("out", nargs="?", type=Path, default=Path(__file__).with_name("sample.mp4"), metavar="OUT")
    out: Path = parser.parse_args(arguments).out
    try:
        write_video(out)
    except ModuleNotFoundError as error:
        print(f"{error.name} is missing; its photographs make the film. Try: pip install scikit-image", file=sys.stderr)
        return 2
    time_s = 0.0
    for shot in SHOTS:
        print(f"{time_s:5.1f} s  {shot.picture:22} {shot.effect.value}")
        time_s += shot.length_s
    print(f"{time_s:5.1f} s  end. {out}: {out.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
