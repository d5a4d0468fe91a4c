"""What the tests are built with must not change what they test."""

from __future__ import annotations

import os

import pytest

from tests.media import Clips


@pytest.mark.skipif(not hasattr(os, "sched_getscheduler"), reason="no such priorities here")
def test_writing_av1_leaves_the_priority_of_the_process_as_it_was(clips: Clips) -> None:
    before = os.sched_getscheduler(0)
    assert clips("av1.mkv").path.exists()
    assert os.sched_getscheduler(0) == before == os.SCHED_OTHER
