"""The report: one self-contained page that a person likes to look at.

In: a run folder (or any folder of pictures with keyframes.jsonl). Out: report.html beside them, which loads nothing from
anywhere, can be read without JavaScript, and stays at a few MB: pictures are scaled down and long lists shortened, saying so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath

from vip.caption_length import tokens_in
from vip.errors import StoreError
from vip.html.axes import AxisSpan, evenly, span_of
from vip.html.format import date, file_size, plural, time_code
from vip.html.layout import closing, opening, resource
from vip.html.markup import Html, join, tag
from vip.records import NOT_DETERMINED, Candidate, Description, Embeddings, Famous, Keyframe
from vip.report.cards import KeyframeCard, article, failures_by_keyframe
from vip.report.checks import silent_fields
from vip.report.curves import figure, legend, sharpness_curve, similarity_curve
from vip.report.dropped import dropped
from vip.report.pictures import ShownPicture, open_thumbnails, shrink_all
from vip.report.provenance import provenance
from vip.report.pruning import pruning_figure
from vip.report.timeline import Stop, Timeline, timeline
from vip.report.video_link import VideoLink, video_link
from vip.store import CANDIDATES, EMBEDDINGS, FAILURES, KEYFRAMES, REPORT, KeyframePicture, Run, in_use, replacing

MAX_CARDS = 600
MAX_FAILURES = 200
MEASURING_ENGINE = "offline"  # vip's own: it says what was measured, and cannot see


def write_report(run: Run) -> Path:
    """Write report.html into the run folder and return its path.

    Raises:
        StoreError: a file of the folder is damaged, or the page cannot be written.
    """
    path = run.folder / REPORT
    parts = list(page(Report(run)))  # all of it before the file is opened: a damaged run leaves nothing behind
    with ExitStack() as stack:
        with suppress(StoreError):  # whoever works in the folder has swept it already
            stack.enter_context(in_use(run.folder))
        file = stack.enter_context(replacing(path))
        file.writelines(part.encode() for part in parts)
    return path


@dataclass(frozen=True)
class Report:
    """A run, and what the parts of the page share."""

    run: Run

    @cached_property
    def candidates(self) -> list[Candidate]:
        """Empty in a folder of pictures that vip did not extract."""
        return self.run.candidates if (self.run.folder / CANDIDATES).exists() else []

    @cached_property
    def numbers(self) -> list[int]:
        """Places in the list of keyframes of those that have a card: all of them, but in huge runs."""
        return evenly(len(self.run.keyframes), MAX_CARDS)

    @cached_property
    def keyframes(self) -> list[KeyframePicture]:
        return [self.run.keyframes[i] for i in self.numbers]

    @cached_property
    def shown(self) -> list[ShownPicture | None]:
        return shrink_all(self.keyframes)

    @cached_property
    def span(self) -> AxisSpan | None:
        times_s = [frame.time_s for frame in self.run.keyframes if frame.time_s is not None]
        return span_of(self.run.manifest.video if self.run.manifest else None, [*times_s, *(row.time_s for row in self.candidates)])

    @cached_property
    def chosen(self) -> list[Candidate | None]:
        """The candidates that the keyframes were, where that is known."""
        by_index = {row.index: row for row in self.candidates}
        return [None if frame.record.candidate is None else by_index.get(frame.record.candidate) for frame in self.keyframes]

    @cached_property
    def why(self) -> str:
        """The reason for which every keyframe was kept; empty where they differ."""
        reasons = {candidate.decision.reason if candidate else "" for candidate in self.chosen}
        return reasons.pop() if len(reasons) == 1 else ""

    @cached_property
    def descriptions(self) -> list[Description]:
        return self.run.descriptions

    @cached_property
    def undetermined(self) -> tuple[str, ...]:
        """Fields of FAMOuS that no description determines."""
        silent = [silent_fields(row) for row in self.descriptions]
        return tuple(name for name in silent[0] if all(name in names for names in silent)) if silent else ()

    @cached_property
    def is_measured(self) -> bool:
        """Every description says what was measured, and nothing that would have to be seen."""
        return {row.engine for row in self.descriptions} == {MEASURING_ENGINE}

    @cached_property
    def cards(self) -> list[KeyframeCard]:
        descriptions = {row.keyframe_id: row for row in self.descriptions}
        failures = failures_by_keyframe([frame.record for frame in self.keyframes], self.run.failures)
        told = tuple(Famous.model_fields) if self.is_measured else self.undetermined
        return [
            KeyframeCard(
                number=i + 1,
                of=len(self.run.keyframes),
                keyframe=frame.record,
                shown=shown,
                description=descriptions.get(frame.id),
                failure=failures.get(frame.id),
                candidate=candidate,
                size=self.size_of(frame.record),
                why=candidate.decision.reason if candidate and not self.why else "",
                watch=self.link.at(frame.time_s) if self.link and frame.time_s is not None else "",
                told=told,
            )
            for i, frame, shown, candidate in zip(self.numbers, self.keyframes, self.shown, self.chosen, strict=True)
        ]

    def size_of(self, keyframe: Keyframe) -> str:
        """Only where it is not the video's, which stands at the top."""
        size, video = (keyframe.width_px, keyframe.height_px), self.run.manifest.video if self.run.manifest else None
        return "" if video and size == (video.width_px, video.height_px) else f"{size[0]} × {size[1]}"

    @cached_property
    def timeline(self) -> Timeline:
        stops = [
            Stop(card.number, card.keyframe.time_s, self.span.place(card.keyframe.time_s), card.shown)
            for card in self.cards
            if self.span is not None and card.keyframe.time_s is not None
        ]
        if self.span is None or not stops:
            return Timeline(Html(""), "")
        return timeline(self.span, sorted(stops, key=lambda stop: stop.time_s), self.candidates)

    @cached_property
    def link(self) -> VideoLink | None:
        return video_link(self.run)

    @property
    def portrait(self) -> bool:
        """Most pictures are higher than wide."""
        return 2 * sum(frame.record.width_px < frame.record.height_px for frame in self.keyframes) > len(self.keyframes)

    @property
    def title(self) -> str:
        manifest = self.run.manifest
        return PurePath(manifest.video.path).name if manifest else self.run.folder.resolve().name


def page(report: Report) -> Iterator[Html]:
    """The page in parts: joined they are the file."""
    yield from opening(f"{report.title} · keyframes", resource("page.css") + report.timeline.css)
    yield _header(report)
    yield _failures(report)
    yield report.timeline.html
    yield from _keyframes(report)
    yield _curves(report)
    with open_thumbnails(report.run.folder) as thumbnails:
        yield dropped(report.candidates, thumbnails, portrait=report.portrait)
    yield provenance(report.run.manifest, report.descriptions)
    yield from closing()


# ---------------------------------------------------------------- sections


def _header(report: Report) -> Html:
    facts = [tag("div", tag("dt", name), tag("dd", value)) for name, value in _facts(report) if value]
    notes = tag("ul", join(tag("li", note, dir="auto") for note in report.run.notes), class_="notes") if report.run.notes else ""
    return tag("header", tag("h1", tag("bdi", report.title)), tag("dl", join(facts), class_="facts"), notes)


def _facts(report: Report) -> list[tuple[str, Html]]:
    manifest, span = report.run.manifest, report.span
    facts: list[tuple[str, Html]] = []
    if manifest:
        video = manifest.video
        rate = f", {float(video.frame_rate):.4g} fps" if video.frame_rate else ""
        facts = [
            ("Duration", _fact(time_code(span.end_s - span.start_s) if span else "unknown")),
            ("Picture", _fact(f"{video.width_px} × {video.height_px}{rate}")),
            ("File", _fact(f"{video.codec}, {file_size(video.size_bytes)}")),
        ]
        if query := manifest.settings.get("query"):
            facts.append(("Asked for", _fact(f"“{query}”")))
    facts += [("Keyframes" if manifest else "Pictures", _fact(_counts(report))), ("Captions", _captions(report))]
    return [*facts, ("Made", _fact(date(manifest.created_utc)))] if manifest else facts


def _fact(text: str, hint: str = "") -> Html:
    return join([text, tag("small", hint)] if hint else [text])


def _counts(report: Report) -> str:
    kept, counts = len(report.run.keyframes), report.run.manifest.counts if report.run.manifest else None
    of = f" of {plural(len(report.candidates), 'candidate')}" if report.candidates else ""
    asked = f" ({'auto' if counts.asked is None else f'{counts.asked} asked'})" if counts and counts.asked != kept else ""
    return f"{kept}{of}{asked}"


def _captions(report: Report) -> Html:
    rows, wanted = report.descriptions, len(report.run.keyframes)
    done = len(rows)
    if not done:
        return _fact("none yet", "vip caption writes them")
    engines = tag("bdi", ", ".join(dict.fromkeys(row.engine for row in rows)))
    length = f"{sum(tokens_in(row.dense_caption) for row in rows) / done:.0f} tokens on average"
    return join([engines, tag("small", f"{done} of {wanted}, {length}" if done < wanted else length)])


def _failures(report: Report) -> Html:
    failures = report.run.failures
    if not failures:
        return Html("")
    numbers = {card.failure: card.number for card in report.cards if card.failure}
    rows = []
    for failure in failures[:MAX_FAILURES]:
        item = tag("bdi", failure.item)
        link = tag("a", item, href=f"#k{numbers[failure]}") if failure in numbers else item
        rows.append(tag("li", tag("b", link), " ", tag("span", failure.kind, class_="kind"), " ", tag("bdi", failure.message)))
    rest = len(failures) - MAX_FAILURES
    more = tag("p", f"{rest} more are in {FAILURES}.", class_="hint") if rest > 0 else ""
    return tag("section", tag("h2", f"{plural(len(failures), 'item')} failed"), tag("ul", join(rows)), more, class_="failures")


def _keyframes(report: Report) -> Iterator[Html]:
    cards = report.cards
    described = any(card.description or card.failure for card in cards)
    kind = f"keyframes {'described' if described else 'sheet'}{' portrait' if report.portrait else ''}"
    yield Html(f'<section class="{kind}">')
    yield tag("h2", "Keyframes" if report.run.manifest or report.candidates else "Pictures")
    if report.why:
        yield tag("p", report.why, class_="hint", dir="auto")
    yield _undetermined(report)
    if any(card.keyframe.detections and card.shown for card in cards):
        yield tag("label", tag("input", type="checkbox", id="show-boxes"), " Show what was detected in the pictures", class_="switch")
    if len(cards) < len(report.run.keyframes):
        yield tag("p", f"{len(cards)} of {len(report.run.keyframes)} are shown, evenly chosen; all are in {KEYFRAMES}.", class_="hint")
    yield Html('<div class="cards">')
    yield from map(article, cards)
    yield Html("</div></section>")


def _undetermined(report: Report) -> Html:
    """Say once what no card says, and where only measuring was done, what would say more."""
    if not report.undetermined:
        return Html("")
    of = " in any of them" if len(report.descriptions) > 1 else ""
    parts: list[str] = [f"{NOT_DETERMINED.capitalize()}{of}: {', '.join(report.undetermined)}."]
    if report.is_measured:
        command = tag("code", "vip caption DIR --engine openai:MODEL", class_="command")
        parts += [f" The engine {MEASURING_ENGINE} measures and does not see. A model that sees fills them in: ", command]
    return tag("p", *parts, class_="hint")


def _curves(report: Report) -> Html:
    span, manifest = report.span, report.run.manifest
    if span is None:
        return Html("")
    least = manifest.settings.get("min_sharpness") if manifest else None
    figures = [figure(sharpness_curve(report.candidates, report.keyframes, least=least if isinstance(least, int | float) else None), span)]
    embeddings = report.run.embeddings if report.candidates else None
    if embeddings is not None:
        figures.append(_similarity(report.candidates, embeddings, span))
    if manifest and manifest.pruning:
        figures.append(pruning_figure(manifest.pruning, len(report.run.keyframes)))
    return tag("section", tag("h2", "Curves"), legend(report.candidates), join(figures), class_="curves") if any(figures) else Html("")


def _similarity(candidates: list[Candidate], embeddings: Embeddings, span: AxisSpan) -> Html:
    try:
        return figure(similarity_curve(candidates, embeddings), span)
    except ValueError as exc:
        return tag("p", f"No similarity curve: {EMBEDDINGS} does not fit {CANDIDATES} ({exc}).", class_="hint")
