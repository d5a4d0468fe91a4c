"""Slides and screens over a background that drifts, as templates have them: the words on a background that stands still.

A person who counts slides looks past the drift. For vip it spoils what a window with a speaker spoils (`insets`): packets never rest, and
lightness and colour of one slide change from place to place. So it looks whether words stay where they are while the plain background
behind them changes. Then it takes the background away: what is left of each place is how it differs from the plain places around it.

In: the analyses of all frames. Out: the same with a background in one colour, and frames whose words stay counted as still.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import cv2
import numpy as np
import numpy.typing as npt

from vip.extraction.analyze import FrameAnalysis, signature_of
from vip.extraction.insets import LEAST_FRAMES, may_be_still
from vip.local_change import PAGE_VARIANCE, SAME_STRUCTURE, SmallPicture, prepared, structure_of, window_mean
from vip.ranks import median

LOOKED_AT = 16  # pairs that say whether this is such a video; the first of others say that it is none
PAGES, SAME_WORDS, DRIFTS = 0.9, 0.4, 0.1
"""Shares of them that are pages, keep their words, and do so while the background changes. Of 12 drawn slides over a gradient 0.96, 0.52 and
0.13 and more (but one that hardly drifts); of 27 clips and 60 other drawn videos none has all three but slides that flicker."""
LEAST_WORDS, MOST_WORDS = 0.02, 0.75  # share of the picture that is no plain background
CHANGED_WORDS = 0.02  # share of the words; of one slide at most 0.01, of others 0.5 and more, where lines join 0.08 and more
DRIFT_LEVELS, DRIFT_AREA = 4.0, 0.05  # of 255, in the mean of a window, and of the picture
BESIDE_WORDS_PX, AROUND_PX = 7, 9  # of 160: what words blur, and how far around it the background is looked for
LEAST_PLAIN = 0.02  # share of the places around that are background, for it to be known


def without_drift(frames: Sequence[FrameAnalysis]) -> Sequence[FrameAnalysis]:
    """Return the frames with the background of signatures and thumbnails in one colour; the same frames where none drifts."""
    if len(frames) < LEAST_FRAMES or not _drifts(frames):
        return frames
    lightness = _lightness(frames)
    plain = [_on_plain_background(frame, lightness) for frame in frames]
    same = [_keeps_words(*pair) for pair in pairwise(frames)]
    is_same = [before or behind for before, behind in pairwise([False, *same, False])]
    return [
        replace(frame, is_still=stays or may_be_still(plain, place))
        for place, (frame, stays) in enumerate(zip(plain, is_same, strict=True))
    ]


def _drifts(frames: Sequence[FrameAnalysis]) -> bool:
    """Return whether words stay while the background behind them changes, as far as some pairs tell."""
    every = max(1, (len(frames) - 1) // LOOKED_AT)
    pairs = [(frames[place], frames[place + 1]) for place in range(0, len(frames) - 1, every)]
    pages = keep = drift = 0
    for number, (before, now) in enumerate(pairs, 1):
        pages += _is_page(before)
        if number - pages > (1 - PAGES) * len(pairs):  # most videos are told by the first few
            return False
        if _keeps_words(before, now):
            keep += 1
            drift += _changes_behind(before, now)
    return keep >= SAME_WORDS * len(pairs) and drift >= DRIFTS * len(pairs)


def _is_page(frame: FrameAnalysis) -> bool:
    """Return whether most of the background is as plain as that of what is drawn."""
    picture = prepared(frame.thumbnail)
    return picture is not None and not picture.has_content.all() and median(picture.variance[~picture.has_content]) < PAGE_VARIANCE


def _keeps_words(before: FrameAnalysis, now: FrameAnalysis) -> bool:
    """Return whether two frames show the same words at the same places, on whatever background."""
    pair = _pair(before, now)
    if pair is None:
        return False
    changed = structure_of(*pair) <= SAME_STRUCTURE
    return all(
        LEAST_WORDS <= picture.has_content.mean() <= MOST_WORDS and changed[picture.has_content].mean() < CHANGED_WORDS for picture in pair
    )


def _changes_behind(before: FrameAnalysis, now: FrameAnalysis) -> bool:
    """Return whether the background of two frames with the same words differs in more than a stray place."""
    pair = _pair(before, now)
    if pair is None:
        return False
    one, other = pair
    behind = ~one.has_content & ~other.has_content
    return bool(behind.any() and (np.abs(one.mean - other.mean)[behind] > DRIFT_LEVELS).mean() > DRIFT_AREA)


def _pair(before: FrameAnalysis, now: FrameAnalysis) -> tuple[SmallPicture, SmallPicture] | None:
    """Return two thumbnails, ready for being compared; None where they cannot be."""
    one, other = prepared(before.thumbnail), prepared(now.thumbnail)
    return None if one is None or other is None or one.mean.shape != other.mean.shape else (one, other)


def _lightness(frames: Sequence[FrameAnalysis]) -> float:
    """Return how light the background mostly is, of 255."""
    pictures = (prepared(frame.thumbnail) for frame in frames[:: -(-len(frames) // LOOKED_AT)])
    return median([median(picture.mean) for picture in pictures if picture is not None] or [0.0])


def _on_plain_background(frame: FrameAnalysis, lightness: float) -> FrameAnalysis:
    """Return a frame with its words as they are on grey of this lightness."""
    picture = prepared(frame.thumbnail)
    if picture is None:
        return frame
    stands_out = picture.lightness - window_mean(picture.lightness, AROUND_PX)
    words = np.sign(stands_out) * np.maximum(np.abs(stands_out) - DRIFT_LEVELS, 0)
    grey = np.clip(words + lightness, 0, 255).astype(np.uint8)
    plain = np.repeat(grey[..., None], 3, axis=2)
    png = cv2.imencode(".png", cv2.cvtColor(plain, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_PNG_COMPRESSION, 1])[1]
    return replace(frame, signature=signature_of(plain), thumbnail=png.tobytes())
