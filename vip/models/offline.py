"""The engine `offline`: the measured facts in readable English, without a model, a network or a guess.

In: `Facts` of a keyframe. Out: a caption of a few sentences and a FAMOuS description (section 3.2). It says what was
measured and how sure that is: what a detector found and where, colours, light, contrast, sharpness, the change of view.
It cannot see what happens, what the mood is or where it is: those fields say "not determined".
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

from vip.errors import BackendError, EngineError
from vip.protocols import EngineCapabilities, KeyframeFacts, Reply, Request, ViewChange
from vip.records import NOT_DETERMINED, Detection, Famous, ObjectColour, ObjectCount, Quality, Rich
from vip.wording import option

SURE, LIKELY = 0.8, 0.5  # a detection below is "probably" there, below the second one "possibly"
FILLS, LARGE, SMALL = 0.5, 0.15, 0.03  # share of the picture that a box covers
DARK, DIM, BRIGHT, GLARING = 0.15, 0.32, 0.6, 0.8  # brightness
LOW_CONTRAST, HIGH_CONTRAST = 0.12, 0.26
FLAT_CONTRAST = 0.02
BLURRED, SOFT, CRISP = 0.01, 0.03, 0.2  # variance of the Laplacian per variance of the grey levels: contrast does not count
COLOURLESS, MUTED, VIVID = 0.05, 0.15, 0.5  # mean saturation
ALMOST_ALL = 0.85
STILL_SHIFT, STILL_ZOOM = 0.02, 0.04  # no change in this direction
SLIGHT, FAR = 0.06, 0.25  # shift as a share of the picture

MOST_QUOTED = 240  # letters of subtitles in a caption, and of the text in the picture
PLAIN_QUOTES = str.maketrans("“”", '""')

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
SHARES = (  # from this share on: words
    (0.7, "about three quarters"),
    (0.59, "about two thirds"),
    (0.55, "more than half"),
    (0.45, "about half"),
    (0.38, "about two fifths"),
    (0.29, "about a third"),
    (0.22, "about a quarter"),
    (0.17, "about a fifth"),
    (0.0, "a smaller part"),
)


class OfflineEngine:
    """An engine that renders facts; the same facts give the same words."""

    name = "offline"
    capabilities = EngineCapabilities(measures=True, caches=False, languages=("English",))

    def __init__(self, detail: str | None, **settings: object) -> None:
        if detail is not None:
            raise BackendError(f'The engine "offline" takes no detail, but got "{detail}". Write {option("engine", "offline")}.')

    async def generate(self, request: Request) -> Reply:
        """Return the caption, or where a schema is asked for what it names of caption, FAMOuS and the rich fields, as JSON."""
        if request.facts is None:
            raise EngineError("The engine offline describes what was measured, and nothing was. Give it the facts of the picture.")
        text, wanted = caption(request.facts), (request.schema or {}).get("properties", {})
        if wanted:
            known = {"dense_caption": text, **famous(request.facts).model_dump(), **rich(request.facts).model_dump()}
            text = json.dumps({key: known[key] for key in wanted if key in known})
        return Reply(text, model=self.name)

    async def close(self) -> None:
        """Do nothing: no connection is open."""


def caption(facts: KeyframeFacts) -> str:
    """Return a few sentences. Their order and wording vary with the facts, so that twelve keyframes are not twelve forms."""
    seed = crc32(repr((facts.time_s, facts.colours, facts.quality)).encode())
    found, light, colours = _detection_sentences(facts, seed), _light_sentence(facts, seed >> 4), _colour_sentence(facts, seed >> 8)
    change = [] if facts.change is None else [_change_sentence(facts.change, _previous_picture(facts), seed >> 12)]
    orders = (
        (
            [*found, light, colours, *change],
            [*found, colours, light, *change],
            [light, *found, colours, *change],
            [*change, *found, colours, light],
        )
        if facts.detections
        else (
            [light, colours, *change, *found],
            [colours, light, *found, *change],
            [light, colours, *found, *change],
            [*change, colours, light, *found],
        )
    )
    sentences = [
        *orders[(seed >> 16) % len(orders)],
        *_text_sentence(facts.text),
        *_subtitle_sentence(facts.words),
        *_speech_sentence(facts.speech),
    ]
    return " ".join(map(_capitalize, sentences))


def famous(facts: KeyframeFacts) -> Famous:
    """Return focus and objects from the detections; what needs understanding stays "not determined"."""
    groups = _groups(facts.detections)
    return Famous(
        focus=groups[0].phrase() if groups else NOT_DETERMINED,
        action=NOT_DETERMINED,
        mood=NOT_DETERMINED,
        objects=tuple(dict.fromkeys(f"possibly {group.label}" if group.certainty == "possibly " else group.label for group in groups)),
        setting=NOT_DETERMINED,
    )


def rich(facts: KeyframeFacts) -> Rich:
    """Return the numbers of what was likely found, and the large colours of the whole picture; the rest needs eyes."""
    counts: Counter[str] = Counter()
    for group in _groups(facts.detections):
        counts[group.label] += len(group.boxes) * (group.certainty != "possibly ")
    return Rich(
        **dict.fromkeys(("short_caption", "main_object", "background", "style"), NOT_DETERMINED),
        **dict.fromkeys(("shot_size", "camera_angle", "depth_of_field"), NOT_DETERMINED),
        counts=tuple(ObjectCount(object=label, count=count) for label, count in counts.items() if count),
        colours=tuple(ObjectColour(object="whole picture", colour=name) for name, share in facts.colours if share >= LARGE),
        relations=(),
        visible_text=facts.text,
        characters=(),
    )


# ---------------------------------------------------------------- who and what was found


@dataclass(frozen=True, slots=True)
class _DetectionGroup:
    """Detections of one label and one degree of certainty, the largest first."""

    label: str
    certainty: str
    boxes: tuple[Detection, ...]
    faces: int
    """How many of them have a face that was found too."""

    def phrase(self) -> str:
        """Return `a person on the left, large in the frame`, `three people (one on the left and two in the centre)`."""
        if len(self.boxes) == 1:
            details = [part for part in (_describe_size(self.boxes[0]), "with the face in view" if self.faces else "") if part]
            return ", ".join([f"{self.certainty}{_article(self.label)} {self.label} {_describe_position(self.boxes[0])}", *details])
        all_faces = self.faces == len(self.boxes)
        faces = (
            ", with their faces in view"
            if all_faces
            else f", {_number_word(self.faces)} of them with the face in view"
            if self.faces
            else ""
        )
        return f"{self.certainty}{_number_word(len(self.boxes))} {_plural(self.label)} ({_describe_positions(self.boxes)}){faces}"


def _certainty(detection: Detection) -> str:
    return "" if detection.score >= SURE else "probably " if detection.score >= LIKELY else "possibly "


def _groups(found: Sequence[Detection]) -> list[_DetectionGroup]:
    """Return the groups, the surest first, then by area. The face of a person goes with the person. Described regions are no objects."""
    detections = [detection for detection in found if detection.kind == "object"]
    people = [detection for detection in detections if detection.label == "person" and detection.score >= LIKELY]
    owners: dict[int, Detection] = {}
    rest: list[Detection] = []
    for detection in detections:
        free = (number for number, person in enumerate(people) if number not in owners and _is_inside(detection, person))
        owner = next(free, None) if detection.label == "face" and detection.score >= LIKELY else None
        if owner is None:
            rest.append(detection)
        else:
            owners[owner] = people[owner]
    kinds: dict[tuple[str, str], list[Detection]] = {}
    for detection in sorted(
        rest,
        key=lambda detection: (
            ("", "probably ", "possibly ").index(_certainty(detection)),
            -_area_of(detection),
            detection.label,
            detection.box_xyxy,
        ),
    ):
        kinds.setdefault((detection.label, _certainty(detection)), []).append(detection)
    return [
        _DetectionGroup(label, certainty, tuple(boxes), sum(owner in boxes for owner in owners.values()))
        for (label, certainty), boxes in kinds.items()
    ]


def _detection_sentences(facts: KeyframeFacts, seed: int) -> list[str]:
    """Return the sentences about detections: none without a detector, one that says so if nothing was found."""
    if facts.detector is None:
        return []
    groups = _groups(facts.detections)
    if not groups:
        return [_nothing_found_sentence(facts.detector, seed)]
    phrases = _join([group.phrase() for group in groups])
    verb = "is" if len(groups[0].boxes) == 1 else "are"
    according = f"according to the detector, there {verb} {phrases}."
    return [according if groups[0].certainty else _choose(seed, f"the detector found {phrases}.", according)]


def _nothing_found_sentence(detector: str, seed: int) -> str:
    if detector.partition(":")[0] != "opencv":  # who knows what another one looks for
        return _choose(seed, "nothing was found by the detector.", "the detector found nothing.")
    return _choose(
        seed,
        "no face was found by the detector.",
        "the detector found no face.",
        "the detector did not find a face.",
    )


def _is_inside(face: Detection, person: Detection) -> bool:
    left, top, right, bottom = person.box_xyxy
    x, y = _center_of(face)
    return left <= x <= right and top <= y <= bottom and _area_of(face) < _area_of(person)


def _center_of(detection: Detection) -> tuple[float, float]:
    left, top, right, bottom = detection.box_xyxy
    return (left + right) / 2, (top + bottom) / 2


def _area_of(detection: Detection) -> float:
    left, top, right, bottom = detection.box_xyxy
    return abs(right - left) * abs(bottom - top)


def _describe_position(detection: Detection) -> str:
    """Return `on the left`, `in the centre`, `at the upper right`; height counts only for boxes that are not tall themselves."""
    x, y = _center_of(detection)
    _, top, _, bottom = detection.box_xyxy
    column = "left" if x < 1 / 3 else "right" if x > 2 / 3 else ""
    row = "" if abs(bottom - top) > 0.5 else "upper" if y < 1 / 3 else "lower" if y > 2 / 3 else ""
    if row and column:
        return f"at the {row} {column}"
    if row:
        return "near the top" if row == "upper" else "near the bottom"
    return f"on the {column}" if column else "in the centre"


def _describe_positions(boxes: Sequence[Detection]) -> str:
    """Return where the several are: `all on the left`, `one on the left and two in the centre`."""
    sides = Counter(
        "left" if _center_of(detection)[0] < 1 / 3 else "right" if _center_of(detection)[0] > 2 / 3 else "centre" for detection in boxes
    )
    words = {"left": "on the left", "centre": "in the centre", "right": "on the right"}
    if len(sides) == 1:
        return f"{'both' if len(boxes) == 2 else 'all'} {words[next(iter(sides))]}"
    return _join([f"{_number_word(sides[side])} {where}" for side, where in words.items() if sides[side]])


def _describe_size(detection: Detection) -> str:
    area = _area_of(detection)
    if area >= FILLS:
        return "filling most of the frame"
    return "large in the frame" if area >= LARGE else "small in the frame" if area < SMALL else ""


# ---------------------------------------------------------------- what was read


def _subtitle_sentence(words: str | None) -> list[str]:
    """Return a quotation that says where it was read; nobody listened to the sound."""
    if not words:
        return []
    return [f"the subtitles around this keyframe read: “{_cut(words)}”"]


def _speech_sentence(words: str | None) -> list[str]:
    """Return a quotation of what a program transcribed."""
    return [f"the speech around this keyframe was transcribed as: “{_cut(words)}”"] if words else []


def _text_sentence(lines: Sequence[str]) -> list[str]:
    """Return a quotation of what a program read in the picture."""
    return [f"the text in the picture reads: “{_cut(' · '.join(lines))}”"] if lines else []


def _cut(words: str) -> str:
    shown = words if len(words) <= MOST_QUOTED else f"{words[:MOST_QUOTED].rsplit(' ', 1)[0]} …"
    return shown.translate(PLAIN_QUOTES)


# ---------------------------------------------------------------- light, colour, change


def _light_sentence(facts: KeyframeFacts, seed: int) -> str:
    picture = "the upright picture" if facts.height_px > 1.1 * facts.width_px else "the picture"
    light, contrast, sharpness = _light_word(facts.quality), _contrast_word(facts.quality), _sharpness_word(facts.quality)
    if light == contrast == "medium":
        return _choose(
            seed,
            f"{picture} is {sharpness}, with medium brightness and contrast.",
            f"brightness and contrast are medium, and {picture} is {sharpness}.",
            f"{picture} is {sharpness}; its brightness and contrast are medium.",
        )
    if light == "medium":
        return _choose(
            seed,
            f"{picture} is {sharpness}, with medium brightness and {contrast} contrast.",
            f"with medium brightness and {contrast} contrast, {picture} is {sharpness}.",
        )
    return _choose(
        seed,
        f"{picture} is {light} and {sharpness}, with {contrast} contrast.",
        f"with {contrast} contrast, {picture} is {light} and {sharpness}.",
        f"{picture} is {light}, of {contrast} contrast and {sharpness}.",
    )


def _light_word(quality: Quality) -> str:
    if quality.brightness < DIM:
        return "dark" if quality.brightness < DARK else "dim"
    if quality.brightness < BRIGHT:
        return "medium"
    if quality.brightness < GLARING:
        return "bright"
    return "so bright that it may be overexposed" if quality.contrast < LOW_CONTRAST else "very bright"


def _contrast_word(quality: Quality) -> str:
    return "low" if quality.contrast < LOW_CONTRAST else "high" if quality.contrast > HIGH_CONTRAST else "medium"


def _sharpness_word(quality: Quality) -> str:
    """Return a word for the sharpness, as far as the figure allows: a smooth picture has as little fine detail as a blurred one."""
    if quality.contrast < FLAT_CONTRAST:
        return "almost without detail"
    detail = quality.sharpness / (255 * quality.contrast) ** 2
    if detail < SOFT:
        return "soft, perhaps blurred" if detail < BLURRED else "slightly soft"
    return "sharp" if detail < CRISP else "very sharp"


def _colour_sentence(facts: KeyframeFacts, seed: int) -> str:
    if facts.colourfulness < COLOURLESS:
        return _grey_sentence(facts.colours)
    tone = "the colours are vivid: " if facts.colourfulness > VIVID else "the colours are muted: " if facts.colourfulness < MUTED else ""
    (first, share), *others = facts.colours
    if share >= ALMOST_ALL:
        return f"almost the whole picture is {first}{_list_colours(others, ', apart from some')}."
    if not others:
        return f"{tone}{first} covers {_describe_share(share)} of the picture, and many small areas the rest."
    (second, second_share), *small = others
    some = _list_colours(small, ", with some")
    if _describe_share(share) == _describe_share(second_share):
        return f"{tone}{first} and {second} each cover {_describe_share(share)} of the picture{some}."
    return tone + _choose(
        seed,
        f"{first} covers {_describe_share(share)} of the picture and {second} {_describe_share(second_share)}{some}.",
        f"{first} ({share:.0%}) and {second} ({second_share:.0%}) take up the largest areas{some}.".replace("%", " %"),
        f"{_describe_share(share)} of the picture is {first} and {_describe_share(second_share)} {second}{some}.",
    )


def _grey_sentence(colours: Sequence[tuple[str, float]]) -> str:
    """Name the colours of a picture without saturation; a name of a colour may still turn up for greys with a slight tint."""
    large = [name for name, share in colours if share >= LARGE] or [colours[0][0]]
    some = _list_colours([(name, share) for name, share in colours if name not in large], ", with some")
    start = "almost the whole picture is" if colours[0][1] >= ALMOST_ALL else "practically without colour, the picture consists of"
    return f"{start} {_join(large)}{some}."


def _list_colours(colours: Sequence[tuple[str, float]], start: str) -> str:
    return f"{start} {_join([name for name, _ in colours])}" if colours else ""


def _describe_share(share: float) -> str:
    return next(words for least, words in SHARES if share >= least)


def _previous_picture(facts: KeyframeFacts) -> str:
    return "the previous picture" if facts.time_s is None else "the previous keyframe"


def _change_sentence(change: ViewChange, before: str, seed: int) -> str:
    if change.content_changed:
        return _choose(
            seed,
            f"the view is the same as in {before}, but what it shows has changed.",
            f"the framing has not changed since {before}, but part of the picture has.",
            f"the camera shows the same view as in {before}, with something else in it.",
        )
    if change.kind == "same view":
        return _choose(
            seed,
            f"the view is the same as in {before}.",
            f"the framing has not changed since {before}.",
            f"the camera shows the same view as in {before}.",
        )
    if change.kind == "new view":
        return _choose(
            seed,
            f"this looks like a new scene: nothing of {before} was recognised.",
            f"nothing of {before} was recognised, as after a cut or a long camera move.",
            f"compared with {before}, of which nothing was recognised, this looks like a new scene.",
        )
    moves = ", and ".join([*_shift_phrases(change), *_zoom_phrases(change)]) or "turned or moved slightly"
    return _choose(seed, f"since {before}, the camera seems to have {moves}.", f"compared with {before}, the camera seems to have {moves}.")


def _shift_phrases(change: ViewChange) -> list[str]:
    """Return the move of the camera, against that of its content: content that moved right means a camera that moved left."""
    across, down = change.shift_xy
    sides = ["to the left" if across > 0 else "to the right"] if abs(across) >= STILL_SHIFT else []
    heights = ["up" if down > 0 else "down"] if abs(down) >= STILL_SHIFT else []
    if not sides and not heights:
        return []
    size = max(abs(across), abs(down))
    how_far = "slightly " if size < SLIGHT else "far " if size > FAR else ""
    return [f"moved {how_far}{_join([*sides, *heights])}"]


def _zoom_phrases(change: ViewChange) -> list[str]:
    if abs(change.zoom - 1) < STILL_ZOOM:
        return []
    return ["zoomed in or come closer" if change.zoom > 1 else "zoomed out or gone back"]


# ---------------------------------------------------------------- words


def _choose(seed: int, *variants: str) -> str:
    return variants[seed % len(variants)]


def _join(parts: Sequence[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`; a comma before `and` where the parts have commas themselves."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])}{',' if any(',' in part for part in parts) else ''} and {parts[-1]}"


def _number_word(count: int) -> str:
    return NUMBERS[count] if count < len(NUMBERS) else str(count)


def _article(noun: str) -> str:
    return "an" if noun[:1].lower() in tuple("aeiou") else "a"


def _plural(noun: str) -> str:
    if noun == "person":
        return "people"
    if noun.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2:-1] not in tuple("aeiou") else f"{noun}s"


def _capitalize(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
