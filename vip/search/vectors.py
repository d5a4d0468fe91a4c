"""The vectors of keyframes on disk, and the exact search in them.

    vectors.f32     float32 (N, D), rows of length 1
    vectors.i8      the same rows, rounded to int8
    vectors.bounds  float32 (N, 2): what one step of a rounded row is worth, and the length of what rounding took away

A search reads the rounded rows. By Cauchy and Schwarz the cosine of a row differs from that of its rounded row by no more than the length
of the difference, so most rows cannot be among the best; only the others are read whole. The result is that of a search in all whole rows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vip import files
from vip.cores import cores
from vip.errors import StoreError
from vip.records import Vectors

BLOCK_ROWS = 512  # converted at once: they stay in the cache of a core
BLAS_NUMBERS = 8192  # of a product that BLAS makes in the thread that asks for it
MOST_THREADS = 8  # memory gives no more
STEPS = 127
ROUNDING = 1e-6  # of the sums themselves
NAMES = ("vectors.f32", "vectors.i8", "vectors.bounds")

Slots = npt.NDArray[np.int64]
Column = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Nearest:
    """The best rows of a search, best first."""

    slots: Slots
    cosines: Column
    mean: float
    """The mean cosine of all rows that were searched."""


def merged(found: Sequence[Nearest], count: int, mean: float) -> Nearest:
    """Return the best `count` rows of several searches."""
    slots, cosines = np.concatenate([one.slots for one in found]), np.concatenate([one.cosines for one in found])
    best = np.lexsort((slots, -cosines))[:count]
    return Nearest(slots[best], cosines[best], mean)


class VectorFiles:
    """The vectors of one embedder: N slots, some of which may be empty. Their folder is no link."""

    def __init__(self, folder: Path, dim: int, slots: int) -> None:
        self.folder, self.dim, self.slots = folder, dim, slots

    def write(self, slots: Slots, vectors: Vectors) -> None:
        """Write vectors to these slots, in ascending order; the files grow where they have to.

        Raises:
            StoreError: the disk is full, or a file cannot be written.
        """
        steps = np.maximum(np.abs(vectors).max(axis=1), np.finfo(np.float32).tiny) / STEPS
        rounded = np.rint(vectors / steps[:, None]).astype(np.int8)
        lost = np.linalg.norm(vectors - rounded * steps[:, None], axis=1)
        columns: tuple[npt.NDArray[Any], ...] = (vectors, rounded, np.stack([steps, lost], axis=1).astype(np.float32))
        breaks = np.flatnonzero(np.diff(slots) != 1) + 1
        for name, column in zip(NAMES, columns, strict=True):
            try:
                with files.open_to_append(self.folder / name, inside=self.folder.parent) as file:
                    for first, rows in zip(np.split(slots, breaks), np.split(column, breaks), strict=True):
                        if len(rows):
                            file.seek(int(first[0]) * rows[0].nbytes)
                            file.write(rows.tobytes())
            except OSError as exc:
                raise StoreError(f"{self.folder / name} cannot be written: {exc.strerror}. Make room, or delete {self.folder}.") from exc
        self.slots = max(self.slots, int(slots[-1]) + 1) if len(slots) else self.slots

    def rows(self, slots: Slots) -> Vectors:
        """Return the whole vectors of slots.

        Raises:
            StoreError: the file is damaged.
        """
        with ExitStack() as stack:
            return np.asarray(self._mapped(stack, NAMES[0], np.float32, self.dim)[slots])

    def nearest(self, query: Column, count: int, allowed: npt.NDArray[np.bool_] | None = None) -> Nearest:
        """Return the `count` rows with the greatest cosine to a vector of length 1.

        Args:
            allowed: bool (N,), which slots may be found; None: all.

        Raises:
            StoreError: a file is damaged.
        """
        with ExitStack() as stack:
            whole = self._mapped(stack, NAMES[0], np.float32, self.dim)
            rounded = self._mapped(stack, NAMES[1], np.int8, self.dim)
            bounds = self._mapped(stack, NAMES[2], np.float32, 2)
            found = _nearest(whole, rounded, np.asarray(bounds), query, count, allowed)
            if not (np.isfinite(bounds).all() and np.isfinite(found.cosines).all()):
                raise StoreError(f"{self.folder}: damaged (a vector has no length). Delete it; the next search makes it again.")
            return found

    def _mapped(self, stack: ExitStack, name: str, kind: type[np.float32] | type[np.int8], width: int) -> npt.NDArray[Any]:
        path = self.folder / name
        try:
            file = stack.enter_context(files.open_file(path, inside=self.folder.parent, most_bytes=2**42))
            if os.fstat(file.fileno()).st_size < self.slots * width * np.dtype(kind).itemsize:
                raise StoreError(f"{path}: damaged (it is too short). Delete {self.folder}; the next search makes it again.")
            return np.memmap(file, kind, "r", shape=(self.slots, width))
        except OSError as exc:
            raise StoreError(f"{path} cannot be read: {exc.strerror}. Delete {self.folder}; the next search makes it again.") from exc


def _nearest(
    whole: Vectors, rounded: npt.NDArray[np.int8], bounds: Column, query: Column, count: int, allowed: npt.NDArray[np.bool_] | None
) -> Nearest:
    cosines = _rounded_cosines(rounded, query) * bounds[:, 0]
    lost = bounds[:, 1] + np.float32(ROUNDING)
    places = np.flatnonzero(allowed) if allowed is not None else None
    if places is not None:
        cosines, lost = cosines[places], lost[places]
    if not len(cosines) or count < 1:
        return Nearest(np.empty(0, np.int64), np.empty(0, np.float32), 0.0)
    count = min(count, len(cosines))
    at_least = np.partition(cosines - lost, len(cosines) - count)[len(cosines) - count]
    maybe = np.flatnonzero(cosines + lost >= at_least)
    slots = maybe if places is None else places[maybe]
    exact = cosines_of(whole[slots], query)
    best = np.lexsort((slots, -exact))[:count]
    return Nearest(slots[best], exact[best], float(cosines.mean(dtype=np.float64)))


def cosines_of(vectors: Vectors, query: Column) -> Column:
    """Return the cosine of each row (N,); equal rows have equal ones, which BLAS does not promise: it takes several rows at a time."""
    return np.asarray(np.einsum("ij,j->i", vectors, query), np.float32)


def _rounded_cosines(rounded: npt.NDArray[np.int8], query: Column) -> Column:
    """Return the products of all rounded rows with the query, in steps."""
    found = np.empty(len(rounded), np.float32)
    threads = min(cores(), MOST_THREADS)
    edges = np.linspace(0, len(rounded), threads + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:
        parts = [pool.submit(_multiply, rounded[start:end], query, found[start:end]) for start, end in pairwise(edges)]
        for part in parts:
            part.result()
    return found


def _multiply(rounded: npt.NDArray[np.int8], query: Column, found: Column) -> None:
    """Write the products of rounded rows with the query to `found`.

    BLAS gets a few rows at a time: for more it starts threads of its own, which wait for each other on a busy machine.
    """
    rows, dim = max(1, BLAS_NUMBERS // len(query)), len(query)
    buffer = np.zeros((max(1, BLOCK_ROWS // rows), rows, dim), np.float32)
    flat = buffer.reshape(-1, dim)
    for start in range(0, len(rounded), len(flat)):
        block = rounded[start : start + len(flat)]
        np.copyto(flat[: len(block)], block)
        found[start : start + len(block)] = np.matmul(buffer, query).reshape(-1)[: len(block)]
