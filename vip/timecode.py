"""Times as people write them."""

from __future__ import annotations

import re
from fractions import Fraction

CLOCK = re.compile(r"(?:(?:(\d+):)?(\d{1,2}):)?(\d+(?:\.\d*)?)", re.ASCII)
UNITS = re.compile(r"(?=\d)(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", re.ASCII)


def timecode(time_s: float) -> str:
    """Return `1:02.40`, `1:00:00.00`; with a minus sign for times before the video's zero."""
    hundredths = round(abs(time_s) * 100)
    minutes, rest = divmod(hundredths, 6000)
    hours, minutes = divmod(minutes, 60)
    start = f"{hours}:{minutes:02d}" if hours else f"{minutes}"
    return f"{'-' if time_s < 0 and hundredths else ''}{start}:{rest / 100:05.2f}"


def seconds_of(text: str) -> Fraction:
    """Return the seconds of `75.5`, `1:15.5`, `0:01:15.5`, `1m15.5s` or `90m`.

    Raises:
        ValueError: the text is none of these.
    """
    given = text.strip().lower()
    found = CLOCK.fullmatch(given) or UNITS.fullmatch(given)
    too_many = found is not None and found.re is CLOCK and ((found[2] and Fraction(found[3]) >= 60) or (found[1] and int(found[2]) >= 60))
    if found is None or too_many:
        raise ValueError(f'"{text}" is no time: write seconds (75.5), hh:mm:ss (0:01:15.5) or units (1m15s)')
    return 3600 * Fraction(found[1] or 0) + 60 * Fraction(found[2] or 0) + Fraction(found[3] or 0)
