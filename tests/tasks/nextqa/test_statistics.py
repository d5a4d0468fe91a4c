"""The statistics of the published validation sets come out."""

from __future__ import annotations

import pytest

from tests.metrics.golden import golden
from vip.tasks.nextqa.files import Question, read_questions
from vip.tasks.nextqa.statistics import annotation_faults, answer_text, describe_questions, statistics_table
from vip.tasks.table import render


def question(text: str, answer: str, kind: str = "CW", video: str = "v") -> Question:
    return Question(video=video, qid="0", type=kind, text=text, answer=answer, options=(), frame_count=None, line=2)  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_published_figures_of_the_open_ended_validation_set_come_out() -> None:
    found = describe_questions(read_questions(golden("nextqa/oe_val.csv"), "nextqa-oe"))
    words = {name: round(lengths.mean or 0, 2) for name, lengths in found.question_words.items()}
    answers = {name: round(lengths.mean or 0, 2) for name, lengths in found.answer_words.items()}
    assert (found.questions, found.videos) == (5343, 570)
    assert words == {"all": 11.47, "C": 11.85, "T": 13.35, "D": 7.86}
    assert answers == {"all": 2.68, "C": 3.12, "T": 2.88, "D": 1.38}
    assert found.answer_words["all"].share_up_to(6) == pytest.approx(0.9942, abs=5e-5)
    assert found.why_share == pytest.approx(0.3608, abs=5e-5)
    assert found.yes_no == {"yes": 96, "no": 95}
    assert found.types == {"CW": 1928, "CH": 683, "TN": 895, "TP": 54, "TC": 663, "DC": 192, "DL": 295, "DO": 356, "DB": 277}


@pytest.mark.slow
def test_right_options_of_the_published_validation_set_are_at_every_place() -> None:
    found = describe_questions(read_questions(golden("nextqa/mc_val.csv"), "nextqa-mc"))
    assert found.types == {"CW": 1924, "CH": 683, "TN": 895, "TP": 54, "TC": 663, "DC": 177, "DL": 295, "DO": 305}
    assert sum(found.places.values()) == 4996
    assert max(found.places.values()) < 1.05 * min(found.places.values())


def test_openings_leave_the_out_and_frequent_words_leave_stop_words_out() -> None:
    rows = [question("why did the man run", "to the dog"), question("why did man jump", "yes"), question("is it", "no", "DB", "w")]
    found = describe_questions(rows, tag=lambda words: [(word, {"dog": "NN", "to": "TO"}.get(word, "JJR")) for word in words])
    assert found.openings == {("why", "did", "man"): 2, ("is", "it"): 1}
    assert found.frequent_words == {"dog": 1}
    assert found.yes_no == {"no": 1}  # the other yes is of another type
    assert found.parts_of_speech == {"noun": 1, "other": 1, "adjective": 3}
    assert (found.per_video, found.types_per_video["w", "DB"]) == ({"v": 2, "w": 1}, 1)
    assert (found.type_share("C"), found.type_share("DB"), found.why_share) == pytest.approx((2 / 3, 1 / 3, 2 / 3))


def test_a_set_without_questions_has_no_means() -> None:
    found = describe_questions([])
    assert (found.why_share, found.question_words["all"].mean, found.answer_words["all"].share_up_to(6)) == (None, None, None)
    assert "empty          0       0" in render(statistics_table({"empty": found}), "text")


@pytest.mark.parametrize(
    ("answer", "is_large"),
    [
        *[(answer, False) for answer in ("two", "twenty", "20", "", "²")],
        *[(answer, True) for answer in ("21", "twenty one", "twenty-two people", "thirty", "99999999999")],
    ],
)
def test_counts_above_twenty_break_the_rules(answer: str, is_large: bool) -> None:
    faults = annotation_faults([question("how many", answer, "DC")])
    assert bool(faults["count above 20"]) == is_large


def test_long_questions_and_answers_break_the_rules() -> None:
    faults = annotation_faults([question("w " * 23, "a"), question("w " * 22, "a b c d e f g")])
    assert {name: len(ids) for name, ids in faults.items()} == {
        "question of more than 22 words": 1,
        "answer of more than 6 words": 1,
        "count above 20": 0,
    }


@pytest.mark.parametrize(("words", "letters", "is_fault"), [(22, 6, False), (23, 6, True), (22, 7, True)])
def test_the_longest_that_the_annotation_allows_is_no_fault(words: int, letters: int, is_fault: bool) -> None:
    faults = annotation_faults([question("w " * words, "a " * letters)])
    assert any(faults.values()) == is_fault


@pytest.mark.parametrize(
    ("answer", "is_large"),
    [
        ("ninety", True),
        ("hundred dogs", True),
        ("twenty", False),
        ("twenty dogs", False),
        ("Twenty-Nine", True),
        ("12345", True),
        ("0020", False),
    ],
)
def test_numbers_in_words_and_digits_are_counts(answer: str, is_large: bool) -> None:
    assert bool(annotation_faults([question("how many", answer, "DC")])["count above 20"]) == is_large
    assert not annotation_faults([question("how many", answer, "CW")])["count above 20"], "of the type DC alone"


def test_yes_and_no_are_counted_among_questions_for_them_alone() -> None:
    rows = [
        question("is it", "yes", "DB"),
        question("why", "no", "CW"),
        question("is it", "yes it is", "DB"),
        question("is it", "no", "DO"),
    ]
    assert describe_questions(rows).yes_no == {"yes": 1}


def test_words_of_options_are_those_of_the_right_one_and_tokens_are_words() -> None:
    options = Question("v", "0", "CW", "why", 1, ("a", "big red dog", "c", "d", "e"), None, 2)
    tokens = Question("v", "1", "TN", "", ("run", "fast"), (), None, 3)
    hidden = Question("v", "2", "TN", "what", None, (), None, 4)
    assert [answer_text(one) for one in (options, tokens, hidden)] == ["big red dog", "run fast", None]
    found = describe_questions([options, tokens, hidden])
    assert found.answer_words["all"].counts == {3: 1, 2: 1}
    assert (found.answer_words["C"].mean, found.answer_words["T"].mean, found.question_words["all"].counts) == (3, 2, {1: 2})
    assert (found.answer_words["all"].share_up_to(2), found.answer_words["all"].share_up_to(3)) == (0.5, 1.0)
    assert found.places == {1: 1}
