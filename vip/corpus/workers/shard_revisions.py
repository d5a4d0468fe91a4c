"""Shards in which keyframes could not be described: their videos are described again, and the shards are written anew.

    unpack the videos concerned ▸ describe them (captions) ▸ write the next generation of the shard

The pictures are in the shard, so no video is fetched or decoded again. What was being done when a process was killed is simply done
again: the state knows which generation is wanted, the sidecar which one is there, and answers are kept.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from vip.corpus.state import StateDatabase
from vip.dataset.shards import UndescribedKeyframe
from vip.errors import StoreError, VipError
from vip.processes.supervisor import MOST_DEATHS, ChildProcess, child_pipe, too_many_deaths
from vip.wording import counted

if TYPE_CHECKING:
    from vip.dataset.rows import VideoSample
    from vip.dataset.shards import ShardInfo

UNPACKED = "again"  # folder in the state for the videos of shards that are described again


class UnpackShard(NamedTuple):
    """Write the videos of a shard that are not described throughout as parts."""

    number: int
    wanted: int
    """The generation that is to be written."""
    folder: Path


class RewriteShard(NamedTuple):
    """Write the next generation of a shard, with these parts in the place of its videos."""

    number: int
    wanted: int
    parts: Mapping[str, Path]


class UnpackedVideo(NamedTuple):
    """A video of a shard, to be described again."""

    key: str
    path: Path
    topic: str | None
    size_bytes: int
    undescribed: int
    """Keyframes."""


class UnpackedShard(NamedTuple):
    number: int
    parts: tuple[UnpackedVideo, ...]


class RevisedShard(NamedTuple):
    """The generation that was wanted is in force."""

    number: int
    generation: int
    size_bytes: int
    rows: int
    undescribed: tuple[UndescribedKeyframe, ...]


class UnreadableShard(NamedTuple):
    """The shard cannot be read."""

    number: int
    message: str


class IncompleteParts(NamedTuple):
    """Parts are gone or not whole, after a power cut."""

    number: int


@dataclass(slots=True)
class _Revision:
    """A shard whose videos are being described."""

    wanted: int
    parts: dict[str, UnpackedVideo]
    left: set[str]
    """Keys of those that are not described yet."""
    gained: int = 0
    """Keyframes that are described now."""


@dataclass(slots=True)
class ShardRevisions:
    """The driver's side: one shard after the other is unpacked, and written when all of its videos are described."""

    state: StateDatabase
    out: str
    note: Callable[[str], None]
    written: int = 0
    """Shards."""
    gained: int = 0
    """Keyframes that are described now."""
    _waiting: deque[tuple[int, int]] = field(default_factory=deque)
    _open: dict[int, _Revision] = field(default_factory=dict)
    _of_key: dict[str, int] = field(default_factory=dict)
    _to_write: deque[int] = field(default_factory=deque)
    _at_work: UnpackShard | RewriteShard | None = None
    _skipped: set[int] = field(default_factory=set)
    """Shards that cannot be read: another run may."""
    _child: ChildProcess | None = None
    _deaths: int = 0

    def __post_init__(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self.refresh()

    @property
    def _folder(self) -> Path:
        return self.state.home / UNPACKED

    @property
    def is_open(self) -> bool:
        """Whether something is to be done still."""
        return bool(self._waiting or self._open or self._at_work)

    def told(self) -> str:
        """What was done, as a sentence."""
        shards = counted(self.written, "shard is", "shards are")
        return f"{shards} written anew, with {counted(self.gained, 'more keyframe', 'more keyframes')} described."

    @property
    def has_more(self) -> bool:
        """Whether more parts are to be described, beside those that were named."""
        return bool(self._waiting) or isinstance(self._at_work, UnpackShard)

    def refresh(self) -> bool:
        """Take up what is wanted by now. Returns whether something is to be done."""
        known = {number for number, _ in self._waiting} | self._open.keys() | self._skipped
        if self._at_work is not None:
            known.add(self._at_work.number)
        self._waiting.extend(one for one in self.state.to_revise() if one[0] not in known)
        return self.is_open

    def step(self, *, unpacks: bool) -> tuple[UnpackedVideo, ...]:
        """Take up what has been done, and begin the next thing.

        Args:
            unpacks: there is room for more videos that wait for their descriptions.

        Returns:
            Parts that are to be described.

        Raises:
            StoreError: a shard cannot be written.
        """
        found: tuple[UnpackedVideo, ...] = ()
        if self._at_work is not None and self._child is not None and self._child.pipe.poll():
            found = self._heard(self._child)
        if self._at_work is None:
            if self._to_write:
                number = self._to_write.popleft()
                one = self._open[number]
                self._begin(RewriteShard(number, one.wanted, {key: part.path for key, part in one.parts.items()}))
            elif self._waiting and unpacks:
                number, wanted = self._waiting.popleft()
                self._begin(UnpackShard(number, wanted, self._folder / str(number)))
        return found

    def has(self, key: str) -> bool:
        """Whether a video is one of those that are described again."""
        return key in self._of_key

    def described(self, key: str, undescribed: int) -> UnpackedVideo:
        """Take up a part that has its descriptions, but for so many keyframes."""
        number = self._of_key.pop(key)
        one = self._open[number]
        one.left.remove(key)
        one.gained += one.parts[key].undescribed - undescribed
        part = one.parts[key]
        if not one.left:
            if one.gained > 0:
                self._to_write.append(number)
            else:
                self.state.keep_shard(number)
                self._over(number)
        return part

    def _begin(self, job: UnpackShard | RewriteShard) -> None:
        self._at_work = job
        if self._child is None:
            self._child = ChildProcess("vip.corpus.workers.shard_revisions")
            self._child.send(self.out)
        self._child.send(job)

    def _heard(self, child: ChildProcess) -> tuple[UnpackedVideo, ...]:
        try:
            message = child.pipe.recv()
        except (EOFError, OSError):
            self._died(child)
            return ()
        self._deaths = 0
        job, self._at_work = self._at_work, None
        assert job is not None
        match message:
            case UnpackedShard(number, parts):
                self._open[number] = _Revision(job.wanted, {part.key: part for part in parts}, {part.key for part in parts})
                self._of_key |= dict.fromkeys(self._open[number].parts, number)
                return parts
            case RevisedShard():
                self._revised(message)
            case IncompleteParts(number):
                self._over(number)
                self._waiting.appendleft((number, job.wanted))
            case UnreadableShard(number, text):
                self._skipped.add(number)
                self.note(f"{text} What is not described in it stays so.")
            case VipError():
                raise message
        return ()

    def _revised(self, done: RevisedShard) -> None:
        self.state.revised(
            done.number, generation=done.generation, size_bytes=done.size_bytes, rows=done.rows, undescribed=done.undescribed
        )
        self.written += 1
        if one := self._open.get(done.number):
            self.gained += one.gained
        self._over(done.number)

    def _over(self, number: int) -> None:
        self._open.pop(number, None)
        shutil.rmtree(self._folder / str(number), ignore_errors=True)

    def _died(self, child: ChildProcess) -> None:
        """Another does the same, unless that happens again and again."""
        code, job = child.kill(), self._at_work
        self._child, self._at_work, self._deaths = None, None, self._deaths + 1
        if self._deaths >= MOST_DEATHS:
            raise too_many_deaths("writes shards anew", code)
        if job is not None:
            self._begin(job)

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None


# ---------------------------------------------------------------- in the process


def main(fd: str) -> None:
    """In a new interpreter: the output, and then what is to be done, come over this pipe."""
    with child_pipe(fd) as pipe:
        out = pipe.recv()
        while True:
            job = pipe.recv()
            pipe.send(_unpacked(out, job) if isinstance(job, UnpackShard) else _written(out, job))


def _unpacked(out: str, job: UnpackShard) -> UnpackedShard | RevisedShard | UnreadableShard:
    from vip.dataset.parts import pack
    from vip.dataset.shards import delete_generations_before, read_sidecar, samples_in

    shutil.rmtree(job.folder, ignore_errors=True)
    job.folder.mkdir(parents=True)
    parts = []
    try:
        info = read_sidecar(out, job.number)
        if info.generation >= job.wanted or not info.undescribed:  # a run that was killed has written it
            delete_generations_before(out, info)
            return _revised(info)
        keys = {keyframe.video for keyframe in _undescribed(info)}
        for sample in samples_in(out, info):
            if sample.video.key in keys:
                path = job.folder / f"{sample.video.key}.tar"
                pack(path, sample)
                failed = sum(frame.failure is not None for frame in sample.frames)
                parts.append(UnpackedVideo(sample.video.key, path, sample.video.topic, path.stat().st_size, failed))
    except StoreError as exc:
        return UnreadableShard(job.number, str(exc))
    return UnpackedShard(job.number, tuple(parts))


def _written(out: str, job: RewriteShard) -> RevisedShard | IncompleteParts | VipError:
    from vip.dataset.parts import is_whole
    from vip.dataset.shards import read_sidecar, write_shard

    try:
        info = read_sidecar(out, job.number)
        if info.generation < job.wanted:
            info = write_shard(out, job.number, _clips(out, info, job.parts), info.format, generation=job.wanted)
        return _revised(info)
    except VipError as exc:
        return exc if all(map(is_whole, job.parts.values())) else IncompleteParts(job.number)


def _clips(out: str, info: ShardInfo, parts: Mapping[str, Path]) -> Iterator[VideoSample]:
    """Of the generation that is in force, but those that were described again from their parts."""
    from vip.dataset.parts import read_part
    from vip.dataset.shards import samples_in

    for sample in samples_in(out, info):
        yield read_part(parts[sample.video.key]) if sample.video.key in parts else sample


def _revised(info: ShardInfo) -> RevisedShard:
    return RevisedShard(info.number, info.generation, info.bytes, info.rows, tuple(_undescribed(info)))


def _undescribed(info: ShardInfo) -> Iterator[UndescribedKeyframe]:
    from vip.dataset.shards import undescribed_in

    return undescribed_in(info)
