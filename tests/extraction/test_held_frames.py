"""Held frames: one of each scene; of two sources no two are doubles and none is spare, however alike they look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.extraction.pruning import at_angles
from vip.extraction.doubles import replace_doubles
from vip.extraction.held_frames import UNLIKE_CELLS, held_frames
from vip.extraction.scenes import representatives
from vip.extraction.spread import NO_GAP, spread
from vip.protocols import DistinctPictures, Prunable

ONE_SOURCE, TWO_SOURCES = [90] * 5, [90, 90, 90, 220, 220]


def grey(degrees: Sequence[float], greys: Sequence[int], times_s: Sequence[float] | None = None) -> Prunable:
    """Pictures at these angles, each this grey but for one spot, which moves."""
    signatures = np.stack([np.full((18, 32, 3), grey, np.uint8) for grey in greys])
    for row, picture in enumerate(signatures):
        picture[0, row % 32] -= 60
    frames = at_angles(degrees)
    return replace(frames, signatures=signatures, times_s=times_s or frames.times_s)


def test_one_of_each_scene_is_held() -> None:
    frames = grey([0, 2, 60, 62, 120, 122], [90] * 6)
    gaps_s, scenes = held_frames(frames, 3, redundant=0.9)
    assert scenes == representatives(frames, 3)
    assert gaps_s == dict.fromkeys(scenes, NO_GAP)


@pytest.mark.parametrize("count", [6, 7, 20])
def test_where_no_more_are_there_all_are_held(count: int) -> None:
    assert list(held_frames(grey([0, 2, 60, 62, 120, 122], [90] * 6), count, redundant=0.9).gaps_s) == list(range(6))


@pytest.mark.parametrize(("greys", "held"), [(ONE_SOURCE, [0, 1, 2, 4]), (TWO_SOURCES, [0, 2, 3, 4])], ids=["one source", "two"])
def test_two_that_are_alike_are_doubles_unless_they_are_of_two_sources(greys: list[int], held: list[int]) -> None:
    """Frames 2 and 3 look alike; frame 1 is unlike those beside it, but so short that it is in the scene of one of them."""
    frames = grey([0, 45, 90, 115, 150], greys, [0.0, 0.05, 0.1, 10.0, 20.0])
    assert list(representatives(frames, 4)) == [0, 2, 3, 4]
    assert replace_doubles(frames, [0, 2, 3, 4]) == [0, 1, 2, 4], "the pictures alone are as alike in both"
    assert sorted(held_frames(frames, 4, redundant=0.9).gaps_s) == held


@pytest.mark.parametrize("two_sources", [False, True])
def test_what_is_of_another_source_than_those_beside_it_fills_no_gap(two_sources: bool) -> None:
    """Of 40 seconds the first six show three pictures that are alike; behind them each second changes something, and one turns more."""
    degrees = [*np.repeat([0, 28, 56], 2).tolist(), *[120.0] * 17, 135, *[120.0] * 16]
    frames = grey(degrees, [*np.repeat([90, 220, 90] if two_sources else [90] * 3, 2).tolist(), *[90] * 34])
    kept = list(representatives(frames, 4))
    assert sorted(spread(frames, kept, redundant=0.9)) != sorted(kept), "by the pictures alone one is spare"
    assert (23 in held_frames(frames, 4, redundant=0.9).gaps_s) is not two_sources


def three_slides() -> Prunable:
    """Three slides of 1, 4 and 2 frames; the frames of the second differ more than the slides do."""
    frames = grey([0, 40, 70, 100, 130, 170, 171], [90] * 7)
    return replace(frames, pictures=DistinctPictures([0, 1, 1, 1, 1, 2, 2], [0, 3, 6], spare=frozenset({1, 2, 4, 5})))


def test_each_picture_that_stands_still_is_held_before_any_is_held_twice() -> None:
    frames = three_slides()
    assert sorted(held_frames(replace(frames, pictures=None), 3, redundant=0.9).gaps_s) != [0, 3, 6]
    gaps_s, scenes = held_frames(frames, 3, redundant=0.9)
    assert gaps_s == dict.fromkeys([0, 3, 6], NO_GAP)
    assert scenes == {0: range(1), 3: range(3, 4), 6: range(6, 7)}


def test_of_fewer_frames_than_slides_each_stands_for_a_scene_of_them() -> None:
    _, scenes = held_frames(three_slides(), 2, redundant=0.9)
    assert sorted((scene[0], scene[-1]) for scene in scenes.values()) in ([(0, 0), (3, 6)], [(0, 3), (6, 6)])
    assert set(scenes) < {0, 3, 6}


@pytest.mark.parametrize("count", [4, 5, 6, 7, 8])
def test_where_more_frames_than_slides_are_wanted_others_of_them_follow(count: int) -> None:
    held = held_frames(three_slides(), count, redundant=0.9).gaps_s
    assert {0, 3, 6} < set(held)
    assert len(held) == min(count, 7)


def screens(*cells: int, calm: frozenset[int] = frozenset(range(1, 9))) -> Prunable:
    """One screen that stands still, and others of it in which so many cells differ from those of the first, each at another place."""
    signatures = np.full((1 + len(cells), 18, 32, 3), 90, np.uint8)
    for row, count in enumerate(cells):
        signatures[row + 1, 2 * row : 2 * row + 2].reshape(64, 3)[:count] = 120
    frames = replace(at_angles([float(row) for row in range(1 + len(cells))]), signatures=signatures)
    spare = frozenset(range(1, 1 + len(cells)))
    return replace(frames, pictures=DistinctPictures([0] * len(frames), [0], spare=spare, calm=calm))


def test_what_follows_is_that_in_which_most_has_changed() -> None:
    frames = screens(1, 40, 2, 60, 20)
    assert [sorted(held_frames(frames, count, redundant=0.9).gaps_s) for count in (1, 2, 3, 4)] == [[0], [0, 4], [0, 2, 4], [0, 2, 4, 5]]
    assert len(held_frames(frames, 5, redundant=0.9).gaps_s) == 5


def test_what_is_like_one_that_follows_already_waits() -> None:
    """Twice the same dialog, and a menu that is smaller."""
    frames = screens(60, 60, 20)
    assert frames.signatures is not None
    frames.signatures[2] = frames.signatures[1]
    assert sorted(held_frames(frames, 3, redundant=0.9).gaps_s) == [0, 1, 3]


@pytest.mark.parametrize(("cells", "follows"), [(UNLIKE_CELLS - 1, False), (UNLIKE_CELLS, True)])
def test_a_cursor_is_no_change(cells: int, follows: bool) -> None:
    """Four times the same, and a little elsewhere: by the division into scenes the middle one follows."""
    frames = screens(0, 0, 0, cells)
    assert (4 in held_frames(frames, 2, redundant=0.9).gaps_s) == follows


def test_what_moves_follows_last() -> None:
    assert sorted(held_frames(screens(60, 20, calm=frozenset({2})), 2, redundant=0.9).gaps_s) == [0, 2]
    assert sorted(held_frames(screens(60, 20, calm=frozenset({2})), 3, redundant=0.9).gaps_s) == [0, 1, 2]
