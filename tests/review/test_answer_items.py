"""Open answers that people call correct or wrong, and the labels that a judge is held against."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.review.corpora import action
from tests.tasks.scoring import answer, sample
from vip import store
from vip.cli.app import run
from vip.errors import InputError, UsageError
from vip.review.answer_items import beside, read_answer_items
from vip.review.blanks import log_path
from vip.review.log import ReviewLog
from vip.review.question_export import export_questions, make_question_report
from vip.review.question_items import kind_of_file
from vip.review.question_state import QuestionState
from vip.tasks.files import write_samples
from vip.tasks.judge import read_labels
from vip.tasks.records import Choice, FreeText, Prediction, Reference, Sample

QUESTION = FreeText(question="What runs?")
RIGHT = Reference(values=("a dog",))
SAMPLES = [
    sample(str(number), "x", video=f"v{number}").model_copy(update={"id": str(number), "ask": QUESTION, "reference": RIGHT})
    for number in range(5)
]
WORDS = ["a dog", "the dog", "a fox", "a cat"]


def said(one: Sample, word: str) -> Prediction:
    return Prediction(sample_id=one.id, value=word)


def write(folder: Path, words: list[str] = WORDS, samples: list[Sample] = SAMPLES) -> tuple[Path, Path]:
    """Predictions, the last of which is none, and the samples beside them."""
    rows = [said(one, word) for one, word in zip(samples, words, strict=False)]
    store.write_rows(folder / "answers.jsonl", [*rows, answer(samples[-1], status="refused")])
    write_samples(folder / "samples.jsonl", samples)
    return folder / "answers.jsonl", folder / "samples.jsonl"


def opened(path: Path, samples: Path) -> QuestionState:
    return QuestionState(read_answer_items(path, samples, None), ReviewLog(log_path(path)), way="answer")


def judge(state: QuestionState, number: int, **said: str) -> None:
    for name, word in said.items():
        state.record([action(state.items[number].id, "choice", str(("correct", "wrong").index(word)), by=name)])


def judged(path: Path, samples: Path) -> QuestionState:
    """A majority for correct and one for wrong, a tie, and an answer that nobody judged."""
    state = opened(path, samples)
    judge(state, 0, Ann="correct", Ben="correct", Cem="wrong")
    judge(state, 1, Ann="correct", Ben="wrong")
    judge(state, 2, Ann="wrong")
    return state


def test_an_answer_stands_beside_its_question_and_what_is_right(tmp_path: Path) -> None:
    path, samples = write(tmp_path)
    assert kind_of_file(path) == "questions"
    first, *others = read_answer_items(path, samples, None)
    assert len(others) == 3, "the refusal is no answer to judge"
    assert first.options == ("correct", "wrong")
    assert first.text.splitlines() == ["What runs?", "Known as right: a dog", "Answer: a dog"]
    assert (first.video, first.answer) == ("v0", None)


def test_samples_beside_the_answers_are_there_and_no_link(tmp_path: Path) -> None:
    answers, samples = write(tmp_path)
    assert beside(answers) == samples == tmp_path / "samples.jsonl"
    samples.rename(tmp_path / "elsewhere.jsonl")
    with pytest.raises(UsageError, match="has answers, which are judged beside their questions"):
        beside(answers)
    samples.symlink_to(tmp_path / "elsewhere.jsonl")
    with pytest.raises(InputError, match=r"samples\.jsonl is a link"):
        beside(answers)


def test_the_labels_are_what_the_judge_reads(tmp_path: Path) -> None:
    path, samples = write(tmp_path)
    state = judged(path, samples)
    done = export_questions(state, tmp_path / "people.csv", source=path)
    assert (done.written, done.left_out) == (2, 2)
    assert read_labels(done.path) == {"0": True, "2": False}
    assert done.next.startswith(f"`vip.score({path}") or done.next == f"`vip score {path} --judge ENGINE --judge-labels {done.path}`"
    assert make_question_report(state)["majority"] is None


def test_a_verdict_on_another_answer_does_not_count(tmp_path: Path) -> None:
    path, samples = write(tmp_path)
    judged(path, samples).log.close()
    write(tmp_path, ["a dog", "the dog", "a wolf", "a cat"])
    done = export_questions(opened(path, samples), tmp_path / "people.csv", source=path)
    assert read_labels(done.path) == {"0": True}


@pytest.mark.parametrize("name", ["people.jsonl", "people.txt"])
def test_labels_are_a_table(name: str, tmp_path: Path) -> None:
    path, samples = write(tmp_path)
    with pytest.raises(UsageError, match=r"Name a file with \.csv"):
        export_questions(judged(path, samples), tmp_path / name, source=path)


def test_labels_that_are_there_are_not_replaced_unasked(tmp_path: Path) -> None:
    path, samples = write(tmp_path)
    (tmp_path / "people.csv").write_text("mine")
    state = judged(path, samples)
    with pytest.raises(UsageError, match=r"people\.csv exists already"):
        export_questions(state, tmp_path / "people.csv", source=path)
    assert (tmp_path / "people.csv").read_text() == "mine"
    export_questions(state, tmp_path / "people.csv", source=path, overwrite=True)
    assert read_labels(tmp_path / "people.csv") == {"0": True, "2": False}


def test_a_file_that_does_not_fit_is_named(tmp_path: Path) -> None:
    path, samples = write(tmp_path)
    write_samples(samples, SAMPLES[1:])
    with pytest.raises(InputError, match=r"samples\.jsonl lacks the sample 0"):
        read_answer_items(path, samples, None)
    write_samples(samples, SAMPLES)
    store.write_rows(path, [said(SAMPLES[0], "a dog"), said(SAMPLES[0], "a cat")])
    with pytest.raises(InputError, match="answers the sample 0 twice"):
        read_answer_items(path, samples, None)


def test_the_clip_is_shown_before_the_video_and_then_whole(tmp_path: Path) -> None:
    (tmp_path / "clips").mkdir()
    asked = [one.model_copy(update={"clip": f"c{one.id}", "start_s": 4.0, "end_s": 9.0}) for one in SAMPLES]
    path, samples = write(tmp_path, samples=asked)
    for name in ("v0.mp4", "c0.mp4", "v1.mp4"):
        (tmp_path / "clips" / name).write_bytes(b"x")
    items = read_answer_items(path, samples, tmp_path / "clips")
    found = [(item.clip and item.clip.name, item.start_s, item.end_s) for item in items[:3]]
    assert found == [("c0.mp4", None, None), ("v1.mp4", 4.0, 9.0), (None, 4.0, 9.0)]
    assert [item.video for item in items[:2]] == ["c0", "c1"]


def test_descriptions_are_judged_too(tmp_path: Path) -> None:
    described = sample("0", "a dog")
    store.write_rows(tmp_path / "answers.jsonl", [answer(described, "a fox")])
    write_samples(tmp_path / "samples.jsonl", [described])
    (item,) = read_answer_items(tmp_path / "answers.jsonl", tmp_path / "samples.jsonl", None)
    assert item.text.endswith("Answer: a fox")


def test_answers_with_options_need_no_people(tmp_path: Path) -> None:
    choice = SAMPLES[0].model_copy(
        update={"ask": Choice(question="What?", options=("a dog", "a cat")), "reference": Reference(values=(0,))}
    )
    path, samples = write(tmp_path, [], [choice])
    store.write_rows(path, [Prediction(sample_id="0", value=0)])
    with pytest.raises(InputError, match="no open answer"):
        read_answer_items(path, samples, None)


def test_the_command_writes_labels_and_says_what_is_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path, samples = write(tmp_path)
    judged(path, samples).log.close()
    samples.rename("s.jsonl")
    assert run(["review", "answers.jsonl", "--export", "people.csv"]) == 2
    assert "Add --samples FILE" in capsys.readouterr().err
    assert run(["review", "answers.jsonl", "--samples", "s.jsonl", "--export", "people.csv"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "vip score answers.jsonl --samples s.jsonl --judge ENGINE --judge-labels people.csv" in said
    assert Path("people.csv").read_text().splitlines() == ["sample_id,correct", "0,yes", "2,no"]
    assert run(["review", "s.jsonl", "--samples", "s.jsonl", "--export", "x.csv"]) == 2
