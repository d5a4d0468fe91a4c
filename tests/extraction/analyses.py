"""Pictures that look like something: coloured shapes with texture, different for each seed; and looks made by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import cv2
import numpy as np

from vip.extraction.analyze import FrameAnalysis, signature_of
from vip.extraction.quality import FrameMeasures
from vip.records import Image, Quality

TIME_BASE = Fraction(1, 1000)


def picture(seed: int) -> Image:
    """uint8 (360, 640, 3): a scene of its own, sharp, neither dark nor flat."""
    rng = np.random.default_rng(seed)
    image = np.empty((360, 640, 3), np.uint8)
    image[:] = rng.integers(60, 200, 3)
    for _ in range(25):
        x, y = int(rng.integers(0, 640)), int(rng.integers(0, 360))
        colour = tuple(int(value) for value in rng.integers(0, 256, 3))
        if rng.random() < 0.5:
            cv2.circle(image, (x, y), int(rng.integers(10, 90)), colour, -1)
        else:
            cv2.rectangle(image, (x, y), (x + int(rng.integers(20, 200)), y + int(rng.integers(20, 120))), colour, -1)
    return image


def large_picture(seed: int) -> Image:
    """uint8 (1080, 1920, 3): the same scene with texture of all sizes, as a camera would see it."""
    rng = np.random.default_rng(seed)
    image = cv2.resize(picture(seed), (1920, 1080), interpolation=cv2.INTER_CUBIC).astype(np.float32)
    for size in (2, 4, 8, 16):
        noise = rng.normal(0, 2 * size**0.5, (1080 // size, 1920 // size)).astype(np.float32)
        image += cv2.resize(noise, (1920, 1080), interpolation=cv2.INTER_CUBIC)[..., None]
    return np.clip(image, 0, 255).astype(np.uint8)


def scaled(image: Image, width: int, height: int) -> Image:
    """The picture at another size, as a camera of that size would see it."""
    return np.asarray(cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA), np.uint8)


def analysis(pts: int, **changed: Any) -> FrameAnalysis:
    """A look at a good frame that is like no other, made by hand; its vector lies at as many degrees as it has ticks."""
    angle = np.radians(pts)
    vector = np.array([np.cos(angle), np.sin(angle)], np.float32)
    plain = FrameAnalysis(
        pts=pts,
        time_s=float(pts * TIME_BASE),
        measured=measured(100.0 + pts),
        signature=np.random.default_rng(pts).integers(0, 256, (18, 32, 3), np.uint8),
        thumbnail=f"thumbnail of {pts}".encode(),
        view=vector,
        vector=vector,
        detections=(),
    )
    return replace(plain, **changed)


def look_at(image: Image, pts: int = 0, **changed: Any) -> FrameAnalysis:
    """A look at a good frame with the signature and the thumbnail of this picture."""
    small = scaled(image, 160, 90)
    jpeg = cv2.imencode(".jpg", cv2.cvtColor(small, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 80])[1].tobytes()
    return analysis(pts, signature=signature_of(small), thumbnail=jpeg, **changed)


def measured(sharpness: float, *, contrast: float = 0.2, brightness: float = 0.5, **shares: float) -> FrameMeasures:
    """As of a picture that shows something."""
    quality = Quality(sharpness=sharpness, brightness=brightness, contrast=contrast)
    usual = {"not_dark": 0.75, "not_light": 0.5, "bright": 0.25, "dim": 0.125, "bright_in_middle": 0.25, "dim_in_middle": 0.125}
    return FrameMeasures(quality, **{**usual, **shares})
