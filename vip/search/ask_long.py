"""The frames of a question about a long video, found without analyzing all of it: under 2 % of its frames are decoded.

In: a video of 20 minutes or more, and an embedder that compares pictures and texts. Out: keyframes in `asked/HASH/` inside the folder of
its run, which need not be there. Which frames are looked at is decided by `coarse_to_fine`. The frames before a wanted one in its GOP
have to be decoded too, and count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np

from vip import registry, store
from vip.config import ExtractSettings
from vip.errors import StoreError
from vip.extraction.backends import embedder_for
from vip.extraction.picture_cache import EXPENSIVE_PACKETS, PictureCache
from vip.extraction.quality import WORKING_SIDE_PX, measure, shows_nothing
from vip.processes.isolated import run_isolated
from vip.protocols import Observer
from vip.records import Keyframe, Manifest, Quality, Record
from vip.search.coarse_to_fine import ClipSearch, Places
from vip.store import Run
from vip.video import AddressSource, PicturesSource, Reader, Source, open_video
from vip.wording import counted

LONG_S = 20 * 60.0
"""Shorter videos are analyzed as a whole, which also serves the next question."""
MOST_SHARE = 0.02  # of the frames
MOST_DECODED = 4000  # frames: some minutes of CLIP on a CPU
STEP_S = 0.5  # between two frames that may be looked at
FEWEST_STARTS = 32  # places where decoding can begin; with fewer the budget reaches nothing
CHEAP_PACKETS = 3  # a frame that needs more is kept at full size when it is looked at
LOOKED = "looked.json"
USUAL_RATE = 25


class LookedFrames(Record):
    """How many frames of a long video a question needed."""

    frames: int
    decoded: int
    embedded: int
    clips: int

    @property
    def sentence(self) -> str:
        share = f"{100 * self.decoded / self.frames:.2f} %"
        return (
            f"The frames are chosen by the question from {self.embedded:,} of {self.frames:,}: {self.decoded:,} were decoded ({share}),"
            f" first of all {counted(self.clips, 'clip')}, then of the most promising."
        )


def find_frames_of_long(
    video: Source, home: Path, question: str, frames: int, settings: ExtractSettings, observer: Observer, *, isolated: bool
) -> tuple[Run, LookedFrames] | None:
    """Return a run folder with the frames for a question; None where the video is short, or the embedder knows no texts.

    Args:
        home: the folder of its run, into which nothing but `asked/` is written.

    Raises:
        InputError: the video cannot be read.
        BackendError: the embedder is not installed, or has no weights.
        StoreError: the folder cannot be written.
    """
    name, _ = registry.auto_embedder(settings.embedder)
    if name == "classic" or isinstance(video, PicturesSource) or _is_known_short(home):
        return None
    folder = home / store.ASKED / _digest(video, question, frames, name, settings)
    if not store.exists(folder / LOOKED):
        work = partial(_look_and_write, video, home, folder, question, frames, settings)
        if isolated:
            run_isolated(work, video, observer, timeout_s=settings.timeout, fork=True)
        else:
            work(observer)
    if not store.exists(folder / LOOKED):
        return None
    return Run(folder), store.read_json(folder / LOOKED, LookedFrames, inside=home)  # no link leads to it


def _is_known_short(home: Path) -> bool:
    with suppress(StoreError):
        if store.exists(home / store.MANIFEST):
            video = store.read_json(home / store.MANIFEST, Manifest).video
            return video.end_time_s - video.start_time_s < LONG_S
    return False


def _digest(video: Source, question: str, frames: int, embedder: str, settings: ExtractSettings) -> str:
    where = video.exact_location if isinstance(video, AddressSource) else video.location
    about = [where, video.state(), question, frames, embedder, settings.stream, str(settings.start), str(settings.end)]
    return hashlib.sha256(json.dumps(about).encode("utf-8", "surrogatepass")).hexdigest()[:16]


# ---------------------------------------------------------------- in the process that decodes


def _look_and_write(
    source: Source, home: Path, folder: Path, question: str, count: int, settings: ExtractSettings, observer: Observer
) -> None:
    """Write the folder; nothing is written where the video is short, cannot be sought in, or the embedder knows no texts."""
    with open_video(source, stream=settings.stream, start_s=settings.start, end_s=settings.end) as video:
        total = _number_of_frames(video)
        if total is None:
            return
        pts, places = _places(video)
        budget = min(MOST_DECODED, int(total * MOST_SHARE) - 2) - CHEAP_PACKETS * count  # the chosen ones are decoded once more
        if sum(cost == 1 for cost in places.costs) < FEWEST_STARTS or budget < FEWEST_STARTS:
            return
        embedder, _ = embedder_for(settings)
        if not embedder.capabilities.joint_space:
            return
        wanted = embedder.embed_texts([question])[0]
        for path in (home, folder.parent, folder):
            store.make_folder(path, inside=home if path != home else None)
        search = ClipSearch(places, budget)
        scale = EXPENSIVE_PACKETS // CHEAP_PACKETS
        with (
            PictureCache(folder, settings.format, lambda stamp: scale * video.effort(stamp)).while_selecting() as keeper,
            observer.track("Looking for it", budget) as advance,
        ):
            qualities: dict[int, Quality] = {}

            def look(some: Sequence[int]) -> Mapping[int, float]:
                images, found = [], []
                place_of = {pts[place]: place for place in some}
                for frame in video.frames(list(place_of), longest_side_px=WORKING_SIDE_PX, keeper=keeper):
                    measures = measure(frame.image)
                    if shows_nothing(measures) is None:
                        qualities[frame.pts] = measures.quality
                        images.append(frame.image)
                        found.append(place_of[frame.pts])
                for place in some:
                    for _ in range(places.costs[place]):
                        advance()
                values = embedder.embed_images(images) @ wanted if images else np.empty(0)
                return {place: float(value) for place, value in zip(found, values, strict=True)}

            search.run(look)
            chosen = search.best(count)
            rows = list(_write_pictures(video, folder, [pts[place] for place in chosen], qualities, settings.format, source.stem, keeper))
            keeper.clear()
        store.write_rows(folder / store.KEYFRAMES, rows)
        decoded = 1 + search.spent + CHEAP_PACKETS * len(rows)
        done = LookedFrames(frames=total, decoded=decoded, embedded=len(search.looked), clips=search.clips)
        store.write_json(folder / LOOKED, done, inside=folder)


def _number_of_frames(video: Reader) -> int | None:
    """Return the number of frames; None where the video is short, or cannot be sought in."""
    shown = video.index.shown_pts
    if video.index.by_decoding or float(int(shown[-1] - shown[0]) * video.time_base) < LONG_S:
        return None
    if not video.index.is_sparse:
        return len(shown)
    info = video.info()
    return int((info.end_time_s - info.start_time_s) * float(info.frame_rate or USUAL_RATE))


def _places(video: Reader) -> tuple[list[int], Places]:
    """Return the PTS of the frames that may be looked at: one in each half second, where decoding can begin if there is such a one."""
    shown, starts = video.index.shown_pts, set(video.index.sync_pts.tolist())
    ticks = max(1, int(Fraction(str(STEP_S)) / video.time_base))
    first: dict[int, int] = {}
    for stamp in shown.tolist():
        cell = (stamp - int(shown[0])) // ticks
        if cell not in first or (stamp in starts and first[cell] not in starts):
            first[cell] = stamp
    pts = list(first.values())
    return pts, Places([float(stamp * video.time_base) for stamp in pts], [video.effort(stamp) for stamp in pts])


def _write_pictures(
    video: Reader, folder: Path, pts: Sequence[int], qualities: Mapping[int, Quality], suffix: str, video_id: str, keeper: PictureCache
) -> Iterator[Keyframe]:
    """Write the pictures at full size; those that took long to decode are there already."""
    store.make_folder(folder / store.PICTURES, inside=folder)
    names = {stamp: store.picture_name(number, float(stamp * video.time_base), suffix, of=len(pts)) for number, stamp in enumerate(pts, 1)}
    for stamp in filter(keeper.has, pts):
        keeper.move(stamp, folder / store.PICTURES / names[stamp])
    for frame in video.frames([stamp for stamp in pts if not store.exists(folder / store.PICTURES / names[stamp])]):
        store.write_picture(folder / store.PICTURES / names[frame.pts], frame.image, inside=folder)
    for number, stamp in enumerate(pts, 1):
        path = folder / store.PICTURES / names[stamp]
        if store.exists(path):
            height, width = store.read_picture(path, inside=folder).shape[:2]
            yield Keyframe(
                id=f"{video_id}:{number:04d}",
                video_id=video_id,
                time_s=float(stamp * video.time_base),
                pts=stamp,
                image_path=f"{store.PICTURES}/{names[stamp]}",
                width_px=width,
                height_px=height,
                quality=qualities[stamp],
                detections=None,
                candidate=None,
            )
