"""One command makes options for questions of one's own, from vectors or an encoder."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.cli.terminal import vip
from tests.metrics.tiny_wordnet import write_wordnet
from tests.tasks.nextqa.published import OE_COLUMNS, write_csv
from vip.errors import InputError
from vip.metrics.perceptron_tagger import FILES
from vip.tasks.files import read_samples
from vip.tasks.nextqa import own_questions
from vip.tasks.nextqa.files import read_questions
from vip.tasks.nextqa.own_questions import make_own_questions, open_embed

COUNT = 40


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """WordNet and a tagger that takes every word for a noun, where NLTK keeps them; questions of one's own with vectors."""
    write_wordnet(tmp_path / "nltk" / "corpora" / "wordnet")
    folder = tmp_path / "nltk" / "taggers" / "averaged_perceptron_tagger_eng"
    folder.mkdir(parents=True)
    for name, content in zip(FILES, ({"bias": {"NN": 1.0}}, {}, ["NN"]), strict=True):
        (folder / name).write_text(json.dumps(content))
    monkeypatch.setenv("NLTK_DATA", str(tmp_path / "nltk"))
    rows = [(f"v{n}", 9, 1, 1, f"why number {n}", f"answer{n}", 0, "CW") for n in range(COUNT)]
    rows += [("v0", 9, 1, 1, "is it", "yes", 1, "DB"), ("v0", 9, 1, 1, "what then", "alone", 2, "TN")]
    write_csv(tmp_path / "questions.csv", rows, OE_COLUMNS)
    vectors = np.random.default_rng(0).normal(size=(len(rows), 8)) + np.array([2.0, *[0.0] * 7])
    np.savez(tmp_path / "vectors.npz", questions=vectors, answers=vectors[::-1])
    return tmp_path


def test_right_options_are_as_often_at_each_place_as_chance_would_have_it(data: Path) -> None:
    source = data / "questions.csv"
    made = make_own_questions(source, data / "own.csv", embed=open_embed(source, encoder="", vectors=data / "vectors.npz"))
    assert (made.complete, made.lacking, made.binary) == (COUNT, 1, 1)
    expected = made.complete / 5
    chi_squared = sum((count - expected) ** 2 / expected for count in made.places)
    assert chi_squared < 0.711  # 5 % of random places would be more even than this (4 degrees of freedom)
    questions = list(read_questions(made.path, "nextqa-mc"))
    assert [question.options[int(str(question.answer))] for question in questions] == [f"answer{n}" for n in range(COUNT)]
    assert all(len(set(question.options)) == 5 for question in questions)


@pytest.mark.slow
def test_the_command_writes_the_csv_the_page_and_samples(data: Path) -> None:
    command = ("samples", "--task", "nextqa-mc", "--from", "questions.csv", "--vectors", "vectors.npz")
    done = vip(data, *command, "-o", "own.csv")
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        f"{COUNT} questions with five options in own.csv",
        "1 question with too few distractors: add options by hand on the page.",
        "1 question of the type DB left out: they have no options.",
        "Check them: open own.html",
    ]
    again = vip(data, *command, "-o", "s.jsonl", "--json")
    assert again.rows[0]["questions"] == COUNT
    assert (data / "s.csv").read_bytes() == (data / "own.csv").read_bytes()
    assert [sample.id for sample in read_samples(data / "s.jsonl")] == [f"v{n}_0" for n in range(COUNT)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--task", "nextqa-oe", "--from", "questions.csv"), 2, "--from makes options for nextqa-mc, not for nextqa-oe."),
        (("--task", "nextqa-mc", "a.csv", "--from", "questions.csv"), 2, "--from takes your own questions, and a.csv is given too."),
        (("--task", "nextqa-mc", "--from", "questions.csv", "--vectors", "v", "--encoder", "e"), 2, "--encoder and --vectors exclude"),
        (("--task", "nextqa-mc", "a.csv", "--vectors", "v"), 2, "--vectors goes with --from CSV."),
        (
            ("--task", "nextqa-mc"),
            2,
            "Name run folders, data sets or published annotation files; or questions of your own with --from CSV.",
        ),
        (("--task", "nextqa-mc", "--from", "none.csv", "--vectors", "vectors.npz"), 3, "none.csv cannot be read: No such file"),
        (("--task", "nextqa-mc", "--from", "round.csv", "--vectors", "vectors.npz"), 3, "round.csv cannot be read"),
        (("--task", "nextqa-mc", "--from", "questions.csv", "--vectors", "questions.csv"), 3, "questions.csv has no vectors of questions"),
        (("--task", "nextqa-mc", "--from", "questions.csv", "-o", "questions.csv", "--overwrite"), 3, "holds the questions themselves"),
    ],
)
def test_what_is_wrong_is_one_sentence(arguments: tuple[str, ...], code: int, said: str, data: Path) -> None:
    (data / "round.csv").symlink_to("round.csv")
    done = vip(data, "samples", *arguments)
    assert (done.code, done.out) == (code, "")
    assert said in done.sentence
    assert not (data / "samples.jsonl").exists()


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"questions": np.ones((42, 3))}, "has no vectors of answers"),
        ({"questions": np.ones((41, 3)), "answers": np.ones((42, 3))}, r"questions has the shape \(41, 3\), and there are 42 questions"),
        ({"questions": np.ones((42, 2)), "answers": np.ones((42, 3))}, "questions of 2 numbers and answers of 3"),
        ({"questions": np.zeros((42, 3)), "answers": np.ones((42, 3))}, "questions has a row of zeros"),
        ({"questions": np.full((42, 3), np.nan), "answers": np.ones((42, 3))}, "a number that is not finite"),
    ],
)
def test_vectors_of_other_questions_are_refused(arrays: dict[str, np.ndarray], said: str, data: Path) -> None:
    np.savez(data / "wrong.npz", **arrays)
    with pytest.raises(InputError, match=said):
        open_embed(data / "questions.csv", encoder="", vectors=data / "wrong.npz")


def test_questions_without_any_distractor_are_refused(data: Path) -> None:
    rows = [(f"v{n}", 9, 1, 1, f"why number {n}", "the same", 0, "CW") for n in range(9)]
    source = write_csv(data / "same.csv", rows, OE_COLUMNS)
    with pytest.raises(InputError, match="not one of 9 questions finds four distractors"):
        make_own_questions(source, data / "own.csv", embed=lambda texts: np.eye(len(texts)))
    assert not (data / "own.csv").exists()


def test_vectors_that_unpack_to_far_more_and_pipes_are_refused(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(data / "pipe.npz")
    monkeypatch.setattr(own_questions, "MOST_VECTOR_BYTES", 2**20)
    np.savez_compressed(data / "zeros.npz", questions=np.zeros(2**20), answers=np.zeros(1))
    assert (data / "zeros.npz").stat().st_size < 2**20
    for name, said in (("pipe.npz", "it is no regular file"), ("zeros.npz", "more than 1,048,576 bytes unpacked")):
        with pytest.raises(InputError, match=rf"{name} has no vectors of questions \(.*{said}"):
            open_embed(data / "questions.csv", encoder="", vectors=data / name)


def test_what_lacks_options_and_what_has_none_are_counted_apart(data: Path) -> None:
    rows = [(f"v{n}", 9, 1, 1, f"why number {n}", f"answer{n}", 0, "CW") for n in range(12)]
    rows += [(f"w{n}", 9, 1, 1, f"is it {n}", "yes", 0, "DB") for n in range(3)]
    rows += [(f"x{n}", 9, 1, 1, f"what then {n}", f"alone{n}", 0, "TN") for n in range(2)]
    source = write_csv(data / "some.csv", rows, OE_COLUMNS)
    vectors = np.abs(np.random.default_rng(1).normal(size=(len(rows), 40))) + 0.2
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    def embed(texts: Sequence[str]) -> np.ndarray:
        return np.stack([np.roll(vectors[int(re.sub(r"\D", "", text) or 0)], len(text)) for text in texts])

    made = make_own_questions(source, data / "own.csv", embed=embed)
    assert (made.lacking, made.binary) == (2, 3)
    assert (made.complete, sum(made.places), len(made.pages)) == (12, 12, 1)


def test_vectors_of_any_length_stand_for_their_questions_and_answers(data: Path) -> None:
    source = data / "questions.csv"
    questions = np.arange(1, 85, dtype=np.float32).reshape(42, 2)
    answers = questions[::-1] * 7
    np.savez(data / "long.npz", questions=questions, answers=answers)
    embed = open_embed(source, encoder="", vectors=data / "long.npz")
    asked, answered = embed(["why number 3", "why number 0"]), embed(["answer3", "alone"])
    assert np.linalg.norm(asked, axis=1) == pytest.approx([1.0, 1.0])
    assert asked[0] == pytest.approx(questions[3] / np.linalg.norm(questions[3]))
    assert answered[0] == pytest.approx(answers[3] / np.linalg.norm(answers[3]))
    assert answered[1] == pytest.approx(answers[41] / np.linalg.norm(answers[41]))
