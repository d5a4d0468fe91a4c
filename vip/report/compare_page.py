"""The page of a comparison: a table of figures, all choices on one time axis, and the pictures that each made.

In: a `Comparison`. Out: compare.html in its folder, which needs nothing else, like the report of a run.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath

from vip.html.axes import AxisSpan, evenly, time_axis
from vip.html.format import date, file_size, number, plural, time_code
from vip.html.layout import closing, opening, resource
from vip.html.markup import Html, decimal, join, percent, tag
from vip.records import Failure, Manifest
from vip.report.combinations import ComparedRun, Comparison
from vip.report.measures import COLUMNS, Column, best, stretch
from vip.report.pictures import ShownPicture, data_uri, img, missing, open_thumbnails, shrink_all
from vip.report.timeline import BAR_PX, Stop, marks
from vip.store import FAILURES, KEYFRAMES, KeyframePicture, replacing

MAX_PICTURES = 600
AXIS_PX = 20


def write_comparison(comparison: Comparison) -> Path:
    """Write compare.html into the folder of the comparison and return its path.

    Raises:
        StoreError: a file of a run is damaged, or the page cannot be written.
    """
    parts = list(page(comparison))  # all of it before the file is opened, as for a report
    with replacing(comparison.page) as file:
        file.writelines(part.encode() for part in parts)
    return comparison.page


@dataclass(frozen=True)
class Strip:
    """A choice and those of its keyframes that have a picture on the page."""

    number: int
    choice: ComparedRun
    frames: dict[int, KeyframePicture]
    """By their place among the keyframes, from 1."""
    shown: tuple[ShownPicture | None, ...]

    @property
    def name(self) -> str:
        return self.choice.combination.name

    @property
    def anchor(self) -> str:
        return f"c{self.number}"

    def stops(self, span: AxisSpan) -> list[Stop]:
        times_s = [(place, frame.time_s) for place, frame in self.frames.items() if frame.time_s is not None]
        return [Stop(place, time_s, span.place(time_s), None) for place, time_s in times_s]


@dataclass(frozen=True)
class Side:
    """A comparison, and what the parts of its page share."""

    comparison: Comparison

    @cached_property
    def strips(self) -> list[Strip]:
        limit = max(1, MAX_PICTURES // len(self.comparison.choices))
        frames = [{i + 1: choice.run.keyframes[i] for i in evenly(len(choice.run.keyframes), limit)} for choice in self.comparison.choices]
        shown = iter(shrink_all([frame for some in frames for frame in some.values()]))
        return [
            Strip(number, choice, some, tuple(next(shown) for _ in some))
            for number, (choice, some) in enumerate(zip(self.comparison.choices, frames, strict=True), 1)
        ]

    @property
    def manifest(self) -> Manifest | None:
        return self.comparison.choices[0].run.manifest

    @cached_property
    def span(self) -> AxisSpan | None:
        if self.manifest is None:
            return None
        start_s, end_s = stretch(self.manifest)
        return AxisSpan(start_s, end_s if end_s > start_s else start_s + 1.0)

    @property
    def title(self) -> str:
        return PurePath(self.manifest.video.path).name if self.manifest else self.comparison.folder.resolve().name

    @property
    def aspect(self) -> float:
        """Width over height of the pictures, within reason."""
        video = self.manifest.video if self.manifest else None
        return min(2.4, max(0.4, video.width_px / video.height_px)) if video else 16 / 9

    def is_default(self, choice: ComparedRun) -> bool:
        """Whether `vip extract` with the same settings chooses so."""
        settings, combination = self.comparison.settings, choice.combination
        return (combination.sampler, combination.pruner) == (settings.sampler, settings.pruner)


def page(comparison: Comparison) -> Iterator[Html]:
    """The page in parts: joined they are the file."""
    side = Side(comparison)
    yield from opening(f"{side.title} · comparison", f"{resource('page.css')}{resource('compare.css')}{_css(side)}")
    yield _header(side)
    yield _failures(comparison.failures)
    yield _figures(side)
    yield _lanes(side)
    for strip in side.strips:
        yield _choice(strip, side)
    yield from closing()


def _css(side: Side) -> str:
    """Rules of numbers only: nothing from a run's texts gets here."""
    least_px = 140 if side.aspect > 0.85 else 100
    grid = f"grid-template-columns:repeat(auto-fill,minmax({least_px}px,1fr))"
    beside = f"@media (min-width:641px){{.pictures{{grid-template-columns:minmax(0,1fr) {least_px}px}}}}"
    return f".choice .strip{{{grid}}}.choice .frame{{aspect-ratio:{decimal(side.aspect)}}}{beside}"


# ---------------------------------------------------------------- above the pictures


def _header(side: Side) -> Html:
    facts = [tag("div", tag("dt", name), tag("dd", value)) for name, value in _facts(side)]
    return tag("header", tag("h1", tag("bdi", side.title)), tag("dl", join(facts), class_="facts"))


def _facts(side: Side) -> list[tuple[str, str]]:
    compared = ("Compared", plural(len(side.strips), "way of choosing", "ways of choosing"))
    if side.manifest is None:
        return [compared]
    video, settings = side.manifest.video, side.comparison.settings
    part = " of it" if settings.start is not None or settings.end is not None else ""
    return [
        compared,
        ("Keyframes asked", str(settings.keyframes)),
        ("Duration", f"{time_code(side.span.end_s - side.span.start_s)}{part}" if side.span else "unknown"),
        ("Picture", f"{video.width_px} × {video.height_px}"),
        ("File", f"{video.codec}, {file_size(video.size_bytes)}"),
        ("Cosines by", side.manifest.backends.get("embedder", "unknown")),
        ("Made", date(side.manifest.created_utc)),
    ]


def _failures(failures: Sequence[Failure]) -> Html:
    if not failures:
        return Html("")
    rows = [tag("li", tag("b", tag("bdi", failure.item)), " ", tag("bdi", failure.message)) for failure in failures]
    title = tag("h2", f"{plural(len(failures), 'way', 'ways')} of choosing failed")
    return tag("section", title, tag("ul", join(rows)), tag("p", f"Also in {FAILURES}.", class_="hint"), class_="failures")


def _figures(side: Side) -> Html:
    """The table, and what its columns mean."""
    measures = [strip.choice.measures for strip in side.strips]
    tops = {column.name: best(column, measures) for column in COLUMNS}
    heads = [tag("th", column.name, *(tag("small", minor.name) for minor in minors), scope="col") for column, minors in _groups()]
    rows = [
        tag("tr", tag("th", tag("a", _name(strip), href=f"#{strip.anchor}"), scope="row"), join(_cells(strip, tops, i)))
        for i, strip in enumerate(side.strips)
    ]
    table = tag("table", tag("thead", tag("tr", tag("td"), join(heads))), tag("tbody", join(rows)))
    meanings = [tag("div", tag("dt", column.name), tag("dd", column.meaning)) for column in COLUMNS]
    return tag(
        "section",
        tag("h2", "Figures"),
        tag("div", table, class_="scroll", tabindex=0, role="region", aria_label="Figures"),
        tag("p", _caveat(side), class_="hint"),
        tag("dl", join(meanings), class_="meanings"),
        class_="figures",
    )


def _groups() -> list[tuple[Column, list[Column]]]:
    """The columns with the minor ones beneath them."""
    groups: list[tuple[Column, list[Column]]] = []
    for column in COLUMNS:
        if column.minor:
            groups[-1][1].append(column)
        else:
            groups.append((column, []))
    return groups


def _cells(strip: Strip, tops: dict[str, set[int]], row: int) -> Iterator[Html]:
    measures = strip.choice.measures

    def value(column: Column) -> Html:
        shown = column.shown(measures)
        star = tag("i", "*", class_="star") if column.name == "Seconds" and strip.choice.reused else ""
        return tag("b", shown, star, class_="best", title="best of this column") if row in tops[column.name] else tag("span", shown, star)

    for column, minors in _groups():
        yield tag("td", value(column), *(tag("small", value(minor)) for minor in minors))


def _caveat(side: Side) -> str:
    parts = ["The best value of each column is marked."] if len(side.strips) > 1 else []
    if len({strip.choice.measures.keyframes for strip in side.strips}) > 1:
        parts.append("More keyframes cover more and are more redundant: compare rows that keep about as many.")
    if any(strip.choice.reused for strip in side.strips):
        parts.append("* Measured by an earlier command, whose keyframes are used again.")
    return " ".join(parts)


def _name(strip: Strip) -> Html:
    """The line may break behind the plus sign."""
    return tag("bdi", strip.choice.combination.sampler, "+", tag("wbr"), strip.choice.combination.pruner)


def _lanes(side: Side) -> Html:
    """A bar for each choice, all on the same time axis."""
    span = side.span
    if span is None:
        return Html("")
    lanes = [tag("div", tag("a", _name(strip), href=f"#{strip.anchor}"), _bar(strip, span), class_="plot lane") for strip in side.strips]
    axis = tag("svg", time_axis(span, y_px=AXIS_PX - 6), height=AXIS_PX, aria_hidden="true")
    keys = [("key mark", "keyframe"), ("key dot bad", "moment that is covered least")]
    legend = tag("p", join(tag("span", tag("i", class_=kind), text) for kind, text in keys), class_="legend")
    return tag(
        "section", tag("h2", "When"), join(lanes), tag("div", tag("span"), axis, class_="plot lane"), legend, class_="timeline lanes"
    )


def _bar(strip: Strip, span: AxisSpan) -> Html:
    stops, missed_s = strip.stops(span), strip.choice.measures.missed_time_s
    dot = Html("")
    if missed_s is not None:
        title = tag("title", f"Covered least: {time_code(missed_s)}")
        dot = tag("circle", title, class_="dot bad", cx=percent(span.place(missed_s)), cy=BAR_PX / 2, r=4.5)
    return tag(
        "svg",
        tag("rect", class_="track", y=0, width="100%", height=BAR_PX, rx=5),
        marks(stops, anchor=f"{strip.anchor}k"),
        dot,
        height=BAR_PX,
        role="group",
        aria_label=f"{strip.name}: {plural(len(stops), 'keyframe')} from {time_code(span.start_s)} to {time_code(span.end_s)}",
    )


# ---------------------------------------------------------------- the pictures


def _choice(strip: Strip, side: Side) -> Html:
    """What one combination chose, how to have it again, and the moment it misses most."""
    tiles = [_tile(strip, place, frame, shown) for (place, frame), shown in zip(strip.frames.items(), strip.shown, strict=True)]
    total = len(strip.choice.run.keyframes)
    rest = f"{len(strip.frames)} of {total} are shown, evenly chosen; all are in {KEYFRAMES}." if len(strip.frames) < total else ""
    return tag(
        "section",
        tag("h2", _name(strip), tag("small", "what vip extract does") if side.is_default(strip.choice) else ""),
        _how(strip, side),
        tag("p", rest, class_="hint") if rest else "",
        tag("ul", join(tag("li", note, dir="auto") for note in strip.choice.run.notes), class_="told") if strip.choice.run.notes else "",
        tag("div", tag("ul", join(tiles), class_="strip"), _missed(strip, side), class_="pictures"),
        id=strip.anchor,
        class_="choice",
    )


def _how(strip: Strip, side: Side) -> Html:
    """The options that choose so, where the run lies, and how many of the frames the first combination chose too."""
    combination, first = strip.choice.combination, side.strips[0]
    options = f"--sampler {shlex.quote(combination.sampler)} --pruner {shlex.quote(combination.pruner)}"
    text = join(["Chosen by ", tag("code", options), ", kept in ", tag("code", shlex.quote(str(strip.choice.run.folder))), "."])
    mine, its = ({frame.record.pts for frame in one.choice.run.keyframes} for one in (strip, first))
    if strip is first or not mine & its:
        shared = ""
    elif mine == its:
        shared = f" The very frames of {first.name}."
    else:
        shared = f" {len(mine & its)} of {len(mine)} are frames of {first.name} too."
    return tag("p", text, shared, class_="hint")


def _tile(strip: Strip, place: int, frame: KeyframePicture, shown: ShownPicture | None) -> Html:
    code = frame.path.name if frame.time_s is None else time_code(frame.time_s)
    title = f"{strip.name} · {code} · {place} of {len(strip.choice.run.keyframes)}"
    picture = img(shown.card if shown else None, f"{strip.name}, keyframe {place} at {code}")
    sharpness = tag("span", number(frame.record.quality.sharpness), class_="rule", title="sharpness")
    return tag(
        "li",
        tag("span", picture, class_="frame picture", data_title=title),
        tag("span", tag("b", code, class_="code"), " ", sharpness, class_="line"),
        id=f"{strip.anchor}k{place}",
        class_="card",
    )


def _missed(strip: Strip, side: Side) -> Html:
    """The frame that is least like any keyframe, small; its time where no run has a thumbnail of it."""
    measures = strip.choice.measures
    if measures.missed_time_s is None or measures.coverage_lowest is None:
        return Html("")
    code, data = time_code(measures.missed_time_s), _thumbnail(side, measures.missed_time_s)
    picture = tag("img", src=data_uri(data), alt=f"Frame at {code}", loading="lazy") if data else missing("no thumbnail")
    words = [tag("b", code, class_="code"), tag("span", f"covered least, {measures.coverage_lowest:.2f}", class_="rule bad")]
    return tag("div", tag("span", picture, class_="frame"), tag("span", join(words), class_="words"), class_="missed")


def _thumbnail(side: Side, time_s: float) -> bytes | None:
    """From the first run that looked at this frame."""
    for choice in side.comparison.choices:
        for row in choice.run.candidates:
            if row.time_s == time_s:
                with open_thumbnails(choice.run.folder) as thumbnails:
                    if data := thumbnails.read(row.index):
                        return data
    return None
