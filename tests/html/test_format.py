from __future__ import annotations

import pytest

from vip.html.format import date, file_size, is_undetermined, number, time_code


@pytest.mark.parametrize(
    ("time_s", "expected"),
    [
        (0, "0:00.0"),
        (62.4, "1:02.4"),
        (59.96, "1:00.0"),
        (3599.97, "1:00:00.0"),
        (3725.0, "1:02:05.0"),
        (-1.5, "−0:01.5"),
        (-0.01, "0:00.0"),
        (1.7e308, "277777777:46:40.0"),
    ],
)
def test_time_codes(time_s: float, expected: str) -> None:
    assert time_code(time_s) == expected


def test_time_codes_without_fractions() -> None:
    assert time_code(90, decimals=0) == "1:30"


@pytest.mark.parametrize(
    ("value", "expected"), [(0.123, "0.12"), (12.34, "12.3"), (99.97, "100.0"), (412.4, "412"), (12345.6, "12\u202f346")]
)
def test_numbers(value: float, expected: str) -> None:
    assert number(value) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        *((0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (999_940, "999.9 kB"), (999_999, "1.0 MB"), (2_433_000, "2.4 MB")),
        *((2e9, "2.0 GB"), (999_999_999_999, "1.0 TB"), (3e12, "3.0 TB"), (4e15, "4000.0 TB")),
    ],
)
def test_file_sizes(size: float, expected: str) -> None:
    assert file_size(size) == expected


def test_dates_are_utc_and_what_is_no_date_is_shown_as_it_is() -> None:
    assert date("2025-03-05T14:03:00+02:00") == "5 March 2025, 12:03 UTC"
    assert date("2025-03-05T14:03:00Z") == "5 March 2025, 14:03 UTC"
    assert date("yesterday") == "yesterday"


@pytest.mark.parametrize(
    ("text", "expected"), [("not determined", True), (" Not determined: no face.", True), ("determined", False), ("", False)]
)
def test_undetermined(text: str, expected: bool) -> None:
    assert is_undetermined(text) == expected
