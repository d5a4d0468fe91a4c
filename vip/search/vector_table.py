"""The vectors of more keyframes than are searched one by one: a table of LanceDB with an index of the kind IVF_PQ.

In: the slots of keyframes and their vectors, in batches that fit into memory. Out: the nearest of them. The table lies on this machine or
on S3. The index says which rows may be the best (inverted lists of product-quantized rows: Jégou, Douze and Schmid, TPAMI 2011); those are
read whole, so the cosines are exact, and only rows that the index rates far too low are missed.

Every change makes a new version of the table. The database of the search names the version that goes with it: what a killed process
has written is no part of that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vip import files, user_state
from vip.dataset import storage
from vip.dataset.sanitize import without_secrets
from vip.errors import BackendError, StoreError
from vip.records import Vectors
from vip.search.vectors import Column, Nearest, Slots, cosines_of, merged

if TYPE_CHECKING:
    import pyarrow as pa

Allowed = npt.NDArray[np.bool_]
INSTALL = "pip install 'vip-keyframes[search]'"
NAME = "vectors"
ADVICE = "Make room, or delete the index; the next search makes it again."
LEAST_TRAINED = 65_536  # rows; fewer are compared one by one
PARTITION_ROWS = 4096
MOST_PARTITIONS = 4096
PART_NUMBERS = 8  # of a vector, that a byte stands for
SAMPLE_ROUNDS = 20
SAMPLE_RATE = 64  # rows for each partition
MOST_SCANNED = 5_000_000  # rows whose bytes are compared: 0.3 s on two cores
READ_AT_ONCE = 20  # rows for each that is wanted; reading goes on while it finds better ones
MOST_READ = 200
MOST_LISTED = 10_000  # allowed rows that are named one by one
MOST_RATED = 200_000
OLD = timedelta(days=1)  # a search that began before this has ended


def is_installed() -> bool:
    return find_spec("lancedb") is not None


class VectorTable:
    """The table of one embedder."""

    def __init__(self, address: str, dim: int, version: int | None = None) -> None:
        self.address, self.dim, self.version = address, dim, version

    def append(self, batches: Iterable[tuple[Slots, Vectors]]) -> None:
        """Add rows; each batch becomes a fragment of its own.

        Raises:
            StoreError: the table cannot be written.
            BackendError: LanceDB is not installed.
        """
        with self._writing() as table:
            for slots, vectors in batches:
                table.add(_rows(slots, vectors))

    def remove(self, slots: Slots) -> None:
        """Remove rows; errors as of `append`."""
        with self._writing() as table:
            for start in range(0, len(slots), MOST_LISTED):
                table.delete(_among(slots[start : start + MOST_LISTED]))

    def train(self, trained: int) -> int:
        """Put all rows into the index, and return for how many rows it was made: anew where there are twice as many as before.

        Errors as of `append`.
        """
        with self._writing() as table:
            rows = table.count_rows()
            if rows < LEAST_TRAINED:
                return trained
            if rows >= 2 * trained:
                table.create_index("vector", config=_index(rows, self.dim), replace=True)
                trained = rows
            table.optimize(cleanup_older_than=OLD)
            return trained

    def nearest(self, query: Column, count: int, allowed: Allowed | None, trained: int) -> Nearest:
        """Return the `count` rows with the greatest cosine to a vector of length 1; their mean is not known here.

        Args:
            allowed: bool (N,), which slots may be found; None: all.
            trained: for how many rows the index was made.

        Raises:
            StoreError: the table is damaged or cannot be read.
            BackendError: LanceDB is not installed.
        """
        with _translated(self.address, "read"):
            table = self._open()
            if allowed is not None and np.count_nonzero(allowed) <= MOST_LISTED:
                return _best(_named(table, np.flatnonzero(allowed)), query, count)
            return _best_rated(table, _rated_high(table, query, count * MOST_READ, allowed, trained), query, count)

    def _open(self) -> Any:
        folder = storage.local_path(self.address)
        if folder and not folder.is_dir():
            raise FileNotFoundError("it is gone")
        table = _connection(self.address).open_table(NAME)
        table.checkout(self.version)
        return table

    @contextmanager
    def _writing(self) -> Iterator[Any]:
        """Give the table as the database knows it, whatever was written after that, and note its version at the end."""
        with _translated(self.address, "written"):
            connection = _connection(self.address, is_new=self.version is None)
            if self.version is None:
                table = connection.create_table(NAME, schema=_schema(self.dim), mode="overwrite")
            else:
                table = connection.open_table(NAME)
                if table.version != self.version:
                    table.checkout(self.version)
                    table.restore()
            yield table
            self.version = int(table.version)


def batch_rows(dim: int) -> int:
    """Return how many rows of so many numbers are moved at once: 128 MB of them."""
    return max(1024, 2**27 // (4 * dim))


def _named(table: Any, slots: Slots) -> pa.Table:
    """Return the rows of slots, whole."""
    return table.search().where(_among(slots)).limit(len(slots)).to_arrow() if len(slots) else table.head(0)


def _rated_high(table: Any, query: Column, wanted: int, allowed: Allowed | None, trained: int) -> list[int]:
    """Return the rows that the index rates highest, best first."""
    rows = table.count_rows()
    share = 1.0 if allowed is None else np.count_nonzero(allowed) / len(allowed)
    search = table.search(query).distance_type("dot").nprobes(_probed(trained, rows)).limit(min(MOST_RATED, int(wanted / share) + 1))
    rated = search.select(["slot", "_distance"]).with_row_id(True).to_arrow()
    ids = rated["_rowid"].to_numpy()
    if allowed is not None:
        ids = ids[allowed[rated["slot"].to_numpy()]]
    return [int(row) for row in ids[:wanted]]


def _best_rated(table: Any, rated: list[int], query: Column, count: int) -> Nearest:
    """Return the best of rows that the index has rated. They are read in batches, until one brings nothing better."""
    found = Nearest(np.empty(0, np.int64), np.empty(0, np.float32), 0.0)
    for start in range(0, len(rated), step := count * READ_AT_ONCE):
        batch = _best(table.take_row_ids(rated[start : start + step]).select(["slot", "vector"]).to_arrow(), query, count)
        better = merged([found, batch], count, 0.0)
        if start and np.array_equal(better.slots, found.slots):
            break
        found = better
    return found


def _best(found: pa.Table, query: Column, count: int) -> Nearest:
    slots = found["slot"].to_numpy()
    vectors = np.concatenate([np.empty(0, np.float32), *(chunk.flatten().to_numpy() for chunk in found["vector"].chunks)])
    cosines = cosines_of(vectors.reshape(len(slots), len(query)), query)
    best = np.lexsort((slots, -cosines))[:count]
    return Nearest(slots[best], cosines[best], 0.0)


def _probed(trained: int, rows: int) -> int:
    """Return how many partitions a search looks into: all of them, up to a number of rows."""
    partitions = _partitions(trained)
    return max(1, round(partitions * min(1.0, MOST_SCANNED / max(rows, 1))))


def _partitions(rows: int) -> int:
    return min(max(rows // PARTITION_ROWS, 1), MOST_PARTITIONS)


def _index(rows: int, dim: int) -> Any:
    from lancedb.index import IvfPq

    parts = next(parts for parts in range(max(dim // PART_NUMBERS, 1), 0, -1) if dim % parts == 0)
    return IvfPq(
        distance_type="dot",
        num_partitions=_partitions(rows),
        num_sub_vectors=parts,
        max_iterations=SAMPLE_ROUNDS,
        sample_rate=SAMPLE_RATE,
    )


def _among(slots: Slots) -> str:
    return f"slot IN ({', '.join(map(str, slots.tolist()))})"


def _schema(dim: int) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([pa.field("slot", pa.int64(), nullable=False), pa.field("vector", pa.list_(pa.float32(), dim), nullable=False)])


def _rows(slots: Slots, vectors: Vectors) -> pa.Table:
    import pyarrow as pa

    column = pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(vectors, np.float32).ravel()), vectors.shape[1])
    return pa.table({"slot": slots, "vector": column}, schema=_schema(vectors.shape[1]))


def _check_own(folder: Path, *, is_new: bool) -> None:
    """Refuse a table that this machine did not make in this folder: a table may name files and servers anywhere.

    Raises:
        OSError: it was made elsewhere, or the folder is a link.
    """
    if is_new and not _is_own(folder):
        files.remove_folder(folder)
        files.make_folder(folder, inside=folder.parent)
        user_state.remember("tables", _mark(folder))
    elif not _is_own(folder):
        raise OSError("it is a link, or was made on another machine")


def _is_own(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink() and user_state.knows("tables", _mark(folder))


def _mark(folder: Path) -> str:
    return f"{folder.resolve()}\n{folder.stat().st_ino}"


def _connection(address: str, *, is_new: bool = False) -> Any:
    os.environ.setdefault("LANCEDB_LOG", "error")
    try:
        import lancedb
    except ImportError as exc:
        raise BackendError(f"This index needs LanceDB. Install it with {INSTALL}.") from exc
    if folder := storage.local_path(address):
        _check_own(folder, is_new=is_new)
        return lancedb.connect(folder)
    scheme, _, rest = address.partition("://")
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
    options = {"allow_http": "true"} if endpoint.startswith("http://") else None
    return lancedb.connect(f"{'s3' if scheme == 's3a' else scheme}://{rest}", storage_options=options)


@contextmanager
def _translated(address: str, done: str) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError, ValueError) as exc:
        why = " ".join(without_secrets(str(exc)).split())[:200].rstrip(".")
        raise StoreError(f"{without_secrets(address)} cannot be {done}: {why}. {ADVICE}") from exc
