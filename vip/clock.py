"""Times for people."""

from __future__ import annotations


def clock(time_s: float) -> str:
    """A time for people: `1:02.40`, `1:00:00.00`; a minus sign for times before the video's zero."""
    hundredths = round(abs(time_s) * 100)
    minutes, rest = divmod(hundredths, 6000)
    hours, minutes = divmod(minutes, 60)
    start = f"{hours}:{minutes:02d}" if hours else f"{minutes}"
    return f"{'-' if time_s < 0 and hundredths else ''}{start}:{rest / 100:05.2f}"
