"""Errors where people agree: Table 7, the page, the CSV file."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from unicodedata import category

import pytest

from tests.metrics.golden import golden
from tests.tasks.fiber.made import record
from vip import store
from vip.errors import InputError
from vip.tasks.fiber.errors import count_confusions, order_cases, read_cases, write_error_page, write_error_rows
from vip.tasks.fiber.records import FiberRecord, write_records
from vip.tasks.records import Prediction


def write_predictions(path: Path, phrases: list[str]) -> Path:
    path.write_text(json.dumps(phrases), encoding="utf-8")
    return path


def table_7() -> tuple[list[FiberRecord], dict[str, list[str]]]:
    rows = json.loads(golden("fiber/answers.json").read_text(encoding="utf-8"))["table7"]
    records = [
        record(
            one["correct_answers"][0],
            f"v{place}",
            masked_caption=one["masked_caption"],
            additional_answers=[[answer] for answer in one["correct_answers"][1:]],
        )
        for place, one in enumerate(rows)
    ]
    texts: dict[str, list[str]] = {}
    for one in rows:
        for prediction in one["predictions"]:
            texts.setdefault(prediction["method"], []).append(prediction["text"])
    return records, texts


def test_the_page_shows_table_7_as_printed(tmp_path: Path) -> None:
    records, texts = table_7()
    write_records(tmp_path / "val.json", records)
    names = [write_predictions(tmp_path / f"{name}.json", phrases) for name, phrases in texts.items()]
    cases = read_cases(tmp_path / "val.json", names)
    assert [[(one.text, one.f1) for one in case.filled] for case in cases] == [
        [("a tree", 0), ("a mountain", 100)],
        [("a gym", 0), ("a room", 100)],
        [("a woman", 0), ("a camera", 100)],
    ]
    samples = [case.__class__(case.sample, case.answers, case.filled, None) for case in cases]  # one answer a worker: none agrees
    assert order_cases(cases) == []
    assert len(order_cases(samples)) == 3
    write_error_page(tmp_path / "e.html", samples, samples=tmp_path / "val.json")
    page = (tmp_path / "e.html").read_text(encoding="utf-8")
    assert 'A person at the top of <b class="blank">_____</b> with ropes hanging down.' in page
    assert "adirondacks, cliff, climb, frozen waterfall, gully, hill, ice, icy cliff, ledge, mountain, ravine, slope, snow" in page
    for text in ("a tree</bdi> (0)", "a mountain</bdi> (100)", "a woman</bdi> (0)"):
        assert text in page


def agreed(label: str, video: str, **more: object) -> FiberRecord:
    return record(label, video, additional_answers=[[label, "thing"], [label]], **more)


def test_errors_are_wrong_answers_where_people_agree(tmp_path: Path) -> None:
    records = [
        agreed("a woman", "x"),
        agreed("a child", "y"),
        record("a cat", "z", additional_answers=[["lynx"], ["puma"]]),
        agreed("a man", "w"),
    ]
    write_records(tmp_path / "val.json", records)
    first = write_predictions(tmp_path / "first.json", ["man", "person", "dog", "the man"])
    second = write_predictions(tmp_path / "second.json", ["woman", "a person", "dog", "man"])
    cases = read_cases(tmp_path / "val.json", [first, second])
    assert [case.agreement for case in cases] == [1.0, 1.0, 0.0, 1.0]
    assert [case.sample.video for case in order_cases(cases)] == ["x", "y"]  # where the models differ first
    assert count_confusions(cases)[:2] == [("first", "dog", "cat", 1), ("first", "man", "woman", 1)]
    assert ("second", "person", "child", 1) in count_confusions(cases)


def test_texts_of_others_are_neither_markup_nor_formulas(tmp_path: Path) -> None:
    records = [agreed("=1+1", "<b>x</b>\x1b[2J\u202e", masked_caption='<script>alert(1)</script> "_____" & \x9b31mmore')]
    write_records(tmp_path / "val.json", records)
    wrong = write_predictions(tmp_path / "=p.json", ['=cmd|"<img src=x>"'])
    cases = read_cases(tmp_path / "val.json", [wrong])
    assert write_error_rows(tmp_path / "e.csv", cases) == 1
    with (tmp_path / "e.csv").open(newline="", encoding="utf-8") as file:
        head, row = csv.reader(file)
    assert not {category(letter) for cell in row for letter in cell} & {"Cc", "Cf"}
    assert head[6:] == ["'=p", "'=p F1"]
    assert (row[3], row[6]) == ("'=1+1", '\'=cmd|"<img src=x>"')
    write_error_page(tmp_path / "e.html", cases, samples=tmp_path / "val.json")
    page = (tmp_path / "e.html").read_text(encoding="utf-8")
    assert "alert(1)</script>" not in page
    assert "<img" not in page


def test_a_file_that_lacks_an_answer_is_refused(tmp_path: Path) -> None:
    write_records(tmp_path / "val.json", [agreed("a dog", "x"), agreed("a cat", "y")])
    store.write_rows(tmp_path / "p.jsonl", [Prediction(sample_id="x_000005_000015", value="dog")])
    with pytest.raises(InputError, match='has no answer to 1 blank, such as "y_000005_000015"'):
        read_cases(tmp_path / "val.json", [tmp_path / "p.jsonl"])
