"""The current values of a log, whatever is reviewed: what is shared, what each reviewer says, and what can be undone.

In: a log and the numbers of the items by id. Out: a `LogState`; each kind of review derives its own, and names its fields. Values that
reviewers share are written only where the client knew the current one: of two people who edit one text, the second sees what the first
wrote, and nothing is lost. Other processes may write to the same log; each request reads what is new in it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from vip.errors import StoreError, UsageError
from vip.review.fields import MOST_TEXT, UID
from vip.review.log import Action, NewAction, ReviewLog, StaleValueError
from vip.untrusted import one_line


@dataclass(slots=True)
class _Undo:
    """The numbers of a reviewer's actions that can be undone, and of those that can be redone; the last comes first."""

    undo: list[int] = field(default_factory=list)
    redo: list[int] = field(default_factory=list)


class LogState(ABC):
    """Everything that the log says, in memory. One thread at a time may use it."""

    def __init__(self, log: ReviewLog, numbers: Mapping[str, int]) -> None:
        self.log, self.item_numbers = log, numbers
        self._reset()
        self.catch_up()

    # ------------------------------------------------------------ what each kind of review says

    @abstractmethod
    def is_shared(self, field: str) -> bool:
        """Return whether all reviewers share the value; of the other fields each reviewer has a value of their own."""

    @abstractmethod
    def clean_value(self, field: str, value: str | None) -> str | None:
        """Return a value as it is kept.

        Raises:
            UsageError: there is no such field, or the value is not one of it.
        """

    def original(self, item: str, field: str) -> str | None:
        """Return the value of a shared field that nobody has changed."""
        return None

    def most_letters(self, field: str) -> int:
        """Return how many letters a value has at most that `clean_value` returned."""
        return MOST_TEXT

    def is_possible(self, action: Action) -> bool:
        """Return whether a row of the log has a value that its field can have; the log may come from a stranger."""
        return True

    # ------------------------------------------------------------ the log

    def _reset(self) -> None:
        self.last = 0
        self.shared: dict[tuple[str, str], Action] = {}
        """(item, field) -> the last action on a value that all share."""
        self.own: dict[tuple[str, str], dict[str, Action]] = {}
        """(item, field) -> reviewer -> the last action."""
        self.batches: dict[str, list[int]] = {}
        """The numbers of the actions of each find-and-replace."""
        self.rolled_back: set[int] = set()
        """The numbers of those that a rollback took back."""
        self._undo: dict[str, _Undo] = {}

    def catch_up(self) -> None:
        """Read what is new in the log.

        Raises:
            StoreError: it is damaged.
        """
        for action in self.log.read(after=self.last):
            if len(action.after or "") > self.most_letters(action.field) or not self.is_possible(action):
                raise StoreError(
                    f"{self.log.path} is damaged (action {action.number} has a value that {one_line(action.field)[:40]!r} does not have)."
                    " Rename it, or restore it from a copy."
                )
            self._apply(action)

    def _apply(self, action: Action) -> None:
        self.last = action.number
        key = (action.item, action.field)
        if self.is_shared(action.field):
            self.shared[key] = action
        elif key in self.own:
            self.own[key][action.reviewer] = action
        else:
            self.own[key] = {action.reviewer: action}
        if action.batch is not None:
            self.batches.setdefault(action.batch, []).append(action.number)
            if action.undoes is not None:
                self.rolled_back.add(action.undoes)
            return
        if (stacks := self._undo.get(action.reviewer)) is None:
            stacks = self._undo[action.reviewer] = _Undo()
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
        """Return the current value: of a shared field the original where nobody changed it; of own fields that of the reviewer."""
        if not self.is_shared(field):
            action = self.own.get((item, field), {}).get(reviewer)
            return action.after if action else None
        if shared := self.shared.get((item, field)):
            return shared.after
        return self.original(item, field)

    def said(self, item: str, field: str) -> dict[str, str]:
        """Return what each reviewer says now of a field of their own; those who took it back are left out."""
        return {name: action.after for name, action in self.own.get((item, field), {}).items() if action.after is not None}

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
        if action.item not in self.item_numbers:
            raise UsageError("There is no such item. Reload the page.")
        if not UID.fullmatch(action.uid):
            raise UsageError("The id of an action is 1 to 64 letters, digits and ._-")
        return replace(action, after=self.clean_value(action.field, action.after))

    def _prepare(self, action: NewAction) -> NewAction:
        self.catch_up()
        current = self.value(action.item, action.field, action.reviewer)
        if self.is_shared(action.field) and current != action.before:
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

    def reviewers(self) -> Iterator[str]:
        """Yield the names of those who did something, in order."""
        yield from sorted({name for people in self.own.values() for name in people} | {one.reviewer for one in self.shared.values()})
