"""Statistics of a set of questions: Table 1 and Figures 3, 7, 8, 9 and 10 of Xiao et al. 2021, and the rules of its annotation.

In: questions of either task, one at a time. Out: `QuestionStatistics`; words are split at white space. Memory grows with the number of
videos and of different words, not with that of questions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from vip.metrics.answer_words import STOP_WORDS
from vip.tasks.nextqa.files import Question, QuestionType, group_of
from vip.tasks.table import Table, TableCell, number_cell

MOST_QUESTION_WORDS, MOST_ANSWER_WORDS, MOST_COUNTED = 22, 6, 20
"""Limits of the annotation: words of a question, words of an answer, the answer to how many."""
IGNORED = STOP_WORDS | {"yes", "no"}
GROUPS = ("C", "T", "D")
FIRST_WORDS = 3
PARTS = {"NN": "noun", "VB": "verb", "JJ": "adjective", "RB": "adverb", "CD": "number", "IN": "preposition", "DT": "determiner"}
Tag = Callable[[Sequence[str]], Sequence[tuple[str, str]]]
_ONES = frozenset({"one", "two", "three", "four", "five", "six", "seven", "eight", "nine"})
_TENS = frozenset({"thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred", "thousand"})


@dataclass(slots=True)
class Lengths:
    """Numbers of words."""

    counts: Counter[int] = field(default_factory=Counter)

    @property
    def mean(self) -> float | None:
        """None where there is no text."""
        total = self.counts.total()
        return sum(length * count for length, count in self.counts.items()) / total if total else None

    def share_up_to(self, words: int) -> float | None:
        """Return the share of texts of at most so many words."""
        total = self.counts.total()
        return sum(count for length, count in self.counts.items() if length <= words) / total if total else None


@dataclass(slots=True)
class QuestionStatistics:
    """What is known about a set of questions."""

    questions: int = 0
    per_video: Counter[str] = field(default_factory=Counter)
    types: Counter[QuestionType] = field(default_factory=Counter)
    """TN and TP apart."""
    types_per_video: Counter[tuple[str, str]] = field(default_factory=Counter, repr=False)
    """Questions by video and type, TN and TP as TPN: Figure 8 (b) to (d)."""
    question_words: dict[str, Lengths] = field(default_factory=lambda: {name: Lengths() for name in ("all", *GROUPS)})
    answer_words: dict[str, Lengths] = field(default_factory=lambda: {name: Lengths() for name in ("all", *GROUPS)})
    openings: Counter[tuple[str, ...]] = field(default_factory=Counter, repr=False)
    """First three words of questions, without "the": Figure 7."""
    frequent_words: Counter[str] = field(default_factory=Counter, repr=False)
    """Words of answers, without yes, no and stop words: Figure 9."""
    parts_of_speech: Counter[str] = field(default_factory=Counter)
    """Of the words of answers: Figure 10 (c); empty where no tagger was given."""
    yes_no: Counter[str] = field(default_factory=Counter)
    """Answers yes and no among the questions of type DB."""
    places: Counter[int] = field(default_factory=Counter)
    """Where the right option stands."""

    @property
    def videos(self) -> int:
        return len(self.per_video)

    def type_share(self, name: str) -> float:
        """Return the share of a type, such as CW, or of a group, such as C; of all questions."""
        count = sum(number for kind, number in self.types.items() if name in {kind, kind[0], group_of(kind)})
        return count / self.questions if self.questions else 0.0

    @property
    def why_share(self) -> float | None:
        """The share of questions that begin with why; None where no question has a text."""
        whys = sum(count for words, count in self.openings.items() if words[:1] == ("why",))
        return whys / self.openings.total() if self.openings else None


def describe_questions(questions: Iterable[Question], *, tag: Tag | None = None) -> QuestionStatistics:
    """Return the statistics of questions.

    Args:
        tag: gives words their tags of the Penn Treebank: `PerceptronTagger.tag`.
    """
    found = QuestionStatistics()
    for question in questions:
        found.questions += 1
        found.per_video[question.video] += 1
        found.types[question.type] += 1
        found.types_per_video[question.video, group_of(question.type)] += 1
        if words := question.text.split():  # files of answers alone have none
            for name in ("all", question.type[0]):
                found.question_words[name].counts[len(words)] += 1
            found.openings[tuple([word for word in words if word != "the"][:FIRST_WORDS])] += 1
        if isinstance(question.answer, int):
            found.places[question.answer] += 1
        if (answer := answer_text(question)) is not None:
            _add_answer(found, question, answer.split(), tag)
    return found


def _add_answer(found: QuestionStatistics, question: Question, words: list[str], tag: Tag | None) -> None:
    for name in ("all", question.type[0]):
        found.answer_words[name].counts[len(words)] += 1
    found.frequent_words.update(word for word in words if word not in IGNORED)
    if question.type == "DB" and words in (["yes"], ["no"]):
        found.yes_no[words[0]] += 1
    if tag is not None:
        found.parts_of_speech.update(PARTS.get(kind[:2], "other") for _, kind in tag(words))


def answer_text(question: Question) -> str | None:
    """Return the right answer as text; None where the file has none."""
    if isinstance(question.answer, int):
        return question.options[question.answer]
    return " ".join(question.answer) if isinstance(question.answer, tuple) else question.answer


def annotation_faults(questions: Iterable[Question]) -> dict[str, list[str]]:
    """Return the ids of questions that break a rule of the paper's annotation (section 3.2), by rule. They are advice: NExT-QA has some."""
    long_question, long_answer = f"question of more than {MOST_QUESTION_WORDS} words", f"answer of more than {MOST_ANSWER_WORDS} words"
    large = f"count above {MOST_COUNTED}"
    faults: dict[str, list[str]] = {long_question: [], long_answer: [], large: []}
    for question in questions:
        answer = answer_text(question) or ""
        if len(question.text.split()) > MOST_QUESTION_WORDS:
            faults[long_question].append(question.id)
        if len(answer.split()) > MOST_ANSWER_WORDS:
            faults[long_answer].append(question.id)
        if question.type == "DC" and _is_large(answer):
            faults[large].append(question.id)
    return faults


def _is_large(answer: str) -> bool:
    words = answer.lower().replace("-", " ").split()
    if not words:
        return False
    if words[0].isascii() and words[0].isdigit():
        return len(words[0]) > 4 or int(words[0]) > MOST_COUNTED
    return words[0] in _TENS or (words[0] == "twenty" and len(words) > 1 and words[1] in _ONES)


def statistics_table(sets: dict[str, QuestionStatistics]) -> Table:
    """Return Table 1 and the figures in the text of section 3.3, a row a set of questions, such as a split."""
    columns = ("Questions", "Videos", "C %", "T %", "D %", "Why %", "Words a question", "C", "T", "D", "Words an answer", "C", "T", "D")
    rows = []
    for name, one in sets.items():
        shares = [100 * one.type_share(group) for group in GROUPS] + [None if one.why_share is None else 100 * one.why_share]
        lengths = [table[group].mean for table in (one.question_words, one.answer_words) for group in ("all", *GROUPS)]
        counts = [TableCell(f"{one.questions:,}", one.questions), TableCell(f"{one.videos:,}", one.videos)]
        rows.append((TableCell(name), *counts, *(number_cell(share, digits=1) for share in shares), *map(number_cell, lengths)))
    return Table(title="Questions (Table 1, Figure 3 of Xiao et al. 2021)", columns=("Set", *columns), rows=tuple(rows))
