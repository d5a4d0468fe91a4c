"""Black bars above and below a picture, or on either side: shots of one source have the same ones, and other sources often others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BLACK_LEVEL = 10  # of 255: what coding leaves of black; a night is hardly as dark all along an edge


def bars_of(signatures: npt.NDArray[np.uint8]) -> npt.NDArray[np.intp]:
    """Return how many rows above and below each picture are black, and how many columns on either side: (N, 2).

    Args:
        signatures: uint8 (N, H, W, 3).
    """
    red, green, blue = np.moveaxis(signatures, 3, 0)
    is_black = np.maximum(np.maximum(red, green), blue) <= BLACK_LEVEL
    return np.stack([_bar(is_black.all(axis=2)), _bar(is_black.all(axis=1))], axis=1)


def _bar(lines: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Return how many lines are black at both ends, of bool (N, lines); 0 where all are."""
    return np.asarray(np.minimum(lines.argmin(axis=1), lines[:, ::-1].argmin(axis=1)), np.intp)
