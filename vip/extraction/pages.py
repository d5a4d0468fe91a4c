"""Pages, such as slides and screens: what of them is compared, and whether they stand still."""

from __future__ import annotations

from collections.abc import Sequence

from vip.extraction.analyze import FrameAnalysis
from vip.extraction.backgrounds import without_drift
from vip.extraction.insets import without_inset

STILL_SHARE = 1 / 3  # of the frames; screencasts and slides have 0.7 to 1, mixes of moving clips up to 0.32


def stand_still(frames: Sequence[FrameAnalysis]) -> bool:
    """Return whether a video has still pictures, such as slides, all along, and not just a title or a pause."""
    return sum(frame.is_still for frame in frames) >= STILL_SHARE * len(frames)


def without_speaker_or_drift(frames: Sequence[FrameAnalysis]) -> Sequence[FrameAnalysis]:
    """Return slides and screens without a speaker in a window or a background that drifts; the same frames where there is neither."""
    found = without_inset(frames)
    return found if found is not frames or stand_still(frames) else without_drift(frames)
