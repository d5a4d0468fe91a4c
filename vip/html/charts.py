"""SVG elements of every chart: one drawing for every width, tooltips on its points, and no script."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from vip.html.axes import round_ticks
from vip.html.markup import decimal, join, percent, tag

PLOT_PX = 170
TOP_PX = 10
BOTTOM_PX = TOP_PX + PLOT_PX
AXIS_Y = BOTTOM_PX + 20
HEIGHT_PX = AXIS_Y + 6
HIT_RADIUS_PX = 9  # a point is small, the area that answers with its tooltip is not


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing with what is written above it: the explanation may end with a command and what it does."""

    title: str
    explanation: str
    svg: Markup
    command: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """Values to pixels from the top, with round numbers to label them."""

    ticks: tuple[float, ...]

    @classmethod
    def enclosing(cls, low: float, high: float) -> Scale:
        """Return the scale whose round numbers enclose the two."""
        return cls(tuple(round_ticks(low, high)))

    def y(self, value: float) -> float:
        """Return the pixels from the top."""
        low, high = self.ticks[0], self.ticks[-1]
        return TOP_PX + PLOT_PX * (1 - (value - low) / (high - low))

    def label(self, tick: float) -> str:
        """Return the number with the decimals that keep neighbouring ticks apart."""
        step = self.ticks[1] - self.ticks[0]
        return f"{tick:,.{max(0, math.ceil(-math.log10(step) - 1e-9))}f}".replace(",", "\u202f")


def draw(*parts: Markup, height_px: float, label: str) -> Markup:
    """Return a drawing as wide as its place; `label` says in a sentence what it shows."""
    return tag("svg", *parts, height=height_px, role="img", aria_label=label)


def value_axis(scale: Scale) -> Markup:
    """Return horizontal lines with their numbers at the left."""
    lines = [tag("line", class_="grid", x1=0, x2="100%", y1=scale.y(tick), y2=scale.y(tick)) for tick in scale.ticks]
    names = [tag("text", scale.label(tick), x=-8, y=scale.y(tick) + 4, text_anchor="end") for tick in scale.ticks]
    return tag("g", join(lines), join(names), class_="axis")


def vertical_line(place: float, kind: str | None = None) -> Markup:
    """Return a line over the height of the plot, `place` percent from the left."""
    return tag("line", class_=kind, x1=percent(place), x2=percent(place), y1=TOP_PX, y2=BOTTOM_PX)


def horizontal_line(y: float) -> Markup:
    """Return a line over the width of the plot."""
    return tag("line", x1=0, x2="100%", y1=y, y2=y)


def polyline(points: Iterable[tuple[float, float]], kind: str = "") -> Markup:
    """Return a line through points (percent, pixels). It knows no percentages: a drawing of its own stretches it over the width.

    Args:
        kind: its class, as that of a dot; a line without one is grey.
    """
    line = tag(
        "polyline",
        points=" ".join(f"{decimal(x)},{decimal(y)}" for x, y in points),
        class_=f"curve {kind}".strip(),
        vector_effect="non-scaling-stroke",
    )
    return tag("svg", line, viewBox=f"0 0 100 {HEIGHT_PX}", width="100%", height=HEIGHT_PX, preserveAspectRatio="none")


def dot(label: str, kind: str, place: float, y: float, *, radius_px: float) -> Markup:
    """Return a point with its tooltip, `place` percent from the left."""
    x = percent(place)
    hit, shown = (tag("circle", class_=name, cx=x, cy=y, r=radius) for name, radius in (("hit", HIT_RADIUS_PX), (f"dot {kind}", radius_px)))
    return tag("g", tag("title", label), hit, shown)
