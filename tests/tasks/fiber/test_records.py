"""Records in the authors' form: written, read, refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.metrics.golden import golden
from tests.tasks.fiber.made import record
from vip.errors import InputError
from vip.tasks.fiber.records import read_records, write_records


def test_records_are_read_as_they_are_written(tmp_path: Path) -> None:
    rows = [record('a "dog" <b>🐶'), record("the man", additional_answers=[["he", "a man"], []])]
    path = tmp_path / "val.json"
    assert write_records(path, rows) == 2
    assert list(read_records(path)) == rows
    training, tested = json.loads(path.read_text(encoding="utf-8"))
    assert list(tested) == [
        *("video_id", "video_start_time", "video_end_time", "caption", "masked_caption", "label", "additional_answers"),
    ]
    assert "additional_answers" not in training
    assert rows[1].clip_id == "v_000005_000015"
    assert record(video_id="a_b", video_start_time=123456, video_end_time=1234567).clip_id == "a_b_123456_1234567"
    assert write_records(path, []) == 0
    assert list(read_records(path)) == []


def test_records_of_the_authors_form_are_read() -> None:
    rows = list(read_records(golden("fiber/records_made.json")))
    assert [len(row.additional_answers) for row in rows] == [5, 4, 3, 3]
    assert rows[0].answers.by_worker[1] == ("weight", "a bar")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"masked_caption": "no blank"}, r"the masked caption has 0 blanks \(_____\) instead of one"),
        ({"masked_caption": "_____ and _____"}, "has 2 blanks"),
        ({"label": None}, "row 2: label: "),
        ({"video_start_time": "5"}, "video_start_time: "),
        ({"additional_answers": ["a"]}, "additional_answers.0: "),
    ],
)
def test_a_fault_is_one_sentence_with_its_row(change: dict[str, object], message: str, tmp_path: Path) -> None:
    path = tmp_path / "val.json"
    good = record().model_dump()
    path.write_text(json.dumps([good, {**good, **change}]), encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        list(read_records(path))
    assert "row 2: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_letters_of_every_language_are_written_as_they_are(tmp_path: Path) -> None:
    made = [record("ein Vögelchen 鳥"), record("the dog", "w")]
    assert write_records(tmp_path / "r.json", made) == 2
    assert "ein Vögelchen 鳥" in (tmp_path / "r.json").read_text(encoding="utf-8")
    assert list(read_records(tmp_path / "r.json")) == made


def test_what_a_terminal_obeys_is_escaped(tmp_path: Path) -> None:
    made = [record("a \x9b31m dog \u202e and \x7f more")]
    write_records(tmp_path / "r.json", made)
    assert not set("\x9b\u202e\x7f") & set((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert list(read_records(tmp_path / "r.json")) == made


@pytest.mark.parametrize("answers", [[["dog"]] * 1001, [[]] * 1001, [["dog"] * 1001]])
def test_a_thousand_answers_of_a_record_are_read_and_no_more(answers: list[list[str]], tmp_path: Path) -> None:
    write_records(tmp_path / "r.json", [record(additional_answers=[["dog"]] * 1000), record(additional_answers=answers)])
    rows = read_records(tmp_path / "r.json")
    assert len(next(rows).additional_answers) == 1000
    with pytest.raises(InputError, match="row 2: it has more than 1,000 workers or answers"):
        next(rows)
