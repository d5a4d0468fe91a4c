"""Find and replace over a queue: seen before it is done, and taken back as one.

In: a text and what stands for it. Out: the changes, one a text of an item. All actions of one replacement share a batch; a rollback puts
back each text that nobody has changed since, and leaves the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vip.errors import UsageError
from vip.review.fields import ALL_TEXTS, MOST_TEXT, clean_value
from vip.review.log import Action, NewAction
from vip.review.rich import CHOICES
from vip.review.state import Queue, ReviewState

PIECE = 500  # actions in one transaction


@dataclass(frozen=True, slots=True)
class Change:
    """A text before and after a replacement."""

    number: int
    field: str
    before: str
    after: str


def find_changes(state: ReviewState, queue: Queue, find: str, put: str, *, whole_words: bool = False) -> list[Change]:
    """Return what a replacement would change, in order; upper and lower case differ.

    Raises:
        UsageError: nothing is sought, or a text would become empty or too long.
    """
    if not find.strip() or len(find) > MOST_TEXT or len(put) > MOST_TEXT:
        raise UsageError("Give a text to find.")
    edge = r"(?<!\w)", r"(?!\w)"
    pattern = re.compile(f"{edge[0]}{re.escape(find)}{edge[1]}" if whole_words else re.escape(find))
    found = []
    for number in state.numbers(queue):
        for field, text in state.texts(state.index.items[number].id).items():
            if field in CHOICES:
                continue
            changed = pattern.sub(lambda match: put, text)
            if changed != text and (after := clean_value(field, changed) or "") != text:
                found.append(Change(number, field, text, after))
    return found


def apply_changes(state: ReviewState, changes: Sequence[Change], *, reviewer: str, batch: str) -> int:
    """Write the changes, and return how many were written; a text that somebody changed meanwhile is left as it is.

    Raises:
        StoreError: the log cannot be written.
    """
    items = state.index.items
    actions = [
        NewAction(
            uid=f"{batch}.{place}",
            reviewer=reviewer,
            item=items[change.number].id,
            field=change.field,
            before=change.before,
            after=change.after,
            batch=batch,
        )
        for place, change in enumerate(changes)
    ]
    return _write(state, actions)


def roll_back(state: ReviewState, batch: str, *, reviewer: str, new_batch: str) -> int:
    """Put back the texts that a replacement changed, and return how many; errors as of `apply_changes`."""
    state.catch_up()
    taken_back = {action.undoes for numbers in state.batches.values() for action in _actions(state, numbers)}
    actions = [
        NewAction(
            uid=f"{new_batch}.{action.number}",
            reviewer=reviewer,
            item=action.item,
            field=action.field,
            before=action.after,
            after=action.before,
            undoes=action.number,
            batch=new_batch,
        )
        for action in _actions(state, state.batches.get(batch, []))
        if action.number not in taken_back and action.field in ALL_TEXTS
    ]
    return _write(state, actions)


def batches(state: ReviewState) -> list[dict[str, object]]:
    """Return the replacements, the last first: who, when, how many texts, and of each the first."""
    rows: list[dict[str, object]] = []
    for name, numbers in state.batches.items():
        first = next(_actions(state, numbers[:1]))
        about = {
            "reviewer": first.reviewer,
            "created_utc": first.created_utc,
            "count": len(numbers),
            "before": first.before,
            "after": first.after,
        }
        rows.append({"batch": name, **about, "is_rollback": first.undoes is not None})
    return rows[::-1]


def _actions(state: ReviewState, numbers: Sequence[int]) -> Iterator[Action]:
    for number in numbers:
        yield next(state.log.read(after=number - 1))


def _write(state: ReviewState, actions: Sequence[NewAction]) -> int:
    written = 0
    for start in range(0, len(actions), PIECE):
        written += sum(isinstance(one, Action) for one in state.record(actions[start : start + PIECE]))
    return written
