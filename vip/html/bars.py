"""Bars and lines for counts: shares of kinds, distributions of lengths. They fit a phone: names stand above their bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from vip.html.axes import evenly_spaced
from vip.html.charts import AXIS_Y, HEIGHT_PX, Scale, dot, draw, polyline, value_axis
from vip.html.markup import join, percent, tag

ROW_PX, NAME_PX, BAR_PX = 34, 14, 10
COLOURS = (("kept", "blue"), ("bad", "red"), ("third", "green"), ("", "grey"))
"""Kinds of lines and dots with their words."""
MOST_LABELS = 8


class Bar(NamedTuple):
    """A bar: its name, its length, and the figure as text."""

    name: str
    value: float
    text: str
    level: int = 0
    """1 and more: part of the bar above, and further in."""


def draw_bars(bars: Sequence[Bar], label: str) -> Markup:
    """Return bars below each other, as long as their values; the longest has the whole width."""
    longest = max((bar.value for bar in bars), default=0.0) or 1.0
    parts = []
    for row, bar in enumerate(bars):
        top, indent = row * ROW_PX, 4 * bar.level
        width = max(0.3, (100 - indent) * bar.value / longest)
        parts.append(tag("text", bar.name, x=percent(indent), y=top + NAME_PX - 2))
        parts.append(tag("text", bar.text, x="100%", y=top + NAME_PX - 2, text_anchor="end"))
        kind = "mark" if bar.level == 0 else "tick"
        parts.append(tag("rect", class_=kind, x=percent(indent), y=top + NAME_PX + 3, width=percent(width), height=BAR_PX, rx=2))
    return draw(tag("g", *parts, class_="axis bars"), height_px=max(1, len(bars)) * ROW_PX, label=label)


def line_legend(names: Sequence[str]) -> str:
    """Return which colour is which line; empty for one line."""
    return " ".join(f"{name}: {COLOURS[place % len(COLOURS)][1]}." for place, name in enumerate(names)) if len(names) > 1 else ""


def draw_lines(lines: Mapping[str, Mapping[int, float]], label: str, *, unit: str = "", is_count: bool = True) -> Markup:
    """Return one line a name over numbers, which stand at equal distances.

    Args:
        unit: stands behind a value in its tooltip.
        is_count: every whole number between the first and the last stands on the axis, and what a line lacks is 0; else those numbers
            alone that have values, and what a line lacks is not drawn.
    """
    known = sorted({number for line in lines.values() for number in line})
    if not known:
        return draw(tag("g", class_="axis"), height_px=1, label=label)
    span = list(range(known[0], known[-1] + 1)) if is_count else known
    values = [value for line in lines.values() for value in line.values()]
    scale = Scale.enclosing(0.0 if is_count else min(values), max(*values, 1e-6))
    places = {number: 100 * (place + 0.5) / len(span) for place, number in enumerate(span)}
    shown = [span[place] for place in evenly_spaced(len(span), MOST_LABELS)]
    names = [tag("text", str(number), x=percent(places[number]), y=AXIS_Y, text_anchor="middle") for number in shown]
    parts = [value_axis(scale), tag("g", *names, class_="axis")]
    for place, (name, line) in enumerate(lines.items()):
        kind = COLOURS[place % len(COLOURS)][0]
        drawn = {number: line.get(number, 0.0) for number in span} if is_count else dict(sorted(line.items()))
        parts.append(polyline(((places[number], scale.y(value)) for number, value in drawn.items()), kind))
        parts += [
            dot(f"{name}, {number}: {value:.1f}{unit}", kind, places[number], scale.y(value), radius_px=3.5)
            for number, value in sorted(line.items())
        ]
    return draw(join(parts), height_px=HEIGHT_PX, label=label)
