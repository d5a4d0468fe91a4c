"""Whatever stands in a file that people review: the page has something to show, or one sentence says why not."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.review.corpora import action, make_described, open_state
from tests.review.test_blanks import write_blanks
from tests.review.test_rewrite import FAKE, correct
from tests.test_fuzz_records import changed, damage, works_or_is_one_sentence
from vip.errors import VipError
from vip.protocols import SilentObserver
from vip.review.blanks import BlankState, export_answers, log_path, read_items, shown_item
from vip.review.log import ReviewLog
from vip.review.question_export import export_questions
from vip.review.question_items import is_to_check, kind_of_file, read_question_items
from vip.review.question_state import QuestionState, shown_question
from vip.review.rewrite import expected_cost, rewrite_captions
from vip.tasks.records import Choice, Reference, Sample, Subtitle

ROUNDS = 25
OPTIONS = {f"a{number}": word for number, word in enumerate(("x", "y", "z", "w"))}
SAMPLE = Sample(
    id="1",
    task="nextqa-mc",
    task_version=1,
    video="v",
    groups={"type": ("CW",)},
    context=(Subtitle(start_s=1, end_s=2, text="hello"),),
    ask=Choice(question="Why?", options=("a", "b", "c", "d", "e")),
    reference=Reference(values=(1,)),
)
QUESTIONS: dict[str, dict[str, Any]] = {
    "how2qa": {"qid": 1, "q": "Why?", "vid_name": "v", "ts": "1-2", **OPTIONS, "answer_idx": 1, "type": "why"},
    "tvqa": {"qid": 1, "q": "Why?", "vid_name": "v", "ts": [1, 2], **OPTIONS, "a4": "u", "answer_idx": 1},
    "violin": {"example_id": "1", "file": "f", "statement": "s", "answer": 1, "ts": [1, 2.5]},
    "vlep": {"example_id": 1, "vid_name": "f", "events": ["s", "t"], "answer": 1, "ts": [1, 2.5]},
    "samples": json.loads(SAMPLE.model_dump_json()),
}


def review_blanks(path: Path) -> None:
    state = BlankState(read_items(path, None), ReviewLog(log_path(path)))
    for number in range(len(state.items)):
        json.dumps(shown_item(state, number, 1), allow_nan=False).encode()
    state.record([action(state.items[0].id, "answers", "a cat\na dog")])
    assert export_answers(state, path.with_suffix(".csv"), overwrite=True) == 1
    state.log.close()


def review_questions(path: Path) -> None:
    assert kind_of_file(path) == "questions"
    items = read_question_items(path, None)
    state = QuestionState(items, ReviewLog(log_path(path)), way="check" if is_to_check(items) else "answer")
    for number in range(len(items)):
        json.dumps(shown_question(state, number, "Ann"), allow_nan=False).encode()
    field, value = ("checked", "yes") if state.way == "check" else ("choice", "0")
    state.record([action(items[0].id, field, value)])
    export_questions(state, path.with_name("out.jsonl"), source=path, overwrite=True)
    state.log.close()


def try_anew(path: Path, text: str, review: Callable[[Path], None]) -> None:
    for one in path.parent.iterdir():
        one.unlink()
    path.write_text(text)
    works_or_is_one_sentence(lambda: review(path))


@pytest.mark.slow
def test_any_value_in_a_file_of_blanks(tmp_path: Path) -> None:
    chance, whole = random.Random("blanks"), write_blanks(tmp_path / "blanks.json").read_text()
    for _ in range(2 * ROUNDS):
        try_anew(tmp_path / "blanks.json", changed(whole, chance), review_blanks)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_any_value_in_a_file_of_questions(name: str, tmp_path: Path) -> None:
    chance, row = random.Random(name), QUESTIONS[name]
    key = next(key for key in ("id", "qid", "example_id") if key in row)
    lines = [json.dumps(row), json.dumps({**row, key: "2"})]
    for number in range(ROUNDS):
        damaged = [changed(line, chance) if place == number % 2 else line for place, line in enumerate(lines)]

        def review(path: Path) -> None:
            try:
                review_questions(path)
            except AssertionError:
                assert kind_of_file(path) == "blanks"  # the field that tells them apart is gone
                review_blanks(path)

        try_anew(tmp_path / "questions.jsonl", "\n".join(damaged) + "\n", review)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["keyframes.jsonl", "descriptions.jsonl", "review.sqlite"])
def test_captions_are_written_again_from_any_run_or_not_at_all(name: str, tmp_path: Path) -> None:
    chance, run = random.Random(name), tmp_path / "run"
    state = open_state(make_described(tmp_path / "whole", 3))
    for item in ("k0", "k1"):
        correct(state, item)
    state.log.close()

    def rewrite() -> None:
        opened = open_state(run)
        try:
            cost = expected_cost(opened, FAKE)
            done = rewrite_captions(opened, FAKE, observer=SilentObserver())
            assert len(done.written) + len(done.failed) == done.asked == cost.keyframes
        finally:
            opened.log.close()

    outcomes = set[bool]()
    for _ in range(ROUNDS):
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(tmp_path / "whole", run)
        damage(run / name, chance)
        works_or_is_one_sentence(rewrite)
        try:
            open_state(run).log.close()
            outcomes.add(True)
        except VipError:
            outcomes.add(False)
    assert outcomes == {True, False}  # some damage matters, and some does not
