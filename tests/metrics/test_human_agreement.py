"""Agreement of people: the published values, and what counts as an answer."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.metrics.golden import golden
from vip.metrics.blank_answers import exact_match, normalized_token_f1
from vip.metrics.human_agreement import BlankAnswers, leave_worker_out, measure_all_answers, measure_captions, measure_first_answers


def made_records() -> list[BlankAnswers]:
    rows = json.loads(golden("fiber/records_made.json").read_text(encoding="utf-8"))
    return [BlankAnswers(row["label"], tuple(map(tuple, row["additional_answers"]))) for row in rows]


def test_the_published_agreement_of_workers_comes_out() -> None:
    expected = json.loads(golden("fiber/expected.json").read_text(encoding="utf-8"))
    records = made_records()
    for answers, row in zip(records, expected["captions"], strict=True):
        assert [100 * f1 for f1 in leave_worker_out(answers, normalized_token_f1)] == pytest.approx(row["f1_by_worker"], abs=1e-4)
        assert [100 * one for one in leave_worker_out(answers, exact_match)] == pytest.approx(row["em_by_worker"], abs=1e-4)
    first, every = measure_first_answers(records), measure_all_answers(records)
    assert first is not None
    assert every is not None
    values = [first.f1, first.f1_deviation, first.exact_match, first.exact_match_deviation]
    names = ("f1_mean", "f1_std", "em_mean", "em_std")
    assert [100 * value for value in values] == pytest.approx([expected["first_answer_per_caption"][name] for name in names], abs=1e-4)
    whole = expected["all_answers"]
    assert (100 * every.f1, 100 * every.exact_match, every.n) == (pytest.approx(whole["f1"]), pytest.approx(whole["em"]), whole["answers"])


@pytest.mark.slow
def test_the_published_agreement_of_captions_comes_out() -> None:
    expected = json.loads(golden("vatex/expected.json").read_text(encoding="utf-8"))["leave_one_caption_out_token_f1"]
    with gzip.open(golden("vatex/en_c_val.jsonl.gz"), "rt", encoding="utf-8") as file:
        captions = [[row["desc"] for row in json.loads(line)["descs"]] for line in file]
    assert measure_captions(captions) == pytest.approx(expected["raw_split_f1_float64"], abs=1e-9)
    assert measure_captions(captions, normalized=True) == pytest.approx(expected["normalised_f1"], abs=1e-9)


def test_an_answer_of_articles_and_punctuation_is_none() -> None:
    answers = BlankAnswers("dog", (("the", "a dog"), ("!!",), ()))
    assert leave_worker_out(answers, normalized_token_f1) == [1.0]
    every = measure_all_answers([answers])
    assert every is not None
    assert every.n == 2  # the label and one answer


def test_without_people_there_is_no_agreement() -> None:
    assert measure_first_answers([BlankAnswers("dog", ())]) is None
    assert measure_all_answers([]) is None
    assert measure_captions([["one caption"]]) is None


def test_a_worker_is_held_against_the_others_and_not_against_themselves() -> None:
    answers = BlankAnswers("dog", (("red car", "cat"), ("tree", "dog")))
    assert leave_worker_out(answers, exact_match) == [0.0, 0.0]
    assert leave_worker_out(BlankAnswers("dog", (("tree",), ("tree", "red car"))), exact_match) == [1.0, 1.0]
    every = measure_all_answers([answers])
    assert every is not None
    assert every.exact_match == pytest.approx(2 / 5), "the label and the second answer of the second worker"


@pytest.mark.parametrize(
    ("captions", "plain", "normalized"),
    [
        ([["a dog runs", "a dog runs"]], 1.0, 1.0),
        ([["a dog", "the dog"]], 0.5, 1.0),  # without articles they are one word
        ([["a dog", "a cat", "a dog"]], 5 / 6, 2 / 3),  # of each caption the best of the others
        ([["alone"], ["a dog", "a cat"], []], 0.5, 0.0),
        ([["red dog", "red dog"], ["one", "two"]], 0.5, 0.5),  # the mean over captions, not over videos
        ([["red dog", "red dog", "red dog"], ["one", "two"]], 0.6, 0.6),
        ([["alone"], []], None, None),
    ],
)
def test_captions_of_a_video_are_each_held_against_the_others_of_it(
    captions: list[list[str]], plain: float | None, normalized: float | None
) -> None:
    assert measure_captions(captions) == (None if plain is None else pytest.approx(plain))
    assert measure_captions(captions, normalized=True) == (None if normalized is None else pytest.approx(normalized))


def test_deviations_are_those_of_a_population_over_captions() -> None:
    same, none = BlankAnswers("dog", (("dog",),)), BlankAnswers("dog", (("cat",), ("tree",)))
    found = measure_first_answers([same, none])
    assert found is not None
    assert (found.f1, found.f1_deviation, found.exact_match, found.exact_match_deviation, found.n) == (0.5, 0.5, 0.5, 0.5, 2)
