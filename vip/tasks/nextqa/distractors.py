"""Four wrong options for open questions of one's own, found as those of NExT-QA were (Xiao et al. 2021, section 3.2).

In: questions with answers, their sentence embeddings, and the lemmas of answers. Out: options for each question, fewer than five where not
enough were found; a csv in the published form; `options_page` shows them to be checked and amended. Candidates are the answers of the 50
nearest questions of the same type (yes-or-no questions are left out), the nearest first. Left out are those with the lemmas of the right
answer or of one taken before, with a cosine above 0.9 to one of these, or with a cosine below 0.2 to the right answer. The seed draws four,
and the right option is at each place as often as at any other.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vip.errors import InputError
from vip.html.markup import showable
from vip.store import replacing
from vip.tasks.fiber.hits import guard_cell
from vip.tasks.nextqa.files import OPTIONS, Question
from vip.tasks.nextqa.statistics import answer_text

NEAREST = 50
TOO_NEAR, TOO_FAR = 0.9, 0.2
"""Cosines of answers."""
WRONG = 4
ROWS_AT_ONCE = 256  # of a matrix of cosines: 34,000 columns of 8 bytes are 70 MB
COLUMNS = ("video", "frame_count", "width", "height", "question", "answer", "qid", "type", *OPTIONS)

Vectors = npt.NDArray[np.float64]
Embed = Callable[[Sequence[str]], Vectors]
"""Returns float64 (N, D), rows of length 1."""
Lemmas = Callable[[str], tuple[str, ...]]
"""Returns the lemmas of an answer without stop words."""


@dataclass(frozen=True, slots=True)
class MultiChoiceQuestion:
    """A question with its options."""

    question: Question
    text: str
    """The right answer."""
    options: tuple[str, ...]
    """Five; fewer where not enough distractors were found, the right answer first."""
    answer: int
    """Place of the right option."""
    qualified: int
    """Answers that were left to draw from."""

    @property
    def is_complete(self) -> bool:
        return len(self.options) == len(OPTIONS)


def make_options(questions: Iterable[Question], *, embed: Embed, lemmas: Lemmas, seed: int = 0) -> list[MultiChoiceQuestion]:
    """Return the questions with options, in their order; those of the type DB are left out.

    Raises:
        InputError: a question has no text or no answer, or all are of the type DB.
    """
    kept = [question for question in questions if question.type != "DB"]
    if not kept:
        raise InputError("There is no question that could have options: those of the type DB have none. Give others.")
    answers = [_answer(question) for question in kept]
    asked, answered = embed([question.text for question in kept]), embed(answers)
    normal = [lemmas(answer) or tuple(answer.lower().split()) for answer in answers]
    found: dict[int, tuple[list[str], int]] = {}
    for members in _by_type(kept):
        for index, near in _nearest(asked[members]):
            one = members[index]
            qualified = _qualified(one, [members[place] for place in near], answered, normal)
            drawn = random.Random(f"{seed} {kept[one].id}").sample(qualified, min(WRONG, len(qualified)))
            found[one] = [answers[place] for place in drawn], len(qualified)
    places = even_places(sum(len(wrong) == WRONG for wrong, _ in found.values()), seed)
    return [_assemble(question, answers[one], *found[one], places) for one, question in enumerate(kept)]


def even_places(count: int, seed: int) -> Iterator[int]:
    """Yield the places of the right options: each of the five as often as any other, or once more, in an order drawn by the seed."""
    places = [number % len(OPTIONS) for number in range(count)]
    random.Random(f"{seed} places").shuffle(places)
    return iter(places)


def _assemble(question: Question, answer: str, wrong: list[str], qualified: int, places: Iterator[int]) -> MultiChoiceQuestion:
    place = next(places) if len(wrong) == WRONG else 0
    return MultiChoiceQuestion(question, answer, (*wrong[:place], answer, *wrong[place:]), place, qualified)


def _answer(question: Question) -> str:
    answer = answer_text(question)
    if not question.text.strip() or not (answer or "").strip():
        raise InputError(f"Line {question.line}: the question {question.id} has no text or no answer, so no options can be found for it.")
    return answer or ""


def _by_type(questions: Sequence[Question]) -> list[list[int]]:
    """Return the numbers of the questions of each type, as annotated."""
    members: dict[str, list[int]] = {}
    for index, question in enumerate(questions):
        members.setdefault(question.type, []).append(index)
    return list(members.values())


def _nearest(vectors: Vectors) -> Iterator[tuple[int, list[int]]]:
    """Yield for each row the 50 others with the largest cosine, the nearest first, equal ones in their order."""
    for start in range(0, len(vectors), ROWS_AT_ONCE):
        cosines = vectors[start : start + ROWS_AT_ONCE] @ vectors.T
        for row, values in enumerate(cosines, start):
            values[row] = -np.inf
            yield row, [int(place) for place in np.argsort(-values, kind="stable")[: min(NEAREST, len(vectors) - 1)]]


def _qualified(one: int, near: Sequence[int], vectors: Vectors, lemmas: Sequence[tuple[str, ...]]) -> list[int]:
    """Return those of the nearest questions whose answers are unlike the right one and one another, but not too far from it."""
    taken = [one]
    for place in near:
        cosines = vectors[taken] @ vectors[place]
        if cosines[0] >= TOO_FAR and cosines.max() <= TOO_NEAR and all(lemmas[place] != lemmas[other] for other in taken):
            taken.append(place)
    return taken[1:]


def write_questions(path: Path, made: Iterable[MultiChoiceQuestion]) -> int:
    """Write the questions that have all of their options as the published files have them, and return their number.

    Raises:
        StoreError: not writable.
    """
    count = 0
    with replacing(path) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(COLUMNS)
        for one in made:
            if one.is_complete:
                count += 1
                asked = one.question
                texts = map(cell_text, (asked.text, str(one.answer), asked.qid, asked.type, *one.options))
                rows.writerow((cell_text(asked.video), asked.frame_count, "", "", *texts))
        text.detach()
    return count


def cell_text(text: str) -> str:
    """Return a text on one line, with U+FFFD for what a terminal would obey, and an apostrophe before a formula, which is read away."""
    return guard_cell(" ".join(showable(text).splitlines()))
