"""The benchmark of `-n auto` counts what it says."""

from __future__ import annotations

from pathlib import Path

import auto
import labelled
import pytest
from auto import Confusion, Result


def test_seeds_are_a_range_or_one() -> None:
    assert (auto.seeds_of("5-8"), auto.seeds_of("3")) == ([5, 6, 7, 8], [3])


@pytest.mark.parametrize(
    ("kind", "keyframes", "shown", "missed"),
    [
        ("people", 10, 10, None),
        ("people", 12, 10, "people: 12 keyframes for 10 pictures"),
        ("people", 8, 8, "people: 8 keyframes for 10 pictures"),
        ("people", 11, 10, None),
        ("people", 10, 9, "people: 9 of 10 pictures are shown"),
        ("noise", 20, 5, None),
    ],
)
def test_a_goal_is_missed_by_the_number_or_by_a_picture_that_is_not_shown(
    kind: str, keyframes: int, shown: int, missed: str | None
) -> None:
    assert Result(kind, pictures=10, keyframes=keyframes, shown=shown).missed() == missed


def test_the_confusion_is_in_shares_of_what_the_pairs_are() -> None:
    rows = auto.table(Confusion({(False, False): 3, (False, True): 1, (True, True): 5}))
    assert rows[2:] == ["| the same picture | 4 | 75.0% | 25.0% |", "| two pictures | 5 | 0.0% | 100.0% |"]


def test_slides_are_counted(tmp_path: Path) -> None:
    video = labelled.build("lowrate", 3, tmp_path)
    result, pairs = Result("lowrate"), Confusion()
    auto.measure(video, tmp_path, result, pairs, "classic")
    assert (result.pictures, result.shown, result.offered) == (video.distinct,) * 3
    assert result.keyframes == result.shown_by_number == video.distinct
    assert pairs[True, True] > 20 * pairs[True, False]
    assert pairs[False, False] > 20 * pairs[False, True]
