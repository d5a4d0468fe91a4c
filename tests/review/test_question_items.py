"""vip.review.question_items: which files hold questions, and what is read of them"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.review.questions import how2qa_row, write_how2qa, write_options
from tests.review.test_blanks import write_blanks
from vip.errors import InputError
from vip.review.question_items import is_to_check, kind_of_file, read_question_items, shown_interval
from vip.tasks.files import write_samples
from vip.tasks.records import Blank, Choice, Reference, Sample, Subtitle


def sample(sample_id: str = "1", **values: object) -> Sample:
    given = {
        "task": "value-tvqa", "task_version": 1, "video": "show", "clip": "show_1", "start_s": 4.0, "end_s": 9.0,
        "ask": Choice(question="Who?", options=("Ann", "Ben")), "reference": Reference(values=(1,)), **values,
    }  # fmt: skip
    return Sample(id=sample_id, **given)  # type: ignore[arg-type]


def test_a_file_is_known_by_its_name_and_its_first_row(tmp_path: Path) -> None:
    write_samples(tmp_path / "choice.jsonl", [sample()])
    write_samples(tmp_path / "blank.jsonl", [sample(ask=Blank(text="_____ runs."))])
    write_options(tmp_path / "o.csv")
    (tmp_path / "o.csv.gz").write_bytes(gzip.compress((tmp_path / "o.csv").read_bytes()))
    write_how2qa(tmp_path / "h.jsonl")
    write_blanks(tmp_path / "b.json")
    (tmp_path / "broken.jsonl").write_bytes(b"\xff{")
    found = {path.name: kind_of_file(path) for path in tmp_path.iterdir()}
    assert {name for name, kind in found.items() if kind == "questions"} == {"choice.jsonl", "o.csv", "o.csv.gz", "h.jsonl"}


def test_options_of_nextqa_are_checked(tmp_path: Path) -> None:
    items = read_question_items(write_options(tmp_path / "o.csv"), None)
    assert [(item.id, item.answer, item.options[item.answer or 0], item.kind) for item in items] == [
        ("v0_0", 0, "right 0", "CW"),
        ("v1_1", 1, "right 1", "CW"),
        ("v2_2", 2, "right 2", "CW"),
    ]
    assert is_to_check(items)


def test_options_are_checked_only_where_a_program_made_all_of_them(tmp_path: Path) -> None:
    rows = [sample("1", task="nextqa-mc"), sample("2", task="nextqa-mc"), sample("3")]
    for count, is_checked in ((2, True), (3, False)):
        write_samples(tmp_path / "s.jsonl", rows[:count])
        assert is_to_check(read_question_items(tmp_path / "s.jsonl", None)) is is_checked


def test_published_questions_of_value_have_their_interval(tmp_path: Path) -> None:
    items = read_question_items(write_how2qa(tmp_path / "how2qa_val.jsonl"), None)
    assert next((item.id, item.video, item.start_s, item.end_s, item.answer) for item in items) == ("0", "v0", 0.5, 1.25, 0)
    assert not is_to_check(items)


@pytest.mark.parametrize(
    ("row", "task", "options"),
    [
        ({"example_id": 3, "statement": "He sits.", "answer": 1, "vid_name": "v", "file": "v"}, "value-violin", 2),
        ({"example_id": 3, "events": ["he goes", "he stays"], "answer": 0, "vid_name": "v", "ts": [1, 2]}, "value-vlep", 2),
        ({**how2qa_row(1), "a4": "Option 4."}, "value-tvqa", 5),
        (how2qa_row(1), "value-how2qa", 4),
    ],
)
def test_each_task_of_value_is_known_by_its_fields(tmp_path: Path, row: dict[str, object], task: str, options: int) -> None:
    (tmp_path / "q.jsonl").write_text(json.dumps(row) + "\n")
    (item,) = read_question_items(tmp_path / "q.jsonl", None)
    assert isinstance(item.source, Sample)
    assert (item.source.task, len(item.options)) == (task, options)


@pytest.mark.parametrize(
    ("value", "interval"),
    [
        ("36.58-58.52", (36.58, 58.52)),
        ([1, 2.5], (1.0, 2.5)),
        ("NaN-NaN", (None, None)),
        ([2, 1], (None, None)),
        ([2, 2], (None, None)),
        ("2.0-2", (None, None)),
        ([0, 1], (0.0, 1.0)),
        ([float("nan"), 1], (None, None)),
        ([0, 1e300], (None, None)),
        (None, (None, None)),
        (["a", 1], (None, None)),
    ],
)
def test_an_interval_has_a_start_before_its_end(value: object, interval: tuple[float | None, float | None]) -> None:
    assert shown_interval(value) == interval


def test_samples_keep_what_is_said_and_the_clip_that_is_at_hand(tmp_path: Path) -> None:
    clips = tmp_path / "clips"
    clips.mkdir()
    (clips / "show.mp4").write_bytes(b"x")
    said = Subtitle(start_s=4.0, end_s=5.0, text="Hello.")
    write_samples(tmp_path / "s.jsonl", [sample(context=(said,))])
    (item,) = read_question_items(tmp_path / "s.jsonl", clips)
    assert (item.clip, item.start_s, item.end_s, item.said) == (clips / "show.mp4", 4.0, 9.0, (said,))
    (clips / "show_1.mp4").write_bytes(b"x")  # a file of the clip alone begins at its own start
    (item,) = read_question_items(tmp_path / "s.jsonl", clips)
    assert (item.clip, item.start_s) == (clips / "show_1.mp4", None)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([sample(), sample()], "has the question 1 twice"),
        ([sample(), sample("2", ask=Blank(text="_____ runs."))], "The sample 2 is no question with 2 to 20 options"),
        ([sample(ask=Choice(question="?", options=tuple(map(str, range(21)))))], "is no question with 2 to 20 options"),
    ],
)
def test_what_is_no_list_of_questions_is_refused(tmp_path: Path, rows: list[Sample], message: str) -> None:
    write_samples(tmp_path / "s.jsonl", rows)
    with pytest.raises(InputError, match=message):
        read_question_items(tmp_path / "s.jsonl", None)


def test_an_answer_that_is_no_option_is_none(tmp_path: Path) -> None:
    write_samples(tmp_path / "s.jsonl", [sample(reference=Reference(values=(7,))), sample("2", reference=None)])
    assert [item.answer for item in read_question_items(tmp_path / "s.jsonl", None)] == [None, None]
