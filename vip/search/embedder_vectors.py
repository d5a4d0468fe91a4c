"""All vectors of one embedder: those that came last in files, which are searched exactly, and very many older ones in a table of LanceDB.

    embedder-N-M/       files of the slots from M on (`vip.search.vectors`)
    embedder-N/         the table of the slots before M (`vip.search.vector_table`)

Most indexes have no table. Slots of a table are not used again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vip import files
from vip.dataset import storage
from vip.errors import StoreError
from vip.records import Vectors
from vip.search.vector_table import Allowed, VectorTable, batch_rows
from vip.search.vectors import Column, Nearest, Slots, VectorFiles, merged

MOST_NUMBERS, MOST_SLOTS = 65_536, 500_000_000  # of a vector; of an index


class StoredEmbedder(NamedTuple):
    """An embedder that made vectors of the index."""

    id: int
    label: str
    """Its identity, or where a data set does not state that, its name."""
    dim: int
    slots: int
    settled: int
    """The slots before this one are in the table."""
    indexed: int
    """The slots before this one are in the index of the table."""
    trained: int
    """For how many rows that index was made."""
    version: int | None
    """Of the table."""
    mean: bytes | None
    """Of the vectors in the table: float64 (D,)."""

    @property
    def is_sound(self) -> bool:
        """Return whether the numbers can be; the row may come from a stranger."""
        counts = (self.dim, self.slots, self.settled, self.indexed, self.trained, self.version or 0)
        if not isinstance(self.label, str) or not all(isinstance(one, int) and one >= 0 for one in counts):
            return False
        has_mean = self.mean is None or (isinstance(self.mean, bytes) and len(self.mean) == 8 * self.dim)
        return has_mean and 0 < self.dim <= MOST_NUMBERS and self.settled <= self.slots <= MOST_SLOTS


class EmbedderVectors:
    """The vectors of one embedder: N slots, some of which may be empty."""

    def __init__(self, stored: StoredEmbedder, folder: Path, address: str) -> None:
        self.stored, self.folder = stored, folder
        self.files = VectorFiles(folder / f"embedder-{stored.id}-{stored.settled}", stored.dim, stored.slots - stored.settled)
        self.table = VectorTable(storage.join(address, f"embedder-{stored.id}"), stored.dim, stored.version)
        self.mean = np.zeros(stored.dim) if stored.mean is None else np.frombuffer(stored.mean)

    def write(self, slots: Slots, vectors: Vectors) -> None:
        """Write vectors to slots that are not in the table, in ascending order; errors as of `VectorFiles.write`."""
        try:
            files.make_folder(self.files.folder, inside=self.folder)
        except OSError as exc:
            raise StoreError(f"{self.files.folder} cannot be used: {exc.strerror}. Delete {self.folder}.") from exc
        self.files.write(slots - self.stored.settled, vectors)

    def settle(self, used: Slots, gone: Slots) -> None:
        """Move the used slots of the files to the table, and remove from it what is gone; errors as of `VectorTable`."""
        settled, total = self.stored.settled, self.mean * self.stored.settled

        def batches() -> Iterator[tuple[Slots, Vectors]]:
            nonlocal total
            edges = [*range(0, len(used), batch_rows(self.stored.dim)), len(used)]
            for start, end in pairwise(edges):
                vectors = self.files.rows(used[start:end] - settled)
                total = total + vectors.sum(axis=0, dtype=np.float64)
                yield used[start:end], vectors

        self.table.append(batches())
        if len(gone):
            self.table.remove(gone)
        self.mean = total / max(settled + len(used), 1)

    def forget_files(self) -> None:
        """Delete the files of slots that are in the table now, also those of a process that was killed before it did."""
        for path in self.folder.glob(f"embedder-{self.stored.id}-*"):
            files.remove_folder(path)

    def nearest(self, query: Column, count: int, allowed: Allowed | None = None) -> Nearest:
        """Return the `count` rows with the greatest cosine to a vector of length 1; errors as of `VectorFiles` and `VectorTable`.

        Args:
            allowed: bool (N,), which slots may be found; None: all.
        """
        settled, slots = self.stored.settled, self.stored.slots
        found, total = list[Nearest](), 0.0
        if slots > settled:
            recent = self.files.nearest(query, count, None if allowed is None else allowed[settled:])
            found.append(Nearest(recent.slots + settled, recent.cosines, recent.mean))
            total += recent.mean * (slots - settled)
        if settled:
            found.append(self.table.nearest(query, count, None if allowed is None else allowed[:settled], self.stored.trained))
            total += float(self.mean @ query) * settled
        return merged(found, count, total / slots)
