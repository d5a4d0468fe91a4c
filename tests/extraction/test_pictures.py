"""A folder of pictures becomes keyframes without times; what cannot be read is a failure of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.extraction.analyses import large_picture, picture, scaled
from vip.errors import InputError
from vip.extraction.pictures import keyframes_of, pictures_in, working_picture
from vip.extraction.quality import WORKING_SIDE_PX, measure
from vip.protocols import DetectorCapabilities, PictureOrigin
from vip.records import Detection, Failure, Image, Keyframe

FACE = Detection(label="face", score=0.9, box_xyxy=(0.1, 0.1, 0.2, 0.2), source="test")


class OneFace:
    name = "one-face"
    capabilities = DetectorCapabilities()

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []
        self.where: list[PictureOrigin] = []

    def detect(self, images: Sequence[Image], where: Sequence[PictureOrigin] = ()) -> list[list[Detection] | None]:
        self.shapes += [image.shape for image in images]
        self.where += where
        return [[FACE] for _ in images]


def save(path: Path, image: Image) -> Path:
    assert cv2.imwrite(str(path), cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
    return path


def read(folder: Path, detector: OneFace | None = None) -> tuple[list[Keyframe], list[Failure], int]:
    failures: list[Failure] = []
    told: list[None] = []
    paths = pictures_in(folder)
    rows = list(keyframes_of(paths, detector or OneFace(), on_failure=failures.append, advance=lambda: told.append(None)))
    return rows, failures, len(told)


def test_pictures_are_taken_in_name_order_and_other_files_left(tmp_path: Path) -> None:
    for name in ("b.png", "a.JPG", "c.webp", "d.jpeg", "e.bmp", "f.tiff"):
        save(tmp_path / name.lower(), picture(1)).rename(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no picture", encoding="utf-8")
    (tmp_path / "folder.png").mkdir()
    assert [path.name for path in pictures_in(tmp_path)] == ["a.JPG", "b.png", "c.webp", "d.jpeg", "e.bmp", "f.tiff"]


@pytest.mark.parametrize("others", [[], ["notes.txt", "film.mp4"]])
def test_a_folder_without_pictures_is_refused(tmp_path: Path, others: list[str]) -> None:
    for name in others:
        (tmp_path / name).touch()
    with pytest.raises(InputError, match="holds neither a run of vip nor pictures"):
        pictures_in(tmp_path)


def test_a_picture_becomes_a_keyframe_without_a_time(tmp_path: Path) -> None:
    save(tmp_path / "scene.png", picture(1))
    ((row,), failures, told) = read(tmp_path)
    assert (row.id, row.image_path, row.video_id) == ("scene.png", "scene.png", tmp_path.name)
    assert (row.time_s, row.pts, row.candidate) == (None, None, None)
    assert (row.width_px, row.height_px) == (640, 360)
    assert row.detections == (FACE,)
    assert row.quality == measure(picture(1)).quality
    assert (failures, told) == ([], 1)


@pytest.mark.parametrize(("width", "height"), [(1920, 1080), (320, 180), (360, 640), (3, 1), (4000, 2)])
def test_pictures_are_measured_and_searched_at_the_working_size(tmp_path: Path, width: int, height: int) -> None:
    image = np.asarray(cv2.resize(picture(1), (width, height), interpolation=cv2.INTER_AREA), np.uint8)
    save(tmp_path / "scene.png", image)
    detector = OneFace()
    ((row,), _, _) = read(tmp_path, detector)
    assert (row.width_px, row.height_px) == (width, height)
    assert max(detector.shapes[0]) == WORKING_SIDE_PX


@pytest.mark.slow
def test_the_sharpness_of_a_picture_hardly_depends_on_its_size(tmp_path: Path) -> None:
    save(tmp_path / "a.png", large_picture(1))
    save(tmp_path / "b.png", scaled(large_picture(1), 1280, 720))
    save(tmp_path / "c.png", scaled(large_picture(1), 640, 360))
    (rows, _, _) = read(tmp_path)
    assert [row.quality.sharpness for row in rows] == pytest.approx([rows[0].quality.sharpness] * 3, rel=0.05)


@pytest.mark.parametrize(("width", "height", "share"), [(320, 180, 0.2), (160, 90, 0.05), (40, 22, 0.03)])
def test_a_small_picture_is_not_as_sharp_as_a_large_one_for_being_enlarged(width: int, height: int, share: float) -> None:
    """Its pixels do not become squares."""
    large, small = (measure(working_picture(image)) for image in (picture(1), scaled(picture(1), width, height)))
    assert 0 < small.quality.sharpness < share * large.quality.sharpness
    assert small.quality.brightness == pytest.approx(large.quality.brightness, abs=0.01)


def test_a_picture_that_cannot_be_read_is_a_failure_and_the_others_go_on(tmp_path: Path) -> None:
    save(tmp_path / "a.png", picture(1))
    (tmp_path / "b.png").write_bytes(b"no picture")
    (tmp_path / "c.jpg").touch()
    save(tmp_path / "d.png", picture(2))
    rows, failures, told = read(tmp_path)
    assert [row.id for row in rows] == ["a.png", "d.png"]
    assert [(failure.item, failure.kind, failure.exit_code) for failure in failures] == [
        ("b.png", "unreadable", 3),
        ("c.jpg", "unreadable", 3),
    ]
    assert all(failure.item in failure.message for failure in failures)
    assert told == 4


def test_pictures_are_read_one_after_the_other(tmp_path: Path) -> None:
    """So that memory holds one, however many there are."""
    for number in range(3):
        save(tmp_path / f"{number}.png", picture(number))
    told: list[None] = []
    rows = keyframes_of(pictures_in(tmp_path), OneFace(), on_failure=lambda _: None, advance=lambda: told.append(None))
    next(rows)
    assert told == []
    next(rows)
    assert len(told) == 1


def test_a_detector_is_told_the_name_of_the_picture_and_what_it_does_not_know_stays_unknown(tmp_path: Path) -> None:
    class Knowing(OneFace):
        def detect(self, images: Sequence[Image], where: Sequence[PictureOrigin] = ()) -> list[list[Detection] | None]:
            super().detect(images, where)
            return [[FACE] if place.name == "a.png" else None for place in where]

    for name in ("a.png", "b.png"):
        save(tmp_path / name, picture(1))
    detector = Knowing()
    rows, _, _ = read(tmp_path, detector)
    assert detector.where == [PictureOrigin(name="a.png"), PictureOrigin(name="b.png")]
    assert [row.detections for row in rows] == [(FACE,), None]


def test_pictures_of_the_current_folder_are_named_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "holiday").mkdir()
    save(tmp_path / "holiday" / "a.png", picture(1))
    monkeypatch.chdir(tmp_path / "holiday")
    ((row,), _, _) = read(Path())
    assert row.video_id == "holiday"
