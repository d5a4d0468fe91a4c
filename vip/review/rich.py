"""The fields of the schema `rich` as texts that people edit, and back.

In: `RichFields`, or a text. Out: the other. Lists have one entry a line; a number and a colour stand after a colon (`dog: 3`), and a bar is
between the parts of a relation (`dog | left of | bench`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, get_args

from vip.errors import UsageError
from vip.records import (
    MOST_COUNTED,
    NOT_DETERMINED,
    CameraAngle,
    DepthOfField,
    ObjectColour,
    ObjectCount,
    Relation,
    RichFields,
    ShotSize,
)
from vip.untrusted import one_line

RICH_TEXTS: tuple[str, ...] = tuple(RichFields.model_fields)
CHOICES: dict[str, tuple[str, ...]] = {
    "shot_size": get_args(ShotSize),
    "camera_angle": get_args(CameraAngle),
    "depth_of_field": get_args(DepthOfField),
}
"""The fields that have one of a few values."""
LISTS = ("counts", "colours", "relations", "visible_text", "characters")
MEASURED = "camera_movement"
"""Measured by vip; all the others are what an engine says."""
MOST_SHOWN = 40  # letters of a line that does not fit


def rich_texts(rich: RichFields | None) -> tuple[str, ...]:
    """Return the fields as texts, in the order of `RICH_TEXTS`; none where only FAMOuS was asked for."""
    return tuple(_text(getattr(rich, name)) for name in RICH_TEXTS) if rich else ()


def rich_value(field: str, text: str) -> Any:
    """Return the value of a field that a text stands for.

    Raises:
        UsageError: the text does not fit the field.
    """
    if field in CHOICES:
        if text not in CHOICES[field]:
            raise UsageError(f"{field} is one of {', '.join(CHOICES[field])}.")
        return text
    if field not in LISTS:
        return text or NOT_DETERMINED
    parse = _PARSERS.get(field, str)
    return tuple(parse(line) for line in text.split("\n") if line)


def clean_rich(field: str, text: str) -> str:
    """Return the text as it is kept; errors as of `rich_value`."""
    if field not in LISTS:
        return _text(rich_value(field, text))
    lines = [" ".join(line.split()) for line in text.split("\n") if line.strip()]
    return "\n".join(dict.fromkeys(_text(rich_value(field, "\n".join(lines))).split("\n")))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "\n".join(map(_line, value))


def _line(entry: Any) -> str:
    match entry:
        case Relation():
            parts = (part.replace("|", "/") for part in (entry.subject, entry.relation, entry.object))
            return " ".join(" | ".join(parts).split())
        case ObjectCount() | ObjectColour():
            return " ".join(entry.phrase.split())
        case _:
            return " ".join(str(entry).split())


def _count(line: str) -> ObjectCount:
    thing, _, number = line.rpartition(":")
    if not thing.strip() or not re.fullmatch(r"[0-9]{1,6}", number.strip()) or int(number) > MOST_COUNTED:
        raise UsageError(f'counts: "{_shown(line)}" is no thing with a number. Write it as dog: 3.')
    return ObjectCount(object=thing.strip(), count=int(number))


def _colour(line: str) -> ObjectColour:
    thing, _, colour = line.rpartition(":")
    if not thing.strip() or not colour.strip():
        raise UsageError(f'colours: "{_shown(line)}" is no thing with a colour. Write it as coat: red.')
    return ObjectColour(object=thing.strip(), colour=colour.strip())


def _relation(line: str) -> Relation:
    parts = [part.strip() for part in line.split("|")]
    if len(parts) != 3 or not all(parts):
        raise UsageError(f'relations: "{_shown(line)}" does not say where a thing is. Write it as dog | left of | bench.')
    return Relation(subject=parts[0], relation=parts[1], object=parts[2])


def _shown(line: str) -> str:
    return one_line(line)[:MOST_SHOWN]


_PARSERS: dict[str, Callable[[str], Any]] = {"counts": _count, "colours": _colour, "relations": _relation}
