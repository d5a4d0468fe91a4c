"""Captions of VATEX: both forms, ids with underscores, damage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.metrics.golden import golden
from vip.errors import InputError
from vip.tasks.fiber.vatex import MOST_BLANK_BYTES, CaptionedVideo, read_captions, split_video_id


def test_ids_are_split_from_the_right() -> None:
    assert split_video_id("G9zN5_TuGO4_000179_000189") == ("G9zN5_TuGO4", 179, 189)
    assert split_video_id("__a_000000_000010") == ("__a", 0, 10)
    for name in ("a_1", "_1_2", "a_1_x", "a_1_²"):
        with pytest.raises(ValueError, match="is not <id>_<start>_<end>"):
            split_video_id(name)


def test_both_forms_are_read(tmp_path: Path) -> None:
    expected = [CaptionedVideo("x_y", 3, 13, ("A dog.", "It rains."))]
    official = tmp_path / "vatex.json"
    official.write_text(json.dumps([{"videoID": "x_y_000003_000013", "enCap": ["A dog.", "It rains."], "chCap": ["狗"]}]), encoding="utf-8")
    lines = tmp_path / "vatex.jsonl"
    row = {"vid_name": "x_y_000003_000013", "descs": [{"desc": "A dog."}, {"desc": "It rains."}]}
    lines.write_text(f"\n{json.dumps(row)}\n", encoding="utf-8")
    assert list(read_captions(official)) == list(read_captions(lines)) == expected


def test_the_published_file_of_value_is_read() -> None:
    videos = list(read_captions(golden("vatex/en_c_val.jsonl.gz")))
    assert len(videos) == 3000
    assert {len(one.captions) for one in videos} == {10}
    assert {one.end_s - one.start_s for one in videos} == {10}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"videoID": "x_1_2"}]', "row 1: it has no descs"),
        ('[{"videoID": "x_1_2", "enCap": ["a"]}, {"enCap": []}]', "row 2: it has no vid_name"),
        ('[{"videoID": "x", "enCap": ["a"]}]', 'row 1: "x" is not <id>_<start>_<end>'),
        ('[{"videoID": "x_1_2", "enCap": [5]}]', "captions must be texts"),
        ('[{"videoID": 5, "enCap": []}]', "row 1: "),
        ("{", "line 1: it is no JSON"),
        ("5", "line 1: it is no JSON object"),
        ("[5]", "is no object"),
    ],
)
def test_a_fault_is_one_sentence_with_its_row(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "vatex.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        list(read_captions(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("space", ["", "\n", " \t\r\n  "])
def test_space_in_front_of_a_list_is_none_of_it(space: str, tmp_path: Path) -> None:
    path = tmp_path / "vatex.json"
    path.write_text(space + json.dumps([{"videoID": "x_1_2", "enCap": ["a"]}]), encoding="utf-8")
    assert list(read_captions(path)) == [CaptionedVideo("x", 1, 2, ("a",))]


def test_captions_are_bounded_in_letters_and_in_number(tmp_path: Path) -> None:
    path = tmp_path / "vatex.jsonl"
    for captions, is_read in ((["x" * 10_000], True), (["x" * 10_001], False), (["x"] * 1000, True), (["x"] * 1001, False), ([], True)):
        path.write_text(json.dumps({"videoID": "x_1_2", "enCap": captions}) + "\n", encoding="utf-8")
        if is_read:
            assert [len(one.captions) for one in read_captions(path)] == [len(captions)]
            continue
        with pytest.raises(InputError, match="row 1: captions must be texts of at most 10,000 letters, at most 1,000 a video"):
            list(read_captions(path))


@pytest.mark.parametrize("rest", ["[]", ""])
def test_a_file_that_begins_with_many_blanks_is_refused_at_once(rest: str, tmp_path: Path) -> None:
    path = tmp_path / "captions.json"
    path.write_text("\n" * (MOST_BLANK_BYTES - 1) + rest)
    assert list(read_captions(path)) == []
    path.write_text("\n" * MOST_BLANK_BYTES + (rest or "\n"))
    with pytest.raises(InputError, match="begins with more than 65,536 blank bytes"):
        list(read_captions(path))
