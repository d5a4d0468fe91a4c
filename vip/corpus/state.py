"""The state of every item, in one SQLite file: a batch may be killed at any moment and continues where it stopped.

    unchosen ▸ waiting ▸ (described) ▸ ready ▸ sharded            an item is in one state, and in one shard at most
                  ▲  ╲      ╲
               later   failed                                     later: failed, and due for another try

Only the driver writes. Assigned items count as waiting, so the work of a dead process is done again. Changes are collected in one
transaction (`commit`). A part or a shard is on the disk before it is in the state.
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
from typing import Any, NamedTuple, get_args

from vip import databases, files
from vip.corpus.inputs.rows import BadRow
from vip.dataset.items import MOST_KEY_LETTERS, ItemKind, ListItem
from vip.dataset.shards import UndescribedKeyframe
from vip.errors import FailureKind, StoreError
from vip.untrusted import one_line, parse_json

NAME = "state.sqlite"
SPENT = "spent"  # in the state: dollars and tokens
VERSION = 3
TIMEOUT_S = 30.0  # for `--status`, which reads while the batch writes
LONG_S = 1200  # videos of this length and longer are begun first
ROWS_AT_ONCE = 10_000  # inserted in one statement
UNCHOSEN, WAITING, LATER, EXTRACTED, READY, SHARDED, FAILED = range(7)
DONE = f"({READY}, {SHARDED})"
TO_DO = f"({WAITING}, {LATER})"
WITH_PART = f"({EXTRACTED}, {READY})"
WITH_KEYFRAMES = f"({EXTRACTED}, {READY}, {SHARDED})"
INACTIVE = f"({UNCHOSEN}, {FAILED})"
MOST_SECONDS = 1e12
MOST_TRIES = 1000  # and losses; the rules for retries allow few
MOST_SHARDS = 10**9  # and generations of one
FAILURE_KINDS = f"({', '.join(map(repr, get_args(FailureKind)))})"
STRANGE_ITEM = f"""
    id < 1 OR key GLOB '*[^-A-Za-z0-9._]*' OR key GLOB '.*' OR length(key) NOT BETWEEN 1 AND {MOST_KEY_LETTERS} OR instr(key, char(0))
    OR kind NOT IN ({", ".join(map(repr, get_args(ItemKind)))}) OR instr(source, char(0))
    OR (kind IN ('youtube', 'youtube8m') AND (source != key OR length(key) != iif(kind = 'youtube', 11, 4)))
    OR (kind = 'address' AND lower(source) NOT GLOB 'http://*' AND lower(source) NOT GLOB 'https://*')
    OR host IS NOT CASE kind WHEN 'file' THEN '' WHEN 'address' THEN host_of(source) ELSE 'youtube' END
    OR state NOT BETWEEN {UNCHOSEN} AND {FAILED} OR (state IN {WITH_KEYFRAMES} AND (rows IS NULL OR bytes IS NULL))
    OR failure NOT IN {FAILURE_KINDS} OR (state IN ({LATER}, {FAILED}) AND failure IS NULL) OR (state = {FAILED} AND message IS NULL)
    OR (state = {LATER} AND due IS NULL) OR max(tries, lost) > {MOST_TRIES} OR min(tries, lost, ifnull(rows, 0), ifnull(bytes, 0)) < 0
    OR (shard IS NOT NULL AND shard NOT IN (SELECT number FROM shards))
    OR max(abs(ifnull(duration_s, 0)), abs(ifnull(due, 0)), abs(ifnull(length_s, 0)), abs(ifnull(ended, 0))) > {MOST_SECONDS}
    OR EXISTS (SELECT 1 FROM json_each(labels) WHERE type != 'text') OR EXISTS (SELECT 1 FROM json_each(verticals) WHERE type != 'text')
"""
"""What no list and no batch leads to: a key is the name of a file, and an item under another host than its own is never done."""
STRANGE_VALUES = {
    "items": STRANGE_ITEM,
    "bad_rows": f"kind NOT IN {FAILURE_KINDS}",
    "shards": f"""
        number NOT BETWEEN 0 AND {MOST_SHARDS} OR generation NOT BETWEEN 0 AND {MOST_SHARDS} OR wanted NOT BETWEEN 1 AND {MOST_SHARDS}
        OR min(undescribed, ifnull(rows, 0), ifnull(bytes, 0)) < 0
    """,
}
"""SQL that holds for the rows of a table that vip does not write."""

SCHEMA = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE items (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, source TEXT NOT NULL, place TEXT NOT NULL, host TEXT NOT NULL,
    labels TEXT, verticals TEXT, topic TEXT, duration_s REAL, draw REAL NOT NULL, kept INTEGER NOT NULL,
    state INTEGER NOT NULL, tries INTEGER NOT NULL DEFAULT 0, lost INTEGER NOT NULL DEFAULT 0, due REAL,
    failure TEXT, message TEXT, youtube_id TEXT, shard INTEGER, rows INTEGER, bytes INTEGER, length_s REAL, ended REAL);
CREATE INDEX by_host ON items (host, id) WHERE state = {WAITING};
CREATE INDEX by_length ON items (host, duration_s, id) WHERE state = {WAITING} AND duration_s >= {LONG_S};
CREATE INDEX by_due ON items (due) WHERE state = {LATER};
CREATE INDEX by_end ON items (ended) WHERE ended IS NOT NULL;
CREATE INDEX on_the_way ON items (state, shard) WHERE state IN {WITH_PART};
CREATE INDEX failed ON items (failure) WHERE state = {FAILED};
CREATE INDEX by_youtube_id ON items (youtube_id) WHERE youtube_id IS NOT NULL;
CREATE TABLE bad_rows (place TEXT NOT NULL, text TEXT NOT NULL, kind TEXT NOT NULL, message TEXT NOT NULL, PRIMARY KEY (place, text));
CREATE TABLE keyframes (item INTEGER NOT NULL, key TEXT NOT NULL, kind TEXT NOT NULL, message TEXT NOT NULL, PRIMARY KEY (item, key));
CREATE TABLE shards (
    number INTEGER PRIMARY KEY, written REAL, bytes INTEGER, rows INTEGER, undescribed INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 0, wanted INTEGER);
"""


@dataclass(frozen=True, slots=True)
class ItemEntry:
    """An item with its number in the state."""

    id: int
    item: ListItem
    tries: int


class SampledItem(NamedTuple):
    """An item of the list.

    Args:
        draw: a sample takes the items with the highest.
        kept: whether the item is taken without `--sample`.
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
            with suppress(OSError):  # what stands in its way is told below
                path.touch(0o600, exist_ok=False)  # addresses may hold logins: others do not read it
            self._db = databases.connect(path, SCHEMA, version=VERSION, inside=home.parent, timeout_s=TIMEOUT_S)
        except OSError as exc:
            raise StoreError(f"{path} cannot be used: {exc.strerror}. Delete it, or choose another -o.") from exc
        except (sqlite3.Error, UnicodeDecodeError) as exc:
            raise _unusable_error(path, exc) from exc
        try:
            databases.write_ahead(self._db)
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA cache_size = -65536")
            if (version := self._version) == 0:
                version = self._create()
        except (sqlite3.Error, UnicodeDecodeError) as exc:  # the message of SQLite quotes what is damaged
            self._db.close()
            raise _unusable_error(path, exc) from exc
        if version != VERSION:
            self._db.close()
            raise StoreError(f"{path}: written by another vip (state {version}, this one knows {VERSION}). Use that one, or another -o.")

    @property
    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _create(self) -> int:
        """Create the tables, unless another process such as `--status` is doing so. Return the version."""
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
        """Write all changes since the last commit to the disk."""
        if self._db.in_transaction:
            with _translate_errors(self.home):
                self._db.execute("COMMIT")

    def _write(self, sql: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        with _translate_errors(self.home):
            if not self._db.in_transaction:
                self._db.execute("BEGIN IMMEDIATE")
            return self._db.execute(sql, values)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Make all changes in the block or none, even on Ctrl-C."""
        self._write("SAVEPOINT one")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):  # on a full disk everything is rolled back already
                self._db.execute("ROLLBACK TO one")
                self._db.execute("RELEASE one")
            raise
        self._write("RELEASE one")

    def _fetch_all(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with _translate_errors(self.home):
            return self._db.execute(sql, values).fetchall()

    def _each(self, sql: str) -> Iterator[Any]:
        """Yield the rows one after another: they may be too many for the memory."""
        with _translate_errors(self.home):
            yield from self._db.execute(sql)

    def check_values(self) -> None:
        """Refuse values that vip does not write; SQLite keeps what does not fit the type of a column as it came.

        Raises:
            StoreError: there are some.
        """
        self._db.create_function("host_of", 1, _host_of, deterministic=True)
        for (table,) in self._fetch_all("SELECT name FROM sqlite_schema WHERE type = 'table'"):
            columns = self._fetch_all('SELECT name, type, "notnull" FROM pragma_table_info(?)', (table,))
            wrong = [f"typeof({name}) NOT IN ('{kind.lower()}', '{kind.lower() if needed else 'null'}')" for name, kind, needed in columns]
            strange = [STRANGE_VALUES[table]] if table in STRANGE_VALUES else []
            if self._fetch_all(f"SELECT 1 FROM {table} WHERE {' OR '.join([*wrong, *strange])} LIMIT 1"):
                raise StoreError(
                    f"{self.home / NAME} is damaged: the table {table} holds what vip does not write. Begin the batch anew with another -o."
                )

    # ------------------------------------------------------------ values of the whole batch

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was ever written to it."""
        tables = ("meta", "items", "bad_rows", "keyframes", "shards")
        return not self._fetch_all(" UNION ALL ".join(f"SELECT 1 FROM {name}" for name in tables) + " LIMIT 1", ())

    def get(self, name: str) -> Any:
        """Return a value by its name; None if there is none.

        Raises:
            StoreError: it is damaged.
        """
        rows = self._fetch_all("SELECT value FROM meta WHERE name = ?", (name,))
        try:
            return parse_json(rows[0][0]) if rows else None
        except (ValueError, TypeError) as exc:
            raise StoreError(f"{self.home / NAME} is damaged (its {name} is no JSON). Begin the batch anew with another -o.") from exc

    @property
    def spent(self) -> tuple[float, int]:
        """The dollars and tokens that captions have cost so far.

        Raises:
            StoreError: they are damaged.
        """
        found = self.get(SPENT) or (0.0, 0)
        try:
            usd, tokens = found
            if 0 <= usd < math.inf and tokens >= 0 and isinstance(tokens, int):
                return float(usd), tokens
        except (ValueError, TypeError):
            pass
        raise StoreError(f"{self.home / NAME} is damaged (its {SPENT} is no cost). Begin the batch anew with another -o.")

    @property
    def waits_for_captions(self) -> bool:
        """Whether a part or a shard waits for descriptions."""
        parts, shards = f"SELECT 1 FROM items WHERE state = {EXTRACTED}", "SELECT 1 FROM shards WHERE wanted IS NOT NULL"
        return bool(self._fetch_all(f"{parts} UNION ALL {shards} LIMIT 1"))

    def put(self, name: str, value: Any) -> None:
        self._write("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, json.dumps(value)))

    # ------------------------------------------------------------ the list

    def add(self, rows: Iterable[SampledItem | BadRow]) -> Iterator[int]:
        """Add items and bad rows; yield how many rows were read so far.

        Known items stay as they are. The earlier bad rows of a list are replaced.
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
            if len(items) == ROWS_AT_ONCE:
                self._insert(items)
                yield count
        self._insert(items)
        yield count

    def _forget_bad_rows(self, name: str) -> None:
        """Delete the bad rows of a list by a range of the index: `!` is the character after the space."""
        self._write("DELETE FROM bad_rows WHERE place = ? OR (place > ? AND place < ?)", (name, f"{name}, ", f"{name},!"))

    def _insert(self, items: list[tuple[Any, ...]]) -> None:
        with _translate_errors(self.home):
            if not self._db.in_transaction:
                self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(
                "INSERT OR IGNORE INTO items (key, kind, source, place, host, labels, verticals, topic, duration_s, draw, kept, state)"
                f" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {UNCHOSEN})",
                items,
            )
        items.clear()

    def choose(self, sample: int | None) -> int:
        """Choose the items with the highest draw, or all that are kept. Return how many are chosen now."""
        if sample is None:
            self._write(f"UPDATE items SET state = {WAITING} WHERE state = {UNCHOSEN} AND kept")
        else:
            self._write(
                f"UPDATE items SET state = {WAITING} WHERE id IN"
                f" (SELECT id FROM items WHERE state = {UNCHOSEN} AND draw > ? ORDER BY draw DESC LIMIT ?)",
                (-math.inf, max(0, sample - self._count_chosen())),
            )
        self.commit()
        return self._count_chosen()

    def _count_chosen(self) -> int:
        return int(self._fetch_all(f"SELECT count(*) FROM items WHERE state != {UNCHOSEN}")[0][0])

    def sample_counts(self) -> Iterator[tuple[ListItem, int, int]]:
        """Yield the counts of each combination of verticals and labels: an item that has them, how many do, how many are chosen."""
        sql = f"SELECT verticals, labels, count(*), sum(state != {UNCHOSEN}) FROM items GROUP BY verticals, labels"
        for verticals, labels, count, chosen in self._each(sql):
            yield ListItem("", "file", "", "", _names(labels), _names(verticals)), count, chosen

    # ------------------------------------------------------------ waiting items

    def hosts(self) -> list[str]:
        """Return the hosts of waiting items; "" stands for local files."""
        found, host = [], self._next_host("")
        if self._fetch_all(f"SELECT 1 FROM items WHERE state = {WAITING} AND host = '' LIMIT 1"):
            found.append("")
        while host is not None:  # a skip scan: one step a host
            found.append(host)
            host = self._next_host(host)
        return found

    def _next_host(self, host: str) -> str | None:
        value = self._fetch_all(f"SELECT min(host) FROM items WHERE state = {WAITING} AND host > ?", (host,))[0][0]
        return str(value) if value is not None else None

    def has_downloads(self) -> bool:
        """Return whether an item is to be fetched, now or at a later try."""
        return bool(self._fetch_all(f"SELECT 1 FROM items WHERE state IN {TO_DO} AND host != '' LIMIT 1"))

    def has_undescribed(self) -> bool:
        """Return whether a keyframe could not be described."""
        return bool(self._fetch_all("SELECT 1 FROM keyframes LIMIT 1"))

    def has_done(self, host: str) -> bool:
        """Return whether a video of this host is done."""
        return bool(self._fetch_all(f"SELECT 1 FROM items WHERE state IN {DONE} AND host = ? LIMIT 1", (host,)))

    def waiting(self, host: str, after: int, count: int) -> list[ItemEntry]:
        """Return the waiting items of a host after this one, in the order of the list; without long videos."""
        short = f"(duration_s IS NULL OR duration_s < {LONG_S})"
        sql = f"SELECT {COLUMNS} FROM items WHERE state = {WAITING} AND host = ? AND id > ? AND {short} ORDER BY id LIMIT ?"
        return [_to_entry(row) for row in self._fetch_all(sql, (host, after, count))]

    def waiting_long(self, host: str, after: ItemEntry | None, count: int) -> list[ItemEntry]:
        """Return the waiting long videos of a host after this one, the longest first; the list says how long they are."""
        last = (after.item.duration_s, after.id) if after else (math.inf, 0)
        sql = (
            f"SELECT {COLUMNS} FROM items WHERE state = {WAITING} AND host = ? AND duration_s >= {LONG_S}"
            " AND (duration_s < ? OR (duration_s = ? AND id > ?)) ORDER BY duration_s DESC, id LIMIT ?"
        )
        return [_to_entry(row) for row in self._fetch_all(sql, (host, last[0], *last, count))]

    def due(self, now: float, count: int) -> list[ItemEntry]:
        """Return the items due for another try, the longest due first."""
        sql = f"SELECT {COLUMNS} FROM items WHERE state = {LATER} AND due <= ? ORDER BY due LIMIT ?"
        return [_to_entry(row) for row in self._fetch_all(sql, (now, count))]

    def retry_counts(self) -> dict[str, int]:
        """Return how many items wait for another try, by the type of their failure; the most frequent first."""
        return dict(self._fetch_all(f"SELECT failure, count(*) AS of FROM items WHERE state = {LATER} GROUP BY failure ORDER BY of DESC"))

    def next_due(self) -> float | None:
        """Return when the next try of a failed item is due, in seconds of the epoch; None if none waits."""
        value = self._fetch_all(f"SELECT min(due) FROM items WHERE state = {LATER}")[0][0]
        return float(value) if value is not None else None

    # ------------------------------------------------------------ results

    def record_extracted(
        self, item_id: int, *, rows: int, size_bytes: int, length_s: float | None, youtube_id: str | None, ready: bool
    ) -> None:
        """Record an item whose part is written.

        Args:
            ready: the part needs no captions and can go into a shard.
        """
        self._write(
            "UPDATE items SET state = ?, rows = ?, bytes = ?, length_s = ?, youtube_id = ?, ended = ?, failure = NULL, message = NULL,"
            " due = NULL WHERE id = ?",
            (READY if ready else EXTRACTED, rows, size_bytes, _seconds(length_s), youtube_id, time.time() if ready else None, item_id),
        )

    def record_described(self, item_id: int, *, size_bytes: int) -> None:
        """Record an item whose part has its descriptions."""
        self._write(f"UPDATE items SET state = {READY}, bytes = ?, ended = ? WHERE id = ?", (size_bytes, time.time(), item_id))

    def record_undescribed(self, item_id: int, failures: Iterable[tuple[str, str, str]]) -> None:
        """Record the keyframes of an item that could not be described: id, type, message."""
        self._write("DELETE FROM keyframes WHERE item = ?", (item_id,))
        for failure in failures:
            self._write("INSERT OR REPLACE INTO keyframes VALUES (?, ?, ?, ?)", (item_id, *failure))

    def record_failure(self, item_id: int, kind: FailureKind, message: str) -> None:
        """Record the final failure of an item; only the user can have it tried again."""
        self._write(
            f"UPDATE items SET state = {FAILED}, tries = tries + 1, failure = ?, message = ?, due = NULL, ended = ? WHERE id = ?",
            (kind, message, time.time(), item_id),
        )

    def schedule_retry(self, item_id: int, kind: FailureKind, message: str, due: float) -> None:
        """Record a failure of an item that is tried again at `due`, in seconds of the epoch."""
        self._write(
            f"UPDATE items SET state = {LATER}, tries = tries + 1, failure = ?, message = ?, due = ? WHERE id = ?",
            (kind, message, due, item_id),
        )

    def record_loss(self, item_id: int) -> int:
        """Record that the machine of an item is gone. Return how often that has happened to the item."""
        self._write("UPDATE items SET lost = lost + 1 WHERE id = ?", (item_id,))
        return int(self._fetch_all("SELECT lost FROM items WHERE id = ?", (item_id,))[0][0])

    def duplicate_of(self, item_id: int, youtube_id: str) -> str | None:
        """Return the key of another item with the same YouTube video, done or to be done; None if there is none."""
        rows = self._fetch_all(
            f"SELECT key FROM items WHERE id != ? AND ((youtube_id = ? AND state IN {WITH_KEYFRAMES})"
            f" OR (key = ? AND state NOT IN {INACTIVE})) LIMIT 1",
            (item_id, youtube_id, youtube_id),
        )
        return str(rows[0][0]) if rows else None

    def retry_failed(self, kind: str | None) -> int:
        """Queue failed items again: all, or those of one type of failure. Return how many."""
        more, values = (" AND failure = ?", (kind,)) if kind else ("", ())
        changed = self._write(f"UPDATE items SET state = {WAITING}, tries = 0, lost = 0, ended = NULL WHERE state = {FAILED}{more}", values)
        self.commit()
        return changed.rowcount

    def request_descriptions(self) -> int:
        """Queue keyframes without descriptions to be described again. Return how many.

        Parts in no shard wait for captions again; of shards a new generation is wanted.
        """
        of_parts = f"SELECT id FROM items WHERE state = {READY} AND shard IS NULL AND id IN (SELECT item FROM keyframes)"
        in_parts = self._fetch_all(f"SELECT count(*) FROM keyframes WHERE item IN ({of_parts})")[0][0]
        unwritten = "SELECT shard FROM items JOIN keyframes ON item = id WHERE shard IS NOT NULL"
        with self._transaction():
            self._write(f"UPDATE items SET state = {EXTRACTED}, ended = NULL WHERE id IN ({of_parts})")
            self._write(
                "UPDATE shards SET wanted = generation + 1 WHERE wanted IS NULL"
                f" AND (undescribed > 0 OR (written IS NULL AND number IN ({unwritten})))"
            )
        self.commit()
        return int(in_parts) + self.keyframes_to_describe()

    def keyframes_to_describe(self) -> int:
        """Return how many keyframes in shards are to be described again."""
        return int(self._fetch_all("SELECT total(undescribed) FROM shards WHERE wanted IS NOT NULL")[0][0])

    # ------------------------------------------------------------ parts and shards

    def parts_to_describe(self) -> list[tuple[ItemEntry, int]]:
        """Return the items whose parts wait for their descriptions, and the bytes of each."""
        rows = self._fetch_all(f"SELECT {COLUMNS}, bytes FROM items WHERE state = {EXTRACTED} ORDER BY id")
        return [(_to_entry(row[:-1]), row[-1]) for row in rows]

    def keys_with_parts(self) -> list[str]:
        """Return the keys of the items whose parts are in the state folder."""
        return [row[0] for row in self._fetch_all(f"SELECT key FROM items WHERE state IN {WITH_PART}")]

    def unsharded(self) -> tuple[int, int]:
        """Return how many parts are ready and in no shard, and their bytes."""
        count, size = self._fetch_all(f"SELECT count(*), total(bytes) FROM items WHERE state = {READY} AND shard IS NULL")[0]
        return count, int(size)

    def begin_shard(self, most_bytes: int) -> int | None:
        """Assign ready parts to a new shard and commit that, before the shard is written. Return its number; None without ready parts."""
        number = int(self._fetch_all("SELECT coalesce(max(number) + 1, 0) FROM shards")[0][0])
        ids: list[tuple[int, int]] = []
        size = 0
        for id_, part in self._fetch_all(f"SELECT id, bytes FROM items WHERE state = {READY} AND shard IS NULL ORDER BY id"):
            if ids and size + part > most_bytes:
                break
            ids.append((number, id_))
            size += part
        if not ids:
            return None
        with self._transaction():
            self._write("INSERT INTO shards (number) VALUES (?)", (number,))
            self._db.executemany("UPDATE items SET shard = ? WHERE id = ?", ids)
        self.commit()
        return number

    def unwritten_shards(self) -> list[int]:
        """Return the shards that were begun and are not written."""
        return [row[0] for row in self._fetch_all("SELECT number FROM shards WHERE written IS NULL ORDER BY number")]

    def items_in_shard(self, number: int) -> list[ItemEntry]:
        return [
            _to_entry(row)
            for row in self._fetch_all(f"SELECT {COLUMNS} FROM items WHERE shard = ? AND state IN {DONE} ORDER BY id", (number,))
        ]

    def requeue(self, item_id: int) -> None:
        """Let an item wait again whose part is lost."""
        self._write(f"UPDATE items SET state = {WAITING}, shard = NULL, ended = NULL WHERE id = ?", (item_id,))

    def drop_shard(self, number: int) -> None:
        """Forget a shard that was begun and has no items left."""
        self._write("DELETE FROM shards WHERE number = ? AND written IS NULL", (number,))
        self.commit()

    def record_shard(self, number: int, *, size_bytes: int, rows: int, undescribed: int = 0) -> None:
        """Record a written shard: its items are sharded."""
        with self._transaction():
            self._write(
                "UPDATE shards SET written = ?, bytes = ?, rows = ?, undescribed = ? WHERE number = ?",
                (time.time(), size_bytes, rows, undescribed, number),
            )
            self._write(f"UPDATE items SET state = {SHARDED} WHERE shard = ? AND state = {READY}", (number,))
        self.commit()

    def shards_to_revise(self) -> list[tuple[int, int]]:
        """Return the shards of which a new generation is wanted, and its number."""
        return self._fetch_all("SELECT number, wanted FROM shards WHERE wanted IS NOT NULL AND written IS NOT NULL ORDER BY number")

    def record_revision(
        self, number: int, *, generation: int, size_bytes: int, rows: int, undescribed: Iterable[UndescribedKeyframe]
    ) -> None:
        """Record the present generation of a shard, and the keyframes in it that still have no description; no other is wanted."""
        left = list(undescribed)
        with self._transaction():
            self._write(
                "UPDATE shards SET wanted = NULL, generation = ?, bytes = ?, rows = ?, undescribed = ? WHERE number = ?",
                (generation, size_bytes, rows, len(left), number),
            )
            self._write("DELETE FROM keyframes WHERE item IN (SELECT id FROM items WHERE shard = ?)", (number,))
            self._note_undescribed(left)
        self.commit()

    def cancel_revision(self, number: int) -> None:
        """Forget that a new generation of a shard was wanted: no more keyframes could be described."""
        self._write("UPDATE shards SET wanted = NULL WHERE number = ?", (number,))

    def _note_undescribed(self, keyframes: Iterable[UndescribedKeyframe]) -> None:
        sql = "INSERT OR REPLACE INTO keyframes SELECT id, ?, ?, ? FROM items WHERE key = ?"
        for one in keyframes:
            self._write(sql, (one.keyframe, one.kind, one.message, one.video))

    def adopt_shard(
        self,
        number: int,
        keys: Iterable[tuple[str, int, str | None, float | None]],
        *,
        size_bytes: int,
        rows: int,
        undescribed: Sequence[UndescribedKeyframe] = (),
        generation: int = 0,
    ) -> None:
        """Record a shard that was found in the output, with its items: key, rows, YouTube id, length."""
        videos = list(keys)
        with self._transaction():
            self._write(
                "INSERT OR REPLACE INTO shards (number, written, bytes, rows, undescribed, generation) VALUES (?, ?, ?, ?, ?, ?)",
                (number, time.time(), size_bytes, rows, len(undescribed), generation),
            )
            for key, count, youtube_id, length_s in videos:
                self._write(
                    f"UPDATE items SET state = {SHARDED}, shard = ?, rows = ?, bytes = ?, youtube_id = ?, length_s = ?, ended = ?"
                    " WHERE key = ?",
                    (number, count, size_bytes // len(videos), youtube_id, _seconds(length_s), time.time(), key),
                )
            self._note_undescribed(undescribed)

    # ------------------------------------------------------------ counts

    def state_counts(self) -> dict[int, int]:
        """Return how many items are in each state."""
        return dict(self._fetch_all("SELECT state, count(*) FROM items GROUP BY state"))

    def failure_counts(self) -> dict[str, int]:
        """Return how many items and bad rows failed, by type; the most frequent first."""
        rows = self._fetch_all(
            f"SELECT kind, sum(n) AS of FROM (SELECT failure AS kind, count(*) AS n FROM items WHERE state = {FAILED} GROUP BY failure"
            " UNION ALL SELECT kind, count(*) FROM bad_rows GROUP BY kind) GROUP BY kind ORDER BY of DESC, kind"
        )
        return dict(rows)

    def each_failure(self) -> Iterator[tuple[str, str, str, int, str, str | None]]:
        """Yield each failure: row or key, type, message, tries, its place in a list, id or path or address. Bad rows come first."""
        yield from self._each("SELECT text, kind, message, 0, place, NULL FROM bad_rows ORDER BY rowid")
        yield from self._each(f"SELECT key, failure, message, tries, place, source FROM items WHERE state = {FAILED} ORDER BY id")

    def each_undescribed(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield the keyframes of done items that have no description: id, type, message, the item's place in a list."""
        yield from self._each(
            "SELECT keyframes.key, keyframes.kind, keyframes.message, place FROM keyframes JOIN items ON items.id = item"
            f" WHERE state IN {DONE} ORDER BY item, keyframes.key"
        )

    def totals(self) -> dict[str, float]:
        """Return sums over done items: keyframes, bytes, seconds of video, undescribed keyframes; and all dollars and tokens."""
        sql = f"SELECT total(rows), total(bytes), total(length_s) FROM items WHERE state IN {DONE}"
        found = dict(zip(("keyframes", "bytes", "video_s"), self._fetch_all(sql)[0], strict=True))
        undescribed = self._fetch_all(f"SELECT count(*) FROM keyframes JOIN items ON items.id = item WHERE state IN {DONE}")[0][0]
        usd, tokens = self.spent
        return {**found, "undescribed": undescribed, "usd": usd, "tokens": tokens}

    def shard_numbers(self) -> set[int]:
        return {row[0] for row in self._fetch_all("SELECT number FROM shards")}

    def shard_count(self) -> int:
        """Return how many shards are written."""
        return int(self._fetch_all("SELECT count(*) FROM shards WHERE written IS NOT NULL")[0][0])

    def finished_since(self, moment: float) -> tuple[int, int]:
        """Return how many items were completed, and how many finished at all, since `moment` (seconds of the epoch)."""
        done, ended = self._fetch_all(f"SELECT total(state IN {DONE}), count(*) FROM items WHERE ended >= ?", (moment,))[0]
        return int(done), ended


COLUMNS = "id, key, kind, source, place, labels, verticals, topic, duration_s, tries"


def _values(item: ListItem, draw: float, kept: bool) -> tuple[Any, ...]:
    labels = json.dumps(item.labels) if item.labels else None
    verticals = json.dumps(item.verticals) if item.verticals else None
    length_s = _seconds(item.duration_s)
    return item.key, item.kind, item.source, item.where, item.host, labels, verticals, item.topic, length_s, draw, kept


def _seconds(stated: float | None) -> float | None:
    """Return the length of a video as a list or a host states it; None for what is no number of seconds, such as nanoseconds."""
    return stated if stated is not None and abs(stated) <= MOST_SECONDS else None


def _to_entry(row: tuple[Any, ...]) -> ItemEntry:
    id_, key, kind, source, place, labels, verticals, topic, duration_s, tries = row
    item = ListItem(key, kind, source, place, _names(labels), _names(verticals), topic, duration_s)
    return ItemEntry(id_, item, tries)


def _host_of(address: str) -> str | None:
    """Return the host of an address; None where it has none."""
    try:
        return ListItem("", "address", address, "").host or None
    except ValueError:
        return None


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(json.loads(text)) if text else ()


@contextmanager
def _translate_errors(home: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as exc:
        raise _unusable_error(home / NAME, exc) from exc


def _unusable_error(path: Path, exc: sqlite3.Error | UnicodeDecodeError) -> StoreError:
    why = one_line(str(exc))[:150]  # SQLite quotes what is damaged
    return StoreError(f"{path} cannot be used ({why}). Make room, or check that it is no other program's; nothing in it is lost.")
