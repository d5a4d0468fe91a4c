"""Find and replace over a queue: seen before it is done, and taken back as one.

In: a text and what stands for it. Out: the changes, one a text of an item. All actions of one replacement share a batch; a rollback puts
back each text that nobody has changed since, and leaves the others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from vip.errors import UsageError
from vip.review.fields import ALL_TEXTS, MOST_TEXT, clean_value
from vip.review.log import NewAction
from vip.review.rich import CHOICES
from vip.review.state import Queue, ReviewState

MOST_BATCHES = 100  # that are shown


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


def replacing_actions(state: ReviewState, changes: Sequence[Change], *, reviewer: str, batch: str) -> list[NewAction]:
    """Return the actions that write the changes; a text that somebody changes meanwhile is left as it is."""
    items = state.index.items
    return [
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


def rollback_actions(state: ReviewState, batch: str, *, reviewer: str, new_batch: str) -> list[NewAction]:
    """Return the actions that put back the texts that a replacement changed.

    Raises:
        StoreError: the log is damaged.
    """
    state.catch_up()
    left = [number for number in state.batches.get(batch, []) if number not in state.rolled_back]
    return [
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
        for action in state.log.read_these(left)
        if action.field in ALL_TEXTS
    ]


def batches(state: ReviewState) -> list[dict[str, object]]:
    """Return the last replacements, the last first: who, when, how many texts, and of each the first; errors as of `rollback_actions`."""
    last = {numbers[0]: name for name, numbers in islice(reversed(state.batches.items()), MOST_BATCHES)}
    rows: list[dict[str, object]] = [
        {
            "batch": last[first.number],
            "reviewer": first.reviewer,
            "created_utc": first.created_utc,
            "count": len(state.batches[last[first.number]]),
            "before": first.before,
            "after": first.after,
            "is_rollback": first.undoes is not None,
        }
        for first in state.log.read_these(sorted(last))
    ]
    return rows[::-1]
