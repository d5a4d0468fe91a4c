"""Search for candidates: the sampler's candidates, more where few differ, others where they are bad or restless.

In: an open video and the PTS of its candidates. Out: the analyses of all frames that were decoded, in time order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from vip.extraction import analyze, objects, quality, substitutes
from vip.extraction.analyze import FrameAnalysis, FrameAnalyzer
from vip.extraction.bad_frames import shows_nothing_at_all, shows_same_view
from vip.extraction.good_frames import good_frames, likely_keyframes
from vip.extraction.hidden_shots import frames_of_hidden_shots
from vip.extraction.pages import without_speaker_or_drift
from vip.extraction.quality import resembles_blend
from vip.extraction.samplers.sync import fill, is_short
from vip.extraction.settled import find_settled
from vip.extraction.stillness import rests_behind
from vip.extraction.transitions import activity_of
from vip.protocols import Observer, PictureKeeper
from vip.video import Reader

MOST_SETTLED_AGAIN = 6  # hardly any video needs a third time
NEAR_S = 0.5  # a frame that stands for the planned one follows within this
PASSED_OVER = 5  # frames that no other needs come in rows hardly longer
MANY_FRAMES = 4  # times as many as are looked at; of fewer, those passed over would be missing
LEAST_CHOICE = 2  # frames for each of which the sharpest is taken; of fewer, one is hardly sharper
FARTHEST_IN_REST_PACKETS = 120  # behind a sync frame: a frame in motion that is one itself needs 45
BESIDE = 2  # frames on either side that may be of the shots that a dissolve joins
SEARCH_BATCH = 500  # frames looked at at once where a video seems to show nothing
MOST_PER_KEYFRAME_IN_STILLS = 12  # how many candidates a keyframe are tried where nearly all show the same picture


@dataclass(frozen=True)
class CandidateSearch:
    """The settings and backends of a search."""

    video: Reader
    analyzer: FrameAnalyzer
    keyframes: int
    """How many are wanted or, where that is to be found out, expected."""
    min_sharpness: float | None
    exact: bool
    """Whether the sampler means just the frames that it names."""
    insistent: bool
    """Whether more frames are tried until enough of them differ."""
    keeper: PictureKeeper
    observer: Observer
    counts_pictures: bool = False
    """Whether the number of keyframes is to be found out from what the frames show."""
    as_is: bool = False
    """Whether the planned frames are taken as they are."""


def analyze_candidates(search: CandidateSearch, planned: Sequence[int]) -> list[FrameAnalysis]:
    """Analyze the planned frames and those that join them."""
    analyses = _scan(search, "Looking at frames", planned, exact=search.exact, sharpest=_takes_sharpest(search, planned))
    if search.as_is:
        return _add_objects(search, analyses, range(len(analyses)))
    analyses = _search_all(search, analyses)
    if search.insistent:
        analyses = _until_enough_differ(search, analyses)
    if search.insistent or search.counts_pictures:
        analyses = _add_rests(search, _add_hidden_shots(search, analyses))
    if search.counts_pictures:
        analyses = _look_closer(search, analyses)
    reference = quality.references([analysis.measured for analysis in analyses], [analysis.time_s for analysis in analyses])
    bad = [index for index, analysis in enumerate(analyses) if quality.verdict(analysis.measured, reference[index])]
    with search.observer.track("Looking beside bad frames", len(bad)) as advance:
        instead = substitutes.find_substitutes(search.video, analyses, bad, reference, search.analyzer, advance=advance)
    doubted: set[int] = set()
    analyses = _add_objects_to_good(search, _add_settled_frames(search, _merge(analyses, instead), doubted))
    for _ in range(MOST_SETTLED_AGAIN):  # people are preferred, and each new frame may stand for a scene in place of others
        settled = _add_settled_frames(search, analyses, doubted)
        if settled is analyses:
            break
        analyses = _add_objects_to_good(search, settled)
    return analyses


def _add_objects_to_good(search: CandidateSearch, analyses: list[FrameAnalysis]) -> list[FrameAnalysis]:
    """Search the good frames for objects, but for those that were searched before: their pictures are gone, whatever was found."""
    good = good_frames(without_speaker_or_drift(analyses), None)  # as they are when keyframes are selected
    return _add_objects(search, analyses, [place for place in good if analyses[place].picture is not None])


def _add_objects(search: CandidateSearch, analyses: list[FrameAnalysis], places: Sequence[int]) -> list[FrameAnalysis]:
    """Search the frames at these places for objects."""
    with search.observer.track("Looking for objects", len(places)) as advance:
        return objects.seek(analyses, places, search.analyzer.detector, advance=advance)


def undecodable(search: CandidateSearch, planned: Sequence[int], analyses: Sequence[FrameAnalysis]) -> list[int]:
    """Return the planned PTS of which no frame was seen, nor one that stands for it: of its window, or following soon enough."""
    seen = [analysis.pts for analysis in analyses]
    if _takes_sharpest(search, planned):
        windows = analyze.windows_around(search.video, planned)
        return [pts for pts in planned if not set(windows[pts]) & set(seen)]
    within = 0 if search.exact else round(NEAR_S / search.video.time_base)
    places = np.searchsorted(seen, planned).tolist()
    return [pts for pts, place in zip(planned, places, strict=True) if place == len(seen) or seen[place] - pts > within]


def _scan(search: CandidateSearch, title: str, pts: Sequence[int], *, exact: bool, sharpest: bool = False) -> list[FrameAnalysis]:
    exact = exact or not _are_replaceable(search.video, pts)
    with search.observer.track(title, len(pts)) as advance:
        return analyze.analyze(search.video, pts, search.analyzer, exact=exact, sharpest=sharpest, keeper=search.keeper, advance=advance)


def _takes_sharpest(search: CandidateSearch, planned: Sequence[int]) -> bool:
    """Return whether all frames are decoded for the sharpest ones among them: of a short video that has few sync frames.

    Not where pictures are counted: the sharpest frame may be one in which a page scrolls or somebody walks in.
    """
    index = search.video.index
    if not search.insistent or not is_short(index):
        return False
    return len(index.shown_pts) >= LEAST_CHOICE * len(planned) and not set(planned) <= set(index.sync_pts.tolist())


def _are_replaceable(video: Reader, pts: Sequence[int]) -> bool:
    """Return whether each of these frames is one of many, and those behind it follow soon: not in short, slow or halting videos."""
    shown = video.index.shown_pts
    following = shown[np.minimum(np.searchsorted(shown, pts) + PASSED_OVER, len(shown) - 1)]
    return len(shown) >= MANY_FRAMES * len(pts) and bool((following - np.asarray(pts) <= NEAR_S / video.time_base).all())


def _search_all(search: CandidateSearch, analyses: list[FrameAnalysis]) -> list[FrameAnalysis]:
    """Analyze all other frames until something shows, where all candidates are plain black."""
    known = {analysis.pts for analysis in analyses}
    others = [pts for pts in search.video.index.shown_pts.tolist() if pts not in known]
    if not analyses or not others or not shows_nothing_at_all(analyses):
        return analyses
    with search.observer.track("All black so far, looking at the rest", len(others)) as advance:
        for start in range(0, len(others), SEARCH_BATCH):
            found = analyze.analyze(search.video, others[start : start + SEARCH_BATCH], search.analyzer, advance=advance)
            if found and not shows_nothing_at_all(found):
                return _merge(analyses, found)
    return analyses


def _until_enough_differ(search: CandidateSearch, analyses: list[FrameAnalysis]) -> list[FrameAnalysis]:
    """Double the candidates while fewer differ than keyframes are wanted.

    Not where packet sizes tell that nothing changes, nor deep inside a long GOP, where it would be too expensive.
    """
    activity = activity_of(search.video.index)
    while (
        analyses and _different(search, analyses) < search.keyframes and 2 * len(analyses) <= MOST_PER_KEYFRAME_IN_STILLS * search.keyframes
    ):
        known = sorted({analysis.pts for analysis in analyses})
        more = fill(known, activity.moving(known), 2 * len(analyses))
        near = [pts for pts in sorted({*more} - {*known}) if search.video.effort(pts) <= substitutes.FARTHEST_PACKETS]
        merged = _merge(analyses, _scan(search, "Looking for frames that differ", near, exact=True) if near else [])
        if len(merged) == len(analyses):
            break
        analyses = merged
    return analyses


def _add_hidden_shots(search: CandidateSearch, analyses: list[FrameAnalysis]) -> list[FrameAnalysis]:
    """Analyze frames of shots that lie between two candidates."""
    wanted = frames_of_hidden_shots(search.video.index, analyses, search.keyframes)
    return _merge(analyses, _scan(search, "Looking between sync frames", wanted, exact=True)) if wanted else analyses


def _add_rests(search: CandidateSearch, analyses: list[FrameAnalysis]) -> list[FrameAnalysis]:
    """Analyze frames in which what moves for a moment has come to rest."""
    known = {analysis.pts for analysis in analyses}
    wanted = rests_behind(search.video.index, [analysis.pts for analysis in analyses if analysis.is_between_rests])
    near = [pts for pts in wanted if pts not in known and search.video.effort(pts) <= FARTHEST_IN_REST_PACKETS]
    return _merge(analyses, _scan(search, "Looking where pictures rest", near, exact=True)) if near else analyses


def _look_closer(search: CandidateSearch, analyses: list[FrameAnalysis]) -> list[FrameAnalysis]:
    """Analyze frames beside those that pass by once, where that is not too expensive."""
    from vip.extraction.closer_look import FARTHEST_PACKETS, frames_beside_passing

    wanted = frames_beside_passing(search.video.index, analyses, search.min_sharpness)
    near = [pts for pts in wanted if search.video.effort(pts) <= FARTHEST_PACKETS]
    return _merge(analyses, _scan(search, "Looking closer", near, exact=True)) if near else analyses


def _different(search: CandidateSearch, analyses: Sequence[FrameAnalysis]) -> int:
    """Return how many candidates are neither bad nor copies."""
    return len(good_frames(analyses, search.min_sharpness))


def _add_settled_frames(search: CandidateSearch, analyses: list[FrameAnalysis], doubted: set[int]) -> list[FrameAnalysis]:
    """Add settled frames behind those that would be kept and dissolve, or are far softer than those around them.

    Args:
        doubted: PTS of the frames that were looked behind already, or that were first seen so; grows.
    """
    new = {frame.pts for frame in _likely_keyframes(search, analyses)} - doubted
    reference = quality.references([analysis.measured for analysis in analyses], [analysis.time_s for analysis in analyses])
    soft = {one.pts for one, around in zip(analyses, reference, strict=True) if quality.is_soft(one.measured.quality, around)} & new
    activity = activity_of(search.video.index)
    # what much follows elsewhere is movement; a frame that stands for one in a dissolve is near it
    may_dissolve = {one.pts for one in analyses if one.in_transition or one.stands_in_for is not None}
    if not is_short(search.video.index):  # there the candidates lie so close that some are outside the dissolve
        may_dissolve |= activity.is_followed_by_sync(sorted(new)) | _between_other_views(analyses, new)
    restless = activity.is_followed_by_much(sorted(new & may_dissolve))
    doubtful = [analysis for analysis in analyses if analysis.pts in soft | restless]
    if not doubtful:
        return analyses
    with search.observer.track("Looking for settled frames", len(doubtful)) as advance:
        found, dissolves = find_settled(
            search.video, doubtful, search.analyzer, known=analyses, soft=soft, keeper=search.keeper.for_likely, advance=advance
        )
    doubted |= {one.pts for one in doubtful} | ({one.pts for one in found} - {one.pts for one in analyses})
    settled = {one.pts: one for one in found}
    return _merge([_after_a_look(one, settled.get(one.pts), dissolves) for one in analyses], found)


def _between_other_views(analyses: Sequence[FrameAnalysis], among: Collection[int]) -> set[int]:
    """Return the PTS among these whose frames look like a mean of two other views, one close before and one close behind.

    They may lie in a dissolve too short for its packets to tell.
    """
    found = set()
    for place, frame in enumerate(analyses):
        if frame.pts not in among:
            continue
        sides = product(analyses[max(0, place - BESIDE) : place], analyses[place + 1 : place + 1 + BESIDE])
        shots = ((before, after) for before, after in sides if not shows_same_view(before, after))
        if any(resembles_blend(frame.signature, before.signature, after.signature) for before, after in shots):
            found.add(frame.pts)
    return found


def _after_a_look(analysis: FrameAnalysis, settled: FrameAnalysis | None, dissolves: Mapping[int, bool]) -> FrameAnalysis:
    """Return what is known of a frame now: whether it dissolves, and for which it stands if it is a settled one itself."""
    if settled is None:
        return replace(analysis, in_transition=dissolves.get(analysis.pts, analysis.in_transition))
    stands_in_for = settled.stands_in_for if analysis.stands_in_for is None else analysis.stands_in_for
    return replace(analysis, in_transition=False, stands_in_for=stands_in_for)


def _likely_keyframes(search: CandidateSearch, analyses: Sequence[FrameAnalysis]) -> list[FrameAnalysis]:
    """Return the frames that would be kept as far as is known."""
    redundant = search.analyzer.embedder.capabilities.redundant_cosine
    if not search.counts_pictures:
        return likely_keyframes(analyses, keyframes=search.keyframes, min_sharpness=search.min_sharpness, redundant=redundant)
    from vip.extraction.picture_count import likely_pictures

    return likely_pictures(analyses, search.min_sharpness, redundant=redundant)


def _merge(analyses: Sequence[FrameAnalysis], found: Sequence[FrameAnalysis]) -> list[FrameAnalysis]:
    """Return both in time order; of two analyses of one frame the first."""
    first = {analysis.pts: analysis for analysis in reversed([*analyses, *found])}
    return [first[pts] for pts in sorted(first)]
