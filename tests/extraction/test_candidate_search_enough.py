"""Which frames are looked at, with looks made by hand instead of decoded ones: how many more, and when it is enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.extraction.analyses import analysis, measured
from tests.extraction.indices import index_of
from tests.extraction.test_candidate_search import KeepNone
from tests.extraction.test_insets import talk
from vip.extraction import candidate_search
from vip.extraction.analyze import FrameAnalysis
from vip.extraction.candidate_search import MOST_SETTLED_AGAIN, CandidateSearch, analyze_candidates
from vip.extraction.settled import Settled
from vip.extraction.transitions import PacketActivity
from vip.protocols import EmbedderCapabilities, SilentObserver
from vip.records import Detection, Image
from vip.video import SHORT_FRAMES

GOOD = measured(100.0)
DARK = {
    "measured": measured(0.0, contrast=0.0, not_dark=0.0, bright=0.0, bright_in_middle=0.0),
    "signature": np.zeros((18, 32, 3), np.uint8),
}
UNSEARCHED: dict[str, Any] = {"detections": None, "picture": b"jpeg"}
SAME = np.full((18, 32, 3), 100, np.uint8)


class Film:
    """A video whose frames look as told; remembers what was scanned, and beside what a settled frame and objects were sought."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        frames: int,
        show: Callable[[int], dict[str, Any]],
        size: int = 1000,
        *,
        dissolves: Mapping[int, bool] | None = None,
        calm: Sequence[int] = (),
        followed_by_sync: Sequence[int] = (),
        blends: Sequence[int] = (),
    ) -> None:
        """
        Args:
            size: bytes of each packet but the first, which is the only sync one.
            dissolves: what is found out behind the frames with these numbers.
            calm: numbers of the frames that not much follows.
            followed_by_sync: numbers of the frames that a sync frame follows soon, though there is none in `index`.
            blends: numbers of the frames that look like a mean of any two others.
        """
        self.show, self.dissolves = show, dissolves or {}
        self.scanned: list[int] = []
        self.sharpest: list[bool] = []
        self.sought: list[list[int]] = []
        self.doubtful: list[list[int]] = []
        self.soft: list[list[int]] = []
        index = index_of([30_000, *[size] * (frames - 1)])
        self.video: Any = SimpleNamespace(
            index=index, time_base=index.time_base, effort=lambda pts: 0, groups=lambda pts: [list(pts)] if len(pts) else []
        )
        monkeypatch.setattr(candidate_search.analyze, "analyze", self.scan)
        monkeypatch.setattr(candidate_search.objects, "seek", self.seek)
        monkeypatch.setattr(candidate_search.substitutes, "find_substitutes", lambda *_, **__: [])
        monkeypatch.setattr(candidate_search, "find_settled", self.find_settled)
        still = {40 * number for number in calm}
        monkeypatch.setattr(PacketActivity, "is_followed_by_much", lambda _, pts: set(pts) - still)
        followed = {40 * number for number in followed_by_sync}
        monkeypatch.setattr(PacketActivity, "is_followed_by_sync", lambda _, pts: set(pts) & followed)
        blended = [self.seen(40 * number).signature for number in blends]
        monkeypatch.setattr(candidate_search, "resembles_blend", lambda picture, *_: any(np.array_equal(picture, one) for one in blended))

    def scan(self, video: Any, pts: Sequence[int], *_: Any, sharpest: bool = False, **__: Any) -> list[FrameAnalysis]:
        self.scanned.append(len(pts))
        self.sharpest.append(sharpest)
        return [self.seen(stamp) for stamp in pts]

    def seen(self, pts: int) -> FrameAnalysis:
        return analysis(pts, **{"measured": GOOD, **UNSEARCHED, **self.show(pts // 40)})

    def find_settled(self, video: Any, doubtful: Sequence[FrameAnalysis], *_: Any, soft: set[int], **__: Any) -> Settled:
        numbers = [found.pts // 40 for found in doubtful]
        self.doubtful.append(numbers)
        self.soft.append(sorted(pts // 40 for pts in soft))
        return Settled([], {40 * number: self.dissolves[number] for number in numbers if number in self.dissolves})

    def seek(self, analyses: list[FrameAnalysis], places: Sequence[int], *_: Any, **__: Any) -> list[FrameAnalysis]:
        self.sought.append([analyses[place].pts // 40 for place in places])
        return [replace(one, detections=(), picture=None) if row in set(places) else one for row, one in enumerate(analyses)]

    def search(self, keyframes: int, **more: Any) -> CandidateSearch:
        about: dict[str, Any] = {
            "min_sharpness": None,
            "exact": True,
            "insistent": False,
            "keeper": KeepNone(),
            "observer": SilentObserver(),
        }
        embedder = SimpleNamespace(capabilities=EmbedderCapabilities(redundant_cosine=0.77))
        analyzer: Any = SimpleNamespace(detector=None, embedder=embedder)
        return CandidateSearch(video=self.video, analyzer=analyzer, keyframes=keyframes, **{**about, **more})

    def analyze(self, *planned: int, keyframes: int = 4, **more: Any) -> list[FrameAnalysis]:
        return analyze_candidates(self.search(keyframes, **more), [40 * number for number in planned])

    def look_at(self, *planned: int, **more: Any) -> list[int]:
        """Numbers of the frames that were seen."""
        return [found.pts // 40 for found in self.analyze(*planned, **more)]


def test_frames_that_are_taken_as_they_are_stay_alone_and_are_all_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    film = Film(monkeypatch, 100, lambda number: DARK)
    assert film.look_at(0, 50, as_is=True, insistent=True) == [0, 50]
    assert (film.scanned, film.sought) == ([2], [[0, 50]])


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
    assert film.sought == [[0, 40, 60]]


def test_objects_are_sought_in_what_is_good_when_keyframes_are_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a speaker in a window the four frames of each of three slides are copies."""
    frames = talk()
    film = Film(monkeypatch, 100, lambda number: {"signature": frames[number // 8].signature, "thumbnail": frames[number // 8].thumbnail})
    film.look_at(*range(0, 96, 8))
    (sought,) = film.sought
    assert [number // 32 for number in sought] == [0, 1, 2]


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


@pytest.mark.parametrize(
    ("more", "is_sought"), [({"insistent": True}, True), ({"counts_pictures": True}, True), ({}, False), ({"as_is": True}, False)]
)
def test_hidden_shots_are_sought_unless_the_sampler_means_just_its_frames(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, bool], is_sought: bool
) -> None:
    film = Film(monkeypatch, 1000, lambda number: {})
    monkeypatch.setattr(candidate_search, "frames_of_hidden_shots", lambda index, analyses, keyframes: [40 * (100 + keyframes)])
    assert film.look_at(0, 300, 600, 900, keyframes=3, **more) == [0, *([103] if is_sought else []), 300, 600, 900]


def test_a_frame_seen_again_is_taken_once_as_it_was_seen_first_and_stands_for_what_it_settles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    film = Film(monkeypatch, 100, lambda number: {"in_transition": True})
    settled = [analysis(40, stands_in_for=0, measured=measured(1.0)), analysis(80, stands_in_for=0), analysis(80, stands_in_for=40)]
    monkeypatch.setattr(candidate_search, "find_settled", lambda *_, **__: Settled(settled, {0: True}))
    found = film.analyze(0, 1)
    assert [(one.pts // 40, one.stands_in_for, one.in_transition) for one in found] == [(0, None, True), (1, 0, False), (2, 0, False)]
    assert found[1].measured == GOOD


def test_a_frame_that_stands_for_one_goes_on_to_do_so(monkeypatch: pytest.MonkeyPatch) -> None:
    film = Film(monkeypatch, 100, lambda number: {"in_transition": True, "stands_in_for": 80 if number == 1 else None})
    monkeypatch.setattr(candidate_search, "find_settled", lambda *_, **__: Settled([analysis(40, stands_in_for=0)], {}))
    assert [one.stands_in_for for one in film.analyze(0, 1, 2)] == [None, 80, None]


# ---------------------------------------------------------------- which frames are doubtful


@pytest.mark.parametrize("frames", [SHORT_FRAMES, SHORT_FRAMES + 1])
def test_settled_frames_are_sought_behind_would_be_keyframes_in_transitions_that_much_follows(
    monkeypatch: pytest.MonkeyPatch, frames: int
) -> None:
    film = Film(monkeypatch, frames, lambda number: {"in_transition": number >= 60}, calm=[0, 90])
    film.look_at(0, 30, 60, 90)
    assert (film.doubtful, film.soft) == ([[60]], [[]])
    film.look_at(0, 30, 60, 90, min_sharpness=1000.0)
    assert len(film.doubtful) == 1, "none of them would be kept"


@pytest.mark.parametrize(("frames", "sought"), [(SHORT_FRAMES, []), (SHORT_FRAMES + 1, [[30]])])
def test_in_a_long_video_behind_those_that_a_sync_frame_follows_soon_as_well(
    monkeypatch: pytest.MonkeyPatch, frames: int, sought: list[list[int]]
) -> None:
    """Encoders put several into one dissolve, which packets do not show then."""
    film = Film(monkeypatch, frames, lambda _: {}, calm=[0], followed_by_sync=[0, 30])
    film.look_at(0, 30, 60, 90)
    assert film.doubtful == sought


@pytest.mark.parametrize(("frames", "sought"), [(SHORT_FRAMES, []), (SHORT_FRAMES + 1, [[30]])])
def test_in_a_long_video_behind_those_that_look_like_a_mean_of_their_neighbours_as_well(
    monkeypatch: pytest.MonkeyPatch, frames: int, sought: list[list[int]]
) -> None:
    """Of a short dissolve packets may not tell; a calm frame is in none, and neither the first nor the last lies between two."""
    film = Film(monkeypatch, frames, lambda _: {}, calm=[60], blends=[0, 30, 60, 90])
    film.look_at(0, 30, 60, 90)
    assert film.doubtful == sought


def test_a_frame_between_two_of_one_view_moves_and_does_not_dissolve(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_of_two_views(number: int) -> dict[str, Any]:
        shown = analysis(90 * (number // 100))
        signature = shown.signature.copy()
        signature[0, :, 0] = number
        return {"view": shown.view, "signature": signature}

    film = Film(monkeypatch, SHORT_FRAMES + 1, one_of_two_views, blends=[40, 100, 160])
    film.look_at(0, 20, 40, 60, 80, 100, 120, 140, 160, 180, keyframes=10)
    assert film.doubtful == [[100]]


def test_two_on_either_side_are_tried_since_the_nearest_may_lie_in_the_dissolve_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def numbered(number: int) -> dict[str, Any]:
        signature = analysis(number).signature
        signature[0, 0] = number
        return {"signature": signature}

    film = Film(monkeypatch, SHORT_FRAMES + 1, numbered, calm=[10, 11, 12, 90, 91, 92])
    tried: set[tuple[int, int, int]] = set()

    def resembles_blend(picture: Image, before: Image, after: Image) -> bool:
        tried.add((int(before[0, 0, 0]), int(picture[0, 0, 0]), int(after[0, 0, 0])))
        return False

    monkeypatch.setattr(candidate_search, "resembles_blend", resembles_blend)
    film.look_at(10, 11, 12, 50, 90, 91, 92, keyframes=7)
    assert {(before, after) for before, number, after in tried if number == 50} == {(11, 90), (11, 91), (12, 90), (12, 91)}
    assert film.doubtful == []


@pytest.mark.parametrize("frames", [SHORT_FRAMES, SHORT_FRAMES + 1])
@pytest.mark.parametrize(("sharpness", "sought"), [(9.9, [[50]]), (10.0, [])])
def test_settled_frames_are_sought_behind_those_softer_than_a_tenth_of_what_is_around_them(
    monkeypatch: pytest.MonkeyPatch, sharpness: float, sought: list[list[int]], frames: int
) -> None:
    film = Film(
        monkeypatch, frames, lambda number: {"measured": measured(sharpness, contrast=0.05)} if number == 50 else {}, calm=range(200)
    )
    film.look_at(0, 50, 100, 150)
    assert film.doubtful == film.soft == sought


def test_soft_frames_so_close_together_that_they_are_one_change_of_focus_are_all_soft(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those a quarter of a second away say how sharp it is around them."""
    soft = {"measured": measured(9.9, contrast=0.05)}
    film = Film(monkeypatch, SHORT_FRAMES, lambda number: soft if 50 <= number <= 54 else {})
    film.look_at(0, *range(50, 55), 100, 150, keyframes=8)
    assert film.soft == [[*range(50, 55)]]


def test_frames_are_called_restless_as_they_were_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that could not be looked behind, and those that nobody doubted, stay as their packets say."""
    flags, seen = {"in_transition": True}, {30: False, 90: True}
    film = Film(
        monkeypatch,
        SHORT_FRAMES + 1,
        lambda number: flags if number in {0, 30, 60} else {},
        dissolves=seen,
        calm=[0, 120],
        followed_by_sync=[90],
    )
    found = {one.pts // 40: one.in_transition for one in film.analyze(0, 30, 60, 90, 120, keyframes=5)}
    assert film.doubtful == [[30, 60, 90]]
    assert found == {0: True, 30: False, 60: True, 90: True, 120: False}


def test_behind_a_restless_frame_with_people_a_settled_one_is_sought_and_searched_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """People are found last, and a frame with people stands for its scene before those without."""
    film = Film(monkeypatch, 100, lambda number: {"in_transition": number == 52})
    person = Detection(label="person", score=0.9, box_xyxy=(0.1, 0.1, 0.4, 0.9), source="test")
    searched: list[list[int]] = []

    def seek(analyses: list[FrameAnalysis], places: Sequence[int], *_: Any, **__: Any) -> list[FrameAnalysis]:
        searched.append([analyses[place].pts // 40 for place in places])
        found = {place: (person,) if analyses[place].pts // 40 == 52 else () for place in places}
        return [replace(one, detections=found[row], picture=None) if row in found else one for row, one in enumerate(analyses)]

    def find_settled(video: Any, doubtful: Sequence[FrameAnalysis], *_: Any, **about: Any) -> Settled:
        film.find_settled(video, doubtful, **about)
        return Settled([analysis(40 * 54, stands_in_for=40 * 52, **UNSEARCHED)], {40 * 52: True})

    monkeypatch.setattr(candidate_search.objects, "seek", seek)
    monkeypatch.setattr(candidate_search, "find_settled", find_settled)
    assert film.look_at(50, 51, 52, keyframes=1) == [50, 51, 52, 54]
    assert film.doubtful == [[52]]
    assert searched == [[50, 51, 52], [54]]


def test_a_known_frame_that_stands_for_one_in_a_dissolve_is_looked_behind_itself_and_a_new_one_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody has looked at its neighbours yet: it may lie in the next dissolve."""
    film = Film(monkeypatch, SHORT_FRAMES, lambda number: {"in_transition": number in {30, 90}})

    def find_settled(video: Any, doubtful: Sequence[FrameAnalysis], *_: Any, **about: Any) -> Settled:
        film.find_settled(video, doubtful, **about)
        stand_ins = {30: analysis(40 * 40, stands_in_for=40 * 30), 90: analysis(40 * 95, stands_in_for=40 * 90, **UNSEARCHED)}
        found = [stand_ins[one.pts // 40] for one in doubtful if one.pts // 40 in stand_ins]
        return Settled(found, {one.pts: True for one in doubtful if one.pts // 40 in stand_ins})

    monkeypatch.setattr(candidate_search, "find_settled", find_settled)
    assert film.look_at(0, 30, 40, 90, 120, keyframes=5) == [0, 30, 40, 90, 95, 120]
    assert film.doubtful == [[30, 90], [40]]


def test_would_be_keyframes_that_change_are_looked_behind_six_times_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time another frame would be kept. Nothing is looked behind twice, and objects are sought in what is new."""
    film = Film(monkeypatch, 100, lambda number: {"in_transition": True})
    turns: list[int] = []

    def likely(analyses: Sequence[FrameAnalysis], **_: Any) -> list[FrameAnalysis]:
        turns.append(8 * len(turns))
        return [one for one in analyses if one.pts // 40 in turns]

    def find_settled(video: Any, doubtful: Sequence[FrameAnalysis], *_: Any, **about: Any) -> Settled:
        film.find_settled(video, doubtful, **about)
        return Settled([analysis(doubtful[0].pts + 200, stands_in_for=doubtful[0].pts, **UNSEARCHED)], {})

    monkeypatch.setattr(candidate_search, "likely_keyframes", likely)
    monkeypatch.setattr(candidate_search, "find_settled", find_settled)
    film.look_at(0, 8, 16, 24, 32, 40, 48, 56, 64)
    assert MOST_SETTLED_AGAIN == 6
    assert film.doubtful == [[0], [8], [16], [24], [32], [40], [48]]
    assert film.sought == [[5, 8, 16, 24, 32, 40, 48, 56, 64], [13], [21], [29], [37], [45], [53]], "those before have stand-ins"


def test_where_the_would_be_keyframes_stay_the_same_they_are_looked_behind_once(monkeypatch: pytest.MonkeyPatch) -> None:
    film = Film(monkeypatch, 100, lambda number: {"in_transition": True})
    film.look_at(0, 30, 60)
    assert film.doubtful == film.sought == [[0, 30, 60]]


def test_what_was_found_is_not_looked_behind_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    film = Film(monkeypatch, 100, lambda number: {"in_transition": True})

    def find_settled(video: Any, doubtful: Sequence[FrameAnalysis], *_: Any, **about: Any) -> Settled:
        film.find_settled(video, doubtful, **about)
        return Settled([analysis(one.pts + 200, stands_in_for=one.pts, in_transition=True, **UNSEARCHED) for one in doubtful], {})

    monkeypatch.setattr(candidate_search, "find_settled", find_settled)
    assert film.look_at(0, 30) == [0, 5, 30, 35]
    assert film.doubtful == [[0, 30]]


def test_a_frame_of_which_the_detector_knows_nothing_is_not_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a file of detections that leaves it out: its picture is gone, and so is the frame's number of objects unknown."""
    film = Film(monkeypatch, 100, lambda number: {"in_transition": True})
    found = iter([[analysis(200, stands_in_for=0, **UNSEARCHED)], [], []])

    def seek(analyses: list[FrameAnalysis], places: Sequence[int], *_: Any, **__: Any) -> list[FrameAnalysis]:
        film.sought.append([analyses[place].pts // 40 for place in places])
        return [replace(one, picture=None) if row in set(places) else one for row, one in enumerate(analyses)]

    def find_settled(video: Any, doubtful: Sequence[FrameAnalysis], *_: Any, **about: Any) -> Settled:
        return Settled(next(found), {})

    likely = iter([[0], [30], [60], [60]])
    monkeypatch.setattr(candidate_search.objects, "seek", seek)
    monkeypatch.setattr(candidate_search, "find_settled", find_settled)
    monkeypatch.setattr(candidate_search, "likely_keyframes", lambda analyses, **_: [analysis(40 * number) for number in next(likely)])
    film.look_at(0, 30, 60)
    assert film.sought == [[5, 30, 60], [], []]


def test_with_auto_those_are_looked_behind_that_would_stand_for_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    film = Film(monkeypatch, 100, lambda number: {"in_transition": True})
    asked: list[tuple[float | None, float]] = []

    def likely(analyses: Sequence[FrameAnalysis], min_sharpness: float | None, *, redundant: float) -> list[FrameAnalysis]:
        asked.append((min_sharpness, redundant))
        return [one for one in analyses if one.pts == 40 * 30]

    monkeypatch.setattr("vip.extraction.picture_count.likely_pictures", likely)
    film.look_at(0, 30, 60, keyframes=1, counts_pictures=True, min_sharpness=5.0)
    assert film.doubtful == [[30]]
    assert {*asked} == {(5.0, 0.77)}


# ---------------------------------------------------------------- the sharpest of a short video


@pytest.mark.parametrize(
    ("frames", "planned", "more", "sharpest"),
    [
        (SHORT_FRAMES, (0, 30), {"insistent": True}, True),
        (SHORT_FRAMES, (0, 30), {"counts_pictures": True}, False),  # the sharpest may be one in which a page scrolls
        (SHORT_FRAMES, (0, 30), {}, False),  # another sampler, or a number of candidates that was asked for
        (SHORT_FRAMES, (0, 30), {"as_is": True}, False),
        (SHORT_FRAMES + 1, (0, 30), {"insistent": True}, False),
        (SHORT_FRAMES, (0,), {"insistent": True}, False),  # sync frames alone
    ],
)
def test_of_a_short_video_the_sharpest_frames_are_taken_unless_sync_frames_do(
    monkeypatch: pytest.MonkeyPatch, frames: int, planned: tuple[int, ...], more: dict[str, Any], sharpest: bool
) -> None:
    film = Film(monkeypatch, frames, lambda number: {}, 40)
    film.look_at(*planned, keyframes=1, **more)
    assert film.sharpest[0] is sharpest
    assert not any(film.sharpest[1:]), "frames that join later are meant as they are"


@pytest.mark.parametrize("about", [{"is_sparse": True}, {"by_decoding": True}])
def test_where_not_all_packets_are_known_no_video_is_short(monkeypatch: pytest.MonkeyPatch, about: dict[str, bool]) -> None:
    film = Film(monkeypatch, 100, lambda number: {})
    film.video.index = replace(film.video.index, **about)
    film.look_at(0, 30, keyframes=1, insistent=True)
    assert not any(film.sharpest)


def test_of_a_short_video_a_planned_frame_is_lost_where_no_frame_of_its_window_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where a sharper one stands for it, be it earlier or later."""
    search = Film(monkeypatch, 100, lambda number: {}).search(4, exact=False, insistent=True)
    planned = [40 * number for number in (10, 30, 50, 90)]
    for seen, lost in (((10, 30, 50, 90), []), ((2, 40, 41, 99), []), ((10, 41, 50, 90), [30]), ((), planned)):
        found = [analysis(40 * number) for number in seen]
        assert candidate_search.undecodable(search, planned, found) == [40 * number if number < 100 else number for number in lost]


def test_a_planned_frame_is_lost_where_none_was_seen_half_a_second_later(monkeypatch: pytest.MonkeyPatch) -> None:
    search = Film(monkeypatch, SHORT_FRAMES + 1, lambda number: {}).search(4, exact=False, insistent=True)
    assert candidate_search.undecodable(search, [499, 500, 1000, 1001], [analysis(1000)]) == [499, 1001]
    assert candidate_search.undecodable(replace(search, exact=True), [999, 1000], [analysis(1000)]) == [999]
