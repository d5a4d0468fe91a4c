"""Errors where people agree: Table 7, the page, the CSV file."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from unicodedata import category

import pytest

from tests.metrics.golden import golden
from tests.tasks.described import described_folder
from tests.tasks.fiber.made import record
from vip import store
from vip.errors import InputError
from vip.store import load_run
from vip.tasks.fiber.errors import (
    BlankCase,
    FilledBlank,
    _view,
    count_confusions,
    order_cases,
    read_cases,
    write_error_page,
    write_error_rows,
)
from vip.tasks.fiber.records import FiberRecord, write_records
from vip.tasks.fiber.task import sample_of
from vip.tasks.files import write_samples
from vip.tasks.page_samples import PagePictures
from vip.tasks.records import FreeText, Prediction, SamplePicture


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


def case(f1s: list[float], agreement: float | None, name: str = "a", *, text: str = "wolf", status: str = "ok") -> BlankCase:
    filled = tuple(FilledBlank(f"m{place}", text, f1, f1 == 100, status) for place, f1 in enumerate(f1s))
    return BlankCase(sample_of(agreed("a dog", name)), ("dog",), filled, agreement)


@pytest.mark.parametrize(
    ("f1s", "agreement", "is_error"),
    [([0.0], 0.5, True), ([0.0], 0.49, False), ([0.0], None, True), ([100.0], 1.0, False), ([100.0, 0.0], 0.5, True)],
)
def test_from_half_of_the_people_on_they_agree(f1s: list[float], agreement: float | None, is_error: bool) -> None:
    assert case(f1s, agreement).is_error == is_error


def test_errors_come_where_models_differ_most_then_where_people_agree_most_then_the_worst() -> None:
    cases = [
        case([0.0, 0.0], 0.6, "less"),
        case([0.0, 50.0], 0.5, "half"),
        case([0.0, 100.0], 0.5, "most"),
        case([20.0, 20.0], 0.8, "better"),
        case([0.0, 0.0], 0.8, "worse"),
        case([0.0, 0.0], None, "unknown"),
    ]
    assert [one.sample.video for one in order_cases(cases)] == ["most", "half", "worse", "better", "less", "unknown"]


def test_what_has_no_answer_is_confused_with_nothing_and_the_most_frequent_confusion_comes_first() -> None:
    cases = [
        case([0.0], 1.0, "1"),
        case([0.0], 1.0, "2", text="The Wolf!"),
        case([0.0], 1.0, "3", text="a cat"),
        case([0.0], 1.0, "4", text="", status="refused"),
        case([100.0], 1.0, "5", text="dog"),
    ]
    assert count_confusions(cases) == [("m0", "wolf", "dog", 2), ("m0", "cat", "dog", 1)]
    many = [case([0.0], 1.0, str(number), text=f"thing{number}") for number in range(30)]
    assert len(count_confusions(many)) == 20


def test_people_agree_where_two_of_them_answered(tmp_path: Path) -> None:
    records = [
        record("a dog", "none"),
        record("a dog", "one", additional_answers=[["dog"]]),
        record("a dog", "two", additional_answers=[["dog"], ["cat", "wolf"]]),
        record("a dog", "three", additional_answers=[["wolf"], ["cat", "wolf"], []]),
    ]
    write_records(tmp_path / "val.json", records)
    wrong = write_predictions(tmp_path / "p.json", ["x"] * 4)
    assert [one.agreement for one in read_cases(tmp_path / "val.json", [wrong])] == [None, None, 0.5, 0.5]


def test_files_of_one_name_are_told_apart_and_samples_know_no_agreement(tmp_path: Path) -> None:
    records = [agreed("a dog", "x")]
    write_records(tmp_path / "val.json", records)
    write_samples(tmp_path / "val.jsonl", map(sample_of, records))
    paths = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        paths.append(write_predictions(tmp_path / name / "p.json", ["cat"]))
    (of_records,), (of_samples,) = (read_cases(tmp_path / name, paths) for name in ("val.json", "val.jsonl"))
    assert [one.model for one in of_records.filled] == list(map(str, paths))
    assert (of_records.agreement, of_samples.agreement) == (1.0, None)


def test_rows_and_page_say_how_many_people_agree_and_show_three_frames(tmp_path: Path) -> None:
    folder = described_folder(tmp_path / "park", 9)
    ids = [keyframe.id for keyframe in load_run(folder).keyframes]
    digests = [sha256(keyframe.data).hexdigest() for keyframe in load_run(folder).keyframes]
    pictures = tuple(SamplePicture(source=str(folder), keyframe_id=name, sha256=digest) for name, digest in zip(ids, digests, strict=True))
    shown = case([25.0], 2 / 3)
    shown = replace(shown, sample=shown.sample.model_copy(update={"context": pictures}))
    assert write_error_rows(tmp_path / "e.csv", [shown, case([100.0], 1.0)]) == 1
    with (tmp_path / "e.csv").open(newline="", encoding="utf-8") as file:
        head, row = csv.reader(file)
    assert head == ["sample", "video", "masked_caption", "label", "answers", "agreement", "m0", "m0 F1"]
    assert row == ["a_000005_000015", "a", "There is _____.", "a dog", "dog", "66.7", "wolf", "25.0"]
    view = _view(shown, PagePictures(), tmp_path / "samples.jsonl")
    assert [view.frames, view.agreement, (view.before, view.after)] == [
        [PagePictures().of_piece(shown.sample, pictures[place], tmp_path / "samples.jsonl") for place in (1, 4, 7)],
        "67 % of first answers agree",
        ("There is ", "."),
    ]
    write_error_page(tmp_path / "e.html", [shown, case([100.0], 1.0), case([0.0], 0.2)], samples=tmp_path / "samples.jsonl")
    page = (tmp_path / "e.html").read_text(encoding="utf-8")
    assert page.count("<img") == 3
    facts = re.findall(r"<dt>([^<]+)</dt>\s*<dd>\s*(?:<[^>]+>)*([^<]+)", page)
    assert [(name, value.strip()) for name, value in facts][:3] == [("Blanks", "3"), ("People agree", "2"), ("Errors", "1")]


def test_what_is_no_blank_with_answers_has_no_errors(tmp_path: Path) -> None:
    sample = sample_of(agreed("a dog", "x"))
    store.write_rows(tmp_path / "p.jsonl", [Prediction(sample_id=sample.id, value="dog")])
    for change in ({"reference": None}, {"ask": FreeText(question="What?")}):
        write_samples(tmp_path / "samples.jsonl", [sample.model_copy(update=change)])
        with pytest.raises(InputError, match='The sample "x_000005_000015" is no blank with answers'):
            read_cases(tmp_path / "samples.jsonl", [tmp_path / "p.jsonl"])
