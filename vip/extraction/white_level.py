"""How white the whitest tone of a picture is: shots of one source are exposed and graded alike, other sources often otherwise."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def white_levels(signatures: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Return of each picture the least of its highest red, green and blue, of 255: float64 (N,).

    Args:
        signatures: uint8 (N, H, W, 3).
    """
    return np.asarray(signatures.max(axis=(1, 2)).min(axis=1), np.float64)
