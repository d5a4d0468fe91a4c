"""Baselines answer as the paper says: its figures come out, ties go to the first, and chance is seeded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.metrics.golden import golden
from tests.tasks.nextqa.published import MC_ROWS, OE_COLUMNS, OE_ROWS, read, write_csv
from tests.tasks.nextqa.test_mc import accuracies
from vip.errors import InputError, UsageError
from vip.tasks.nextqa import baselines
from vip.tasks.nextqa.baselines import farthest_option, nearest_option
from vip.tasks.nextqa.mc import NextqaMultiChoice
from vip.tasks.nextqa.oe import NextqaOpenEnded
from vip.tasks.records import Choice, FreeText, Sample
from vip.tasks.task import Task


def answers(task: Task, name: str, samples: list[Sample], seed: int = 0) -> list[object]:
    return [prediction.value for prediction in task.baselines[name](lambda: iter(samples), seed)]


@pytest.fixture
def samples(tmp_path: Path) -> list[Sample]:
    return read(NextqaMultiChoice(), write_csv(tmp_path / "val.csv", MC_ROWS))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("shortest", {"C": 22.09, "T": 19.67, "D": 22.78, "all": 21.42}),
        ("longest", {"C": 21.71, "T": 21.40, "D": 17.89, "all": 21.02}),
        ("always:4", {"C": 20.52, "T": 20.10, "D": 19.69, "all": 20.26}),
        ("always:0", {"C": 20.98, "T": 19.42, "D": 19.69, "all": 20.28}),
    ],
)
def test_the_published_figures_come_out(name: str, published: dict[str, float]) -> None:
    task = NextqaMultiChoice()
    questions = read(task, golden("nextqa/mc_val.csv"))
    found = accuracies(questions, list(task.baselines[name](lambda: iter(questions), 0)))
    assert {group: found[group] for group in published} == pytest.approx(published, abs=0.005)


def test_lengths_are_counted_in_words_and_the_first_of_equal_ones_is_taken(samples: list[Sample]) -> None:
    task = NextqaMultiChoice()
    assert answers(task, "longest", samples) == [1, 3, 2, 0]
    assert answers(task, "shortest", samples) == [2, 0, 0, 0]
    assert [answers(task, f"always:{place}", samples) for place in range(5)] == [[place] * 4 for place in range(5)]
    few = samples[0].model_copy(update={"ask": Choice(question="?", options=("a", "b"))})
    assert answers(task, "always:1", [few]) == [1]
    with pytest.raises(UsageError, match="There is no option 2: the question has 2"):
        answers(task, "always:2", [few])
    (named,) = task.baselines["longest"](lambda: iter(samples[:1]), 0)
    assert named.engine == "baseline:longest"


def test_random_answers_depend_on_the_seed_alone(samples: list[Sample]) -> None:
    task = NextqaMultiChoice()
    drawn = [tuple(answers(task, "random", samples, seed)) for seed in range(20)]
    assert drawn[0] == tuple(answers(task, "random", samples, 0))
    assert len(set(drawn)) > 10
    assert answers(task, "random", samples[::-1], 0) == list(drawn[0])[::-1]


@pytest.mark.parametrize("name", ["random", "always:4", "longest", "shortest"])
def test_a_sample_of_a_file_whose_name_is_not_utf8_is_answered(name: str, samples: list[Sample]) -> None:
    odd = samples[0].model_copy(update={"id": "\udcff=1"})
    (row,) = NextqaMultiChoice().baselines[name](lambda: iter([odd]), 0)
    assert (row.sample_id, row.status) == ("\udcff=1", "ok")


def test_popular_shortest_takes_the_most_frequent_right_answer_of_the_type_and_else_the_shortest(
    tmp_path: Path, samples: list[Sample]
) -> None:
    rows = [
        ("t1", 1, 1, 1, "q", 0, 0, "TP", "sit down", "b", "c", "d", "e"),
        ("t1", 1, 1, 1, "q", 1, 1, "TN", "a", "sit down", "c", "d", "e"),
        ("t1", 1, 1, 1, "q", 1, 2, "TN", "a", "walk", "c", "d", "e"),
        ("t1", 1, 1, 1, "q", 0, 3, "TN", "walk", "b", "c", "d", "e"),
        ("t1", 1, 1, 1, "q", 0, 4, "TN", "walk", "b", "c", "d", "e"),
        ("t1", 1, 1, 1, "q", 0, 5, "DL", "sea", "b", "c", "d", "e"),
    ]
    task = NextqaMultiChoice(train=write_csv(tmp_path / "train.csv", rows))
    assert answers(task, "popular-shortest", samples) == [2, 1, 3, 1]  # shortest, sit down, walk, sea
    with pytest.raises(UsageError, match="counts answers of the training set"):
        answers(NextqaMultiChoice(), "popular-shortest", samples)


def test_popular_takes_the_most_frequent_answer_of_the_type_seen_first(tmp_path: Path) -> None:
    rows = [
        ("t", 1, 1, 1, "q", answer, number, kind)
        for number, (kind, answer) in enumerate(
            [("CW", "happy"), ("TP", "run"), ("TN", "walk"), ("TN", "run"), ("DB", "yes"), ("DB", "no"), ("DB", "no"), ("CW", "play")]
        )
    ]
    task = NextqaOpenEnded(train=write_csv(tmp_path / "train.csv", rows, OE_COLUMNS))
    questions = read(task, write_csv(tmp_path / "val.csv", OE_ROWS, OE_COLUMNS))
    assert answers(task, "popular", questions) == ["happy", "run", "no"]
    short = NextqaOpenEnded(train=write_csv(tmp_path / "short.csv", rows[1:2], OE_COLUMNS))
    with pytest.raises(InputError, match="The training questions have none of the type CW"):
        answers(short, "popular", questions)


def test_sim_aa_takes_the_option_farthest_from_the_others_and_sim_qa_the_nearest_to_the_question() -> None:
    options = np.array([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0], [-1.0, 0.0]])
    assert farthest_option(options, options[0]) == 4
    assert nearest_option(options, np.array([0.6, 0.8])) == 2
    assert nearest_option(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([1.0, 0.0])) == 0


def test_sim_baselines_ask_the_encoder_for_many_questions_at_once(samples: list[Sample], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Encoder:
        def __init__(self, encoder: str) -> None:
            pass

        def embed(self, texts: list[str]) -> np.ndarray:
            asked.append(len(texts))
            letters = np.array([[float(text.count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts])
            return letters / np.linalg.norm(letters, axis=1, keepdims=True)

    monkeypatch.setattr(baselines, "SentenceBert", Encoder)
    task = NextqaMultiChoice()
    found = answers(task, "sim-qa", samples)
    assert asked == [24]
    encoder = Encoder("")
    vectors = [encoder.embed([sample.ask.question, *sample.ask.options]) for sample in samples]  # type: ignore[union-attr]
    assert found == [nearest_option(rows[1:], rows[0]) for rows in vectors], "each question has its own options"
    assert answers(task, "sim-aa", samples) == [farthest_option(rows[1:], rows[0]) for rows in vectors]
    monkeypatch.setattr(baselines, "BATCH", 3)
    asked.clear()
    assert answers(task, "sim-qa", samples) == found
    assert asked == [18, 6]


def test_a_training_set_without_answers_and_samples_without_options_are_refused(tmp_path: Path, samples: list[Sample]) -> None:
    bare = write_csv(tmp_path / "train.csv", [("t", "1", "CW")], ("video", "qid", "type"))
    with pytest.raises(InputError, match=r"train\.csv has no answers\. Give the train\.csv of NExT-QA"):
        answers(NextqaOpenEnded(train=bare), "popular", samples)
    asked = samples[0].model_copy(update={"ask": FreeText(question="why")})
    for name in ("longest", "shortest", "random", "always:0"):
        with pytest.raises(InputError, match=r"The sample v1_0 has no options\. Make samples of nextqa-mc"):
            answers(NextqaMultiChoice(), name, [asked])


@pytest.mark.parametrize("kind", [NextqaMultiChoice, NextqaOpenEnded])
def test_a_task_with_a_training_set_is_the_same_task(kind: type[NextqaMultiChoice | NextqaOpenEnded], tmp_path: Path) -> None:
    task = kind()
    assert task.with_training(tmp_path / "train.csv") == kind(train=tmp_path / "train.csv")
    assert task.train is None
