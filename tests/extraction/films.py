"""Films of photographs over which a camera moves slowly, each clearly unlike the others; with cross-fades and black starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import accumulate
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.media import Clip, write
from vip.records import Image

RATE = 25
WIDTH, HEIGHT = 320, 180
PHOTOS = ("astronaut.png", "coffee.png", "chelsea.png", "rocket.jpg", "motorcycle_left.png", "retina.jpg")
PAN = 0.15  # of the width of the photograph, in a second


@dataclass(frozen=True)
class Shot:
    photo: int
    seconds: float
    fade_s: float = 0.0
    """So long the shot before shows through."""
    black_s: float = 0.0
    """So long nothing shows."""

    @property
    def frames(self) -> int:
        return round(self.seconds * RATE)


@cache
def photograph(number: int) -> Image:
    """uint8 (H, W, 3), wide enough for a camera to move over it."""
    pytest.importorskip("skimage", reason="the photographs come with scikit-image")
    data = np.frombuffer(resources.files("skimage").joinpath("data", PHOTOS[number]).read_bytes(), np.uint8)
    image = cv2.imdecode(data, cv2.IMREAD_COLOR_RGB)
    assert image is not None
    height = round(image.shape[1] * 0.7 * HEIGHT / WIDTH)
    top = (image.shape[0] - height) // 2
    return np.asarray(image[top : top + height], np.uint8)


def view(photo: int, second: float) -> Image:
    """What the camera sees of the photograph after so many seconds."""
    image = photograph(photo)
    tall, wide = image.shape[:2]
    step = 0.7 * wide / WIDTH
    left = min(0.3, PAN * second) * wide
    window = np.array([[step, 0, left], [0, tall / HEIGHT, 0]])
    return np.asarray(cv2.warpAffine(image, window, (WIDTH, HEIGHT), flags=cv2.WARP_INVERSE_MAP | cv2.INTER_LINEAR), np.uint8)


def show(shots: Sequence[Shot]) -> Callable[[int], Image]:
    """The picture of each frame of these shots in a row."""
    starts = [0, *accumulate(shot.frames for shot in shots)]

    def picture(number: int) -> Image:
        which = next(index for index in range(len(shots)) if number < starts[index + 1])
        shot, second = shots[which], (number - starts[which]) / RATE
        image = view(shot.photo, second)
        if second < shot.black_s:
            return np.zeros_like(image)
        if second < shot.fade_s and which > 0:
            share = second / shot.fade_s
            before = view(shots[which - 1].photo, shots[which - 1].seconds + second)
            return np.asarray(cv2.addWeighted(image, share, before, 1 - share, 0), np.uint8)
        return image

    return picture


ENCODERS: dict[str, dict[str, Any]] = {
    "H.264, sync frames at cuts": {"gop": 150, "options": {"preset": "veryfast", "crf": "24"}},
    "H.264, one sync frame": {"gop": 100_000, "options": {"preset": "veryfast", "crf": "24", "x264-params": "scenecut=0"}},
    "VP9": {"codec": "libvpx-vp9", "gop": 128, "options": {"deadline": "realtime", "cpu-used": "8", "b": "800k"}},
}


def film(path: Path, shots: Sequence[Shot], encoder: str = "H.264, sync frames at cuts") -> Clip:
    frames = sum(shot.frames for shot in shots)
    return write(path, **{"codec": "libx264", **ENCODERS[encoder]}, frames=frames, rate=RATE, picture=show(shots))
