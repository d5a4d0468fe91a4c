"""The current values of a review, read through its log, and its queues.

In: the items and the log. Out: the current value of each field, what can be undone, and the numbers of the items that a queue holds.
Values that reviewers share are written only where the client knew the current one: of two people who edit one text, the second sees what
the first wrote, and nothing is lost. Other processes may write to the same log; each request reads what is new in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from vip.errors import UsageError
from vip.review.fields import (
    COMMENT,
    FINAL,
    GOOD,
    NEEDS_WORK,
    TEXTS,
    UID,
    UNUSABLE,
    VERDICT_FIELDS,
    VERDICTS,
    WRONG,
    clean_value,
    is_shared,
)
from vip.review.items import ItemIndex
from vip.review.log import Action, NewAction, ReviewLog, StaleValueError

View = Literal["all", "unreviewed", "flagged", "disagreed", "edited", "commented"]
VIEWS: tuple[View, ...] = ("all", "unreviewed", "flagged", "disagreed", "edited", "commented")


@dataclass(slots=True)
class _Undo:
    """The numbers of a reviewer's actions that can be undone, and of those that can be redone; the last comes first."""

    undo: list[int] = field(default_factory=list)
    redo: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """What a reviewer asks to see."""

    reviewer: str
    stage: str | None = None
    view: View = "all"
    video: str = ""
    word: str = ""


class ReviewState:
    """Everything that the log says, in memory. One thread at a time may use it."""

    def __init__(self, index: ItemIndex, log: ReviewLog) -> None:
        self.index, self.log = index, log
        self._reset()
        self.catch_up()

    def _reset(self) -> None:
        self.last = 0
        self.shared: dict[tuple[str, str], Action] = {}
        """(item, field) -> the last action on a value that all share."""
        self.own: dict[tuple[str, str], dict[str, Action]] = {}
        """(item, field) -> reviewer -> the last action."""
        self.batches: dict[str, list[int]] = {}
        """The numbers of the actions of each find-and-replace."""
        self._undo: dict[str, _Undo] = {}

    def catch_up(self) -> None:
        """Read what is new in the log."""
        for action in self.log.read(after=self.last):
            self._apply(action)

    def _apply(self, action: Action) -> None:
        self.last = action.number
        key = (action.item, action.field)
        if is_shared(action.field):
            self.shared[key] = action
        else:
            self.own.setdefault(key, {})[action.reviewer] = action
        if action.batch is not None:
            self.batches.setdefault(action.batch, []).append(action.number)
            return
        stacks = self._undo.setdefault(action.reviewer, _Undo())
        if action.undoes is None:
            stacks.undo.append(action.number)
            stacks.redo.clear()
        elif stacks.undo and stacks.undo[-1] == action.undoes:
            stacks.undo.pop()
            stacks.redo.append(action.number)
        elif stacks.redo and stacks.redo[-1] == action.undoes:
            stacks.redo.pop()
            stacks.undo.append(action.number)

    # ------------------------------------------------------------ values

    def value(self, item: str, field: str, reviewer: str = "") -> str | None:
        """Return the current value: of a text what the engine wrote where nobody changed it; of own fields that of the reviewer."""
        if not is_shared(field):
            action = self.own.get((item, field), {}).get(reviewer)
            return action.after if action else None
        if shared := self.shared.get((item, field)):
            return shared.after
        return self.index.items[self.index.numbers[item]].texts[TEXTS.index(field)] if field in TEXTS else None

    def texts(self, item: str) -> dict[str, str]:
        """Return the current texts by field."""
        return {name: self.value(item, name) or "" for name in TEXTS}

    def said(self, item: str, field: str) -> dict[str, str]:
        """Return what each reviewer says now of a field of their own; those who took it back are left out."""
        return {name: action.after for name, action in self.own.get((item, field), {}).items() if action.after is not None}

    def is_edited(self, item: str) -> bool:
        """Return whether a text differs from what the engine wrote."""
        original = self.index.items[self.index.numbers[item]].texts
        return any((item, name) in self.shared and self.value(item, name) != text for name, text in zip(TEXTS, original, strict=True))

    # ------------------------------------------------------------ actions

    def record(self, actions: Sequence[NewAction]) -> list[Action | StaleValueError]:
        """Write actions to the log, and return them; where a shared value is not what the client knew, the error in its place.

        Raises:
            UsageError: an action names what is not there, or a value that the field does not have.
            StoreError: the log cannot be written; nothing was written.
        """
        cleaned = [self.clean(action) for action in actions]
        try:
            written = self.log.append(cleaned, prepare=self._prepare)
        except BaseException:
            self._reset()  # it may have read what was then taken back
            self.catch_up()
            raise
        self.catch_up()
        return written

    def clean(self, action: NewAction) -> NewAction:
        """Return an action with its value as it is kept; errors as of `record`. Any thread may call it."""
        if action.item not in self.index.numbers:
            raise UsageError("There is no such item. Reload the page.")
        if not UID.fullmatch(action.uid):
            raise UsageError("The id of an action is 1 to 64 letters, digits and ._-")
        return replace(action, after=clean_value(action.field, action.after))

    def _prepare(self, action: NewAction) -> NewAction:
        self.catch_up()
        current = self.value(action.item, action.field, action.reviewer)
        if is_shared(action.field) and current != action.before:
            raise StaleValueError(current)
        return replace(action, before=current)

    def undo(self, reviewer: str, uid: str) -> Action | StaleValueError | None:
        """Take back the last action of a reviewer; None where there is none. Errors as of `record`."""
        return self._take_back(reviewer, uid, lambda stacks: stacks.undo)

    def redo(self, reviewer: str, uid: str) -> Action | StaleValueError | None:
        """Take back the last undo of a reviewer; None where there is none. Errors as of `record`."""
        return self._take_back(reviewer, uid, lambda stacks: stacks.redo)

    def _take_back(self, reviewer: str, uid: str, stack: Callable[[_Undo], list[int]]) -> Action | StaleValueError | None:
        self.catch_up()
        numbers = stack(self._undo.get(reviewer, _Undo()))
        if not numbers:
            return None
        last = next(self.log.read(after=numbers[-1] - 1))
        new = NewAction(
            uid=uid, reviewer=reviewer, item=last.item, field=last.field, before=last.after, after=last.before, undoes=last.number
        )
        return self.record([new])[0]

    def can_undo(self, reviewer: str) -> tuple[bool, bool]:
        """Return whether there is something to undo, and something to redo."""
        stacks = self._undo.get(reviewer, _Undo())
        return bool(stacks.undo), bool(stacks.redo)

    # ------------------------------------------------------------ queues

    def numbers(self, queue: Queue) -> list[int]:
        """Return the numbers of the items in a queue, in order."""
        words = _pattern(queue.word)
        return [
            number
            for number, item in enumerate(self.index.items)
            if (not queue.video or item.video == queue.video)
            and self.is_in_stage(item.id, queue.stage)
            and self._is_in_view(number, queue)
            and (words is None or any(words.search(self.value(item.id, name) or "") for name in TEXTS))
        ]

    def is_in_stage(self, item: str, stage: str | None) -> bool:
        """Return whether an item belongs to a stage of section 3.3.

        1: all items are classified. 2: an expert corrects those that somebody found wanting. 3: the dense captions of the corrected ones
        are written again. 4: what was corrected is checked a second time.
        """
        if stage == "2":
            return self.needs_work(item)
        if stage == "3":
            return self.is_corrected(item)
        if stage == "4":
            return self.is_corrected(item) or self.is_edited(item)
        return True

    def needs_work(self, item: str) -> bool:
        """Return whether the first stage found it wanting: what was settled, or anybody's verdict or mark."""
        if settled := self.value(item, f"{FINAL}verdict"):
            return settled == NEEDS_WORK
        verdicts = self.said(item, "verdict").values()
        return UNUSABLE not in verdicts and (NEEDS_WORK in verdicts or any(self.said(item, f"{WRONG}:{name}") for name in TEXTS))

    def is_corrected(self, item: str) -> bool:
        """Return whether an expert calls it good after the second stage."""
        return GOOD in self.said(item, "verdict.2").values()

    def is_done(self, item: str, reviewer: str, stage: str | None) -> bool:
        """Return whether the reviewer has judged it in this stage."""
        return self.value(item, VERDICT_FIELDS[stage], reviewer) is not None

    def is_disputed(self, item: str) -> bool:
        """Return whether reviewers disagree about it, and nothing was settled."""
        return any(not self.value(item, f"{FINAL}{name}") for name in self.disputes(item))

    def disputes(self, item: str) -> tuple[str, ...]:
        """Return the fields of the first stage that reviewers disagree about: `verdict`, `wrong:focus`."""
        judged = self.said(item, "verdict")
        if len(judged) < 2:
            return ()
        found = ["verdict"] if len(set(judged.values())) > 1 else []
        names = (f"{WRONG}:{name}" for name in TEXTS)
        return (*found, *(name for name in names if 0 < len(self.said(item, name).keys() & judged.keys()) < len(judged)))

    def _is_in_view(self, number: int, queue: Queue) -> bool:
        item = self.index.items[number]
        match queue.view:
            case "unreviewed":
                return not self.is_done(item.id, queue.reviewer, queue.stage)
            case "flagged":
                return bool(item.flagged)
            case "disagreed":
                return self.is_disputed(item.id)
            case "edited":
                return self.is_edited(item.id)
            case "commented":
                return bool(self.said(item.id, COMMENT))
            case _:
                return True

    def progress(self, queue: Queue) -> dict[str, int]:
        """Return how many items of the stage the reviewer has judged, and how often each verdict was given."""
        field, done = VERDICT_FIELDS[queue.stage], dict.fromkeys(VERDICTS, 0)
        total = 0
        for item in self.index.items:
            if self.is_in_stage(item.id, queue.stage):
                total += 1
                if verdict := self.value(item.id, field, queue.reviewer):
                    done[verdict] += 1
        return {"total": total, "done": sum(done.values()), **done}

    def reviewers(self) -> Iterator[str]:
        """Yield the names of those who did something, in order."""
        yield from sorted({name for people in self.own.values() for name in people} | {one.reviewer for one in self.shared.values()})


def _pattern(word: str) -> re.Pattern[str] | None:
    """Return what finds a text whatever its case; None where nothing is sought."""
    return re.compile(re.escape(word), re.IGNORECASE) if word else None
