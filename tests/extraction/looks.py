"""Pictures that look like something: coloured shapes with texture, different for each seed."""

from __future__ import annotations

from fractions import Fraction

import cv2
import numpy as np

from vip.records import Image

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
