"""`--to coco`: ids that go on over all videos, boxes cut at the edges, and JSON however little there is."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.corpus.making import JPEG, sample
from vip.dataset.rows import VideoSample
from vip.errors import StoreError
from vip.export import coco
from vip.records import Detection

Box = tuple[float, float, float, float]
WHOLE: Box = (0.0, 0.0, 1.0, 1.0)


def unheard(text: str) -> None:
    raise AssertionError(f"nobody expected: {text}")


def found(label: str, box: Box = WHOLE, *, score: float = 0.5, kind: Literal["object", "region"] = "object") -> Detection:
    return Detection(label=label, score=score, box_xyxy=box, source="test", kind=kind)


def clip(
    key: str, *detections: tuple[Detection, ...] | None, width_px: int = 64, height_px: int = 48, time_s: float | None = 2.0
) -> VideoSample:
    """A video with a keyframe for each of these lists of detections, all of one size and time."""
    one = sample(key, count=len(detections))
    frames = []
    for frame, rows in zip(one.frames, detections, strict=True):
        changed = {"detections": rows, "width_px": width_px, "height_px": height_px, "time_s": time_s}
        frames.append(dataclasses.replace(frame, keyframe=frame.keyframe.model_copy(update=changed)))
    return VideoSample(one.video, tuple(frames))


def written(folder: Path, *some: VideoSample) -> tuple[dict[str, Any], dict[str, Any]]:
    """What captions.json and instances.json hold."""
    coco.write(iter(some), str(folder), lambda _: None)
    first, second = (json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in ("captions", "instances"))
    return first, second


# ---------------------------------------------------------------- boxes


@pytest.mark.parametrize(
    ("box", "pixels", "area"),
    [
        (WHOLE, [0.0, 0.0, 200.0, 100.0], 20_000.0),
        ((0.1, 0.2, 0.4, 0.9), [20.0, 20.0, 60.0, 70.0], 4200.0),
        ((-0.5, -0.25, 0.5, 0.5), [0.0, 0.0, 100.0, 50.0], 5000.0),
        ((0.5, 0.5, 1.5, 1.25), [100.0, 50.0, 100.0, 50.0], 5000.0),
        ((-1.0, -1.0, 2.0, 2.0), [0.0, 0.0, 200.0, 100.0], 20_000.0),
        ((0.33333, 0.0, 0.66666, 0.11111), [66.67, 0.0, 66.67, 11.11], 740.7),
    ],
)
def test_a_box_is_left_top_width_and_height_in_pixels_within_the_picture(
    box: Box, pixels: list[float], area: float, tmp_path: Path
) -> None:
    _, instances = written(tmp_path, clip("one", (found("dog", box),), width_px=200, height_px=100))
    (row,) = instances["annotations"]
    assert (row["bbox"], row["area"]) == (pixels, area)


@pytest.mark.parametrize(
    "box",
    [
        (0.5, 0.1, 0.5, 0.9),
        (0.1, 0.5, 0.9, 0.5),
        (0.9, 0.1, 0.1, 0.9),
        (0.1, 0.9, 0.9, 0.1),
        (1.0, 0.0, 1.5, 1.0),
        (0.0, 1.0, 1.0, 1.5),
        (-0.5, 0.0, 0.0, 1.0),
        (0.0, -0.5, 1.0, 0.0),
    ],
)
def test_a_box_of_which_nothing_is_in_the_picture_is_left_out_with_its_category(box: Box, tmp_path: Path) -> None:
    _, instances = written(tmp_path, clip("one", (found("ghost", box), found("dog"))))
    assert [row["bbox"] for row in instances["annotations"]] == [[0.0, 0.0, 64.0, 48.0]]
    assert instances["categories"] == [{"id": 1, "name": "dog", "supercategory": ""}]


def test_a_region_is_no_object_and_no_category(tmp_path: Path) -> None:
    _, instances = written(tmp_path, clip("one", (found("a dog that leaps", kind="region"), found("dog", score=0.25))))
    assert [(row["id"], row["category_id"], row["score"]) for row in instances["annotations"]] == [(1, 1, 0.25)]
    assert [row["name"] for row in instances["categories"]] == ["dog"]


# ---------------------------------------------------------------- ids


def test_a_label_has_one_id_in_all_videos_in_the_order_in_which_it_is_first_seen(tmp_path: Path) -> None:
    some = [clip("one", (found("dog"), found("cat")), (found("dog"),)), clip("two", (found("bird"), found("cat")))]
    captions, instances = written(tmp_path, *some)
    assert [(row["id"], row["name"]) for row in instances["categories"]] == [(1, "dog"), (2, "cat"), (3, "bird")]
    rows = [(row["id"], row["image_id"], row["category_id"]) for row in instances["annotations"]]
    assert rows == [(1, 1, 1), (2, 1, 2), (3, 2, 1), (4, 3, 3), (5, 3, 2)]
    assert [(row["id"], row["image_id"]) for row in captions["annotations"]] == [(1, 1), (2, 2), (3, 3)]
    assert [row["id"] for row in captions["images"]] == [row["id"] for row in instances["images"]] == [1, 2, 3]


@pytest.mark.parametrize("detections", [None, ()])
def test_a_keyframe_in_which_nothing_was_found_is_a_picture_all_the_same(detections: tuple[Detection, ...] | None, tmp_path: Path) -> None:
    captions, instances = written(tmp_path, clip("one", detections))
    assert (len(instances["images"]), instances["annotations"], instances["categories"]) == (1, [], [])
    assert len(captions["annotations"]) == 1


def test_a_picture_has_its_own_width_height_time_and_place(tmp_path: Path) -> None:
    captions, _ = written(tmp_path, clip("one", None, width_px=64, height_px=48, time_s=2.5), clip("two", None, width_px=30, height_px=40))
    first, second = captions["images"]
    assert first == {"id": 1, "file_name": "pictures/one/0001.jpg", "width": 64, "height": 48, "keyframe_id": "one:0001", "time_s": 2.5}
    assert (second["file_name"], second["width"], second["height"]) == ("pictures/two/0001.jpg", 30, 40)
    assert (tmp_path / "pictures" / "one" / "0001.jpg").read_bytes() == JPEG
    assert sorted(path.name for path in (tmp_path / "pictures").iterdir()) == ["one", "two"]


def test_a_picture_that_comes_from_no_video_has_no_time(tmp_path: Path) -> None:
    captions, _ = written(tmp_path, clip("one", None, time_s=None))
    assert captions["images"][0]["time_s"] is None


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("count", [1, 2, 3])
def test_pictures_and_both_files_are_counted(count: int, tmp_path: Path) -> None:
    assert coco.write(iter([sample(count=count)]), str(tmp_path), unheard) == count + 2
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == count + 2


def test_without_any_video_both_files_are_json_with_empty_lists(tmp_path: Path) -> None:
    told: list[str] = []
    assert coco.write(iter([]), str(tmp_path), told.append) == 2
    captions, instances = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("captions", "instances"))
    head = {"info": {"description": "Keyframes of videos, captions and detected objects", "version": "1.0"}, "licenses": []}
    assert captions == {**head, "images": [], "annotations": []}
    assert instances == {**head, "categories": [], "images": [], "annotations": []}
    assert told == ["No keyframe is described, so captions.json has pictures only. Run `vip caption` first to have captions."]


def test_one_caption_among_many_keyframes_is_enough_to_say_nothing(tmp_path: Path) -> None:
    one = sample(count=3)
    frames = [dataclasses.replace(frame, description=None) for frame in one.frames[:2]]
    coco.write(iter([VideoSample(one.video, (*frames, one.frames[2]))]), str(tmp_path), unheard)
    (row,) = json.loads((tmp_path / "captions.json").read_text())["annotations"]
    assert (row["id"], row["image_id"]) == (1, 3)


def test_the_name_of_a_category_is_that_of_the_detector_whatever_it_holds(tmp_path: Path) -> None:
    label = 'a "dog", \\ \n\x9b2J 草'
    _, instances = written(tmp_path, clip("one", (found(label),)))
    assert [row["name"] for row in instances["categories"]] == [label]
    text = (tmp_path / "instances.json").read_text(encoding="utf-8")
    assert "\x9b" not in text
    assert "草" in text


def test_an_export_that_fails_leaves_no_half_of_a_file(tmp_path: Path) -> None:
    """A folder stands where instances.json is to be written."""
    (tmp_path / "instances.json").mkdir()
    with pytest.raises(StoreError):
        coco.write(iter([sample(count=1)]), str(tmp_path), unheard)
    assert json.loads((tmp_path / "captions.json").read_text())["images"][0]["id"] == 1
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["captions.json"]
