"""Analysis of frames: decode each once, measure it, and keep what later stages need instead of the pixels.

In: PTS. Out: a `FrameAnalysis` for each, in time order. Work is split over threads, each with a reader of its own, while the embedder
works on what they have done; the result does not depend on how many there are, and memory holds a few pictures a thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from queue import Full, Queue, SimpleQueue
from threading import Event
from typing import NamedTuple, TypeVar

import cv2
import numpy as np
import numpy.typing as npt

from vip.cores import cores as core_count
from vip.cores import one_opencv_thread
from vip.extraction.quality import WORKING_SIDE_PX, FrameMeasures, measure, sharpness_of, shows_nothing
from vip.extraction.spool import Spool, Spooled
from vip.extraction.stillness import between_rests, calm_frames, still_frames
from vip.extraction.transitions import activity_of
from vip.protocols import Detector, Embedder, PictureKeeper
from vip.records import Detection, Frame, Image, PacketIndex
from vip.video import Reader

SIGNATURE_SIZE = (32, 18)
THUMBNAIL_SIDE_PX = 160
THUMBNAIL_JPEG_QUALITY = 80
DETECTOR_JPEG_QUALITY = 90
BATCHES_PER_WORKER = 8  # so that a worker with cheap groups takes over from one with expensive ones
AHEAD = 4  # batches a worker that may be done or under way before their results are wanted
MOST_DECODER_THREADS = 16  # as in FFmpeg, which takes one more than there are cores: 6 % slower, where there are two
RESULTS_WAITING = 64  # at most so many of a batch

Vector = npt.NDArray[np.float32]  # (D,) of length 1
UNKNOWN: Vector = np.zeros(0, np.float32)

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class FrameAnalysis:
    """The measures, vectors and detections of a frame."""

    pts: int
    time_s: float
    measured: FrameMeasures
    signature: npt.NDArray[np.uint8]
    """uint8 (18, 32, 3): the picture so small that only real changes show."""
    thumbnail: bytes
    """JPEG, longest side 160 px."""
    view: Vector
    """float32 (1544,) of length 1 (`vip.models.classic`): it decides whether two frames show the same view, whatever the embedder."""
    vector: Vector
    """float32 (D,) of length 1, the embedder's; of length 0 as long as that has not seen the picture."""
    detections: tuple[Detection, ...] | None = None
    """None where no objects were sought, or nobody knows."""
    unseen: Image | None = None
    """For the embedder, as small as it takes it; None once that has seen it."""
    picture: Spooled | None = None
    """JPEG for the detector (`vip.extraction.objects`); None once that has seen it, or where nothing shows."""
    in_transition: bool = False
    """Beside a cut, a cross-fade or a fast pan (`vip.extraction.transitions`)."""
    is_still: bool = False
    """Nothing moves just before or just behind it (`vip.extraction.stillness`)."""
    is_calm: bool = False
    """No more moves around it than in the calm stretches of its video (`vip.extraction.stillness`)."""
    is_between_rests: bool = False
    """Moves for a moment, on the way from one picture that stands still to the next (`vip.extraction.stillness`)."""
    stands_in_for: int | None = None

    def __repr__(self) -> str:
        return f"FrameAnalysis(time_s={self.time_s:.3f}, sharpness={self.measured.quality.sharpness:.0f})"


class Glimpse(NamedTuple):
    """What is kept of a frame that was decoded and passed over."""

    signature: npt.NDArray[np.uint8]
    """uint8 (18, 32, 3)"""
    sharpness: float


class FrameAnalyzer:
    """An analyzer of frames with these backends.

    Args:
        view: the embedder that tells views apart, quick enough to be used in the threads that decode; may be the other one too. It sees
            thumbnails.
        embedder: the one that the pruner goes by.
        known: vectors of the embedder for frames of this video that it has seen in an earlier run, by PTS.
    """

    def __init__(self, view: Embedder, embedder: Embedder, detector: Detector, known: Mapping[int, Vector] | None = None) -> None:
        self.view, self.embedder, self.detector, self.known = view, embedder, detector, known or {}
        self.glimpses: dict[int, Glimpse] = {}
        """Of all frames that `analyze` took the sharpest from, by PTS."""
        self._spool = Spool()

    def __call__(self, frame: Frame) -> FrameAnalysis:
        """Return all about a frame whose longest side is `WORKING_SIDE_PX` but the objects in it; where nothing shows there are none.

        The embedder sees it later, among others (`embed`).
        """
        measured = measure(frame.image)
        small = _shrunk(frame.image, THUMBNAIL_SIDE_PX)
        signature = _resized(small, SIGNATURE_SIZE)
        view = self.view.embed_images([small])[0]
        vector = view if self.embedder is self.view else self.known.get(frame.pts, UNKNOWN)
        unseen = None if len(vector) else self._prepared(frame.image)
        analysis = FrameAnalysis(
            frame.pts, frame.time_s, measured, signature, _jpeg(small, THUMBNAIL_JPEG_QUALITY), view, vector, unseen=unseen
        )
        if shows_nothing(measured):
            return replace(analysis, detections=())
        return replace(analysis, picture=self._spool.put(_jpeg(_shrunk(frame.image, self._searched_side_px), DETECTOR_JPEG_QUALITY)))

    def embed(self, analyses: Iterable[FrameAnalysis]) -> Iterator[FrameAnalysis]:
        """Embed the frames, as many at a time as the embedder takes; yield them in their order."""
        analyses = iter(analyses)
        while batch := list(islice(analyses, self.embedder.capabilities.batch)):
            unseen = [analysis.unseen for analysis in batch if analysis.unseen is not None]
            vectors = iter(self.embedder.embed_images(unseen) if unseen else ())
            yield from (analysis if analysis.unseen is None else replace(analysis, vector=next(vectors), unseen=None) for analysis in batch)

    def glance(self, frame: Frame, sharpness: float) -> None:
        """Keep a glimpse of the frame."""
        self.glimpses[frame.pts] = Glimpse(signature_of(frame.image), sharpness)

    def _prepared(self, image: Image) -> Image:
        prepare = self.embedder.capabilities.prepare
        return prepare(image) if prepare else image

    @property
    def _searched_side_px(self) -> int:
        """The side that the detector wants or more, and a whole fraction of the picture at hand, which is five times as fast to scale."""
        wanted = min(self.detector.capabilities.side_px or WORKING_SIDE_PX, WORKING_SIDE_PX)
        return WORKING_SIDE_PX // (WORKING_SIDE_PX // wanted)


def signature_of(image: Image) -> npt.NDArray[np.uint8]:
    """Return the picture so small that only real changes show: uint8 (18, 32, 3)."""
    return _resized(image, SIGNATURE_SIZE)


def _resized(image: Image, size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)


def _shrunk(image: Image, side_px: int) -> Image:
    """Return the picture with its longest side scaled down to `side_px`."""
    scale = min(1.0, side_px / max(image.shape[:2]))
    size = max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)


def _jpeg(image: Image, quality: int) -> bytes:
    _, data = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])
    return data.tobytes()


def analyze(
    video: Reader,
    pts: Sequence[int],
    analyzer: FrameAnalyzer,
    *,
    exact: bool = True,
    sharpest: bool = False,
    keeper: PictureKeeper | None = None,
    advance: Callable[[], None],
) -> list[FrameAnalysis]:
    """Look at these frames; those that cannot be decoded are missing from the result.

    Args:
        exact: False takes a frame soon after the one asked for where it is cheaper to decode.
        sharpest: takes the sharpest frame around each, up to the middle between it and the next, of the same GOP.
        keeper: keeps pictures at full size.
    """

    def work(reader: Reader, batch: Sequence[int]) -> Iterator[FrameAnalysis]:
        if sharpest:
            around = [windows[stamp] for stamp in batch]
            frames = reader.best_frames(around, sharpness_of, longest_side_px=WORKING_SIDE_PX, keeper=keeper, glance=analyzer.glance)
        else:
            frames = (reader.frames if exact else reader.frames_near)(batch, longest_side_px=WORKING_SIDE_PX, keeper=keeper)
        return each(analyzer, frames)

    windows = windows_around(video, pts) if sharpest else {}
    each = map_over(video, pts)
    analyses = []
    with closing(in_parallel(video, pts, work)) as found:
        for analysis in analyzer.embed(found):
            analyses.append(analysis)
            advance()
    for _ in range(len(pts) - len(analyses)):  # what could not be decoded, or was passed over
        advance()
    return mark_transitions(video.index, analyses)


def windows_around(video: Reader, pts: Sequence[int]) -> dict[int, list[int]]:
    """Return for each of these sorted PTS those of the frames of its GOP that are nearer to it than to the others, and not far from it."""
    shown = video.index.shown_pts
    farthest = (int(shown[-1]) - int(shown[0])) / max(1, len(pts))
    windows: dict[int, list[int]] = {}
    wanted = set(pts)
    for gop in video.groups(shown.tolist()):
        members = [stamp for stamp in gop if stamp in wanted]
        if not members:
            continue
        middles = [(a + b) / 2 for a, b in pairwise(members)]
        nearest = np.searchsorted(middles, gop)
        for stamp, place in zip(gop, nearest.tolist(), strict=True):
            if abs(stamp - members[place]) <= farthest:
                windows.setdefault(members[place], []).append(stamp)
    return windows


def map_over(video: Reader, pts: Sequence[int]) -> Callable[[Callable[[Frame], ResultT], Iterable[Frame]], Iterator[ResultT]]:
    """Return how a thread of `in_parallel` does the work of each frame: `map`, or `beside` where one thread alone has all of them."""
    return beside if len(video.groups(pts)) == 1 else map


def beside(work: Callable[[Frame], ResultT], frames: Iterable[Frame]) -> Iterator[ResultT]:
    """Do the work of each frame in threads while the next ones are decoded; yield the results in their order."""
    cores = core_count()
    with ThreadPoolExecutor(cores) as pool:
        pending: deque[Future[ResultT]] = deque()
        for frame in frames:
            pending.append(pool.submit(work, frame))
            if len(pending) > cores:
                yield pending.popleft().result()
        yield from (future.result() for future in pending)


def mark_transitions(index: PacketIndex, analyses: Sequence[FrameAnalysis]) -> list[FrameAnalysis]:
    """Set `in_transition`, `is_still`, `is_calm` and `is_between_rests` as the packets around each frame say."""
    pts = [analysis.pts for analysis in analyses]
    in_transition = activity_of(index).in_transition(pts)
    flags = (in_transition, still_frames(index, pts), calm_frames(index, pts), between_rests(index, pts) & in_transition)
    return [
        replace(analysis, in_transition=in_transition, is_still=is_still, is_calm=is_calm, is_between_rests=is_between_rests)
        for analysis, in_transition, is_still, is_calm, is_between_rests in zip(analyses, *(flag.tolist() for flag in flags), strict=True)
    ]


def in_parallel(
    video: Reader, pts: Sequence[int], work: Callable[[Reader, Sequence[int]], Iterator[ResultT]]
) -> Generator[ResultT, None, None]:
    """Run `work` in threads over the sorted PTS, in batches that never split a GOP; the results in the order of the PTS, as they come.

    The threads go on while the caller works on a result, but not further than `AHEAD` batches of results, so that memory
    does not grow with their number. With fewer GOPs than cores the decoder itself works with threads.
    """
    groups = video.groups(pts) if not video.index.by_decoding else [list(pts)]
    cores = core_count()
    workers = min(cores, len(groups) or 1)
    stop = Event()
    readers: SimpleQueue[Reader | None] = SimpleQueue()

    many = len(groups) >= cores

    def run(batch: Sequence[int], results: Queue[ResultT | None]) -> None:
        reader = readers.get()
        try:
            reader = reader or video.reopen(threads=1 if many else min(cores, MOST_DECODER_THREADS))
            for result in work(reader, batch):
                if not _put(results, result, stop):
                    break
        finally:
            readers.put(reader)
            _put(results, None, stop)

    with one_opencv_thread(), ThreadPoolExecutor(workers) as pool:  # each of ours would have threads of its own
        for worker in range(workers):
            readers.put(video if many and worker == 0 else None)  # each reader holds the container's whole table
        waiting = iter(_batches(groups, max(workers * BATCHES_PER_WORKER, len(pts) // RESULTS_WAITING)))

        def begun(batch: Sequence[int]) -> tuple[Future[None], Queue[ResultT | None]]:
            results: Queue[ResultT | None] = Queue(RESULTS_WAITING)
            return pool.submit(run, batch, results), results

        try:
            running = deque(begun(batch) for batch in islice(waiting, workers * AHEAD))
            while running:
                future, results = running.popleft()
                while (result := results.get()) is not None:
                    yield result
                future.result()  # raises what the work raised
                running.extend(begun(batch) for batch in islice(waiting, 1))
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
            for reader in (readers.get() for _ in range(workers)):
                if reader is not None and reader is not video:
                    reader.close()


def _put(results: Queue[ResultT | None], result: ResultT | None, stop: Event) -> bool:
    """Return whether the result found room before nobody wanted it any more."""
    while not stop.is_set():
        with suppress(Full):
            results.put(result, timeout=0.1)
            return True
    return False


def _batches(groups: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """Join neighbouring groups to at most `count` batches of about equal numbers of groups."""
    size = max(1, -(-len(groups) // count))
    return [[stamp for group in groups[start : start + size] for stamp in group] for start in range(0, len(groups), size)]
