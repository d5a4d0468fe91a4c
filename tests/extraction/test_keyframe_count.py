"""What `-n auto` samples for."""

from __future__ import annotations

import pytest

from tests.extraction.samplers.test_uniform import source
from vip.extraction.keyframe_count import expected_keyframes


@pytest.mark.parametrize(("seconds", "count"), [(0, 12), (60, 12), (160, 20), (3600, 450), (36_000, 500)])
def test_auto_samples_for_a_keyframe_every_eight_seconds_within_reason(seconds: int, count: int) -> None:
    assert expected_keyframes("auto", source([5000, 5000 + 1000 * seconds] if seconds else [5000])) == count


def test_hidden_time_counts_for_nothing() -> None:
    assert expected_keyframes("auto", source([0, 900_000, 1_060_000], hidden=[0])) == 20


def test_a_number_is_that_number() -> None:
    assert expected_keyframes(7, source([0, 1_000_000])) == 7
