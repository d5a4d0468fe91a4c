"""Settled frames: where a frame that would be kept may lie in a dissolve, or is far softer than those around it, look behind it.

In: such frames. Out: for each that dissolves or is soft the sharpest frame of the next second that shows the same shot, if there is one;
and which frames do not dissolve. Between two shots that dissolve, every picture is a weighted mean of both, and what changes from one to
the next is the same everywhere: the differences of pictures are parallel. Where things move, they are not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vip.extraction.analyze import FrameAnalysis, FrameAnalyzer, Glimpse, in_parallel, mark_transitions, signature_of
from vip.extraction.bad_frames import shows_same_view
from vip.extraction.quality import WORKING_SIDE_PX, is_soft, sharpness_of, verdict
from vip.protocols import PictureKeeper
from vip.ranks import median
from vip.records import Frame, PacketIndex
from vip.video import GLANCE_SIDE_PX, Reader

PROBED_FRAMES, PROBE_STEP_S = 4, 0.03  # just behind a frame: enough to tell a dissolve, and little to decode
DISSOLVE_PARALLEL, DISSOLVE_LEVELS = 0.25, 3.0
"""32 of 35 sync frames in cross-fades that are followed by much have over 0.3 and 5.0, 11 % of 962 others; less finds ends too."""
ONE_DISSOLVE_S = 0.4  # sync frames that follow so soon do not end the search
STEP_S, SETTLED_AFTER_S, SETTLED_WITHIN_S = 0.1, 0.35, 1.3  # a cross-fade rarely takes longer
SETTLED_WITHIN_WHERE_EXPENSIVE_S = 1.0
CALM_WITHIN_S = 1.0  # behind one in a dissolve, where nothing settled was found
CUT_LEVELS, CUT = 12.0, 4.0  # mean difference of two signatures, of 255, and times the usual one: a cut lies between
MOVING_LEVELS = 1.5  # so little changes by coding alone
PARALLEL = 0.7  # cosine of two differences
TIMES_SHARPER = 2.0  # than the settled frame of its view: what dissolves is softer, unless that is certain
CERTAINLY_PARALLEL, CERTAIN_LEVELS = 0.9, 12.0  # no camera moves so evenly
MOST_PACKETS, MOST_PACKETS_WHERE_EXPENSIVE = 110, 45  # to decode for a settled frame

Flags = npt.NDArray[np.bool_]


class Settled(NamedTuple):
    """What was found behind doubtful frames."""

    frames: list[FrameAnalysis]
    """Settled ones, in time order; each stands in for a doubtful one. They may be among those that were analyzed before."""
    dissolves: dict[int, bool]
    """Whether a doubtful frame lies in a dissolve, by its PTS; missing where fewer than four frames behind it were seen."""


def find_settled(
    video: Reader,
    doubtful: Sequence[FrameAnalysis],
    analyzer: FrameAnalyzer,
    *,
    known: Sequence[FrameAnalysis] = (),
    soft: Collection[int] = (),
    keeper: PictureKeeper | None = None,
    advance: Callable[[], None],
) -> Settled:
    """Look behind each doubtful frame, and find a settled one of the same shot where it dissolves, before the next sync frame.

    Args:
        known: frames that need not be analyzed again.
        soft: PTS of those that are to give way to a sharper one also where they do not dissolve.
        keeper: keeps settled frames at full size.
    """
    glimpsed = [analysis for analysis in doubtful if _is_glimpsed(video, analysis, analyzer.glimpses)]
    remembered = _find_among_glimpses(video, glimpsed, analyzer, known, soft)
    unseen = {analysis.pts for analysis in doubtful} - {analysis.pts for analysis in glimpsed}
    for _ in glimpsed:
        advance()
    decoded = _find_by_decoding(video, [analysis for analysis in doubtful if analysis.pts in unseen], analyzer, soft, keeper, advance)
    found = sorted([*remembered.frames, *decoded.frames], key=lambda analysis: analysis.pts)
    # whatever their packets say: the pictures around them were compared
    settled = [replace(analysis, in_transition=False) for analysis in mark_transitions(video.index, found)]
    dissolves = {**remembered.dissolves, **decoded.dissolves}
    without = {pts for pts, dissolving in dissolves.items() if dissolving} - {analysis.stands_in_for for analysis in settled}
    calm = _calm_among(known, [analysis for analysis in doubtful if analysis.pts in without], dissolves)
    return Settled(sorted([*settled, *calm], key=lambda analysis: analysis.pts), dissolves)


def _calm_among(
    known: Sequence[FrameAnalysis], doubtful: Sequence[FrameAnalysis], dissolves: Mapping[int, bool]
) -> Iterator[FrameAnalysis]:
    """Yield a known frame of the next second that is in no transition for each of these, whose dissolves nothing settled follows."""
    for before in doubtful:
        for one in known:
            is_calm = not (one.in_transition or dissolves.get(one.pts)) and verdict(one.measured, 0.0) is None
            if is_calm and 0 < one.time_s - before.time_s <= CALM_WITHIN_S:
                yield replace(one, stands_in_for=before.pts)
                break


def _is_glimpsed(video: Reader, analysis: FrameAnalysis, glimpses: Mapping[int, Glimpse]) -> bool:
    """Return whether there are glimpses of all frames behind this one that matter."""
    return bool(glimpses) and glimpses.keys() >= {*_pts_just_behind(video, analysis), *_pts_behind(video, analysis)}


def _find_among_glimpses(
    video: Reader, doubtful: Sequence[FrameAnalysis], analyzer: FrameAnalyzer, known: Sequence[FrameAnalysis], soft: Collection[int]
) -> Settled:
    """Find settled frames behind those that there are glimpses of; only the settled ones are decoded, where they are not known."""
    dissolves: dict[int, bool] = {}
    certain: set[int] = set()
    settled: list[tuple[FrameAnalysis, int, bool]] = []
    for before in doubtful:
        probed = [analyzer.glimpses[pts].signature for pts in _pts_just_behind(video, before)]
        _judge(before, probed, dissolves, certain)
        if dissolves.get(before.pts) or before.pts in soft:
            settled += _sharpest_settled(video, before, analyzer.glimpses, dissolves=dissolves.get(before.pts, False))

    def work(reader: Reader, batch: Sequence[int]) -> Iterator[FrameAnalysis]:
        yield from map(analyzer, reader.frames(batch, longest_side_px=WORKING_SIDE_PX))

    analyses = {analysis.pts: analysis for analysis in known}
    unknown = sorted({pts for _, pts, _ in settled} - analyses.keys())
    analyses |= {analysis.pts: analysis for analysis in analyzer.embed(in_parallel(video, unknown, work))} if unknown else {}
    return Settled(
        [
            replace(analyses[pts], stands_in_for=before.pts)
            for before, pts, dissolving in settled
            if pts in analyses and _may_stand(analyses[pts], before, dissolving, is_certain=before.pts in certain)
        ],
        dissolves,
    )


def _find_by_decoding(
    video: Reader,
    doubtful: Sequence[FrameAnalysis],
    analyzer: FrameAnalyzer,
    soft: Collection[int],
    keeper: PictureKeeper | None,
    advance: Callable[[], None],
) -> Settled:
    """Find settled frames behind those that there are no glimpses of."""
    probes = {analysis.pts: _pts_just_behind(video, analysis) for analysis in doubtful}
    doubts = {pts[0]: analysis for analysis in doubtful if (pts := probes[analysis.pts])}
    dissolves: dict[int, bool] = {}
    certain: set[int] = set()
    for _ in range(len(doubtful) - len(doubts)):
        advance()

    def work(reader: Reader, batch: Sequence[int]) -> Iterator[FrameAnalysis]:
        for gop in reader.groups(batch):  # decoded three times at most, whatever number of doubtful frames it has
            wanted: dict[int, FrameAnalysis] = {}
            probed_of = {doubts[first].pts: probes[doubts[first].pts] for first in gop}
            for before, probed in _frames_of_each(reader, probed_of, longest_side_px=GLANCE_SIDE_PX):
                analysis = doubts[probes[before][0]]
                _judge(analysis, [signature_of(frame.image) for frame in probed], dissolves, certain)
                if dissolves.get(before) or before in soft:
                    wanted[before] = analysis
                advance()
            for doubted, frame, begins_dissolving in _settled_behind(reader, wanted, dissolves, keeper):
                found = analyzer(frame)
                if _may_stand(found, doubted, begins_dissolving, is_certain=doubted.pts in certain):
                    yield replace(found, stands_in_for=doubted.pts)

    return Settled(list(analyzer.embed(in_parallel(video, sorted(doubts), work))), dissolves)


def _settled_behind(
    reader: Reader, wanted: Mapping[int, FrameAnalysis], dissolves: Mapping[int, bool], keeper: PictureKeeper | None
) -> Iterator[tuple[FrameAnalysis, Frame, bool]]:
    """Yield these frames of a GOP with the sharpest settled frame behind each, and whether they begin dissolving themselves.

    All frames behind them are glimpsed in one pass, and only the sharpest behind each is converted at working size; where another one is
    wanted, it is decoded again.
    """
    starts = sorted(wanted)
    behind = sorted({pts for start in starts for pts in _pts_behind(reader, wanted[start])})
    glimpses: dict[int, Glimpse] = {}

    def window_of(pts: int) -> tuple[int, bool]:
        start = starts[bisect_left(starts, pts) - 1]
        return start, (pts - start) * reader.time_base > SETTLED_AFTER_S

    def glance(frame: Frame, sharpness: float) -> None:
        glimpses[frame.pts] = Glimpse(signature_of(frame.image), sharpness)

    windows = [list(window) for _, window in groupby(behind, key=window_of)]
    best = reader.best_frames(windows, sharpness_of, longest_side_px=WORKING_SIDE_PX, keeper=keeper, glance=glance)
    frames = {frame.pts: frame for frame in best}
    settled = [one for pts in starts for one in _sharpest_settled(reader, wanted[pts], glimpses, dissolves=dissolves.get(pts, False))]
    others = sorted({pts for _, pts, _ in settled} - frames.keys())
    frames |= {frame.pts: frame for frame in reader.frames(others, longest_side_px=WORKING_SIDE_PX, keeper=keeper)}
    yield from ((before, frames[pts], dissolving) for before, pts, dissolving in settled if pts in frames)


def _sharpest_settled(
    video: Reader, before: FrameAnalysis, glimpses: Mapping[int, Glimpse], *, dissolves: bool
) -> list[tuple[FrameAnalysis, int, bool]]:
    """Return a frame, the PTS of the sharpest settled frame behind it, and whether it begins dissolving; nothing where there is none."""
    behind = [pts for pts in _pts_behind(video, before) if pts in glimpses]
    seen = [glimpses[pts] for pts in behind]
    times_s = [float(pts * video.time_base) for pts in behind]
    places, begins_dissolving = _settled_places(before, times_s, [one.signature for one in seen], dissolves=dissolves)
    return [(before, behind[max(places, key=lambda place: seen[place].sharpness)], begins_dissolving)] if places else []


def _frames_of_each(reader: Reader, wanted: Mapping[int, Sequence[int]], *, longest_side_px: int) -> Iterator[tuple[int, list[Frame]]]:
    """Yield each key with the frames of its PTS as soon as they are decoded, in the order of their last ones, from one pass."""
    waiting = sorted((pts for pts in wanted if wanted[pts]), key=lambda pts: wanted[pts][-1])
    decoded: dict[int, Frame] = {}
    for frame in reader.frames(sorted({pts for key in waiting for pts in wanted[key]}), longest_side_px=longest_side_px):
        while waiting and wanted[waiting[0]][-1] < frame.pts:
            yield _take(waiting, wanted, decoded)
        decoded[frame.pts] = frame
    while waiting:
        yield _take(waiting, wanted, decoded)


def _take(waiting: list[int], wanted: Mapping[int, Sequence[int]], decoded: dict[int, Frame]) -> tuple[int, list[Frame]]:
    """Take the first key that waits, with its frames; forget those that nobody needs any more."""
    key = waiting.pop(0)
    frames = [decoded[pts] for pts in wanted[key] if pts in decoded]
    needed = {pts for other in waiting for pts in wanted[other]}
    for pts in [pts for pts in decoded if pts not in needed]:
        del decoded[pts]
    return key, frames


def _judge(before: FrameAnalysis, probed: Sequence[npt.NDArray[np.uint8]], dissolves: dict[int, bool], certain: set[int]) -> None:
    """Note whether a frame dissolves, and whether that is certain, by the frames just behind it; fewer than four do not tell."""
    if len(probed) == PROBED_FRAMES:
        signatures = np.stack([before.signature, *probed])
        dissolves[before.pts] = is_dissolving(signatures)
        if is_certainly_dissolving(signatures):
            certain.add(before.pts)


def is_dissolving(signatures: npt.NDArray[np.uint8]) -> bool:
    """Return whether five pictures in a row lie in a dissolve: much changes, and each step is like the one before."""
    parallel, levels = _parallel_change(signatures)
    return parallel > DISSOLVE_PARALLEL and levels > DISSOLVE_LEVELS


def is_certainly_dissolving(signatures: npt.NDArray[np.uint8]) -> bool:
    """Return whether so much changes so evenly that nothing but a dissolve does it."""
    parallel, levels = _parallel_change(signatures)
    return parallel > CERTAINLY_PARALLEL and levels > CERTAIN_LEVELS


def _parallel_change(signatures: npt.NDArray[np.uint8]) -> tuple[float, float]:
    """Return how alike the steps of five pictures in a row are, and the mean difference of the first and the fourth, of 255."""
    pictures = signatures.reshape(len(signatures), -1).astype(np.float32)
    return float(_cosines(np.diff(pictures, axis=0)).mean()), float(np.abs(pictures[3] - pictures[0]).mean())


def _pts_just_behind(video: Reader, analysis: FrameAnalysis) -> list[int]:
    """Return PTS of the next four frames in the GOP, a thirtieth of a second apart or more; none where one is too expensive."""
    shown = video.index.shown_pts
    end = _end_of_gop(video.index, analysis.pts)
    most = MOST_PACKETS if analysis.in_transition and not video.index.decodes_all else MOST_PACKETS_WHERE_EXPENSIVE
    least, found = PROBE_STEP_S / float(video.time_base), [analysis.pts]
    for pts in shown[int(np.searchsorted(shown, analysis.pts, side="right")) :]:
        if len(found) > PROBED_FRAMES or pts >= end:
            break
        if pts - found[-1] >= least:
            found.append(int(pts))
    return found[1:] if all(video.effort(pts) <= most for pts in found[1:]) else []


def _pts_behind(video: Reader, analysis: FrameAnalysis) -> list[int]:
    """Return PTS behind a frame in its GOP, 0.1 s apart; none where they are too expensive."""
    index = video.index
    shown, end = index.shown_pts, _end_of_gop(index, analysis.pts)
    within_s = SETTLED_WITHIN_WHERE_EXPENSIVE_S if index.decodes_all else SETTLED_WITHIN_S
    times = analysis.pts + np.arange(1, round(within_s / STEP_S) + 1) * (STEP_S / float(video.time_base))
    places = sorted({*np.searchsorted(shown, np.rint(times)).tolist()})
    most = MOST_PACKETS_WHERE_EXPENSIVE if index.decodes_all else MOST_PACKETS
    found = [int(shown[place]) for place in places if place < len(shown) and analysis.pts < shown[place] < end]
    return [pts for pts in found if video.effort(pts) <= most]


def _end_of_gop(index: PacketIndex, pts: int) -> int:
    """Return the PTS of the sync frame behind a frame, or one behind the last frame; encoders put several into one dissolve."""
    following = int(np.searchsorted(index.sync_pts, pts + ONE_DISSOLVE_S / float(index.time_base), side="right"))
    return int(index.sync_pts[following]) if following < len(index.sync_pts) else int(index.shown_pts[-1]) + 1


def _settled_places(
    before: FrameAnalysis, times_s: Sequence[float], signatures: Sequence[npt.NDArray[np.uint8]], *, dissolves: bool
) -> tuple[list[int], bool]:
    """Return the places of the frames behind one that are long enough behind it, in its shot and not dissolving; and whether that one is.

    The shot ends at a cut, or at the next dissolve.

    Args:
        dissolves: the one before them lies in a dissolve.
    """
    if not signatures:
        return [], False
    steps_dissolve, cuts = _changes(np.stack([before.signature, *signatures]))
    steps_dissolve[0] |= dissolves
    if steps_dissolve[0]:  # its own steps may be as large as a cut, and the last is marked by the one before
        cuts = cuts & ~(steps_dissolve | np.append(False, steps_dissolve[:-1]))
    end = min(int(cuts.argmax()) if cuts.any() else len(signatures), _next_dissolve(signatures, steps_dissolve))
    late = (place for place in range(end) if times_s[place] - before.time_s > SETTLED_AFTER_S)
    # the step behind one that dissolves is parallel to it, and the end of the dissolve
    return [place for place in late if not steps_dissolve[max(0, place - 1) : place + 2].any()], bool(steps_dissolve[0])


def _next_dissolve(signatures: Sequence[npt.NDArray[np.uint8]], steps_dissolve: Flags) -> int:
    """Return the place of the first of two steps or more that dissolve into another picture, behind one that does not dissolve.

    The number of pictures where there is none: a slow pan, whose steps are parallel too, changes less.
    """
    own = len(steps_dissolve) if steps_dissolve.all() else int(steps_dissolve.argmin())  # of the dissolve that the first picture lies in
    for dissolving, steps in groupby(range(own, len(steps_dissolve)), key=lambda place: bool(steps_dissolve[place])):
        first, *others = steps
        if dissolving and others:
            before, behind = (signatures[place].astype(np.float32) for place in (first - 1, min(others[-1] + 1, len(signatures) - 1)))
            if float(np.abs(behind - before).mean()) > CUT_LEVELS:
                return first
    return len(signatures)


def _may_stand(found: FrameAnalysis, before: FrameAnalysis, dissolves: bool, *, is_certain: bool) -> bool:
    """Return whether a frame shows something and may stand for the one before it: that dissolves or is softer, or the view is the same."""
    if verdict(found.measured, 0.0) is not None:
        return False
    same_view = shows_same_view(found, before)
    if same_view and not is_certain and before.measured.quality.sharpness >= TIMES_SHARPER * found.measured.quality.sharpness:
        return False
    return dissolves or same_view or is_soft(before.measured.quality, found.measured.quality.sharpness)


def _changes(signatures: npt.NDArray[np.uint8]) -> tuple[Flags, Flags]:
    """Return whether pictures dissolve, and whether a cut lies, between each of N + 1 pictures and the next: bool (N,) each."""
    steps = np.diff(signatures.reshape(len(signatures), -1).astype(np.float32), axis=0)
    size = np.abs(steps).mean(axis=1)
    usual = median(size)
    parallel = _cosines(steps) > PARALLEL
    goes_on = np.append(parallel, parallel[-1:] if len(parallel) else False)  # the last as the one before it: there is none behind to tell
    return goes_on & (size > max(MOVING_LEVELS, usual)), size > max(CUT_LEVELS, CUT * usual)


def _cosines(steps: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the cosine of each of N steps (N, D) and the next: float32 (N - 1,)."""
    lengths = np.maximum(np.linalg.norm(steps, axis=1), 1e-6)
    return np.asarray((steps[:-1] * steps[1:]).sum(axis=1) / (lengths[:-1] * lengths[1:]), np.float32)
