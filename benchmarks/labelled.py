"""Videos drawn by script of which it is known how many pictures a person would count, and which one is on screen when.

A *picture* is what would be another slide, another screen, another shot, or another person or insert in a fixed view. Not another
picture: a bullet or a line that joins what is there (the fullest state is the slide), a cursor, a progress bar, a subtitle, noise,
flicker, small movements of a speaker, a slow pan or zoom. A picture that comes back is the same picture. While something walks, fades
or scrolls, nothing is labelled: a keyframe from there shows no picture and counts against the number all the same.

    slides-dark, slides-light   8 to 12 slides, some built bullet by bullet, some with a photograph, some coming back
    screens                     terminals and editors: lines join, then the screen is cleared or turns a page
    inserts                     a fixed noisy view into which photographs are laid, one at a time
    people                      a fixed view that people enter, stand in and leave
    head                        a speaker before a still background, with or without subtitles
    noise, lowrate, flicker, cursor, progress   four to six slides under that disturbance
    zoom, pan                   photographs under a slow camera
    scroll                      a long page that is scrolled and read, screen by screen
    browser                     the same inside bars that stand still, by more and by less than a screen
    speaker                     slides or screens with a speaker in a window, in a corner or beside them
    drift                       slides on soft lights that wander, as templates have them
    motion                      motion graphics: words and photographs fly, grow or turn into view, rest, and leave the same way
    recording                   slides, screens or pages that are scrolled, as browsers record a screen: VP8 of a fixed bit rate
"""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TypedDict

import av
import cv2
import numpy as np
from mixes import PHOTOS, Image, PhotoClip, fit
from numpy.typing import NDArray
from PIL import Image as PillowImage
from PIL import ImageDraw, ImageFont

VERSION = 1  # of what `build` writes; part of the names of files, so that old ones are not taken for new ones
FPS, RATES = 10, {"motion": 25, "recording": 30}
SIZES = ((640, 360), (960, 540), (1280, 720))
PHOTOGRAPHS = tuple(name for name in PHOTOS if name not in ("page.png", "text.png", "logo.png", "clock_motion.png"))
DARK = ((18, 18, 28), (10, 30, 48), (40, 42, 54), (0, 0, 0))
WALK_S, INSIDE, OUTSIDE = 1.5, 0.1, 0.04  # shares of the width: a person's half takes 0.1, and less than half of that is a sliver
LIGHT = ((255, 255, 255), (250, 246, 236), (235, 240, 248), (245, 245, 245))

Colour = tuple[int, int, int]
Draw = Callable[[float], Image]
"""Seconds since the stretch began -> RGB."""


@dataclass(frozen=True)
class Stretch:
    """A stretch of time in which one picture is on screen."""

    picture: str | None
    """None while it changes, so that no picture is shown whole."""
    duration_s: float
    draw: Draw


@dataclass(frozen=True)
class Coding:
    """How a video is encoded."""

    gop: int
    crf: int


@dataclass
class Script:
    """What is drawn from the seed: chance, size, encoding."""

    kind: str
    seed: int
    chance: random.Random = field(init=False)
    size: tuple[int, int] = field(init=False)
    coding: Coding = field(init=False)

    fps: int = field(init=False)

    def __post_init__(self) -> None:
        self.fps = RATES.get(self.kind, FPS)
        self.chance = random.Random(f"{self.kind}-{self.seed}")
        self.size = self.chance.choice(SIZES)
        self.coding = Coding(self.chance.choice((50, 100, 250)), 40 if self.kind == "lowrate" else self.chance.choice((20, 24, 28)))

    def of_size(self, width: int, height: int) -> Script:
        """The same script, and the same chance, for a part of the picture."""
        part = copy(self)
        part.size = width, height
        return part


class Span(TypedDict):
    picture: str
    start_s: float
    end_s: float


class Labels(TypedDict):
    """Which picture is on screen when; in between, what is shown is no whole picture."""

    kind: str
    seed: int
    duration_s: float
    spans: list[Span]


@dataclass(frozen=True)
class Labelled:
    video: Path
    labels: Labels

    @property
    def distinct(self) -> int:
        return len({span["picture"] for span in self.labels["spans"]})

    def picture_at(self, time_s: float) -> str | None:
        """The picture that is on screen, None while it changes."""
        return next((span["picture"] for span in self.labels["spans"] if span["start_s"] <= time_s < span["end_s"]), None)


# ---------------------------------------------------------------- slides


@dataclass(frozen=True)
class Look:
    """The template that all slides of a talk share."""

    background: Colour
    ink: Colour
    accent: Colour
    is_centred: bool
    has_bar: bool


def _words(chance: random.Random, least: int, most: int) -> str:
    count = chance.randint(least, most)
    return " ".join("".join(chance.choices(string.ascii_lowercase, k=chance.randint(2, 10))) for _ in range(count))


def _look(chance: random.Random, *, is_dark: bool) -> Look:
    accent = (chance.randint(40, 220), chance.randint(40, 220), chance.randint(40, 220))
    background = chance.choice(DARK if is_dark else LIGHT)
    ink = (235, 235, 230) if is_dark else (25, 25, 35)
    return Look(background, ink, accent, chance.random() < 0.3, chance.random() < 0.5)


@dataclass(frozen=True)
class Slide:
    """A title and bullets, with or without a photograph at the right."""

    look: Look
    title: str
    bullets: tuple[str, ...]
    photograph: Image | None

    def draw(self, size: tuple[int, int], bullets: int) -> Image:
        """The slide with its first bullets."""
        width, height = size
        page = PillowImage.new("RGB", size, self.look.background)
        pen = ImageDraw.Draw(page)
        if self.look.has_bar:
            pen.rectangle((0, 0, width, height // 40), fill=self.look.accent)
        title_font, font = ImageFont.load_default(height // 12), ImageFont.load_default(height // 19)
        left = round(0.07 * width)
        place = (width // 2, height // 10) if self.look.is_centred else (left, height // 10)
        pen.text(place, self.title.capitalize(), self.look.ink, title_font, anchor="ma" if self.look.is_centred else None)
        for row, bullet in enumerate(self.bullets[:bullets]):
            top = round((0.27 + 0.115 * row) * height)
            pen.ellipse((left, top + height // 60, left + height // 50, top + height // 60 + height // 50), fill=self.look.accent)
            pen.text((left + height // 20, top), bullet, self.look.ink, font)
        shown = np.asarray(page, np.uint8).copy()
        if self.photograph is not None:
            _lay(shown, self.photograph, (0.6, 0.3, 0.95, 0.85))
        return shown


def _slide(chance: random.Random, look: Look) -> Slide:
    has_photograph = chance.random() < 0.25
    lengths = (1, 3) if has_photograph else (2, 7)
    bullets = tuple(_words(chance, *lengths) for _ in range(chance.randint(2, 5)))
    return Slide(look, _words(chance, 1, 3), bullets, _photograph(chance) if has_photograph else None)


def _deck(script: Script, look: Look, count: int, *, come_back: float, builds: float) -> Iterator[Stretch]:
    """Slides one after another, cut or faded."""
    chance, size = script.chance, script.size
    deck = [_slide(chance, look) for _ in range(count)]
    order = [
        number
        for number in range(count)
        for number in ([number, chance.randrange(number)] if number and chance.random() < come_back else [number])
    ]
    fade_s = chance.choice((0.0, 0.0, 0.4))
    before: Image | None = None
    for place, number in enumerate(order):
        slide, total_s = deck[number], chance.uniform(3.0, 8.0)
        whole = slide.draw(size, len(slide.bullets))
        is_built = chance.random() < builds and number not in order[:place]
        steps = range(1, len(slide.bullets) + 1) if is_built else [len(slide.bullets)]
        first = slide.draw(size, steps[0])
        if fade_s and before is not None:
            yield Stretch(None, fade_s, partial(_faded, before, first, fade_s))
        for step in steps:
            duration_s = total_s if step == len(slide.bullets) else chance.uniform(0.8, 2.0)
            yield Stretch(f"slide {number}", duration_s, _still(slide.draw(size, step)))
        before = whole


def _faded(before: Image, after: Image, fade_s: float, time_s: float) -> Image:
    share = (time_s + 1 / FPS) / (fade_s + 1 / FPS)
    return np.asarray(cv2.addWeighted(after, share, before, 1 - share, 0), np.uint8)


def _still(image: Image) -> Draw:
    return lambda time_s: image


def slides(script: Script, *, is_dark: bool) -> Iterator[Stretch]:
    look = _look(script.chance, is_dark=is_dark)
    return _deck(script, look, script.chance.randint(8, 12), come_back=0.1, builds=0.3)


def few_slides(script: Script) -> Iterator[Stretch]:
    look = _look(script.chance, is_dark=script.chance.random() < 0.5)
    return _deck(script, look, script.chance.randint(4, 6), come_back=0.0, builds=0.2)


# ---------------------------------------------------------------- disturbances


def _noisy(script: Script, stretches: Iterator[Stretch], level: float) -> Iterator[Stretch]:
    noise = np.random.default_rng(script.seed)
    width, height = script.size
    fields = [np.repeat(noise.normal(0, level, (height, width, 1)), 3, axis=2).astype(np.int16) for _ in range(4)]

    def draw(inner: Draw, time_s: float) -> Image:
        return np.asarray(cv2.add(inner(time_s), fields[script.chance.randrange(len(fields))], dtype=cv2.CV_8U), np.uint8)

    return (Stretch(one.picture, one.duration_s, partial(draw, one.draw)) for one in stretches)


def noise(script: Script) -> Iterator[Stretch]:
    return _noisy(script, few_slides(script), script.chance.uniform(6, 14))


def flicker(script: Script) -> Iterator[Stretch]:
    depth = script.chance.uniform(0.03, 0.08)

    def draw(inner: Draw, time_s: float) -> Image:
        gain = 1 - depth + 2 * depth * script.chance.random()
        return np.asarray(cv2.convertScaleAbs(inner(time_s), alpha=gain), np.uint8)

    return (Stretch(one.picture, one.duration_s, partial(draw, one.draw)) for one in few_slides(script))


def drift(script: Script) -> Iterator[Stretch]:
    chance = script.chance
    lights = [(chance.uniform(0.15, 0.35), np.array([chance.uniform(0, 90) for _ in range(3)])) for _ in range(3)]  # radius, RGB
    paths = [[(chance.uniform(0.2, 0.6), chance.uniform(0, 6.28)) for _ in range(2)] for _ in lights]  # speed and start, across and down
    down, across = np.mgrid[0:1:36j, 0:1:64j]

    def draw(inner: Draw, offset_s: float, time_s: float) -> Image:
        page = inner(time_s)
        light = np.zeros((36, 64, 3))
        for (radius, colour), path in zip(lights, paths, strict=True):
            x, y = (0.5 + 0.5 * np.sin(speed * (offset_s + time_s) + start) for speed, start in path)
            light += colour * np.exp(-((across - x) ** 2 + (down - y) ** 2) / (2 * radius**2))[..., None]
        background = page[-1, -1]
        light *= 1 if background.mean() < 128 else -0.5
        lit = cv2.add(page, cv2.resize(light, script.size), dtype=cv2.CV_8U)
        is_plain = cv2.absdiff(page, np.full_like(page, background)).max(axis=2) < 8
        return np.asarray(np.where(is_plain[..., None], lit, page), np.uint8)

    return _over(few_slides(script), draw)


def cursor(script: Script) -> Iterator[Stretch]:
    width, height = script.size
    speeds = script.chance.uniform(0.1, 0.4), script.chance.uniform(0.1, 0.4)
    arrow = np.array([(0, 0), (0, 16), (4, 12), (7, 18), (9, 17), (6, 11), (11, 11)]) * height / 360

    def draw(inner: Draw, offset_s: float, time_s: float) -> Image:
        image = inner(time_s).copy()
        x, y = (
            (0.5 + 0.4 * np.sin(speed * 6.28 * (offset_s + time_s))) * side for speed, side in zip(speeds, (width, height), strict=True)
        )
        shape = np.rint(arrow + np.array((x, y))).astype(np.int32)
        cv2.fillPoly(image, [shape], (255, 255, 255))
        cv2.polylines(image, [shape], True, (0, 0, 0), 1)
        return image

    return _over(few_slides(script), draw)


def progress(script: Script) -> Iterator[Stretch]:
    width, height = script.size
    stretches = list(few_slides(script))
    total_s = sum(one.duration_s for one in stretches)

    def draw(inner: Draw, offset_s: float, time_s: float) -> Image:
        image = inner(time_s).copy()
        top, right = height - height // 30, round(width * (offset_s + time_s) / total_s)
        image[top:, :] = 90
        image[top:, :right] = (220, 30, 30)
        text = f"{int(offset_s + time_s) // 60:02}:{int(offset_s + time_s) % 60:02}"
        cv2.putText(image, text, (round(0.9 * width), top - 4), cv2.FONT_HERSHEY_SIMPLEX, height / 900, (128, 128, 128), 1, cv2.LINE_AA)
        return image

    return _over(iter(stretches), draw)


def _over(stretches: Iterator[Stretch], draw: Callable[[Draw, float, float], Image]) -> Iterator[Stretch]:
    """The stretches with something drawn over them that goes on from one to the next."""
    offset_s = 0.0
    for one in stretches:
        yield Stretch(one.picture, one.duration_s, partial(draw, one.draw, offset_s))
        offset_s += one.duration_s


# ---------------------------------------------------------------- motion graphics

Layer = NDArray[np.uint8]
"""RGBA (H, W, 4): what moves over a background."""


@dataclass(frozen=True)
class Way:
    """How a layer comes into view, from share 0 to 1; it leaves the same way back."""

    across: float
    """By how many widths of the picture it is beside its place at first."""
    down: float
    scale: tuple[float, float]
    """Of its width and its height at first."""

    def place(self, layer: Layer, share: float) -> Layer:
        """The layer on its way."""
        height, width = layer.shape[:2]
        left = (1 - share) ** 2  # fast at first, then slower
        wide, tall = (max(1e-3, end + left * (begin - end)) for begin, end in zip(self.scale, (1.0, 1.0), strict=True))
        x, y = (0.5 - 0.5 * wide + left * self.across) * width, (0.5 - 0.5 * tall + left * self.down) * height
        return np.asarray(cv2.warpAffine(layer, np.array([[wide, 0, x], [0, tall, y]]), (width, height), flags=cv2.INTER_AREA), np.uint8)


SIDES = (Way(1.1, 0, (1, 1)), Way(-1.1, 0, (1, 1)), Way(0, 1.1, (1, 1)), Way(0, -1.1, (1, 1)))
WAYS = (*SIDES, Way(0, 0, (0, 0)), Way(0, 0, (4, 4)), Way(0, 0, (0, 1)))  # from far away, from close by, turning
SHUTTER = (0.0, 0.25, 0.5, 0.75)  # parts of the time of a frame that it shows


def motion(script: Script) -> Iterator[Stretch]:
    """Eight to twelve cards, which move into view over one background or a new one, blurred by their motion."""
    chance = script.chance
    look = _look(chance, is_dark=chance.random() < 0.5)
    grounds = [_ground(script, look)] + [_ground(script, _look(chance, is_dark=chance.random() < 0.5)) for _ in range(2)]
    ground = grounds[0]
    for number in range(chance.randint(8, 12)):
        layer = _card(script, look)
        come_s, leave_s, (come, leave) = chance.uniform(0.3, 0.8), chance.uniform(0.2, 0.5), (chance.choice(WAYS) for _ in range(2))
        if chance.random() < 0.3:
            ground = chance.choice(grounds)
        yield Stretch(None, come_s, partial(_moving, ground, layer, come, 1 / (come_s * script.fps), 0.0, 1 / come_s))
        yield Stretch(f"card {number}", chance.uniform(1.2, 4.0), _still(_laid(ground, layer)))
        yield Stretch(None, leave_s, partial(_moving, ground, layer, leave, 1 / (leave_s * script.fps), 1.0, -1 / leave_s))


def _ground(script: Script, look: Look) -> Image:
    """A plain background, or one with a grid."""
    width, height = script.size
    image = np.full((height, width, 3), look.background, np.uint8)
    if script.chance.random() < 0.4:
        image[:: height // 12] = look.accent
        image[:, :: height // 12] = look.accent
    return image


def _card(script: Script, look: Look) -> Layer:
    """A title, a disc with words, or a photograph with words below it."""
    chance, (width, height) = script.chance, script.size
    page = PillowImage.new("RGBA", script.size, (0, 0, 0, 0))
    pen, kind = ImageDraw.Draw(page), chance.randrange(3)
    colour = chance.choice(((200, 40, 40), (40, 150, 60), (40, 90, 200), (220, 150, 30)))
    if kind == 0:
        for row in range(chance.randint(1, 3)):
            words = _words(chance, 1, 3).upper()
            pen.text((width // 2, round((0.35 + 0.15 * row) * height)), words, colour, ImageFont.load_default(height // 8), anchor="mm")
        return np.array(page, np.uint8)
    if kind == 1:
        radius = round(chance.uniform(0.15, 0.3) * height)
        pen.ellipse((width // 2 - radius, height // 2 - radius, width // 2 + radius, height // 2 + radius), fill=colour)
        pen.text((width // 2, height // 2), _words(chance, 1, 1), (255, 255, 255), ImageFont.load_default(height // 12), anchor="mm")
    pen.text((width // 2, round(0.9 * height)), _words(chance, 1, 4), colour, ImageFont.load_default(height // 16), anchor="mm")
    layer = np.array(page, np.uint8)
    if kind == 2:
        _lay(layer[..., :3], _photograph(chance), (0.25, 0.15, 0.75, 0.8))
        layer[round(0.15 * height) : round(0.8 * height), round(0.25 * width) : round(0.75 * width), 3] = 255
    return layer


def _laid(ground: Image, layer: Layer) -> Image:
    share = layer[..., 3:].astype(np.float32) / 255
    return np.asarray(share * layer[..., :3] + (1 - share) * ground, np.uint8)


def _moving(ground: Image, layer: Layer, way: Way, step: float, begin: float, speed: float, time_s: float) -> Image:
    """Draw a layer on its way, blurred by what it moves while the shutter is open."""
    shares = (begin + speed * time_s + (step if speed > 0 else -step) * part for part in SHUTTER)
    shown = [_laid(ground, way.place(layer, min(1.0, max(0.0, share)))) for share in shares]
    return np.asarray(np.mean(shown, axis=0), np.uint8)


# ---------------------------------------------------------------- screens


def screens(script: Script) -> Iterator[Stretch]:
    """Lines join a terminal until it is full; or an editor turns pages."""
    chance, is_terminal = script.chance, script.chance.random() < 0.6
    colours = chance.choice(DARK if is_terminal or chance.random() < 0.5 else LIGHT)
    ink = (190, 220, 190) if sum(colours) < 300 else (30, 30, 30)
    rows = chance.randint(16, 24)
    for number in range(chance.randint(5, 8)):
        lines = [" " * chance.choice((0, 0, 2, 4)) + _words(chance, 0, 8) for _ in range(chance.randint(2 * rows // 3, rows))]
        if is_terminal:
            for shown in range(max(2, len(lines) // 4), len(lines), max(1, len(lines) // 5)):
                yield Stretch(f"screen {number}", chance.uniform(0.3, 0.9), _still(_screen(script.size, lines[:shown], rows, colours, ink)))
        yield Stretch(f"screen {number}", chance.uniform(3.0, 7.0), _still(_screen(script.size, lines, rows, colours, ink)))


def _screen(size: tuple[int, int], lines: Sequence[str], rows: int, background: Colour, ink: Colour) -> Image:
    width, height = size
    page = PillowImage.new("RGB", size, background)
    pen, font = ImageDraw.Draw(page), ImageFont.load_default(round(0.75 * height / rows))
    for row, line in enumerate(lines):
        pen.text((width // 40, row * height / rows), line, ink, font)
    return np.asarray(page, np.uint8)


def scroll(script: Script) -> Iterator[Stretch]:
    """A page of text and photographs, four to six screens long, scrolled by nearly a screen and read."""
    chance, (width, height) = script.chance, script.size
    count = chance.randint(4, 6)
    page = np.full((count * height, width, 3), chance.choice(LIGHT), np.uint8)
    for number in range(count):
        lines = [_words(chance, 3, 9) for _ in range(chance.randint(12, 18))]
        page[number * height : (number + 1) * height] = _screen(script.size, lines, 18, (255, 255, 255), (20, 20, 20))
        if chance.random() < 0.5:
            _lay(page[number * height : (number + 1) * height], _photograph(chance), (0.6, 0.2, 0.95, 0.8))
    for number in range(count):
        yield Stretch(f"page {number}", chance.uniform(3, 7), _still(page[number * height : (number + 1) * height]))
        if number < count - 1:
            yield Stretch(None, 0.8, partial(_scrolled, page, number * height, height))


def _scrolled(page: Image, top: int, height: int, time_s: float) -> Image:
    """Draw a page on its way: the first frame has moved already, and the last has not arrived."""
    moved = top + round((time_s + 1 / FPS) / (0.8 + 1 / FPS) * height)
    return page[moved : moved + height]


def recording(script: Script) -> Iterator[Stretch]:
    return script.chance.choice((few_slides, screens, scroll))(script)


def browser(script: Script) -> Iterator[Stretch]:
    """A page in a window with bars, which stops five to eight times: half a screen to two screens on, in one to three seconds."""
    chance, (width, height) = script.chance, script.size
    window = _screen(script.size, [_words(chance, 1, 2) for _ in range(18)], 18, chance.choice(LIGHT), (60, 60, 60)).copy()
    top, left, below = height // 8, chance.choice((0, width // 5)), chance.choice((0, height // 8))
    size = (width - left, height - top - below)
    stops = [0]
    for _ in range(chance.randint(4, 7)):
        stops.append(stops[-1] + round(chance.uniform(0.5, 2.0) * size[1]))
    screens = []
    for _ in range(2 + stops[-1] // size[1]):
        screens.append(_screen(size, [_words(chance, 2, 7) for _ in range(16)], 18, (255, 255, 255), (20, 20, 20)).copy())
        if chance.random() < 0.5:
            _lay(screens[-1], _photograph(chance), (0.6, 0.2, 0.95, 0.8))
    page = np.concatenate(screens)

    def draw(begin: int, end: int, duration_s: float, time_s: float) -> Image:
        share = (time_s + 1 / FPS) / (duration_s + 1 / FPS)  # the first frame has moved already, and the last has not arrived
        moved, picture = begin + round(share * (end - begin)), window.copy()
        picture[top : top + size[1], left:] = page[moved : moved + size[1]]
        return picture

    for number, (stop, following) in enumerate(pairwise([*stops, stops[-1]])):
        yield Stretch(f"page {number}", chance.uniform(2, 6), partial(draw, stop, stop, 1.0))
        if following > stop:
            duration_s = chance.uniform(1, 3)
            yield Stretch(None, duration_s, partial(draw, stop, following, duration_s))


# ---------------------------------------------------------------- fixed views


def _photograph(chance: random.Random) -> Image:
    return PhotoClip(chance.choice(PHOTOGRAPHS)).picture


def _lay(image: Image, photograph: Image, box: tuple[float, float, float, float]) -> None:
    """Put a photograph into a box of the picture (shares of width and height), in place."""
    height, width = image.shape[:2]
    left, top, right, bottom = (round(share * side) for share, side in zip(box, (width, height, width, height), strict=True))
    image[top:bottom, left:right] = _filling(photograph, (right - left, bottom - top))


def _filling(photograph: Image, size: tuple[int, int]) -> Image:
    """The middle of a photograph, scaled to fill the size."""
    tall, wide = photograph.shape[:2]
    scale = max(size[0] / wide, size[1] / tall)
    scaled = cv2.resize(photograph, (max(size[0], round(wide * scale)), max(size[1], round(tall * scale))), interpolation=cv2.INTER_AREA)
    left, top = (scaled.shape[1] - size[0]) // 2, (scaled.shape[0] - size[1]) // 2
    return np.asarray(scaled[top : top + size[1], left : left + size[0]], np.uint8)


def _view(script: Script) -> Image:
    """The background of a fixed camera: a photograph, or a drawn room."""
    chance, (width, height) = script.chance, script.size
    if chance.random() < 0.5:
        return _filling(_photograph(chance), script.size)
    wall, floor = ([chance.randint(90, 220) for _ in range(3)] for _ in range(2))
    room = np.empty((height, width, 3), np.float32)
    room[:] = wall
    room[round(0.65 * height) :] = floor
    room *= np.linspace(0.8, 1.1, width, dtype=np.float32)[None, :, None]
    image = np.asarray(np.clip(room, 0, 255), np.uint8)
    for _ in range(chance.randint(4, 12)):
        x, y = chance.random() * width, chance.random() * height
        far = (round(x + chance.uniform(0.05, 0.3) * width), round(y + chance.uniform(0.05, 0.3) * height))
        cv2.rectangle(image, (round(x), round(y)), far, [chance.randint(30, 230) for _ in range(3)], -1)
    return image


def inserts(script: Script) -> Iterator[Stretch]:
    chance, view = script.chance, _view(script)
    names = chance.sample(PHOTOGRAPHS, chance.randint(3, 6))
    stretches = [Stretch("view", chance.uniform(3, 6), _still(view))]
    for name in names:
        wide, tall = chance.uniform(0.3, 0.45), chance.uniform(0.3, 0.45)
        left, top = chance.choice((0.05, 0.95 - wide)), chance.choice((0.08, 0.92 - tall))
        shown = view.copy()
        _lay(shown, PhotoClip(name).picture, (left, top, left + wide, top + tall))
        stretches.append(Stretch(f"insert {name}", chance.uniform(3, 6), _still(shown)))
        if chance.random() < 0.7:
            stretches.append(Stretch("view", chance.uniform(3, 6), _still(view)))
    return _noisy(script, iter(stretches), chance.uniform(1, 4))


@dataclass(frozen=True)
class Person:
    """A figure of ellipses: head, body, legs."""

    height: float
    skin: Colour
    top: Colour
    trousers: Colour
    hair: Colour
    stripes: int

    def draw(self, view: Image, x: float, lean: float) -> Image:
        """The view with the person at `x` (share of the width), leaning by `lean` (shares of their height)."""
        image = view.copy()
        tall, wide = image.shape[:2]
        size = self.height * tall
        foot, middle = 0.97 * tall, x * wide

        def part(dx: float, up: float, across: float, along: float, colour: Colour) -> None:
            centre = (round(middle + (dx + lean * up) * size), round(foot - up * size))
            cv2.ellipse(image, centre, (max(1, round(across * size)), max(1, round(along * size))), 0, 0, 360, colour, -1, cv2.LINE_AA)

        part(-0.06, 0.23, 0.05, 0.24, self.trousers)
        part(0.06, 0.23, 0.05, 0.24, self.trousers)
        part(0, 0.6, 0.14, 0.24, self.top)
        for stripe in range(self.stripes):
            part(0, 0.5 + 0.05 * stripe, 0.12, 0.008, self.trousers)
        part(-0.15, 0.6, 0.03, 0.2, self.top)
        part(0.15, 0.6, 0.03, 0.2, self.top)
        part(0, 0.91, 0.075, 0.09, self.hair)
        part(0, 0.89, 0.06, 0.075, self.skin)
        return image


def _person(chance: random.Random) -> Person:
    colour = [tuple(chance.randint(10, 240) for _ in range(3)) for _ in range(3)]
    skin = chance.choice(((236, 200, 170), (200, 150, 110), (120, 80, 55)))
    return Person(chance.uniform(0.65, 0.9), skin, *colour, stripes=chance.choice((0, 0, 4)))  # type: ignore[arg-type]


def people(script: Script) -> Iterator[Stretch]:
    chance, view = script.chance, _view(script)
    stretches = [Stretch("nobody", chance.uniform(3, 6), _still(view))]
    for number in range(chance.randint(3, 5)):
        person, x = _person(chance), chance.uniform(0.25, 0.75)
        edge = chance.choice((-0.12, 1.12))  # just out of sight
        stretches += [
            *_walk(f"person {number}", person, view, edge, x),
            Stretch(f"person {number}", chance.uniform(3, 8), partial(_standing, person, view, x)),
            *_walk(f"person {number}", person, view, x, edge),
        ]
        if chance.random() < 0.7:
            stretches.append(Stretch("nobody", chance.uniform(2.5, 5), _still(view)))
    return _noisy(script, iter(stretches), chance.uniform(1, 4))


def _walk(name: str, person: Person, view: Image, start: float, end: float) -> Iterator[Stretch]:
    """A walk from `start` to `end` (shares of the width); who is all inside the picture is on screen."""
    for time_s in np.arange(0, WALK_S, 1 / FPS).tolist():
        x = start + (end - start) * time_s / WALK_S
        image = person.draw(view, x, 0.02 * float(np.sin(9 * time_s)))
        is_out = x < -OUTSIDE or x > 1 + OUTSIDE
        yield Stretch(name if INSIDE < x < 1 - INSIDE else "nobody" if is_out else None, 1 / FPS, _still(image))


def _standing(person: Person, view: Image, x: float, time_s: float) -> Image:
    return person.draw(view, x + 0.004 * float(np.sin(1.3 * time_s)), 0.015 * float(np.sin(0.9 * time_s)))


def head(script: Script) -> Iterator[Stretch]:
    """A speaker who fills much of the picture, moves a little and now and then gestures."""
    chance, (_, height) = script.chance, script.size
    view, person = cv2.GaussianBlur(_view(script), (0, 0), height / 120), _person(chance)
    lines = [_words(chance, 3, 7) for _ in range(12)] if chance.random() < 0.5 else []
    return _noisy(script, iter([Stretch("speaker", chance.uniform(25, 40), _talking_head(view, person, lines))]), 2)


def speaker(script: Script) -> Iterator[Stretch]:
    """Slides or screens, in whose corner or beside which a speaker moves in a window."""
    chance, (width, height) = script.chance, script.size
    is_beside, across = chance.random() < 0.5, chance.uniform(0.16, 0.28)
    window_width = round(across * width)
    window = script.of_size(window_width, 3 * window_width // 4)
    talking = _talking_head(cv2.GaussianBlur(_view(window), (0, 0), 1), _person(chance), [])
    noise = np.random.default_rng(script.seed)
    page_width = width - window_width if is_beside else width
    page = script.of_size(page_width, page_width * height // width)
    top, left = (0, page_width) if is_beside else (chance.choice((8, height - window.size[1] - 8)), width - window_width - 8)

    def draw(inner: Draw, offset_s: float, time_s: float) -> Image:
        picture = np.zeros((height, width, 3), np.uint8)
        picture[(height - page.size[1]) // 2 :][: page.size[1], :page_width] = inner(time_s)
        shown = talking(offset_s + time_s)
        picture[top : top + window.size[1], left : left + window_width] = cv2.add(shown, noise.normal(0, 3, shown.shape), dtype=cv2.CV_8U)
        return picture

    return _over(chance.choice((few_slides, screens))(page), draw)


def _talking_head(view: Image, person: Person, lines: Sequence[str]) -> Draw:
    """Head and shoulders before a view, with or without subtitles."""
    height, width = view.shape[:2]
    large = replace(person, height=0.96)
    canvas = np.zeros((4 * height, width, 3), np.uint8)  # the speaker stands far below the picture
    size, foot = 0.96 * len(canvas), 0.97 * len(canvas)

    def draw(time_s: float) -> Image:
        canvas[:height] = view
        x, lean = 0.5 + 0.02 * float(np.sin(0.7 * time_s)), 0.015 * float(np.sin(1.7 * time_s))
        image = large.draw(canvas, x, lean)[:height].copy()
        middle, mouth = x * width + lean * 0.86 * size, round(foot - 0.86 * size)
        cv2.ellipse(
            image, (round(middle), mouth), (height // 22, 1 + round(height / 50 * abs(np.sin(6 * time_s)))), 0, 0, 360, (120, 40, 40), -1
        )
        for side in (-1, 1):
            cv2.circle(image, (round(middle + side * height / 15), mouth - height // 7), height // 60, (30, 30, 30), -1)
        if lines:
            line = lines[int(time_s / 2.5) % len(lines)]
            cv2.putText(
                image, line, (width // 6, round(0.93 * height)), cv2.FONT_HERSHEY_DUPLEX, height / 700, (255, 255, 255), 1, cv2.LINE_AA
            )
        return image

    return draw


def _moved(script: Script, *, zoom: float, shift: float) -> Iterator[Stretch]:
    """Photographs under a camera that zooms or pans slowly."""
    chance, (width, height) = script.chance, script.size
    for name in chance.sample(PHOTOGRAPHS, chance.randint(2, 4)):
        seconds = chance.uniform(8, 14)
        large = _filling(PhotoClip(name).picture, (round(1.3 * width), round(1.3 * height)))
        yield Stretch(f"photograph {name}", seconds, partial(_camera, large, script.size, zoom, shift, seconds))


def _camera(large: Image, size: tuple[int, int], zoom: float, shift: float, seconds: float, time_s: float) -> Image:
    share, (width, height) = time_s / seconds, size
    scale = 1.3 - (1.3 - 1.3 / zoom) * share if zoom != 1 else 1.1
    left, top = (0.5 * (1.3 - scale) + shift * (share - 0.5)) * width, 0.5 * (1.3 - scale) * height
    matrix = np.array([[scale, 0, left], [0, scale, top]])
    return np.asarray(
        cv2.warpAffine(large, matrix, size, flags=cv2.WARP_INVERSE_MAP | cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), np.uint8
    )


KINDS: dict[str, Callable[[Script], Iterator[Stretch]]] = {
    "slides-dark": partial(slides, is_dark=True),
    "slides-light": partial(slides, is_dark=False),
    "screens": screens,
    "inserts": inserts,
    "people": people,
    "head": head,
    "noise": noise,
    "lowrate": few_slides,
    "flicker": flicker,
    "cursor": cursor,
    "progress": progress,
    "zoom": partial(_moved, zoom=1.15, shift=0.0),
    "pan": partial(_moved, zoom=1.0, shift=0.12),
    "scroll": scroll,
    "browser": browser,
    "speaker": speaker,
    "drift": drift,
    "motion": motion,
    "recording": recording,
}


# ---------------------------------------------------------------- files


def build(kind: str, seed: int, folder: Path) -> Labelled:
    """The video of this kind and seed, from the folder if an earlier run left it there."""
    video = folder / f"{kind}-{seed}-v{VERSION}.{'webm' if kind == 'recording' else 'mp4'}"
    known = video.with_suffix(".json")
    if not known.exists():
        labels = _write(video, Script(kind, seed))
        partly = known.with_suffix(".part")
        partly.write_text(json.dumps(labels, indent=1))
        partly.replace(known)  # last: where it exists, the video is whole
    return Labelled(video, json.loads(known.read_text()))


def _write(video: Path, script: Script) -> Labels:
    spans: list[Span] = []
    number = 0
    width, height = script.size
    codec, options = "libx264", {"preset": "veryfast", "crf": str(script.coding.crf), "x264-params": f"keyint={script.coding.gop}"}
    if script.kind == "recording":
        codec, options = "libvpx", {"deadline": "realtime", "cpu-used": "-8", "b": "1500k", "g": str(script.coding.gop)}
    with av.open(str(video), "w") as container:
        stream = container.add_stream(codec, rate=script.fps, options=options)
        stream.width, stream.height, stream.pix_fmt, stream.time_base = width, height, "yuv420p", Fraction(1, script.fps)
        for stretch in KINDS[script.kind](script):
            first = number
            for count in range(max(1, round(stretch.duration_s * script.fps))):
                picture = fit(stretch.draw(count / script.fps), width, height)
                frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
                frame.pts, frame.time_base = number, Fraction(1, script.fps)
                container.mux(stream.encode(frame))
                number += 1
            if stretch.picture is not None:
                spans.append({"picture": stretch.picture, "start_s": first / script.fps, "end_s": number / script.fps})
        container.mux(stream.encode(None))
    return Labels(kind=script.kind, seed=script.seed, duration_s=number / script.fps, spans=spans)
