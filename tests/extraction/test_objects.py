"""Objects are sought in frames that may become keyframes: two of each scene, or all good ones for pruners that know no scenes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.clips import clip
from tests.extraction.looks import TIME_BASE, picture
from vip import registry
from vip.extraction.objects import seek, worth_searching
from vip.extraction.scan import Look, Looker
from vip.models.classic import ClassicEmbedder
from vip.models.opencv import OpenCVDetector
from vip.pipeline import extract
from vip.rechoosing import rechoose
from vip.records import Detection, Frame, Image

FOUND = Detection(label="cup", score=0.5, box_xyxy=(0.1, 0.1, 0.2, 0.2), source="cups")


class CupDetector:
    """Finds a cup in every picture, and remembers the sizes that it saw."""

    name = "cups"
    side_px = 320

    def __init__(self, detail: str | None = None) -> None:
        self.shapes: list[tuple[int, ...]] = []

    def detect(self, images: Sequence[Image]) -> list[list[Detection]]:
        self.shapes += [image.shape for image in images]
        return [[FOUND] for _ in images]


def moving(seed: int, step: int) -> Image:
    return np.roll(picture(seed), 12 * step, axis=1)


@pytest.fixture
def looks() -> list[Look]:
    """Three scenes of four frames each, one a second."""
    looker = Looker(ClassicEmbedder(None), CupDetector())
    frames = [moving(seed, step) for seed in (1, 2, 3) for step in range(4)]
    return [looker(Frame(1000 * number, TIME_BASE, image)) for number, image in enumerate(frames)]


def test_at_most_two_frames_of_each_scene_are_searched(looks: list[Look]) -> None:
    wanted = worth_searching(looks, keyframes=3, min_sharpness=None, by_scene=True, redundant=1.0)
    scenes = [index // 4 for index in wanted]
    assert {*scenes} == {0, 1, 2}
    assert all(scenes.count(scene) <= 2 for scene in scenes)


def test_one_frame_of_each_scene_is_searched_where_all_show_the_same(looks: list[Look]) -> None:
    wanted = worth_searching(looks, keyframes=3, min_sharpness=None, by_scene=True, redundant=0.5)
    assert sorted(index // 4 for index in wanted) == [0, 1, 2]


def test_all_good_frames_are_searched_where_the_pruner_knows_no_scenes(looks: list[Look]) -> None:
    assert worth_searching(looks, keyframes=3, min_sharpness=None, by_scene=False, redundant=1.0) == set(range(12))
    assert worth_searching(looks, keyframes=12, min_sharpness=None, by_scene=True, redundant=1.0) == set(range(12))


def test_bad_frames_are_not_searched(looks: list[Look]) -> None:
    black = Looker(ClassicEmbedder(None), CupDetector())(Frame(12_000, TIME_BASE, np.zeros((360, 640, 3), np.uint8)))
    assert 12 not in worth_searching([*looks, black], keyframes=20, min_sharpness=None, by_scene=True, redundant=1.0)


def test_seeking_fills_in_what_was_found_and_lets_go_of_the_pictures(looks: list[Look]) -> None:
    detector = CupDetector()
    found = seek([*looks[:3], replace(looks[3], detections=())], {1, 3}, detector)
    assert [look.detections for look in found] == [None, (FOUND,), None, ()], "what was searched is not searched again"
    assert detector.shapes == [(180, 320, 3)]
    assert all(look.picture == b"" for look in found)


def test_faces_are_found_in_the_smaller_pictures_as_in_the_frames(face: Image) -> None:
    detector = OpenCVDetector(None)
    look = Looker(ClassicEmbedder(None), detector)(Frame(0, TIME_BASE, face))
    (found,) = seek([look], {0}, detector)
    assert [one.label for one in found.detections or ()] == [one.label for one in detector.detect([face])[0]] == ["face"]


@pytest.fixture
def face() -> Image:
    from skimage import data

    astronaut = np.asarray(data.astronaut(), np.uint8)
    return np.ascontiguousarray(np.pad(astronaut, ((0, 0), (64, 64), (0, 0)), mode="edge"))


@pytest.fixture
def cups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.BUILT_IN["detector"], "cups", "tests.extraction.test_objects:CupDetector")


@pytest.mark.parametrize("pruner", ["algorithm1", "k-center", "threshold"])
def test_every_keyframe_was_searched_whatever_chose_it(cups: None, tmp_path: Path, pruner: str) -> None:
    run = extract(clip(tmp_path / "a.mp4"), out=tmp_path / "run", keyframes=4, detector="cups", pruner=pruner)
    assert [keyframe.record.detections for keyframe in run.keyframes] == [(FOUND,)] * len(run.keyframes)
    kept = [row.detections for row in run.candidates if row.decision.kept]
    assert kept == [(FOUND,)] * len(run.keyframes)


def test_a_keyframe_that_another_number_brings_in_is_searched_when_it_is_written(cups: None, tmp_path: Path) -> None:
    run = extract(clip(tmp_path / "a.mp4"), out=tmp_path / "run", keyframes=2, detector="cups")
    assert any(row.detections is None for row in run.candidates if row.decision.rule == "pruned")
    more = rechoose(run, keyframes=5, out=tmp_path / "more")
    assert [keyframe.record.detections for keyframe in more.keyframes] == [(FOUND,)] * 5
