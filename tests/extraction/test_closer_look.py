"""Where `-n auto` looks closer: 0.6 s before and behind frames that pass by, and nowhere else."""

from __future__ import annotations

import numpy as np

from tests.extraction.analyses import TIME_BASE, picture
from tests.extraction.indices import steady
from tests.extraction.test_distinct import ANALYZER, analyses
from tests.test_local_change import with_person
from vip.extraction.closer_look import frames_beside_passing
from vip.records import Frame

INDEX = steady(12)
EMPTY, PERSON = picture(3), with_person(picture(3))


def test_frames_on_both_sides_of_one_who_passes() -> None:
    assert frames_beside_passing(INDEX, analyses([EMPTY, EMPTY, PERSON, EMPTY, EMPTY]), None) == [3400, 4600]


def test_nothing_beside_what_stays() -> None:
    assert frames_beside_passing(INDEX, analyses([EMPTY, EMPTY, PERSON, PERSON, EMPTY, EMPTY]), None) == []


def test_no_frame_is_looked_at_twice() -> None:
    frames = analyses([EMPTY, EMPTY, PERSON, EMPTY, EMPTY], step_s=0.6)
    assert frames_beside_passing(INDEX, frames, None) == []
    before, behind = analyses([EMPTY, EMPTY]), analyses([EMPTY, EMPTY, PERSON, EMPTY, EMPTY])[2:]
    black = ANALYZER(Frame(3400, TIME_BASE, np.zeros_like(EMPTY)))
    assert frames_beside_passing(INDEX, [*before, black, *behind], None) == [4600], "nor one that was bad"
