"""Axes that the timeline and the curves share: a span of time in percent of the width, and round numbers to label it with.

Places are percentages, so one drawing fits a desktop and a phone; labels that crowd a phone carry the class `wide`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from vip.html.format import time_code
from vip.html.markup import join, percent, tag
from vip.records import VideoInfo

TIME_STEPS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
WIDE_INTERVALS = 10
NARROW_INTERVALS = 5
LARGEST = 1e300
"""Of the numbers of an axis, so that no sum of them overflows."""
LEAST_SHARE = 1e-12
"""Of the larger end: a shorter axis would have neighbouring floats for ticks."""


@dataclass(frozen=True, slots=True)
class AxisSpan:
    """The time that the width of the page stands for."""

    start_s: float
    end_s: float

    def __post_init__(self) -> None:
        if not self.end_s > self.start_s:
            raise ValueError(f"expected end after start, got {self.start_s} to {self.end_s}")

    @classmethod
    def between(cls, start_s: float, end_s: float) -> AxisSpan:
        """Return the span of a time that may have no length; it then has one second."""
        return cls(start_s, end_s if end_s > start_s else start_s + 1.0)

    def place(self, time_s: float) -> float:
        """Return the percent of the width, in [0, 100]."""
        return min(100.0, max(0.0, 100 * (time_s - self.start_s) / (self.end_s - self.start_s)))


def span_of(video: VideoInfo | None, times_s: Iterable[float]) -> AxisSpan | None:
    """Return the time from the first frame to the end of the last one; None where nothing has a time."""
    known = list(times_s)
    if video is not None:
        known += [video.start_time_s, video.end_time_s + (float(1 / video.frame_rate) if video.frame_rate else 0.0)]
    if not known:
        return None
    start_s, end_s = (min(known) if video else min(0.0, *known)), max(known)
    return AxisSpan.between(start_s, end_s)


def time_ticks(span: AxisSpan) -> list[tuple[float, bool]]:
    """Return round times within the span, and whether each has room on a phone."""
    length_s = span.end_s - span.start_s
    step_s = next((step for step in TIME_STEPS_S if length_s / step <= WIDE_INTERVALS), length_s / WIDE_INTERVALS)
    every = next(n for n in (1, 2, 3, 4, 5) if length_s / step_s / n <= NARROW_INTERVALS or n == 5)
    first, last = math.ceil(span.start_s / step_s - 1e-9), math.floor(span.end_s / step_s + 1e-9)
    return [(tick * step_s, tick % every == 0) for tick in range(first, last + 1)]


def time_axis(span: AxisSpan, *, y_px: float, grid_px: float = 0) -> Markup:
    """Return labels at `y_px`, with lines of `grid_px` above them."""
    ticks = time_ticks(span)
    decimals = 0 if all(abs(time_s - round(time_s)) < 1e-6 for time_s, _ in ticks) else 1
    parts = []
    for time_s, narrow in ticks:
        x, kind = percent(span.place(time_s)), None if narrow else "wide"
        if grid_px:
            parts.append(tag("line", class_=f"grid {kind or ''}".strip(), x1=x, x2=x, y1=y_px - 16 - grid_px, y2=y_px - 12))
        parts.append(
            tag("text", time_code(time_s, decimals=decimals), class_=kind, x=x, y=y_px, text_anchor=text_anchor(span.place(time_s)))
        )
    return tag("g", join(parts), class_="axis")


def text_anchor(place: float) -> str:
    """Return how a label stands at a place in percent: centred on an edge it would stick out of a phone's screen."""
    return "start" if place < 3 else "end" if place > 97 else "middle"


def round_ticks(low: float, high: float, *, intervals: int = 4) -> list[float]:
    """Return multiples of 1, 2 or 5 that enclose [low, high], about `intervals` steps; they differ, however large the two are.

    Raises:
        ValueError: a number is beyond 1e300.
    """
    largest = max(abs(low), abs(high))
    if not largest <= LARGEST:
        raise ValueError(f"expected numbers up to {LARGEST:g}, got {low} and {high}")
    raw = max(high - low, 1e-6, LEAST_SHARE * largest) / intervals
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [tick * step for tick in range(first, max(last, first + 1) + 1)]


def spread(places: list[float], *, gap: float, low: float, high: float) -> list[float]:
    """Return the nearest places (least squares) in the same order that lie `gap` apart and within [low, high].

    Isotonic regression (pool adjacent violators) of `place - i * gap`, then clipped.
    """
    pools: list[tuple[float, int]] = []
    for i, place in enumerate(places):
        total, count = place - i * gap, 1
        while pools and pools[-1][0] / pools[-1][1] >= total / count:
            earlier = pools.pop()
            total, count = total + earlier[0], count + earlier[1]
        pools.append((total, count))
    base = [total / count for total, count in pools for _ in range(count)]
    highest = max(low, high - gap * (len(places) - 1))
    return [min(highest, max(low, value)) + i * gap for i, value in enumerate(base)]


def evenly_spaced(count: int, limit: int) -> list[int]:
    """Return at most `limit` of the indices below `count`, evenly, first and last included."""
    if count <= limit:
        return list(range(count))
    if limit <= 1:
        return [0][:limit]
    return [round(i * (count - 1) / (limit - 1)) for i in range(limit)]
