"""The report: one self-contained page that a person likes to look at.

In: a run folder (or any folder of pictures with keyframes.jsonl). Out: report.html beside them, which loads nothing from
anywhere, can be read without JavaScript, and stays at a few MB: pictures are scaled down and long lists shortened, saying so.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath

from vip.caption_length import tokens_in
from vip.errors import StoreError
from vip.html.axes import AxisSpan, evenly_spaced, span_of
from vip.html.charts import Chart
from vip.html.format import date, file_size, plural, time_code
from vip.html.layout import render_page
from vip.html.parts import Fact, FailureRow, ValueTable
from vip.records import Candidate, Description, Famous, Keyframe
from vip.report.cards import KeyframeCard, failures_by_keyframe
from vip.report.checks import silent_fields
from vip.report.curves import draw, legend, sharpness_curve, similarity_curve
from vip.report.dropped import DroppedStrip, dropped_strip
from vip.report.pictures import ShownPicture, open_thumbnails, shrink_all
from vip.report.provenance import provenance
from vip.report.pruning import pruning_chart
from vip.report.timeline import Timeline, TimelineKeyframe, draw_timeline
from vip.report.video_link import VideoLink, video_link
from vip.store import CANDIDATES, EMBEDDINGS, FAILURES, REPORT, KeyframePicture, Run, in_use, replacing
from vip.untrusted import one_line
from vip.words.run_words import words_by_keyframe

MAX_CARDS = 600
MAX_FAILURES = 200
MEASURING_ENGINE = "offline"  # it says what was measured, and cannot see
MOST_SHARPNESS = 1e9  # what a stranger asked for need not be a number that can be drawn


def write_report(run: Run) -> Path:
    """Write report.html into the run folder and return its path.

    Raises:
        StoreError: a file of the folder is damaged, or the page cannot be written.
    """
    path = run.folder / REPORT
    text = page(Report(run))  # all of it before the file is opened: a damaged run leaves nothing behind
    with ExitStack() as stack:
        with suppress(StoreError):  # another command works in the folder; its files are left to it
            stack.enter_context(in_use(run.folder))
        stack.enter_context(replacing(path)).write(text.encode())
    return path


def page(report: Report) -> str:
    """Return the page of a run."""
    return render_page("vip.report", "run.html.jinja", style=report.timeline.css if report.timeline else "", report=report)


@dataclass(frozen=True)
class Report:
    """A run, and what run.html.jinja shows of it."""

    run: Run

    @cached_property
    def candidates(self) -> list[Candidate]:
        """The rows of the candidates; empty in a folder of pictures that vip did not extract."""
        return self.run.candidates if (self.run.folder / CANDIDATES).exists() else []

    @cached_property
    def places(self) -> list[int]:
        """Places in the list of keyframes of those that have a card: all of them, but in huge runs."""
        return evenly_spaced(len(self.run.keyframes), MAX_CARDS)

    @cached_property
    def keyframes(self) -> list[KeyframePicture]:
        return [self.run.keyframes[i] for i in self.places]

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
        texts = {row.keyframe_id: row for row in self.run.texts}
        around, said = words_by_keyframe(self.run, "subtitles"), words_by_keyframe(self.run, "speech")
        transcribers = {one.origin for one in self.run.words if one.source == "speech"}
        transcriber = " · ".join(sorted(one_line(origin).removeprefix("speech, ") for origin in transcribers))
        stated_above = tuple(Famous.model_fields) if self.is_measured else self.undetermined
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
                video_link=self.link.at(frame.time_s) if self.link and frame.time_s is not None else "",
                stated_above=stated_above,
                words=around.get(frame.id, ""),
                text=texts.get(frame.id),
                speech=said.get(frame.id, ""),
                transcriber=transcriber,
            )
            for i, frame, shown, candidate in zip(self.places, self.keyframes, self.shown, self.chosen, strict=True)
        ]

    def size_of(self, keyframe: Keyframe) -> str:
        """Return its size where it is not the video's, which stands at the top."""
        size, video = (keyframe.width_px, keyframe.height_px), self.run.manifest.video if self.run.manifest else None
        return "" if video and size == (video.width_px, video.height_px) else f"{size[0]} × {size[1]}"

    @cached_property
    def timeline(self) -> Timeline | None:
        keyframes = [
            TimelineKeyframe(card.number, card.keyframe.time_s, self.span.place(card.keyframe.time_s), card.shown)
            for card in self.cards
            if self.span is not None and card.keyframe.time_s is not None
        ]
        if self.span is None or not keyframes:
            return None
        return draw_timeline(self.span, sorted(keyframes, key=lambda keyframe: keyframe.time_s), self.candidates)

    @cached_property
    def link(self) -> VideoLink | None:
        return video_link(self.run)

    @property
    def is_portrait(self) -> bool:
        """Whether most pictures are higher than wide."""
        return 2 * sum(frame.record.width_px < frame.record.height_px for frame in self.keyframes) > len(self.keyframes)

    @property
    def title(self) -> str:
        manifest = self.run.manifest
        return PurePath(manifest.video.path).name if manifest else self.run.folder.resolve().name

    @property
    def facts(self) -> list[Fact]:
        """The figures at the top."""
        manifest, span = self.run.manifest, self.span
        about = [Fact("Keyframes" if manifest else "Pictures", self._counts), self._captions]
        if manifest is None:
            return about
        video, query = manifest.video, manifest.settings.get("query")
        rate = f", {float(video.frame_rate):.4g} fps" if video.frame_rate else ""
        return [
            Fact("Duration", time_code(span.end_s - span.start_s) if span else "unknown"),
            Fact("Picture", f"{video.width_px} × {video.height_px}{rate}"),
            Fact("File", f"{video.codec}, {file_size(video.size_bytes)}"),
            *([Fact("Asked for", f"“{query}”")] if query else []),
            *about,
            Fact("Made", date(manifest.created_utc)),
        ]

    @property
    def _counts(self) -> str:
        kept, counts = len(self.run.keyframes), self.run.manifest.counts if self.run.manifest else None
        of = f" of {plural(len(self.candidates), 'candidate')}" if self.candidates else ""
        asked = f" ({'auto' if counts.asked is None else f'{counts.asked} asked'})" if counts and counts.asked != kept else ""
        return f"{kept}{of}{asked}"

    @property
    def _captions(self) -> Fact:
        done, wanted = len(self.descriptions), len(self.run.keyframes)
        if not done:
            return Fact("Captions", "none yet", "vip caption writes them")
        engines = ", ".join(dict.fromkeys(row.engine for row in self.descriptions))
        length = f"{sum(tokens_in(row.dense_caption) for row in self.descriptions) / done:.0f} tokens on average"
        return Fact("Captions", engines, f"{done} of {wanted}, {length}" if done < wanted else length)

    @property
    def failures(self) -> list[FailureRow]:
        """The first failures, with links to the cards of their keyframes."""
        numbers = {card.failure: card.number for card in self.cards if card.failure}
        return [
            FailureRow(failure.item, failure.message, failure.kind, f"#k{numbers[failure]}" if failure in numbers else "")
            for failure in self.run.failures[:MAX_FAILURES]
        ]

    @property
    def failures_hint(self) -> str:
        rest = len(self.run.failures) - MAX_FAILURES
        return f"{rest} more are in {FAILURES}." if rest > 0 else ""

    @property
    def is_described(self) -> bool:
        return any(card.description or card.failure for card in self.cards)

    @property
    def has_boxes(self) -> bool:
        return any((card.keyframe.detections or card.lines) and card.shown for card in self.cards)

    @property
    def boxes_label(self) -> str:
        """The words beside the switch that shows boxes."""
        kinds = {"detected": any(card.keyframe.detections for card in self.cards), "read": any(card.lines for card in self.cards)}
        return f"Show what was {' and '.join(kind for kind, is_there in kinds.items() if is_there)} in the pictures"

    @property
    def legend(self) -> list[tuple[str, str]]:
        return legend(self.candidates)

    @cached_property
    def curves(self) -> list[Chart]:
        """Sharpness, similarity, and how many keyframes are enough."""
        manifest = self.run.manifest
        if self.span is None:
            return []
        least = manifest.settings.get("min_sharpness") if manifest else None
        is_drawn = isinstance(least, int | float) and 0 <= least < MOST_SHARPNESS
        sharpness = sharpness_curve(self.candidates, self.keyframes, least=least if is_drawn else None)
        pruning = pruning_chart(manifest.pruning, len(self.run.keyframes)) if manifest and manifest.pruning else None
        similarity, _ = self._similarity
        return [chart for chart in (draw(sharpness, self.span), similarity, pruning) if chart]

    @property
    def curves_hint(self) -> str:
        """The reason why there is no curve of similarity; empty where there is one, or nothing to measure."""
        return self._similarity[1]

    @cached_property
    def _similarity(self) -> tuple[Chart | None, str]:
        embeddings = self.run.embeddings if self.candidates else None
        if embeddings is None or self.span is None:
            return None, ""
        try:
            return draw(similarity_curve(self.candidates, embeddings), self.span), ""
        except ValueError as exc:
            return None, f"No similarity curve: {EMBEDDINGS} does not fit {CANDIDATES} ({exc})."

    @cached_property
    def dropped(self) -> DroppedStrip | None:
        with open_thumbnails(self.run.folder) as thumbnails:
            return dropped_strip(self.candidates, thumbnails)

    @property
    def provenance(self) -> list[ValueTable]:
        return provenance(self.run.manifest, self.descriptions)
