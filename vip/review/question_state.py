"""What people say of questions with options: the option that they choose, or the options that do not do.

Two ways to ask. `answer`: people choose an option and do not see which is right (Li et al. 2021, appendix C; the majority counts).
`check`: people see which is right, mark a wrong option that is right too or bad, and may write another (Xiao et al. 2021, section 3.2).

    choice                the place of the option, or `unavailable`: the video is gone
    checked               yes: the reviewer is done with the question
    mark.0, mark.1 …      of an option: `right too`, or `bad`
    option.0, option.1 …  its text, which all reviewers share
    comment

Who changes an option opens its question again for everybody, and marks of the text before no longer count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from vip.errors import UsageError
from vip.html.markup import showable
from vip.review.fields import COMMENT, MOST_TEXT
from vip.review.log import Action, NewAction, ReviewLog
from vip.review.log_state import LogState
from vip.review.question_items import MOST_OPTIONS, QuestionItem
from vip.untrusted import one_line

Way = Literal["answer", "check"]
CHOICE, CHECKED, MARK, OPTION = "choice", "checked", "mark.", "option."
UNAVAILABLE, YES = "unavailable", "yes"
RIGHT_TOO, BAD = "right too", "bad"
MOST_OPTION_LETTERS = 500
_PLACES = tuple(map(str, range(MOST_OPTIONS)))
_CHOSEN: dict[Way, Mapping[str, tuple[str, ...]]] = {
    "answer": {CHOICE: (*_PLACES, UNAVAILABLE)},
    "check": {CHECKED: (YES,), **{f"{MARK}{place}": (RIGHT_TOO, BAD) for place in _PLACES}},
}
_OPTIONS = tuple(f"{OPTION}{place}" for place in _PLACES)
_DONE: dict[Way, str] = {"answer": CHOICE, "check": CHECKED}
"""The field by which a person is done with a question."""


class QuestionState(LogState):
    """What the log says of questions.

    Args:
        judgements: so many people are asked each question; None: everybody is.
    """

    def __init__(self, items: Sequence[QuestionItem], log: ReviewLog, *, way: Way, judgements: int | None = None) -> None:
        self.items, self.way, self.judgements = items, way, judgements
        super().__init__(log, {item.id: number for number, item in enumerate(items)})

    # ------------------------------------------------------------ who is done, kept up to date so that no request looks at all questions

    def _reset(self) -> None:
        super()._reset()
        self._people: dict[str, set[str]] = {}
        """Item -> who is done with it."""
        self._done: Counter[str] = Counter()
        """Person -> with how many questions they are done."""
        self._full = 0
        """Questions that as many people are done with as are asked."""
        self._done_full: Counter[str] = Counter()
        """Person -> with how many of those they are done."""

    def _apply(self, action: Action) -> None:
        super()._apply(action)
        if action.item not in self.item_numbers:
            return
        if action.field == _DONE[self.way]:
            self._set_done(action.item, action.reviewer, action.after is not None)
        elif action.field in _OPTIONS and self.way == "check":
            self._count(action.item, -1)
            self._people[action.item] = set()
            self._count(action.item, 1)

    def _set_done(self, item: str, reviewer: str, is_done: bool) -> None:
        """Note that a person is done with a question, or no longer; all are counted anew only where the question is full since, or was."""
        people = self._people.setdefault(item, set())
        if (reviewer in people) == is_done:
            return
        change, step = (people.add, 1) if is_done else (people.remove, -1)
        if self.judgements is not None and len(people) in (self.judgements, self.judgements - 1):
            self._count(item, -1)
            change(reviewer)
            self._count(item, 1)
        else:
            change(reviewer)
            self._done[reviewer] += step
            self._done_full[reviewer] += step * self._is_full(item)

    def _is_full(self, item: str) -> bool:
        return self.judgements is not None and len(self._people.get(item, ())) >= self.judgements

    def _count(self, item: str, step: int) -> None:
        """Add a question to the counts, or take it out of them."""
        is_full = self._is_full(item)
        self._full += step * is_full
        for name in self._people.get(item, ()):
            self._done[name] += step
            self._done_full[name] += step * is_full

    # ------------------------------------------------------------ fields

    def is_shared(self, field: str) -> bool:
        return field.startswith(OPTION)

    def clean_value(self, field: str, value: str | None) -> str | None:
        if field == COMMENT:
            text = "\n".join(showable(line).rstrip() for line in (value or "").splitlines()).strip()
            if len(text) > MOST_TEXT:
                raise UsageError(f"A comment has at most {MOST_TEXT:,} letters. Shorten it.")
            return text or None
        if field in _OPTIONS and self.way == "check":
            text = " ".join(showable(value or "").split())
            if not 0 < len(text) <= MOST_OPTION_LETTERS:
                raise UsageError(f"An option has 1 to {MOST_OPTION_LETTERS} letters.")
            return text
        allowed = _CHOSEN[self.way].get(field)
        if allowed is None:
            raise UsageError(f"There is no field {one_line(field)[:40]!r}. Reload the page.")
        if value is not None and value not in allowed:
            raise UsageError(f"{field} has no such value. Reload the page.")
        return value

    def clean(self, action: NewAction) -> NewAction:
        action = super().clean(action)
        if not self._has_option(action):
            raise UsageError("The question has no such option. Reload the page.")
        return action

    def most_letters(self, field: str) -> int:
        return MOST_TEXT if field == COMMENT else MOST_OPTION_LETTERS

    def is_possible(self, action: Action) -> bool:
        allowed = _CHOSEN[self.way].get(action.field)
        if allowed is not None and action.after is not None and action.after not in allowed:
            return False
        return action.item not in self.item_numbers or self._has_option(action)

    def _has_option(self, action: Action | NewAction) -> bool:
        place = action.after if action.field == CHOICE else action.field.rpartition(".")[2]
        if not place or not place.isdecimal():
            return True
        return len(place) < 3 and int(place) < len(self.items[self.item_numbers[action.item]].options)

    def original(self, item: str, field: str) -> str | None:
        return self.items[self.item_numbers[item]].options[int(field.removeprefix(OPTION))]

    # ------------------------------------------------------------ what stands

    def options(self, item: QuestionItem) -> tuple[str, ...]:
        """Return the texts of the options as they are now."""
        return tuple(self.value(item.id, f"{OPTION}{place}") or "" for place in range(len(item.options)))

    def done_by(self, item: QuestionItem) -> list[str]:
        """Return who answered the question, or checked it as it is now."""
        return sorted(self._people.get(item.id, ()))

    def marks(self, item: QuestionItem, place: int) -> dict[str, str]:
        """Return who marked an option as it is now, and how."""
        edited = self._edited(item, place)
        own = self.own.get((item.id, f"{MARK}{place}"), {})
        return {name: one.after for name, one in own.items() if one.after is not None and one.number > edited}

    def rejected(self, item: QuestionItem) -> list[int]:
        """Return the places of the options that half of those who checked the question marked, or more."""
        people = self._people.get(item.id, set())
        counts = [sum(name in people for name in self.marks(item, place)) for place in range(len(item.options))]
        return [place for place, count in enumerate(counts) if count and 2 * count >= len(people)]

    def votes(self, item: QuestionItem) -> dict[str, int]:
        """Return the option that each person chose; who says that the video is gone chose none."""
        return {name: int(said) for name, said in self.said(item.id, CHOICE).items() if said != UNAVAILABLE}

    def majority(self, item: QuestionItem) -> int | None:
        """Return the option that more than half of those who answered chose; None where there is none."""
        votes = Counter(self.votes(item).values())
        best, count = votes.most_common(1)[0] if votes else (None, 0)
        return best if 2 * count > votes.total() else None

    def _edited(self, item: QuestionItem, place: int) -> int:
        """Return the number of the action that changed an option last; 0 where nobody did."""
        action = self.shared.get((item.id, f"{OPTION}{place}"))
        return action.number if action else 0

    # ------------------------------------------------------------ the queue of a person

    def is_done(self, item: QuestionItem, reviewer: str) -> bool:
        """Return whether the person is done with the question."""
        return reviewer in self._people.get(item.id, ())

    def is_open(self, item: QuestionItem, reviewer: str) -> bool:
        """Return whether the question is still asked of the person."""
        people = self._people.get(item.id, ())
        return reviewer not in people and (self.judgements is None or len(people) < self.judgements)

    def next_open(self, reviewer: str, after: int = -1) -> int | None:
        """Return the number of the next question that is asked of the person, from the first again behind the last; None without one."""
        count, progress = len(self.items), self.progress(reviewer)
        if progress["done"] == progress["total"]:
            return None
        places = ((after + step) % count for step in range(1, count + 1))
        return next((number for number in places if self.is_open(self.items[number], reviewer)), None)

    def progress(self, reviewer: str) -> dict[str, int]:
        """Return how many questions the person is done with, and how many were asked or still are."""
        return {"done": self._done[reviewer], "total": len(self.items) - self._full + self._done_full[reviewer]}


def shown_question(state: QuestionState, number: int, reviewer: str) -> dict[str, Any]:
    """Return what the page shows of a question; who answers it does not see which option is right."""
    item = state.items[number]
    return {
        "number": number,
        "id": item.id,
        "text": showable(item.text),
        "kind": showable(item.kind),
        "options": [showable(text) for text in state.options(item)],
        "video_id": showable(item.video),
        "has_video": item.clip is not None,
        "start_s": item.start_s,
        "end_s": item.end_s,
        "said": [{"start_s": one.start_s, "text": showable(one.text)} for one in item.said],
        "comment": state.value(item.id, COMMENT, reviewer),
        "is_done": state.is_done(item, reviewer),
        **(_shown_answer(state, item, reviewer) if state.way == "answer" else _shown_check(state, item, reviewer)),
    }


def _shown_answer(state: QuestionState, item: QuestionItem, reviewer: str) -> dict[str, Any]:
    return {"choice": state.value(item.id, CHOICE, reviewer)}


def _shown_check(state: QuestionState, item: QuestionItem, reviewer: str) -> dict[str, Any]:
    places = range(len(item.options))
    return {
        "answer": item.answer,
        "marks": [state.marks(item, place).get(reviewer) for place in places],
        "before": [state.value(item.id, f"{OPTION}{place}") for place in places],
    }
