"""Numbers of the schema `rich` held against what a detector counts in the same frame."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.captioning.keyframes import DIRECT, Scripted, run_folder
from tests.captioning.test_rich_fields import RICH
from tests.captioning.test_verify import verified
from vip.captioning.count_claims import check_counts
from vip.protocols import Request
from vip.records import Detection, ObjectCount, RichFields

FIELDS = RichFields.model_validate({**RICH, "camera_movement": "not known"})


def boxes(label: str, *scores: float) -> list[Detection]:
    return [Detection(label=label, score=score, box_xyxy=(0, 0, 0.5, 0.5), source="t") for score in scores]


def verdict(
    object: str,  # noqa: A002 - as the field is called
    count: int,
    found: Sequence[Detection] | None,
    *,
    detector: str | None = "detr",
    elsewhere: str = "",
) -> str:
    rich = FIELDS.model_copy(update={"counts": (ObjectCount(object=object, count=count),)})
    (check,) = check_counts(rich, found, detector, {*(one.label for one in found or ()), elsewhere})
    assert (check.field, check.claim) == ("counts", f"{object}: {count}")
    assert check.by == (() if check.verdict == "unchecked" else (detector,))
    return check.verdict


def test_a_number_that_the_detector_finds_is_supported() -> None:
    assert verdict("dog", 2, boxes("dog", 0.9, 0.8)) == "supported"
    assert verdict("children", 2, boxes("person", 0.9, 0.8)) == "unchecked", "two persons need be no children"


def test_more_than_stated_contradicts() -> None:
    assert verdict("dog", 1, boxes("dog", 0.9, 0.8)) == "unsupported"
    assert verdict("people", 1, boxes("woman", 0.9, 0.8)) == "unsupported"
    assert verdict("person", 1, boxes("face", 0.9, 0.8), detector="opencv") == "unsupported"


def test_more_of_a_wider_kind_contradicts_nothing() -> None:
    assert verdict("red car", 1, boxes("car", 0.9, 0.8, 0.7)) == "unchecked"
    assert verdict("woman", 1, boxes("person", 0.9, 0.8)) == "unchecked"
    assert verdict("hot dog", 1, boxes("dog", 0.9, 0.8)) == "unchecked"


def test_doubtful_boxes_are_no_more_than_stated() -> None:
    assert verdict("dog", 1, boxes("dog", 0.9, 0.3)) == "supported"
    assert verdict("dog", 2, boxes("dog", 0.9, 0.3)) == "unchecked"


def test_fewer_than_stated_contradicts_where_the_detector_finds_such_things() -> None:
    assert verdict("dog", 3, boxes("dog", 0.9, 0.3)) == "unsupported"
    assert verdict("women", 3, boxes("person", 0.9, 0.8)) == "unsupported"
    assert verdict("dog", 1, boxes("cat", 0.9), elsewhere="dog") == "unsupported"
    assert verdict("dog", 1, boxes("cat", 0.9)) == "unchecked", "it may not know dogs"
    assert verdict("dog", 3, boxes("brown dog", 0.9)) == "unchecked", "the others may be black"


def test_in_a_crowd_and_by_a_detector_that_misses_most_fewer_say_nothing() -> None:
    assert verdict("person", 40, boxes("person", *[0.9] * 25)) == "unchecked"
    assert verdict("person", 20, boxes("person", *[0.9] * 25)) == "unsupported"
    assert verdict("face", 3, boxes("face", 0.9), detector="opencv") == "unchecked"
    assert verdict("face", 1, boxes("face", 0.9), detector="opencv") == "supported", "what it finds is there all the same"
    assert verdict("face", 0, boxes("cat", 0.9), detector="opencv", elsewhere="face") == "unchecked"


def test_none_is_a_number_too() -> None:
    assert verdict("dog", 0, boxes("dog", 0.9)) == "unsupported"
    assert verdict("dog", 0, boxes("cat", 0.9), elsewhere="dog") == "supported"


@pytest.mark.parametrize(("found", "detector"), [(None, "detr"), ([], None)])
def test_where_nobody_looked_nothing_is_checked(found: list[Detection] | None, detector: str | None) -> None:
    assert verdict("dog", 3, found, detector=detector, elsewhere="dog") == "unchecked"


def test_a_region_is_no_object() -> None:
    region = Detection(label="dog", score=0.9, box_xyxy=(0, 0, 1, 1), source="t", kind="region")
    assert verdict("cat", 0, [region], elsewhere="cat") == "supported"
    assert verdict("dog", 1, [region, *boxes("dog", 0.8)]) == "supported", "it would be two"


def test_a_description_without_rich_fields_has_no_numbers() -> None:
    assert check_counts(None, boxes("dog", 0.9), "detr", {"dog"}) == []


def test_verify_marks_a_number_that_detections_contradict_and_asks_nobody_about_it(tmp_path: Path) -> None:
    def say(request: Request, number: int) -> Any:
        return {**RICH, "counts": [{"object": "person", "count": 3}]} if request.stage == "rich" else DIRECT

    engine = Scripted(say)
    rows = verified(run_folder(tmp_path / "a.vip", 2), engine, schema="rich")
    for row in rows:
        assert row.verification is not None
        (check,) = (check for check in row.verification.checks if check.field == "counts")
        assert (check.claim, check.verdict, check.by) == ("person: 3", "unsupported", ("test",))
        assert row.rich is not None
        assert row.rich.counts[0].count == 3, "it is marked, and not changed"
    assert all(request.stage != "verify" for request in engine.requests)
