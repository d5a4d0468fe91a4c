"""Quality: frames that are black, white, flat, blurred, faded or beside a change of shot are dropped (section 3.1)."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Container, Iterator, Sequence
from functools import lru_cache
from itertools import islice, takewhile

import cv2
import numpy as np

from vip.errors import InputError
from vip.extraction.analyze import FrameAnalysis
from vip.extraction.moves import is_on_its_way
from vip.extraction.other_pictures import other_pictures
from vip.extraction.pushes import is_push
from vip.extraction.quality import (
    BadRule,
    Shapes,
    correlation,
    is_blend,
    is_mixture,
    is_out_of_focus,
    middle_of,
    much_blurrier,
    much_paler,
    references,
    rises_from_black,
    same_shape,
    same_view,
    shapes_of,
    verdict,
)
from vip.ranks import median
from vip.records import Decision
from vip.timecode import timecode
from vip.wording import counted, option

WORDS: dict[BadRule, str] = {
    "black": "nearly black",
    "white": "nearly white",
    "flat": "flat: all of it has nearly the same brightness",
    "blurred": "out of focus",
}
BEST_OF_BAD: tuple[BadRule, ...] = ("blurred", "flat", "white", "black")  # what is taken where there is nothing better
NEIGHBOURS = 3
SHARPER_WITHIN_S = 2.0
LASTING_S = 2.0  # a lens is in focus by then: what stays as soft for longer is a soft picture
DISSOLVE_S = 1.25  # between a frame in a dissolve and those beside it; what is farther away may be anything
UNDER_WAY_S, STILL_S = 1.2, 6.0  # between a frame on its way and the pictures on either side, and where those stand still
LETTER_LEVELS, LETTERS_ON_STILL = 32, 0.01
"""Of 255, and share of the pixels in the middle of the thumbnail. Dark cards have 0.05 and more, black frames that stand still none."""
REMEMBERED = 4096  # thumbnails, since frames are judged while candidates are sought and again when keyframes are selected
NOTHING_LEVEL = 4  # of 255: a picture without a brighter cell is black, not dark


def bad_frames(analyses: Sequence[FrameAnalysis], min_sharpness: float | None) -> dict[int, Decision]:
    """Return the frames that are not worth showing: index -> why."""
    if not analyses:
        return {}
    reference = references([analysis.measured for analysis in analyses], [analysis.time_s for analysis in analyses])
    dropped: dict[int, Decision] = {}
    for index, analysis in enumerate(analyses):
        if rule := verdict(analysis.measured, reference[index]):
            measures = f" (sharpness {analysis.measured.quality.sharpness:.1f}, around it {reference[index]:.0f})"
            against = measures if rule == "blurred" else ""
            dropped[index] = Decision(kept=False, rule=rule, reason=f"dropped: {WORDS[rule]}{against}")
    _keep_lasting(analyses, dropped)
    _keep_letters(analyses, dropped)
    for index, analysis in enumerate(analyses):
        sharpness = analysis.measured.quality.sharpness
        if index not in dropped and min_sharpness is not None and sharpness < min_sharpness:
            reason = f"dropped: sharpness {sharpness:.1f} is below the {min_sharpness:g} asked for"
            dropped[index] = Decision(kept=False, rule="below_min_sharpness", reason=reason)
    _drop_replaced(analyses, dropped)
    _drop_blends(analyses, dropped)
    shapes = shapes_of([analysis.signature for analysis in analyses])
    _drop_blurred(analyses, shapes, dropped)
    for index in other_pictures(analyses, dropped, "blurred"):
        del dropped[index]
    _drop_faded(analyses, shapes, dropped)
    for index in other_pictures(analyses, dropped, "faded"):
        del dropped[index]
    _drop_under_way(analyses, dropped)
    _drop_between_rests(analyses, dropped)
    return dropped


def _keep_lasting(analyses: Sequence[FrameAnalysis], dropped: dict[int, Decision]) -> None:
    """Keep frames in a row that show one view for so long that it is not out of focus, but smooth: fog, a chart, cells."""
    row: list[int] = []
    for index in range(len(analyses) + 1):
        is_blurred = index in dropped and dropped[index].rule == "blurred"
        if is_blurred and row and shows_same_view(analyses[row[-1]], analyses[index]):
            row.append(index)
            continue
        if row and analyses[row[-1]].time_s - analyses[row[0]].time_s >= LASTING_S:
            for lasting in row:
                del dropped[lasting]
        row = [index] if is_blurred else []


def _keep_letters(analyses: Sequence[FrameAnalysis], dropped: dict[int, Decision]) -> None:
    """Keep black and white frames that stand still and show letters or a sign in their middle, dark blue ones on black: no fade does."""
    for index in [index for index, decision in dropped.items() if decision.rule in {"black", "white"} and analyses[index].is_still]:
        if _has_letters(analyses[index].thumbnail):
            del dropped[index]


@lru_cache(maxsize=REMEMBERED)
def _has_letters(thumbnail: bytes) -> bool:
    """Return whether the middle of a picture has pixels of another colour than most; False where it cannot be decoded."""
    picture = cv2.imdecode(np.frombuffer(thumbnail, np.uint8), cv2.IMREAD_COLOR) if thumbnail else None
    if picture is None:
        return False
    middle = middle_of(np.asarray(picture, np.int16))
    background = [median(middle[..., colour]) for colour in range(3)]
    return float((np.abs(middle - background).max(axis=2) > LETTER_LEVELS).mean()) >= LETTERS_ON_STILL


def _drop_replaced(analyses: Sequence[FrameAnalysis], dropped: dict[int, Decision]) -> None:
    """Drop each frame in a transition, and each blurred one, for which a settled frame of the same shot was found."""
    settled = {analysis.stands_in_for: other for other, analysis in enumerate(analyses) if analysis.stands_in_for is not None}
    for index in sorted(set(range(len(analyses))) - set(dropped)):
        other = settled.get(analyses[index].pts)
        if other is None or other in dropped:
            continue
        mine, its = analyses[index].measured.quality, analyses[other].measured.quality
        time = timecode(analyses[other].time_s)
        if analyses[index].in_transition:
            reason = f"dropped: beside a change of shot; at {time} the same shot is calm"
            dropped[index] = Decision(kept=False, rule="in_transition", reason=reason, neighbours=(other,))
        elif much_blurrier(mine, its):
            reason = f"dropped: blurred (sharpness {mine.sharpness:.1f}; the same shot at {time} has {its.sharpness:.0f})"
            dropped[index] = Decision(kept=False, rule="blurred", reason=reason, neighbours=(other,))


def _drop_blends(analyses: Sequence[FrameAnalysis], dropped: dict[int, Decision]) -> None:
    """Drop each frame in a transition that is a weighted mean of the frames close before and close behind it."""
    good = [index for index in range(len(analyses)) if index not in dropped]
    for before, index, after in zip(good, good[1:], good[2:], strict=False):
        one, middle, other = analyses[before], analyses[index], analyses[after]
        is_near = max(middle.time_s - one.time_s, other.time_s - middle.time_s) <= DISSOLVE_S
        if middle.in_transition and is_near and is_blend(middle.signature, one.signature, other.signature):
            reason = f"dropped: in a dissolve, between {timecode(one.time_s)} and {timecode(other.time_s)}"
            dropped[index] = Decision(kept=False, rule="in_transition", reason=reason, neighbours=(before, after))


def _drop_under_way(analyses: Sequence[FrameAnalysis], dropped: dict[int, Decision]) -> None:
    """Drop each frame that is on its way from one picture to the next, as in a push, a scroll or a wipe; those two stay."""
    good = [index for index in range(len(analyses)) if index not in dropped]
    needed: set[int] = set()
    for place, index in enumerate(good):
        sides = (range(place - 1, -1, -1), range(place + 1, len(good)))
        left = ((good[other] for other in side if good[other] not in dropped) for side in sides)
        before, after = (_end_of_way(analyses, index, side) for side in left)
        if before is None or after is None or index in needed:
            continue
        one, middle, other = analyses[before], analyses[index], analyses[after]
        if is_push(middle, one, other) or _is_wipe(middle, one, other):
            reason = f"dropped: on its way from the picture at {timecode(one.time_s)} to that at {timecode(other.time_s)}"
            dropped[index] = Decision(kept=False, rule="in_transition", reason=reason, neighbours=(before, after))
            needed |= {before, after}


def _drop_between_rests(analyses: Sequence[FrameAnalysis], dropped: dict[int, Decision]) -> None:
    """Drop each frame that moves for a moment between pictures that stand still, if it is blurred or mostly shows what they do."""
    good = [index for index in range(len(analyses)) if index not in dropped]
    rests = [index for index in good if not analyses[index].is_between_rests]
    for index in [index for index in good if analyses[index].is_between_rests and not analyses[index].is_still]:
        place = bisect(rests, index)
        found = tuple(rests[max(0, place - 1) : place + 1])
        beside = [analyses[other] for other in found]
        is_beside_rests = bool(beside) and all(rest.is_still or rest.is_calm for rest in beside)
        if is_beside_rests and is_on_its_way(analyses[index], beside, comes_to_rest=place < len(rests)):
            times = " and ".join(timecode(rest.time_s) for rest in beside)
            reason = f"dropped: moves for a moment, beside what stands still at {times}"
            dropped[index] = Decision(kept=False, rule="in_transition", reason=reason, neighbours=found)


def _is_wipe(frame: FrameAnalysis, before: FrameAnalysis, after: FrameAnalysis) -> bool:
    """Return whether a frame is a mixture of two views that stand still; where things move, frames look like one too."""
    stand_still = before.is_still and after.is_still
    return stand_still and is_mixture(frame.signature, before.signature, after.signature) and not shows_same_view(before, after)


def _end_of_way(analyses: Sequence[FrameAnalysis], index: int, others: Iterator[int]) -> int | None:
    """Return the farthest of these frames, the nearest first, that is near enough; else the nearest if it alone stands still."""

    def apart_s(other: int) -> float:
        return abs(analyses[other].time_s - analyses[index].time_s)

    nearest = next(others, None)
    if nearest is not None and apart_s(nearest) <= UNDER_WAY_S:
        return [nearest, *takewhile(lambda other: apart_s(other) <= UNDER_WAY_S, others)][-1]
    is_calm = nearest is not None and analyses[nearest].is_still and not analyses[index].is_still
    return nearest if nearest is not None and is_calm and apart_s(nearest) <= STILL_S else None


def _drop_blurred(analyses: Sequence[FrameAnalysis], shapes: Shapes, dropped: dict[int, Decision]) -> None:
    """Drop each frame of whose view one twice as sharp, or of whose shape one ten times as sharp, is within 2 s and not dropped itself."""
    sharpest_first = sorted(set(range(len(analyses))) - set(dropped), key=lambda index: -analyses[index].measured.quality.sharpness)
    for index in sharpest_first:
        for other in _near_in_time(index, analyses, dropped):
            mine, its = analyses[index].measured.quality, analyses[other].measured.quality
            if not much_blurrier(mine, its):
                continue
            cosine, alike = float(analyses[index].view @ analyses[other].view), float(shapes[index] @ shapes[other])
            if same_view(cosine, alike) or is_out_of_focus(mine, its, alike):
                sharper = f"the same view at {timecode(analyses[other].time_s)} has {its.sharpness:.0f}"
                reason = f"dropped: blurred (sharpness {mine.sharpness:.1f}; {sharper})"
                dropped[index] = Decision(kept=False, rule="blurred", reason=reason, neighbours=(other,))
                break


def shows_same_view(a: FrameAnalysis, b: FrameAnalysis) -> bool:
    """Return whether two frames show the same view."""
    return same_view(float(a.view @ b.view), correlation(a.signature, b.signature))


def _near_in_time(index: int, analyses: Sequence[FrameAnalysis], dropped: Container[int]) -> list[int]:
    """Return the frames within 2 s that are not dropped, the nearest first."""
    time_s = analyses[index].time_s
    first, end = index, index + 1
    while first > 0 and time_s - analyses[first - 1].time_s <= SHARPER_WITHIN_S:
        first -= 1
    while end < len(analyses) and analyses[end].time_s - time_s <= SHARPER_WITHIN_S:
        end += 1
    near = (other for other in range(first, end) if other != index and other not in dropped)
    return sorted(near, key=lambda other: abs(analyses[other].time_s - time_s))


def _drop_faded(analyses: Sequence[FrameAnalysis], shapes: Shapes, dropped: dict[int, Decision]) -> None:
    """Drop each frame that is a pale copy of one of its neighbours: one on its way from or to black or white."""
    for index in sorted(set(range(len(analyses))) - set(dropped), key=lambda index: analyses[index].measured.quality.contrast):
        for other in neighbours(index, len(analyses), dropped):
            mine, its = analyses[index].measured.quality, analyses[other].measured.quality
            if not much_paler(mine, its):
                continue
            alike = float(shapes[index] @ shapes[other])
            is_near = abs(analyses[index].time_s - analyses[other].time_s) <= SHARPER_WITHIN_S
            if same_shape(alike) or (is_near and rises_from_black(mine, its, alike)):
                full = f"{timecode(analyses[other].time_s)} (contrast {mine.contrast:.2f} instead of {its.contrast:.2f})"
                dropped[index] = Decision(kept=False, rule="faded", reason=f"dropped: a pale copy of {full}", neighbours=(other,))
                break


def neighbours(index: int, count: int, out: Container[int]) -> list[int]:
    """Return the 3 frames on either side that are not out, the nearest first: a fade takes several."""
    sides = (range(index - 1, -1, -1), range(index + 1, count))
    around = [other for side in sides for other in islice((other for other in side if other not in out), NEIGHBOURS)]
    return sorted(around, key=lambda other: abs(other - index))


def keep_best_of_bad(analyses: Sequence[FrameAnalysis], dropped: dict[int, Decision], min_sharpness: float | None) -> str | None:
    """Keep those that are least bad where all are bad: a video that shows anything keeps a keyframe.

    Returns:
        What they are, in words; None where some were good.

    Raises:
        InputError: all are plain black, or below what the user asked for.
    """
    if len(dropped) < len(analyses):
        return None
    if shows_nothing_at_all(analyses):
        seen = "The only frame that was looked at is" if len(analyses) == 1 else f"All {len(analyses):,} frames that were looked at are"
        raise InputError(f"{seen} black: the video shows nothing to keep.")
    rules = {decision.rule for decision in dropped.values()}
    if "below_min_sharpness" in rules and min_sharpness is not None:
        best = max(analysis.measured.quality.sharpness for analysis in analyses)
        sentence = f"0 of {counted(len(analyses), 'candidate')} are sharp enough (best {best:.1f}, asked {min_sharpness:g})."
        raise InputError(f"{sentence} Try {option('min_sharpness', round(best / 2))}." if best >= 2 else sentence)
    least_bad = next(rule for rule in BEST_OF_BAD if rule in rules)
    for index in [index for index, decision in dropped.items() if decision.rule == least_bad]:
        del dropped[index]
    return WORDS[least_bad]


def shows_nothing_at_all(analyses: Sequence[FrameAnalysis]) -> bool:
    """Return whether every picture is plain black."""
    return all(int(analysis.signature.max()) <= NOTHING_LEVEL for analysis in analyses)
