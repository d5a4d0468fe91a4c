"""A long gap in which the picture changes gets a keyframe from where two show nearly the same; nothing else is touched."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extraction.pruning import at_angles
from vip.extraction.spread import LONGEST_GAP, spread
from vip.protocols import Prunable

REDUNDANT = 0.9


def frames(count: int, *, alike: int, levels: int = 60) -> Prunable:
    """One frame a second; the first `alike` show nearly the same, and each signature differs from the one before by so many levels."""
    made = at_angles([2.0 * row if row < alike else 40.0 + 2 * alike + 0.6 * (row - alike) for row in range(count)])
    signatures = np.zeros((count, 18, 32, 3), np.uint8)
    for row in range(count):
        signatures[row, 0, row % 32] = levels
    return replace(made, signatures=signatures)


def test_a_long_gap_gets_a_frame_of_its_middle_for_one_that_is_nearly_redundant() -> None:
    found = spread(frames(40, alike=8), [0, 2, 4, 6, 39], redundant=REDUNDANT)
    assert sorted(found) == [0, 2, 6, 22, 39] or sorted(found) == [0, 4, 6, 22, 39]
    assert found[22] == (6.0, 39.0)


@pytest.mark.parametrize(("restless", "joined"), [((), 22), ((22,), 23), ((22, 23), 21), ((20, 21, 22, 23, 24), 25)])
def test_a_calm_frame_near_the_middle_goes_before_a_restless_one_in_it(restless: tuple[int, ...], joined: int) -> None:
    made = frames(40, alike=8)
    made = replace(made, in_transition=[row in restless for row in range(40)])
    assert joined in spread(made, [0, 2, 4, 6, 39], redundant=REDUNDANT)


def test_a_gap_in_which_nothing_changes_stays() -> None:
    kept = [0, 2, 4, 6, 39]
    assert sorted(spread(frames(40, alike=8, levels=10), kept, redundant=REDUNDANT)) == kept


@pytest.mark.parametrize(("degrees", "is_filled"), [(6.7, False), (6.9, True)])
def test_a_gap_in_which_only_something_small_moves_stays(degrees: float, is_filled: bool) -> None:
    """cos(6.8°) = 0.993: the same picture, though a cell of the signature changes."""
    turned = [0, 2, 4, 6, *[6 + degrees] * 35, 80]
    made = replace(at_angles(turned), signatures=frames(40, alike=8).signatures)
    assert any(3 < row < 39 for row in spread(made, [0, 1, 2, 3, 39], redundant=REDUNDANT)) is is_filled


def test_where_all_keyframes_differ_none_is_given_up() -> None:
    unlike = replace(at_angles([0, 40, 80, 120, 160, *[170] * 35]), signatures=frames(40, alike=8).signatures)
    assert sorted(spread(unlike, [0, 1, 2, 3, 39], redundant=REDUNDANT)) == [0, 1, 2, 3, 39]


def test_a_frame_that_fills_a_gap_is_not_given_up_for_another() -> None:
    """Not though it is the one most like its neighbours once a frame lies before it, too."""
    times_s = [0.0, 1.0, 2.0, 3.0, 4.0, 14.0, 24.0, 36.0, 40.0]
    made = replace(at_angles([0, 12, 24, 36, 48, 70, 100, 130, 139]), times_s=times_s, sharpness=[100.0] * 5 + [4.0, 20.0, 100.0, 100.0])
    signatures = np.zeros((9, 18, 32, 3), np.uint8)
    for row in (5, 6, 7):
        signatures[row, 0, row] = 60
    found = spread(replace(made, signatures=signatures), [0, 1, 2, 3, 4, 8], redundant=REDUNDANT)
    assert {row: gap_s for row, gap_s in found.items() if gap_s != (0.0, 0.0)} == {7: (4.0, 40.0), 6: (4.0, 36.0)}
    assert len(found) == 6


def test_without_signatures_nothing_is_touched() -> None:
    assert sorted(spread(at_angles([0.0] * 40), [0, 1, 2, 39], redundant=REDUNDANT)) == [0, 1, 2, 39]


@given(kept=st.sets(st.integers(0, 39), min_size=1, max_size=12))
def test_as_many_stay_and_no_gap_gets_longer_than_allowed_that_was_not(kept: set[int]) -> None:
    made = frames(40, alike=20)
    found = sorted(spread(made, kept, redundant=REDUNDANT))
    longest = max([LONGEST_GAP * 39 / len(kept), *np.diff(sorted({0, *kept, 39}))])
    assert len(found) == len(kept)
    assert max(np.diff(sorted({0, *found, 39}))) <= longest
