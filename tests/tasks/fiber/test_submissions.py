"""vip.tasks.fiber.submissions: phrases of models, each at its own blank"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from vip.errors import InputError
from vip.tasks.fiber import submissions
from vip.tasks.fiber.submissions import is_records, read_fillers
from vip.tasks.records import Blank, Prediction, Sample


def sample(name: str, video: str = "") -> Sample:
    return Sample(id=name, task="fiber", task_version=1, video=video or name.partition("_")[0], ask=Blank(text="There is _____."))


TWO = [sample("x_1_2"), sample("y_1_2")]
ONE_VIDEO = [sample("x_1_2"), sample("x_3_4")]


def read(path: Path, value: Any, *samples: Sample) -> list[tuple[str, Any]]:
    path.write_text(json.dumps(value), encoding="utf-8")
    return [(one.sample_id, one.value) for one in read_fillers(path, samples)]


def test_a_list_is_in_the_order_of_the_records_and_an_object_in_any(tmp_path: Path) -> None:
    path, expected = tmp_path / "p.json", [("x_1_2", "dog"), ("y_1_2", "man")]
    assert read(path, ["dog", "man"], *TWO) == expected
    assert read(path, {"y_1_2": "man", "x_1_2": "dog"}, *TWO) == expected
    assert read(path, [], *()) == []
    assert list(read_fillers(path, [])) == []


def test_predictions_are_those_of_nobody_and_answered(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('["dog"]')
    assert list(read_fillers(tmp_path / "p.json", TWO[:1])) == [Prediction(sample_id="x_1_2", value="dog", status="ok", engine=None)]


def test_a_phrase_of_no_words_counts_as_it_is(tmp_path: Path) -> None:
    assert read(tmp_path / "p.json", ["", " dog "], *TWO) == [("x_1_2", ""), ("y_1_2", " dog ")]
    assert read(tmp_path / "p.json", {"x": "", "y_1_2": ""}, *TWO) == [("x_1_2", ""), ("y_1_2", "")]
    assert read(tmp_path / "p.json", {"x_1_2": "", "x_3_4": "b"}, *ONE_VIDEO) == [("x_1_2", ""), ("x_3_4", "b")]


def test_the_id_of_a_clip_counts_before_that_of_its_video_which_fills_one_blank(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    assert read(path, {"x": "video", "x_1_2": "clip"}, *ONE_VIDEO) == [("x_1_2", "clip"), ("x_3_4", "video")]
    with pytest.raises(InputError, match='has no phrase for "x_3_4"'):
        read(path, {"x": "video"}, *ONE_VIDEO)
    with pytest.raises(InputError, match='has 1 phrases of other videos, such as "x"'):
        read(path, {"x_1_2": "a", "x_3_4": "b", "x": "c"}, *ONE_VIDEO)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "has 0 phrases for 2 records"),
        (["a"] * 1001, "has 1,001 phrases for 2 records"),
        (["a", None], "holds something else than phrases"),
        (["a", ["b"]], "holds something else than phrases"),
        ({"x_1_2": "a", "y_1_2": None}, "holds something else than phrases"),
        ("ab", "holds something else than phrases"),
        (None, "holds something else than phrases"),
        ({}, 'has no phrase for "x_1_2"'),
        ({"x": "a", "y": "b", "u": "c", "t": "d"}, 'has 2 phrases of other videos, such as "u"'),
        ({"x": "a", "y": "b", "\n\x1b" + "u" * 90: "c"}, 'such as "[^"\n\x1b]{1,80}"\\.'),
    ],
)
def test_what_does_not_answer_exactly_these_samples_is_refused(value: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path / "p.json", value, *TWO)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b'["a",', b"[" * 10_000])
def test_what_is_no_json_is_refused_with_the_form_that_is_expected(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_bytes(data)
    with pytest.raises(InputError, match=r"p\.json is no JSON .*Expected \{"):
        list(read_fillers(tmp_path / "p.json", TWO))


def test_packed_phrases_are_read_and_too_many_bytes_are_not_also_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.json.gz"
    path.write_bytes(gzip.compress(json.dumps(["dog", "m" * 5000]).encode()))
    assert [len(str(one.value)) for one in read_fillers(path, TWO)] == [3, 5000]
    monkeypatch.setattr(submissions, "MOST_BYTES", 1000)
    with pytest.raises(InputError):
        list(read_fillers(path, TWO))


# ---------------------------------------------------------------- is it a file of blanks


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[{"masked_caption": "_____ runs."}]', True),
        ('[{"caption": "a masked_caption"}]', False),  # a text, and no name
        ('[{"caption": "A dog runs."}]', False),
        ("", False),
        (" " * (2**16 - 16) + '"masked_caption"', True),
        (" " * (2**16 - 15) + '"masked_caption"', False),  # no more than the beginning is read
    ],
)
@pytest.mark.parametrize("suffix", ["json", "json.gz"])
def test_a_file_has_blanks_where_its_beginning_names_them(suffix: str, text: str, expected: bool, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix == "json.gz" else text.encode())
    assert is_records(path) is expected


def test_whether_a_missing_file_has_blanks_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no file"):
        is_records(tmp_path / "none.json")
