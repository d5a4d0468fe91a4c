"""Pictures in a row: natural order of names, times of EXIF before times in names before one a second."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vip.store import picture_name
from vip.video.order import by_name, in_time_order, named_ms, taken_ms


def names(*given: str) -> list[Path]:
    return [Path(name) for name in given]


def test_numbers_in_names_count_as_numbers() -> None:
    assert sorted(names("img10.png", "img2.png", "IMG1.png", "a.png"), key=by_name) == names("a.png", "IMG1.png", "img2.png", "img10.png")


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1), unique=True))
def test_any_names_have_one_order(given: list[str]) -> None:
    paths = [Path("x") / name for name in given if name not in {".", ".."}]
    turned = paths[::-1]
    assert sorted(paths, key=by_name) == sorted(turned, key=by_name)


def test_without_times_there_is_a_picture_a_second() -> None:
    timed = in_time_order(names("b.jpg", "a10.jpg", "a9.jpg"), [None, None, None])
    assert timed.paths == tuple(names("a9.jpg", "a10.jpg", "b.jpg"))
    assert timed.times_ms == (0, 1000, 2000)


def test_exif_orders_and_times_where_each_picture_states_a_time_of_its_own() -> None:
    timed = in_time_order(names("a.jpg", "b.jpg", "c.jpg"), [5_500, 7_000, 5_250])
    assert timed.paths == tuple(names("c.jpg", "a.jpg", "b.jpg"))
    assert timed.times_ms == (0, 250, 1750)


@pytest.mark.parametrize("taken", [[5000, None, 7000], [5000, 5000, 7000]])
def test_exif_does_not_count_where_a_time_is_missing_or_comes_twice(taken: list[int | None]) -> None:
    timed = in_time_order(names("a.jpg", "b.jpg", "c.jpg"), taken)
    assert timed.times_ms == (0, 1000, 2000)


@settings(deadline=None)
@given(st.lists(st.integers(0, 10**8), min_size=1, max_size=20, unique=True))
def test_names_as_vip_writes_them_give_their_times(times_ms: list[int]) -> None:
    ordered = sorted(times_ms)
    paths = [Path(picture_name(number, time / 1000, "jpg", of=len(ordered))) for number, time in enumerate(ordered, 1)]
    assert [named_ms(path) for path in paths] == ordered
    assert in_time_order(paths[::-1], [None] * len(paths)).times_ms == tuple(ordered)


@pytest.mark.parametrize("later", ["0002_00h00m03.000s", "0002_00h00m09.000s", "0002", "0002_00h00m10.000s_copy"])
def test_times_in_names_that_go_back_stand_still_or_are_missing_are_none(later: str) -> None:
    timed = in_time_order(names("0001_00h00m09.000s.jpg", f"{later}.jpg"), [None, None])
    assert timed.times_ms == (0, 1000)


@pytest.mark.parametrize(
    ("original", "subsecond", "milliseconds"),
    [("2025:06:01 10:00:01", None, 1000), ("2025:06:01 10:00:00", "25", 250), ("2025:06:01 10:00:00\0", "5 ", 500)],
)
def test_exif_times_with_their_fractions(original: str, subsecond: str | None, milliseconds: int) -> None:
    start = taken_ms("2025:06:01 10:00:00", None)
    found = taken_ms(original, subsecond)
    assert start is not None
    assert found is not None
    assert found - start == milliseconds


@pytest.mark.parametrize("original", [None, "", "0000:00:00 00:00:00", "    :  :     :  :  ", "yesterday", 7])
def test_exif_without_a_time(original: object) -> None:
    assert taken_ms(original, "5") is None
