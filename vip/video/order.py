"""The order and the times of pictures in a row: from their EXIF, from names as vip writes them, or one a second."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path

MILLISECONDS = 1000  # ticks of a second
NAMED_TIME = re.compile(r"\d{4,}_(\d{2,})h(\d{2})m(\d{2})\.(\d{3})s")  # 0001_00h00m12.400s, see vip.store
EXIF_TIME = "%Y:%m:%d %H:%M:%S"


@dataclass(frozen=True, slots=True)
class Timed:
    """Pictures in the order in which they are shown, with a time in milliseconds each; no time comes twice."""

    paths: tuple[Path, ...]
    times_ms: tuple[int, ...]


def by_name(path: Path) -> tuple[list[tuple[int, int | str]], str]:
    """Sort key in which img2 comes before img10."""
    parts = re.split(r"(\d+)", path.name.casefold())
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts if part], str(path)


def taken_ms(original: object, subsecond: object) -> int | None:
    """Return milliseconds since the year 1 from DateTimeOriginal and SubSecTimeOriginal of EXIF; None where they say no time."""
    try:
        taken = datetime.strptime(str(original).strip("\0 "), EXIF_TIME)
    except ValueError:
        return None
    digits = re.match(r"\d*", str(subsecond or "").strip())
    fraction = float(f"0.{digits[0]}") if digits and digits[0] else 0.0
    return round(((taken - datetime.min).total_seconds() + fraction) * MILLISECONDS)


def named_ms(path: Path) -> int | None:
    """Return the time in a name as vip writes them."""
    found = NAMED_TIME.fullmatch(path.stem)
    if found is None:
        return None
    hours, minutes, seconds, milliseconds = map(int, found.groups())
    return ((hours * 60 + minutes) * 60 + seconds) * MILLISECONDS + milliseconds


def in_time_order(paths: Sequence[Path], taken: Sequence[int | None]) -> Timed:
    """Order the pictures and time them.

    Args:
        taken: what EXIF says of each picture, in milliseconds of any clock.

    Returns:
        By EXIF, the first at 0, if each picture states a time of its own; else by name, at the times in the names if each
        states one of its own and they rise with the names; else by name, one a second.
    """
    order = sorted(range(len(paths)), key=lambda place: by_name(paths[place]))
    stated = [time for time in taken if time is not None]
    if len(paths) > 1 and len(set(stated)) == len(paths):
        first = min(stated)
        times = dict(zip(range(len(paths)), stated, strict=True))
        order = sorted(order, key=times.__getitem__)
        return Timed(tuple(paths[place] for place in order), tuple(times[place] - first for place in order))
    named = [time for place in order if (time := named_ms(paths[place])) is not None]
    rising = len(named) == len(paths) and all(a < b for a, b in pairwise(named))
    times_ms = named if rising else range(0, len(paths) * MILLISECONDS, MILLISECONDS)
    return Timed(tuple(paths[place] for place in order), tuple(times_ms))
