"""Results of Mechanical Turk into the log of a review: each worker is a reviewer, `mturk:<id>`.

In: CSV files as Mechanical Turk writes them. Out: actions in the log. Each has an id made from its assignment, so that the same results
count once, however often they are read; what was rejected since is taken back. All texts are other people's, and are checked as the page's.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vip.errors import InputError, UsageError
from vip.review.blanks import FILLED, BlankState
from vip.review.fields import COMMENT, MOST_NAME, TEXTS, VERDICTS, WRONG
from vip.review.log import Action, NewAction
from vip.review.log_state import LogState
from vip.review.mturk import WRONG_FIELD, item_key
from vip.review.state import ReviewState
from vip.tasks.fiber.policy import WorkerPolicy
from vip.tasks.fiber.results import ANSWERS, parse_fields, read_results
from vip.tasks.fiber.results import COMMENT as COMMENT_OF_WORKER
from vip.tasks.json_rows import open_bounded
from vip.untrusted import long_cells, one_line

MOST_BYTES = 2**30
PREFIX = "mturk:"
NEEDED = ("AssignmentId", "WorkerId", "Input.item", ANSWERS)
REJECTED = "rejected on Mechanical Turk"


@dataclass(slots=True)
class ImportedResults:
    """What became of the assignments of some files."""

    assignments: int = 0
    """With an answer in the log, now or before."""
    written: int = 0
    """Actions that are new in the log."""
    taken_back: int = 0
    """Actions of assignments that were rejected since."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Assignments that cannot be used, by the reason."""


def import_keyframe_results(state: ReviewState, paths: Sequence[Path], policy: WorkerPolicy) -> ImportedResults:
    """Read verdicts, marks and comments of workers into the log.

    Raises:
        InputError: a file cannot be read, lacks a column, or no file has a row.
        StoreError: the log cannot be written.
    """
    found, rejected = ImportedResults(), list[str]()
    keys = {item_key(item): item.id for item in state.index.items}
    actions: list[NewAction] = []
    answered = set[str]()
    for row in _rows(paths):
        if row.get("RejectionTime") or row.get("AssignmentStatus") == "Rejected":
            rejected.append(row["AssignmentId"])
            found.left_out[REJECTED] += 1
            continue
        try:
            actions += _actions_of(row, keys, policy)
            answered.add(row["AssignmentId"])
        except ValueError as exc:
            found.left_out[str(exc)] += 1
    found.assignments = len(answered)
    _record(state, actions, rejected, found)
    return found


def import_blank_results(state: BlankState, paths: Sequence[Path], policy: WorkerPolicy) -> ImportedResults:
    """Read what workers filled blanks with into the log; errors as of `import_keyframe_results`."""
    results, found = read_results(paths), ImportedResults()
    asked = {(item.record.clip_id, item.record.masked_caption): item.id for item in state.items}
    comments = {row.assignment: row.text for row in results.left_out if row.reason == COMMENT_OF_WORKER}
    actions: list[NewAction] = []
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
        actions += _new_actions(one.id, reviewer, filled)
        found.assignments += 1
    rejected = [row.assignment for row in results.left_out if row.reason == REJECTED]
    if rejected:
        found.left_out[REJECTED] += len(rejected)
    _record(state, actions, rejected, found)
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


def _actions_of(row: Mapping[str, str], keys: Mapping[str, str], policy: WorkerPolicy) -> list[NewAction]:
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
    return _new_actions(row["AssignmentId"], reviewer, said)


def _chosen(value: Any) -> str | None:
    """Return what was chosen: Mechanical Turk writes `good`, or `{"good": true, "needs work": false}`."""
    if isinstance(value, dict):
        return next((name for name, is_chosen in value.items() if is_chosen is True), None)
    return value if isinstance(value, str) else None


def _reviewer(worker: str, policy: WorkerPolicy) -> str:
    name = one_line(worker).strip()
    if not name or len(name) > MOST_NAME - len(PREFIX):
        raise ValueError("no id of a worker")
    if name.removeprefix(PREFIX) in policy.disqualified:
        raise ValueError("a disqualified worker")
    return name if name.startswith(PREFIX) else f"{PREFIX}{name}"


# ---------------------------------------------------------------- the log


def _uid_prefix(assignment: str) -> str:
    return f"mturk-{hashlib.sha256(assignment.encode('utf-8', 'replace')).hexdigest()[:32]}-"


def _new_actions(assignment: str, reviewer: str, said: Sequence[tuple[str, str, str]]) -> list[NewAction]:
    prefix = _uid_prefix(assignment)
    return [
        NewAction(uid=f"{prefix}{place}", reviewer=reviewer, item=item, field=name, before=None, after=value)
        for place, (item, name, value) in enumerate(said)
    ]


def _record(state: LogState, actions: Sequence[NewAction], rejected: Sequence[str], found: ImportedResults) -> None:
    """Write the actions that are valid, and take back those of rejected assignments, in as few writes as there are thousands."""
    before = state.last
    good = []
    for action in actions:
        try:
            state.clean(action)
            good.append(action)
        except UsageError as exc:
            found.left_out[str(exc)] += 1
    for start in range(0, len(good), 1000):
        written = state.record(good[start : start + 1000])
        found.written += sum(isinstance(one, Action) and one.number > before for one in written)
    gone = _taken_back(state, rejected)
    for start in range(0, len(gone), 1000):
        found.taken_back += len(state.record(gone[start : start + 1000]))


def _taken_back(state: LogState, rejected: Sequence[str]) -> list[NewAction]:
    """Return actions that take back what stands in the log of rejected assignments."""
    prefixes = {_uid_prefix(assignment) for assignment in rejected}
    if not prefixes:
        return []
    actions = []
    for one in state.log.read():
        prefix, _, place = one.uid.rpartition("-")
        current = state.own.get((one.item, one.field), {}).get(one.reviewer)
        if f"{prefix}-" in prefixes and current is not None and current.number == one.number and one.after is not None:
            uid = f"{prefix}-{place}.rejected"
            actions.append(NewAction(uid=uid, reviewer=one.reviewer, item=one.item, field=one.field, before=one.after, after=None))
    return actions
