"""Chart of how many keyframes are enough: how like its neighbours the next one to be pruned is, over how many remain.

The axis of numbers is logarithmic: between 3 and 6 keyframes lies as much as between 100 and 200.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from markupsafe import Markup

from vip.html import charts
from vip.html.axes import text_anchor
from vip.html.charts import Chart, Scale
from vip.html.format import plural
from vip.html.markup import join, percent, tag
from vip.records import Pruning

ROUND = (1, 2, 5)
MOST_COUNT = 10_000_000
EXPLANATION = (
    "How like its neighbours the next keyframe to go is, at each number of keyframes. On and above the dashed line it shows what"
    " another shows; where the curve falls, something is lost that no other shows."
)


def pruning_chart(pruning: Pruning, chosen: int) -> Chart | None:
    """Return the curve with the chosen number marked and the bound dashed; None where there are fewer than two points."""
    curve = {count: value for count, value in sorted(pruning.curve.items()) if 0 < count <= MOST_COUNT and math.isfinite(value)}
    if len(curve) < 2 or chosen < 1:
        return None
    svg = _draw(curve, pruning.bound, chosen)
    return Chart("How many are enough", EXPLANATION, svg, "vip extract --from RUN -n N", "chooses another number from the same candidates.")


def _draw(curve: Mapping[int, float], bound: float, chosen: int) -> Markup:
    scale = Scale.enclosing(min(*curve.values(), bound), max(*curve.values(), bound))
    first, last = min(*curve, chosen), max(*curve, chosen)

    def place(count: int) -> float:
        """Return the percent of the width."""
        return 100 * math.log(count / first) / math.log(last / first)

    points = {count: (place(count), scale.y(value)) for count, value in curve.items()}
    return charts.draw(
        charts.value_axis(scale),
        join(_tick(count, place(count), fits_phone=fits_phone) for count, fits_phone in count_ticks(first, last)),
        _chosen_line(chosen, place(chosen)),
        _bound_line(bound, scale.y(bound)),
        charts.polyline(points.values()),
        join(_dot(count, curve[count], x, y, is_chosen=count == chosen) for count, (x, y) in points.items()),
        height_px=charts.HEIGHT_PX,
        label=_describe_curve(curve, bound, chosen),
    )


def count_ticks(first: int, last: int) -> list[tuple[int, bool]]:
    """Return 1, 2, 5, 10, 20 … within the span, and whether each has room on a phone."""
    powers = range(len(str(last)))
    ticks = [factor * 10**power for power in powers for factor in ROUND if first <= factor * 10**power <= last]
    return [(tick, len(ticks) <= 6 or str(tick)[0] == "1") for tick in ticks]


def _tick(count: int, x: float, *, fits_phone: bool) -> Markup:
    kind = None if fits_phone else "wide"
    label = tag("text", str(count), class_=kind, x=percent(x), y=charts.AXIS_Y, text_anchor=text_anchor(x))
    return tag("g", charts.vertical_line(x, "grid" if fits_phone else "grid wide"), label, class_="axis")


def _chosen_line(chosen: int, x: float) -> Markup:
    anchor, shift = ("end", -6) if x > 60 else ("start", 6)
    label = tag("text", f"{chosen} chosen", x=percent(x), dx=shift, y=charts.BOTTOM_PX - 8, text_anchor=anchor)
    return tag("g", charts.vertical_line(x), label, class_="rules")


def _bound_line(bound: float, y: float) -> Markup:
    label = tag("text", f"redundant from {bound:.2f}", x=0, dx=6, y=y - 5)  # at the left, where the curve is low
    return tag("g", charts.horizontal_line(y), label, class_="threshold")


def _dot(count: int, value: float, x: float, y: float, *, is_chosen: bool) -> Markup:
    label = f"With {plural(count, 'keyframe')}, the next to go has likeness {value:.3f}"
    return charts.dot(label, "kept" if is_chosen else "pruned", x, y, radius_px=4.5 if is_chosen else 2.5)


def _describe_curve(curve: Mapping[int, float], bound: float, chosen: int) -> str:
    """Return the curve in a sentence, for those who cannot see it."""
    enough = next((count for count, value in curve.items() if value >= bound), None)
    first = f"first reaches the bound {bound:.2f} with {plural(enough, 'keyframe')}" if enough else f"stays below the bound {bound:.2f}"
    low, high = min(curve.values()), max(curve.values())
    return (
        f"Likeness of the next keyframe to go, from {min(curve)} to {plural(max(curve), 'keyframe')}:"
        f" {low:.2f} to {high:.2f}; it {first}; {chosen} were chosen."
    )
