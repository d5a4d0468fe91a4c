"""Index of a folder of runs: one page that needs nothing else, with a filter and an order where scripts run.

In: a `RunIndex`. Out: the page.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

from vip.html.format import plural, time_code, whole_number
from vip.html.layout import render_page, resource
from vip.html.parts import Fact, FailureRow, failure_rows
from vip.html.pictures import Jpeg
from vip.records import Failure
from vip.store import FAILURES, REPORT

MAX_FAILURES = 200
ORDERS = {"name": "Name", "length": "Longest first", "keyframes": "Most keyframes first", "failures": "Most failures first"}


@dataclass(frozen=True, slots=True)
class RunEntry:
    """The entry of a run."""

    name: str
    """Of its folder."""
    title: str = ""
    """Name of its video."""
    length_s: float | None = None
    keyframes: int = 0
    described: int = 0
    engines: tuple[str, ...] = ()
    failures: int = 0
    pictures: tuple[Jpeg, ...] = ()
    has_page: bool = False
    """There is a report.html."""
    problem: str = ""
    """Why it cannot be shown; empty where it can."""

    @property
    def link(self) -> str:
        """The address of its report.html; empty where there is none."""
        return f"{quote(os.fsencode(self.name))}/{REPORT}" if self.has_page else ""

    @property
    def summary(self) -> str:
        """`video.vip/ · 1:02.4 · 12 keyframes · described by offline`; the folder only where it is not named like the video."""
        engines = f"described by {', '.join(self.engines)}"
        parts = [
            "" if self.title.rpartition(".")[0] == self.name.removesuffix(".vip") else f"{self.name}/",
            "" if self.length_s is None else time_code(self.length_s),
            plural(self.keyframes, "keyframe"),
            "not described" if not self.described else engines if self.described == self.keyframes else f"{self.described} {engines}",
        ]
        return " · ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class FailureList:
    """A section of failures: its first rows, and how many more there are."""

    title: str
    rows: list[FailureRow]
    hint: str


@dataclass(frozen=True, slots=True)
class RunIndex:
    """The runs of a folder, and what index.html.jinja shows of them."""

    title: str
    runs: tuple[RunEntry, ...]
    unlisted: int
    """Further runs, for which the page has no room."""
    failures: tuple[Failure, ...]
    """Videos of which there is no run."""

    @property
    def shown(self) -> list[RunEntry]:
        return [run for run in self.runs if not run.problem]

    @property
    def most_pictures(self) -> int:
        """The most pictures of a run."""
        return max((len(run.pictures) for run in self.runs), default=0)

    @property
    def facts(self) -> list[Fact]:
        """The figures at the top."""
        lengths = [run.length_s for run in self.runs if run.length_s is not None]
        keyframes, described = sum(run.keyframes for run in self.runs), sum(run.described for run in self.runs)
        engines = ", ".join(dict.fromkeys(engine for run in self.runs for engine in run.engines))
        of = f" of {whole_number(keyframes)}" if described < keyframes else ""
        return [
            Fact("Runs", whole_number(len(self.runs))),
            *([Fact("Duration", time_code(sum(lengths), decimals=0))] if lengths else []),
            Fact("Keyframes", whole_number(keyframes)),
            Fact("Captions", f"{whole_number(described)}{of} by {engines}" if described else "none yet"),
        ]

    @property
    def notes(self) -> list[str]:
        """Notes on what is missing on the page."""
        notes = []
        if without_page := sum(not run.has_page for run in self.shown):
            notes.append(f"{plural(without_page, 'run has', 'runs have')} no page yet. vip report DIR writes all of them.")
        if self.unlisted:
            listed = plural(len(self.runs), "run")
            notes.append(f"The first {listed} by name; {plural(self.unlisted, 'more is', 'more are')} in the folder.")
        return notes

    @property
    def failure_lists(self) -> list[FailureList]:
        """Runs that cannot be shown, and videos that failed."""
        damaged = [FailureRow(run.name, run.problem) for run in self.runs if run.problem]
        return [
            _failure_list(f"{plural(len(damaged), 'run')} cannot be shown", damaged, ""),
            _failure_list(f"{plural(len(self.failures), 'video')} failed", failure_rows(self.failures), f" in {FAILURES}"),
        ]


def index_page(index: RunIndex) -> str:
    """Return the page."""
    style, script = (resource(name, "vip.report") for name in ("index.css", "index.js"))
    return render_page("vip.report", "index.html.jinja", style=style, script=script, index=index, orders=ORDERS)


def _failure_list(title: str, rows: Iterable[FailureRow], where: str) -> FailureList:
    first = list(rows)
    rest = len(first) - MAX_FAILURES
    return FailureList(title, first[:MAX_FAILURES], f"and {rest} more{where}." if rest > 0 else "")
