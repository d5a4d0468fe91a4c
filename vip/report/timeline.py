"""The keyframes on a bar as long as the video: thumbnails above, a link at each true time, dropped candidates as ticks below.

Thumbnails are pushed apart as little as needed and tied to their time by a line. There is one arrangement for a desktop and
one, with fewer of them, for a phone; positions of thumbnails are CSS rules, because the page's policy allows no style attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from vip.html.axes import AxisSpan, evenly_spaced, spread, time_axis
from vip.html.format import GOOD_ENOUGH, RULES, plural, time_code
from vip.html.markup import decimal, join, percent, tag
from vip.records import Candidate
from vip.report.pictures import ShownPicture

BAR_Y, BAR_PX = 0, 26
TICKS_Y, TICKS_PX = 31, 9
AXIS_Y = 62
HEIGHT_PX = 68
LEAST_WIDE_PX, LEAST_NARROW_PX = 790, 290  # of the two arrangements: their time codes must not overlap
CROWD = 60  # keyframes from which their marks are thin
TICK_STEP_PERCENT = 0.2  # closer ticks of one kind are one tick on any screen


@dataclass(frozen=True, slots=True)
class TimelineKeyframe:
    """A keyframe on the timeline."""

    number: int
    time_s: float
    place: float
    """Percent of the width."""
    shown: ShownPicture | None

    @property
    def code(self) -> str:
        return time_code(self.time_s)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The keyframes with a thumbnail, and the middle of each, in percent of the width."""

    width: float
    middles: dict[int, float]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The keyframes with a thumbnail, the drawings, what their colours mean, and the CSS rules that place the thumbnails."""

    thumbnails: tuple[TimelineKeyframe, ...]
    ties: Markup
    bar: Markup
    legend: tuple[tuple[str, str], ...]
    css: str


def draw_timeline(span: AxisSpan, keyframes: Sequence[TimelineKeyframe], candidates: Sequence[Candidate]) -> Timeline:
    """Draw the keyframes, which come in time order, and the dropped candidates, of which there may be none."""
    aspect = _aspect(keyframes)
    label_px = 7 * max((len(keyframe.code) for keyframe in keyframes), default=0) + 4
    wide = _arrange(keyframes, least=100 * label_px / LEAST_WIDE_PX, most=9.5 if aspect > 0.8 else 6)
    narrow = _arrange(keyframes, least=100 * label_px / LEAST_NARROW_PX, most=24)
    with_thumbnail = tuple(keyframe for keyframe in keyframes if keyframe.number in wide.middles or keyframe.number in narrow.middles)
    dropped = [candidate for candidate in candidates if not candidate.decision.kept]
    return Timeline(
        with_thumbnail,
        _draw_ties(keyframes, wide, "of-wide") + _draw_ties(keyframes, narrow, "of-narrow"),
        _bar(span, keyframes, dropped),
        tuple(_legend(keyframes, dropped)),
        _css(with_thumbnail, wide, narrow, aspect),
    )


def _aspect(keyframes: Sequence[TimelineKeyframe]) -> float:
    """Return width over height of the thumbnails: that of the first picture, within reason."""
    for keyframe in keyframes:
        if keyframe.shown:
            return min(2.4, max(0.5625, keyframe.shown.thumbnail.width_px / keyframe.shown.thumbnail.height_px))
    return 16 / 9


def _arrange(keyframes: Sequence[TimelineKeyframe], *, least: float, most: float) -> Arrangement:
    """Return thumbnails between `least` and `most` percent wide, as many as fit."""
    pitch = max(least, min(most, 100 / max(1, len(keyframes))))
    chosen = [keyframes[i] for i in evenly_spaced(len(keyframes), int(100 / pitch + 1e-9))]
    width = pitch * 0.92
    middles = spread([keyframe.place for keyframe in chosen], gap=pitch, low=width / 2, high=100 - width / 2)
    return Arrangement(width, {keyframe.number: middle for keyframe, middle in zip(chosen, middles, strict=True)})


def _css(keyframes: Sequence[TimelineKeyframe], wide: Arrangement, narrow: Arrangement, aspect: float) -> str:
    """Return rules of numbers only: nothing from the run's texts gets here."""

    def rules(arrangement: Arrangement) -> str:
        places = "".join(
            f"#t{keyframe.number}{{display:block;left:{percent(arrangement.middles[keyframe.number])}}}"
            if keyframe.number in arrangement.middles
            else f"#t{keyframe.number}{{display:none}}"
            for keyframe in keyframes
        )
        ratio = arrangement.width / aspect  # height in percent of the width
        return f".thumbs{{padding-bottom:calc({percent(ratio)} + 20px)}}.thumbs a{{width:{percent(arrangement.width)}}}{places}"

    shape = f".thumbs .frame{{aspect-ratio:{decimal(aspect)}}}"
    return f"{shape}{rules(wide)}@media (max-width:860px){{{rules(narrow)}}}"


def _draw_ties(keyframes: Sequence[TimelineKeyframe], arrangement: Arrangement, kind: str) -> Markup:
    lines = [
        tag("line", x1=percent(arrangement.middles[keyframe.number]), y1=0, x2=percent(keyframe.place), y2="100%")
        for keyframe in keyframes
        if keyframe.number in arrangement.middles
    ]
    return tag("svg", join(lines), class_=f"ties {kind}", height=18, aria_hidden="true")


def _bar(span: AxisSpan, keyframes: Sequence[TimelineKeyframe], dropped: Sequence[Candidate]) -> Markup:
    return tag(
        "svg",
        tag("rect", class_="track", y=BAR_Y, width="100%", height=BAR_PX, rx=5),
        keyframe_marks(keyframes),
        _ticks(span, dropped),
        time_axis(span, y_px=AXIS_Y),
        height=HEIGHT_PX,
        role="group",
        aria_label=f"{plural(len(keyframes), 'keyframe')} on a timeline from {time_code(span.start_s)} to {time_code(span.end_s)}",
    )


def keyframe_marks(keyframes: Sequence[TimelineKeyframe], *, anchor: str = "k") -> Markup:
    """Return a mark at each true time; a click anywhere on the bar leads to the nearest keyframe, the element `anchor` and its number."""
    half = 2 if len(keyframes) <= CROWD else 1
    edges = [0.0, *((a.place + b.place) / 2 for a, b in pairwise(keyframes)), 100.0]
    return join(
        tag(
            "a",
            tag("title", f"Keyframe {keyframe.number} at {keyframe.code}"),
            tag("rect", class_="hit", x=percent(left), y=BAR_Y, width=percent(max(0.0, right - left)), height=BAR_PX),
            tag(
                "rect",
                class_="mark",
                x=percent(keyframe.place),
                y=BAR_Y,
                width=2 * half,
                height=BAR_PX,
                rx=half,
                transform=f"translate({-half} 0)",
            ),
            href=f"#{anchor}{keyframe.number}",
            aria_label=f"Keyframe {keyframe.number} at {keyframe.code}",
        )
        for keyframe, (left, right) in zip(keyframes, pairwise(edges), strict=True)
    )


def _ticks(span: AxisSpan, dropped: Sequence[Candidate]) -> Markup:
    drawn: dict[tuple[bool, int], Markup] = {}
    for candidate in dropped:
        place, rule = span.place(candidate.time_s), candidate.decision.rule
        key = rule in GOOD_ENOUGH, round(place / TICK_STEP_PERCENT)
        if key not in drawn:
            title = tag("title", f"{time_code(candidate.time_s)} {RULES[rule][0]}")
            kind = "tick" if rule in GOOD_ENOUGH else "tick bad"
            drawn[key] = tag("rect", title, class_=kind, x=percent(place), y=TICKS_Y, width=2, height=TICKS_PX, transform="translate(-1 0)")
    return join(drawn.values())


def _legend(keyframes: Sequence[TimelineKeyframe], dropped: Sequence[Candidate]) -> Iterator[tuple[str, str]]:
    bad = sum(candidate.decision.rule not in GOOD_ENOUGH for candidate in dropped)
    yield "mark", plural(len(keyframes), "keyframe")
    if alike := len(dropped) - bad:
        why = "less relevant" if any(candidate.relevance is not None for candidate in dropped) else "too alike"
        yield "tick", f"{alike} dropped as {why}"
    if bad:
        yield "tick bad", plural(bad, "bad candidate")
