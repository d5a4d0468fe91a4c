"""Times for people."""

from __future__ import annotations

import re

CLOCK = re.compile(r"(?:(?:(\d+):)?(\d{1,2}):)?(\d+(?:\.\d*)?)")


def clock(time_s: float) -> str:
    """A time for people: `1:02.40`, `1:00:00.00`; a minus sign for times before the video's zero."""
    hundredths = round(abs(time_s) * 100)
    minutes, rest = divmod(hundredths, 6000)
    hours, minutes = divmod(minutes, 60)
    start = f"{hours}:{minutes:02d}" if hours else f"{minutes}"
    return f"{'-' if time_s < 0 and hundredths else ''}{start}:{rest / 100:05.2f}"


def seconds_of(text: str) -> float:
    """Seconds from `75.5`, `1:15.5` or `0:01:15.5`.

    Raises:
        ValueError: neither seconds nor a clock time.
    """
    found = CLOCK.fullmatch(text.strip())
    if found is None or (found[2] and float(found[3]) >= 60):
        raise ValueError(f'"{text}" is no time: write seconds (75.5) or hh:mm:ss (0:01:15.5)')
    return 3600 * int(found[1] or 0) + 60 * int(found[2] or 0) + float(found[3])
