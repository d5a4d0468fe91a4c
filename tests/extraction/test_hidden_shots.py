"""Shots between two candidates: looked at where the candidates differ and the packets show a change that neither shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.extraction.analyses import analysis
from tests.extraction.indices import at, index_of, steady
from vip.extraction.analyze import FrameAnalysis
from vip.extraction.hidden_shots import frames_of_hidden_shots
from vip.extraction.transitions import SETTLED_S
from vip.records import PacketIndex

KEYFRAMES = 6


def candidates(index: PacketIndex, views: list[int], *more_s: float) -> list[FrameAnalysis]:
    """The sync frames, which show these views (the angles of their vectors); and more frames, which show other ones."""
    angles = dict(zip(index.sync_pts.tolist(), np.radians(views), strict=True)) | dict.fromkeys(at(*more_s), np.radians(45))
    vectors = {pts: np.array([np.cos(angle), np.sin(angle)], np.float32) for pts, angle in angles.items()}
    return [analysis(pts, view=vectors[pts], vector=vectors[pts]) for pts in sorted(vectors)]


def test_a_shot_between_two_that_differ_is_looked_at_when_its_dissolve_is_over() -> None:
    index = steady(20, sync_every_s=5, bursts={6.0: 0.4})
    (found,) = frames_of_hidden_shots(index, candidates(index, [0, 0, 90, 90]), KEYFRAMES)
    assert at(6.4)[0] < found <= at(6.0 + SETTLED_S)[0]


def test_a_change_between_two_frames_of_one_shot_is_movement() -> None:
    index = steady(20, sync_every_s=5, bursts={6.0: 0.4})
    assert frames_of_hidden_shots(index, candidates(index, [0, 0, 10, 90]), KEYFRAMES) == []


def test_without_a_change_in_the_packets_there_is_nothing_between_two_that_differ() -> None:
    index = steady(20, sync_every_s=5)
    assert frames_of_hidden_shots(index, candidates(index, [0, 30, 60, 90]), KEYFRAMES) == []


@pytest.mark.parametrize(("candidate_s", "found"), [(6.8, False), (7.6, True)])
def test_what_a_candidate_shows_soon_is_not_hidden(candidate_s: float, found: bool) -> None:
    index = steady(20, sync_every_s=5, bursts={6.0: 0.4})
    assert bool(frames_of_hidden_shots(index, candidates(index, [0, 0, 90, 90], candidate_s), KEYFRAMES)) == found


@pytest.mark.parametrize("decodes_all", [False, True])
@pytest.mark.parametrize(("keyframes", "most"), [(4, 1), (9, 1), (10, 2), (16, 2), (17, 3)])
def test_of_many_changes_as_many_as_fifteen_of_a_hundred_keyframes_are_looked_at(keyframes: int, most: int, decodes_all: bool) -> None:
    index = replace(steady(40, sync_every_s=5, bursts={second + 1.0: 0.4 for second in range(0, 35, 5)}), decodes_all=decodes_all)
    found = frames_of_hidden_shots(index, candidates(index, [0, 90, 180, 270, 0, 90, 180, 270]), keyframes)
    assert len(found) == most


def test_of_many_changes_those_between_the_least_alike_are_looked_at() -> None:
    index = steady(40, sync_every_s=5, bursts={second + 1.0: 0.4 for second in range(0, 35, 5)})
    views = [0, 40, 130, 170, 210, 250, 340, 380]  # 90 degrees from the second to the third, and from the sixth to the seventh
    found = frames_of_hidden_shots(index, candidates(index, views), 2 * KEYFRAMES)
    assert [pts // at(5.0)[0] for pts in found] == [1, 5], "the numbers of the GOPs"


def test_one_keyframe_is_enough_for_a_hidden_shot() -> None:
    index = steady(20, sync_every_s=5, bursts={6.0: 0.4})
    assert len(frames_of_hidden_shots(index, candidates(index, [0, 0, 90, 90]), 1)) == 1


@pytest.mark.parametrize(("frame", "found"), [(540, 1), (570, 0)])
def test_a_shot_deep_behind_a_sync_frame_is_too_expensive(frame: int, found: int) -> None:
    sizes = np.full(1000, 1000)
    sizes[frame : frame + 10] = 8000
    index = index_of(sizes, [0, 500, 700])
    assert len(frames_of_hidden_shots(index, candidates(index, [0, 90, 180]), KEYFRAMES)) == found


def test_where_nothing_could_be_decoded_nothing_is_hidden() -> None:
    assert frames_of_hidden_shots(steady(20, sync_every_s=5, bursts={6.0: 0.4}), [], KEYFRAMES) == []
