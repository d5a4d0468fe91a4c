"""Questions and samples as models are given them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.tasks.nextqa.published import MC_ROWS, OE_COLUMNS, OE_ROWS, read, write_csv
from vip.errors import InputError
from vip.tasks.nextqa.mc import NextqaMultiChoice
from vip.tasks.nextqa.oe import NextqaOpenEnded
from vip.tasks.nextqa.trained_models import items_of_samples, read_items
from vip.tasks.records import Rank


def test_questions_of_a_file_keep_their_order_and_their_answers(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "train.csv", MC_ROWS)
    items = read_items(path, "nextqa-mc", file=1)
    assert [(item.id, item.video, item.answer, item.row, item.file) for item in items] == [
        ("v1_0", "v1", 1, 0, 1),
        ("v1_1", "v1", 4, 1, 1),
        ("v2_0", "v2", 0, 2, 1),
        ("v2_3", "v2", 2, 3, 1),
    ]
    assert items[0].options == ("to sleep", "to get the ball", "hungry", "to the cat", "walk")
    (tmp_path / "train.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert read_items(tmp_path / "train.csv.gz", "nextqa-mc", file=1) == items


def test_answers_to_yes_or_no_questions_must_be_exact(tmp_path: Path) -> None:
    items = read_items(write_csv(tmp_path / "train.csv", OE_ROWS, OE_COLUMNS), "nextqa-oe")
    assert [(item.answer, item.exact, item.options) for item in items] == [("dog", False, ()), ("cat", False, ()), ("dog", True, ())]


def test_a_model_never_sees_the_answer_of_a_sample(tmp_path: Path) -> None:
    samples = read(NextqaMultiChoice(), write_csv(tmp_path / "val.csv", MC_ROWS))
    items = list(items_of_samples(samples))
    assert [item.id for item in items] == [sample.id for sample in samples]
    assert {item.answer for item in items} == {None}
    assert items[3].question == "where is this"


def test_samples_that_ask_something_else_are_refused(tmp_path: Path) -> None:
    sample = read(NextqaOpenEnded(), write_csv(tmp_path / "val.csv", OE_ROWS, OE_COLUMNS))[0]
    with pytest.raises(InputError, match="The sample v1_0 has no question"):
        list(items_of_samples([sample.model_copy(update={"ask": Rank(query="dog")})]))
