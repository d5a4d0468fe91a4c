"""What `-n auto` samples for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.extraction.indices import steady
from tests.extraction.samplers.test_uniform import Source, source
from vip.extraction.keyframe_count import expected_keyframes


@pytest.mark.parametrize(("seconds", "count"), [(0, 12), (60, 12), (160, 20), (3600, 450), (36_000, 500)])
def test_auto_samples_for_a_keyframe_every_eight_seconds_within_reason(seconds: int, count: int) -> None:
    assert expected_keyframes("auto", source([5000, 5000 + 1000 * seconds] if seconds else [5000])) == count


def test_hidden_time_counts_for_nothing() -> None:
    assert expected_keyframes("auto", source([0, 900_000, 1_060_000], hidden=[0])) == 20


def test_a_number_is_that_number() -> None:
    assert expected_keyframes(7, source([0, 1_000_000])) == 7


def test_a_change_of_picture_every_three_seconds_asks_for_a_keyframe_each() -> None:
    bursts = {float(second): 0.12 for second in range(3, 90, 3)}
    index = steady(92, bursts=bursts)
    video = Source(index, index.time_base)
    assert expected_keyframes("auto", video) > 92 / 8 * 2
    assert expected_keyframes("auto", Source(steady(92), index.time_base)) == 12


def test_where_the_decoder_passes_over_nothing_and_sync_frames_are_many_changes_count_as_far_as_those_suffice() -> None:
    """VP9 puts a sync frame every few seconds and large packets behind them."""
    index = steady(92, sync_every_s=2, bursts={second + 0.2: 0.2 for second in range(0, 90, 2)})
    quick, slow = (Source(replace(index, decodes_all=decodes_all), index.time_base) for decodes_all in (False, True))
    assert expected_keyframes("auto", quick) > 46 / 2
    assert expected_keyframes("auto", slow) == 46 / 2
    odd = replace(steady(90, sync_every_s=2, bursts={second + 0.2: 0.2 for second in range(0, 88, 2)}), decodes_all=True)
    assert expected_keyframes("auto", Source(odd, odd.time_base)) == 22, "45 sync frames suffice for two each"
    rare = replace(steady(92, bursts={float(second): 0.12 for second in range(3, 90, 3)}), decodes_all=True)
    assert expected_keyframes("auto", Source(rare, rare.time_base)) > 92 / 8 * 2, "one sync frame suffices for nothing"
