"""The index of a search: a SQLite database of texts and times, and files of vectors beside it.

    index.sqlite   sources with their stamps, videos, keyframes, and the texts in a table of FTS5
    embedder-N…/   the vectors of one embedder, see `vip.search.embedder_vectors`

An index is a copy of what its sources hold: it may be deleted at any time. A source that is read again replaces its rows in one
transaction, with its new stamp: after a killed update the next one reads it again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vip import databases, files
from vip.dataset import storage
from vip.errors import BackendError, StoreError
from vip.search.documents import IndexedKeyframe, IndexedVideo, KeyframeTexts
from vip.search.embedder_vectors import EmbedderVectors, StoredEmbedder
from vip.search.query_text import separated
from vip.search.vectors import Slots
from vip.untrusted import DAMAGE, one_line

DATABASE = "index.sqlite"
VERSION = 2
MOST_PROBLEM_LETTERS = 150
MOST_UNCOUNTED = 2**26  # numbers of vectors in files, which a search compares in an instant
AGAIN = "Delete {}; the next search makes it again."
TOKENIZER = "porter unicode61 remove_diacritics 2"
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS
    sources (id INTEGER PRIMARY KEY, address TEXT NOT NULL, part TEXT NOT NULL, stamp TEXT NOT NULL, UNIQUE (address, part));
CREATE TABLE IF NOT EXISTS embedders (id INTEGER PRIMARY KEY, label TEXT NOT NULL, dim INTEGER NOT NULL, slots INTEGER NOT NULL DEFAULT 0,
    settled INTEGER NOT NULL DEFAULT 0, indexed INTEGER NOT NULL DEFAULT 0, trained INTEGER NOT NULL DEFAULT 0,
    version INTEGER, mean BLOB, UNIQUE (label, dim));
CREATE TABLE IF NOT EXISTS
    videos (id INTEGER PRIMARY KEY, source INTEGER NOT NULL, name TEXT, origin TEXT, youtube_id TEXT, domains TEXT, aspect REAL);
CREATE INDEX IF NOT EXISTS videos_of_source ON videos (source);
CREATE TABLE IF NOT EXISTS keyframes (id INTEGER PRIMARY KEY, video INTEGER NOT NULL, number INTEGER NOT NULL, keyframe_id TEXT NOT NULL,
    time_s REAL, start_s REAL, end_s REAL, picture TEXT NOT NULL, has_people INTEGER NOT NULL, embedder INTEGER, slot INTEGER);
CREATE UNIQUE INDEX IF NOT EXISTS keyframes_of_video ON keyframes (video, number);
CREATE UNIQUE INDEX IF NOT EXISTS keyframe_in_slot ON keyframes (embedder, slot) WHERE slot IS NOT NULL;
CREATE TABLE IF NOT EXISTS free_slots (embedder INTEGER NOT NULL, slot INTEGER NOT NULL, PRIMARY KEY (embedder, slot)) WITHOUT ROWID;
CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5({", ".join(KeyframeTexts._fields)}, tokenize = '{TOKENIZER}');
CREATE VIRTUAL TABLE IF NOT EXISTS terms USING fts5vocab(texts, row);
PRAGMA user_version = {VERSION};
"""


INSERT_TEXTS = f"INSERT INTO texts (rowid, {', '.join(KeyframeTexts._fields)}) VALUES (?{', ?' * len(KeyframeTexts._fields)})"


class Source(NamedTuple):
    """What is read and replaced as a whole: a run folder, or a shard of a data set."""

    address: str
    part: str
    """The number of the shard; "" for a run folder."""

    @property
    def columns(self) -> tuple[str | bytes, str]:
        """As the database keeps them."""
        return stored(self.address), self.part


def stored(name: str) -> str | bytes:
    """Return a name as the database keeps it: bytes where it is not UTF-8, as names of files may be."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogatepass")
    return name


def name_of(value: str | bytes) -> str:
    """Return a name that the database keeps."""
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value


class SearchIndex:
    """An open index."""

    def __init__(self, folder: Path, connection: sqlite3.Connection, address: str) -> None:
        self.folder, self.connection, self.address = folder, connection, address

    @property
    def is_remote(self) -> bool:
        """Whether this is a copy of an index that lies elsewhere."""
        return storage.local_path(self.address) is None

    def stamps(self) -> dict[Source, str]:
        """Return the sources with the stamps that they had when they were read."""
        return {
            Source(name_of(address), part): stamp
            for address, part, stamp in self.connection.execute("SELECT address, part, stamp FROM sources")
        }

    def embedders(self) -> list[StoredEmbedder]:
        """Return the embedders whose vectors keyframes have."""
        query = "SELECT * FROM embedders WHERE EXISTS (SELECT 1 FROM keyframes WHERE embedder = embedders.id AND slot IS NOT NULL)"
        found = [_sound(StoredEmbedder(*row)) for row in self.connection.execute(query)]
        if any((one.slots - one.settled) * one.dim > MOST_UNCOUNTED for one in found):  # files with holes can be of any size
            (most,) = self.connection.execute("SELECT (SELECT count(*) FROM keyframes) + (SELECT count(*) FROM free_slots)").fetchone()
            if any(one.slots - one.settled > most for one in found):
                raise sqlite3.DatabaseError("an embedder has more vectors than there are keyframes")
        return found

    def vectors(self, embedder: StoredEmbedder) -> EmbedderVectors:
        """Return the vectors of an embedder."""
        return EmbedderVectors(embedder, self.folder, self.address)

    def settle(self, embedder: StoredEmbedder) -> None:
        """Move the vectors of an embedder from files to its table.

        Raises:
            StoreError: the table cannot be written.
            BackendError: LanceDB is not installed.
        """
        vectors, key = self.vectors(embedder), (embedder.id, embedder.settled)
        with self.transaction():
            used = self._numbers("SELECT slot FROM keyframes WHERE embedder = ? AND slot >= ? ORDER BY slot", key)
            gone = self._numbers("SELECT slot FROM free_slots WHERE embedder = ? AND slot < ?", key)
            vectors.settle(used, gone)
            self.connection.execute("DELETE FROM free_slots WHERE embedder = ?", (embedder.id,))
            self._note_table(embedder, settled=embedder.slots, version=vectors.table.version, mean=vectors.mean.tobytes())
        vectors.forget_files()

    def train(self, embedder: StoredEmbedder) -> None:
        """Bring the index of an embedder's table up to date; errors as of `settle`."""
        table = self.vectors(embedder).table
        with self.transaction():
            trained = table.train(embedder.trained)
            self._note_table(embedder, indexed=embedder.settled, trained=trained, version=table.version)

    def _note_table(self, embedder: StoredEmbedder, **columns: object) -> None:
        changes = ", ".join(f"{name} = ?" for name in columns)
        self.connection.execute(f"UPDATE embedders SET {changes} WHERE id = ?", (*columns.values(), embedder.id))

    def _numbers(self, query: str, values: tuple[object, ...]) -> Slots:
        return np.fromiter((number for (number,) in self.connection.execute(query, values)), np.int64)

    def count(self) -> int:
        """Return the number of keyframes."""
        return int(self.connection.execute("SELECT count(*) FROM keyframes").fetchone()[0])

    def aspects(self, most: int) -> list[float]:
        """Return the shapes that most videos have: width in units of height."""
        query = "SELECT aspect FROM videos WHERE aspect IS NOT NULL GROUP BY aspect ORDER BY count(*) DESC, aspect LIMIT ?"
        return [aspect for (aspect,) in self.connection.execute(query, (most,))]

    def remove(self, sources: Iterable[Source]) -> None:
        """Remove what was read of these sources."""
        for source in sources:
            joined = "keyframes k JOIN videos v ON v.id = k.video JOIN sources s ON s.id = v.source"
            rows = f"(SELECT k.id FROM {joined} WHERE s.address = ? AND s.part = ?)"
            for statement in (
                f"DELETE FROM texts WHERE rowid IN {rows}",
                f"INSERT INTO free_slots SELECT embedder, slot FROM keyframes WHERE slot IS NOT NULL AND id IN {rows}",
                f"DELETE FROM keyframes WHERE id IN {rows}",
                "DELETE FROM videos WHERE source = (SELECT id FROM sources WHERE address = ? AND part = ?)",
                "DELETE FROM sources WHERE address = ? AND part = ?",
            ):
                self.connection.execute(statement, source.columns)

    def add(self, source: Source, stamp: str, videos: Iterable[IndexedVideo]) -> int:
        """Add what was read of a source, and return the number of its keyframes.

        Raises:
            StoreError: the disk is full.
        """
        values = "INSERT INTO sources (address, part, stamp) VALUES (?, ?, ?)"
        number = self.connection.execute(values, (*source.columns, stamp)).lastrowid
        return sum(self._add_video(number, video) for video in videos)

    def _add_video(self, source: int | None, video: IndexedVideo) -> int:
        about = (source, stored(video.name), stored(video.source), video.youtube_id, "\n".join(video.domains), video.aspect)
        values = "INSERT INTO videos (source, name, origin, youtube_id, domains, aspect) VALUES (?, ?, ?, ?, ?, ?)"
        number = self.connection.execute(values, about).lastrowid
        embedder, slots = self._store_vectors(video)
        for place, frame in enumerate(video.keyframes):
            row = self.connection.execute(
                "INSERT INTO keyframes (video, number, keyframe_id, time_s, start_s, end_s, picture, has_people, embedder, slot)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (number, place + 1, *_columns(frame), embedder, int(slots[place]) if slots is not None else None),
            ).lastrowid
            texts = tuple(separated(text) for text in frame.texts)
            if any(texts):
                self.connection.execute(INSERT_TEXTS, (row, *texts))
        return len(video.keyframes)

    def _store_vectors(self, video: IndexedVideo) -> tuple[int | None, Slots | None]:
        vectors = [frame.vector for frame in video.keyframes if frame.vector is not None]
        if video.embedder is None or not vectors or len(vectors) < len(video.keyframes):
            return None, None
        matrix = np.asarray(vectors, np.float32)
        embedder = self._embedder(video.embedder, matrix.shape[1])
        slots = self._take_slots(embedder, len(matrix))
        self.vectors(embedder).write(slots, matrix)
        self.connection.execute("UPDATE embedders SET slots = max(slots, ?) WHERE id = ?", (int(slots[-1]) + 1, embedder.id))
        return embedder.id, slots

    def _embedder(self, label: str, dim: int) -> StoredEmbedder:
        self.connection.execute("INSERT OR IGNORE INTO embedders (label, dim) VALUES (?, ?)", (label, dim))
        query = "SELECT * FROM embedders WHERE label = ? AND dim = ?"
        return _sound(StoredEmbedder(*self.connection.execute(query, (label, dim)).fetchone()))

    def _take_slots(self, embedder: StoredEmbedder, count: int) -> Slots:
        """Return free slots in ascending order: first those of rows that were removed, then new ones at the end."""
        query = "SELECT slot FROM free_slots WHERE embedder = ? AND slot BETWEEN ? AND ? ORDER BY slot LIMIT ?"
        free = [slot for (slot,) in self.connection.execute(query, (embedder.id, embedder.settled, embedder.slots - 1, count))]
        self.connection.executemany("DELETE FROM free_slots WHERE embedder = ? AND slot = ?", ((embedder.id, slot) for slot in free))
        new = range(embedder.slots, embedder.slots + count - len(free))
        return np.array([*free, *new], np.int64)

    def update(self, wanted: Mapping[Source, str]) -> list[Source]:
        """Remove the sources that are not wanted, and return those that are new or changed, in the order in which they were given."""
        known = self.stamps()
        gone = known.keys() - wanted.keys()
        if gone:
            with self.transaction():
                self.remove(gone)
        return [source for source, stamp in wanted.items() if known.get(source) != stamp]

    def close_journal(self) -> None:
        """Bring what was committed into the file of the database itself."""
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Translate what reading impossible values leads to; the index may come from a stranger.

        Raises:
            StoreError: a row is not as vip writes it.
        """
        try:
            yield
        except DAMAGE as exc:
            raise StoreError(f"{self.folder / DATABASE}: damaged ({_shortened(exc)}). {AGAIN.format(self.folder)}") from exc

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what the block does, or nothing of it."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")


def _sound(embedder: StoredEmbedder) -> StoredEmbedder:
    if not embedder.is_sound:
        raise sqlite3.DatabaseError("the numbers of an embedder cannot be")
    return embedder


def _columns(frame: IndexedKeyframe) -> tuple[object, ...]:
    row = frame.record
    return stored(row.id), row.time_s, frame.start_s, frame.end_s, stored(row.image_path), int(frame.has_people)


@contextmanager
def opened(folder: Path, address: str | None = None) -> Iterator[SearchIndex]:
    """Open the index in a folder, and create it where there is none.

    Args:
        address: where its tables of vectors lie; None: in the folder.

    Raises:
        StoreError: it is damaged, of another version, or cannot be written.
        BackendError: Python's SQLite has no FTS5.
    """
    with _translated(folder):
        try:
            files.make_folder(folder)
            connection = databases.connect(folder / DATABASE, SCHEMA, version=VERSION, inside=folder)
        except OSError as exc:
            raise StoreError(f"{folder / DATABASE} cannot be opened: {exc.strerror}. Name another folder for the index.") from exc
        with closing(connection):
            _prepare(connection)
            yield SearchIndex(folder, connection, address or str(folder))


def _prepare(connection: sqlite3.Connection) -> None:
    databases.write_ahead(connection)
    for pragma in ("synchronous = NORMAL", "mmap_size = 2147483648"):
        connection.execute(f"PRAGMA {pragma}")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:  # what another process made in the meantime stays
        connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
    elif version != VERSION:
        raise sqlite3.DatabaseError(f"it has version {version}, and this vip knows {VERSION}")


@contextmanager
def _translated(folder: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as exc:
        if "no such module" in str(exc):
            raise BackendError("The SQLite of this Python has no full-text search (FTS5). Use the Python of Debian.") from exc
        raise StoreError(
            f"{folder / DATABASE}: {_shortened(exc)}. Run the same command again; if that does not help, delete {folder}."
        ) from exc
    except (sqlite3.Error, UnicodeDecodeError) as exc:
        raise StoreError(f"{folder / DATABASE}: damaged ({_shortened(exc)}). {AGAIN.format(folder)}") from exc


def _shortened(exc: Exception) -> str:
    """Return what SQLite says on one line; it quotes what is damaged."""
    return one_line(str(exc))[:MOST_PROBLEM_LETTERS]
