"""One card a keyframe: picture, time, dense caption, FAMOuS, what was measured, and whose words these are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from markupsafe import Markup

from vip.html.format import number, time_code
from vip.html.markup import join, percent, tag
from vip.html.parts import Fact
from vip.records import Candidate, Description, Detection, Failure, Keyframe, KeyframeText, TextLine
from vip.report.checks import FamousList, FamousRow, famous_list, rich_rows, summary
from vip.report.pictures import ShownPicture
from vip.words.picture_text import plain_lines

MAX_CHIPS = 12
MAX_TEXT_LETTERS = 1500
TALL = 0.85  # width over height below which a picture is portrait


@dataclass(frozen=True, slots=True)
class KeyframeCard:
    """The contents of one keyframe's card."""

    number: int
    of: int
    keyframe: Keyframe
    shown: ShownPicture | None
    description: Description | None
    failure: Failure | None
    candidate: Candidate | None
    size: str
    """Its size; empty where it is the video's."""
    why: str
    """Why it was kept; empty where the page says it once for all."""
    video_link: str
    """Link to the video at its time; empty where there is none."""
    stated_above: tuple[str, ...]
    """Fields of FAMOuS of which the page says once for all that they are not determined."""
    words: str = ""
    """The subtitles around it; empty where there are none."""
    text: KeyframeText | None = None
    """What a program read in it."""
    speech: str = ""
    """What was transcribed of the sound around it; empty where that is nothing."""
    transcriber: str = ""

    @property
    def name(self) -> str:
        """Its time, or the file's name where it comes from no video."""
        return PurePath(self.keyframe.image_path).name if self.keyframe.time_s is None else time_code(self.keyframe.time_s)

    @property
    def is_tall(self) -> bool:
        return self.keyframe.width_px < TALL * self.keyframe.height_px

    @property
    def detections(self) -> tuple[Detection, ...]:
        return self.keyframe.detections or ()

    @property
    def chips(self) -> tuple[Detection, ...]:
        """The detections that are named one by one."""
        return self.detections[:MAX_CHIPS]

    @property
    def more_chips(self) -> list[str]:
        """The other detections, counted by label."""
        rest = Counter(found.label for found in self.detections[MAX_CHIPS:]).most_common()
        others = sum(count for _, count in rest[3:])
        return [f"and {count} more {label}" for label, count in rest[:3]] + ([f"and {others} others"] if others else [])

    @property
    def boxes(self) -> Markup:
        """Detections and lines of text, drawn in percent of the picture: they fit it at every size."""
        if not self.shown or not (self.chips or self.lines):
            return Markup()
        lines = self.text.lines if self.text else ()
        return tag("svg", join([*map(_box, self.chips), *map(_text_box, lines)]), class_="boxes", aria_hidden="true")

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of text that a program read in it."""
        return plain_lines(self.text) if self.text else ()

    @property
    def shown_text(self) -> list[str]:
        """The lines of text as they are shown; what is too long for a card is cut."""
        lines, letters = list[str](), 0
        for line in self.lines:
            lines.append(line)
            letters += len(line)
            if letters > MAX_TEXT_LETTERS:
                return [*lines, "…"]
        return lines

    @property
    def famous(self) -> FamousList | None:
        return famous_list(self.description, stated_above=self.stated_above) if self.description else None

    @property
    def rich(self) -> tuple[FamousRow, ...]:
        return rich_rows(self.description) if self.description else ()

    @property
    def claims(self) -> str:
        """The verdicts on the claims of the description, in a sentence."""
        return summary(self.description.verification) if self.description else ""

    @property
    def measured(self) -> list[Fact]:
        """Figures, and facts without one."""
        quality, candidate = self.keyframe.quality, self.candidate
        facts = [
            Fact("Sharpness", number(quality.sharpness)),
            Fact("Brightness", f"{quality.brightness:.0%}"),
            Fact("Contrast", f"{quality.contrast:.0%}"),
        ]
        if self.size:
            facts.append(Fact(self.size, ""))
        if candidate is not None and candidate.stands_in_for is not None:
            facts.append(Fact(f"Stands in for the bad frame at {time_code(float(candidate.stands_in_for * candidate.time_base))}", ""))
        if candidate is not None and candidate.relevance is not None:
            facts.append(Fact("Relevance", f"{candidate.relevance:.3f}"))
        return facts

    @property
    def author(self) -> str:
        """The engine and the models that described it."""
        if self.description is None:
            return ""
        engine = self.description.engine
        return " · ".join([engine, *dict.fromkeys(call.model for call in self.description.calls if call.model not in engine)])


def _box(found: Detection) -> Markup:
    x, y, width, height = _place(found.box_xyxy)
    box = tag("rect", x=x, y=y, width=width, height=height, rx=3)
    return tag("g", box, tag("text", f"{found.label} {found.score:.2f}", x=x, y=y, dx=6, dy=16))


def _text_box(line: TextLine) -> Markup:
    x, y, width, height = _place(line.box_xyxy)
    return tag("rect", x=x, y=y, width=width, height=height, class_="text")


def _place(box_xyxy: tuple[float, float, float, float]) -> tuple[str, str, str, str]:
    """Return left, top, width and height in percent."""
    left, top, right, bottom = (min(100.0, max(0.0, 100 * edge)) for edge in box_xyxy)
    return percent(left), percent(top), percent(max(0.0, right - left)), percent(max(0.0, bottom - top))


def failures_by_keyframe(keyframes: list[Keyframe], failures: list[Failure]) -> Mapping[str, Failure]:
    """Return the failures by the id of their keyframe, which they name by id or by picture."""
    names = {name: frame.id for frame in keyframes for name in (PurePath(frame.image_path).name, frame.image_path, frame.id)}
    return {names[failure.item]: failure for failure in failures if failure.item in names}
