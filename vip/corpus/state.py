"""What has become of every item, in one SQLite file: so that a batch may be killed at any moment and goes on where it was.

    unchosen ▸ waiting ▸ (described) ▸ ready ▸ sharded            an item is in one state, and in one shard at most
                  ▲  ╲      ╲
               later   failed                                     later: tried, and due again at a time

Only the driver writes. What is being worked on counts as waiting, so whatever dies is simply done again. Changes come together
in one transaction (`commit`); parts and shards are on the disk before the state says so.
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from vip import files
from vip.corpus.items import BadRow
from vip.dataset.items import ListItem
from vip.dataset.shards import UndescribedKeyframe
from vip.errors import FailureKind, StoreError

NAME = "state.sqlite"
VERSION = 2
LONG_S = 1200  # from so long on a video is one of those that are begun first
TOGETHER = 10_000  # rows of a list in one statement
UNCHOSEN, WAITING, LATER, EXTRACTED, READY, SHARDED, FAILED = range(7)

SCHEMA = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE items (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, source TEXT NOT NULL, place TEXT NOT NULL, host TEXT NOT NULL,
    labels TEXT, verticals TEXT, topic TEXT, duration_s REAL, draw REAL NOT NULL, kept INTEGER NOT NULL,
    state INTEGER NOT NULL, tries INTEGER NOT NULL DEFAULT 0, lost INTEGER NOT NULL DEFAULT 0, due REAL,
    failure TEXT, message TEXT, youtube_id TEXT, shard INTEGER, rows INTEGER, bytes INTEGER, length_s REAL, ended REAL);
CREATE INDEX by_host ON items (host, id) WHERE state = 1;
CREATE INDEX by_length ON items (host, duration_s, id) WHERE state = 1 AND duration_s >= {LONG_S};
CREATE INDEX by_due ON items (due) WHERE state = 2;
CREATE INDEX by_end ON items (ended) WHERE ended IS NOT NULL;
CREATE INDEX on_the_way ON items (state, shard) WHERE state IN (3, 4);
CREATE INDEX failed ON items (failure) WHERE state = 6;
CREATE INDEX by_youtube_id ON items (youtube_id) WHERE youtube_id IS NOT NULL;
CREATE TABLE bad_rows (place TEXT NOT NULL, text TEXT NOT NULL, kind TEXT NOT NULL, message TEXT NOT NULL, PRIMARY KEY (place, text));
CREATE TABLE keyframes (item INTEGER NOT NULL, key TEXT NOT NULL, kind TEXT NOT NULL, message TEXT NOT NULL, PRIMARY KEY (item, key));
CREATE TABLE shards (
    number INTEGER PRIMARY KEY, written REAL, bytes INTEGER, rows INTEGER, undescribed INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 0, wanted INTEGER);
"""


@dataclass(frozen=True, slots=True)
class ItemEntry:
    """An item in the state, as it is handed out."""

    id: int
    item: ListItem
    tries: int


class SampledItem(NamedTuple):
    """An item of the list.

    Args:
        draw: of a sample those with the highest are taken.
        kept: whether it is taken where no number is asked for.
    """

    item: ListItem
    draw: float
    kept: bool


class StateDatabase:
    """The state of one batch. Changes are on the disk after `commit`."""

    def __init__(self, home: Path) -> None:
        self.home = home
        path = home / NAME
        try:
            files.check_database(path, inside=home.parent)
        except OSError as exc:
            raise StoreError(f"{path} cannot be used: {exc.strerror}. Delete it, or choose another -o.") from exc
        try:
            self._db = sqlite3.connect(path, isolation_level=None, timeout=30, check_same_thread=False)
        except sqlite3.Error as exc:
            raise _unusable(path, exc) from exc
        try:
            self._db.execute("PRAGMA trusted_schema = OFF")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA cache_size = -65536")
            if (version := self._version) == 0:
                version = self._create()
        except sqlite3.Error as exc:
            self._db.close()
            raise _unusable(path, exc) from exc
        if version != VERSION:
            self._db.close()
            raise StoreError(f"{path}: written by another vip (state {version}, this one knows {VERSION}). Use that one, or another -o.")

    @property
    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _create(self) -> int:
        """Make the tables, unless another process, such as `--status`, makes them at this moment."""
        self._db.execute("BEGIN IMMEDIATE")
        if self._version == 0:
            for statement in filter(str.strip, f"{SCHEMA} PRAGMA user_version = {VERSION}".split(";")):
                self._db.execute(statement)
        self._db.execute("COMMIT")
        return self._version

    def close(self) -> None:
        self.commit()
        self._db.close()

    def commit(self) -> None:
        """Put all changes since the last time onto the disk."""
        if self._db.in_transaction:
            with _translated(self.home):
                self._db.execute("COMMIT")

    def _write(self, sql: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        with _translated(self.home):
            if not self._db.in_transaction:
                self._db.execute("BEGIN IMMEDIATE")
            return self._db.execute(sql, values)

    @contextmanager
    def _as_one(self) -> Iterator[None]:
        """All changes in the block or none of them, wherever Ctrl-C hits."""
        self._write("SAVEPOINT one")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):  # where the disk is full, everything is rolled back already
                self._db.execute("ROLLBACK TO one")
                self._db.execute("RELEASE one")
            raise
        self._write("RELEASE one")

    def _all(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with _translated(self.home):
            return self._db.execute(sql, values).fetchall()

    # ------------------------------------------------------------ what holds for the whole batch

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was ever put into it."""
        tables = ("meta", "items", "bad_rows", "keyframes", "shards")
        return not self._all(" UNION ALL ".join(f"SELECT 1 FROM {name}" for name in tables) + " LIMIT 1", ())

    def get(self, name: str) -> Any:
        """A value by its name; None where there is none."""
        rows = self._all("SELECT value FROM meta WHERE name = ?", (name,))
        return json.loads(rows[0][0]) if rows else None

    def put(self, name: str, value: Any) -> None:
        self._write("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, json.dumps(value)))

    # ------------------------------------------------------------ the list

    def add(self, rows: Iterable[SampledItem | BadRow]) -> Iterator[int]:
        """Take up items and bad rows; items that are known already stay as they are, and of bad rows of a list only those stay that
        are still in it. Yields how many rows were read so far.
        """
        items: list[tuple[Any, ...]] = []
        count, lists = 0, set()
        for row in rows:
            count += 1
            where = row.where if isinstance(row, BadRow) else row.item.where
            if (name := where.rpartition(", ")[0] or where) not in lists:
                lists.add(name)
                self._forget_bad_rows(name)
            if isinstance(row, BadRow):
                self._write("INSERT OR IGNORE INTO bad_rows VALUES (?, ?, ?, ?)", (row.where, row.text, row.kind, row.message))
                continue
            items.append(_values(*row))
            if len(items) == TOGETHER:
                self._insert(items)
                yield count
        self._insert(items)
        yield count

    def _forget_bad_rows(self, name: str) -> None:
        """Those of a list, and so that no other list's are looked at: `!` is the letter behind the space."""
        self._write("DELETE FROM bad_rows WHERE place = ? OR (place > ? AND place < ?)", (name, f"{name}, ", f"{name},!"))

    def _insert(self, items: list[tuple[Any, ...]]) -> None:
        with _translated(self.home):
            if not self._db.in_transaction:
                self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(
                "INSERT OR IGNORE INTO items (key, kind, source, place, host, labels, verticals, topic, duration_s, draw, kept, state)"
                f" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {UNCHOSEN})",
                items,
            )
        items.clear()

    def choose(self, sample: int | None) -> int:
        """Choose among the items: those with the highest draw, or all that are kept. Returns how many are chosen now."""
        if sample is None:
            self._write(f"UPDATE items SET state = {WAITING} WHERE state = {UNCHOSEN} AND kept")
        else:
            self._write(
                f"UPDATE items SET state = {WAITING} WHERE id IN"
                f" (SELECT id FROM items WHERE state = {UNCHOSEN} AND draw > ? ORDER BY draw DESC LIMIT ?)",
                (-math.inf, max(0, sample - self._chosen())),
            )
        self.commit()
        return self._chosen()

    def _chosen(self) -> int:
        return int(self._all(f"SELECT count(*) FROM items WHERE state != {UNCHOSEN}")[0][0])

    def each_choice(self) -> Iterator[tuple[ListItem, int, int]]:
        """An item for all that have the same verticals and labels, how many these are, and how many of them are chosen."""
        sql = f"SELECT verticals, labels, count(*), sum(state != {UNCHOSEN}) FROM items GROUP BY verticals, labels"
        for verticals, labels, count, chosen in self._db.execute(sql):
            yield ListItem("", "file", "", "", _names(labels), _names(verticals)), count, chosen

    # ------------------------------------------------------------ handing out

    def hosts(self) -> list[str]:
        """Those of which something waits; "" stands for files."""
        found, host = [], self._next_host("")
        if self._all("SELECT 1 FROM items WHERE state = 1 AND host = '' LIMIT 1"):
            found.append("")
        while host is not None:  # a skip scan: as many steps as there are hosts
            found.append(host)
            host = self._next_host(host)
        return found

    def _next_host(self, host: str) -> str | None:
        value = self._all("SELECT min(host) FROM items WHERE state = 1 AND host > ?", (host,))[0][0]
        return str(value) if value is not None else None

    def has_hosts(self) -> bool:
        """Whether something is to be fetched."""
        return bool(self._all("SELECT 1 FROM items WHERE state IN (1, 2) AND host != '' LIMIT 1"))

    def has_undescribed(self) -> bool:
        return bool(self._all("SELECT 1 FROM keyframes LIMIT 1"))

    def has_done(self, host: str) -> bool:
        """Whether a host has given a video."""
        return bool(self._all("SELECT 1 FROM items WHERE state IN (4, 5) AND host = ? LIMIT 1", (host,)))

    def waiting(self, host: str, behind: int, count: int) -> list[ItemEntry]:
        """Items of a host that wait, behind the one of this number, in the order of the list; those that last long left out."""
        short = f"(duration_s IS NULL OR duration_s < {LONG_S})"
        sql = f"SELECT {COLUMNS} FROM items WHERE state = 1 AND host = ? AND id > ? AND {short} ORDER BY id LIMIT ?"
        return [_entry(row) for row in self._all(sql, (host, behind, count))]

    def waiting_long(self, host: str, behind: ItemEntry | None, count: int) -> list[ItemEntry]:
        """Items of a host that wait and last long, as the list says, behind this one; the longest first."""
        last = (behind.item.duration_s, behind.id) if behind else (math.inf, 0)
        sql = (
            f"SELECT {COLUMNS} FROM items WHERE state = 1 AND host = ? AND duration_s >= {LONG_S}"
            " AND (duration_s < ? OR (duration_s = ? AND id > ?)) ORDER BY duration_s DESC, id LIMIT ?"
        )
        return [_entry(row) for row in self._all(sql, (host, last[0], *last, count))]

    def due(self, now: float, count: int) -> list[ItemEntry]:
        """Items that are to be tried again now."""
        sql = f"SELECT {COLUMNS} FROM items WHERE state = 2 AND due <= ? ORDER BY due LIMIT ?"
        return [_entry(row) for row in self._all(sql, (now, count))]

    def later(self) -> dict[str, int]:
        """How many wait for another try, by what they failed of; the most frequent first."""
        return dict(self._all("SELECT failure, count(*) AS of FROM items WHERE state = 2 GROUP BY failure ORDER BY of DESC"))

    def next_due(self) -> float | None:
        """When the first of those that wait for another try is due; None where there is none."""
        value = self._all("SELECT min(due) FROM items WHERE state = 2")[0][0]
        return float(value) if value is not None else None

    # ------------------------------------------------------------ what became of an item

    def extracted(self, id: int, *, rows: int, size_bytes: int, length_s: float | None, youtube_id: str | None, ready: bool) -> None:  # noqa: A002
        """Its part lies here; `ready`: nothing more is to be done but to put it into a shard."""
        self._write(
            "UPDATE items SET state = ?, rows = ?, bytes = ?, length_s = ?, youtube_id = ?, ended = ?, failure = NULL, message = NULL,"
            " due = NULL WHERE id = ?",
            (READY if ready else EXTRACTED, rows, size_bytes, length_s, youtube_id, time.time() if ready else None, id),
        )

    def described(self, id: int, *, size_bytes: int) -> None:  # noqa: A002
        """Its part has the descriptions now."""
        self._write(f"UPDATE items SET state = {READY}, bytes = ?, ended = ? WHERE id = ?", (size_bytes, time.time(), id))

    def undescribed(self, id: int, failures: Iterable[tuple[str, str, str]]) -> None:  # noqa: A002
        """Keyframes of it that have no description: id, type, message."""
        self._write("DELETE FROM keyframes WHERE item = ?", (id,))
        for failure in failures:
            self._write("INSERT OR REPLACE INTO keyframes VALUES (?, ?, ?, ?)", (id, *failure))

    def failed(self, id: int, kind: FailureKind, message: str) -> None:  # noqa: A002
        """For good, unless the user asks for another try."""
        self._write(
            f"UPDATE items SET state = {FAILED}, tries = tries + 1, failure = ?, message = ?, due = NULL, ended = ? WHERE id = ?",
            (kind, message, time.time(), id),
        )

    def again(self, id: int, kind: FailureKind, message: str, due: float) -> None:  # noqa: A002
        """It failed, and is tried again at a time."""
        self._write(
            f"UPDATE items SET state = {LATER}, tries = tries + 1, failure = ?, message = ?, due = ? WHERE id = ?",
            (kind, message, due, id),
        )

    def lost(self, id: int) -> int:  # noqa: A002
        """The machine that worked on it is gone, which says nothing about the item. Returns how often that has happened."""
        self._write("UPDATE items SET lost = lost + 1 WHERE id = ?", (id,))
        return int(self._all("SELECT lost FROM items WHERE id = ?", (id,))[0][0])

    def twin(self, id: int, youtube_id: str) -> str | None:  # noqa: A002
        """The key of another item that turned out to be the same video, or is about to."""
        rows = self._all(
            "SELECT key FROM items WHERE id != ? AND ((youtube_id = ? AND state IN (3, 4, 5)) OR (key = ? AND state NOT IN (0, 6)))"
            " LIMIT 1",
            (id, youtube_id, youtube_id),
        )
        return str(rows[0][0]) if rows else None

    def retry(self, kind: str | None) -> int:
        """Let items that failed wait again: all, or those of one type. Returns how many."""
        more, values = (" AND failure = ?", (kind,)) if kind else ("", ())
        changed = self._write(f"UPDATE items SET state = {WAITING}, tries = 0, lost = 0, ended = NULL WHERE state = {FAILED}{more}", values)
        self.commit()
        return changed.rowcount

    def describe_again(self) -> int:
        """Let keyframes wait for their descriptions that could not be described. Returns how many.

        Those of parts that are in no shard yet wait with their parts; of shards a new generation is wanted.
        """
        of_parts = f"SELECT id FROM items WHERE state = {READY} AND shard IS NULL AND id IN (SELECT item FROM keyframes)"
        in_parts = self._all(f"SELECT count(*) FROM keyframes WHERE item IN ({of_parts})")[0][0]
        unwritten = "SELECT shard FROM items JOIN keyframes ON item = id WHERE shard IS NOT NULL"
        with self._as_one():
            self._write(f"UPDATE items SET state = {EXTRACTED}, ended = NULL WHERE id IN ({of_parts})")
            self._write(
                "UPDATE shards SET wanted = generation + 1 WHERE wanted IS NULL"
                f" AND (undescribed > 0 OR (written IS NULL AND number IN ({unwritten})))"
            )
        self.commit()
        return int(in_parts) + self.undescribed_wanted()

    def undescribed_wanted(self) -> int:
        """Keyframes in shards that are to be described again."""
        return int(self._all("SELECT total(undescribed) FROM shards WHERE wanted IS NOT NULL")[0][0])

    # ------------------------------------------------------------ parts and shards

    def to_describe(self) -> list[tuple[ItemEntry, int]]:
        """Parts that wait for their descriptions, and the bytes of each."""
        rows = self._all(f"SELECT {COLUMNS}, bytes FROM items WHERE state = {EXTRACTED} ORDER BY id")
        return [(_entry(row[:-1]), row[-1]) for row in rows]

    def with_parts(self) -> list[str]:
        """Keys of the items whose parts are to lie here."""
        return [row[0] for row in self._all("SELECT key FROM items WHERE state IN (3, 4)")]

    def loose(self) -> tuple[int, int]:
        """How many parts are ready and in no shard, and their bytes."""
        count, size = self._all(f"SELECT count(*), total(bytes) FROM items WHERE state = {READY} AND shard IS NULL")[0]
        return count, int(size)

    def begin_shard(self, most_bytes: int) -> int | None:
        """Assign parts that are ready to a new shard, and note that before anything is written. None where there are none."""
        number = int(self._all("SELECT coalesce(max(number) + 1, 0) FROM shards")[0][0])
        ids: list[tuple[int, int]] = []
        size = 0
        for id_, part in self._all(f"SELECT id, bytes FROM items WHERE state = {READY} AND shard IS NULL ORDER BY id"):
            if ids and size + part > most_bytes:
                break
            ids.append((number, id_))
            size += part
        if not ids:
            return None
        with self._as_one():
            self._write("INSERT INTO shards (number) VALUES (?)", (number,))
            self._db.executemany("UPDATE items SET shard = ? WHERE id = ?", ids)
        self.commit()
        return number

    def unwritten(self) -> list[int]:
        """Shards that were begun and are not in place."""
        return [row[0] for row in self._all("SELECT number FROM shards WHERE written IS NULL ORDER BY number")]

    def in_shard(self, number: int) -> list[ItemEntry]:
        return [_entry(row) for row in self._all(f"SELECT {COLUMNS} FROM items WHERE shard = ? AND state IN (4, 5) ORDER BY id", (number,))]

    def undo(self, id: int) -> None:  # noqa: A002
        """Its part is gone: it waits again."""
        self._write(f"UPDATE items SET state = {WAITING}, shard = NULL, ended = NULL WHERE id = ?", (id,))

    def drop_shard(self, number: int) -> None:
        """A shard that was begun, and of which nothing is left."""
        self._write("DELETE FROM shards WHERE number = ? AND written IS NULL", (number,))
        self.commit()

    def wrote(self, number: int, *, size_bytes: int, rows: int, undescribed: int = 0) -> None:
        """The shard is in place: its items are done for good."""
        with self._as_one():
            self._write(
                "UPDATE shards SET written = ?, bytes = ?, rows = ?, undescribed = ? WHERE number = ?",
                (time.time(), size_bytes, rows, undescribed, number),
            )
            self._write(f"UPDATE items SET state = {SHARDED} WHERE shard = ? AND state = {READY}", (number,))
        self.commit()

    def to_revise(self) -> list[tuple[int, int]]:
        """Shards in place of which a new generation is wanted, and which."""
        return self._all("SELECT number, wanted FROM shards WHERE wanted IS NOT NULL AND written IS NOT NULL ORDER BY number")

    def revised(self, number: int, *, generation: int, size_bytes: int, rows: int, undescribed: Iterable[UndescribedKeyframe]) -> None:
        """The generation that was wanted of a shard is in place; or the one before it, where nothing could be described either."""
        left = list(undescribed)
        with self._as_one():
            self._write(
                "UPDATE shards SET wanted = NULL, generation = ?, bytes = ?, rows = ?, undescribed = ? WHERE number = ?",
                (generation, size_bytes, rows, len(left), number),
            )
            self._write("DELETE FROM keyframes WHERE item IN (SELECT id FROM items WHERE shard = ?)", (number,))
            self._note_undescribed(left)
        self.commit()

    def keep_shard(self, number: int) -> None:
        """No new generation of it is wanted any more: nothing could be described this time either."""
        self._write("UPDATE shards SET wanted = NULL WHERE number = ?", (number,))

    def _note_undescribed(self, keyframes: Iterable[UndescribedKeyframe]) -> None:
        sql = "INSERT OR REPLACE INTO keyframes SELECT id, ?, ?, ? FROM items WHERE key = ?"
        for one in keyframes:
            self._write(sql, (one.keyframe, one.kind, one.message, one.video))

    def take_over(
        self,
        number: int,
        keys: Iterable[tuple[str, int, str | None, float | None]],
        *,
        size_bytes: int,
        rows: int,
        undescribed: Sequence[UndescribedKeyframe] = (),
        generation: int = 0,
    ) -> None:
        """A shard that lies in the output and that this state does not know, with its items: key, rows, YouTube id, length."""
        videos = list(keys)
        with self._as_one():
            self._write(
                "INSERT OR REPLACE INTO shards (number, written, bytes, rows, undescribed, generation) VALUES (?, ?, ?, ?, ?, ?)",
                (number, time.time(), size_bytes, rows, len(undescribed), generation),
            )
            for key, count, youtube_id, length_s in videos:
                self._write(
                    f"UPDATE items SET state = {SHARDED}, shard = ?, rows = ?, bytes = ?, youtube_id = ?, length_s = ?, ended = ?"
                    " WHERE key = ?",
                    (number, count, size_bytes // len(videos), youtube_id, length_s, time.time(), key),
                )
            self._note_undescribed(undescribed)

    # ------------------------------------------------------------ telling

    def counts(self) -> dict[int, int]:
        """How many items are in each state."""
        return dict(self._all("SELECT state, count(*) FROM items GROUP BY state"))

    def failures(self) -> dict[str, int]:
        """Items by what they failed of, bad rows among them; the most frequent first."""
        rows = self._all(
            f"SELECT kind, sum(n) AS of FROM (SELECT failure AS kind, count(*) AS n FROM items WHERE state = {FAILED} GROUP BY failure"
            " UNION ALL SELECT kind, count(*) FROM bad_rows GROUP BY kind) GROUP BY kind ORDER BY of DESC, kind"
        )
        return dict(rows)

    def each_failure(self) -> Iterator[tuple[str, str, str, int, str, str | None]]:
        """Row or item, type, message, tries, where it was named, id or path or address; bad rows first."""
        yield from self._db.execute("SELECT text, kind, message, 0, place, NULL FROM bad_rows ORDER BY rowid")
        yield from self._db.execute(f"SELECT key, failure, message, tries, place, source FROM items WHERE state = {FAILED} ORDER BY id")

    def each_undescribed(self) -> Iterator[tuple[str, str, str, str]]:
        """Keyframes of done items that have no description: id, type, message, where the item was named."""
        yield from self._db.execute(
            "SELECT keyframes.key, keyframes.kind, keyframes.message, place FROM keyframes JOIN items ON items.id = item"
            " WHERE state IN (4, 5) ORDER BY item, keyframes.key"
        )

    def totals(self) -> dict[str, float]:
        """Sums over what is done: keyframes, bytes, seconds of video, keyframes without description; and dollars and tokens of all."""
        sql = "SELECT total(rows), total(bytes), total(length_s) FROM items WHERE state IN (4, 5)"
        found = dict(zip(("keyframes", "bytes", "video_s"), self._all(sql)[0], strict=True))
        undescribed = self._all("SELECT count(*) FROM keyframes JOIN items ON items.id = item WHERE state IN (4, 5)")[0][0]
        usd, tokens = self.get("spent") or (0.0, 0)
        return {**found, "undescribed": undescribed, "usd": usd, "tokens": tokens}

    def shard_numbers(self) -> set[int]:
        return {row[0] for row in self._all("SELECT number FROM shards")}

    def shards(self) -> int:
        """How many are in place."""
        return int(self._all("SELECT count(*) FROM shards WHERE written IS NOT NULL")[0][0])

    def done_since(self, moment: float) -> tuple[int, int]:
        """Items that came to their good end since then (seconds of the epoch), and to any end."""
        done, ended = self._all("SELECT total(state IN (4, 5)), count(*) FROM items WHERE ended >= ?", (moment,))[0]
        return int(done), ended


COLUMNS = "id, key, kind, source, place, labels, verticals, topic, duration_s, tries"


def _values(item: ListItem, draw: float, kept: bool) -> tuple[Any, ...]:
    labels = json.dumps(item.labels) if item.labels else None
    verticals = json.dumps(item.verticals) if item.verticals else None
    return item.key, item.kind, item.source, item.where, item.host, labels, verticals, item.topic, item.duration_s, draw, kept


def _entry(row: tuple[Any, ...]) -> ItemEntry:
    id_, key, kind, source, place, labels, verticals, topic, duration_s, tries = row
    item = ListItem(key, kind, source, place, _names(labels), _names(verticals), topic, duration_s)
    return ItemEntry(id_, item, tries)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(json.loads(text)) if text else ()


@contextmanager
def _translated(home: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as exc:
        raise _unusable(home / NAME, exc) from exc


def _unusable(path: Path, exc: sqlite3.Error) -> StoreError:
    return StoreError(f"{path} cannot be used ({exc}). Make room, or check that it is no other program's; nothing in it is lost.")
