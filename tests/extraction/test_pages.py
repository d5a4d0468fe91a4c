"""What of pages is compared: a speaker goes first, then a drift, and nothing of a video that stands still."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.extraction.test_backgrounds import film, lit
from tests.extraction.test_insets import talk, with_speaker
from vip.extraction import insets
from vip.extraction.backgrounds import without_drift
from vip.extraction.pages import stand_still, without_speaker_or_drift


def test_a_speaker_and_a_drift_are_taken_away() -> None:
    for frames, alone in ((talk(), insets.without_inset(talk())), (film(), without_drift(film()))):
        found = without_speaker_or_drift(frames)
        assert found is not frames
        assert [frame.thumbnail for frame in found] == [frame.thumbnail for frame in alone]


@pytest.mark.parametrize(("still", "is_left"), [(3, False), (4, True)])
def test_where_a_third_stands_still_no_drift_is_looked_for(still: int, is_left: bool) -> None:
    frames = [replace(frame, is_still=place < still) for place, frame in enumerate(film())]
    assert len(frames) == 12
    assert stand_still(frames) == is_left
    assert (without_speaker_or_drift(frames) is frames) == is_left


def test_of_a_page_beside_a_speaker_only_the_window_goes() -> None:
    """The places that do not count beside a speaker would count again."""
    frames = film(shine=lambda page, number: with_speaker(lit(page, number, shade=3), number))
    found = without_speaker_or_drift(frames)
    assert found is not frames
    assert np.array_equal(found[0].signature[:3], insets.without_inset(frames)[0].signature[:3])
    assert [frame.thumbnail for frame in found] == [frame.thumbnail for frame in insets.without_inset(frames)]
