"""FIBER's page on this machine: people fill blanks, five at a time, and `vip fiber collect` reads their answers (Castro et al. 2022).

In: records with a blank, and a folder of clips where they are at hand. Out: a log of answers, one field a blank and person, an answer a
line, the most natural first; and the results as Mechanical Turk writes them, an assignment for each five blanks that a person answered.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vip import store
from vip.errors import InputError, UsageError
from vip.html.markup import showable
from vip.review.fields import COMMENT, MOST_TEXT
from vip.review.log import Action, ReviewLog
from vip.review.log_state import LogState
from vip.review.videos import clips_in
from vip.tasks.fiber.hits import (
    LEAST_ANSWERS,
    PER_HIT,
    guard_cell,
    hit_cells,
    hit_columns,
    normalize_as_page,
    read_blanks,
)
from vip.tasks.fiber.records import FiberRecord
from vip.tasks.fiber.results import ANSWERS, MOST_ANSWER_LETTERS
from vip.untrusted import one_line, printable_json
from vip.wording import option

FILLED = "answers"
MOST_ANSWERS = 100  # to one blank
LOG_SUFFIX = ".review.sqlite"
COLUMNS = ("HITId", "AssignmentId", "WorkerId", "AssignmentStatus")


@dataclass(frozen=True, slots=True)
class BlankItem:
    """A blank to fill."""

    id: str
    record: FiberRecord
    video: Path | None
    """The clip, where it is at hand."""


def log_path(blanks: Path) -> Path:
    """Return where the answers to a file of blanks are kept: beside it."""
    return blanks.with_name(f"{blanks.stem}{LOG_SUFFIX}")


def read_items(blanks: Path, videos: Path | None) -> list[BlankItem]:
    """Return the blanks of a file in their order.

    Args:
        videos: a folder of clips, by the name of the clip or of the video.

    Raises:
        InputError: the file is damaged, has none, or has one twice.
    """
    clips = clips_in(videos) if videos else {}
    items = [BlankItem(record.clip_id, record, clips.get(record.clip_id) or clips.get(record.video_id)) for record in read_blanks(blanks)]
    if not items:
        raise InputError(f"{blanks} has no blank. Make some with `vip samples` and the task fiber.")
    seen: set[str] = set()
    for item in items:
        if item.id in seen:
            raise InputError(f"{blanks} has the blank of {one_line(item.id)[:80]} twice. Remove one.")
        seen.add(item.id)
    return items


class BlankState(LogState):
    """What people filled the blanks with."""

    def __init__(self, items: Sequence[BlankItem], log: ReviewLog, *, per_hit: int = PER_HIT) -> None:
        self.items, self.per_hit = items, per_hit
        super().__init__(log, {item.id: number for number, item in enumerate(items)})

    def is_shared(self, field: str) -> bool:
        return False

    def clean_value(self, field: str, value: str | None) -> str | None:
        if field == COMMENT:
            text = "\n".join(showable(line).rstrip() for line in (value or "").splitlines()).strip()
            if len(text) > MOST_TEXT:
                raise UsageError(f"A comment has at most {MOST_TEXT:,} letters. Shorten it.")
            return text or None
        if field != FILLED:
            raise UsageError(f"There is no field {one_line(field)[:40]!r}. Reload the page.")
        answers = [text for line in (value or "").splitlines() if (text := " ".join(showable(line).split()))]
        words = [normalize_as_page(answer) for answer in answers]
        if "" in words or len(set(words)) < len(words):
            raise UsageError("Each answer has a word, and none is there twice.")
        if len(answers) > MOST_ANSWERS or any(len(answer) > MOST_ANSWER_LETTERS for answer in answers):
            raise UsageError(f"A blank has at most {MOST_ANSWERS} answers of at most {MOST_ANSWER_LETTERS} letters.")
        return "\n".join(answers) or None

    def most_letters(self, field: str) -> int:
        return MOST_TEXT if field == COMMENT else MOST_ANSWERS * (MOST_ANSWER_LETTERS + 1)

    def is_possible(self, action: Action) -> bool:
        lines = (action.after or "").splitlines() if action.field == FILLED else ()
        return len(lines) <= MOST_ANSWERS and all(len(line) <= MOST_ANSWER_LETTERS for line in lines)

    def answers(self, item: BlankItem, reviewer: str) -> list[str]:
        """Return what a person filled a blank with, the most natural first."""
        return (self.value(item.id, FILLED, reviewer) or "").splitlines()

    def is_done(self, item: BlankItem, reviewer: str) -> bool:
        """Whether the person gave as many answers as are asked for."""
        return len(self.answers(item, reviewer)) >= LEAST_ANSWERS

    @property
    def hits(self) -> list[tuple[BlankItem, ...]]:
        """The blanks that are shown together."""
        return [tuple(self.items[first : first + self.per_hit]) for first in range(0, len(self.items), self.per_hit)]

    def first_open(self, reviewer: str) -> int:
        """Return the number of the first HIT that the person has not finished; the last one where all are."""
        hits = self.hits
        return next((place for place, hit in enumerate(hits) if not all(self.is_done(item, reviewer) for item in hit)), len(hits) - 1)


# ---------------------------------------------------------------- export


def export_answers(state: BlankState, out: Path, *, overwrite: bool = False) -> int:
    """Write what everybody answered as results of HITs, for `vip fiber collect`, and return the number of assignments.

    Raises:
        UsageError: the file is there already, or is no CSV by its name.
        InputError: nobody has answered anything.
        StoreError: not writable.
    """
    if out.suffix.lower() != ".csv":
        raise UsageError(f"{out}: answers to blanks are written as CSV, which vip fiber collect reads. Name a file with .csv.")
    if store.exists(out) and not overwrite:
        raise UsageError(f"{out} is there already. Add {option('overwrite')} to replace it.")
    state.catch_up()
    rows = list(_assignments(state))
    if not rows:
        raise InputError("Nobody has answered anything yet. Run `vip review` with this file first.")
    names = [*COLUMNS, *(f"Input.{name}" for name in hit_columns(state.per_hit)), ANSWERS]
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows([names, *rows])
    with store.replacing(out) as file:
        file.write(text.getvalue().encode())
    return len(rows)


def _assignments(state: BlankState) -> Iterator[list[str]]:
    """Yield a row for each person and HIT with an answer."""
    hits_of: dict[str, list[tuple[BlankItem, ...]]] = {}
    for hit in state.hits:
        for name in dict.fromkeys(name for item in hit for name in state.said(item.id, FILLED)):
            hits_of.setdefault(name, []).append(hit)
    for reviewer, hits in sorted(hits_of.items(), key=lambda one: one[0]):
        for hit in hits:
            answered: dict[str, str] = {
                f"answer-{place}-{number}": answer
                for place, item in enumerate(hit, 1)
                for number, answer in enumerate(state.answers(item, reviewer))
            }
            if not answered:
                continue
            comments = [text for item in hit if (text := state.value(item.id, COMMENT, reviewer))]
            sent = printable_json([{**answered, "comments": "\n".join(comments)}])
            cells = [cell for item in hit for cell in hit_cells(item.record)]
            hit_id = _digest(*(item.id for item in hit), *(item.record.masked_caption for item in hit))
            padding = [""] * (5 * state.per_hit - len(cells))
            yield [hit_id, _digest(hit_id, reviewer), guard_cell(one_line(reviewer)), "Submitted", *cells, *padding, sent]


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:30].upper()


def shown_item(state: BlankState, number: int, place: int) -> dict[str, Any]:
    """Return what the page shows of a blank; a file of the clip alone has no start and end in it."""
    record, video = state.items[number].record, state.items[number].video
    is_whole = video is not None and video.stem == record.clip_id
    return {
        "number": number,
        "id": state.items[number].id,
        "place": place,
        "text": showable(record.masked_caption),
        "start_s": None if is_whole else record.video_start_time,
        "end_s": None if is_whole else record.video_end_time,
        "has_video": video is not None,
        "video_id": showable(record.video_id),
    }
