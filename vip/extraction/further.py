"""Where a candidate is bad, look a little further in the same shot for a good frame instead of losing the shot.

And where a frame that would be kept lies beside a cross-fade or another restless stretch, look for a calm one behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from vip.extraction.calm import Calm
from vip.extraction.quality import WORKING_SIDE_PX, measure, verdict
from vip.extraction.scan import Look, Looker, in_parallel, mark_restless
from vip.protocols import PictureKeeper
from vip.records import Frame
from vip.video import Reader

STEP_S = 0.2
FURTHEST_S = 1.5  # a shot that shows nothing good by then shows something else behind it
SETTLING_FRAMES = 2  # a focus pull ends gradually: after the first good frame, two more may be sharper
SETTLED = 1.3
CALM_AFTER_S = (0.9, 0.6)  # a cross-fade rarely takes longer
SAME_SHOT_COSINE = 0.5  # of a cross-fading frame to the clean one behind it; of two shots mostly less
FARTHEST_PACKETS = 75  # decoding more than this for one calmer frame is too dear; with 300 the same frames were chosen on 21 mixes


def look_further(
    video: Reader, looks: Sequence[Look], bad: Sequence[int], reference: Sequence[float], looker: Looker, *, advance: Callable[[], None]
) -> list[Look]:
    """A good frame for each bad one that has no other candidate within 1.5 s behind it, where there is one in that time.

    Args:
        looks: all candidates in time order.
        bad: indices of the bad ones among them.
        reference: sharpness of the surroundings of each candidate.
    """
    calm = Calm(video.index)
    probes = {index: _probes(video, calm, looks, index, set(bad)) for index in bad}
    wanted = {pts: index for index in bad if (pts := next(iter(probes[index]), None)) is not None}
    for _ in range(len(bad) - len(wanted)):
        advance()

    def work(reader: Reader, batch: Sequence[int]) -> Iterator[Look]:
        for first in batch:
            index = wanted[first]
            if found := _first_good(reader, probes[index], reference[index]):
                yield replace(looker(found), stands_in_for=looks[index].pts)
            advance()

    return mark_restless(video.index, list(looker.embed(in_parallel(video, sorted(wanted), work))))


def _probes(video: Reader, calm: Calm, looks: Sequence[Look], index: int, bad: set[int]) -> list[int]:
    """PTS behind a bad candidate, 0.2 s apart; none where another candidate shows the rest of the shot, or decoding so far is too dear."""
    following = looks[index + 1] if index + 1 < len(looks) else None
    if following and (following.time_s - looks[index].time_s < FURTHEST_S or (index + 1 not in bad and calm.goes_on(looks[index].pts))):
        return []
    if video.effort(looks[index].pts) > FARTHEST_PACKETS:
        return []
    shown = video.index.shown_pts
    end = following.pts if following else int(shown[-1]) + 1
    times = looks[index].pts + np.arange(1, round(FURTHEST_S / STEP_S) + 1) * (STEP_S / float(video.time_base))
    places = np.unique(np.searchsorted(shown, times))
    return [int(shown[place]) for place in places if place < len(shown) and shown[place] < end]


def _first_good(reader: Reader, probes: Sequence[int], reference: float) -> Frame | None:
    """The first good frame; one of the two behind it if that is clearly sharper, and the first less sharp than its surroundings."""
    best: Frame | None = None
    sharpness = 0.0
    after = 0
    for frame in reader.frames_near(probes, longest_side_px=WORKING_SIDE_PX):
        measured = measure(frame.image)
        if verdict(measured, reference) is None and measured.quality.sharpness > SETTLED * sharpness:
            best, sharpness = frame, measured.quality.sharpness
            if sharpness >= reference:
                break
        elif best is not None:
            after += 1
        if after >= SETTLING_FRAMES:
            break
    return best


def look_for_calm(
    video: Reader, restless: Sequence[Look], looker: Looker, *, keeper: PictureKeeper, advance: Callable[[], None]
) -> list[Look]:
    """A calm frame of the same shot behind each restless one, where there is one before the next sync frame."""
    probes = {look.pts: _calm_probes(video, look) for look in restless}
    shots = {pts: look for look in restless for pts in probes[look.pts][:1]}
    for _ in range(len(restless) - len(shots)):
        advance()

    def work(reader: Reader, batch: Sequence[int]) -> Iterator[Look]:
        for first in batch:
            before = shots[first]
            for frame in reader.frames(probes[before.pts][:1], longest_side_px=WORKING_SIDE_PX, keeper=keeper):
                look = looker(frame)
                if verdict(look.measured, 0.0) is None and float(look.view @ before.view) > SAME_SHOT_COSINE:
                    yield replace(look, stands_in_for=before.pts)
            advance()

    return mark_restless(video.index, list(looker.embed(in_parallel(video, sorted(shots), work))))


def _calm_probes(video: Reader, look: Look) -> list[int]:
    """PTS of calm frames behind a restless one in its GOP, the best first; none where they are too dear."""
    index, ticks = video.index, 1 / float(video.time_base)
    if index.decodes_all:
        return []
    shown, sync = index.shown_pts, index.sync_pts
    next_sync = int(np.searchsorted(sync, look.pts, side="right"))
    end = int(sync[next_sync]) if next_sync < len(sync) else int(shown[-1]) + 1
    targets = np.searchsorted(shown, [look.pts + round(after_s * ticks) for after_s in CALM_AFTER_S])
    found = [int(shown[place]) for place in targets if place < len(shown) and shown[place] < end]
    found = [pts for pts in found if video.effort(pts) <= FARTHEST_PACKETS]
    calm = ~Calm(index).restless(found)
    return [pts for pts, is_calm in zip(found, calm.tolist(), strict=True) if is_calm]
