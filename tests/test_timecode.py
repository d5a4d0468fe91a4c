"""Times in words."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vip.timecode import seconds_of, timecode


@pytest.mark.parametrize(
    ("time_s", "words"),
    [
        (0, "0:00.00"),
        (0.004, "0:00.00"),
        (0.006, "0:00.01"),
        (59.994, "0:59.99"),
        (59.996, "1:00.00"),
        (62.4, "1:02.40"),
        (3599.999, "1:00:00.00"),
        (3600, "1:00:00.00"),
        (36_061.5, "10:01:01.50"),
        (-0.001, "0:00.00"),
        (-1.5, "-0:01.50"),
    ],
)
def test_clock(time_s: float, words: str) -> None:
    assert timecode(time_s) == words


@given(st.floats(-1e6, 1e6))
def test_a_clock_can_be_read_back_and_never_shows_60(time_s: float) -> None:
    found = re.fullmatch(r"(-?)(?:(\d+):(?=\d\d:))?([0-5]?\d):([0-5]\d\.\d\d)", timecode(time_s))
    assert found is not None
    sign, hours, minutes, seconds = found.groups()
    read = 3600 * int(hours or 0) + 60 * int(minutes) + float(seconds)
    assert (-read if sign else read) == pytest.approx(time_s, abs=0.0051)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("75.5", 75.5),
        ("1:15.5", 75.5),
        ("0:01:15.5", 75.5),
        ("90s", 90),
        ("1m", 60),
        ("1m15.5s", 75.5),
        ("1.5h", 5400),
        ("1h2m3s", 3723),
        (" 2M ", 120),
        ("100:00:00", 360_000),
        ("0:59.99", 59.99),
        ("1:59:59", 7199),
        ("90:00", 5400),
    ],
)
def test_a_time_may_be_written_in_every_usual_way(text: str, seconds: float) -> None:
    assert float(seconds_of(text)) == seconds


@pytest.mark.parametrize("text", ["", "h", "s", "1x", "-5", "1m1h", "1:60", "0:01:60", "1:75", "1:60:00", "1,5", "٣", "1:1m", "nan", "1e3"])
def test_what_is_no_time_is_refused_with_one_that_is(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no time: write seconds \(75\.5\), hh:mm:ss \(0:01:15\.5\) or units \(1m15s\)"):
        seconds_of(text)
