"""The fields of an item that people write: the texts of a description, verdicts, comments, and what was settled between reviewers.

    dense_caption, focus … setting   the texts, of which all reviewers share one
    verdict, verdict.2 … verdict.4   of the description as a whole: good, needs work, unusable; of each stage of its own
    shot_size … camera_movement      those of the schema `rich`, where a run has them (see `vip.review.rich`)
    wrong:focus …                    a text that is not true of its picture
    comment
    final:verdict, final:wrong:focus what stands after a disagreement was settled; all reviewers share it

All values are texts; the objects are one a line. None: nothing was said.
"""

from __future__ import annotations

import re
from functools import lru_cache

from vip.errors import UsageError
from vip.html.markup import showable
from vip.records import Famous
from vip.review.rich import LISTS, RICH_TEXTS, clean_rich
from vip.untrusted import JOINERS, one_line, shorten

PACKAGE = "vip.review"  # whose templates, scripts and styles pages are made of
TEXTS: tuple[str, ...] = ("dense_caption", *Famous.model_fields)
ALL_TEXTS: tuple[str, ...] = (*TEXTS, *RICH_TEXTS)
GOOD, NEEDS_WORK, UNUSABLE = "good", "needs work", "unusable"
VERDICTS = (GOOD, NEEDS_WORK, UNUSABLE)
WRONG = "wrong"
COMMENT = "comment"
FINAL = "final:"
STAGES = ("1", "2", "3", "4")
VERDICT_FIELDS = {None: "verdict", "1": "verdict", "2": "verdict.2", "3": "verdict.3", "4": "verdict.4"}
MOST_TEXT, MOST_NAME, MOST_UID = 20_000, 60, 64
ENGINE = "engine:"
WORKER = "mturk:"
"""The names begin so under which engines write, and workers of Mechanical Turk; a person cannot take one."""
MOST_ENGINE = 300  # letters of the name of an engine; it may be a path
UID = re.compile(rf"[A-Za-z0-9._-]{{1,{MOST_UID}}}")

_WRONG_FIELDS = tuple(f"{WRONG}:{name}" for name in ALL_TEXTS)
ALLOWED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(VERDICT_FIELDS.values(), VERDICTS),
    **dict.fromkeys(_WRONG_FIELDS, (WRONG,)),
    f"{FINAL}verdict": VERDICTS,
    **{f"{FINAL}{name}": (WRONG, "right") for name in _WRONG_FIELDS},
}


@lru_cache(maxsize=256)
def is_shared(field: str) -> bool:
    """Return whether all reviewers share the value; of the other fields each reviewer has a value of their own."""
    return field in ALL_TEXTS or field.startswith(FINAL)


def clean_value(field: str, value: str | None) -> str | None:
    """Return a value as it is kept: without blank space around it, objects one a line, "" as None where no text is meant.

    Raises:
        UsageError: there is no such field, or the value is not one of it, or too long.
    """
    if field in ALLOWED:
        if value is not None and value not in ALLOWED[field]:
            raise UsageError(f"{field} is one of {', '.join(ALLOWED[field])}, or nothing.")
        return value
    if field not in (*ALL_TEXTS, COMMENT):
        raise UsageError(f"There is no field {one_line(field)[:40]!r}. Reload the page.")
    if value is not None and len(value) > MOST_TEXT:
        raise UsageError(f"A text has at most {MOST_TEXT:,} letters. Shorten it.")
    lines = [showable(line).rstrip() for line in (value or "").replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    if field == "objects":
        lines = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    text = "\n".join(lines).strip()
    if field in RICH_TEXTS:
        return clean_rich(field, text)
    if field == "dense_caption" and not text:
        raise UsageError("A dense caption cannot be empty. Mark it as unusable instead.")
    return text or None if field == COMMENT else text


def clean_reviewer(name: object) -> str:
    """Return the name of a reviewer.

    Raises:
        UsageError: it is empty or too long, or that of an engine or a worker.
    """
    text = one_line(name) if isinstance(name, str) else ""
    seen = text.translate(dict.fromkeys(map(ord, JOINERS))).strip()
    if not seen or len(text) > MOST_NAME:
        raise UsageError(f"Give a name of 1 to {MOST_NAME} letters.")
    if seen.casefold().startswith((ENGINE, WORKER)):
        raise UsageError(f"Names that begin with {ENGINE} or {WORKER} are those of engines and workers. Give another name.")
    return text


def engine_reviewer(name: str) -> str:
    """Return the name under which an engine writes."""
    return f"{ENGINE}{shorten(name, MOST_ENGINE)}"


def is_possible_name(reviewer: str) -> bool:
    """Return whether a name in a log is no longer than those that vip writes there."""
    return len(reviewer) <= (len(ENGINE) + MOST_ENGINE + 1 if reviewer.startswith(ENGINE) else MOST_NAME)  # 1: the mark of a cut


def most_letters(field: str) -> int:
    """Return how long a value in a log can be; a list grows where space is put around its marks, as in `a | b | c`."""
    return 2 * MOST_TEXT if field in LISTS else MOST_TEXT


def objects_of(value: str) -> tuple[str, ...]:
    """Return the objects of the text that stands for them."""
    return tuple(line for line in value.split("\n") if line)
