"""Features of videos at even distances in time, a file a video: what HERO learns from (Li et al. 2021, section 4.1: one each 1.5 s).

In: videos, models, seconds. Out: a folder with NAME.npz of each video: `features`, float32 (F, D); row i belongs to the seconds from
i times the distance on, and is that of the frames around their middle. The same command goes on where it stopped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vip import files, store
from vip.errors import InputError, StoreError, UsageError
from vip.protocols import Observer, SilentObserver
from vip.records import Failure, Image
from vip.tasks.value.channels import write_features
from vip.tasks.video_features import (
    LONGEST_SIDE_PX,
    REQUEST,
    Extractors,
    FeatureRequest,
    by_id,
    distance_to,
    failure_of,
    open_extractors,
    places_around,
)
from vip.video import Source, open_video
from vip.wording import counted, option

SHORTEST_S = 0.01
MOST_FEATURES = 500_000  # of a video: nine days at 1.5 s, and five hours of single frames; times of a file may be lies


@dataclass(frozen=True, slots=True)
class TimedSummary:
    """What was written."""

    folder: Path
    videos: int
    features: int
    """Of all videos that this call extracted."""
    known: int
    """Videos that an earlier call had extracted."""
    failures: tuple[Failure, ...]

    @property
    def sentence(self) -> str:
        known = f", {self.known:,} of them known" if self.known else ""
        return f"{counted(self.videos, 'video')}{known}, {counted(self.features, 'new feature')}, in {self.folder}"


def extract_timed_features(
    videos: Sequence[Source],
    out: Path,
    request: FeatureRequest,
    every_s: float,
    *,
    overwrite: bool = False,
    observer: Observer | None = None,
) -> TimedSummary:
    """Write the features of videos; one that cannot be read does not stop the others.

    Raises:
        UsageError: the folder was begun with other settings, or a setting does not fit.
        InputError: two videos have one id.
        BackendError: a library, weights or the device are missing.
        StoreError: not writable.
    """
    if not SHORTEST_S <= every_s < math.inf:
        raise UsageError(f"{option('every', every_s)} is no distance. Write seconds, such as {option('every', 1.5)}.")
    if request.maps:
        raise UsageError(f"{option('maps')} gives maps of a fixed number of clips. Leave {option('every')} out.")
    observer = observer or SilentObserver()
    found = by_id(videos)
    extractors = open_extractors(request)
    _prepare(out, request, every_s, overwrite=overwrite)
    failures: list[Failure] = []
    known = features = 0
    with observer.track("Extracting features", len(found), lambda: f"{len(failures)} failed" if failures else "") as advance:
        for video_id, video in found.items():
            path = out / f"{video_id}.npz"
            try:
                if store.exists(path):
                    known += 1
                else:
                    rows = features_of(video, request, every_s, extractors)
                    write_features(path, rows)
                    features += len(rows)
            except (InputError, OSError) as exc:
                failures.append(failure_of(video, exc))
                observer.note(str(exc))
            advance()
    store.write_failures(out.parent / store.FAILURES, failures)
    return TimedSummary(out, len(found) - len(failures), features, known, tuple(failures))


def _prepare(out: Path, request: FeatureRequest, every_s: float, *, overwrite: bool) -> None:
    """Make the folder, or take the one of an earlier call with the same settings."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file. With {option('every')} the features lie in a folder: name one with {option('out')}.")
    before, text = None, json.dumps({**request.content, "clips": None, "every_s": every_s}, sort_keys=True)
    with suppress(OSError):
        before = files.read_bytes(out / REQUEST, inside=out).decode(errors="replace")
    if before != text and not overwrite and (before is not None or any(out.glob("*.npz"))):
        raise UsageError(f"{out} holds features of other settings. Add {option('overwrite')} to begin again, or name another folder.")
    store.make_folder(out)
    if overwrite:
        try:
            for path in out.glob("*.npz"):
                files.remove(path, inside=out)
        except OSError as exc:
            raise StoreError(f"{out} cannot be emptied: {exc.strerror}. Name another folder with {option('out')}.") from exc
    with store.replacing(out / REQUEST) as file:
        file.write(text.encode())


def features_of(video: Source, request: FeatureRequest, every_s: float, extractors: Extractors) -> npt.NDArray[np.float32]:
    """Return (F, D), one row each `every_s` seconds. One clip is in memory at a time.

    Raises:
        InputError: the video cannot be read, or a feature is not finite.
    """
    rows = [extractors.extract([clip], False)[0] for clip in timed_clips(video, every_s, request.frames)]
    found = np.concatenate(rows).astype(np.float32)
    if not np.isfinite(found).all():
        raise InputError(f"{video}: {request.model} gives numbers that are not finite. Try a higher {option('precision')}.")
    return found


def timed_places(times_s: npt.NDArray[np.float64], every_s: float, frames: int) -> list[list[int]]:
    """Return the numbers of the frames around the middle of each stretch of `every_s` seconds, of a video with frames at these times."""
    since = times_s - times_s[0]
    stretches = int(since[-1] // every_s) + 1
    middles = np.searchsorted(since, (np.arange(stretches) + 0.5) * every_s)
    return places_around(middles.tolist(), len(since), frames)


def timed_clips(video: Source, every_s: float, frames: int) -> Iterator[list[Image]]:
    """Yield the frames of each clip. Each is decoded once; one that cannot be is its neighbour.

    Raises:
        InputError: the video cannot be read, it would have too many clips, or no frame of a clip can be decoded.
    """
    with open_video(video) as reader:
        stamps = reader.index.shown_pts
        times_s = np.asarray(stamps * float(reader.time_base), np.float64)
        if not (wanted := float(times_s[-1] - times_s[0]) / every_s) < MOST_FEATURES:
            raise InputError(
                f"{video}: {wanted:,.0f} features, and of a video at most {MOST_FEATURES:,} are made. Write a larger {option('every')}."
            )
        clips = [[int(stamps[place]) for place in places] for places in timed_places(times_s, every_s, frames)]
        decoded = reader.frames(sorted({pts for clip in clips for pts in clip}), longest_side_px=LONGEST_SIDE_PX)
        held: dict[int, Image] = {}
        for number, clip in enumerate(clips):
            held = {pts: image for pts, image in held.items() if pts >= clip[0]}
            while max(held, default=-math.inf) < clip[-1]:
                frame = next(decoded, None)
                if frame is None:
                    break
                if frame.pts >= clip[0]:
                    held[frame.pts] = frame.image
            if not held:
                raise InputError(f"{video}: no frame from {number * every_s:.1f} s on can be decoded.")
            yield [held[min(held, key=distance_to(pts))] for pts in clip]
