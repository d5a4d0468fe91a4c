"""`uniform` and `every`: which frames, at which times, and what is said of a time that is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vip.errors import BackendError, UsageError
from vip.extraction.samplers.uniform import EverySampler, UniformSampler
from vip.records import Frame, PacketIndex

MS = Fraction(1, 1000)


@dataclass
class Source:
    """A video source that has an index and cannot decode."""

    index: PacketIndex
    time_base: Fraction

    def frames(self, pts: Sequence[int], *, longest_side_px: int | None = None) -> Iterator[Frame]:
        raise AssertionError("nothing needs to be decoded")


def source(pts: Sequence[int], time_base: Fraction = MS, hidden: Sequence[int] = ()) -> Source:
    stamps, ones = np.array(pts, np.int64), np.ones(len(pts), np.int64)
    return Source(PacketIndex(stamps, stamps, ones.astype(bool), ones, ~np.isin(stamps, hidden), time_base), time_base)


def test_uniform_takes_the_middles_of_equal_parts() -> None:
    chosen = UniformSampler(None).sample(source(range(0, 2400, 10)), keyframes=1)
    assert chosen == list(range(50, 2400, 100))


@given(st.lists(st.integers(-500, 5000), min_size=1, max_size=200, unique=True).map(sorted), st.integers(1, 100))
def test_uniform_takes_three_a_keyframe_at_least_24_or_all_there_are(pts: list[int], keyframes: int) -> None:
    chosen = UniformSampler(None).sample(source(pts), keyframes=keyframes)
    assert chosen == sorted(set(chosen))
    assert set(chosen) <= set(pts)
    assert len(chosen) == min(len(pts), max(24, 3 * keyframes))


@given(st.integers(1, 60), st.integers(1, 100))
def test_uniform_takes_as_many_candidates_as_are_asked(candidates: int, keyframes: int) -> None:
    assert len(UniformSampler(None).sample(source(range(0, 500, 10)), keyframes=keyframes, candidates=candidates)) == min(50, candidates)


def test_every_refuses_a_number_of_candidates() -> None:
    with pytest.raises(UsageError, match=r"--candidates 5: every:2s takes as many as its step gives\..*--sampler uniform"):
        EverySampler("2s").sample(source(range(100)), keyframes=1, candidates=5)


@pytest.mark.parametrize(
    ("detail", "times_ms"), [(None, [0, 2000, 4000]), ("2s", [0, 2000, 4000]), ("2.5", [0, 2500]), ("0.05m", [0, 3000]), ("1m", [0])]
)
def test_every_takes_the_frame_on_screen_at_each_step(detail: str | None, times_ms: list[int]) -> None:
    assert EverySampler(detail).sample(source(range(0, 4100, 100)), keyframes=500) == times_ms


def test_every_counts_from_the_first_frame_and_takes_what_is_still_on_screen() -> None:
    assert EverySampler("1s").sample(source([-400, 500, 900, 2700, 5600]), keyframes=1) == [-400, 500, 900, 2700, 5600]


def test_every_is_exact_where_the_clock_has_no_round_numbers() -> None:
    ntsc = Fraction(1001, 30000)
    chosen = EverySampler("1.001s").sample(source(range(600), ntsc), keyframes=1)
    assert chosen == list(range(0, 600, 30))


def test_steps_finer_than_the_clock_take_every_frame() -> None:
    assert EverySampler("0.00001s").sample(source([0, 1, 2, 3]), keyframes=1) == [0, 1, 2, 3]


@pytest.mark.parametrize("sampler", [UniformSampler(None), EverySampler("0.1s")])
def test_hidden_frames_are_never_taken(sampler: UniformSampler | EverySampler) -> None:
    video = source(range(0, 1000, 100), hidden=[0, 100, 500])
    assert set(sampler.sample(video, keyframes=50)) <= {200, 300, 400, 600, 700, 800, 900}


@pytest.mark.parametrize("detail", ["0", "0s", "-2s", "two", "2x", "1e3", "nan", "2 s", "s"])
def test_a_time_that_is_none_is_refused_with_one_that_is(detail: str) -> None:
    with pytest.raises(BackendError, match=r"needs a time such as 2s.*Write --sampler every:2s\.$"):
        EverySampler(detail)
