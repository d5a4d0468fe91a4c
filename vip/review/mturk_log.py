"""Assignments of Mechanical Turk in the log of a review: written once, taken back where they were rejected, put back where approved since.

In: what workers said, and whose assignments were rejected. Out: actions in the log. The id of each is made from its assignment, so an
assignment belongs to the worker and the items it was first written for; one of somebody else with its id cannot be used.

    mturk-HASH-0                     what a worker said first
    mturk-HASH-0.rejected            taken back
    mturk-HASH-0.rejected.approved   put back; Mechanical Turk rejects nothing that was approved, so this stands
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from vip.errors import UsageError
from vip.review.log import Action, NewAction
from vip.review.log_state import LogState

REJECTED = "rejected on Mechanical Turk"
OF_ANOTHER = "an AssignmentId of another worker or HIT"
PIECE = 1000  # actions of one write
_TAKEN_BACK, _PUT_BACK = ".rejected", ".approved"
_KNOWN_UID = re.compile(r"(mturk-[0-9a-f]{32})-[0-9]{1,3}(?:\.rejected(?:\.approved)?)?")


@dataclass(slots=True)
class ImportedResults:
    """What became of the assignments of some files."""

    assignments: int = 0
    """With an answer that stands in the log, now or before."""
    written: int = 0
    """Actions that are new in the log."""
    taken_back: int = 0
    """Actions of assignments that were rejected since."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Assignments that cannot be used, by the reason."""


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """What a worker said in one assignment."""

    assignment: str
    reviewer: str
    said: Sequence[tuple[str, str, str]]
    """Item, field and value; one or more."""
    is_approved: bool

    def actions(self) -> Iterator[NewAction]:
        """Yield what is written of it."""
        for place, (item, name, value) in enumerate(self.said):
            uid = f"{_prefix(self.assignment)}-{place}"
            yield NewAction(uid=uid, reviewer=self.reviewer, item=item, field=name, before=None, after=value)


def record_answers(
    state: LogState, answers: Collection[WorkerAnswer], rejected: Collection[tuple[str, str]], found: ImportedResults
) -> None:
    """Write what is valid and take back what was rejected, in as few writes as there are thousands.

    Args:
        rejected: assignment and reviewer.
        found: gets the counts.

    Raises:
        StoreError: the log cannot be written.
    """
    known = _actions_by_assignment(state)
    approved = {(one.assignment, one.reviewer) for one in answers if one.is_approved}
    gone = {(id_, name) for id_, name in rejected if (id_, name) not in approved and not _was_put_back(known.get(_prefix(id_), []))}
    actions: list[NewAction] = []
    for one in answers:
        earlier = known.get(_prefix(one.assignment), [])
        taken_back = [action for action in earlier if _is_current(state, action) and action.uid.endswith(_TAKEN_BACK)]
        if earlier and (
            earlier[0].reviewer != one.reviewer or {action.item for action in earlier}.isdisjoint(item for item, *_ in one.said)
        ):
            found.left_out[OF_ANOTHER] += 1
        elif taken_back and not one.is_approved:
            gone.add((one.assignment, one.reviewer))  # an old download
        else:
            found.assignments += (one.assignment, one.reviewer) not in gone
            actions += map(_put_back, taken_back) if taken_back else one.actions()
    if gone:
        found.left_out[REJECTED] += len(gone)
    _write(state, actions, found)
    found.taken_back += _take_back(state, gone)


def _prefix(assignment: str) -> str:
    return f"mturk-{hashlib.sha256(assignment.encode('utf-8', 'replace')).hexdigest()[:32]}"


def _actions_by_assignment(state: LogState) -> dict[str, list[Action]]:
    """Return the actions of assignments that the log has, in order, by the beginning of their ids."""
    state.catch_up()
    known: dict[str, list[Action]] = {}
    for action in state.log.read():
        if match := _KNOWN_UID.fullmatch(action.uid):
            known.setdefault(match[1], []).append(action)
    return known


def _was_put_back(actions: Sequence[Action]) -> bool:
    return any(action.uid.endswith(_PUT_BACK) for action in actions)


def _is_current(state: LogState, action: Action) -> bool:
    """Return whether the reviewer has said nothing else since."""
    current = state.own.get((action.item, action.field), {}).get(action.reviewer)
    return current is not None and current.number == action.number


def _put_back(taken_back: Action) -> NewAction:
    one = taken_back
    return NewAction(uid=f"{one.uid}{_PUT_BACK}", reviewer=one.reviewer, item=one.item, field=one.field, before=None, after=one.before)


def _write(state: LogState, actions: Sequence[NewAction], found: ImportedResults) -> None:
    before = state.last
    good = []
    for action in actions:
        try:
            state.clean(action)
            good.append(action)
        except UsageError as exc:
            found.left_out[str(exc)] += 1
    for start in range(0, len(good), PIECE):
        written = state.record(good[start : start + PIECE])
        found.written += sum(isinstance(one, Action) and one.number > before for one in written)


def _take_back(state: LogState, gone: Collection[tuple[str, str]]) -> int:
    """Take back what stands in the log of rejected assignments, and return how many actions."""
    if not gone:
        return 0
    known = _actions_by_assignment(state)
    actions = [
        NewAction(uid=f"{one.uid}{_TAKEN_BACK}", reviewer=reviewer, item=one.item, field=one.field, before=one.after, after=None)
        for assignment, reviewer in sorted(gone)
        for one in known.get(_prefix(assignment), [])
        if one.reviewer == reviewer and one.after is not None and _is_current(state, one)
    ]
    return sum(len(state.record(actions[start : start + PIECE])) for start in range(0, len(actions), PIECE))
