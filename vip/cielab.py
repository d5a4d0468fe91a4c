"""CIELAB (CIE 15, white D65), where distances are close to those that people see.

OpenCV's own conversion makes tables for 50 ms when it is first called: longer than a short video takes to read.
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from vip.records import Image

Colours = npt.NDArray[np.float32]  # (H, W, 3)


def _linear(srgb: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the light of sRGB values in [0, 1], also in [0, 1] (IEC 61966-2-1)."""
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4).astype(np.float32)


LIGHT_OF_LEVEL = _linear(np.linspace(0, 1, 256, dtype=np.float32))
WHITE = np.array([[0.950456], [1], [1.088754]], np.float32)
RGB_TO_XYZ = np.array([[0.412453, 0.35758, 0.180423], [0.212671, 0.71516, 0.072169], [0.019334, 0.119193, 0.950227]], np.float32) / WHITE
ROOTS_TO_LAB = np.array([[0, 116, 0, -16], [500, -500, 0, 0], [0, 200, -200, 0]], np.float32)
TO_LEVELS = np.array([[2.55, 0, 0, 0], [0, 1, 0, 128], [0, 0, 1, 128]], np.float32)  # lightness × 2.55, a and b + 128


def cielab_of_picture(image: Image) -> Image:
    """Return an sRGB picture in CIELAB as uint8 (H, W, 3), scaled as OpenCV scales it: lightness × 2.55, a and b + 128."""
    lab = _cielab(np.asarray(cv2.LUT(image, LIGHT_OF_LEVEL), np.float32))
    return np.asarray(cv2.convertScaleAbs(cv2.transform(lab, TO_LEVELS)), np.uint8)


def cielab_of_colours(srgb: Colours) -> Colours:
    """Return sRGB colours in [0, 1], float32 (H, W, 3), in CIELAB: lightness in [0, 100]."""
    return _cielab(_linear(srgb))


def _cielab(light: Colours) -> Colours:
    xyz = np.asarray(cv2.transform(light, RGB_TO_XYZ), np.float32)
    roots = np.asarray(cv2.pow(xyz, 1 / 3), np.float32)
    np.copyto(roots, xyz * np.float32(7.787) + np.float32(16 / 116), where=xyz < 0.008856)
    return np.asarray(cv2.transform(roots, ROOTS_TO_LAB), np.float32)
