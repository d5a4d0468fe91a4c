"""The detector `file`: what it reads, what it matches, and what it says about a file that is not right."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vip import registry
from vip.errors import BackendError, InputError, UsageError
from vip.models.detections_file import DetectionsFile
from vip.protocols import PictureOrigin
from vip.records import Detection

PICTURE = np.zeros((40, 60, 3), np.uint8)
DOG: dict[str, Any] = {"label": "dog", "score": 0.9, "box_xyxy": [0.1, 0.2, 0.5, 0.9]}


def written(folder: Path, *lines: object) -> Path:
    path = folder / "found.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines), "utf-8")
    return path


def labels_at(path: Path, *places: PictureOrigin) -> list[list[str] | None]:
    found = DetectionsFile(str(path)).detect([PICTURE] * len(places), places)
    return [None if rows is None else [row.label for row in rows] for rows in found]


def at(time_s: float, label: str) -> dict[str, Any]:
    return {"time_s": time_s, "detections": [{**DOG, "label": label}]}


def test_a_line_becomes_detections_the_surest_first_in_small_letters(tmp_path: Path) -> None:
    cup = {"label": " Red Cup ", "score": 0.95, "box_xyxy": [0, 0, 1, 1], "kind": "region"}
    path = written(tmp_path, {"time_s": 2, "detections": [DOG, cup]})
    detector = registry.detector(f"file:{path}")
    assert detector.name == f"file:{path}"
    assert detector.detect([PICTURE], [PictureOrigin(time_s=2.0)]) == [
        [
            Detection(label="red cup", score=0.95, box_xyxy=(0.0, 0.0, 1.0, 1.0), source="file", kind="region"),
            Detection(label="dog", score=0.9, box_xyxy=(0.1, 0.2, 0.5, 0.9), source="file"),
        ]
    ]


def test_boxes_in_pixels_become_fractions_and_are_cut_at_the_edge(tmp_path: Path) -> None:
    line = {"time_s": 0, "width_px": 200, "height_px": 100, "source": "detic"}
    path = written(tmp_path, {**line, "detections": [{**DOG, "box_xyxy": [-1.5, 50, 100, 100.4]}]})
    (found,) = DetectionsFile(str(path)).detect([PICTURE], [PictureOrigin(time_s=0.0)])
    assert found == [Detection(label="dog", score=0.9, box_xyxy=(0.0, 0.5, 0.5, 1.0), source="detic")]


@pytest.mark.parametrize(
    ("size", "box", "kept"),
    [
        ({}, [-0.01, -0.01, 1.01, 1.01], (0.0, 0.0, 1.0, 1.0)),
        ({}, [0, 0, 1e-9, 1e-9], (0.0, 0.0, 1e-9, 1e-9)),
        ({"width_px": 400, "height_px": 100}, [100, 25, 200, 50], (0.25, 0.25, 0.5, 0.5)),
        ({"width_px": 400, "height_px": 100}, [-4, -1, 404, 101], (0.0, 0.0, 1.0, 1.0)),
    ],
)
def test_width_goes_across_and_height_down_and_a_hundredth_over_the_edge_is_rounding(
    size: dict[str, int], box: list[float], kept: tuple[float, ...], tmp_path: Path
) -> None:
    path = written(tmp_path, {"time_s": 0, **size, "detections": [{**DOG, "box_xyxy": box}]})
    (found,) = DetectionsFile(str(path)).detect([PICTURE], [PictureOrigin(time_s=0.0)])
    assert found is not None
    assert [one.box_xyxy for one in found] == [pytest.approx(kept)]


def test_of_those_as_sure_the_leftmost_comes_first_and_scores_have_four_digits(tmp_path: Path) -> None:
    boxes = {"c": [0.3, 0, 1, 1], "a": [0.1, 0.2, 1, 1], "b": [0.1, 0.1, 1, 1]}
    rows = [{"label": name, "score": 0.123456, "box_xyxy": box} for name, box in boxes.items()]
    (found,) = DetectionsFile(str(written(tmp_path, {"time_s": 0, "detections": rows}))).detect([PICTURE], [PictureOrigin(time_s=0.0)])
    assert [(one.label, one.score) for one in found or ()] == [("b", 0.1235), ("a", 0.1235), ("c", 0.1235)]


def test_what_is_returned_can_be_changed_without_harm_to_the_next_answer(tmp_path: Path) -> None:
    path = written(tmp_path, at(1.0, "by time"), {"keyframe": "0001.jpg", "detections": [DOG]})
    detector = DetectionsFile(str(path))
    for place in (PictureOrigin(1.0), PictureOrigin(None, "0001.jpg")):
        (first,) = detector.detect([PICTURE], [place])
        assert first
        first.clear()
        assert detector.detect([PICTURE], [place]) != [[]]


def test_a_file_of_names_alone_or_in_the_home_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, {"keyframe": "0001.jpg", "detections": [DOG]})
    monkeypatch.setenv("HOME", str(tmp_path))
    detector = DetectionsFile("~/found.jsonl")
    assert detector.detect([PICTURE] * 2, [PictureOrigin(1.0, "0001.jpg"), PictureOrigin(1.0)])[1] is None


def test_the_nearest_time_within_half_a_second_counts_and_the_earlier_of_two(tmp_path: Path) -> None:
    path = written(tmp_path, at(3.0, "third"), at(1.0, "first"), at(1.5, "second"))
    times = {
        0.4: None,
        0.5: ["first"],
        1.2: ["first"],
        1.25: ["first"],
        1.26: ["second"],
        2.0: ["second"],
        2.3: None,
        3.5: ["third"],
        3.6: None,
    }
    assert labels_at(path, *(PictureOrigin(time_s=time_s) for time_s in times)) == list(times.values())


def test_a_name_counts_before_a_time_whatever_its_folder(tmp_path: Path) -> None:
    names = {"keyframe": "run/keyframes/0001.jpg", "detections": [{**DOG, "label": "by name"}]}
    windows = {"keyframe": "run\\0002.jpg", "detections": []}
    path = written(tmp_path, at(1.0, "by time"), names, windows)
    places = [
        PictureOrigin(1.0, "0001.jpg"),
        PictureOrigin(1.0, "0009.jpg"),
        PictureOrigin(None, "0002.jpg"),
        PictureOrigin(None, "0009.jpg"),
        PictureOrigin(),
    ]
    assert labels_at(path, *places) == [["by name"], ["by time"], [], None, None]


def test_a_picture_that_the_file_does_not_tell_of_is_unknown_and_one_without_objects_is_not(tmp_path: Path) -> None:
    path = written(tmp_path, {"time_s": 1.0, "detections": []})
    detector = DetectionsFile(str(path))
    assert detector.detect([PICTURE, PICTURE], [PictureOrigin(1.0), PictureOrigin(9.0)]) == [[], None]
    assert detector.detect([PICTURE]) == [None]
    assert detector.detect([]) == []


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    path = written(tmp_path, at(1.0, "cat"))
    assert labels_at(path, PictureOrigin(1.0)) == [["cat"]]
    first = registry.detector(f"file:{path}")
    written(tmp_path, at(1.0, "dog"))
    again = registry.detector(f"file:{path}").detect([PICTURE], [PictureOrigin(1.0)])
    assert again != first.detect([PICTURE], [PictureOrigin(1.0)])


def test_blank_lines_a_byte_order_mark_and_odd_characters_do_no_harm(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeff" + json.dumps(at(1.0, "dog\u2028cat"), ensure_ascii=False), "", "   ", at(2.0, "cup"))
    assert labels_at(path, PictureOrigin(1.0), PictureOrigin(2.0)) == [["dog\u2028cat"], ["cup"]]


WRONG: dict[str, tuple[object, str]] = {
    "no JSON": ("dog", "line 2: Invalid JSON"),
    "a list": ([], "line 2: Input should be an object"),
    "neither": ({"detections": []}, 'line 2: write either "time_s"'),
    "both": ({"detections": [], "time_s": 1, "keyframe": "a.jpg"}, 'line 2: write either "time_s"'),
    "no detections": ({"time_s": 1}, "line 2: detections: Field required"),
    "misspelt": ({"time_s": 1, "detections": [], "sorce": "x"}, "line 2: sorce: Extra inputs"),
    "score": ({"time_s": 1, "detections": [{**DOG, "score": 93}]}, r"line 2: detections\.0\.score: .*less than or equal to 1"),
    "not a number": ('{"time_s": NaN, "detections": []}', "line 2: time_s: .*finite"),
    "no label": ({"time_s": 1, "detections": [{**DOG, "label": " "}]}, r"line 2: detections\.0\.label"),
    "three numbers": ({"time_s": 1, "detections": [{**DOG, "box_xyxy": [0, 0, 1]}]}, r"line 2: detections\.0\.box_xyxy"),
    "pixels": ({"time_s": 1, "detections": [{**DOG, "box_xyxy": [10, 20, 300, 400]}]}, 'line 2: the box .* for pixels write "width_px"'),
    "left of right": ({"time_s": 1, "detections": [{**DOG, "box_xyxy": [0.5, 0, 0.4, 1]}]}, "line 2: the box .* is empty: write left, top"),
    "top of bottom": ({"time_s": 1, "detections": [{**DOG, "box_xyxy": [0, 0.5, 1, 0.5]}]}, "line 2: the box .* is empty"),
    "left beyond": ({"time_s": 1, "detections": [{**DOG, "box_xyxy": [-0.02, 0, 1, 1]}]}, "line 2: the box .* lies outside the picture"),
    "width alone": ({"time_s": 1, "height_px": 10, "detections": []}, 'line 2: write both "width_px" and "height_px"'),
    "no width": ({"time_s": 1, "width_px": 0, "height_px": 10, "detections": []}, "line 2: width_px: .*greater than 0"),
    "below zero": ({"time_s": 1, "detections": [{**DOG, "score": -0.1}]}, r"line 2: detections\.0\.score: .*greater than or equal to 0"),
    "one side": ({"time_s": 1, "width_px": 10, "detections": []}, 'line 2: write both "width_px" and "height_px"'),
    "beyond the pixels": (
        {"time_s": 1, "width_px": 10, "height_px": 10, "detections": [{**DOG, "box_xyxy": [0, 0, 12, 5]}]},
        "line 2: the box .* lies outside the picture",
    ),
    "kind": ({"time_s": 1, "detections": [{**DOG, "kind": "thing"}]}, r"line 2: detections\.0\.kind"),
    "time twice": (at(7, "dog"), "line 2: 7 s stands there before"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_line_that_is_not_right_is_named_with_its_number_and_what_to_write(name: str, tmp_path: Path) -> None:
    line, message = WRONG[name]
    path = written(tmp_path, at(7.0, "dog"), line)
    with pytest.raises(InputError, match=message) as caught:
        DetectionsFile(str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_keyframe_that_stands_there_twice_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, {"keyframe": "a/1.jpg", "detections": []}, {"keyframe": "b/1.jpg", "detections": []})
    with pytest.raises(InputError, match=r"line 2: 1\.jpg stands there before"):
        DetectionsFile(str(path))


def test_files_that_are_missing_empty_or_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"There is no file .*gone\.jsonl"):
        DetectionsFile(str(tmp_path / "gone.jsonl"))
    with pytest.raises(InputError, match=r"is empty\. Write a line for each picture"):
        DetectionsFile(str(written(tmp_path, "", " ")))
    with pytest.raises(InputError, match="cannot be read"):
        DetectionsFile(str(tmp_path))
    (tmp_path / "picture.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    with pytest.raises(InputError, match="cannot be read"):
        DetectionsFile(str(tmp_path / "picture.jpg"))


def test_it_needs_a_path_and_takes_no_labels(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"--detector file:detections\.jsonl"):
        registry.detector("file")
    with pytest.raises(UsageError, match="--labels dog"):
        registry.detector(f"file:{written(tmp_path, at(1.0, 'dog'))}", labels=("dog",))


def test_a_pipe_in_the_place_of_the_file_holds_nothing_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "found.jsonl")
    with pytest.raises(InputError, match="cannot be read"):
        DetectionsFile(str(tmp_path / "found.jsonl"))
