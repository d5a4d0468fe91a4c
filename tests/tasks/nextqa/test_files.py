"""The published files are read as they are, and what is wrong in others is named with its line."""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.metrics.golden import golden
from tests.tasks.nextqa.published import MC_COLUMNS, MC_ROWS, OE_COLUMNS, OE_ROWS, write_csv, write_json
from vip.errors import InputError
from vip.tasks.nextqa import files
from vip.tasks.nextqa.files import (
    ChosenOption,
    group_of,
    is_video_index,
    read_answers,
    read_choices,
    read_questions,
    read_token_predictions,
    read_video_index,
)
from vip.tasks.nextqa.suite import has_options, task_of


def test_every_question_of_the_published_files_is_read() -> None:
    choices = list(read_questions(golden("nextqa/mc_val.csv"), "nextqa-mc"))
    texts = list(read_questions(golden("nextqa/oe_val.csv"), "nextqa-oe"))
    assert (len(choices), len(texts)) == (4996, 5343)
    assert (choices[0].published_id, choices[0].type, choices[0].answer, choices[0].options[0]) == (
        "4010069381_6",
        "CH",
        0,
        "roll the handle",
    )
    assert (texts[0].published_id, texts[0].answer, texts[0].options, texts[0].frame_count) == (
        "3233088823_3",
        "from the drivers cabin",
        (),
        462,
    )


@pytest.mark.slow
def test_questions_of_the_training_set_that_share_an_id_are_kept_apart() -> None:
    ids = [question.id for question in read_questions(golden("nextqa/oe_train_answers.csv.gz"), "nextqa-oe")]
    assert len(ids) == len(set(ids)) == 37523
    assert sorted(name for name in ids if "/" in name) == ["3617262562_2/2", "4598213889_2/2", "4598213889_5/2"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "XX"}, 'line 3: "XX" is no type of question: expected one of CW, CH,'),
        ({"answer": "5"}, 'line 3: the answer "5" is no index from 0 to 4'),
        ({"answer": "run"}, r'line 3: the answer "run" is no index from 0 to 4; open-ended files are of nextqa-oe'),
        ({"video": ""}, "line 3: the column video is empty"),
        ({"a3": " "}, "line 3: the column a3 is empty"),
        ({"question": "q" * 30_000}, "line 3: it has more than 20,000 letters"),
    ],
)
def test_bad_rows_are_named_with_their_line(tmp_path: Path, change: dict[str, str], message: str) -> None:
    rows = [dict(zip(MC_COLUMNS, row, strict=True)) for row in MC_ROWS]
    rows[1].update(change)
    with pytest.raises(InputError, match=message):
        list(read_questions(write_csv(tmp_path / "val.csv", [tuple(row.values()) for row in rows]), "nextqa-mc"))


def test_bad_files_are_refused_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "val.csv"
    for data, message in (
        (b"", "has no column video; it has none"),
        (b"a,b\n1,2\n", "has no column video; it has a, b. Give the csv of NExT-QA"),
        (b"video,qid,type\n", "holds no question"),
        (b"video,qid,type\nv,1\n", "line 2: it has 2 columns, and the first line has 3"),
        (b'video,qid,type\nv,1,"CW\n', "line 2: unexpected end of data"),
        (b"video,qid,type\nv\xff,1,CW\n", "is no UTF-8 text after line"),
    ):
        path.write_bytes(data)
        with pytest.raises(InputError, match=message):
            list(read_questions(path, "nextqa-oe"))
    with pytest.raises(InputError, match="cannot be read: No such file"):
        list(read_questions(tmp_path / "none.csv", "nextqa-oe"))
    with pytest.raises(InputError, match="is no regular file"):
        list(read_questions(tmp_path, "nextqa-oe"))
    packed = tmp_path / "val.csv.gz"
    whole = gzip.compress(b"video,qid,type\n" + b"v,1,CW\n")
    for data in (whole[:-9], whole[:12] + b"\xff" * 10, b"no archive"):
        packed.write_bytes(data)
        with pytest.raises(InputError, match=r"(cannot be read|is no UTF-8 text) after line \d"):
            list(read_questions(packed, "nextqa-oe"))


def test_a_row_that_is_there_twice_is_refused_and_another_question_of_its_id_is_not(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 6: it repeats the question v1_1 of line 3"):
        list(read_questions(write_csv(tmp_path / "val.csv", [*MC_ROWS, MC_ROWS[1]]), "nextqa-mc"))
    other = ("v1", 100, 640, 480, "another", "answer", 0, "TC")
    found = list(read_questions(write_csv(tmp_path / "oe.csv", [*OE_ROWS, other], OE_COLUMNS), "nextqa-oe"))
    assert [question.id for question in found] == ["v1_0", "v1_1", "v2_0", "v1_0/2"]
    third = ("v1", 100, 640, 480, "a third", "answer", 0, "TC")
    found = list(read_questions(write_csv(tmp_path / "oe.csv", [*OE_ROWS, other, third], OE_COLUMNS), "nextqa-oe"))
    assert [question.id for question in found][3:] == ["v1_0/2", "v1_0/3"]
    with pytest.raises(InputError, match="line 7: it repeats the question v1_0 of line 5"):
        list(read_questions(write_csv(tmp_path / "oe.csv", [*OE_ROWS, other, third, other], OE_COLUMNS), "nextqa-oe"))
    for place, change in ((5, 2), (8, "to hide"), (12, "eat"), (4, "what then"), (7, "CH")):
        row = list(MC_ROWS[0])
        row[place] = change
        found = list(read_questions(write_csv(tmp_path / "mc.csv", [*MC_ROWS, row]), "nextqa-mc"))
        assert found[-1].id == "v1_0/2", "another answer, option, text or type makes another question"
    with pytest.raises(InputError, match=r"val\.csv, line 2: it has options; files with options are of nextqa-mc"):
        list(read_questions(tmp_path / "val.csv", "nextqa-oe"))


def test_answers_may_be_missing_or_normalised(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "q.csv", [("v", "1", "CW")], ("video", "qid", "type"))
    assert next(read_questions(path, "nextqa-oe")).answer is None
    path = write_csv(
        tmp_path / "t.csv", [("v", "1", "CW", "run fast", "")], ("video", "qid", "type", "reference_tokens", "prediction_tokens")
    )
    assert next(read_questions(path, "nextqa-oe")).answer == ("run", "fast")
    assert read_token_predictions(path) == ({"v_1": ()}, 0)


def test_results_are_read_and_doubled_ids_counted(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text('{"v1_0": {"prediction": 1, "answer": 0}, "v1_1": {"prediction": 7}, "v1_0": {"prediction": 2, "answer": 0}}')
    assert read_choices(path) == ({"v1_0": ChosenOption(2, 0), "v1_1": ChosenOption(7, None)}, 1)
    path.write_text('{"v1": {"0": "a dog", "1": "", "0": "cat"}, "v2": {}}')
    assert read_answers(path) == ({"v1_0": "cat", "v1_1": ""}, 1)


@pytest.mark.parametrize(
    ("reader", "text", "message"),
    [
        (read_choices, "[]", "holds no JSON object by id"),
        (read_choices, '{"v_1": 3}', 'the entry "v_1" has no prediction'),
        (read_choices, '{"v": {"0": "dog"}}', r"It looks like a result of nextqa-oe\."),
        (read_choices, '{"v_1": {"prediction": true}}', 'the entry "v_1" has no whole number'),
        (read_choices, '{"v_1": {"prediction": 1.0}}', 'the entry "v_1" has no whole number'),
        (read_choices, '{"v_1": {"prediction": NaN}}', "NaN is no number"),
        (read_choices, '{\n"v_1": ', r"line 2: it is no JSON \("),
        (read_choices, "[" * 100_000, "is no JSON"),
        (read_choices, '{"v_1": ' + "9" * 5000 + "}", "is no JSON"),
        (read_answers, '{"v_1": {"prediction": 1}}', r"It looks like a result of nextqa-mc\."),
        (read_answers, '{"v": "dog"}', 'the video "v" has no table of answers'),
        (read_answers, json.dumps({"v": {"0": "x" * 3000}}), 'the answer 0 of "v" has more than 2,000 letters'),
        (read_video_index, '{"v": "../v"}', 'the video "v" has no path below the folder of VidOR'),
        (read_video_index, '{"v": 1}', 'the video "v" has no path below'),
    ],
)
def test_bad_results_are_refused_with_a_sentence(tmp_path: Path, reader: Any, text: str, message: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        reader(path)


def test_results_larger_than_any_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_JSON_BYTES", 2**20)
    path = tmp_path / "r.json"
    path.write_bytes(b" " * (2**20 + 1))
    with pytest.raises(InputError, match="has more than 1 MB"):
        read_choices(path)


def test_types_are_grouped_as_the_tables_of_the_paper_have_them() -> None:
    assert {kind: group_of(kind) for kind in files.TYPES} == {
        **{kind: kind for kind in ("CW", "CH", "TC", "DC", "DL", "DO", "DB")},
        "TN": "TPN",
        "TP": "TPN",
    }


def test_an_answer_of_two_thousand_letters_is_one(tmp_path: Path) -> None:
    path = write_json(tmp_path / "r.json", {"v": {"0": "x" * 2000}})
    assert len(read_answers(path)[0]["v_0"]) == 2000
    write_json(path, {"v": {"0": "x" * 2001}})
    with pytest.raises(InputError, match="has more than 2,000 letters"):
        read_answers(path)


@pytest.mark.parametrize("place", ["/abs/v", "", ".", "a/../v", "a/./v", "a\\v", "..", "v/.."])
def test_a_path_of_vidor_stays_below_its_folder(place: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no path below the folder of VidOR"):
        read_video_index(write_json(tmp_path / "map.json", {"good": "1/good", "v": place}))


def test_words_of_a_table_are_read_by_their_ids_and_doubled_ones_counted(tmp_path: Path) -> None:
    columns = ("video", "qid", "prediction_tokens")
    path = write_csv(tmp_path / "t.csv", [("v", "1", "a dog"), ("w", "1", "cat"), ("v", "1", "fox")], columns)
    assert read_token_predictions(path) == ({"v_1": ("fox",), "w_1": ("cat",)}, 1)


def test_a_file_of_more_questions_than_there_are_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_csv(tmp_path / "val.csv", MC_ROWS)
    monkeypatch.setattr(files, "MOST_QUESTIONS", len(MC_ROWS))
    assert len(list(read_questions(path, "nextqa-mc"))) == len(MC_ROWS)
    monkeypatch.setattr(files, "MOST_QUESTIONS", len(MC_ROWS) - 1)
    with pytest.raises(InputError, match="it holds more than 3 rows"):
        list(read_questions(path, "nextqa-mc"))


def test_a_packed_file_of_more_letters_than_any_has_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_LETTERS", 10_000)
    packed = tmp_path / "val.csv.gz"
    packed.write_bytes(gzip.compress(b"video,qid,type,x\n" + b"".join(b"v,%d,CW,%s\n" % (i, b" " * 5000) for i in range(9))))
    with pytest.raises(InputError, match="line 3: up to here are more than 10,000 letters"):
        list(read_questions(packed, "nextqa-oe"))


def test_the_map_of_vidor_is_told_from_second_references(tmp_path: Path) -> None:
    index = write_json(tmp_path / "map_vid_vidorID.json", {"3238737531": "1164/3238737531"})
    references = write_json(tmp_path / "references.json", {"3238737531": {"0": "dog"}})
    assert read_video_index(index) == {"3238737531": "1164/3238737531"}
    assert (is_video_index(index), is_video_index(references)) == (True, False)


@settings(max_examples=40)
@given(st.binary(max_size=200))
@pytest.mark.slow
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "any.csv"
    path.write_bytes(b"video,qid,type,answer\n" + data)
    for reader in (lambda: list(read_questions(path, "nextqa-oe")), lambda: read_answers(path), lambda: read_choices(path)):
        with suppress(InputError):
            reader()


def test_columns_may_stand_in_any_order_and_quoted_columns_may_have_line_breaks(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([("type", "answer", "qid", "video", "question"), ("DO", "a\ndog", "7", "v", "what")])
    question = next(read_questions(path, "nextqa-oe"))
    assert (question.id, question.answer, question.line) == ("v_7", "a\ndog", 3)


def test_a_number_of_frames_of_thousands_of_digits_is_unknown(tmp_path: Path) -> None:
    row = list(MC_ROWS[0])
    row[1] = "1" * 5000
    path = write_csv(tmp_path / "val.csv", [row])
    assert [question.frame_count for question in read_questions(path, "nextqa-mc")] == [None]


def test_pipes_and_links_in_a_circle_hold_nothing_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "val.csv")
    (tmp_path / "p.jsonl").symlink_to("p.jsonl")
    with pytest.raises(InputError, match="is no regular file"):
        has_options(tmp_path / "val.csv")
    with pytest.raises(InputError, match="cannot be read"):
        task_of(tmp_path / "p.jsonl")


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[:10] + b"\xff" * 12, lambda data: b"no archive"])
def test_a_damaged_packed_result_is_one_sentence_and_a_whole_one_is_read(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path, data = tmp_path / "r.json.gz", gzip.compress(json.dumps({"v_1": {"prediction": 1}}).encode())
    path.write_bytes(data)
    assert read_choices(path) == ({"v_1": ChosenOption(1, None)}, 0)
    path.write_bytes(damage(data))
    with pytest.raises(InputError, match=r"r\.json\.gz cannot be read \(.*\)\. Download it again\."):
        read_choices(path)
    with pytest.raises(InputError, match=r"none\.json cannot be read: No such file"):
        read_choices(tmp_path / "none.json")
