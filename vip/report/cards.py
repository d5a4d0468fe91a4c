"""One card a keyframe: picture, time, dense caption, FAMOuS, what was measured, and whose words these are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from vip.html.format import number, time_code
from vip.html.markup import Html, join, percent, tag
from vip.records import Candidate, Description, Detection, Failure, Keyframe
from vip.report.checks import famous, summary
from vip.report.pictures import ShownPicture, img

MAX_CHIPS = 12
TALL = 0.85  # width over height below which a picture is portrait


@dataclass(frozen=True, slots=True)
class KeyframeCard:
    """What is known of one keyframe."""

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
    watch: str
    """Link to the video at its time; empty where there is none."""
    told: tuple[str, ...]
    """Fields of FAMOuS of which the page says once for all that they are not determined."""

    @property
    def name(self) -> str:
        """Its time, or the file's name where it comes from no video."""
        return PurePath(self.keyframe.image_path).name if self.keyframe.time_s is None else time_code(self.keyframe.time_s)


def article(card: KeyframeCard) -> Html:
    width, height = card.keyframe.width_px, card.keyframe.height_px
    return tag(
        "article",
        _picture(card),
        tag("div", _head(card), _words(card), class_="text"),
        tag("div", _measured(card), _chips(card.keyframe.detections or ()), _origin(card), class_="meta"),
        id=f"k{card.number}",
        class_="card tall" if width < TALL * height else "card",
    )


def _picture(card: KeyframeCard) -> Html:
    picture = img(card.shown.card if card.shown else None, f"Keyframe {card.number}, {card.name}")
    boxes = _boxes(card.keyframe.detections or ()) if card.shown else ""
    return tag("div", picture, boxes, class_="picture", data_title=f"{card.name} · {card.number} of {card.of}")


def _boxes(detections: tuple[Detection, ...]) -> Html:
    """Drawn in percent of the picture, so that they fit it at every size."""
    if not detections:
        return Html("")
    drawn = []
    for found in detections[:MAX_CHIPS]:
        left, top, right, bottom = (min(100.0, max(0.0, 100 * edge)) for edge in found.box_xyxy)
        x, y = percent(left), percent(top)
        box = tag("rect", x=x, y=y, width=percent(max(0.0, right - left)), height=percent(max(0.0, bottom - top)), rx=3)
        drawn.append(tag("g", box, tag("text", f"{found.label} {found.score:.2f}", x=x, y=y, dx=6, dy=16)))
    return tag("svg", join(drawn), class_="boxes", aria_hidden="true")


def _head(card: KeyframeCard) -> Html:
    name: Html = tag("bdi", card.name)
    if card.watch:
        name = tag("a", name, href=card.watch, rel="noreferrer", class_="watch", title="Watch the video from here")
    return tag("h3", name, " ", tag("a", f"{card.number} of {card.of}", href=f"#k{card.number}", class_="of"))


def _words(card: KeyframeCard) -> Html:
    if card.description is not None:
        caption = tag("p", card.description.dense_caption, class_="caption", dir="auto")
        return join([caption, famous(card.description, told=card.told), summary(card.description.verification)])
    if card.failure is not None:
        return tag("p", tag("strong", "Not described. "), tag("bdi", card.failure.message), class_="failed")
    return Html("")


def _chips(detections: tuple[Detection, ...]) -> Html:
    if not detections:
        return Html("")
    chips = [
        tag("li", tag("bdi", found.label), " ", tag("b", f"{found.score:.2f}"), title=f"found by {found.source}")
        for found in detections[:MAX_CHIPS]
    ]
    rest = Counter(found.label for found in detections[MAX_CHIPS:])
    more = [tag("li", f"and {count} more {label}") for label, count in rest.most_common(3)]
    if others := sum(count for _, count in rest.most_common()[3:]):
        more.append(tag("li", f"and {others} others"))
    return tag("ul", join(chips), join(more), class_="chips", aria_label="Detections")


def _measured(card: KeyframeCard) -> Html:
    quality, candidate = card.keyframe.quality, card.candidate
    facts = [
        tag("span", "Sharpness ", tag("b", number(quality.sharpness))),
        tag("span", "Brightness ", tag("b", f"{quality.brightness:.0%}")),
        tag("span", "Contrast ", tag("b", f"{quality.contrast:.0%}")),
    ]
    if card.size:
        facts.append(tag("span", card.size))
    if candidate is not None and candidate.stands_in_for is not None:
        time_s = float(candidate.stands_in_for * candidate.time_base)
        facts.append(tag("span", f"Stands in for the bad frame at {time_code(time_s)}"))
    if candidate is not None and candidate.relevance is not None:
        facts.append(tag("span", "Relevance ", tag("b", f"{candidate.relevance:.3f}")))
    return tag("p", join(facts), class_="measured")


def _origin(card: KeyframeCard) -> Html:
    """Whose words these are, on what ground, and why this frame."""
    parts: list[Html] = []
    if card.description is not None:
        engine = card.description.engine
        models = list(dict.fromkeys(call.model for call in card.description.calls if call.model not in engine))
        parts.append(tag("p", "Described by ", tag("b", tag("bdi", " · ".join([engine, *models]))), class_="by"))
        if card.description.grounding:
            given = tag("ul", join(tag("li", item, dir="auto") for item in card.description.grounding))
            parts.append(tag("details", tag("summary", f"What the engine was given ({len(card.description.grounding)})"), given))
    if card.why:
        parts.append(tag("p", tag("bdi", card.why), class_="why"))
    return join(parts)


def failures_by_keyframe(keyframes: list[Keyframe], failures: list[Failure]) -> Mapping[str, Failure]:
    """Failures name their item by id or by picture."""
    names = {name: frame.id for frame in keyframes for name in (PurePath(frame.image_path).name, frame.image_path, frame.id)}
    return {names[failure.item]: failure for failure in failures if failure.item in names}
