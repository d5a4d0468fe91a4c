"""Sharpness and similarity over time, as SVG of our own: one drawing for every width, with tooltips and no script.

In: points in time order. Out: a figure with title, legend, axes and, on every point, what it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from vip.html.axes import AxisSpan, round_ticks, time_axis
from vip.html.format import GOOD_ENOUGH, RULES, number, time_code
from vip.html.markup import Html, decimal, join, percent, tag
from vip.records import Candidate, Embeddings
from vip.store import KeyframePicture

PLOT_PX = 170
TOP_PX = 10
AXIS_Y = TOP_PX + PLOT_PX + 20
HEIGHT_PX = AXIS_Y + 6
MAX_POINTS = 600
MAX_RULES = 40  # more vertical lines than this are a curtain

Kind = Literal["kept", "pruned", "bad"]
KINDS: dict[Kind, str] = {"kept": "keyframe", "pruned": "dropped as too alike", "bad": "bad"}


@dataclass(frozen=True, slots=True)
class Point:
    """A value of the curve; `kind` says what became of the candidate."""

    time_s: float
    value: float
    kind: Kind
    label: str


@dataclass(frozen=True, slots=True)
class Curve:
    """What one figure shows. `threshold` draws a dashed line."""

    title: str
    explanation: str
    points: tuple[Point, ...]
    base: float = 0.0
    """The value axis reaches at least down to here, so that tiny differences do not look like cliffs."""
    threshold: float | None = None
    threshold_label: str = ""


def kind_of(candidate: Candidate) -> Kind:
    if candidate.decision.kept:
        return "kept"
    return "pruned" if candidate.decision.rule in GOOD_ENOUGH else "bad"


def sharpness_curve(candidates: Sequence[Candidate], keyframes: Sequence[KeyframePicture], *, least: float | None) -> Curve:
    """Of the candidates, or where there are none of the keyframes that have a time."""
    points = [
        Point(row.time_s, row.quality.sharpness, kind_of(row), f"{_what(row)}, sharpness {number(row.quality.sharpness)}")
        for row in candidates
        if row.quality is not None
    ]
    for frame in () if points else keyframes:
        if frame.time_s is not None:
            sharpness = frame.record.quality.sharpness
            points.append(Point(frame.time_s, sharpness, "kept", f"{time_code(frame.time_s)} keyframe, sharpness {number(sharpness)}"))
    explanation = "Variance of the Laplacian of each candidate. Low means blurred."
    return Curve("Sharpness", explanation, _in_order(points), threshold=least, threshold_label="least asked for")


def similarity_curve(candidates: Sequence[Candidate], embeddings: Embeddings) -> Curve:
    """The cosine of each decoded candidate to the one before it.

    Raises:
        ValueError: the rows of the embeddings are not those of the candidates.
    """
    decoded = [candidate for candidate in candidates if candidate.quality is not None]
    if len(decoded) != len(embeddings):
        raise ValueError(f"expected {len(decoded)} vectors, one a decoded candidate, got {len(embeddings)}")
    points = [
        Point(row.time_s, float(cosine), kind_of(row), f"{_what(row)}, similarity to the one before {cosine:.3f}")
        for row, cosine in zip(decoded[1:], consecutive_cosines(embeddings.image), strict=False)
    ]
    embedder = embeddings.model.partition(", ")[0]  # without the state of its weights
    explanation = f"Cosine of each candidate to the one before it, measured by {embedder}. Low means that the scene changed."
    return Curve("Similarity", explanation, _in_order(points), base=0.9)


def consecutive_cosines(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """float64 (N - 1,) of rows of length 1."""
    cosines: npt.NDArray[np.float64] = np.einsum("nd,nd->n", vectors[:-1], vectors[1:], dtype=np.float64)
    return cosines.clip(-1, 1)


def _what(row: Candidate) -> str:
    name = "keyframe" if row.decision.kept else RULES[row.decision.rule][0].lower() if row.decision.rule in RULES else "dropped"
    return f"{time_code(row.time_s)} {name}"


def _in_order(points: Sequence[Point]) -> tuple[Point, ...]:
    return tuple(sorted((point for point in points if np.isfinite(point.value)), key=lambda point: point.time_s))


# ---------------------------------------------------------------- drawing


@dataclass(frozen=True, slots=True)
class Scale:
    """Values to pixels from the top, with round numbers to label them."""

    ticks: tuple[float, ...]

    def y(self, value: float) -> float:
        low, high = self.ticks[0], self.ticks[-1]
        return TOP_PX + PLOT_PX * (1 - (value - low) / (high - low))

    def name(self, tick: float) -> str:
        """With the decimals that tell neighbouring ticks apart."""
        step = self.ticks[1] - self.ticks[0]
        return f"{tick:,.{max(0, math.ceil(-math.log10(step) - 1e-9))}f}".replace(",", "\u202f")


def figure(curve: Curve, span: AxisSpan) -> Html:
    """The curve with all that is around it; nothing where there are fewer than two points."""
    if len(curve.points) < 2:
        return Html("")
    points = thin(curve.points)
    return tag(
        "figure",
        tag("figcaption", tag("h3", curve.title), tag("p", curve.explanation)),
        tag("div", _svg(curve, points, _scale(curve), span), class_="plot"),
        class_="chart",
    )


def _scale(curve: Curve) -> Scale:
    values = [point.value for point in curve.points] + ([curve.threshold] if curve.threshold is not None else [])
    return Scale(tuple(round_ticks(min(curve.base, *values), max(values))))


def _svg(curve: Curve, points: Sequence[Point], scale: Scale, span: AxisSpan) -> Html:
    crowded = sum(point.kind == "kept" for point in points) > MAX_RULES
    radius: dict[Kind, float] = {"kept": 3 if crowded else 4.5, "pruned": 1.5 if crowded else 2.5, "bad": 2.5}
    keyframes_last = sorted(points, key=lambda point: point.kind == "kept")
    return tag(
        "svg",
        value_axis(scale),
        time_axis(span, y_px=AXIS_Y, grid_px=PLOT_PX),
        _keyframe_lines(points, span),
        _threshold(curve, scale),
        _line(points, scale, span),
        join(_dot(point, span.place(point.time_s), scale.y(point.value), radius=radius[point.kind]) for point in keyframes_last),
        height=HEIGHT_PX,
        role="img",
        aria_label=_spoken(curve),
    )


def _spoken(curve: Curve) -> str:
    """The curve in a sentence, for those who cannot see it."""
    low, high = min(curve.points, key=lambda point: point.value), max(curve.points, key=lambda point: point.value)
    first, last = curve.points[0], curve.points[-1]
    return (
        f"{curve.title} over time, {len(curve.points)} points from {time_code(first.time_s)} to {time_code(last.time_s)}: "
        f"lowest {number(low.value)} at {time_code(low.time_s)}, highest {number(high.value)} at {time_code(high.time_s)}."
    )


def value_axis(scale: Scale) -> Html:
    """Horizontal lines with their numbers at the left."""
    lines = [tag("line", class_="grid", x1=0, x2="100%", y1=scale.y(tick), y2=scale.y(tick)) for tick in scale.ticks]
    names = [tag("text", scale.name(tick), x=-8, y=scale.y(tick) + 4, text_anchor="end") for tick in scale.ticks]
    return tag("g", join(lines), join(names), class_="axis")


def _threshold(curve: Curve, scale: Scale) -> Html:
    if curve.threshold is None:
        return Html("")
    y = scale.y(curve.threshold)
    label = tag("text", f"{curve.threshold_label} {number(curve.threshold)}", x="100%", y=y - 5, text_anchor="end")
    return tag("g", tag("line", x1=0, x2="100%", y1=y, y2=y), label, class_="threshold")


def _keyframe_lines(points: Sequence[Point], span: AxisSpan) -> Html:
    """A vertical line at each keyframe."""
    places = [percent(span.place(point.time_s)) for point in points if point.kind == "kept"]
    if len(places) > MAX_RULES:
        return Html("")
    return tag("g", join(tag("line", x1=place, x2=place, y1=TOP_PX, y2=TOP_PX + PLOT_PX) for place in places), class_="rules")


def _line(points: Sequence[Point], scale: Scale, span: AxisSpan) -> Html:
    """A polyline knows no percentages: it is stretched over the width in a drawing of its own."""
    places = " ".join(f"{decimal(span.place(point.time_s))},{decimal(scale.y(point.value))}" for point in points)
    line = tag("polyline", points=places, class_="curve", vector_effect="non-scaling-stroke")
    return tag("svg", line, viewBox=f"0 0 100 {HEIGHT_PX}", width="100%", height=HEIGHT_PX, preserveAspectRatio="none")


def _dot(point: Point, place: float, y: float, *, radius: float) -> Html:
    x = percent(place)
    shown = tag("circle", class_=f"dot {point.kind}", cx=x, cy=y, r=radius)
    # The point is small, the area that answers with its tooltip is not.
    return tag("g", tag("title", point.label), tag("circle", class_="hit", cx=x, cy=y, r=9), shown)


def legend(candidates: Sequence[Candidate]) -> Html:
    """What the colours of the points mean; without candidates, every point is a keyframe."""
    kinds = {kind_of(row) for row in candidates} or {"kept"}
    return tag(
        "p",
        join(tag("span", tag("i", class_=f"key dot {kind}"), name) for kind, name in KINDS.items() if kind in kinds),
        class_="legend",
    )


def thin(points: Sequence[Point], limit: int = MAX_POINTS) -> tuple[Point, ...]:
    """At most about `limit` points, in order: every keyframe, and of the others the extremes of equal groups."""
    if len(points) <= limit:
        return tuple(points)
    size = math.ceil(2 * len(points) / limit)
    chosen = {i for i, point in enumerate(points) if point.kind == "kept"} if sum(p.kind == "kept" for p in points) <= limit else set()
    for start in range(0, len(points), size):
        group = range(start, min(start + size, len(points)))
        chosen |= {min(group, key=lambda i: points[i].value), max(group, key=lambda i: points[i].value)}
    return tuple(points[i] for i in sorted(chosen))
