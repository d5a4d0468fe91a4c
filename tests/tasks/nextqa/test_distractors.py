"""Options of one's own questions keep to the rules of the paper: unlike the right answer and one another, evenly placed, never made up."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from vip.errors import InputError
from vip.tasks.nextqa.distractors import (
    NEAREST,
    TOO_FAR,
    TOO_NEAR,
    MultiChoiceQuestion,
    Vectors,
    _nearest,
    _qualified,
    even_places,
    make_options,
    write_questions,
)
from vip.tasks.nextqa.files import Question, read_questions
from vip.tasks.nextqa.options_page import write_option_pages


def question(number: int, answer: str, kind: str = "CW", text: str | None = None) -> Question:
    return Question(f"v{number}", "0", kind, f"why {number}" if text is None else text, answer, (), None, number + 2)  # type: ignore[arg-type]


def embed(texts: list[str]) -> Vectors:
    """Vectors around (1, 0, …), the same for the same text: most cosines are between 0.2 and 0.9."""
    rows = [np.random.default_rng(list(text.encode())).normal(size=8) + np.array([2.0, *[0.0] * 7]) for text in texts]
    return np.array([row / np.linalg.norm(row) for row in rows])


def lemmas(text: str) -> tuple[str, ...]:
    return tuple(word.removesuffix("s") for word in text.split() if word != "the")


QUESTIONS = [question(number, f"the act {number}" if number % 3 else f"acts {number // 6}") for number in range(150)]


def test_options_are_unlike_the_right_answer_and_one_another_and_not_too_far_from_it() -> None:
    made = make_options(QUESTIONS, embed=embed, lemmas=lemmas)
    assert sum(one.is_complete for one in made) > 100
    for one in made:
        assert one.options[one.answer] == one.text
        assert len({lemmas(option) for option in one.options}) == len(one.options)
        vectors = embed(list(one.options))
        cosines = vectors @ vectors.T - 2 * np.eye(len(vectors))
        assert cosines.max() <= TOO_NEAR + 1e-12
        assert np.delete(cosines[one.answer], one.answer).min(initial=1) >= TOO_FAR - 1e-12


def test_distractors_are_answers_of_the_50_nearest_questions_of_the_same_type() -> None:
    others = [question(1000 + number, f"the other {number}", "CH") for number in range(30)]
    vectors = embed([one.text for one in QUESTIONS])
    for one, row in zip(make_options([*QUESTIONS, *others], embed=embed, lemmas=lemmas), vectors, strict=False):
        near = np.argsort(-(vectors @ row))[: NEAREST + 1]
        assert set(one.options) <= {str(QUESTIONS[place].answer) for place in near}


@pytest.mark.slow
def test_the_same_seed_gives_the_same_options_and_right_ones_are_evenly_placed() -> None:
    first, again, other = (make_options(QUESTIONS, embed=embed, lemmas=lemmas, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    counts = Counter(one.answer for one in first if one.is_complete)
    assert max(counts.values()) - min(counts.values()) <= 1
    assert sorted(even_places(7, 0)) == [0, 0, 1, 1, 2, 3, 4]
    assert len({tuple(even_places(20, seed)) for seed in range(5)}) == 5, "the seed draws the places too"


def test_a_question_without_four_candidates_lacks_options_and_is_not_written(tmp_path: Path) -> None:
    rows = [*QUESTIONS[:40], question(500, "alone", "TP"), question(501, "yes", "DB")]
    made = make_options(rows, embed=embed, lemmas=lemmas)
    assert [one.question.type for one in made] == ["CW"] * 40 + ["TP"]
    assert (made[-1].options, made[-1].qualified, made[-1].is_complete) == (("alone",), 0, False)
    count = write_questions(tmp_path / "own.csv", made)
    found = list(read_questions(tmp_path / "own.csv", "nextqa-mc"))
    assert len(found) == count == sum(one.is_complete for one in made)
    assert [(one.text, one.options, one.answer) for one in found] == [
        (one.question.text, one.options, one.answer) for one in made if one.is_complete
    ]


def test_questions_without_text_or_answer_and_only_yes_or_no_are_refused() -> None:
    with pytest.raises(InputError, match="Line 2: the question v0_0 has no text or no answer"):
        make_options([question(0, "a", text=" ")], embed=embed, lemmas=lemmas)
    with pytest.raises(InputError, match="those of the type DB have none"):
        make_options([question(0, "yes", "DB")], embed=embed, lemmas=lemmas)


def test_the_page_shows_every_question_escaped_those_that_lack_options_first(tmp_path: Path) -> None:
    rows = [*QUESTIONS[:40], question(500, '"><script>alert(1)</script>', "TP")]
    made = make_options(rows, embed=embed, lemmas=lemmas)
    (path,) = write_option_pages(tmp_path / "own.html", made)
    html = path.read_text(encoding="utf-8")
    assert html.count("<fieldset") == 41
    lacking = [one.question.video for one in made if not one.is_complete]
    assert re.findall(r'data-video="(v\d+)"', html)[: len(lacking)] == lacking
    assert "<script>alert" not in html
    many = make_options([question(number, f"act {number}") for number in range(501)], embed=embed, lemmas=lemmas)
    assert [path.name for path in write_option_pages(tmp_path / "big.html", many)] == ["big-1.html", "big-2.html"]


def at(cosine: float, turn: float = 1.0) -> list[float]:
    """A vector of length 1 with this cosine to (1, 0, 0)."""
    rest = (1 - cosine**2) ** 0.5
    return [cosine, rest * np.cos(turn), rest * np.sin(turn)]


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        ([at(0.2)], [1]),  # at the bound
        ([at(0.19)], []),
        ([at(0.9)], [1]),
        ([at(0.91)], []),
        ([at(0.5), at(0.5)], [1]),  # the same as the one before
        ([at(0.5, 0.0), at(0.5, 3.0), at(0.25, 1.5)], [1, 2, 3]),  # far from the last one taken, near enough to the right one
        ([at(0.5, 0.0), at(0.1, 0.0), at(0.5, 3.0)], [1, 3]),
    ],
)
def test_answers_are_left_out_by_their_cosine_to_the_right_one_and_to_those_taken_before(rows: list[list[float]], kept: list[int]) -> None:
    vectors = np.array([[1.0, 0.0, 0.0], *rows])
    words = [(str(place),) for place in range(len(vectors))]
    assert _qualified(0, range(1, len(vectors)), vectors, words) == kept


def test_an_answer_with_the_lemmas_of_one_taken_before_is_left_out() -> None:
    vectors = np.array([[1.0, 0.0, 0.0], at(0.5, 0.0), at(0.5, 1.5), at(0.5, 3.0), at(0.5, 4.5)])
    words = [("run",), ("walk",), ("walk",), ("run",), ("sit",)]
    assert _qualified(0, range(1, 5), vectors, words) == [1, 4]


def test_the_nearest_are_the_others_in_order_also_where_rows_are_taken_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.tasks.nextqa.distractors.ROWS_AT_ONCE", 3)
    vectors = np.array([at(cosine) for cosine in (1.0, 0.9, 0.9, 0.1, 0.5)])
    found = dict(_nearest(vectors))
    assert list(found) == [0, 1, 2, 3, 4]
    assert found[0] == [1, 2, 4, 3]
    assert all(row not in near and len(near) == 4 for row, near in found.items())


def test_places_are_shared_by_complete_questions_alone_and_lemmas_fall_back_on_the_words() -> None:
    rows = [
        *QUESTIONS[:60],
        *(question(900 + number, f"alone {number}", kind) for number, kind in enumerate(("TP", "DL", "DO", "DC", "TC"))),
    ]
    made = make_options(rows, embed=embed, lemmas=lambda text: ())
    complete = [one for one in made if one.is_complete]
    counts = Counter(one.answer for one in complete)
    assert max(counts.values()) - min(counts[place] for place in range(5)) <= 1
    assert {one.answer for one in made if not one.is_complete} == {0}
    assert all(len(set(map(str.lower, one.options))) == len(one.options) for one in made), "the same words are no second option"


@pytest.mark.parametrize("text", ["=1+1", "-5 degrees", "@home", "'=1", "''+1", "+", "-1_a", "'so'", '=HYPERLINK("a",";=b")'])
def test_no_question_is_a_formula_and_all_of_it_comes_back(text: str, tmp_path: Path) -> None:
    asked = Question(text, text, "CW", text, text, (), None, 2)
    write_questions(tmp_path / "own.csv", [MultiChoiceQuestion(asked, text, (text, "b", "c", "d", "e"), 0, 4)])
    with (tmp_path / "own.csv").open(newline="") as file:
        cells = list(csv.reader(file))[1]
    assert not any(re.match(r"[=+@]|-.*[^A-Za-z0-9_-]", cell) for cell in cells)
    (found,) = read_questions(tmp_path / "own.csv", "nextqa-mc")
    assert (found.video, found.qid, found.text, found.options[0]) == (text,) * 4


def test_what_a_terminal_obeys_is_not_written_and_all_else_comes_back(tmp_path: Path) -> None:
    hostile, plain = "why\x1b]0;t\x07 \x9b31m\r\n\u202e\udc80?", 'was \u202f ist „das“ 👨‍👩‍👧, "so"?'
    some = [Question(text, text, "CW", text, text, (), None, 2) for text in (hostile, plain)]
    made = [MultiChoiceQuestion(one, one.text, (one.text, "b", "c", "d", "e"), 0, 4) for one in some]
    assert write_questions(tmp_path / "own.csv", made) == 2
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", (tmp_path / "own.csv").read_text("utf-8"))
    cleaned, same = read_questions(tmp_path / "own.csv", "nextqa-mc")
    assert (same.video, same.qid, same.text, same.options) == (plain, plain, plain, (plain, "b", "c", "d", "e"))
    assert cleaned.text == cleaned.video == "why\ufffd]0;t\ufffd \ufffd31m \ufffd\ufffd?"
