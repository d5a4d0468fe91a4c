"""How many keyframes are enough: the likeness of the next one to go, over how many remain, as SVG.

The axis of numbers is logarithmic: between 3 and 6 keyframes lies as much as between 100 and 200.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from vip.html.axes import round_ticks
from vip.html.format import plural
from vip.html.markup import Html, decimal, join, percent, tag
from vip.records import Pruning
from vip.report.curves import AXIS_Y, HEIGHT_PX, PLOT_PX, TOP_PX, Scale, value_axis

ROUND = (1, 2, 5)


def pruning_figure(pruning: Pruning, chosen: int) -> Html:
    """The curve with the chosen number marked and the bound dashed; nothing where there are fewer than two points."""
    curve = {count: value for count, value in sorted(pruning.curve.items()) if math.isfinite(value)}
    if len(curve) < 2:
        return Html("")
    explanation = (
        "How like its neighbours the next keyframe to go is, at each number of keyframes. On and above the dashed line it shows what"
        " another shows; where the curve falls, something is lost that no other shows. "
    )
    again = join([explanation, tag("code", "vip extract --from RUN -n N"), " chooses another number from the same candidates."])
    return tag(
        "figure",
        tag("figcaption", tag("h3", "How many are enough"), tag("p", again)),
        tag("div", _svg(curve, pruning.bound, chosen), class_="plot"),
        class_="chart",
    )


def _svg(curve: Mapping[int, float], bound: float, chosen: int) -> Html:
    scale = Scale(tuple(round_ticks(min(*curve.values(), bound), max(*curve.values(), bound))))
    first, last = min(*curve, chosen), max(*curve, chosen)

    def place(count: int) -> float:
        """Percent of the width."""
        return 100 * math.log(count / first) / math.log(last / first)

    points = {count: (place(count), scale.y(value)) for count, value in curve.items()}
    line = tag(
        "polyline",
        points=" ".join(f"{decimal(x)},{decimal(y)}" for x, y in points.values()),
        class_="curve",
        vector_effect="non-scaling-stroke",
    )
    return tag(
        "svg",
        value_axis(scale),
        join(_tick(count, place(count), narrow=narrow) for count, narrow in count_ticks(first, last)),
        _chosen(chosen, place(chosen)),
        _bound(bound, scale.y(bound)),
        tag("svg", line, viewBox=f"0 0 100 {HEIGHT_PX}", width="100%", height=HEIGHT_PX, preserveAspectRatio="none"),
        join(_dot(count, curve[count], x, y, kept=count == chosen) for count, (x, y) in points.items()),
        height=HEIGHT_PX,
        role="img",
        aria_label=_spoken(curve, bound, chosen),
    )


def count_ticks(first: int, last: int) -> list[tuple[int, bool]]:
    """1, 2, 5, 10, 20 … within the span, and whether each has room on a phone."""
    powers = range(len(str(last)))
    ticks = [factor * 10**power for power in powers for factor in ROUND if first <= factor * 10**power <= last]
    return [(tick, len(ticks) <= 6 or str(tick)[0] == "1") for tick in ticks]


def _tick(count: int, x: float, *, narrow: bool) -> Html:
    anchor = "start" if x < 3 else "end" if x > 97 else "middle"
    kind = None if narrow else "wide"
    line = tag("line", class_=f"grid {kind or ''}".strip(), x1=percent(x), x2=percent(x), y1=TOP_PX, y2=TOP_PX + PLOT_PX)
    return tag("g", line, tag("text", str(count), class_=kind, x=percent(x), y=AXIS_Y, text_anchor=anchor), class_="axis")


def _chosen(chosen: int, x: float) -> Html:
    line = tag("line", x1=percent(x), x2=percent(x), y1=TOP_PX, y2=TOP_PX + PLOT_PX)
    anchor, shift = ("end", -6) if x > 60 else ("start", 6)
    label = tag("text", f"{chosen} chosen", x=percent(x), dx=shift, y=TOP_PX + PLOT_PX - 8, text_anchor=anchor)
    return tag("g", line, label, class_="rules")


def _bound(bound: float, y: float) -> Html:
    label = tag("text", f"redundant from {bound:.2f}", x=0, dx=6, y=y - 5)  # at the left, where the curve is low
    return tag("g", tag("line", x1=0, x2="100%", y1=y, y2=y), label, class_="threshold")


def _dot(count: int, value: float, x: float, y: float, *, kept: bool) -> Html:
    title = tag("title", f"With {plural(count, 'keyframe')}, the next to go has likeness {value:.3f}")
    shown = tag("circle", class_=f"dot {'kept' if kept else 'pruned'}", cx=percent(x), cy=y, r=4.5 if kept else 2.5)
    return tag("g", title, tag("circle", class_="hit", cx=percent(x), cy=y, r=9), shown)


def _spoken(curve: Mapping[int, float], bound: float, chosen: int) -> str:
    """The curve in a sentence, for those who cannot see it."""
    enough = next((count for count, value in curve.items() if value >= bound), None)
    first = f"first reaches the bound {bound:.2f} with {plural(enough, 'keyframe')}" if enough else f"stays below the bound {bound:.2f}"
    low, high = min(curve.values()), max(curve.values())
    return (
        f"Likeness of the next keyframe to go, from {min(curve)} to {plural(max(curve), 'keyframe')}:"
        f" {low:.2f} to {high:.2f}; it {first}; {chosen} were chosen."
    )
