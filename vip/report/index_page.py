"""What the index of a folder of runs looks like: one page that needs nothing else, with a filter and an order where scripts run.

In: a `RunIndex`. Out: the page in parts. Whatever is not `Html` gets escaped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from vip.html.format import plural, time_code, whole
from vip.html.layout import closing, opening, resource
from vip.html.markup import Html, join, tag
from vip.records import Failure
from vip.report.pictures import Jpeg, data_uri
from vip.store import FAILURES, REPORT

SCRIPT = "index.js"
MAX_FAILURES = 200
ORDERS = {"name": "Name", "length": "Longest first", "keyframes": "Most keyframes first", "failures": "Most failures first"}


@dataclass(frozen=True, slots=True)
class RunEntry:
    """What the page says of a run."""

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


@dataclass(frozen=True, slots=True)
class RunIndex:
    """The runs of a folder."""

    title: str
    runs: tuple[RunEntry, ...]
    unlisted: int
    """Further runs, for which the page has no room."""
    failures: tuple[Failure, ...]
    """Videos of which there is no run."""


def index_page(index: RunIndex) -> Iterator[Html]:
    """The page in parts: joined they are the file."""
    yield from opening(f"{index.title} · runs", resource("page.css") + resource("index.css"), script=SCRIPT)
    yield _header(index)
    yield _failures(index)
    yield _tools(index)
    yield from _runs(index)
    yield from closing(script=SCRIPT)


def _header(index: RunIndex) -> Html:
    facts = [tag("div", tag("dt", name), tag("dd", value)) for name, value in _facts(index) if value]
    notes = [tag("li", note) for note in _notes(index)]
    told = tag("ul", join(notes), class_="notes") if notes else ""
    return tag("header", tag("h1", tag("bdi", index.title)), tag("dl", join(facts), class_="facts"), told)


def _facts(index: RunIndex) -> list[tuple[str, str]]:
    lengths = [run.length_s for run in index.runs if run.length_s is not None]
    keyframes, described = sum(run.keyframes for run in index.runs), sum(run.described for run in index.runs)
    engines = ", ".join(dict.fromkeys(engine for run in index.runs for engine in run.engines))
    of = f" of {whole(keyframes)}" if described < keyframes else ""
    return [
        ("Runs", whole(len(index.runs))),
        ("Duration", time_code(sum(lengths), decimals=0) if lengths else ""),
        ("Keyframes", whole(keyframes)),
        ("Captions", f"{whole(described)}{of} by {engines}" if described else "none yet"),
    ]


def _notes(index: RunIndex) -> Iterator[str]:
    """What is missing on the page."""
    without_page = sum(not run.has_page for run in index.runs if not run.problem)
    if without_page:
        yield f"{plural(without_page, 'run has', 'runs have')} no page yet. vip report DIR writes all of them."
    if index.unlisted:
        yield f"The first {plural(len(index.runs), 'run')} by name; {plural(index.unlisted, 'more is', 'more are')} in the folder."


def _failures(index: RunIndex) -> Html:
    damaged = [tag("li", tag("b", tag("bdi", run.name)), " ", tag("bdi", run.problem)) for run in index.runs if run.problem]
    failed = [tag("li", tag("b", tag("bdi", failure.item)), " ", tag("bdi", failure.message)) for failure in index.failures]
    parts = []
    for rows, title, where in (
        (damaged, f"{plural(len(damaged), 'run')} cannot be shown", ""),
        (failed, f"{plural(len(failed), 'video')} failed", f" in {FAILURES}"),
    ):
        if rows:
            rest = len(rows) - MAX_FAILURES
            more = tag("p", f"and {rest} more{where}.", class_="hint") if rest > 0 else ""
            parts.append(tag("section", tag("h2", title), tag("ul", join(rows[:MAX_FAILURES])), more, class_="failures"))
    return join(parts)


def _tools(index: RunIndex) -> Html:
    """Shown by the script that they need."""
    if len(index.runs) < 2:
        return Html("")
    order = tag("select", *(tag("option", text, value=value) for value, text in ORDERS.items()), id="order")
    return tag(
        "form",
        tag("label", "Filter ", tag("input", type="search", id="filter", autocomplete="off")),
        tag("label", "Order ", order),
        tag("output", "", id="count"),
        class_="tools",
        hidden=True,
    )


def _runs(index: RunIndex) -> Iterator[Html]:
    most = max((len(run.pictures) for run in index.runs), default=0)
    yield Html(f'<ul class="runs with-{most}">')
    yield from (_run(run) for run in index.runs if not run.problem)
    yield Html("</ul>")


def _run(run: RunEntry) -> Html:
    address = f"{quote(os.fsencode(run.name))}/{REPORT}"
    title: Html = tag("bdi", run.title)
    strip = join(
        tag("img", src=data_uri(picture.data), width=picture.width_px, height=picture.height_px, alt="") for picture in run.pictures
    )
    if run.has_page:
        title = tag("a", title, href=address)
        strip = tag("a", strip, href=address, tabindex="-1", aria_hidden="true", class_="pictures") if strip else strip
    elif strip:
        strip = tag("span", strip, class_="pictures")
    words = [tag("h2", title), tag("p", " · ".join(_words(run)))]
    if run.failures:
        words.append(tag("p", f"{plural(run.failures, 'item')} failed", class_="bad"))
    return tag(
        "li",
        strip,
        tag("div", join(words)),
        data_length=run.length_s or 0.0,
        data_keyframes=run.keyframes,
        data_failures=run.failures,
    )


def _words(run: RunEntry) -> Iterator[str]:
    if run.title.rpartition(".")[0] != run.name.removesuffix(".vip"):
        yield f"{run.name}/"
    if run.length_s is not None:
        yield time_code(run.length_s)
    yield plural(run.keyframes, "keyframe")
    by = f"described by {', '.join(run.engines)}"
    yield "not described" if not run.described else by if run.described == run.keyframes else f"{run.described} {by}"
