"""The keyframes on a bar as long as the video: thumbnails above, a link at each true time, dropped candidates as ticks below.

Thumbnails are pushed apart as little as needed and tied to their time by a line. There is one arrangement for a desktop and
one, with fewer of them, for a phone; positions of thumbnails are CSS rules, because the page's policy allows no style attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from vip.html.axes import AxisSpan, evenly, spread, time_axis
from vip.html.format import GOOD_ENOUGH, RULES, plural, time_code
from vip.html.markup import Html, decimal, join, percent, tag
from vip.records import Candidate
from vip.report.pictures import ShownPicture, data_uri

BAR_Y, BAR_PX = 0, 26
TICKS_Y, TICKS_PX = 31, 9
AXIS_Y = 62
HEIGHT_PX = 68
LEAST_WIDE_PX, LEAST_NARROW_PX = 790, 290  # of the two arrangements: their time codes must not overlap
CROWD = 60  # keyframes from which their marks are thin
TICK_STEP_PERCENT = 0.2  # closer ticks of one kind are one tick on any screen


@dataclass(frozen=True, slots=True)
class Stop:
    """A keyframe on the timeline."""

    number: int
    time_s: float
    place: float
    """Percent of the width."""
    shown: ShownPicture | None


@dataclass(frozen=True, slots=True)
class Layout:
    """Which keyframes have a thumbnail, and the middle of each, in percent of the width."""

    width: float
    middles: dict[int, float]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The drawing and the CSS rules that it needs."""

    html: Html
    css: str


def timeline(span: AxisSpan, stops: Sequence[Stop], candidates: Sequence[Candidate]) -> Timeline:
    """`stops` in time order; `candidates` may be empty."""
    aspect = _aspect(stops)
    label_px = 7 * max((len(time_code(stop.time_s)) for stop in stops), default=0) + 4
    wide = _layout(stops, least=100 * label_px / LEAST_WIDE_PX, most=9.5 if aspect > 0.8 else 6)
    narrow = _layout(stops, least=100 * label_px / LEAST_NARROW_PX, most=24)
    with_thumbnail = [stop for stop in stops if stop.number in wide.middles or stop.number in narrow.middles]
    dropped = [candidate for candidate in candidates if not candidate.decision.kept]
    html = tag(
        "section",
        tag("h2", "Timeline"),
        tag(
            "div",
            tag("div", join(_thumbnail(stop) for stop in with_thumbnail), class_="thumbs", aria_hidden="true"),
            _ties(stops, wide, "of-wide"),
            _ties(stops, narrow, "of-narrow"),
            _bar(span, stops, dropped),
            class_="plot",
        ),
        _legend(stops, dropped),
        class_="timeline",
    )
    return Timeline(html, _css(with_thumbnail, wide, narrow, aspect))


def _aspect(stops: Sequence[Stop]) -> float:
    """Width over height of the thumbnails: that of the first picture, within reason."""
    for stop in stops:
        if stop.shown:
            return min(2.4, max(0.5625, stop.shown.thumbnail.width_px / stop.shown.thumbnail.height_px))
    return 16 / 9


def _layout(stops: Sequence[Stop], *, least: float, most: float) -> Layout:
    """Thumbnails between `least` and `most` percent wide, as many as fit."""
    pitch = max(least, min(most, 100 / max(1, len(stops))))
    chosen = [stops[i] for i in evenly(len(stops), int(100 / pitch + 1e-9))]
    width = pitch * 0.92
    middles = spread([stop.place for stop in chosen], gap=pitch, low=width / 2, high=100 - width / 2)
    return Layout(width, {stop.number: middle for stop, middle in zip(chosen, middles, strict=True)})


def _css(stops: Sequence[Stop], wide: Layout, narrow: Layout, aspect: float) -> str:
    """Rules of numbers only: nothing from the run's texts gets here."""

    def rules(layout: Layout) -> str:
        places = "".join(
            f"#t{stop.number}{{display:block;left:{percent(layout.middles[stop.number])}}}"
            if stop.number in layout.middles
            else f"#t{stop.number}{{display:none}}"
            for stop in stops
        )
        ratio = layout.width / aspect  # height in percent of the width
        return f".thumbs{{padding-bottom:calc({percent(ratio)} + 20px)}}.thumbs a{{width:{percent(layout.width)}}}{places}"

    shape = f".thumbs .frame{{aspect-ratio:{decimal(aspect)}}}"
    return f"{shape}{rules(wide)}@media (max-width:860px){{{rules(narrow)}}}"


def _thumbnail(stop: Stop) -> Html:
    """Not reachable by keyboard and hidden from screen readers: the bar's links say the same, for every keyframe."""
    picture = tag("img", src=data_uri(stop.shown.thumbnail.data), alt="") if stop.shown else ""
    code = time_code(stop.time_s)
    frame = tag("span", picture, class_="frame")
    return tag("a", frame, tag("span", code, class_="code"), id=f"t{stop.number}", href=f"#k{stop.number}", tabindex=-1)


def _ties(stops: Sequence[Stop], layout: Layout, kind: str) -> Html:
    lines = [
        tag("line", x1=percent(layout.middles[stop.number]), y1=0, x2=percent(stop.place), y2="100%")
        for stop in stops
        if stop.number in layout.middles
    ]
    return tag("svg", join(lines), class_=f"ties {kind}", height=18, aria_hidden="true")


def _bar(span: AxisSpan, stops: Sequence[Stop], dropped: Sequence[Candidate]) -> Html:
    return tag(
        "svg",
        tag("rect", class_="track", y=BAR_Y, width="100%", height=BAR_PX, rx=5),
        marks(stops),
        _ticks(span, dropped),
        time_axis(span, y_px=AXIS_Y),
        height=HEIGHT_PX,
        role="group",
        aria_label=f"{plural(len(stops), 'keyframe')} on a timeline from {time_code(span.start_s)} to {time_code(span.end_s)}",
    )


def marks(stops: Sequence[Stop], *, anchor: str = "k") -> Html:
    """A mark at each true time; a click anywhere on the bar goes to the nearest keyframe, the element `anchor` and its number."""
    half = 2 if len(stops) <= CROWD else 1
    edges = [0.0, *((a.place + b.place) / 2 for a, b in pairwise(stops)), 100.0]
    return join(
        tag(
            "a",
            tag("title", f"Keyframe {stop.number} at {time_code(stop.time_s)}"),
            tag("rect", class_="hit", x=percent(left), y=BAR_Y, width=percent(max(0.0, right - left)), height=BAR_PX),
            tag(
                "rect",
                class_="mark",
                x=percent(stop.place),
                y=BAR_Y,
                width=2 * half,
                height=BAR_PX,
                rx=half,
                transform=f"translate({-half} 0)",
            ),
            href=f"#{anchor}{stop.number}",
            aria_label=f"Keyframe {stop.number} at {time_code(stop.time_s)}",
        )
        for stop, (left, right) in zip(stops, pairwise(edges), strict=True)
    )


def _ticks(span: AxisSpan, dropped: Sequence[Candidate]) -> Html:
    drawn: dict[tuple[bool, int], Html] = {}
    for candidate in dropped:
        place, rule = span.place(candidate.time_s), candidate.decision.rule
        kind = rule in GOOD_ENOUGH
        drawn.setdefault(
            (kind, round(place / TICK_STEP_PERCENT)),
            tag(
                "rect",
                tag("title", f"{time_code(candidate.time_s)} {_name(candidate)}"),
                class_="tick" if kind else "tick bad",
                x=percent(place),
                y=TICKS_Y,
                width=2,
                height=TICKS_PX,
                transform="translate(-1 0)",
            ),
        )
    return join(drawn.values())


def _name(candidate: Candidate) -> str:
    return RULES[candidate.decision.rule][0] if candidate.decision.rule in RULES else candidate.decision.rule


def _legend(stops: Sequence[Stop], dropped: Sequence[Candidate]) -> Html:
    bad = sum(candidate.decision.rule not in GOOD_ENOUGH for candidate in dropped)
    entries = [("key mark", plural(len(stops), "keyframe"))]
    if alike := len(dropped) - bad:
        why = "less relevant" if any(candidate.relevance is not None for candidate in dropped) else "too alike"
        entries.append(("key tick", f"{alike} dropped as {why}"))
    if bad:
        entries.append(("key tick bad", plural(bad, "bad candidate")))
    return tag("p", join(tag("span", tag("i", class_=kind), text) for kind, text in entries), class_="legend")
