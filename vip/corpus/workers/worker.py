"""One process of a crew: it fetches videos, or it extracts their keyframes, one after the other.

In: jobs over a pipe. Out: messages, and for each video a part, that is a file with all that the shards need of it. FFmpeg runs in
a fork of this process, so that a decoder's crash costs that video only; whatever ends this process costs the same.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal, NamedTuple

from vip import cores
from vip.config import BatchSettings, CaptionSettings, ExtractSettings
from vip.corpus.state_dir import PARTS
from vip.corpus.workers.disk_budget import DiskAllowance, DiskBudget
from vip.dataset.items import DownloadedVideo, ListItem
from vip.errors import InputError, ItemError, ReplyError, SomeFailedError, StoreError, VipError, kind_of
from vip.processes.isolated import run_isolated  # before any model: it notes whether torch, and so its threads, came first
from vip.processes.supervisor import child_pipe
from vip.protocols import Observer, SilentObserver
from vip.store import Run

VIDEOS, WORK = "videos", "work"  # folders of a crew, beside that of the parts
WorkerRole = Literal["fetch", "extract"]


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """What holds for all items.

    Args:
        home: the crew's folder.
        disk: the budget of all downloads on the machine.
        captioning: where the descriptions are measured and not asked for, they are made beside the keyframes; else None.
    """

    home: Path
    extraction: ExtractSettings
    batch: BatchSettings
    disk: DiskBudget
    captioning: CaptionSettings | None = None


class WorkItem(NamedTuple):
    """One item to be done; its topic is what its list or else the vocabulary says it is about."""

    id: int
    item: ListItem


class PartInfo(NamedTuple):
    """About a part."""

    rows: int
    size_bytes: int
    length_s: float | None
    youtube_id: str | None
    undescribed: tuple[tuple[str, str, str], ...] = ()
    """Keyframes that could not be described: id, type, message."""


def part_path(home: Path, key: str) -> Path:
    return home / PARTS / f"{key}.tar"


def main(fd: str, role: WorkerRole) -> None:
    """In a new interpreter: the plan and then the jobs come over this pipe."""
    with child_pipe(fd) as pipe:
        plan = pipe.recv()
        try:
            if role == "extract":
                from vip.extraction.backends import load

                load(plan.extraction)  # so that the forks have the models
            pipe.send(("here",))
            while True:
                pipe.send(_done(plan, role, pipe, *pipe.recv()))
        except VipError as exc:
            pipe.send(("stop", exc))


def _done(plan: WorkerConfig, role: WorkerRole, pipe: Connection, job: WorkItem, *more: Any) -> tuple[Any, ...]:
    """The message that says what became of a job."""
    try:
        if role == "fetch":
            return "fetched", fetched(plan, job, lambda waits: pipe.send(("waits", waits)))
        return "done", extracted(plan, job, *more)
    except ItemError as exc:
        return "failed", exc.kind, str(exc), exc.retry_after_s
    except (InputError, ReplyError) as exc:
        kind = kind_of(exc)
        return "failed", kind, too_slow(plan) if kind == "timeout" else str(exc), None
    except (StoreError, OSError) as exc:
        return "failed", "disk", str(exc), None


def too_slow(plan: WorkerConfig) -> str:
    """What is said of a video that reached its time limit."""
    return f"Not extracted within {plan.extraction.timeout:g} s. Try it again with --retry-failed=timeout and a longer --timeout."


def fetched(plan: WorkerConfig, job: WorkItem, waits: Callable[[bool], None] = lambda waits: None) -> DownloadedVideo:
    """The video on this machine, in a folder of its own.

    Args:
        waits: told while there is no room for it on the disk.
    """
    from vip.download.fetch import fetch

    folder = plan.home / VIDEOS / job.item.key
    shutil.rmtree(folder, ignore_errors=True)  # of a try that was killed
    folder.mkdir(parents=True)
    allowance = DiskAllowance(plan.disk, job.item.key, waits)
    found = fetch(job.item, plan.batch, folder, room_bytes=plan.disk.size_bytes, space=allowance)
    allowance.settle(sum(path.stat().st_size for path in folder.iterdir()))
    return found


def extracted(plan: WorkerConfig, job: WorkItem, video: DownloadedVideo | None, count: int) -> PartInfo:
    """Extract the keyframes, describe them where that is measured, and pack it all into a part.

    Args:
        video: None for a local file.
        count: the cores to use.
    """
    from vip.dataset.parts import pack
    from vip.dataset.rows import clip_of
    from vip.pipeline import extract
    from vip.video.source import FileSource

    cores.limit(count)
    here = video or DownloadedVideo(Path(job.item.source), is_ours=False)
    folder = plan.home / WORK / job.item.key
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _check_length(plan, here)
        run = extract(FileSource(here.path, job.item.key), out=folder, settings=plan.extraction, isolated=True)
        if plan.captioning:
            _describe(run.folder, plan.captioning, job.item.topic)
        sample = clip_of(run, item=job.item, fetched=here)
        path = part_path(plan.home, job.item.key)
        pack(path, sample)
        return PartInfo(len(sample.frames), path.stat().st_size, sample.video.duration_s, here.youtube_id, undescribed(run))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if here.is_ours:
            _put_away(plan, here.path)


def undescribed(run: Run) -> tuple[tuple[str, str, str], ...]:
    """The keyframes of a run that could not be described: id, type, message."""
    described = {row.keyframe_id for row in run.descriptions}  # of some only the second look failed
    return tuple((failure.item, failure.kind, failure.message) for failure in run.failures if failure.item not in described)


def _check_length(plan: WorkerConfig, video: DownloadedVideo) -> None:
    low, high = plan.batch.min_length, plan.batch.max_length
    if low is None and high is None:
        return

    run_isolated(partial(_refuse_length, video.path, low, high), video.path, SilentObserver(), timeout_s=plan.extraction.timeout, fork=True)


def _refuse_length(path: Path, low: float | None, high: float | None, observer: Observer) -> None:
    from vip.video import open_video, source_of

    with open_video(source_of(path)) as reader:
        info = reader.info()
    length_s = info.duration_s_from_header or info.end_time_s - info.start_time_s
    if high is not None and length_s > high:
        raise ItemError(f"{path.name} lasts {length_s:.0f} s, more than --max-length {high:g}.", "too_long")
    if low is not None and length_s < low:
        raise ItemError(f"{path.name} lasts {length_s:.1f} s, less than --min-length {low:g}.", "too_short")


def _describe(folder: Path, settings: CaptionSettings, topic: str | None) -> None:
    """Descriptions that are measured; those that cannot be made are named in the run's failures.jsonl."""
    from vip.captioning.caption_job import caption

    with suppress(SomeFailedError):
        caption(folder, settings=settings.model_copy(update={"topic": topic or settings.topic}))


def _put_away(plan: WorkerConfig, path: Path) -> None:
    """Delete what was downloaded, or keep it where the user wants it."""
    if plan.batch.keep_videos:
        plan.batch.keep_videos.mkdir(parents=True, exist_ok=True)
        shutil.move(path, plan.batch.keep_videos / path.name)
    shutil.rmtree(path.parent, ignore_errors=True)
