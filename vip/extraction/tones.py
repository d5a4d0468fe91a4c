"""Tones of a picture: shots of one source are exposed and graded alike, other sources often otherwise."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

STEPS = (25.0, 30.0, 12.0)  # of 255 levels: pictures two steps apart are as unlike as can be in one of the three


def tones_of(signatures: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Return how white the whitest tone of each picture is, how light its middle one, and how colourful it is: (N, 3), in steps.

    These are the least of its highest red, green and blue; the median of its lightness; and the mean of what the highest of red, green
    and blue is above the lowest.

    Args:
        signatures: uint8 (N, H, W, 3).
    """
    white = signatures.max(axis=(1, 2)).min(axis=1)
    middle = np.median([cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY) for picture in signatures], axis=(1, 2))
    colour = (signatures.max(axis=3) - signatures.min(axis=3)).mean(axis=(1, 2))
    return np.asarray(np.stack([white, middle, colour], axis=1) / STEPS, np.float64)
