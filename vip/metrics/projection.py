"""Vectors on a plane by t-SNE (Van der Maaten and Hinton 2008), by the library scikit-learn."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

from vip.errors import BackendError

Vectors = npt.NDArray[np.float64]
PERPLEXITY = 30.0
"""The library's default; the paper names none."""
LEAST_ROWS = 4


def check_tsne() -> None:
    """Refuse to go on without the library.

    Raises:
        BackendError: it is not installed.
    """
    if find_spec("sklearn") is None:
        raise BackendError("t-SNE needs scikit-learn. Run `pip install 'vip-keyframes[eval]'`.")


def project_tsne(vectors: Vectors, *, seed: int) -> Vectors:
    """Return float64 (N, 2), the places of rows (N, D) on a plane, each axis from 0 to 1; equal for equal seeds.

    The perplexity is 30, and a third of the rows where there are fewer than 91.

    Raises:
        BackendError: scikit-learn is not installed.
        ValueError: there are fewer than four rows.
    """
    if len(vectors) < LEAST_ROWS:
        raise ValueError(f"expected {LEAST_ROWS} rows or more, got {len(vectors)}")
    check_tsne()
    from sklearn.manifold import TSNE

    perplexity = min(PERPLEXITY, (len(vectors) - 1) / 3)
    places = TSNE(perplexity=perplexity, init="random", random_state=seed).fit_transform(np.asarray(vectors, dtype=np.float64))
    low, high = places.min(axis=0), places.max(axis=0)
    return np.asarray((places - low) / np.where(high > low, high - low, 1), dtype=np.float64)
