"""Results of Mechanical Turk into the log of a review: each worker is a reviewer, `mturk:<id>`.

In: CSV files as Mechanical Turk writes them. Out: actions in the log (see `vip.review.mturk_log`); the same results count once, however
often they are read. Of files that are read together, one that says approved counts
more than one that says rejected. All texts are other people's, and are checked as
the page's.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vip.errors import InputError
from vip.review.blanks import FILLED, BlankState
from vip.review.fields import COMMENT, MOST_NAME, TEXTS, VERDICTS, WORKER, WRONG
from vip.review.mturk import WRONG_FIELD, item_key
from vip.review.mturk_log import OF_ANOTHER, REJECTED, ImportedResults, WorkerAnswer, record_answers
from vip.review.state import ReviewState
from vip.tasks.fiber.policy import WorkerPolicy
from vip.tasks.fiber.results import ANSWERS, parse_fields, read_results
from vip.tasks.fiber.results import COMMENT as COMMENT_OF_WORKER
from vip.tasks.json_rows import open_bounded
from vip.untrusted import long_cells, one_line

MOST_BYTES = 2**30
NEEDED = ("AssignmentId", "WorkerId", "Input.item", ANSWERS)
KNOWN = "the assignment is there already"
"""What `read_results` says of an assignment that is in several files; it counts once."""


def import_keyframe_results(state: ReviewState, paths: Sequence[Path], policy: WorkerPolicy) -> ImportedResults:
    """Read verdicts, marks and comments of workers into the log.

    Raises:
        InputError: a file cannot be read, lacks a column, or no file has a row.
        StoreError: the log cannot be written.
    """
    found, rejected = ImportedResults(), set[tuple[str, str]]()
    keys = {item_key(item): item.id for item in state.index.items}
    answers: dict[str, WorkerAnswer] = {}
    for row in _rows(paths):
        try:
            if _is_rejected(row):
                rejected.add((_assignment(row), _name(row["WorkerId"])))
            else:
                answer = _answer_of(row, keys, policy)
                answers[answer.assignment] = _joined(answers.get(answer.assignment), answer)
        except ValueError as exc:
            found.left_out[str(exc)] += 1
    record_answers(state, answers.values(), rejected, found)
    return found


def import_blank_results(state: BlankState, paths: Sequence[Path], policy: WorkerPolicy) -> ImportedResults:
    """Read what workers filled blanks with into the log; errors as of `import_keyframe_results`."""
    results, found = read_results(paths), ImportedResults()
    asked = {(item.record.clip_id, item.record.masked_caption): item.id for item in state.items}
    comments = {row.assignment: row.text for row in results.left_out if row.reason == COMMENT_OF_WORKER}
    found.left_out.update(
        row.reason for row in results.left_out if row.question is None and row.reason not in (COMMENT_OF_WORKER, REJECTED, KNOWN)
    )
    answers: list[WorkerAnswer] = []
    for one in results.assignments.values():
        try:
            reviewer = _reviewer(one.worker, policy)
        except ValueError as exc:
            found.left_out[str(exc)] += 1
            continue
        questions = results.questions[one.hit]
        items = {place: asked.get((record.clip_id, record.masked_caption)) for place, record in questions.items()}
        filled = [(item, FILLED, "\n".join(one.answers[place])) for place, item in items.items() if item and place in one.answers]
        if not filled:
            found.left_out["no blank of this file"] += 1
            continue
        if one.id in comments:
            filled.append((filled[0][0], COMMENT, comments[one.id]))
        answers.append(WorkerAnswer(one.id, reviewer, filled, one.is_approved))
    rejected = {(row.assignment, _name(row.worker)) for row in results.left_out if row.reason == REJECTED}
    record_answers(state, answers, rejected, found)
    return found


# ---------------------------------------------------------------- rows


def _rows(paths: Iterable[Path]) -> Iterator[dict[str, str]]:
    """Yield the rows of the files.

    Raises:
        InputError: a file cannot be read, lacks a column, or no file has a row.
    """
    count = 0
    for path in paths:
        with open_bounded(path, MOST_BYTES) as file, long_cells():
            try:
                rows = csv.DictReader(io.StringIO(file.read().decode("utf-8-sig"), newline=""), restval="")
                if missing := [name for name in NEEDED if name not in (rows.fieldnames or ())]:
                    raise InputError(f"{path} has no column {', '.join(missing)}. Give the results as Mechanical Turk writes them.")
                for row in rows:
                    count += 1
                    yield row
            except UnicodeDecodeError as exc:
                raise InputError(f"{path} is not UTF-8 text (byte {exc.start:,}). Download the results again.") from exc
            except csv.Error as exc:
                raise InputError(f"{path} is no CSV ({exc}). Download the results again.") from exc
    if not count:
        raise InputError("There is no assignment. Download the results when workers have answered.")


def _is_rejected(row: Mapping[str, str]) -> bool:
    status = row.get("AssignmentStatus")
    return status == "Rejected" or (bool(row.get("RejectionTime")) and status != "Approved")


def _assignment(row: Mapping[str, str]) -> str:
    if not row["AssignmentId"].strip():
        raise ValueError("no AssignmentId")
    return row["AssignmentId"]


def _joined(known: WorkerAnswer | None, answer: WorkerAnswer) -> WorkerAnswer:
    """Return an answer that may be in several files, once.

    Raises:
        ValueError: it has the id of another one.
    """
    if known is None:
        return answer
    if (known.reviewer, known.said[0][0]) != (answer.reviewer, answer.said[0][0]):
        raise ValueError(OF_ANOTHER)
    return replace(known, is_approved=known.is_approved or answer.is_approved)


def _answer_of(row: Mapping[str, str], keys: Mapping[str, str], policy: WorkerPolicy) -> WorkerAnswer:
    """Return what a worker said.

    Raises:
        ValueError: it cannot be used; the message says why.
    """
    item = keys.get(row["Input.item"])
    if item is None:
        raise ValueError("a keyframe or a description that is not here")
    reviewer = _reviewer(row["WorkerId"], policy)
    fields = parse_fields(row[ANSWERS])
    verdict = _chosen(fields.get("verdict"))
    if verdict not in VERDICTS:
        raise ValueError("no verdict")
    said = [(item, "verdict", verdict)]
    said += [(item, f"{WRONG}:{name}", WRONG) for name in TEXTS if _chosen(fields.get(f"{WRONG_FIELD}{name}")) == WRONG]
    if isinstance(comment := fields.get("comments"), str) and comment.strip():
        said.append((item, COMMENT, comment))
    is_approved = row.get("AssignmentStatus") == "Approved" or bool(row.get("ApprovalTime"))
    return WorkerAnswer(_assignment(row), reviewer, said, is_approved)


def _chosen(value: Any) -> str | None:
    """Return what was chosen: Mechanical Turk writes `good`, or `{"good": true, "needs work": false}`."""
    if isinstance(value, dict):
        return next((name for name, is_chosen in value.items() if is_chosen is True), None)
    return value if isinstance(value, str) else None


def _reviewer(worker: str, policy: WorkerPolicy) -> str:
    name = _name(worker)
    if not name.removeprefix(WORKER) or len(one_line(worker)) > MOST_NAME - len(WORKER):
        raise ValueError("no id of a worker")
    if name.removeprefix(WORKER) in policy.disqualified:
        raise ValueError("a disqualified worker")
    return name


def _name(worker: str) -> str:
    return f"{WORKER}{one_line(worker).removeprefix(WORKER)}"
