"""The pictures among the candidates as pruners get them with `-n auto`: whose picture each frame shows, and which frame stands for each."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Mapping, Sequence

from vip.extraction.analyze import FrameAnalysis
from vip.extraction.bad_frames import bad_frames
from vip.extraction.copies import copies
from vip.extraction.distinct import distinct_pictures
from vip.extraction.good_frames import by_picture_only, prunable
from vip.extraction.pruners.algorithm1 import cosine
from vip.extraction.scenes import representatives
from vip.protocols import DistinctPictures
from vip.records import Decision, Embeddings

OFTEN = 2  # a frame with fewer copies than the usual one by more than this factor shows somebody who just comes or goes


def count_pictures(
    frames: Sequence[FrameAnalysis],
    embeddings: Embeddings,
    left: Sequence[int],
    dropped: Mapping[int, Decision],
    *,
    text_weight: float,
    redundant: float,
) -> DistinctPictures:
    """Return the pictures that the remaining frames show.

    Args:
        left: indices of the frames that are neither bad nor copies; at least one.
        dropped: of the others; the copies among them say that a picture stays on screen.
        text_weight: share of the text cosine in the likeness.
        redundant: the cosine from which on two frames of this embedder show the same.
    """
    copy_of = {index: decision.neighbours[0] for index, decision in dropped.items() if decision.rule == "duplicate"}
    good = sorted({*left, *(index for index, best in copy_of.items() if best in set(left))})
    found, curve = distinct_pictures(
        [frames[index] for index in good],
        lambda a, b: cosine(embeddings, good[a], good[b], text_weight),
        redundant,
        shown_s=_shown_s(frames, good, dropped),
    )
    place = {index: row for row, index in enumerate(left)}
    rows = [sorted({place[copy_of.get(good[row], good[row])] for row in picture.rows}) for picture in found]
    number = {row: picture for picture, members in enumerate(rows) for row in members}
    stand_for = []
    for picture in found:
        fullest = None if picture.fullest is None else copy_of.get(good[picture.fullest], good[picture.fullest])
        copies_of = Counter(copy_of.get(good[row], good[row]) for row in picture.whole)
        usual = max(copies_of.values())
        whole = sorted(index for index, count in copies_of.items() if OFTEN * count >= usual)
        whole = [index for index in whole if frames[index].is_still] or whole
        shown = fullest if fullest is not None else whole[next(iter(representatives(prunable(frames, embeddings, whole), 1)))]
        stand_for.append(place[shown])
    still = {picture for picture, one in enumerate(found) if any(frames[good[row]].is_still for row in one.whole)}
    return DistinctPictures(
        [number[row] for row in range(len(left))],
        stand_for,
        [point for point in curve if point[0] <= len(left)],
        spare=frozenset(row for row, picture in number.items() if picture in still and row != stand_for[picture]),
        calm=frozenset(row for row, index in enumerate(left) if frames[index].is_still or frames[index].is_calm),
    )


def likely_pictures(frames: Sequence[FrameAnalysis], min_sharpness: float | None, *, redundant: float) -> list[FrameAnalysis]:
    """Return the frames that would stand for the pictures, before any text is known; arguments as of `count_pictures`."""
    dropped = bad_frames(frames, min_sharpness)
    dropped |= copies(frames, [index for index in range(len(frames)) if index not in dropped])
    left = [index for index in range(len(frames)) if index not in dropped]
    if not left:
        return []
    pictures = count_pictures(frames, by_picture_only(frames), left, dropped, text_weight=0.0, redundant=redundant)
    return [frames[left[row]] for row in sorted(pictures.stand_for)]


def _shown_s(frames: Sequence[FrameAnalysis], good: Sequence[int], dropped: Mapping[int, Decision]) -> list[tuple[float, float]]:
    """Return for each good frame the time of the first and the last frame that shows the same.

    Blurred and pale frames beside it are among them, and those in a transition for which a settled one of their shot stands.
    """
    shown = {index: (frames[index].time_s, frames[index].time_s) for index in good}
    for index, decision in dropped.items():
        same, seen = index, set[int]()
        while same not in shown and same not in seen and same in dropped and dropped[same].neighbours:
            seen.add(same)
            same = dropped[same].neighbours[0]
        place = bisect(good, index)
        if same not in good[max(0, place - 1) : place + 1]:
            continue
        has_stand_in = frames[decision.neighbours[0]].stands_in_for == frames[index].pts
        if decision.rule in {"blurred", "faded"} or has_stand_in:
            first, last = shown[same]
            shown[same] = min(first, frames[index].time_s), max(last, frames[index].time_s)
    return [shown[index] for index in good]
