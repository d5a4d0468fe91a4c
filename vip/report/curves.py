"""Sharpness and similarity of the candidates over time.

In: points in time order. Out: a chart with axes and, on every point, what it is; and the legend of all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from vip.html import charts
from vip.html.axes import AxisSpan, time_axis
from vip.html.charts import Chart, Scale
from vip.html.format import GOOD_ENOUGH, RULES, number, time_code
from vip.html.markup import join, tag
from vip.records import Candidate, Embeddings
from vip.store import KeyframePicture

MAX_POINTS = 600
MAX_KEYFRAME_LINES = 40  # more vertical lines than this hide the curve

Kind = Literal["kept", "pruned", "bad"]
KINDS: dict[Kind, str] = {"kept": "keyframe", "pruned": "dropped as too alike", "bad": "bad"}


@dataclass(frozen=True, slots=True)
class Point:
    """A value of the curve; `kind` says whether the candidate was kept."""

    time_s: float
    value: float
    kind: Kind
    label: str


@dataclass(frozen=True, slots=True)
class Curve:
    """The contents of one chart. `threshold` draws a dashed line."""

    title: str
    explanation: str
    points: tuple[Point, ...]
    base: float = 0.0
    """The value axis reaches at least down to here, so that tiny differences do not look like cliffs."""
    threshold: float | None = None
    threshold_label: str = ""


def point_kind(candidate: Candidate) -> Kind:
    """Return the colour of a candidate's point."""
    if candidate.decision.kept:
        return "kept"
    return "pruned" if candidate.decision.rule in GOOD_ENOUGH else "bad"


def sharpness_curve(candidates: Sequence[Candidate], keyframes: Sequence[KeyframePicture], *, least: float | None) -> Curve:
    """Return the curve of the candidates, or where there are none of the keyframes that have a time."""
    points = [
        Point(row.time_s, row.quality.sharpness, point_kind(row), f"{_describe_candidate(row)}, sharpness {number(row.quality.sharpness)}")
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
    """Return the curve of the cosines of each decoded candidate to the one before it.

    Raises:
        ValueError: the rows of the embeddings are not those of the candidates.
    """
    decoded = [candidate for candidate in candidates if candidate.quality is not None]
    if len(decoded) != len(embeddings):
        raise ValueError(f"expected {len(decoded)} vectors, one a decoded candidate, got {len(embeddings)}")
    points = [
        Point(row.time_s, float(cosine), point_kind(row), f"{_describe_candidate(row)}, similarity to the one before {cosine:.3f}")
        for row, cosine in zip(decoded[1:], consecutive_cosines(embeddings.image), strict=False)
    ]
    embedder = embeddings.model.partition(", ")[0]  # without the state of its weights
    explanation = f"Cosine of each candidate to the one before it, measured by {embedder}. Low means that the scene changed."
    return Curve("Similarity", explanation, _in_order(points), base=0.9)


def consecutive_cosines(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Return the cosines of neighbouring rows of length 1: float64 (N - 1,)."""
    cosines: npt.NDArray[np.float64] = np.einsum("nd,nd->n", vectors[:-1], vectors[1:], dtype=np.float64)
    return cosines.clip(-1, 1)


def _describe_candidate(row: Candidate) -> str:
    name = "keyframe" if row.decision.kept else RULES[row.decision.rule][0].lower()
    return f"{time_code(row.time_s)} {name}"


def _in_order(points: Sequence[Point]) -> tuple[Point, ...]:
    return tuple(sorted((point for point in points if np.isfinite(point.value)), key=lambda point: point.time_s))


# ---------------------------------------------------------------- drawing


def draw(curve: Curve, span: AxisSpan) -> Chart | None:
    """Return the chart of a curve; None where there are fewer than two points."""
    if len(curve.points) < 2:
        return None
    points, scale = thin_out(curve.points), _scale(curve)
    crowded = sum(point.kind == "kept" for point in points) > MAX_KEYFRAME_LINES
    radius: dict[Kind, float] = {"kept": 3 if crowded else 4.5, "pruned": 1.5 if crowded else 2.5, "bad": 2.5}
    keyframes_last = sorted(points, key=lambda point: point.kind == "kept")
    svg = charts.draw(
        charts.value_axis(scale),
        time_axis(span, y_px=charts.AXIS_Y, grid_px=charts.PLOT_PX),
        Markup() if crowded else _keyframe_lines(points, span),
        _threshold(curve, scale),
        charts.polyline((span.place(point.time_s), scale.y(point.value)) for point in points),
        join(
            charts.dot(point.label, point.kind, span.place(point.time_s), scale.y(point.value), radius_px=radius[point.kind])
            for point in keyframes_last
        ),
        height_px=charts.HEIGHT_PX,
        label=_describe_curve(curve),
    )
    return Chart(curve.title, curve.explanation, svg)


def _scale(curve: Curve) -> Scale:
    values = [point.value for point in curve.points] + ([curve.threshold] if curve.threshold is not None else [])
    return Scale.enclosing(min(curve.base, *values), max(values))


def _describe_curve(curve: Curve) -> str:
    """Return the curve in a sentence, for those who cannot see it."""
    low, high = min(curve.points, key=lambda point: point.value), max(curve.points, key=lambda point: point.value)
    first, last = curve.points[0], curve.points[-1]
    return (
        f"{curve.title} over time, {len(curve.points)} points from {time_code(first.time_s)} to {time_code(last.time_s)}: "
        f"lowest {number(low.value)} at {time_code(low.time_s)}, highest {number(high.value)} at {time_code(high.time_s)}."
    )


def _threshold(curve: Curve, scale: Scale) -> Markup:
    if curve.threshold is None:
        return Markup()
    y = scale.y(curve.threshold)
    label = tag("text", f"{curve.threshold_label} {number(curve.threshold)}", x="100%", y=y - 5, text_anchor="end")
    return tag("g", charts.horizontal_line(y), label, class_="threshold")


def _keyframe_lines(points: Sequence[Point], span: AxisSpan) -> Markup:
    return tag("g", join(charts.vertical_line(span.place(point.time_s)) for point in points if point.kind == "kept"), class_="rules")


def legend(candidates: Sequence[Candidate]) -> list[tuple[str, str]]:
    """Return the colours of the points and what they mean; without candidates, every point is a keyframe."""
    kinds = {point_kind(row) for row in candidates} or {"kept"}
    return [(f"dot {kind}", name) for kind, name in KINDS.items() if kind in kinds]


def thin_out(points: Sequence[Point], limit: int = MAX_POINTS) -> tuple[Point, ...]:
    """Return at most about `limit` points, in order: every keyframe, and of the others the extremes of equal groups."""
    if len(points) <= limit:
        return tuple(points)
    size = math.ceil(2 * len(points) / limit)
    keyframes = {i for i, point in enumerate(points) if point.kind == "kept"}
    chosen = keyframes if len(keyframes) <= limit else set()
    for start in range(0, len(points), size):
        group = range(start, min(start + size, len(points)))
        chosen |= {min(group, key=lambda i: points[i].value), max(group, key=lambda i: points[i].value)}
    return tuple(points[i] for i in sorted(chosen))
