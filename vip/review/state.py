"""The current values of a review, read through its log, and its queues.

In: the items and the log. Out: the current value of each field, and the numbers of the items that a queue holds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from vip.errors import UsageError
from vip.review.fields import (
    ALLOWED,
    COMMENT,
    ENGINE,
    FINAL,
    GOOD,
    NEEDS_WORK,
    TEXTS,
    UNUSABLE,
    VERDICT_FIELDS,
    VERDICTS,
    WRONG,
    clean_value,
    is_shared,
    most_letters,
)
from vip.review.items import ItemIndex, ReviewItem
from vip.review.log import Action, NewAction, ReviewLog
from vip.review.log_state import LogState
from vip.review.rich import RICH_TEXTS

View = Literal["all", "unreviewed", "flagged", "disagreed", "edited", "commented"]
VIEWS: tuple[View, ...] = ("all", "unreviewed", "flagged", "disagreed", "edited", "commented")


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """What a reviewer asks to see."""

    reviewer: str
    stage: str | None = None
    view: View = "all"
    video: str = ""
    word: str = ""


class ReviewState(LogState):
    """What the log of described keyframes says.

    Args:
        judgements: so many people judge an item, and it is no longer asked of others; None: everybody judges all.
        drawn: the ids of the items that are reviewed and reported (see `vip.review.draw`); None: all.
    """

    def __init__(self, index: ItemIndex, log: ReviewLog, *, judgements: int | None = None, drawn: Collection[str] | None = None) -> None:
        self.index, self.judgements, self.drawn = index, judgements, drawn
        super().__init__(log, index.numbers)

    def clean(self, action: NewAction) -> NewAction:
        cleaned = super().clean(action)
        name = action.field.removeprefix(FINAL).removeprefix(f"{WRONG}:")
        if name in RICH_TEXTS and name not in self.fields(action.item):
            raise UsageError(f"This description has no {name.replace('_', ' ')}. Reload the page.")
        return cleaned

    def is_shared(self, field: str) -> bool:
        return is_shared(field)

    def clean_value(self, field: str, value: str | None) -> str | None:
        return clean_value(field, value)

    def most_letters(self, field: str) -> int:
        return most_letters(field)

    def is_possible(self, action: Action) -> bool:
        return action.after is None or action.after in ALLOWED.get(action.field, (action.after,))

    def original(self, item: str, field: str) -> str | None:
        found = self.index.items[self.index.numbers[item]]
        if field in TEXTS:
            return found.texts[TEXTS.index(field)]
        return found.rich[RICH_TEXTS.index(field)] if field in RICH_TEXTS and found.rich else None

    def _reset(self) -> None:
        super()._reset()
        self.rewrites: dict[str, Action] = {}
        """Item -> what an engine wrote last in the third stage."""

    def _apply(self, action: Action) -> None:
        super()._apply(action)
        if action.reviewer.startswith(ENGINE):
            self.rewrites[action.item] = action

    def reviewers(self) -> Iterator[str]:
        """Yield the names of the people who did something, in order; engines that wrote captions are none."""
        yield from (name for name in super().reviewers() if not name.startswith(ENGINE))

    # ------------------------------------------------------------ values

    def verdicts(self, item: str, stage: str | None) -> dict[str, str]:
        """Return the verdicts of each reviewer in a stage; those of the last two count only for the caption that was written last."""
        field = VERDICT_FIELDS[stage]
        said, rewrite = self.said(item, field), self.rewrites.get(item) if stage in ("3", "4") else None
        if rewrite is None:
            return said
        own = self.own.get((item, field), {})
        return {name: verdict for name, verdict in said.items() if own[name].number > rewrite.number}

    def verdict_of(self, item: str, reviewer: str, stage: str | None) -> str | None:
        """Return one reviewer's verdict among `verdicts`; None where there is none."""
        own = self.own.get((item, VERDICT_FIELDS[stage]))
        if own is None or (action := own.get(reviewer)) is None:
            return None
        rewrite = self.rewrites.get(item) if stage in ("3", "4") else None
        return action.after if rewrite is None or action.number > rewrite.number else None

    def texts(self, item: str) -> dict[str, str]:
        """Return the current texts by field."""
        return {name: self.value(item, name) or "" for name in self.fields(item)}

    def fields(self, item: str) -> tuple[str, ...]:
        """Return the names of the texts that an item has."""
        return self.index.items[self.index.numbers[item]].fields

    def is_edited(self, item: str) -> bool:
        """Return whether a text differs from what the engine wrote."""
        return any((item, name) in self.shared and self.value(item, name) != self.original(item, name) for name in self.fields(item))

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
            and (words is None or any(words.search(self.value(item.id, name) or "") for name in item.fields))
        ]

    def is_in_stage(self, item: str, stage: str | None) -> bool:
        """Return whether an item belongs to a stage of section 3.3.

        1: all items are classified. 2: an expert corrects those that somebody found wanting. 3: the dense captions of the corrected ones
        are written again. 4: what was corrected is checked a second time.
        """
        if not self.is_drawn(item):
            return False
        if stage == "2":
            return self.needs_work(item)
        if stage == "3":
            return self.is_corrected(item)
        if stage == "4":
            return self.is_corrected(item) or self.is_edited(item)
        return True

    def is_drawn(self, item: str) -> bool:
        """Return whether an item is among those that are reviewed."""
        return self.drawn is None or item in self.drawn

    def reviewed_items(self) -> Iterator[ReviewItem]:
        """Yield the items that are reviewed and reported, in order."""
        return (item for item in self.index.items if self.is_drawn(item.id))

    def needs_work(self, item: str) -> bool:
        """Return whether the first stage found it wanting: what was settled, or anybody's verdict or mark."""
        if settled := self.value(item, f"{FINAL}verdict"):
            return settled == NEEDS_WORK
        verdicts = self.said(item, "verdict").values()
        return UNUSABLE not in verdicts and (
            NEEDS_WORK in verdicts or any(self.said(item, f"{WRONG}:{name}") for name in self.fields(item))
        )

    def is_corrected(self, item: str) -> bool:
        """Return whether an expert calls it good after the second stage."""
        return GOOD in self.said(item, "verdict.2").values()

    def is_done(self, item: str, reviewer: str, stage: str | None) -> bool:
        """Return whether the reviewer has judged it in this stage."""
        return self.verdict_of(item, reviewer, stage) is not None

    def is_judged(self, item: str, stage: str | None) -> bool:
        """Return whether as many people as are asked for have judged it in this stage."""
        return self.judgements is not None and len(self.verdicts(item, stage)) >= self.judgements

    def is_disputed(self, item: str) -> bool:
        """Return whether reviewers disagree about it, and nothing was settled."""
        return any(not self.value(item, f"{FINAL}{name}") for name in self.disputes(item))

    def disputes(self, item: str) -> tuple[str, ...]:
        """Return the fields of the first stage that reviewers disagree about: `verdict`, `wrong:focus`."""
        judged = self.said(item, "verdict")
        if len(judged) < 2:
            return ()
        found = ["verdict"] if len(set(judged.values())) > 1 else []
        names = (f"{WRONG}:{name}" for name in self.fields(item))
        return (*found, *(name for name in names if 0 < len(self.said(item, name).keys() & judged.keys()) < len(judged)))

    def _is_in_view(self, number: int, queue: Queue) -> bool:
        item = self.index.items[number]
        match queue.view:
            case "unreviewed":
                return not self.is_done(item.id, queue.reviewer, queue.stage) and not self.is_judged(item.id, queue.stage)
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
        done = dict.fromkeys(VERDICTS, 0)
        total = 0
        for item in self.index.items:
            if self.is_in_stage(item.id, queue.stage):
                total += 1
                if verdict := self.verdict_of(item.id, queue.reviewer, queue.stage):
                    done[verdict] += 1
        return {"total": total, "done": sum(done.values()), **done}

    def progress_by_reviewer(self) -> dict[str, dict[str, int]]:
        """Return the progress of everybody in the first stage by name, in one pass over the items."""
        total, done = 0, {name: dict.fromkeys(VERDICTS, 0) for name in self.reviewers()}
        for item in self.reviewed_items():
            total += 1
            for name, verdict in self.said(item.id, "verdict").items():
                if name in done:  # an engine judges nothing, whatever a log says
                    done[name][verdict] += 1
        return {name: {"total": total, "done": sum(counts.values()), **counts} for name, counts in done.items()}


def _pattern(word: str) -> re.Pattern[str] | None:
    """Return what finds a text whatever its case; None where nothing is sought."""
    return re.compile(re.escape(word), re.IGNORECASE) if word else None
