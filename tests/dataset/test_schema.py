"""Rows of keyframes: what they say, and that clips are made of whole videos only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.corpus.making import sample, with_text
from vip.dataset.schema import COLUMNS, picture_format, rows_of, sample_key, samples_of
from vip.records import Failure, RichFields


@pytest.mark.parametrize(
    ("name", "format_"), [("0001.JPEG", "jpg"), ("0001.jpg", "jpg"), ("a.b.PNG", "png"), ("x.tiff", "tif"), ("x.webp", "webp")]
)
def test_the_format_of_a_picture_has_one_name(name: str, format_: str) -> None:
    assert picture_format(name) == format_


def test_the_key_of_a_sample_has_no_dot() -> None:
    assert sample_key({"video_id": "a.b-1", "number": 7}) == "a_b-1_0007"


def test_a_row_says_what_is_known_of_its_keyframe() -> None:
    first, second = rows_of(sample("one", count=2, title="T", labels=("Dog",), subtitles={"en": "00:00.000 --> 00:02.900\nhello"}))
    assert (first["number"], second["number"], first["title"], first["labels"]) == (1, 2, "T", ["Dog"])
    assert (first["time_s"], first["width_px"], first["height_px"], first["sharpness"]) == (2.0, 64, 48, 101.0)
    assert (first["embedder"], first["subtitle"], second["subtitle"]) == ("classic", "hello", None)
    assert first["video"]["key"] == "one"
    assert second["video"] is None


def test_what_nobody_knows_of_a_keyframe_is_null_and_stays_unknown() -> None:
    whole = sample("one", count=1, described=False, duration_s=None, backends={}, file=None)
    keyframe = whole.frames[0].keyframe.model_copy(update=dict.fromkeys(("time_s", "pts", "detections", "candidate")))
    bare = replace(whole, frames=(replace(whole.frames[0], keyframe=keyframe, vector=None),))
    (row,) = rows_of(bare)
    given = {"video_id", "keyframe_id", "number", "picture", "picture_format", "width_px", "height_px", "sharpness", "brightness"}
    given |= {"contrast", "source", "labels", "verticals", "provenance", "video"}
    assert {name for name, value in row.items() if value is not None} == given
    assert list(row) == list(COLUMNS)
    assert list(samples_of([row])) == [bare]


def test_that_nothing_was_found_is_told_from_that_nobody_looked() -> None:
    whole = sample("one", count=2)
    keyframe = whole.frames[1].keyframe.model_copy(update={"detections": ()})
    first, second = rows_of(with_text(replace(whole, frames=(whole.frames[0], replace(whole.frames[1], keyframe=keyframe)))))
    assert first["detections"] == [
        {"label": "dog", "score": 0.75, "box_xyxy": [0.25, 0.5, 0.75, 1.2], "source": "opencv", "kind": "object"}
    ]
    assert second["detections"] == []
    assert (first["picture_text"], second["picture_text"]) == (["Exit"], None)


def test_how_a_keyframe_came_about_stands_in_each_row() -> None:
    made: dict[str, Any] = {"settings": {"count": 12}, "backends": {"embedder": "classic"}, "versions": {"vip": "1.0"}, "device": "cpu"}
    made["created_utc"] = "2026-01-01T00:00:00+00:00"
    first, second = rows_of(sample("one", count=2, title="T", **made))
    for row, number in ((first, 1), (second, 2)):
        about = row["provenance"]
        assert {name: about[name] for name in made} == made
        assert about.keys() == {*made, "keyframe", "description", "failure"}
        assert about["keyframe"] == {
            "pts": 2000 * number,
            "candidate": number,
            "detector": None,
            "image_path": f"keyframes/000{number}.jpg",
        }
        assert about["failure"] is None
        assert about["description"].keys() == {"recipe", "context", "topic", "calls", "time_s", "reviewed"}
    assert second["title"] == "T", "what few words say of a video is in each of its rows"


def test_why_a_keyframe_has_no_description_stands_in_its_row_and_comes_back() -> None:
    whole = sample("one", count=2, described=False)
    failure = Failure(item="one:0002", kind="refusal", message="It was refused.", exit_code=4)
    failed = replace(whole, frames=(whole.frames[0], replace(whole.frames[1], failure=failure)))
    rows = list(rows_of(failed))
    assert [row["caption_failure"] for row in rows] == [None, "It was refused."]
    assert list(samples_of(rows)) == [failed]


def test_a_video_of_which_rows_are_missing_is_no_clip() -> None:
    rows = list(rows_of(sample("one")))
    assert [one.video.key for one in samples_of(rows)] == ["one"]
    behind_the_first = [{**rows[1], "video": rows[0]["video"]}, rows[2]]
    for some in (rows[:1] + rows[2:], [rows[0], rows[2], rows[1]], behind_the_first):
        with pytest.raises(ValueError, match="keyframes of one are missing"):
            list(samples_of(some))


def test_a_picture_under_another_name_is_damage() -> None:
    rows = list(rows_of(sample("one", count=1)))
    rows[0]["picture"]["path"] = "other.jpg"
    with pytest.raises(ValueError, match=r"the picture of one:0001 is 'other\.jpg'"):
        list(samples_of(rows))


def test_a_row_from_before_the_rich_fields_is_read() -> None:
    one = sample("one", count=1)
    (row,) = rows_of(one)
    old = {name: value for name, value in row.items() if name not in RichFields.model_fields}
    assert list(samples_of([old])) == [one]
