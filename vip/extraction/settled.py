"""Settled frames: where a frame that would be kept may lie in a transition, or is far softer than those around it, look behind it.

In: such frames. Out: for each the sharpest frame of the next second that shows the same shot, if there is one. Between two shots that
dissolve, every picture is a weighted mean of both, and what changes from one to the next is the same everywhere: the differences of
pictures are parallel. Where things move, they are not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from vip.extraction.analyze import FrameAnalysis, FrameAnalyzer, in_parallel, mark_transitions, signature_of
from vip.extraction.bad_frames import shows_same_view
from vip.extraction.quality import WORKING_SIDE_PX, is_soft, measure, verdict
from vip.extraction.ranks import median
from vip.records import Frame
from vip.video import Reader

STEP_S, SETTLED_AFTER_S, SETTLED_WITHIN_S = 0.1, 0.35, 1.3  # a cross-fade rarely takes longer
SETTLED_WITHIN_WHERE_EXPENSIVE_S = 1.0
CUT_LEVELS, CUT = 12.0, 4.0  # mean difference of two signatures, of 255, and times the usual one: a cut lies between
MOVING_LEVELS = 1.5  # so little changes by coding alone
PARALLEL = 0.7  # cosine of two differences
MOST_PACKETS, MOST_PACKETS_WHERE_EXPENSIVE = 110, 45  # to decode for a settled frame

Flags = npt.NDArray[np.bool_]


def find_settled(
    video: Reader,
    doubtful: Sequence[FrameAnalysis],
    analyzer: FrameAnalyzer,
    *,
    known: Collection[int] = (),
    advance: Callable[[], None],
) -> list[FrameAnalysis]:
    """Return a settled frame of the same shot behind each doubtful one, where there is one before the next sync frame.

    Args:
        known: PTS of the frames that are analyzed already.
    """
    behind = {analysis.pts: _pts_behind(video, analysis) for analysis in doubtful}
    doubts = {pts[0]: analysis for analysis in doubtful if (pts := behind[analysis.pts])}
    for _ in range(len(doubtful) - len(doubts)):
        advance()

    def work(reader: Reader, batch: Sequence[int]) -> Iterator[FrameAnalysis]:
        for first in batch:
            before = doubts[first]
            found = _settled(before, list(reader.frames(behind[before.pts], longest_side_px=WORKING_SIDE_PX)), analyzer)
            if found and found.pts not in known:
                yield replace(found, stands_in_for=before.pts)
            advance()

    found = mark_transitions(video.index, list(analyzer.embed(in_parallel(video, sorted(doubts), work))))
    return [replace(analysis, in_transition=False) for analysis in found]  # whatever its packets say: the pictures around it were compared


def _pts_behind(video: Reader, analysis: FrameAnalysis) -> list[int]:
    """Return PTS behind a frame in its GOP, 0.1 s apart; none where they are too expensive."""
    index = video.index
    shown, sync = index.shown_pts, index.sync_pts
    next_sync = int(np.searchsorted(sync, analysis.pts, side="right"))
    end = int(sync[next_sync]) if next_sync < len(sync) else int(shown[-1]) + 1
    within_s = SETTLED_WITHIN_WHERE_EXPENSIVE_S if index.decodes_all else SETTLED_WITHIN_S
    times = analysis.pts + np.arange(1, round(within_s / STEP_S) + 1) * (STEP_S / float(video.time_base))
    places = sorted({*np.searchsorted(shown, np.rint(times)).tolist()})
    most = MOST_PACKETS_WHERE_EXPENSIVE if index.decodes_all else MOST_PACKETS
    found = [int(shown[place]) for place in places if place < len(shown) and analysis.pts < shown[place] < end]
    return [pts for pts in found if video.effort(pts) <= most]


def _settled(before: FrameAnalysis, frames: Sequence[Frame], analyzer: FrameAnalyzer) -> FrameAnalysis | None:
    """Return the sharpest of these frames that shows the shot that the one before them begins with, or dissolves into."""
    if not frames:
        return None
    dissolves, cuts = _changes(np.stack([before.signature, *(signature_of(frame.image) for frame in frames)]))
    if dissolves[0]:
        cuts = cuts & ~(
            dissolves | np.append(False, dissolves[:-1])
        )  # its own steps may be as large, and the last is marked by the one before
    if cuts.any():
        frames = frames[: int(cuts.argmax())]
    good: list[tuple[float, Frame]] = []
    for place, frame in enumerate(frames):
        if frame.time_s - before.time_s > SETTLED_AFTER_S and not dissolves[place : place + 2].any():
            measured = measure(frame.image)
            if verdict(measured, 0.0) is None:
                good.append((measured.quality.sharpness, frame))
    if not good:
        return None
    found = analyzer(max(good, key=lambda pair: pair[0])[1])
    is_sharper = is_soft(before.measured.quality, found.measured.quality.sharpness)
    return found if dissolves[0] or is_sharper or shows_same_view(found, before) else None


def _changes(signatures: npt.NDArray[np.uint8]) -> tuple[Flags, Flags]:
    """Return whether pictures dissolve, and whether a cut lies, between each of N + 1 pictures and the next: bool (N,) each."""
    steps = np.diff(signatures.reshape(len(signatures), -1).astype(np.float32), axis=0)
    size = np.abs(steps).mean(axis=1)
    usual = median(size)
    lengths = np.maximum(np.linalg.norm(steps, axis=1), 1e-6)
    parallel = (steps[:-1] * steps[1:]).sum(axis=1) / (lengths[:-1] * lengths[1:]) > PARALLEL
    goes_on = np.append(parallel, parallel[-1:] if len(parallel) else False)  # the last as the one before it: there is none behind to tell
    return goes_on & (size > max(MOVING_LEVELS, usual)), size > max(CUT_LEVELS, CUT * usual)
