"""What `vip fiber collect` does: check results of workers, keep noun phrases, review workers, assemble records, and count what is owed.

In: results of Mechanical Turk, a policy, a parser; for the second call the sheet on which people marked answers. Out: records with the
answers of workers (Castro et al. 2022, section 3.2), a sheet to mark or the decisions on workers, and bonuses in cents.
"""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vip import store
from vip.errors import InputError
from vip.files import read_named
from vip.metrics.blank_answers import normalize_phrase
from vip.tasks.fiber.hits import guard_cell, unguard_cell
from vip.tasks.fiber.noun_phrases import Parser, judge_answers
from vip.tasks.fiber.policy import PayPolicy, WorkerPolicy
from vip.tasks.fiber.records import FiberRecord
from vip.tasks.fiber.results import Assignment, HitResults, is_unavailable
from vip.tasks.files import csv_errors
from vip.untrusted import long_cells, parse_json
from vip.wording import counted

MOST_SHEET_BYTES = 256 * 2**20
SHEET = ("worker_id", "video_id", "video_start_time", "video_end_time", "question", "label", "answer", "reviewer", "correct?")
MARKS = frozenset({"y", "yes", "true", "1"})
Decision = Literal["approved before", "to review", "approve", "warn", "reject"]


@dataclass(frozen=True, slots=True)
class Collected:
    """Results with what is a noun phrase in them."""

    results: HitResults
    noun_phrases: dict[tuple[str, int], tuple[str, ...]]
    """Of an assignment and a question."""
    judged: int
    """Answers that were judged."""

    @property
    def kept(self) -> int:
        return sum(map(len, self.noun_phrases.values()))

    def correct(self, assignment: Assignment) -> int:
        """Return the number of noun phrases in an assignment."""
        return sum(len(self.noun_phrases[assignment.id, question]) for question in assignment.answers)


def collect(results: HitResults, policy: WorkerPolicy, parser: Parser | None) -> Collected:
    """Leave out who may not work, and find the noun phrases. Answers that are none stay in the results."""
    for assignment in list(results.assignments.values()):
        if assignment.worker in policy.disqualified:
            results.leave_out(assignment, "the worker is disqualified")
    places = [
        (assignment.id, question, results.questions[assignment.hit][question].masked_caption, answer)
        for assignment in results.assignments.values()
        for question, answers in assignment.answers.items()
        for answer in answers
    ]
    different = list(dict.fromkeys((masked, answer) for _, _, masked, answer in places))
    judged = dict(zip(different, judge_answers(different, parser), strict=True))
    found: dict[tuple[str, int], list[str]] = {
        (assignment.id, question): [] for assignment in results.assignments.values() for question in assignment.answers
    }
    for identity, question, masked, answer in places:
        if judged[masked, answer]:
            found[identity, question].append(answer)
    return Collected(results, {place: tuple(answers) for place, answers in found.items()}, len(places))


# ---------------------------------------------------------------- review


@dataclass(frozen=True, slots=True)
class WorkerReview:
    """What is known of a worker, and what follows."""

    worker: str
    questions: int
    """That are not approved yet."""
    score: float
    """Correct answers a question that was considered; noun phrases a question where none was marked."""
    decision: Decision


def _open_questions(collected: Collected) -> dict[str, list[tuple[Assignment, int]]]:
    """Return the questions of each worker that are not approved yet, answered or not."""
    found: dict[str, list[tuple[Assignment, int]]] = defaultdict(list)
    for assignment in collected.results.assignments.values():
        if not assignment.is_approved:
            found[assignment.worker] += [(assignment, question) for question in collected.results.questions[assignment.hit]]
    return found


def _phrases_a_question(collected: Collected, questions: Sequence[tuple[Assignment, int]]) -> float:
    return sum(len(collected.noun_phrases.get((one.id, question), ())) for one, question in questions) / len(questions)


def decide(score: float, questions: int, policy: WorkerPolicy) -> Decision:
    """Return what follows from correct answers a question, and from how many questions there are."""
    bounds = policy.review
    if score < bounds.reject_below or (score < bounds.warn_below and questions < bounds.enough_questions):
        return "reject"
    return "warn" if score < bounds.warn_below else "approve"


def review_workers(collected: Collected, policy: WorkerPolicy, marks: dict[str, int] | None) -> list[WorkerReview]:
    """Return what follows for each worker, by name.

    Args:
        marks: correct answers of each worker on the sheet; None before people marked it.
    """
    open_questions = _open_questions(collected)
    reviews = []
    for worker in sorted({one.worker for one in collected.results.assignments.values()}):
        questions = open_questions.get(worker, [])
        if not questions:
            reviews.append(WorkerReview(worker, 0, 0.0, "approved before"))
            continue
        score, decision = _phrases_a_question(collected, questions), "reject"
        if decide(score, len(questions), policy) != "reject":
            decision = "to review"
            if marks is not None and worker in marks:
                score = marks[worker] / min(policy.review.questions, len(questions))
                decision = decide(score, len(questions), policy)
        reviews.append(WorkerReview(worker, len(questions), score, decision))  # type: ignore[arg-type]
    return reviews


def review_rows(collected: Collected, policy: WorkerPolicy, seed: int) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the sheet: the answers to some questions of each worker whose noun phrases are enough.

    Marked already: answers that equal the label, that say the video is gone, and those of workers who were approved before.
    """
    before = {one.worker for one in collected.results.assignments.values() if one.is_approved} - collected.results.rejected_workers
    for worker, questions in sorted(_open_questions(collected).items()):
        if decide(_phrases_a_question(collected, questions), len(questions), policy) == "reject":
            continue
        chosen = questions
        if len(questions) > policy.review.questions:
            chosen = random.Random(f"{seed} {worker}").sample(questions, policy.review.questions)
        for assignment, place in chosen:
            record = collected.results.questions[assignment.hit][place]
            for answer in assignment.answers.get(place, ()):
                is_right = normalize_phrase(answer) == normalize_phrase(record.label) or is_unavailable(answer) or worker in before
                times = str(record.video_start_time), str(record.video_end_time)
                yield (worker, record.video_id, *times, record.masked_caption, record.label, answer, "", "y" if is_right else "")


def write_sheet(path: Path, rows: Iterable[Sequence[str]]) -> int:
    """Write the sheet and return the number of its rows; no text becomes a formula.

    Raises:
        StoreError: not writable.
    """
    count = 0
    with store.replacing(path) as file:
        for count, row in enumerate((SHEET, *rows)):  # noqa: B007 - the number of the last row
            line = io.StringIO()
            csv.writer(line, lineterminator="\r\n").writerow(map(guard_cell, row))
            file.write(line.getvalue().encode())
    return count


def read_marks(path: Path) -> dict[str, int]:
    """Return the number of answers of each worker that people marked as correct; 0 for those without a mark.

    Raises:
        InputError: the sheet cannot be read, or lacks a column.
    """
    try:
        text = read_named(path, most_bytes=MOST_SHEET_BYTES).decode("utf-8-sig")
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror or exc}. Check the path.") from exc
    except UnicodeDecodeError as exc:
        raise InputError(f"{path} is not UTF-8 text (byte {exc.start:,}). Save it as UTF-8.") from exc
    marks = Counter[str]()
    with csv_errors(path), long_cells():
        rows = csv.DictReader(io.StringIO(text, newline=""))
        if missing := [name for name in ("worker_id", "answer", "correct?") if name not in (rows.fieldnames or ())]:
            raise InputError(f"{path} has no column {', '.join(missing)}. Give the sheet that `vip fiber collect` wrote, with marks in it.")
        for row in rows:
            marks[unguard_cell(row["worker_id"] or "")] += (row["correct?"] or "").strip().lower() in MARKS
    return dict(marks)


def leave_out_rejected(collected: Collected, reviews: Sequence[WorkerReview]) -> None:
    """Take the assignments of rejected workers out that are not approved already."""
    rejected = {one.worker for one in reviews if one.decision == "reject"}
    for assignment in list(collected.results.assignments.values()):
        if assignment.worker in rejected and not assignment.is_approved:
            collected.results.leave_out(assignment, "the worker was rejected in the review")


# ---------------------------------------------------------------- records


@dataclass(frozen=True, slots=True)
class Assembled:
    """Records with the answers of workers, and how many blanks have none."""

    records: tuple[FiberRecord, ...]
    unavailable: int
    """Blanks of whose video a worker says that it is gone."""
    unanswered: int


def assemble(collected: Collected) -> Assembled:
    """Return a record a blank: the noun phrases of each worker who has one. Blanks without any answer, and those whose video is gone for a
    worker, are left out; a blank that was asked in several HITs is one."""
    by_hit: dict[str, list[Assignment]] = defaultdict(list)
    for one in collected.results.assignments.values():
        by_hit[one.hit].append(one)
    blanks: dict[str, tuple[FiberRecord, list[tuple[str, int]]]] = {}
    for hit, questions in collected.results.questions.items():
        for place, record in questions.items():
            _, places = blanks.setdefault(f"{record.clip_id} {record.masked_caption}", (record, []))
            places += [(one.id, place) for one in by_hit[hit]]
    records, unavailable, unanswered = [], 0, 0
    for record, places in blanks.values():
        answers = [text for identity, place in places for text in collected.results.assignments[identity].answers.get(place, ())]
        if not answers:
            unanswered += 1
        elif any(map(is_unavailable, answers)):
            unavailable += 1
        else:
            phrases = [list(collected.noun_phrases[place]) for place in places if collected.noun_phrases.get(place)]
            records.append(record.model_copy(update={"additional_answers": phrases}))
    return Assembled(tuple(records), unavailable, unanswered)


# ---------------------------------------------------------------- pay


@dataclass(frozen=True, slots=True)
class Bonus:
    """What is owed for one assignment beyond its pay, in cents."""

    assignment: str
    worker: str
    correct: int
    for_answers: int
    for_best: int
    thanks: int = 0

    @property
    def cents(self) -> int:
        return self.for_answers + self.for_best + self.thanks


def count_bonuses(collected: Collected, pay: PayPolicy) -> list[Bonus]:
    """Return what is owed for each assignment that gets something, in the order of the results.

    An assignment gets cents for each correct answer beyond those that the pay covers, up to the most; the one with the most correct answers
    of its HIT (the first of a tie) gets the pay of the best. A worker who gets nothing is thanked, at the first assignment.
    """
    assignments = collected.results.assignments.values()
    correct = {one.id: collected.correct(one) for one in assignments}
    best: dict[str, Assignment] = {}
    for one in assignments:
        if one.hit not in best or correct[one.id] > correct[best[one.hit].id]:
            best[one.hit] = one
    bonuses = []
    for one in assignments:
        more = min(max(0, correct[one.id] - pay.covered_answers), pay.most_answers)
        is_best = best[one.hit].id == one.id and correct[one.id] > 0
        bonuses.append(Bonus(one.id, one.worker, correct[one.id], more * pay.answer, pay.best if is_best else 0))
    earned = {bonus.worker for bonus in bonuses if bonus.cents}
    owed = []
    for bonus in bonuses:
        if not bonus.cents and bonus.worker not in earned and pay.thanks:
            bonus = Bonus(bonus.assignment, bonus.worker, bonus.correct, 0, 0, pay.thanks)
            earned.add(bonus.worker)
        if bonus.cents:
            owed.append(bonus)
    return owed


def read_paid(paths: Sequence[Path]) -> tuple[set[str], set[str]]:
    """Return the assignments and the workers that earlier files of bonuses have.

    Raises:
        InputError: a file is damaged; the message names the line.
    """
    assignments, workers = set[str](), set[str]()
    for path in paths:
        try:
            lines = read_named(path, most_bytes=MOST_SHEET_BYTES).splitlines()
        except OSError as exc:
            raise InputError(f"{path} cannot be read: {exc.strerror or exc}. Check the path.") from exc
        for number, line in enumerate(lines, 1):
            try:
                row = parse_json(line)
                assignments.add(str(row["AssignmentId"]))
                workers.add(str(row["WorkerId"]))
            except (ValueError, TypeError, KeyError) as exc:
                raise InputError(f"{path}, line {number:,}: it is no bonus. Give the file that `vip fiber collect` wrote.") from exc
    return assignments, workers


def unpaid(bonuses: Iterable[Bonus], paid: tuple[set[str], set[str]]) -> list[Bonus]:
    """Return the bonuses whose assignment was not paid before; a worker who was paid is not thanked."""
    assignments, workers = paid
    return [one for one in bonuses if one.assignment not in assignments and not (one.thanks and one.worker in workers)]


def write_bonuses(path: Path, bonuses: Iterable[Bonus]) -> int:
    """Write the arguments of Mechanical Turk's SendBonus, a line an assignment, and return the sum in cents.

    The request token is the id of the assignment: sent twice, it is paid once.

    Raises:
        StoreError: not writable.
    """
    total = 0
    with store.replacing(path) as file:
        for one in bonuses:
            total += one.cents
            row = {
                "UniqueRequestToken": one.assignment,
                "AssignmentId": one.assignment,
                "WorkerId": one.worker,
                "BonusAmount": dollars(one.cents),
                "Reason": _reason(one),
            }
            file.write(json.dumps(row).encode() + b"\n")
    return total


def dollars(cents: int) -> str:
    """Return cents as dollars: `0.30`."""
    return f"{cents // 100}.{cents % 100:02}"


def _reason(one: Bonus) -> str:
    parts = []
    if one.for_answers:
        parts.append(f"{dollars(one.for_answers)} dollars for {counted(one.correct, 'correct answer')} in this HIT.")
    if one.for_best:
        parts.append(f"{dollars(one.for_best)} dollars for the most correct answers in this HIT.")
    if one.thanks:
        parts.append("You did not qualify for a bonus this time. This one is to say thank you for your work.")
    return " ".join(parts)
