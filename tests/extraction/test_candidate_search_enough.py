"""Which frames are looked at, with looks made by hand instead of decoded ones: how many more, and when it is enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.extraction.analyses import analysis, measured
from tests.extraction.indices import index_of
from tests.extraction.test_candidate_search import KeepNone
from vip.extraction import candidate_search
from vip.extraction.analyze import FrameAnalysis
from vip.extraction.candidate_search import CandidateSearch, analyze_candidates
from vip.protocols import SilentObserver
from vip.records import Detection

GOOD = measured(100.0)
DARK = {
    "measured": measured(0.0, contrast=0.0, not_dark=0.0, bright=0.0, bright_in_middle=0.0),
    "signature": np.zeros((18, 32, 3), np.uint8),
}
SAME = np.full((18, 32, 3), 100, np.uint8)


class Film:
    """A video whose frames look as told; remembers what was scanned, and beside what a settled frame and objects were sought."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, frames: int, show: Callable[[int], dict[str, Any]], size: int = 1000) -> None:
        self.show, self.scanned, self.sought, self.doubtful = show, [], [], []  # type: ignore[var-annotated]
        index = index_of([30_000, *[size] * (frames - 1)])
        self.video: Any = SimpleNamespace(index=index, time_base=index.time_base, effort=lambda pts: 0)
        monkeypatch.setattr(candidate_search.analyze, "analyze", self.scan)
        monkeypatch.setattr(candidate_search.objects, "seek", self.seek)
        monkeypatch.setattr(candidate_search.substitutes, "find_substitutes", lambda *_, **__: [])
        monkeypatch.setattr(candidate_search, "find_settled", self.find_settled)

    def scan(self, video: Any, pts: Sequence[int], *_: Any, **__: Any) -> list[FrameAnalysis]:
        self.scanned.append(len(pts))
        return [analysis(stamp, **{"measured": GOOD, **self.show(stamp // 40)}) for stamp in pts]

    def find_settled(self, video: Any, doubtful: Sequence[FrameAnalysis], *_: Any, **__: Any) -> list[FrameAnalysis]:
        self.doubtful.append([found.pts // 40 for found in doubtful])
        return []

    def seek(self, analyses: list[FrameAnalysis], places: Sequence[int], *_: Any, **__: Any) -> list[FrameAnalysis]:
        self.sought = list(places)
        return analyses

    def look_at(self, *planned: int, keyframes: int = 4, **more: Any) -> list[int]:
        """Numbers of the frames that were seen."""
        about: dict[str, Any] = {
            "min_sharpness": None,
            "exact": True,
            "insistent": False,
            "keeper": KeepNone(),
            "observer": SilentObserver(),
        }
        search = CandidateSearch(video=self.video, analyzer=SimpleNamespace(detector=None), keyframes=keyframes, **{**about, **more})  # type: ignore[arg-type]
        return [found.pts // 40 for found in analyze_candidates(search, [40 * number for number in planned])]


def test_frames_that_are_taken_as_they_are_stay_alone_and_are_all_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    film = Film(monkeypatch, 100, lambda number: DARK)
    assert film.look_at(0, 50, as_is=True, insistent=True) == [0, 50]
    assert (film.scanned, film.sought) == ([2], [0, 1])


def test_where_all_is_black_others_are_looked_at_batch_by_batch_until_something_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    film = Film(monkeypatch, 1400, lambda number: {} if number == 700 else DARK)
    assert film.look_at(0, 10) == [0, 10, *range(502, 1002)]
    assert film.scanned == [2, 500, 500]


def test_a_video_that_is_black_throughout_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    film = Film(monkeypatch, 700, lambda number: DARK)
    assert film.look_at(0, 10) == [0, 10]
    assert film.scanned == [2, 500, 198]


def test_where_one_frame_shows_something_the_rest_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    film = Film(monkeypatch, 700, lambda number: {} if number == 10 else DARK)
    assert film.look_at(0, 10) == [0, 10]
    assert film.scanned == [2]


def test_objects_are_sought_also_in_frames_that_are_not_as_sharp_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same run may be chosen from again with a lower bound."""
    film = Film(monkeypatch, 100, lambda number: DARK if number == 20 else {})
    film.look_at(0, 20, 40, 60, min_sharpness=1e6)
    assert film.sought == [0, 2, 3]


def test_of_copies_twice_as_many_are_looked_at_up_to_twelve_a_keyframe(monkeypatch: pytest.MonkeyPatch) -> None:
    film = Film(monkeypatch, 1000, lambda number: {"signature": SAME})
    assert len(film.look_at(0, 400, 800, insistent=True)) == 48
    assert film.scanned == [3, 3, 6, 12, 24]


def test_as_many_that_differ_as_keyframes_are_enough_if_they_are_as_sharp_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    film = Film(monkeypatch, 1000, lambda number: {})
    assert film.look_at(0, 300, 600, 900, insistent=True) == [0, 300, 600, 900]
    assert len(film.look_at(0, 300, 600, 900, insistent=True, min_sharpness=1000.0)) == 32


def test_between_frames_where_nothing_changes_no_others_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    film = Film(monkeypatch, 1000, lambda number: {"signature": SAME}, size=40)
    assert film.look_at(0, 400, 999, insistent=True) == [0, 400, 999]
    assert film.scanned == [3]


def test_a_frame_seen_again_is_taken_once_as_it_was_seen_first(monkeypatch: pytest.MonkeyPatch) -> None:
    film = Film(monkeypatch, 100, lambda number: {"in_transition": True})
    settled = [analysis(40, stands_in_for=0), analysis(80, stands_in_for=0)]
    monkeypatch.setattr(candidate_search, "find_settled", lambda *_, **__: settled)
    assert film.look_at(0, 1) == [0, 1, 2]


def test_settled_frames_are_sought_only_behind_restless_ones_that_would_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    film = Film(monkeypatch, 100, lambda number: {"in_transition": number > 20})
    film.look_at(0, 30, 60)
    film.look_at(0, 30, 60, min_sharpness=1000.0)
    assert film.doubtful == [[30, 60]]


def test_behind_a_restless_frame_with_people_a_settled_one_is_sought_and_searched_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """People are found last, and a frame with people stands for its scene before those without."""
    film = Film(monkeypatch, 100, lambda number: {"in_transition": number == 52, "picture": b"jpeg"})
    person = Detection(label="person", score=0.9, box_xyxy=(0.1, 0.1, 0.4, 0.9), source="test")
    searched: list[list[int]] = []

    def seek(analyses: list[FrameAnalysis], places: Sequence[int], *_: Any, **__: Any) -> list[FrameAnalysis]:
        searched.append([analyses[place].pts // 40 for place in places])
        shown = [(person,) if found.pts // 40 == 52 else () for found in analyses]
        return [replace(found, detections=rows, picture=None) for found, rows in zip(analyses, shown, strict=True)]

    def find_settled(video: Any, doubtful: Sequence[FrameAnalysis], *_: Any, **__: Any) -> list[FrameAnalysis]:
        film.find_settled(video, doubtful)
        return [analysis(40 * 54, stands_in_for=40 * 52, picture=b"jpeg", in_transition=True, detections=None)]

    monkeypatch.setattr(candidate_search.objects, "seek", seek)
    monkeypatch.setattr(candidate_search, "find_settled", find_settled)
    assert film.look_at(50, 51, 52, keyframes=1) == [50, 51, 52, 54]
    assert film.doubtful == [[52]]
    assert searched == [[50, 51, 52], [54]]


@pytest.mark.parametrize(("sharpness", "sought"), [(9.9, [[50]]), (10.0, [])])
def test_settled_frames_are_sought_behind_those_softer_than_a_tenth_of_what_is_around_them(
    monkeypatch: pytest.MonkeyPatch, sharpness: float, sought: list[list[int]]
) -> None:
    film = Film(monkeypatch, 300, lambda number: {"measured": measured(sharpness, contrast=0.05)} if number == 50 else {})
    film.look_at(0, 50, 100, 150)
    assert film.doubtful == sought


def test_a_planned_frame_is_lost_where_none_was_seen_half_a_second_later(monkeypatch: pytest.MonkeyPatch) -> None:
    search: Any = SimpleNamespace(video=Film(monkeypatch, 100, lambda number: {}).video, exact=False)
    assert candidate_search.undecodable(search, [499, 500, 1000, 1001], [analysis(1000)]) == [499, 1001]
    search.exact = True
    assert candidate_search.undecodable(search, [999, 1000], [analysis(1000)]) == [999]
