"""The process that puts parts into shards, and these where they belong, while the work goes on."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from vip.corpus.state import ItemEntry, StateDatabase
from vip.corpus.state_dir import PARTS
from vip.corpus.workers.worker import part_path
from vip.errors import VipError
from vip.processes.supervisor import MOST_DEATHS, ChildProcess, child_pipe, too_many_deaths

WAITING = 4  # times the size of a shard


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
    """Items whose parts were no good: they wait again."""
    _at_work: int | None = None
    _child: ChildProcess | None = None
    _deaths: int = 0
    _loose_bytes: int = field(init=False)
    _unwritten: deque[int] = field(init=False)

    def __post_init__(self) -> None:
        self._loose_bytes = self.state.loose()[1]
        self._unwritten = deque(self.state.unwritten())  # begun by a run that was killed
        self._clear_up()

    def _clear_up(self) -> None:
        """Delete what a killed run left half written, or had put into a shard already."""
        wanted = {part_path(self.state.home, key) for key in self.state.with_parts()}
        for path in (self.state.home / PARTS).glob("*"):
            if path not in wanted:
                path.unlink(missing_ok=True)

    @property
    def is_full(self) -> bool:
        """So much waits that no more should come."""
        return self._loose_bytes > WAITING * self.size_bytes

    def ready(self, size_bytes: int) -> None:
        """Another part may go into a shard."""
        self._loose_bytes += size_bytes

    def step(self, timeout_s: float = 0.0, *, last: bool = False) -> bool:
        """Take up a shard that is in place, and begin the next when there is enough for it, or with `last` anything.

        Returns:
            Whether one is at work.

        Raises:
            StoreError: it cannot be written.
        """
        if self._at_work is not None and self._child is not None and self._child.pipe.poll(timeout_s):
            self._wrote(self._child)
        if self._at_work is None and (number := self._next(last)) is not None:
            self._begin(number)
        return self._at_work is not None

    def _next(self, last: bool) -> int | None:
        if self._unwritten:
            return self._unwritten.popleft()
        if last or self._loose_bytes >= self.size_bytes:
            number = self.state.begin_shard(self.size_bytes)
            self._loose_bytes = self.state.loose()[1]
            return number
        return None

    def _begin(self, number: int) -> None:
        if self._child is None:
            self._child = ChildProcess("vip.corpus.workers.shard_writer")
            self._child.send((self.out, self.shards))
        self._at_work = number
        self._child.send((number, self._parts(number)))

    def _parts(self, number: int) -> list[Path]:
        return [part_path(self.state.home, entry.item.key) for entry in self.state.in_shard(number)]

    def _wrote(self, child: ChildProcess) -> None:
        try:
            message = child.pipe.recv()
        except (EOFError, OSError):
            self._died(child)
            return
        if isinstance(message, VipError):
            raise message
        self._deaths = 0
        number, size_bytes, rows, undescribed, torn = message
        if torn:
            self._without(number, torn)
            return
        self.state.wrote(number, size_bytes=size_bytes, rows=rows, undescribed=undescribed)
        for part in self._parts(number):
            part.unlink(missing_ok=True)
        self._at_work = None

    def _without(self, number: int, torn: list[str]) -> None:
        """Parts that are gone or not whole, after a power cut: their videos are done again, and the shard is written without them."""
        for entry in self.state.in_shard(number):
            if entry.item.key in torn:
                self.state.undo(entry.id)
                self.lost.append(entry)
        self.state.commit()
        self._at_work = None
        if self.state.in_shard(number):
            self._unwritten.appendleft(number)
        else:
            self.state.drop_shard(number)

    def _died(self, child: ChildProcess) -> None:
        """Another writes the same shard, unless that happens again and again."""
        code, number = child.kill(), self._at_work
        self._child, self._at_work, self._deaths = None, None, self._deaths + 1
        if self._deaths >= MOST_DEATHS:
            raise too_many_deaths("writes shards", code)
        if number is not None:
            self._unwritten.appendleft(number)

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None


def main(fd: str) -> None:
    """In a new interpreter: output and format, then shards, come over this pipe."""
    from vip.dataset.parts import is_whole
    from vip.dataset.shards import write_shard

    with child_pipe(fd) as pipe:
        out, shards = pipe.recv()
        while True:
            number, parts = pipe.recv()
            try:
                info = write_shard(out, number, parts, shards)
                pipe.send((info.number, info.bytes, info.rows, len(info.undescribed), []))
            except VipError as exc:
                torn = [part.stem for part in parts if not is_whole(part)]
                pipe.send((number, 0, 0, 0, torn) if torn else exc)
