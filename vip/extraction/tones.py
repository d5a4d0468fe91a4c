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
    count = len(signatures)
    channels = np.ascontiguousarray(signatures.reshape(count, -1, 3).transpose(2, 0, 1))  # numpy compares long rows 30 times as fast
    white = channels.max(axis=2).min(axis=0)
    grey = cv2.cvtColor(signatures.reshape(1, -1, 3), cv2.COLOR_RGB2GRAY).reshape(count, -1)
    middle = np.median(grey, axis=1)
    colour = (channels.max(axis=0) - channels.min(axis=0)).mean(axis=1)
    return np.asarray(np.stack([white, middle, colour], axis=1) / STEPS, np.float64)
