"""Objects are sought in every candidate that is neither bad nor a copy, before anything is chosen."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.clips import clip, scene
from tests.extraction.analyses import TIME_BASE, analysis, picture
from tests.media import write
from vip import registry
from vip.errors import InputError
from vip.extraction.analyze import FrameAnalysis, FrameAnalyzer
from vip.extraction.objects import poor_in_objects, seek
from vip.models.classic import ClassicEmbedder
from vip.models.opencv import OpenCVDetector
from vip.pipeline import extract
from vip.pipeline import reselect as rechoose
from vip.protocols import DetectorCapabilities, PictureOrigin
from vip.records import Detection, Frame, Image

CLASSIC = ClassicEmbedder(None)
FOUND = Detection(label="cup", score=0.5, box_xyxy=(0.1, 0.1, 0.2, 0.2), source="cups")


class CupDetector:
    """Finds a cup in every picture, and remembers the sizes that it saw."""

    name = "cups"
    capabilities = DetectorCapabilities(side_px=320)

    def __init__(self, detail: str | None = None, **settings: object) -> None:
        self.shapes: list[tuple[int, ...]] = []

    def detect(self, images: Sequence[Image], where: object = ()) -> list[list[Detection] | None]:
        self.shapes += [image.shape for image in images]
        return [[FOUND] for _ in images]


class TellingDetector:
    """Finds in each picture the time that it is from."""

    name = "telling"

    def __init__(self, batch: int) -> None:
        self.capabilities = DetectorCapabilities(batch=batch)
        self.sizes: list[int] = []

    def detect(self, images: Sequence[Image], where: Sequence[PictureOrigin] = ()) -> list[list[Detection] | None]:
        self.sizes.append(len(images))
        assert len(images) == len(where)
        return [[FOUND.model_copy(update={"label": f"at {place.time_s}"})] for place in where]


def moving(seed: int, step: int) -> Image:
    return np.roll(picture(seed), 12 * step, axis=1)


@pytest.fixture
def analyses() -> list[FrameAnalysis]:
    """Three scenes of four frames each, one a second."""
    analyzer = FrameAnalyzer(CLASSIC, CLASSIC, CupDetector())
    frames = [moving(seed, step) for seed in (1, 2, 3) for step in range(4)]
    return [analyzer(Frame(1000 * number, TIME_BASE, image)) for number, image in enumerate(frames)]


def test_seeking_fills_in_what_was_found_and_lets_go_of_the_pictures_that_were_searched(analyses: list[FrameAnalysis]) -> None:
    detector = CupDetector()
    told: list[None] = []
    found = seek([*analyses[:3], replace(analyses[3], detections=())], {1, 3}, detector, advance=lambda: told.append(None))
    assert [analysis.detections for analysis in found] == [None, (FOUND,), None, ()], "what was searched is not searched again"
    assert detector.shapes == [(180, 320, 3)]
    assert [analysis.picture is None for analysis in found] == [False, True, False, False]
    assert len(told) == 2


def test_a_frame_that_was_left_out_is_searched_later(analyses: list[FrameAnalysis]) -> None:
    """What is known of the first is not sought again, and its picture is gone."""
    detector = CupDetector()
    first = seek(analyses[:2], {0}, detector, advance=lambda: None)
    both = seek(first, {0, 1}, detector, advance=lambda: None)
    assert len(detector.shapes) == 2
    assert [(analysis.detections, analysis.picture) for analysis in both] == [((FOUND,), None)] * 2


@pytest.mark.parametrize("cores", [1, 5])
@pytest.mark.parametrize("batch", [1, 3, 100])
def test_each_look_gets_what_was_found_in_its_own_picture(
    analyses: list[FrameAnalysis], monkeypatch: pytest.MonkeyPatch, batch: int, cores: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    told: list[None] = []
    detector = TellingDetector(batch)
    found = seek(analyses, range(1, 12), detector, advance=lambda: told.append(None))
    assert found[0].detections is None
    assert [[one.label for one in analysis.detections or ()] for analysis in found[1:]] == [
        [f"at {analysis.time_s}"] for analysis in analyses[1:]
    ]
    assert sorted(detector.sizes) == sorted([batch] * (11 // batch) + [11 % batch] * bool(11 % batch))
    assert len(told) == 11


def test_a_picture_that_a_detector_knows_nothing_about_stays_unknown(analyses: list[FrameAnalysis]) -> None:
    class Forgetful(CupDetector):
        def detect(self, images: Sequence[Image], where: object = ()) -> list[list[Detection] | None]:
            return [None for _ in images]

    assert seek(analyses[:1], {0}, Forgetful(), advance=lambda: None)[0].detections is None


@pytest.mark.parametrize(("device", "threads"), [("cpu in fp32", 1), (None, 2)])
def test_a_model_is_asked_by_one_thread_and_others_by_all(
    device: str | None, threads: int, analyses: list[FrameAnalysis], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    asking: set[int] = set()

    class Slow(CupDetector):
        def detect(self, images: Sequence[Image], where: object = ()) -> list[list[Detection] | None]:
            asking.add(threading.get_ident())
            time.sleep(0.02)
            return super().detect(images)

    detector = Slow()
    detector.capabilities = DetectorCapabilities(device=device)
    seek(analyses, range(len(analyses)), detector, advance=lambda: None)
    assert len(asking) == threads


def test_faces_are_found_in_the_smaller_pictures_as_in_the_frames(face: Image) -> None:
    detector = OpenCVDetector(None)
    analysis = FrameAnalyzer(CLASSIC, CLASSIC, detector)(Frame(0, TIME_BASE, face))
    (found,) = seek([analysis], {0}, detector, advance=lambda: None)
    assert [one.label for one in found.detections or ()] == [one.label for one in detector.detect([face])[0] or ()] == ["face"]


@pytest.fixture
def face() -> Image:
    from skimage import data

    astronaut = np.asarray(data.astronaut(), np.uint8)
    return np.ascontiguousarray(np.pad(astronaut, ((0, 0), (64, 64), (0, 0)), mode="edge"))


@pytest.fixture
def cups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.BUILT_IN["detector"], "cups", "tests.extraction.test_objects:CupDetector")


@pytest.mark.parametrize("pruner", ["algorithm1", "k-center", "threshold"])
def test_every_candidate_that_is_neither_bad_nor_a_copy_is_searched_whatever_chooses(cups: None, tmp_path: Path, pruner: str) -> None:
    black = np.zeros_like(scene(0))
    path = write(tmp_path / "a.mp4", frames=18, gop=3, rate=3, picture=lambda number: black if number < 3 else scene(number // 3)).path
    run = extract(path, out=tmp_path / "run", keyframes=2, detector="cups", pruner=pruner, sampler="every:0.2s")
    assert [keyframe.record.detections for keyframe in run.keyframes] == [(FOUND,)] * len(run.keyframes)
    rules = ("kept", "pruned", "duplicate", "black")
    assert {row.decision.rule for row in run.candidates} == {*rules}
    found = {rule: {row.detections for row in run.candidates if row.decision.rule == rule} for rule in rules}
    assert found == {"kept": {(FOUND,)}, "pruned": {(FOUND,)}, "duplicate": {None}, "black": {()}}


def test_a_keyframe_that_another_number_brings_in_was_searched_before(cups: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = extract(clip(tmp_path / "a.mp4"), out=tmp_path / "run", keyframes=2, detector="cups")
    monkeypatch.delitem(registry.BUILT_IN["detector"], "cups")
    more = rechoose(run, keyframes=5, out=tmp_path / "more")
    assert [keyframe.record.detections for keyframe in more.keyframes] == [(FOUND,)] * 5


def test_frames_of_which_no_objects_are_known_are_not_poor_in_them() -> None:
    frames = [analysis(0, detections=()), analysis(40, detections=None), analysis(80, detections=(FOUND, FOUND))]
    assert list(poor_in_objects(frames, [0, 1], 1)) == [0]
    assert list(poor_in_objects(frames, [0, 1, 2], 3)) == [0, 2]
    with pytest.raises(InputError, match=r"0 of 2 candidates show enough objects \(most 2, asked 3\)"):
        poor_in_objects(frames, [0, 2], 3)
