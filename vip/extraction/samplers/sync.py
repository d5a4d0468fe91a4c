"""The sampler `sync`, and the arithmetic of spreading picks over time.

In comes the packet index, out come PTS. Nothing is decoded here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from vip.errors import BackendError
from vip.extraction.transitions import activity_of
from vip.protocols import SamplerCapabilities, VideoSource
from vip.records import PacketIndex
from vip.video import SHORT_FRAMES
from vip.wording import option

FEWEST_PER_KEYFRAME = 2.5  # below this, pruning has too little to choose from, and frames between sync frames join
FEWEST_PER_KEYFRAME_WHERE_EXPENSIVE = 2  # where the decoder passes over nothing, so many sync frames have to do
FEWEST_AT_LEAST = 24
MOST_PER_KEYFRAME = 16  # above this, candidates are so near each other that more of them change nothing
MOST_AT_LEAST = 480
LONG_GOP = 600  # frames for each sync frame from which on the decoder passes over everything anyway: more candidates cost little
FEWEST_PER_KEYFRAME_IN_LONG_GOPS = 6
MOST_PER_KEYFRAME_IN_SHORT, NEAREST_IN_SHORT_S = 6, 0.2
NEAREST_S, FEWEST_PER_KEYFRAME_IN_MOMENTS = 0.1, 1.5  # where a video is over in a moment
ROW_S = 0.3  # sync frames that follow each other so soon are one change of the picture
ASIDE_S = (0.4, -0.4, 0.8, -0.8)  # where a calmer frame is taken instead of a restless one


class SyncSampler:
    """The sync frames, cheapest to decode and often at cuts; more where they are too few, fewer where they are very many."""

    name = "sync"
    capabilities = SamplerCapabilities(exact=False)  # the sync frames are; those between them only fill gaps

    def __init__(self, detail: str | None) -> None:
        if detail is not None:
            raise BackendError(f'The sampler "sync" takes no detail, but got "{detail}". Write {option("sampler", "sync")}.')

    def sample(self, video: VideoSource, *, keyframes: int, candidates: int | None = None) -> list[int]:
        """Return PTS of the candidates, in time order."""
        sync = last_of_rows(video.index.sync_pts.tolist(), ROW_S / float(video.index.time_base))
        shown = video.index.shown_pts
        most = candidates or max(MOST_AT_LEAST, MOST_PER_KEYFRAME * keyframes)
        if len(sync) > most:
            return thin(sync, most)
        if candidates is None and _are_enough(sync, video.index, keyframes):
            return sync
        fewest = candidates or _fewest(video.index, keyframes)
        if len(sync) >= fewest:
            return sync
        sure = sorted({*(sync or shown[:1].tolist()), *activity_of(video.index).unseen(most=keyframes // 2)})
        if candidates is not None and len(sure) > candidates:
            sure = sync or shown[:1].tolist()
        filled = fill(sure, shown, fewest)
        return outside_transitions(filled, video.index) if len(filled) > len(sure) else filled


def is_short(index: PacketIndex) -> bool:
    """Return whether a video has so few frames that looking at many of them costs little; False where the packets tell too little."""
    return not (index.is_sparse or index.by_decoding) and 0 < len(index.shown_pts) <= SHORT_FRAMES


def candidates_in_short_video(index: PacketIndex, keyframes: int) -> int | None:
    """Return how many candidates a short video gets where no number of them is asked for: more cost little there, down to 0.2 s apart.

    None where the sampler takes as many anyway.
    """
    if not is_short(index) or _are_enough(index.sync_pts.tolist(), index, keyframes):
        return None
    most = min(MOST_PER_KEYFRAME_IN_SHORT * keyframes, round(_seconds(index) / NEAREST_IN_SHORT_S))
    return most if most > max(_fewest(index, keyframes), len(index.sync_pts)) else None


def _are_enough(sync: Sequence[int], index: PacketIndex, keyframes: int) -> bool:
    """Return whether sync frames have to do, since the decoder passes over nothing."""
    return index.decodes_all and len(sync) >= max(FEWEST_AT_LEAST, FEWEST_PER_KEYFRAME_WHERE_EXPENSIVE * keyframes)


def _fewest(index: PacketIndex, keyframes: int) -> int:
    """Return how many candidates there should be at least; where a video is over in a moment none nearer than 0.1 s."""
    per_keyframe = FEWEST_PER_KEYFRAME_IN_LONG_GOPS if len(index.shown_pts) > LONG_GOP * len(index.sync_pts) else FEWEST_PER_KEYFRAME
    fewest = max(FEWEST_AT_LEAST, math.ceil(per_keyframe * keyframes))
    if not is_short(index):
        return fewest
    return min(fewest, max(math.ceil(FEWEST_PER_KEYFRAME_IN_MOMENTS * keyframes), round(_seconds(index) / NEAREST_S)))


def _seconds(index: PacketIndex) -> float:
    return float(int(index.shown_pts[-1] - index.shown_pts[0]) * index.time_base)


def outside_transitions(picked: Sequence[int], index: PacketIndex) -> list[int]:
    """Return the picks, with a frame beside it for each that is restless, no sync frame, and has a calm one near.

    None passes its neighbours: a busy scene keeps about as many picks as it had.

    Args:
        picked: sorted PTS.
    """
    activity, shown, sync = activity_of(index), index.shown_pts, set(index.sync_pts.tolist())
    steps = np.rint(np.array(ASIDE_S) / float(index.time_base)).astype(np.int64)
    chosen: list[int] = []
    for place, (pts, is_restless) in enumerate(zip(picked, activity.in_transition(picked).tolist(), strict=True)):
        taken = pts
        if is_restless and pts not in sync:
            before = chosen[-1] if chosen else -math.inf
            behind = picked[place + 1] if place + 1 < len(picked) else math.inf
            beside = shown[np.clip(np.searchsorted(shown, pts + steps), 0, len(shown) - 1)].tolist()
            beside = [other for other in beside if before < other < behind]
            calm_ones = [other for other, flag in zip(beside, activity.in_transition(beside).tolist(), strict=True) if not flag]
            taken = next(iter(calm_ones), pts)
        chosen.append(taken)
    return chosen


def last_of_rows(pts: Sequence[int], nearest: float) -> list[int]:
    """Return the sorted PTS without those that one which stays follows sooner than `nearest`: encoders put several into one dissolve."""
    kept: list[int] = []
    for stamp in reversed(pts):
        if not kept or kept[-1] - stamp >= nearest:
            kept.append(stamp)
    return kept[::-1]


def thin(pts: Sequence[int], most: int) -> list[int]:
    """Return at most `most` of the sorted PTS: those nearest to evenly spaced times."""
    times = np.asarray(pts, np.int64)
    targets = np.linspace(times[0], times[-1], most)
    right = np.clip(np.searchsorted(times, targets), 1, len(times) - 1)
    nearer_left = targets - times[right - 1] <= times[right] - targets
    return sorted({*np.where(nearer_left, times[right - 1], times[right]).tolist()})


def fill(picked: Sequence[int], shown: npt.ArrayLike, fewest: int) -> list[int]:
    """Return the sorted picks and as many other frames as are missing to `fewest`, put evenly into the longest gaps.

    Args:
        picked: sorted PTS, all among `shown`.
        shown: sorted PTS of all frames; with fewer than `fewest` of them, all are taken.
    """
    missing = fewest - len(picked)
    if missing <= 0:
        return list(picked)
    times = np.asarray(shown, np.int64)
    if len(times) <= fewest:
        return [int(pts) for pts in times]
    edges = np.searchsorted(times, [*picked, times[-1] + 1])  # frame numbers; a gap is what lies between two picks
    free = np.array([max(0, b - a - 1) for a, b in pairwise([-1, *edges.tolist()])])
    extra = share(free, [b - a for a, b in pairwise([-1, *edges.tolist()])], missing)
    chosen = set(edges[:-1].tolist())
    for (start, stop), count in zip(pairwise([-1, *edges.tolist()]), extra, strict=True):
        chosen.update(int(number) for number in np.rint(np.linspace(start, stop, count + 2)[1:-1]).astype(int))
    return [int(times[number]) for number in sorted(chosen)]


def share(room: Sequence[int] | np.ndarray, lengths: Sequence[float], total: int) -> list[int]:
    """Hand out `total` picks one at a time, each to the gap whose pieces are longest, none beyond its room."""
    import heapq

    counts = [0] * len(lengths)
    heap = [(-float(length), gap) for gap, length in enumerate(lengths) if room[gap] > 0]
    heapq.heapify(heap)
    for _ in range(total):
        if not heap:
            break
        _, gap = heapq.heappop(heap)
        counts[gap] += 1
        if counts[gap] < room[gap]:
            heapq.heappush(heap, (-lengths[gap] / (counts[gap] + 1), gap))
    return counts
