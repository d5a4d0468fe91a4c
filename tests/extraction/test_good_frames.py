"""Good frames: neither bad nor copies of a good one."""

from __future__ import annotations

import numpy as np

from tests.extraction.analyses import analysis, measured
from vip.extraction.good_frames import good_frames

SAME = np.full((18, 32, 3), 100, np.uint8)


def test_of_equal_pictures_the_sharpest_that_is_not_bad_stays() -> None:
    frames = [
        analysis(0, signature=SAME, measured=measured(300.0), in_transition=True),
        analysis(40, signature=SAME, measured=measured(100.0)),
        analysis(80, signature=SAME, measured=measured(200.0), stands_in_for=0),
        analysis(120),
    ]
    assert good_frames(frames, None) == [2, 3]


def test_what_is_less_sharp_than_asked_is_not_good() -> None:
    assert good_frames([analysis(0, measured=measured(50.0)), analysis(40, measured=measured(90.0))], 60.0) == [1]
