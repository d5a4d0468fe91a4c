"""A cluster whose workers sleep: downloads and decoding take the time that real ones take, and everything else is real.

The scheduler, Ray, the state, parts, and shards are those of `vip batch`. A part holds one keyframe of 64 x 64 pixels, so that the
disk suffices.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import tempfile
import time
from collections import deque
from functools import cache
from pathlib import Path
from typing import Any

from vip.config import BatchSettings
from vip.corpus.batch import batch
from vip.corpus.settings import BatchConfig
from vip.corpus.workers.pool import Downloaded, Event, Executor, ItemDone, fetchers_for
from vip.corpus.workers.ray_pool import RayPool, RayWorker
from vip.corpus.workers.worker import PartInfo, WorkItem
from vip.dataset.parts import pack
from vip.dataset.rows import KeyframeRow, VideoRow, VideoSample
from vip.records import Keyframe, Quality

FETCH_S, EXTRACT_S = 3.0, 2.5  # of a video of YouTube-8M on average: a quick line, and CLIP on the CPU; see docs/scale.md
WAITS = "VIP_SIMULATED_WAITS"  # folder in which each worker says for what it waited
SPREAD = 0.6  # of the logarithm of both


def lengths(key: str, pace: float) -> tuple[float, float]:
    """Seconds that a video takes to fetch and to extract; the same each time."""
    chance = random.Random(key)
    mean = -SPREAD * SPREAD / 2  # so that the mean of the exponential is 1
    return FETCH_S / pace * chance.lognormvariate(mean, SPREAD), EXTRACT_S / pace * chance.lognormvariate(mean, SPREAD)


class SleepingSeat(RayWorker):
    """An actor whose executor sleeps."""

    def make_executor(self, choices: BatchConfig, fetch: bool) -> Executor:
        return SleepingCrew(choices.batch.sleep)


class SleepingCrew:
    """As many downloads at once as a pool of one worker has, and one video after the other.

    Args:
        pace: how much quicker than real it goes.
    """

    def __init__(self, pace: float) -> None:
        self._pace = pace
        self._fetchers = fetchers_for(1)
        self._to_fetch: deque[WorkItem] = deque()
        self._fetching: list[tuple[float, WorkItem]] = []
        self._ready: deque[WorkItem] = deque()
        self._extracting: tuple[float, WorkItem] | None = None
        self._waits = {"scheduler_s": 0.0, "network_s": 0.0, "late_s": 0.0, "work_s": 0.0}
        self._looked: float | None = None  # from the first video on
        self._told = Path(os.environ[WAITS]) / f"{os.getpid()}.json"

    def has_capacity(self, *, fetch: bool) -> bool:
        return True

    def submit(self, job: WorkItem) -> None:
        self._to_fetch.append(job)

    def events(self, timeout_s: float) -> list[Event]:
        found = self._events(time.monotonic())
        if not found:
            now = time.monotonic()
            ends = [end for end, _ in self._fetching] + ([self._extracting[0]] if self._extracting else [])
            time.sleep(max(0.0, min([now + timeout_s, *ends]) - now))
            found = self._events(time.monotonic())
        return found

    def close(self) -> None:
        pass

    def _note(self, now: float) -> None:
        """Why no video was worked on since the last look: nothing to fetch, not here yet, or it was over and nobody looked."""
        if self._looked is not None:
            if self._extracting:
                worked = max(0.0, min(now, self._extracting[0]) - self._looked)
                self._waits["work_s"] += worked
                self._waits["late_s"] += now - self._looked - worked
            else:
                self._waits["network_s" if len(self._fetching) == self._fetchers else "scheduler_s"] += now - self._looked
        if self._looked is not None or self._extracting:
            self._looked = now

    def _events(self, now: float) -> list[Event]:
        self._note(now)
        found: list[Event] = []
        for end, job in list(self._fetching):
            if end <= now:
                self._fetching.remove((end, job))
                self._ready.append(job)
                found.append(Downloaded(job.id))
        if self._extracting and self._extracting[0] <= now:
            end, job = self._extracting
            data = _part(job.item.key)
            found.append(ItemDone(job.id, data, PartInfo(1, len(data), 230.0, None)))
            self._extracting = None
            self._told.write_text(json.dumps(self._waits))  # to its last video: what it waits after that is the end of the list
        while self._to_fetch and len(self._fetching) < self._fetchers:
            job = self._to_fetch.popleft()
            self._fetching.append((now + lengths(job.item.key, self._pace)[0], job))
        if self._extracting is None and self._ready:
            job = self._ready.popleft()
            self._extracting = (now + lengths(job.item.key, self._pace)[1], job)
        return found


def _part(key: str) -> bytes:
    keyframe = Keyframe(
        id=f"{key}:0001",
        video_id=key,
        time_s=1.0,
        pts=1,
        image_path="keyframes/0001.jpg",
        width_px=64,
        height_px=64,
        quality=Quality(sharpness=100, brightness=0.5, contrast=0.2),
        detections=(),
        candidate=0,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part.tar"
        pack(path, VideoSample(VideoRow(key=key, kind="youtube", source=key), (KeyframeRow(keyframe, _picture(), None),)))
        return path.read_bytes()


@cache
def _picture() -> bytes:
    import cv2
    import numpy as np

    return bytes(cv2.imencode(".jpg", np.zeros((64, 64, 3), np.uint8))[1].tobytes())


def simulate(out: Path, items: int, workers: int, *, pace: float = 1.0) -> dict[str, float]:
    """Run a batch of so many items.

    Returns:
        work_s: the extraction of all items; scheduler_s, network_s: for how long workers had nothing to extract, because they had
        nothing to fetch, or because it was not there yet, from their first video to their last; late_s: that a sleep took longer
        than it should; wall_s: from the first item to the
        last; driver_cpu_s.
    """
    keys = [f"{number:011d}" for number in range(items)]
    names = out.with_suffix(".txt")
    names.write_text("\n".join(keys))
    spans: list[float] = []
    waits = _fresh(out.with_name(f"{out.name}-waits"))

    class Timed(RayPool):
        def submit(self, job: WorkItem) -> None:
            if not spans:
                spans[:] = [time.perf_counter(), 0.0]
            super().submit(job)

        def events(self, timeout_s: float) -> list[Event]:
            found = super().events(timeout_s)
            if any(isinstance(event, ItemDone) for event in found):
                spans[1] = time.perf_counter()
            return found

    def executor(choices: BatchConfig, home: Path, fetch: bool) -> Any:
        return Timed(choices, home, fetch=fetch, worker=SleepingSeat)

    os.environ[WAITS] = str(waits)
    here = Path(__file__).parent
    os.environ["PYTHONPATH"] = f"{here}:{here.parent}"  # Ray's workers have this module and vip from there
    settings = BatchSettings(runner="ray", workers=workers, per_host=10 * workers, sleep=pace, shard_size=20_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF)
    told = batch([str(names)], str(out), BatchConfig(settings), executor=executor)
    after = resource.getrusage(resource.RUSAGE_SELF)
    if told.done != items:
        raise RuntimeError(f"{told.done} of {items} items are done")
    told_by = [json.loads(path.read_text()) for path in waits.iterdir()]
    return {
        **{name: sum(one[name] for one in told_by) for name in ("scheduler_s", "network_s", "late_s")},
        "work_s": sum(lengths(key, pace)[1] for key in keys),
        "wall_s": spans[1] - spans[0],
        "driver_cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    }


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
