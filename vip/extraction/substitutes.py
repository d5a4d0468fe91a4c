"""Substitutes: where a candidate is bad, a good frame is sought a little later in the same shot, so that the shot is not lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from vip.extraction.analyze import FrameAnalysis, FrameAnalyzer, in_parallel, mark_transitions
from vip.extraction.bad_frames import LASTING_S, shows_same_view
from vip.extraction.quality import WORKING_SIDE_PX, correlation, measure, verdict
from vip.extraction.transitions import PacketActivity, activity_of
from vip.records import Frame
from vip.video import Reader

STEP_S = 0.2
FURTHEST_S = 1.5  # a shot that shows nothing good by then shows something else behind it
SETTLING_FRAMES = 2  # a focus pull ends gradually: after the first good frame, two more may be sharper
SETTLED = 1.3
SAME_SHOT = 0.5  # correlation of the signatures of two frames; blur leaves it as it is
FARTHEST_PACKETS = 75  # decoding more than this for one calmer frame is too expensive; with 300 the same frames were chosen on 21 mixes


def find_substitutes(
    video: Reader,
    analyses: Sequence[FrameAnalysis],
    bad: Sequence[int],
    reference: Sequence[float],
    analyzer: FrameAnalyzer,
    *,
    advance: Callable[[], None],
) -> list[FrameAnalysis]:
    """Return a good frame for each bad one that has no other candidate within 1.5 s behind it, where there is one in that time.

    Where a blurred one has none, a frame is returned that shows the same two seconds later, if there is one.

    Args:
        analyses: all candidates in time order.
        bad: indices of the bad ones among them.
        reference: sharpness of the surroundings of each candidate.
    """
    activity = activity_of(video.index)
    probes = {index: _probes(video, activity, analyses, index, set(bad)) for index in bad}
    wanted = {pts: index for index in bad if (pts := next(iter(probes[index]), None)) is not None}
    for _ in range(len(bad) - len(wanted)):
        advance()

    def work(reader: Reader, batch: Sequence[int]) -> Iterator[FrameAnalysis]:
        for first in batch:
            index = wanted[first]
            if found := _first_good(reader, probes[index], reference[index]):
                yield replace(analyzer(found), stands_in_for=analyses[index].pts)
            elif verdict(analyses[index].measured, reference[index]) == "blurred":
                yield from _lasting(reader, analyses, index, analyzer)
            advance()

    return mark_transitions(video.index, list(analyzer.embed(in_parallel(video, sorted(wanted), work))))


def _lasting(reader: Reader, analyses: Sequence[FrameAnalysis], index: int, analyzer: FrameAnalyzer) -> Iterator[FrameAnalysis]:
    """Yield a frame behind a soft one that shows its view still, so late that this view is smooth and not out of focus; at most one."""
    shown = reader.index.shown_pts
    place = int(np.searchsorted(shown, analyses[index].pts + LASTING_S / float(reader.time_base), side="right"))
    end = analyses[index + 1].pts if index + 1 < len(analyses) else int(shown[-1]) + 1
    if place < len(shown) and shown[place] < end and reader.effort(int(shown[place])) <= FARTHEST_PACKETS:
        for frame in reader.frames_near([int(shown[place])], longest_side_px=WORKING_SIDE_PX):
            if shows_same_view(analyses[index], found := analyzer(frame)):
                yield found


def _probes(video: Reader, activity: PacketActivity, analyses: Sequence[FrameAnalysis], index: int, bad: set[int]) -> list[int]:
    """Return PTS behind a bad candidate, 0.2 s apart; none where another candidate shows the rest, or decoding costs too much."""
    following = analyses[index + 1] if index + 1 < len(analyses) else None
    if following and (
        following.time_s - analyses[index].time_s < FURTHEST_S
        or (index + 1 not in bad and activity.goes_on(analyses[index].pts) and not _is_another_shot(analyses[index], following))
    ):
        return []
    if video.effort(analyses[index].pts) > FARTHEST_PACKETS:
        return []
    shown = video.index.shown_pts
    end = following.pts if following else int(shown[-1]) + 1
    times = analyses[index].pts + np.arange(1, round(FURTHEST_S / STEP_S) + 1) * (STEP_S / float(video.time_base))
    places = sorted({*np.searchsorted(shown, times).tolist()})
    return [int(shown[place]) for place in places if place < len(shown) and shown[place] < end]


def _is_another_shot(bad: FrameAnalysis, following: FrameAnalysis) -> bool:
    """Return whether the next candidate looks like another shot, or a black one leaves that open: encoders miss cuts."""
    return correlation(bad.signature, following.signature) < SAME_SHOT


def _first_good(reader: Reader, probes: Sequence[int], reference: float) -> Frame | None:
    """Return the first good frame; one of the two behind it if that is clearly sharper, and the first less sharp than its surroundings."""
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
