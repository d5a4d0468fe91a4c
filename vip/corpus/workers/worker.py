"""One worker process: it fetches videos, or it extracts their keyframes, one after the other.

In: tasks over a pipe. Out: messages, and for each video a part: a file with everything that the shards need of it. FFmpeg runs in
a fork of this process, so a decoder's crash costs one video only. The death of this process costs the same.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal, NamedTuple, cast

from vip import cores
from vip.config import BatchSettings, CaptionSettings, ExtractSettings
from vip.corpus.state_dir import PARTS
from vip.corpus.workers.disk_budget import DiskAllowance, DiskBudget
from vip.dataset.items import DownloadedVideo, ListItem
from vip.errors import FailureKind, InputError, ItemError, ReplyError, SomeFailedError, StoreError, VipError
from vip.processes.isolated import run_isolated  # before any model: it notes whether torch, and so its threads, came first
from vip.processes.supervisor import child_pipe
from vip.protocols import Observer, SilentObserver
from vip.store import Run

VIDEOS, WORK = "videos", "work"  # folders of a pool, beside that of the parts
WorkerRole = Literal["fetch", "extract"]


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """Settings for all items.

    Args:
        home: the folder of the pool.
        disk: the budget of all downloads on the machine.
        captioning: for the offline engine, whose descriptions are made beside the keyframes; None for any other, or for none.
    """

    home: Path
    extraction: ExtractSettings
    batch: BatchSettings
    disk: DiskBudget
    captioning: CaptionSettings | None = None


class WorkItem(NamedTuple):
    """One item to be done; its topic is that of its list, or else of the vocabulary."""

    id: int
    item: ListItem


class PartInfo(NamedTuple):
    """The facts that the driver records about a part."""

    rows: int
    size_bytes: int
    length_s: float | None
    youtube_id: str | None
    undescribed: tuple[tuple[str, str, str], ...] = ()
    """Keyframes that could not be described: id, type, message."""


# ---------------------------------------------------------------- messages to a worker


class FetchTask(NamedTuple):
    """A task: fetch the video of this item."""

    work: WorkItem


class ExtractTask(NamedTuple):
    """A task: extract the keyframes of this item."""

    work: WorkItem
    video: DownloadedVideo | None
    """None for a local file."""
    cores: int


# ---------------------------------------------------------------- messages of a worker; a VipError: no task can be done


class WorkerReady(NamedTuple):
    """The models are loaded."""


class DiskWait(NamedTuple):
    """A download starts or ends to wait for room on the disk."""

    is_waiting: bool


class VideoFetched(NamedTuple):
    """The video is on this machine."""

    video: DownloadedVideo


class PartWritten(NamedTuple):
    """The part of the item is in its place."""

    info: PartInfo


class TaskFailed(NamedTuple):
    """The item could not be done."""

    kind: FailureKind
    message: str
    retry_after_s: float | None = None


TaskResult = VideoFetched | PartWritten | TaskFailed


def part_path(home: Path, key: str) -> Path:
    return home / PARTS / f"{key}.tar"


def main(fd: str, role: WorkerRole) -> None:
    """Do the tasks that come over this pipe, after the configuration; in a new interpreter."""
    with child_pipe(fd) as pipe:
        config = pipe.recv()
        try:
            if role == "extract":
                from vip.extraction.backends import load

                load(config.extraction)  # so that the forks have the models
            pipe.send(WorkerReady())
            while True:
                pipe.send(_result(config, pipe, pipe.recv()))
        except VipError as exc:
            pipe.send(exc)


def _result(config: WorkerConfig, pipe: Connection, task: FetchTask | ExtractTask) -> TaskResult:
    """Do a task and return its result.

    Raises:
        VipError: no other task can be done either.
    """
    try:
        if isinstance(task, FetchTask):
            return VideoFetched(fetch_video(config, task.work, lambda waits: pipe.send(DiskWait(waits))))
        return PartWritten(extract_video(config, *task))
    except ItemError as exc:
        return TaskFailed(exc.kind, str(exc), exc.retry_after_s)
    except (InputError, ReplyError) as exc:
        kind = cast(FailureKind, exc.failure_kind)
        return TaskFailed(kind, timeout_message(config) if kind == "timeout" else str(exc))
    except (StoreError, OSError) as exc:
        return TaskFailed("disk", str(exc))


def timeout_message(config: WorkerConfig) -> str:
    return f"Not extracted within {config.extraction.timeout:g} s. Try it again with --retry-failed=timeout and a longer --timeout."


def fetch_video(config: WorkerConfig, work: WorkItem, on_wait: Callable[[bool], None] = lambda waits: None) -> DownloadedVideo:
    """Fetch the video into a folder of its own.

    Args:
        on_wait: called with True when the download starts to wait for room on the disk, and with False when it goes on.
    """
    from vip.download.fetch import fetch

    folder = config.home / VIDEOS / work.item.key
    shutil.rmtree(folder, ignore_errors=True)  # of a killed try
    folder.mkdir(parents=True)
    allowance = DiskAllowance(config.disk, work.item.key, on_wait)
    found = fetch(work.item, config.batch, folder, room_bytes=config.disk.size_bytes, space=allowance)
    allowance.settle(sum(path.stat().st_size for path in folder.iterdir()))
    return found


def extract_video(config: WorkerConfig, work: WorkItem, video: DownloadedVideo | None, count: int) -> PartInfo:
    """Extract the keyframes, describe them if the engine is offline, and pack everything into a part.

    Args:
        video: None for a local file.
        count: the cores to use.
    """
    from vip.dataset.parts import pack
    from vip.dataset.rows import sample_of
    from vip.pipeline import extract
    from vip.video.source import FileSource

    cores.limit(count)
    here = video or DownloadedVideo(Path(work.item.source), is_ours=False)
    folder = config.home / WORK / work.item.key
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _check_length(config, here)
        run = extract(FileSource(here.path, work.item.key), out=folder, settings=config.extraction, isolated=True)
        if config.batch.words:
            _add_words(run, here, config.batch.words)
        if config.captioning:
            _describe(run.folder, config.captioning, work.item.topic)
        sample = sample_of(run, item=work.item, fetched=here)
        if config.batch.words:
            settings = {**sample.video.settings, "words": list(config.batch.words)}
            sample = replace(sample, video=sample.video.model_copy(update={"settings": settings}))
        path = part_path(config.home, work.item.key)
        pack(path, sample)
        return PartInfo(len(sample.frames), path.stat().st_size, sample.video.duration_s, here.youtube_id, undescribed_keyframes(run))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if here.is_ours:
            _keep_or_delete(config, here.path)


def undescribed_keyframes(run: Run) -> tuple[tuple[str, str, str], ...]:
    """Return the keyframes of a run that could not be described: id, type, message."""
    described = {row.keyframe_id for row in run.descriptions}  # of some only the second look failed
    return tuple((failure.item, failure.kind, failure.message) for failure in run.failures if failure.item not in described)


def _check_length(config: WorkerConfig, video: DownloadedVideo) -> None:
    low, high = config.batch.min_length, config.batch.max_length
    if low is None and high is None:
        return
    work = partial(_require_length, video.path, low, high)
    run_isolated(work, video.path, SilentObserver(), timeout_s=config.extraction.timeout, fork=True)


def _require_length(path: Path, low: float | None, high: float | None, observer: Observer) -> None:
    from vip.video import open_video, source_of

    with open_video(source_of(path)) as reader:
        info = reader.info()
    length_s = info.duration_s_from_header or info.end_time_s - info.start_time_s
    if high is not None and length_s > high:
        raise ItemError(f"{path.name} lasts {length_s:.0f} s, more than --max-length {high:g}.", "too_long")
    if low is not None and length_s < low:
        raise ItemError(f"{path.name} lasts {length_s:.1f} s, less than --min-length {low:g}.", "too_short")


def _add_words(run: Run, video: DownloadedVideo, words: tuple[str, ...]) -> None:
    """Write the words of a run: subtitles of its page, or else in the video or beside it, and the text in its keyframes.

    A video without subtitles, or with damaged ones, has none.
    """
    from vip import store
    from vip.dataset.subtitles import choose_subtitles, read_subtitles, spoken_words
    from vip.pipeline import add_text, add_words
    from vip.video.source import FileSource

    if "subtitles" in words:
        vtt = choose_subtitles(read_subtitles(video), video.info.get("language"))
        if rows := spoken_words(vtt, "subtitles of the video") if vtt else []:
            store.write_rows(run.folder / store.WORDS, rows)
        else:
            with suppress(InputError):
                add_words(run, FileSource(video.path), ("subtitles",), isolated=True, is_needed=False)
    add_text(run, words, isolated=True)


def _describe(folder: Path, settings: CaptionSettings, topic: str | None) -> None:
    """Describe the keyframes; the run's failures.jsonl names those that could not be described."""
    from vip.captioning.caption_job import open_job, skip_picture_folder

    settings = settings.model_copy(update={"topic": topic or settings.topic})
    with suppress(SomeFailedError), open_job([folder], settings, SilentObserver(), skip_picture_folder) as job:
        job.run()


def _keep_or_delete(config: WorkerConfig, path: Path) -> None:
    """Delete the download, or move it to `--keep-videos`."""
    if config.batch.keep_videos:
        config.batch.keep_videos.mkdir(parents=True, exist_ok=True)
        shutil.move(path, config.batch.keep_videos / path.name)
    shutil.rmtree(path.parent, ignore_errors=True)
