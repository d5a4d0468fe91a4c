"""Which frames are looked at: the sampler's candidates, more where few differ, others where they are bad or restless.

In comes an open video and the candidates' PTS, out come the looks at all frames that were seen, in time order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vip.extraction import choose, further, objects, quality, scan
from vip.extraction.calm import Calm
from vip.extraction.candidates import fill
from vip.extraction.scan import Look, Looker
from vip.protocols import Observer, PictureKeeper
from vip.video import Reader

NEAR_S = 0.5  # a frame that stands for the planned one follows within this
PASSED_OVER = 5  # frames that no other needs come in rows hardly longer
MANY_FRAMES = 4  # times as many as are looked at; of fewer, those passed over would be missing
SEARCH_BATCH = 500  # frames looked at at once where a video seems to show nothing
MOST_PER_KEYFRAME_IN_STILLS = 12  # how many candidates a keyframe are tried where nearly all show the same picture


@dataclass(frozen=True)
class Search:
    """What is looked for, and with what."""

    video: Reader
    looker: Looker
    keyframes: int
    """How many are wanted or, where that is to be found out, expected."""
    min_sharpness: float | None
    exact: bool
    """Whether the sampler means just the frames that it names."""
    insistent: bool
    """Whether more frames are tried until enough of them differ."""
    keeper: PictureKeeper
    observer: Observer
    as_is: bool = False
    """Whether the planned frames are taken as they are."""


def look_at(search: Search, planned: Sequence[int]) -> list[Look]:
    """The looks at the planned frames and at those that join them."""
    looks = _scan(search, "Looking at frames", planned, exact=search.exact)
    if search.as_is:
        return _with_objects(search, looks, range(len(looks)))
    looks = _search_all(search, looks)
    if search.insistent:
        looks = _until_enough_differ(search, looks)
    reference = quality.references([look.measured for look in looks])
    bad = [index for index, look in enumerate(looks) if quality.verdict(look.measured, reference[index])]
    with search.observer.track("Looking beside bad frames", len(bad)) as advance:
        instead = further.look_further(search.video, looks, bad, reference, search.looker, advance=advance)
    looks = _calmed(search, _merged(looks, instead))
    return _with_objects(search, looks, choose.good_frames(looks, None))


def _with_objects(search: Search, looks: list[Look], places: Sequence[int]) -> list[Look]:
    """The looks, searched for objects at these places."""
    with search.observer.track("Looking for objects", len(places)) as advance:
        return objects.seek(looks, places, search.looker.detector, advance=advance)


def lost(search: Search, planned: Sequence[int], looks: Sequence[Look]) -> list[int]:
    """The planned PTS of which no frame was seen, nor one that follows soon enough."""
    within = 0 if search.exact else round(NEAR_S / search.video.time_base)
    seen = [look.pts for look in looks]
    places = np.searchsorted(seen, planned).tolist()
    return [pts for pts, place in zip(planned, places, strict=True) if place == len(seen) or seen[place] - pts > within]


def _scan(search: Search, title: str, pts: Sequence[int], *, exact: bool) -> list[Look]:
    exact = exact or not _others_do(search.video, pts)
    with search.observer.track(title, len(pts)) as advance:
        return scan.scan(search.video, pts, search.looker, exact=exact, keeper=search.keeper, advance=advance)


def _others_do(video: Reader, pts: Sequence[int]) -> bool:
    """Whether each of these frames is one of many, and those behind it follow soon: not in short, slow or halting videos."""
    shown = video.index.shown_pts
    following = shown[np.minimum(np.searchsorted(shown, pts) + PASSED_OVER, len(shown) - 1)]
    return len(shown) >= MANY_FRAMES * len(pts) and bool((following - np.asarray(pts) <= NEAR_S / video.time_base).all())


def _search_all(search: Search, looks: list[Look]) -> list[Look]:
    """Where all candidates are plain black, look at every other frame until something shows."""
    known = {look.pts for look in looks}
    others = [pts for pts in search.video.index.shown_pts.tolist() if pts not in known]
    if not looks or not others or not choose.shows_nothing_at_all(looks):
        return looks
    with search.observer.track("All black so far, looking at the rest", len(others)) as advance:
        for start in range(0, len(others), SEARCH_BATCH):
            found = scan.scan(search.video, others[start : start + SEARCH_BATCH], search.looker, advance=advance)
            if found and not choose.shows_nothing_at_all(found):
                return _merged(looks, found)
    return looks


def _until_enough_differ(search: Search, looks: list[Look]) -> list[Look]:
    """Twice as many, again and again, while fewer differ than keyframes are wanted.

    Not where packet sizes tell that nothing changes, nor deep inside a long GOP, where it would be too dear.
    """
    calm = Calm(search.video.index)
    while looks and _different(search, looks) < search.keyframes and 2 * len(looks) <= MOST_PER_KEYFRAME_IN_STILLS * search.keyframes:
        known = sorted({look.pts for look in looks})
        more = fill(known, calm.moving(known), 2 * len(looks))
        near = [pts for pts in sorted({*more} - {*known}) if search.video.effort(pts) <= further.FARTHEST_PACKETS]
        merged = _merged(looks, _scan(search, "Looking for frames that differ", near, exact=True) if near else [])
        if len(merged) == len(looks):
            break
        looks = merged
    return looks


def _different(search: Search, looks: Sequence[Look]) -> int:
    """How many candidates are neither bad nor copies."""
    return len(choose.good_frames(looks, search.min_sharpness))


def _calmed(search: Search, looks: list[Look]) -> list[Look]:
    """The looks, and calm frames beside those that would be kept though they lie in a restless stretch."""
    likely = choose.would_keep(looks, keyframes=search.keyframes, min_sharpness=search.min_sharpness)
    restless = [look for look in likely if look.restless]
    with search.observer.track("Looking for calm frames", len(restless)) as advance:
        return _merged(looks, further.look_for_calm(search.video, restless, search.looker, keeper=search.keeper, advance=advance))


def _merged(looks: Sequence[Look], found: Sequence[Look]) -> list[Look]:
    """Both in time order; of two looks at one frame the first."""
    known = {look.pts for look in looks}
    return sorted([*looks, *(look for look in found if look.pts not in known)], key=lambda look: look.pts)
