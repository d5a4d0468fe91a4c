"""Candidates by shot: `shots`, at least one for each, the sharpest. PySceneDetect's detectors find the cuts.

`shots` is its ContentDetector, `shots:adaptive`, `shots:hash` and `shots:histogram` are its others. They are fed frames
that vip's own reader decodes, so the times are the PTS of the file, and of each frame two numbers stay in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import cv2
import numpy as np

from vip.errors import BackendError, did_you_mean
from vip.extraction.quality import measure, shows_nothing
from vip.extraction.samplers.sync import share, thin
from vip.protocols import SamplerCapabilities, VideoSource
from vip.records import Frame

DETECTORS = {"content": "ContentDetector", "adaptive": "AdaptiveDetector", "hash": "HashDetector", "histogram": "HistogramDetector"}
SIDE_PX = 320  # PySceneDetect itself scales down to about 256; sharpness needs a little more
SHORTEST_SHOT_S = 0.6  # PySceneDetect's command line takes the same
SECONDS_A_CANDIDATE = 10  # a long shot gives pruning a choice
BORDER_S, BORDER_SHARE = 0.3, 0.2  # what is left out at both ends of a shot, where pictures mix; at most this share of it


class ShotsSampler:
    """A sampler that finds cuts and takes the sharpest frame of each shot, of long ones the sharpest of each 10 s."""

    capabilities = SamplerCapabilities()

    def __init__(self, detail: str | None) -> None:
        if detail is not None and detail not in DETECTORS:
            raise BackendError(f'The sampler "shots" has no detector "{detail}".{did_you_mean(detail, DETECTORS)}')
        try:
            from scenedetect import detectors
        except ImportError as exc:
            raise BackendError("The sampler \"shots\" needs PySceneDetect. Install it: pip install 'vip-keyframes[shots]'.") from exc
        self.name = f"shots:{detail}" if detail else "shots"
        self._detector = getattr(detectors, DETECTORS[detail or "content"])

    def sample(self, video: VideoSource, *, keyframes: int, candidates: int | None = None) -> list[int]:
        """Return PTS of the candidates, at least `keyframes` of them where the video has as many frames. Decodes every frame."""
        shots = self.shots(video)
        if not shots:  # nothing can be decoded: the stages behind say so
            return [int(video.index.shown_pts[0])]
        lengths_s = [float((shot[-1][0] - shot[0][0]) * video.time_base) for shot in shots]
        counts = [min(len(shot), 1 + int(length_s / SECONDS_A_CANDIDATE)) for shot, length_s in zip(shots, lengths_s, strict=True)]
        room = [len(shot) - count for shot, count in zip(shots, counts, strict=True)]
        pieces_s = [length_s / count for count, length_s in zip(counts, lengths_s, strict=True)]
        extra = share(room, pieces_s, (candidates or keyframes) - sum(counts))
        chosen = [
            pts
            for shot, count, more in zip(shots, counts, extra, strict=True)
            for pts in _sharpest(shot, count + more, Fraction(BORDER_S) / video.time_base)
        ]
        return chosen if candidates is None or len(chosen) <= candidates else thin(chosen, candidates)

    def shots(self, video: VideoSource) -> list[list[tuple[int, float]]]:
        """Return the shots in time order, each the (PTS, sharpness) of its frames; none if nothing can be decoded. Decodes every frame."""
        seen: list[tuple[int, float]] = []
        frames = _pass_measured(video.frames(video.index.shown_pts.tolist(), longest_side_px=SIDE_PX), seen)
        cuts = set(find_cuts(frames, self._detector(min_scene_len=SHORTEST_SHOT_S), _rate(video)))
        starts = [0, *(place for place, (pts, _) in enumerate(seen) if place and pts in cuts), len(seen)]
        return [seen[start:stop] for start, stop in pairwise(starts) if stop > start]


def _rate(video: VideoSource) -> Fraction:
    shown = video.index.shown_pts
    ticks = int(shown[-1] - shown[0])
    return (len(shown) - 1) / (ticks * video.time_base) if ticks else Fraction(25)


def _pass_measured(frames: Iterator[Frame], seen: list[tuple[int, float]]) -> Iterator[Frame]:
    """Pass the frames on and note their sharpness; below 0 where nothing shows."""
    for frame in frames:
        measured = measure(frame.image)
        seen.append((frame.pts, -1.0 if shows_nothing(measured) else measured.quality.sharpness))
        yield frame


def find_cuts(frames: Iterator[Frame], detector: Any, rate: Fraction) -> Iterator[int]:
    """Yield PTS of the first frame of each shot but the first.

    Args:
        detector: a `scenedetect.SceneDetector`. It knows no times below 0, so it is told times from the first frame on.
        rate: mean frame rate, which PySceneDetect wants to know.
    """
    from scenedetect.common import FrameTimecode, Timecode

    first, last = None, None
    for frame in frames:
        first = frame.pts if first is None else first
        last = FrameTimecode(Timecode(frame.pts - first, frame.time_base), rate)
        bgr = cv2.cvtColor(frame.image, cv2.COLOR_RGB2BGR)
        yield from (cut.pts + first for cut in detector.process_frame(last, bgr))
    if first is not None:
        yield from (cut.pts + first for cut in detector.post_process(last))


def _sharpest(shot: Sequence[tuple[int, float]], count: int, border: Fraction) -> list[int]:
    """Return PTS of the sharpest frame of each of `count` equal parts of the shot, without its borders where that leaves enough."""
    start, end = shot[0][0], shot[-1][0]
    margin = min(float(border), BORDER_SHARE * (end - start))
    inside = [row for row in shot if start + margin <= row[0] <= end - margin]
    rows = inside if len(inside) >= count else shot
    return [max(part, key=lambda row: row[1])[0] for part in _parts(rows, count)]


def _parts(rows: Sequence[tuple[int, float]], count: int) -> list[Sequence[tuple[int, float]]]:
    """Return `count` parts of about equal numbers, none empty; `count` is at most the number of rows."""
    edges = np.linspace(0, len(rows), count + 1).astype(int).tolist()
    return [rows[start:stop] for start, stop in pairwise(edges)]
