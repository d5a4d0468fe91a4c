"""Rows of keyframes: what they say, and that clips are made of whole videos only."""

from __future__ import annotations

import pytest

from tests.corpus.making import sample
from vip.dataset.schema import picture_format, rows_of, sample_key, samples_of
from vip.records import RichFields


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
