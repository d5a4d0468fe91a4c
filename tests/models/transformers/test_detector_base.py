"""What any detector of the library gives: boxes inside the picture, the surest first, and the size of picture that it wants."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from vip.models.transformers.detector_base import FoundObject, _group_by_shape, relative_box, side_px, to_detections


@pytest.mark.parametrize(
    ("size", "side"),
    [
        ({"height": 640, "width": 480}, 640),
        ({"height": 480, "width": 640}, 640),
        ({"shortest_edge": 800, "longest_edge": 1333}, 1333),
        ({"shortest_edge": 800, "longest_edge": None}, 800),
        ({"longest_edge": 500, "height": 900, "width": 900}, 500),
    ],
)
@pytest.mark.parametrize("is_part", [False, True])
def test_pictures_are_wanted_with_the_longest_side_that_the_processor_makes(size: dict[str, Any], side: int, is_part: bool) -> None:
    processor = SimpleNamespace(size=size)
    assert side_px(SimpleNamespace(image_processor=processor) if is_part else processor) == side


@pytest.mark.parametrize(
    ("box", "kept"),
    [
        ((-0.2, -0.1, 1.2, 1.1), (0.0, 0.0, 1.0, 1.0)),
        ((0.1, 0.2, 0.3, 0.4), (0.1, 0.2, 0.3, 0.4)),
        ((0.5, 0.2, 0.5, 0.4), None),
        ((0.1, 0.4, 0.3, 0.4), None),
        ((0.3, 0.2, 0.1, 0.4), None),
        ((0.1, 0.4, 0.3, 0.2), None),
        ((1.1, 0.0, 1.4, 1.0), None),
        ((0.0, -0.5, 1.0, -0.1), None),
    ],
)
def test_boxes_end_at_the_edges_and_none_is_empty(box: tuple[float, float, float, float], kept: tuple[float, ...] | None) -> None:
    found = to_detections([FoundObject("dog", 0.5, box)], "x")
    assert [one.box_xyxy for one in found] == ([] if kept is None else [kept])


def test_the_surest_comes_first_and_of_those_as_sure_the_leftmost() -> None:
    rows = [
        FoundObject("Red \n Cup", 0.51234567, (0.2, 0.0, 1.0, 1.0)),
        FoundObject("dog", 1.01, (0.4, 0.0, 1.0, 1.0), "region"),
        FoundObject("cat", 0.51234999, (0.1, 0.0, 1.0, 1.0)),
        FoundObject(" ", 0.9, (0.1, 0.0, 1.0, 1.0)),
    ]
    found = [(one.label, one.score, one.box_xyxy[0], one.kind, one.source) for one in to_detections(rows, "x")]
    assert found == [("dog", 1.0, 0.4, "region", "x"), ("cat", 0.5123, 0.1, "object", "x"), ("red cup", 0.5123, 0.2, "object", "x")]


def test_pixels_are_counted_by_width_and_by_height() -> None:
    picture: Any = SimpleNamespace(width=200, height=100)
    assert relative_box([20, 20, 100, 50], picture) == (0.1, 0.2, 0.5, 0.5)


def test_pictures_of_one_shape_are_together_wherever_they_stand() -> None:
    shapes = [(4, 6, 3), (6, 4, 3), (4, 6, 3), (4, 4, 3), (6, 4, 3)]
    assert _group_by_shape([np.zeros(shape, np.uint8) for shape in shapes]) == [[0, 2], [1, 4], [3]]
    assert _group_by_shape([]) == []
