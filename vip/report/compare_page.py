"""The page of a comparison: a table of figures, all choices on one time axis, and the pictures that each made.

In: a `Comparison`. Out: compare.html in its folder, which needs nothing else, like the report of a run.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath
from typing import NamedTuple

from markupsafe import Markup

from vip.html.axes import AxisSpan, evenly_spaced, time_axis
from vip.html.format import date, file_size, plural, time_code
from vip.html.layout import render_page, resource
from vip.html.markup import decimal, percent, tag
from vip.html.parts import Fact, FailureRow, failure_rows
from vip.records import Manifest
from vip.report.combinations import ComparedRun, Comparison
from vip.report.measures import COLUMNS, Column, best, extracted_span
from vip.report.pictures import ShownPicture, open_thumbnails, shrink_all
from vip.report.timeline import BAR_PX, TimelineKeyframe, keyframe_marks
from vip.store import KeyframePicture, replacing

MAX_PICTURES = 600
AXIS_PX = 20


def write_comparison(comparison: Comparison) -> Path:
    """Write compare.html into the folder of the comparison and return its path.

    Raises:
        StoreError: a file of a run is damaged, or the page cannot be written.
    """
    view = ComparisonView(comparison)
    style = resource("compare.css", "vip.report") + _css(view.aspect)
    text = render_page("vip.report", "compare.html.jinja", style=style, view=view)  # before the file is opened, as for a report
    with replacing(comparison.page) as file:
        file.write(text.encode())
    return comparison.page


def _css(aspect: float) -> str:
    """Return rules of numbers only: nothing from a run's texts gets here."""
    least_px = 140 if aspect > 0.85 else 100
    grid = f"grid-template-columns:repeat(auto-fill,minmax({least_px}px,1fr))"
    beside = f"@media (min-width:641px){{.pictures{{grid-template-columns:minmax(0,1fr) {least_px}px}}}}"
    return f".choice .strip{{{grid}}}.choice .frame{{aspect-ratio:{decimal(aspect)}}}{beside}"


class ComparedKeyframe(NamedTuple):
    """A keyframe of a choice; `place` counts the keyframes from 1."""

    place: int
    frame: KeyframePicture
    shown: ShownPicture | None

    @property
    def code(self) -> str:
        """Its time, or the file's name where it has none."""
        return self.frame.path.name if self.frame.time_s is None else time_code(self.frame.time_s)


class Cell(NamedTuple):
    """A figure of the table."""

    text: str
    is_best: bool
    is_reused: bool
    """An earlier command measured it."""


class MissedMoment(NamedTuple):
    """The frame that is least like any keyframe; without its thumbnail where no run has one."""

    code: str
    coverage: float
    thumbnail: bytes | None


@dataclass(frozen=True)
class ChoiceView:
    """A choice, and those of its keyframes that are on the page."""

    number: int
    choice: ComparedRun
    keyframes: tuple[ComparedKeyframe, ...]
    is_default: bool
    """`vip extract` with the same settings chooses so."""

    @property
    def name(self) -> str:
        return self.choice.combination.name

    @property
    def is_evenly_spaced(self) -> bool:
        return self.choice.combination.is_evenly_spaced

    @property
    def anchor(self) -> str:
        return f"c{self.number}"

    @property
    def options(self) -> str:
        """The options that choose so."""
        combination = self.choice.combination
        return f"--sampler {shlex.quote(combination.sampler)} --pruner {shlex.quote(combination.pruner)}"

    @property
    def folder(self) -> str:
        return shlex.quote(str(self.choice.run.folder))

    @property
    def pts(self) -> set[int | None]:
        return {frame.record.pts for frame in self.choice.run.keyframes}

    def bar(self, span: AxisSpan) -> Markup:
        """Return its keyframes on a bar, and the moment that it covers least."""
        keyframes = [
            TimelineKeyframe(place, frame.time_s, span.place(frame.time_s), None)
            for place, frame, _ in self.keyframes
            if frame.time_s is not None
        ]
        missed_s, dot = self.choice.measures.missed_time_s, Markup()
        if missed_s is not None:
            title = tag("title", f"Covered least: {time_code(missed_s)}")
            dot = tag("circle", title, class_="dot bad", cx=percent(span.place(missed_s)), cy=BAR_PX / 2, r=4.5)
        return tag(
            "svg",
            tag("rect", class_="track", y=0, width="100%", height=BAR_PX, rx=5),
            keyframe_marks(keyframes, anchor=f"{self.anchor}k"),
            dot,
            height=BAR_PX,
            role="group",
            aria_label=f"{self.name}: {plural(len(keyframes), 'keyframe')} from {time_code(span.start_s)} to {time_code(span.end_s)}",
        )


@dataclass(frozen=True)
class ComparisonView:
    """A comparison, and what compare.html.jinja shows of it."""

    comparison: Comparison
    column_meanings: tuple[Column, ...] = COLUMNS

    @cached_property
    def choices(self) -> list[ChoiceView]:
        done, settings = self.comparison.choices, self.comparison.settings
        limit = max(1, MAX_PICTURES // len(done))
        places = [evenly_spaced(len(choice.run.keyframes), limit) for choice in done]
        shown = iter(shrink_all([choice.run.keyframes[i] for choice, some in zip(done, places, strict=True) for i in some]))
        return [
            ChoiceView(
                number,
                choice,
                tuple(ComparedKeyframe(i + 1, choice.run.keyframes[i], next(shown)) for i in some),
                is_default=(choice.combination.sampler, choice.combination.pruner) == (settings.sampler, settings.pruner),
            )
            for number, (choice, some) in enumerate(zip(done, places, strict=True), 1)
        ]

    @property
    def manifest(self) -> Manifest | None:
        return self.comparison.choices[0].run.manifest

    @cached_property
    def span(self) -> AxisSpan | None:
        return AxisSpan.between(*extracted_span(self.manifest)) if self.manifest else None

    @property
    def title(self) -> str:
        return PurePath(self.manifest.video.path).name if self.manifest else self.comparison.folder.resolve().name

    @property
    def aspect(self) -> float:
        """Width over height of the pictures, within reason."""
        video = self.manifest.video if self.manifest else None
        return min(2.4, max(0.4, video.width_px / video.height_px)) if video else 16 / 9

    @property
    def facts(self) -> list[Fact]:
        """The figures at the top."""
        compared = Fact("Compared", plural(len(self.choices), "way of choosing", "ways of choosing"))
        if self.manifest is None:
            return [compared]
        video, settings = self.manifest.video, self.comparison.settings
        part = " of it" if settings.start is not None or settings.end is not None else ""
        return [
            compared,
            Fact("Keyframes asked", str(settings.keyframes)),
            Fact("Duration", f"{time_code(self.span.end_s - self.span.start_s)}{part}" if self.span else "unknown"),
            Fact("Picture", f"{video.width_px} × {video.height_px}"),
            Fact("File", f"{video.codec}, {file_size(video.size_bytes)}"),
            Fact("Cosines by", self.manifest.backends.get("embedder", "unknown")),
            Fact("Made", date(self.manifest.created_utc)),
        ]

    @property
    def failures(self) -> list[FailureRow]:
        return failure_rows(self.comparison.failures)

    @property
    def columns(self) -> list[list[Column]]:
        """The columns of the table, each with the minor ones that stand beneath it."""
        groups: list[list[Column]] = []
        for column in COLUMNS:
            if column.minor:
                groups[-1].append(column)
            else:
                groups.append([column])
        return groups

    def cell(self, choice: ChoiceView, column: Column) -> Cell:
        """Return a figure of a choice."""
        shown = column.shown(choice.choice.measures)
        return Cell(shown, choice.number - 1 in self._best[column.name], choice.choice.reused and column.name == "Seconds")

    @cached_property
    def _best(self) -> dict[str, set[int]]:
        measures = [choice.choice.measures for choice in self.choices]
        return {column.name: best(column, measures) for column in COLUMNS}

    @property
    def caveat(self) -> str:
        """A caveat for reading the table."""
        parts = ["The best value of each column is marked."] if len(self.choices) > 1 else []
        parts += [f"{choice.name} is evenly spaced frames, good or bad." for choice in self.choices if choice.is_evenly_spaced]
        if len({choice.choice.measures.keyframes for choice in self.choices}) > 1:
            parts.append("More keyframes cover more and are more redundant: compare rows that keep about as many.")
        if any(choice.choice.reused for choice in self.choices):
            parts.append("* Measured by an earlier command, whose keyframes are used again.")
        return " ".join(parts)

    @property
    def axis(self) -> Markup:
        return tag("svg", time_axis(self.span, y_px=AXIS_PX - 6), height=AXIS_PX, aria_hidden="true") if self.span else Markup()

    def shared(self, choice: ChoiceView) -> str:
        """Return how many of its frames the first choice has too."""
        first = self.choices[0]
        mine, its = choice.pts, first.pts
        if choice is first or not mine & its:
            return ""
        if mine == its:
            return f"The very frames of {first.name}."
        return f"{len(mine & its)} of {len(mine)} are frames of {first.name} too."

    def missed(self, choice: ChoiceView) -> MissedMoment | None:
        """Return the moment that a choice covers least."""
        measures = choice.choice.measures
        if measures.missed_time_s is None or measures.coverage_lowest is None:
            return None
        return MissedMoment(time_code(measures.missed_time_s), measures.coverage_lowest, self._thumbnail(measures.missed_time_s))

    def _thumbnail(self, time_s: float) -> bytes | None:
        """Return the thumbnail of a frame from the first run that analyzed it."""
        for choice in self.comparison.choices:
            for row in choice.run.candidates:
                if row.time_s == time_s:
                    with open_thumbnails(choice.run.folder) as thumbnails:
                        if data := thumbnails.read(row.index):
                            return data
        return None
