"""Shards with keyframes that could not be described: describe their videos again, and write the shards anew.

    unpack the videos ▸ describe them (caption client) ▸ write the next generation of the shard

The pictures are in the shard, so no video is fetched or decoded again. A killed process loses nothing: the state has the wanted
generation, the sidecar the present one, and the answers are cached.
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
from vip.processes.supervisor import Requests, Supervisor, child_pipe
from vip.wording import counted

if TYPE_CHECKING:
    from vip.dataset.rows import VideoSample
    from vip.dataset.shards import ShardInfo

UNPACKED = "again"  # folder in the state for the videos of shards that are described again


class UnpackShard(NamedTuple):
    """A task: write the videos of a shard that lack descriptions as parts."""

    number: int
    wanted: int
    """The generation to write."""
    folder: Path


class RewriteShard(NamedTuple):
    """A task: write the next generation of a shard, with these parts instead of the videos of these keys."""

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
    """The videos of a shard that lack descriptions."""

    number: int
    videos: tuple[UnpackedVideo, ...]


class RevisedShard(NamedTuple):
    """The wanted generation is in its place."""

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
    """Parts are gone or torn, after a power cut."""

    number: int


@dataclass(slots=True)
class _Revision:
    """A shard whose videos are being described."""

    wanted: int
    videos: dict[str, UnpackedVideo]
    left: set[str]
    """Keys of the videos that are not described yet."""
    gained: int = 0
    """Keyframes that are described now and were not before."""


@dataclass(slots=True)
class ShardRevisions:
    """The driver's side: one shard after the other is unpacked, and written when all of its videos are described."""

    state: StateDatabase
    out: str
    note: Callable[[str], None]
    written: int = 0
    """Shards."""
    gained: int = 0
    """Keyframes that are described now and were not before."""
    _waiting: deque[tuple[int, int]] = field(default_factory=deque)
    """Shards, and the generations wanted of them."""
    _open: dict[int, _Revision] = field(default_factory=dict)
    _shard_of: dict[str, int] = field(default_factory=dict)
    _to_write: deque[int] = field(default_factory=deque)
    _requests: Requests[UnpackShard | RewriteShard] = field(init=False)
    _skipped: set[int] = field(default_factory=set)
    """Shards that cannot be read in this run."""

    def __post_init__(self) -> None:
        self._requests = Requests(Supervisor("vip.corpus.workers.shard_revisions", "writes shards anew", lambda: self.out))
        shutil.rmtree(self._folder, ignore_errors=True)
        self.refresh()

    @property
    def _folder(self) -> Path:
        return self.state.home / UNPACKED

    @property
    def is_open(self) -> bool:
        """Whether a shard is still to be revised."""
        return bool(self._waiting or self._open or self._requests.current)

    def summary(self) -> str:
        """Return what was done, as a sentence."""
        shards = counted(self.written, "shard is", "shards are")
        return f"{shards} written anew, with {counted(self.gained, 'more keyframe', 'more keyframes')} described."

    @property
    def has_more(self) -> bool:
        """Whether a later `step` may return more videos to be described."""
        return bool(self._waiting) or isinstance(self._requests.current, UnpackShard)

    def refresh(self) -> bool:
        """Queue the shards of which a new generation is wanted. Return whether there are any."""
        known = {number for number, _ in self._waiting} | self._open.keys() | self._skipped
        if self._requests.current is not None:
            known.add(self._requests.current.number)
        self._waiting.extend(wanted for wanted in self.state.shards_to_revise() if wanted[0] not in known)
        return self.is_open

    def step(self, *, unpacks: bool) -> tuple[UnpackedVideo, ...]:
        """Take up a reply of the process, and send the next request.

        Args:
            unpacks: there is room for more videos that wait for their descriptions.

        Returns:
            The videos to be described.

        Raises:
            StoreError: a shard cannot be written.
        """
        request = self._requests.current
        reply = self._requests.reply()
        videos = () if request is None or reply is None else self._handle(reply, request.wanted)
        if self._requests.current is None:
            if self._to_write:
                number = self._to_write.popleft()
                shard = self._open[number]
                self._requests.send(RewriteShard(number, shard.wanted, {key: video.path for key, video in shard.videos.items()}))
            elif self._waiting and unpacks:
                number, wanted = self._waiting.popleft()
                self._requests.send(UnpackShard(number, wanted, self._folder / str(number)))
        return videos

    def has(self, key: str) -> bool:
        """Return whether this video of a shard is being described again."""
        return key in self._shard_of

    def finish(self, key: str, undescribed: int) -> UnpackedVideo:
        """Note that the part of a video has its descriptions, but for so many keyframes. Return the video as it was unpacked."""
        number = self._shard_of.pop(key)
        shard = self._open[number]
        video = shard.videos[key]
        shard.left.remove(key)
        shard.gained += video.undescribed - undescribed
        if not shard.left:
            if shard.gained > 0:
                self._to_write.append(number)
            else:
                self.state.cancel_revision(number)
                self._end(number)
        return video

    def _handle(self, reply: object, wanted: int) -> tuple[UnpackedVideo, ...]:
        """Take up a reply; return the videos to be described.

        Args:
            wanted: the generation of the request.
        """
        match reply:
            case UnpackedShard(number, videos):
                self._open[number] = _Revision(wanted, {video.key: video for video in videos}, {video.key for video in videos})
                self._shard_of |= dict.fromkeys(self._open[number].videos, number)
                return videos
            case RevisedShard():
                self._record(reply)
            case IncompleteParts(number):
                self._end(number)
                self._waiting.appendleft((number, wanted))
            case UnreadableShard(number, text):
                self._skipped.add(number)
                self.note(f"{text} What is not described in it stays so.")
        return ()

    def _record(self, done: RevisedShard) -> None:
        self.state.record_revision(
            done.number, generation=done.generation, size_bytes=done.size_bytes, rows=done.rows, undescribed=done.undescribed
        )
        self.written += 1
        if revision := self._open.get(done.number):
            self.gained += revision.gained
        self._end(done.number)

    def _end(self, number: int) -> None:
        self._open.pop(number, None)
        shutil.rmtree(self._folder / str(number), ignore_errors=True)

    def close(self) -> None:
        self._requests.child.close()


# ---------------------------------------------------------------- in the process


def main(fd: str) -> None:
    """Do the requests that come over this pipe, after the output; in a new interpreter."""
    with child_pipe(fd) as pipe:
        out = pipe.recv()
        while True:
            request = pipe.recv()
            pipe.send(_unpack(out, request) if isinstance(request, UnpackShard) else _rewrite(out, request))


def _unpack(out: str, request: UnpackShard) -> UnpackedShard | RevisedShard | UnreadableShard:
    from vip.dataset.parts import pack
    from vip.dataset.shards import delete_generations_before, read_sidecar, samples_in

    shutil.rmtree(request.folder, ignore_errors=True)
    request.folder.mkdir(parents=True)
    videos = []
    try:
        info = read_sidecar(out, request.number)
        if info.generation >= request.wanted or not info.undescribed:  # a killed run has written it
            delete_generations_before(out, info)
            return _to_revised(info)
        keys = {keyframe.video for keyframe in _undescribed(info)}
        for sample in samples_in(out, info):
            if sample.video.key in keys:
                path = request.folder / f"{sample.video.key}.tar"
                pack(path, sample)
                failed = sum(frame.failure is not None for frame in sample.frames)
                videos.append(UnpackedVideo(sample.video.key, path, sample.video.topic, path.stat().st_size, failed))
    except StoreError as exc:
        return UnreadableShard(request.number, str(exc))
    return UnpackedShard(request.number, tuple(videos))


def _rewrite(out: str, request: RewriteShard) -> RevisedShard | IncompleteParts | VipError:
    from vip.dataset.parts import is_whole
    from vip.dataset.shards import read_sidecar, write_shard

    try:
        info = read_sidecar(out, request.number)
        if info.generation < request.wanted:
            info = write_shard(out, request.number, _revised_samples(out, info, request.parts), info.format, generation=request.wanted)
        return _to_revised(info)
    except VipError as exc:
        return exc if all(map(is_whole, request.parts.values())) else IncompleteParts(request.number)


def _revised_samples(out: str, info: ShardInfo, parts: Mapping[str, Path]) -> Iterator[VideoSample]:
    """Yield the videos of the present generation; those that were described again, from their parts."""
    from vip.dataset.parts import read_part
    from vip.dataset.shards import samples_in

    for sample in samples_in(out, info):
        yield read_part(parts[sample.video.key]) if sample.video.key in parts else sample


def _to_revised(info: ShardInfo) -> RevisedShard:
    return RevisedShard(info.number, info.generation, info.bytes, info.rows, tuple(_undescribed(info)))


def _undescribed(info: ShardInfo) -> Iterator[UndescribedKeyframe]:
    from vip.dataset.shards import undescribed_in

    return undescribed_in(info)
