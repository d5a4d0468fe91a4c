"""Slides and screens over a background that drifts, as templates have them: the words alone.

A person who counts slides looks past the drift. For vip it spoils what a speaker in a window spoils (`insets`): packets never rest, and
lightness and colour of one slide change from place to place. So it looks whether words stay where they are while the plain background
behind them changes. Then it takes the background away: what is left is how much lighter or darker each place is than what is around it.

In: the analyses of all frames. Out: the same on a grey background, and frames whose words stay counted as still.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import cv2
import numpy as np

from vip.extraction.analyze import FrameAnalysis, signature_of
from vip.extraction.insets import LEAST_FRAMES, still_where_unchanged
from vip.local_change import SAME_STRUCTURE, SmallPicture, prepared, structure_of, window_mean
from vip.ranks import median

LOOKED_AT = 16  # pairs of frames that say whether this is such a video; the first of others say that it is none
PAGES, STAYS, DRIFTS = 0.75, 0.5, 0.1
"""Shares of them: pages; those whose words stay less those whose words move a little; those whose words stay while the background changes.
Slides on gradients and lights that wander have 0.86, 0.6 and 0.15 or more. Of 27 clips, talks, boards, mixes and 60 other drawn videos only
slides that flicker have all three; nearest are bottles under a light that changes (1, 0.38 and 0.59)."""
PLAIN_VARIANCE = 6.0  # of most windows of the background: lights that wander have 3.3, views of a camera 2 to 30
LEAST_WORDS, MOST_WORDS = 0.02, 0.75  # share of the picture that is no plain background
STAY_WORDS, OTHER_WORDS = 0.02, 0.3  # share of the words that are gone in the next frame; 0.01 on one slide, half and more on another
DRIFT_LEVELS, DRIFT_AREA = 4.0, 0.05  # of 255, and share of the background
GREY = 128  # of 255
WORDS_PX = 9  # of 160: letters stand out from what is so far around them, a drift does not


def without_drift(frames: Sequence[FrameAnalysis]) -> Sequence[FrameAnalysis]:
    """Return the frames with nothing but words in signatures and thumbnails; the same frames where no background drifts."""
    if len(frames) < LEAST_FRAMES or not _drifts(frames):
        return frames
    same = [_shows_the_same_words(before, now) for before, now in pairwise(frames)]
    return still_where_unchanged([_words_alone(frame) for frame in frames], same)


def _drifts(frames: Sequence[FrameAnalysis]) -> bool:
    """Return whether words stay while the background behind them changes, as far as some pairs tell."""
    places = range(0, len(frames) - 1, max(1, (len(frames) - 1) // LOOKED_AT))
    no_pages = stay = move = drift = 0
    for place in places:
        pair = _pair(frames[place], frames[place + 1])
        if pair is None or not _is_page(pair[0]):
            no_pages += 1
            if no_pages > (1 - PAGES) * len(places):  # most videos are told by the first few
                return False
            continue
        gone = _gone_words(*pair)
        stay += gone < STAY_WORDS
        move += STAY_WORDS <= gone < OTHER_WORDS
        drift += gone < STAY_WORDS and _changes_behind(*pair)
    return stay - move >= STAYS * len(places) and drift >= DRIFTS * len(places)


def _is_page(picture: SmallPicture) -> bool:
    """Return whether a picture shows words, or other content, on a background that is mostly plain."""
    words = picture.has_content
    return bool(LEAST_WORDS <= words.mean() <= MOST_WORDS) and median(picture.variance[~words]) < PLAIN_VARIANCE


def _shows_the_same_words(before: FrameAnalysis, now: FrameAnalysis) -> bool:
    """Return whether each of two frames shows all words of the other, where they are."""
    pair = _pair(before, now)
    return pair is not None and max(_gone_words(*pair), _gone_words(*reversed(pair))) < STAY_WORDS


def _gone_words(one: SmallPicture, other: SmallPicture) -> float:
    """Return the share of the words of a picture that another one does not show there, on whatever background; 1 where it has none."""
    gone = structure_of(one, other)[one.has_content] <= SAME_STRUCTURE
    return float(gone.mean()) if gone.size else 1.0


def _changes_behind(one: SmallPicture, other: SmallPicture) -> bool:
    """Return whether the background of two pictures with the same words differs in more than a stray place."""
    behind = ~one.has_content & ~other.has_content
    return bool((np.abs(one.mean - other.mean)[behind] > DRIFT_LEVELS).mean() > DRIFT_AREA) if behind.any() else False


def _pair(before: FrameAnalysis, now: FrameAnalysis) -> tuple[SmallPicture, SmallPicture] | None:
    """Return two thumbnails, ready for being compared; None where they cannot be."""
    one, other = prepared(before.thumbnail), prepared(now.thumbnail)
    return None if one is None or other is None or one.mean.shape != other.mean.shape else (one, other)


def _words_alone(frame: FrameAnalysis) -> FrameAnalysis:
    """Return a frame with its words on grey."""
    picture = prepared(frame.thumbnail)
    if picture is None:
        return frame
    stands_out = picture.lightness - window_mean(picture.lightness, WORDS_PX)
    words = np.sign(stands_out) * np.maximum(np.abs(stands_out) - DRIFT_LEVELS, 0)
    grey = np.clip(words + GREY, 0, 255).astype(np.uint8)
    plain = np.repeat(grey[..., None], 3, axis=2)  # which is the same in RGB and BGR
    png = cv2.imencode(".png", plain, [cv2.IMWRITE_PNG_COMPRESSION, 1])[1]
    return replace(frame, signature=signature_of(plain), thumbnail=png.tobytes())
