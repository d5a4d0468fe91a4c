"""Which of the frames behind a bad one stands in for it, with pictures that are nothing but a sharpness."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.extraction.analyses import TIME_BASE, analysis, measured
from tests.extraction.indices import at, index_of, steady
from vip.extraction import substitutes
from vip.extraction.analyze import FrameAnalysis
from vip.extraction.substitutes import find_substitutes
from vip.records import Frame, Image, PacketIndex

SAME_VIEW = np.array([1, 0], np.float32)
UNSEEN = np.array([0, 1], np.float32)


class Looker:
    """Frames are as sharp as their first pixel says, and the embedder sees them afterwards."""

    def __init__(self, view: np.ndarray = SAME_VIEW) -> None:
        self.view = view

    def __call__(self, frame: Frame) -> FrameAnalysis:
        return analysis(frame.pts, measured=sharp(frame.image), view=self.view, vector=np.zeros(0, np.float32))

    def embed(self, analyses: Iterable[FrameAnalysis]) -> Iterator[FrameAnalysis]:
        return (replace(each, vector=UNSEEN) for each in analyses)


def sharp(image: Image) -> Any:
    return measured(float(image[0, 0, 0]))


class Film:
    """A video of frames that are as sharp as told, by seconds; else not at all."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, sharpness: dict[float, int], index: PacketIndex | None = None) -> None:
        self.sharpness = {round(1000 * second): value for second, value in sharpness.items()}
        self.index, self.time_base = index or steady(12), TIME_BASE
        monkeypatch.setattr(substitutes, "in_parallel", lambda video, pts, work: work(self, pts))
        monkeypatch.setattr(substitutes, "measure", sharp)

    def effort(self, pts: int) -> int:
        return 1

    def frames(self, pts: Sequence[int], **_: Any) -> Iterator[Frame]:
        return (Frame(stamp, TIME_BASE, np.full((1, 1, 3), self.sharpness.get(stamp, 1), np.uint8)) for stamp in pts)

    frames_near = frames


def stand_ins(film: Any, analyses: Sequence[FrameAnalysis], *bad: int) -> list[FrameAnalysis]:
    analyzer: Any = Looker()
    return find_substitutes(film, analyses, bad or (0,), [100.0] * len(analyses), analyzer, advance=lambda: None)


@pytest.mark.parametrize(
    ("sharpness", "chosen"),
    [
        ({0.2: 60, 0.4: 62, 0.6: 90, 0.8: 95, 1.0: 200}, 0.6),  # one of the two behind it is clearly sharper, and two more are tried
        ({0.2: 60, 0.4: 62, 0.6: 61, 0.8: 200}, 0.2),  # the third is not looked at
        ({0.2: 60, 0.4: 70, 0.6: 77}, 0.2),  # sharper, but not clearly
        ({0.2: 100, 0.4: 200}, 0.2),  # as sharp as what is around it
        ({0.8: 60, 1.0: 61, 1.2: 62}, 0.8),  # bad ones before it do not count
        ({1.6: 60}, 1.6),
        ({0.3: 60, 1.7: 60}, None),
    ],
)
def test_the_first_good_frame_stands_in_or_a_clearly_sharper_one_soon_behind_it(
    monkeypatch: pytest.MonkeyPatch, sharpness: dict[float, int], chosen: float | None
) -> None:
    found = stand_ins(Film(monkeypatch, sharpness), [analysis(0)])
    assert [each.time_s for each in found] == ([] if chosen is None else [chosen])
    assert all(each.stands_in_for == 0 and np.array_equal(each.vector, UNSEEN) for each in found), "the embedder has seen it"


def test_a_stand_in_in_a_restless_stretch_is_called_restless(monkeypatch: pytest.MonkeyPatch) -> None:
    index = steady(12, bursts={5.0: 0.6})
    assert [each.in_transition for each in stand_ins(Film(monkeypatch, {5.2: 60, 3.2: 60}, index), [analysis(5000)])] == [True]
    assert [each.in_transition for each in stand_ins(Film(monkeypatch, {5.2: 60, 3.2: 60}, index), [analysis(3000)])] == [False]


@pytest.mark.parametrize("following", [1560, 1600])
def test_the_next_candidate_and_what_lies_behind_it_stands_in_for_nothing(monkeypatch: pytest.MonkeyPatch, following: int) -> None:
    assert stand_ins(Film(monkeypatch, {1.6: 60}), [analysis(0), analysis(following)]) == []


def test_nothing_is_sought_where_the_next_candidate_shows_the_same_shot_and_is_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first GOP was full, the second was cut short by a cut."""
    film = Film(monkeypatch, {0.2: 100, 4.2: 100}, index_of([1000] * 300, [0, 100, 150, 250]))
    shot = analysis(0).signature
    analyses = [analysis(pts, signature=shot) for pts in at(0, 4, 6)]
    assert stand_ins(film, analyses, 0) == []
    assert [each.stands_in_for for each in stand_ins(film, analyses, 0, 1)] == at(0, 4), "the next is bad itself"
    assert [each.stands_in_for for each in stand_ins(film, analyses, 1)] == at(4), "behind it begins another shot"


def test_a_full_gop_that_begins_with_another_shot_shows_that_the_encoder_missed_a_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    film = Film(monkeypatch, {0.2: 100, 4.2: 100}, index_of([1000] * 300, [0, 100, 150, 250]))
    analyses = [analysis(pts) for pts in at(0, 4, 6)]  # three signatures
    assert [each.stands_in_for for each in stand_ins(film, analyses, 0)] == at(0)
