"""Times, numbers and rules in words."""

from __future__ import annotations

from datetime import UTC, datetime

from vip.records import NOT_DETERMINED, Rule

MOST_S = 1e12
RULES: dict[Rule, tuple[str, str]] = {
    "pruned": ("Pruned", "good, but most like others or, where something was asked for, less relevant"),
    "duplicate": ("Duplicate", "the same picture as a neighbour"),
    "blurred": ("Blurred", "blurred against their surroundings"),
    "faded": ("Faded", "a pale copy of a neighbour, as in a fade"),
    "in_transition": ("In transition", "beside a cross-fade or another change of shot"),
    "below_min_sharpness": ("Not sharp enough", "under the least sharpness asked for"),
    "too_few_objects": ("Too few objects", "fewer objects found than asked for"),
    "black": ("Black", "all but black"),
    "white": ("White", "all but white"),
    "flat": ("Flat", "hardly any contrast"),
    "unreadable": ("Unreadable", "could not be decoded"),
}
"""Each rule that drops a candidate: its name and what it means, in the order of the page."""

GOOD_ENOUGH: frozenset[Rule] = frozenset({"kept", "pruned", "duplicate"})
"""The rules of candidates that are sharp; all others are bad pictures."""


def time_code(time_s: float, *, decimals: int = 1) -> str:
    """Return `1:02.4`, `1:00:05.0`; with `decimals=0`, `1:02`. Times that no video has, of somebody else's file, are `MOST_S`."""
    ticks = round(min(abs(time_s), MOST_S) * 10**decimals)
    seconds, fraction = divmod(ticks, 10**decimals)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    clock = f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
    return f"{'−' if time_s < 0 and ticks else ''}{clock}{f'.{fraction:0{decimals}}' if decimals else ''}"


def number(value: float) -> str:
    """Return the number with about three digits: 1 234, 12.3, 0.12."""
    if abs(value) >= 100:
        return f"{value:,.0f}".replace(",", "\u202f")
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def file_size(size_bytes: float) -> str:
    """Return `2.4 MB`, `999 bytes`."""
    if size_bytes < 1000:
        return f"{size_bytes:.0f} bytes"
    for unit in ("kB", "MB", "GB"):
        size_bytes /= 1000
        if round(size_bytes, 1) < 1000:
            return f"{size_bytes:.1f} {unit}"
    return f"{size_bytes / 1000:.1f} TB"


def whole_number(count: int) -> str:
    """Return `12`, `12 345`."""
    return f"{count:,}".replace(",", "\u202f")


def plural(count: int, one: str, many: str | None = None) -> str:
    """Return `1 picture`, `2 pictures`, `12 345 pictures`."""
    return f"{whole_number(count)} {one if count == 1 else many or one + 's'}"


def date(created_utc: str) -> str:
    """Return `5 March 2025, 14:03 UTC`; the text as it is where it is no ISO date."""
    try:
        when = datetime.fromisoformat(created_utc)
    except ValueError:
        return created_utc
    when = when.astimezone(UTC) if when.tzinfo else when
    return f"{when.day} {when:%B %Y, %H:%M} UTC"


def is_undetermined(text: str) -> bool:
    """Return whether an engine says with this text that it cannot see it."""
    return text.strip().casefold().startswith(NOT_DETERMINED)
