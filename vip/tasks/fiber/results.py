"""Results of HITs as Mechanical Turk writes them: a CSV file, a row an assignment (the columns of the authors' code).

In: files with `HITId, AssignmentId, WorkerId, Input.video1_id, …, Answer.taskAnswers`, and `ApprovalTime, RejectionTime` where they are.
Out: the questions of each HIT and the answers of each worker, in order. What cannot be used is kept with the reason, and nothing is lost:
the same file in two exports counts once. All texts are other people's; none is run, and none becomes a formula.
"""

from __future__ import annotations

import csv
import html
import io
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vip.errors import InputError
from vip.records import Record
from vip.tasks.fiber.hits import MOST_PER_HIT, normalize_as_page, unguard_cell
from vip.tasks.fiber.records import BLANK, FiberRecord
from vip.tasks.json_rows import open_bounded
from vip.untrusted import MOST_CELL_LETTERS, long_cells, one_line, parse_json, printable

MOST_BYTES = 2**30
MOST_ANSWER_LETTERS = 500  # as on the page
NEEDED = ("HITId", "AssignmentId", "WorkerId", "Answer.taskAnswers", "Input.question1", "Input.video1_id")
ANSWERS = "Answer.taskAnswers"
_ANSWER = re.compile(r"answer-(\d{1,4})-(\d{1,6})")
_TYPED = re.compile(r"answer-input-(\d{1,4})")
COMMENT = "a comment of the worker"


class LeftOut(Record):
    """One row of left-out.jsonl: what was not used, whole, and why."""

    file: str
    row: int
    """Of the CSV file, the first behind its header is 1."""
    assignment: str
    worker: str
    question: int | None = None
    """From 1; None where it is about the whole row."""
    reason: str
    text: str
    """The answer, or the cell of answers, as it came."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one worker answered to one HIT."""

    id: str
    hit: str
    worker: str
    answers: Mapping[int, tuple[str, ...]]
    """Of each question (from 1), the most natural first; different after normalisation."""
    is_approved: bool
    file: str
    row: int


@dataclass(slots=True)
class HitResults:
    """The questions of HITs, and who answered them."""

    questions: dict[str, dict[int, FiberRecord]] = field(default_factory=dict)
    """Of each HIT, by their place from 1."""
    assignments: dict[str, Assignment] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    rejected_workers: set[str] = field(default_factory=set)
    """Of whom an assignment was rejected before."""
    taken: dict[tuple[str, str], str] = field(default_factory=dict)
    """HIT and worker -> assignment."""

    def reasons(self) -> Counter[str]:
        """Return how much was left out for each reason."""
        return Counter(row.reason for row in self.left_out)

    def leave_out(self, assignment: Assignment, reason: str) -> None:
        """Take an assignment out, and keep its answers with the reason."""
        del self.assignments[assignment.id]
        for question, answers in assignment.answers.items():
            for answer in answers:
                self.left_out.append(_left_out(assignment, question, reason, answer))


def _left_out(assignment: Assignment, question: int | None, reason: str, text: str) -> LeftOut:
    return LeftOut(
        file=assignment.file,
        row=assignment.row,
        assignment=assignment.id,
        worker=assignment.worker,
        question=question,
        reason=reason,
        text=text,
    )


def is_unavailable(answer: str) -> bool:
    """Return whether a worker says that the video is gone."""
    return "unavailable" in answer.lower() and "video" in answer.lower()


def read_results(paths: Sequence[Path]) -> HitResults:
    """Read files of results; later ones count more for whether an assignment was approved or rejected.

    Raises:
        InputError: a file cannot be read, lacks a column, or no file has a row.
    """
    results, rows = HitResults(), 0
    for path in paths:
        for number, row in _rows(path):
            rows += 1
            _add(results, path.name, number, row)
    if not rows:
        raise InputError(f"{', '.join(map(str, paths))}: there is no assignment. Download the results when workers have answered.")
    return results


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    with open_bounded(path, MOST_BYTES) as file, long_cells():
        lines = csv.reader(_text_of(file, path))
        try:
            header = next(lines, [])
            if missing := [name for name in NEEDED if name not in header]:
                raise InputError(f"{path} has no column {', '.join(missing)}. Give the results as Mechanical Turk writes them.")
            for number, cells in enumerate(lines, 1):
                if any(cells):
                    yield number, {name: cells[place] if place < len(cells) else "" for place, name in enumerate(header)}
        except csv.Error as exc:
            raise InputError(f"{path}, line {lines.line_num:,}: it is no CSV ({exc}). Download the results again.") from exc


def _text_of(file: Any, path: Path) -> io.StringIO:
    try:
        return io.StringIO(file.read().decode("utf-8-sig"), newline="")
    except UnicodeDecodeError as exc:
        raise InputError(f"{path} is not UTF-8 text (byte {exc.start:,}). Download the results again.") from exc


def _add(results: HitResults, file: str, number: int, row: dict[str, str]) -> None:
    """Add an assignment, or what is wrong with it."""
    assignment_id, hit, worker = (one_line(row[name]) for name in ("AssignmentId", "HITId", "WorkerId"))
    status = row.get("AssignmentStatus")
    is_approved = status == "Approved" or bool(row.get("ApprovalTime"))
    empty = Assignment(assignment_id, hit, worker, {}, is_approved, file, number)

    def refuse(reason: str, text: str | None = None, question: int | None = None) -> None:
        results.left_out.append(_left_out(empty, question, reason, row[ANSWERS] if text is None else text))

    if lacking := [name for name in ("HITId", "AssignmentId", "WorkerId") if not row[name].strip()]:
        return refuse(f"no {lacking[0]}")
    if status == "Rejected" or (row.get("RejectionTime") and status != "Approved"):
        results.rejected_workers.add(empty.worker)
        results.assignments.pop(empty.id, None)
        if results.taken.get((empty.hit, empty.worker)) == empty.id:
            del results.taken[empty.hit, empty.worker]
        return refuse("rejected on Mechanical Turk")
    try:
        fields = parse_fields(row[ANSWERS])
        questions = _questions(row)
    except ValueError as exc:
        return refuse(str(exc))
    if results.questions.setdefault(empty.hit, questions) != questions:
        return refuse("other questions than before in this HIT")
    answers, problems = _answers(fields, questions)
    known = results.assignments.get(empty.id)
    assignment = replace(empty, answers=answers)
    if known is not None and (known.answers, known.worker, known.hit) != (answers, empty.worker, empty.hit):
        return refuse("the assignment is there already, with other answers")
    if known is not None:
        results.assignments[empty.id] = replace(known, is_approved=known.is_approved or empty.is_approved)
        return refuse("the assignment is there already")
    if results.taken.setdefault((empty.hit, empty.worker), empty.id) != empty.id:
        return refuse("the worker answered this HIT already")
    results.assignments[empty.id] = assignment
    for question, reason, text in problems:
        refuse(reason, text, question)
    return None


def parse_fields(cell: str) -> dict[str, Any]:
    """Return what the page sent: `[{"answer-1-0": …}]`.

    Raises:
        ValueError: it has another form.
    """
    try:
        value = parse_json(cell, most_bytes=4 * MOST_CELL_LETTERS)
    except ValueError as exc:
        raise ValueError("the answers are no JSON") from exc
    parts = value if isinstance(value, list) else [value]
    if not parts or not all(isinstance(part, dict) for part in parts):
        raise ValueError("the answers are no JSON object")
    return {name: text for part in parts for name, text in part.items()}


def _questions(row: Mapping[str, str]) -> dict[int, FiberRecord]:
    """Return the questions of a HIT.

    Raises:
        ValueError: one has no blank or no times.
    """
    found = {}
    for place in range(1, MOST_PER_HIT + 1):
        masked = printable(html.unescape(row.get(f"Input.question{place}", "")))
        if not masked.strip():
            continue
        label = printable(unguard_cell(row.get(f"Input.label{place}", "")))
        try:
            found[place] = FiberRecord(
                video_id=one_line(html.unescape(row.get(f"Input.video{place}_id", ""))),
                video_start_time=round(float(row.get(f"Input.video{place}_start_time", ""))),
                video_end_time=round(float(row.get(f"Input.video{place}_end_time", ""))),
                caption=masked.replace(BLANK, label, 1),
                masked_caption=masked,
                label=label,
            )
        except (ValidationError, ValueError, OverflowError) as exc:
            raise ValueError(f"question {place} has no blank, no label or no times") from exc
    if not found:
        raise ValueError("no question")
    return found


def _answers(
    fields: Mapping[str, Any], questions: Mapping[int, FiberRecord]
) -> tuple[dict[int, tuple[str, ...]], list[tuple[int | None, str, str]]]:
    """Return the answers to each question in order, and what was left out: question, reason, text."""
    problems: list[tuple[int | None, str, str]] = []
    ordered: dict[int, list[tuple[int, str]]] = {}
    for name, value in fields.items():
        match, typed = _ANSWER.fullmatch(name), _TYPED.fullmatch(name)
        found = match or typed
        text = value if isinstance(value, str) else str(value)
        if name == "comments" and text.strip():
            problems.append((None, COMMENT, text))
        elif found is not None and text.strip():
            question = int(found[1])
            if question not in questions:
                problems.append((question, "an answer to no question", text))
            elif not isinstance(value, str):
                problems.append((question, "no text", text))
            elif len(text) > MOST_ANSWER_LETTERS:
                problems.append((question, f"more than {MOST_ANSWER_LETTERS} letters", text))
            else:
                ordered.setdefault(question, []).append((int(match[2]) if match else sys.maxsize, one_line(text)))
    answers = {}
    for question in sorted(ordered):
        kept, seen = [], set[str]()
        for _, text in sorted(ordered[question], key=lambda one: one[0]):
            words = normalize_as_page(text)
            if not words or words in seen:
                problems.append((question, "no word" if not words else "the worker's answer is there already", text))
                continue
            seen.add(words)
            kept.append(text)
        answers[question] = tuple(kept)
    return answers, problems


def describe_left_out(results: HitResults) -> list[str]:
    """Return a line for each reason, the most frequent first."""
    return [f"{count:,} left out: {one_line(reason)}" for reason, count in results.reasons().most_common() if reason != COMMENT]
