"""The process that packs parts into shards and puts them into the output, while the work goes on."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from vip.corpus.state import ItemEntry, StateDatabase
from vip.corpus.state_dir import PARTS
from vip.corpus.workers.worker import part_path
from vip.errors import VipError
from vip.processes.supervisor import Requests, Supervisor, child_pipe

MOST_WAITING = 4  # times the size of a shard


class WriteShard(NamedTuple):
    """A task: write a shard of these parts."""

    number: int
    parts: tuple[Path, ...]


class ShardWritten(NamedTuple):
    """The shard is in its place."""

    number: int
    size_bytes: int
    rows: int
    undescribed: int
    """Keyframes without a description."""


class TornParts(NamedTuple):
    """Parts of the shard are gone or torn, after a power cut."""

    number: int
    keys: tuple[str, ...]


@dataclass(slots=True)
class ShardWriter:
    """The driver's side: one shard at a time. The process starts with the first.

    Args:
        size_bytes: of a shard, about.
    """

    state: StateDatabase
    out: str
    shards: str
    size_bytes: int
    lost: list[ItemEntry] = field(default_factory=list)
    """Items whose parts were torn: they wait again."""
    _requests: Requests[WriteShard] = field(init=False)
    _unsharded_bytes: int = field(init=False)
    _unwritten: deque[int] = field(init=False)

    def __post_init__(self) -> None:
        self._requests = Requests(Supervisor("vip.corpus.workers.shard_writer", "writes shards", lambda: (self.out, self.shards)))
        self._unsharded_bytes = self.state.unsharded()[1]
        self._unwritten = deque(self.state.unwritten_shards())  # begun by a killed run
        self._delete_leftovers()

    def _delete_leftovers(self) -> None:
        """Delete parts that a killed run left half written, or had put into a shard already."""
        wanted = {part_path(self.state.home, key) for key in self.state.keys_with_parts()}
        for path in (self.state.home / PARTS).glob("*"):
            if path not in wanted:
                path.unlink(missing_ok=True)

    @property
    def is_full(self) -> bool:
        """Whether so many parts wait that no more should come."""
        return self._unsharded_bytes > MOST_WAITING * self.size_bytes

    def add_part(self, size_bytes: int) -> None:
        """Note that another part is ready for a shard."""
        self._unsharded_bytes += size_bytes

    def step(self, timeout_s: float = 0.0, *, last: bool = False) -> bool:
        """Record a written shard, and begin the next if there are enough parts for it, or with `last` any.

        Args:
            timeout_s: how long to wait for the shard that is being written.

        Returns:
            Whether a shard is being written.

        Raises:
            StoreError: it cannot be written.
        """
        match self._requests.reply(timeout_s):
            case ShardWritten() as shard:
                self._record(shard)
            case TornParts(number, keys):
                self._drop_torn(number, keys)
        if self._requests.current is None and (following := self._next(last)) is not None:
            self._requests.send(WriteShard(following, self._parts(following)))
        return self._requests.current is not None

    def _next(self, last: bool) -> int | None:
        """Return the number of the shard to write next; None if there is none yet."""
        if self._unwritten:
            return self._unwritten.popleft()
        if last or self._unsharded_bytes >= self.size_bytes:
            number = self.state.begin_shard(self.size_bytes)
            self._unsharded_bytes = self.state.unsharded()[1]
            return number
        return None

    def _parts(self, number: int) -> tuple[Path, ...]:
        return tuple(part_path(self.state.home, entry.item.key) for entry in self.state.items_in_shard(number))

    def _record(self, shard: ShardWritten) -> None:
        self.state.record_shard(shard.number, size_bytes=shard.size_bytes, rows=shard.rows, undescribed=shard.undescribed)
        for part in self._parts(shard.number):
            part.unlink(missing_ok=True)

    def _drop_torn(self, number: int, keys: tuple[str, ...]) -> None:
        """Take items with torn parts out of a shard: their videos are done again, and the shard is written without them."""
        for entry in self.state.items_in_shard(number):
            if entry.item.key in keys:
                self.state.requeue(entry.id)
                self.lost.append(entry)
        self.state.commit()
        if self.state.items_in_shard(number):
            self._unwritten.appendleft(number)
        else:
            self.state.drop_shard(number)

    def close(self) -> None:
        self._requests.child.close()


def main(fd: str) -> None:
    """Write the shards that come over this pipe, after the output and the format; in a new interpreter."""
    from vip.dataset.parts import is_whole
    from vip.dataset.shards import write_shard

    with child_pipe(fd) as pipe:
        out, shards = pipe.recv()
        while True:
            number, parts = pipe.recv()
            try:
                info = write_shard(out, number, parts, shards)
                pipe.send(ShardWritten(info.number, info.bytes, info.rows, len(info.undescribed)))
            except VipError as exc:
                torn = tuple(part.stem for part in parts if not is_whole(part))
                pipe.send(TornParts(number, torn) if torn else exc)
