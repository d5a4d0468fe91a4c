"""What of a picture changed: whether two frames of one view show another picture though their vectors say that they are alike.

The cosine of two slides of one template is 0.95 to 0.99, that of a room with and without a person in it hardly less. So the two
pictures are compared place by place, at 160 px (the thumbnails, which a run keeps): a place is unchanged where the structure around it
(the second factor of SSIM; Wang et al., 2004) and its mean colour are the same, where it was or where optical flow says that it went
(DIS; Kroeger et al., 2016). Noise, coding at a low rate, flicker, a swaying head and a slow camera leave structure as it is; flow cannot
make other letters, an insert or a person out of what was there.

In: two analyses of frames. Out: `LocalChange`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from vip.cielab import cielab_of_picture
from vip.ranks import median

WINDOW_PX = 5
STRUCTURE_NOISE = 60.0  # added to the variances, so that noise on a flat wall is no structure
SAME_STRUCTURE = 0.7
SAME_LIGHTNESS, SAME_CHROMA = 14.0, 10.0  # of 255, in the mean of a window
MOST_FLICKER = 25.0  # of 255: lightness by which a whole picture may differ
CODING_LEVELS, CODING_CONTRAST = 5.0, 0.5
"""Of 255, and of the standard deviation of a window: what coding and a little light change in its mean. In 27 clips copies differ by up to
0.86 of the two together, people and bottles that moved a little by 1.14 and more."""
CONTENT_VARIANCE = 100.0  # of a window that is no flat background
ANOTHER_SOLID = 0.04  # share of the picture that changed in one piece: an insert, a person
SOLID_PX = 11  # of 160: a piece is at least so wide everywhere; what a moving head uncovers is a thin seam
ANOTHER_CONTENT, ANOTHER_CONTENT_ON_PAGE = 0.3, 0.2  # share of the content that changed: a few words are much of a page with a few words
BLOCK_PX = 19  # of 160: content so wide everywhere is a photograph, no line of text
LEAST_LETTERS = 0.02  # share of the picture that is content beside photographs, from which on that is looked at alone
SUBTITLES = 0.2  # of the height, where such letters do not count
LEAST_BACKGROUND = 0.25  # share of the picture that is flat where content counts: seams of motion are much of a picture full of detail
LEAST_SHARE = 0.02  # of the picture; below it is a cursor, a clock or a page number
TIMES_RESTLESS = 2.0  # a change counts from so many times what changes from frame to frame anyway
KEPT_CONTENT = 0.12  # share of the content that may go while lines join
NOTHING_GONE = 0.04  # of it; of 1,000 pairs of slides and screens that differ, none shows so much of the other
MOSTLY_JOINED, PARTLY_JOINED = 0.6, 0.4
"""Share of what changed that has to be new on an empty background, where lines join, and where nothing went: what one writes by hand lies
close to what was written."""
INK_LEAVES = 0.75  # share of the background that letters leave beside them as it was (0.88 and more); inserts and people cover it (0.61)
PAGE_VARIANCE = 1.0  # of most windows of the background that lines join on (0.2 at most in 222 pairs); a calm view of nature has 2.2
FINEST_SCALE = 1  # of the flow: at half of the 160 px, so that letters do not become other letters
PNG = b"\x89PNG"  # thumbnails that were painted, which may have transparent places; all others are JPEG
LEAST_SIDE_PX = 32  # a smaller picture has no flow
PREPARED = 48  # pictures kept ready for being compared: 370 KB each
COMPARED = 4096  # pairs remembered, since frames are compared when candidates are sought and again when keyframes are selected
NOTHING_LEFT = 0.95  # share of the picture that changed, from which on nothing is sought elsewhere
SOLID, BLOCK = (np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side)), np.uint8) for side in (SOLID_PX, BLOCK_PX))
BESIDE = np.ones((3, 3), np.uint8)  # a pixel and those around it

Plane = npt.NDArray[np.float32]  # (H, W)
Mask = npt.NDArray[np.bool_]  # (H, W)


@dataclass(frozen=True, slots=True)
class LocalChange:
    """How a picture differs from one before it; shares from 0 to 1."""

    share: float
    """Of the picture that changed."""
    solid: float
    """Of the picture that changed in pieces that are nowhere thin."""
    content: float
    """Of what is no flat background in either picture, the part that changed, or of the letters beside photographs; 0 in pictures full of
    detail."""
    content_above: float
    """The same above the lowest fifth of the picture, where subtitles stand."""
    gone: float
    """Of the content of the earlier picture, the part that the later one does not show, but for the thin edges beside lines that joined."""
    joined: float
    """Of what changed, the part that is content where there was background."""
    background_left: float
    """Of the background where content joined, the part that is as it was, or beside what is; 1 where none did."""
    is_page: bool
    """Whether the background of the earlier picture is plain, as that of a slide or a terminal."""

    @property
    def is_progress(self) -> bool:
        """Whether lines joined what was there and stays: a bullet on a slide, output in a terminal, strokes on a board."""
        joined = PARTLY_JOINED if self.gone < NOTHING_GONE else MOSTLY_JOINED
        return self.is_page and self.gone < KEPT_CONTENT and self.joined > joined and self.background_left > INK_LEAVES

    def strength(self, restless: Restlessness) -> float:
        """How much it is of what makes another picture where so much changes all the time: from 1 on it is one."""
        solid = self.solid / max(ANOTHER_SOLID, TIMES_RESTLESS * restless.solid)
        content = self.content / max(ANOTHER_CONTENT, TIMES_RESTLESS * restless.content)
        if self.is_page:
            content = max(content, self.content_above / max(ANOTHER_CONTENT_ON_PAGE, TIMES_RESTLESS * restless.content))
        return max(solid, content) if self.share >= LEAST_SHARE else min(solid, content)


@dataclass(frozen=True, slots=True)
class Restlessness:
    """How much changes from frame to frame while nothing happens: a speaker sways, a camera moves."""

    solid: float
    content: float

    @property
    def is_still(self) -> bool:
        """Whether so little changes that what does decides alone."""
        return self.solid < ANOTHER_SOLID / TIMES_RESTLESS and self.content < ANOTHER_CONTENT / TIMES_RESTLESS


STANDS_STILL = Restlessness(0.0, 0.0)
UNCHANGED = LocalChange(share=0.0, solid=0.0, content=0.0, content_above=0.0, gone=0.0, joined=0.0, background_left=1.0, is_page=False)
ALL_CHANGED = LocalChange(share=1.0, solid=1.0, content=1.0, content_above=1.0, gone=1.0, joined=0.0, background_left=0.0, is_page=False)


class SmallPicture:
    """A thumbnail, prepared for being compared.

    Args:
        ignored: the places that do not count as a change; None where all do.
    """

    def __init__(self, rgb: npt.NDArray[np.uint8], ignored: Mask | None = None) -> None:
        self.rgb = rgb
        self.ignored = ignored
        lab = cielab_of_picture(rgb)
        self.lightness: Plane = lab[..., 0].astype(np.float32)
        self.mean = window_mean(self.lightness)
        self.variance: Plane = np.maximum(window_mean(self.lightness * self.lightness) - self.mean * self.mean, 0)
        self.colour = np.ascontiguousarray(lab[..., 1:])
        self.chroma: Plane = window_mean(self.colour.astype(np.float32))

    @cached_property
    def has_content(self) -> Mask:
        return self.variance > CONTENT_VARIANCE


@lru_cache(maxsize=COMPARED)
def change_of_thumbnails(before: bytes, now: bytes) -> LocalChange:
    """Return what changed from one thumbnail to a later one; everything where one cannot be decoded."""
    one, other = prepared(before), prepared(now)
    return ALL_CHANGED if one is None or other is None else local_change(one, other)


@lru_cache(maxsize=PREPARED)
def prepared(thumbnail: bytes) -> SmallPicture | None:
    """Return the picture of a thumbnail, without the places where it is transparent; None where it cannot be decoded."""
    encoded = np.frombuffer(thumbnail, np.uint8)
    bgr = cv2.imdecode(encoded, cv2.IMREAD_COLOR) if thumbnail else None
    if bgr is None:
        return None
    channels = cv2.imdecode(encoded, cv2.IMREAD_UNCHANGED) if thumbnail.startswith(PNG) else None
    ignored = channels[..., 3] == 0 if channels is not None and channels.shape[2:] == (4,) else None
    return SmallPicture(np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB), np.uint8), ignored)


def local_change(before: SmallPicture, now: SmallPicture) -> LocalChange:
    """Return what changed from one picture to a later one of the same video."""
    if before.lightness.shape != now.lightness.shape:
        return ALL_CHANGED
    flicker = _flicker(before, now)
    lost, new = _lost_and_new(before, now, flicker)
    had, has = before.has_content, now.has_content
    if now.ignored is not None:
        lost, new, had, has = (mask & ~now.ignored for mask in (lost, new, had, has))
    if not lost.any() and not new.any():
        return UNCHANGED
    joined = new & has & ~had
    as_it_was = np.abs(now.lightness - before.mean - flicker) < SAME_LIGHTNESS
    as_it_was &= _is_near(now.colour, before.chroma)
    content = had | has
    has_background = content.mean() <= 1 - LEAST_BACKGROUND
    parts = [content, *_letters(content)] if has_background else []
    above = slice(round((1 - SUBTITLES) * len(content)))
    return LocalChange(
        share=max(float(lost.mean()), float(new.mean())),
        solid=max(_solid(lost), _solid(new)),
        content=max((_share(of, part) for of in (lost, new) for part in parts), default=0.0),
        content_above=max(_share(lost[above], content[above]), _share(new[above], content[above])) if has_background else 0.0,
        gone=float(_opened(lost & had, BESIDE).sum()) / max(1, int(had.sum())),
        joined=_share(joined, new),
        background_left=_share(cv2.dilate(as_it_was.astype(np.uint8), BESIDE) > 0, joined, empty=1.0),
        is_page=not had.all() and median(before.variance[~had]) < PAGE_VARIANCE,
    )


@lru_cache(maxsize=COMPARED)
def is_copy(before: bytes, now: bytes) -> bool:
    """Return whether nothing but coding and a little light tells two thumbnails apart: at no place anything moved, appeared or left."""
    one, other = prepared(before), prepared(now)
    if one is None or other is None or one.lightness.shape != other.lightness.shape:
        return False
    light = float((one.mean * other.mean).sum() / max(1.0, (one.mean * one.mean).sum()))
    most = CODING_LEVELS + CODING_CONTRAST * np.sqrt(np.maximum(one.variance, other.variance))
    return bool((_unchanged(one, other, _flicker(one, other)) & (np.abs(other.mean - light * one.mean) < most)).all())


def _flicker(before: SmallPicture, now: SmallPicture) -> float:
    """Return by how much lighter the whole picture became; 0 where it is another one."""
    flicker = median(now.mean - before.mean)
    return flicker if abs(flicker) < MOST_FLICKER else 0.0


def _lost_and_new(before: SmallPicture, now: SmallPicture, flicker: float) -> tuple[Mask, Mask]:
    """Return where each of two pictures shows what the other does not, there or where it went."""
    lost = new = ~_unchanged(before, now, flicker)
    if LEAST_SHARE < lost.mean() < NOTHING_LEFT and min(lost.shape) >= LEAST_SIDE_PX:
        lost = lost & ~_unchanged(before, _moved_to(before, now), flicker)
        new = new & ~_unchanged(_moved_to(now, before), now, flicker)
    return lost, new


def _unchanged(before: SmallPicture, now: SmallPicture, flicker: float) -> Mask:
    """Return where two pictures show the same."""
    same = structure_of(before, now) > SAME_STRUCTURE
    same &= np.abs(now.mean - before.mean - flicker) < SAME_LIGHTNESS
    return np.asarray(same & _is_near(now.chroma, before.chroma), bool)


def structure_of(before: SmallPicture, now: SmallPicture) -> Plane:
    """Return how alike two pictures of one size are in the structure around each place, whatever its lightness: 1 where it is the same."""
    covariance = window_mean(before.lightness * now.lightness) - before.mean * now.mean
    return np.asarray((2 * covariance + STRUCTURE_NOISE) / (before.variance + now.variance + STRUCTURE_NOISE), np.float32)


def _is_near(colour: Plane | npt.NDArray[np.uint8], other: Plane) -> Mask:
    """Return where both components of two colours are alike."""
    near = np.abs(colour - other) < SAME_CHROMA
    return np.asarray(near[..., 0] & near[..., 1], bool)


def _moved_to(place: SmallPicture, picture: SmallPicture) -> SmallPicture:
    """Return a picture with everything where it is in the other one, as far as it can be found there."""
    flow = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_ULTRAFAST)
    flow.setFinestScale(FINEST_SCALE)
    grey, its_grey = (cv2.cvtColor(one.rgb, cv2.COLOR_RGB2GRAY) for one in (place, picture))
    across, down = cv2.split(flow.calc(grey, its_grey, np.zeros((*grey.shape, 2), np.float32)))
    height, width = grey.shape
    x, y = np.arange(width, dtype=np.float32)[None, :] + across, np.arange(height, dtype=np.float32)[:, None] + down
    return SmallPicture(np.asarray(cv2.remap(picture.rgb, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), np.uint8))


def _solid(mask: Mask) -> float:
    """Share of the picture in pieces of the mask that are nowhere thin."""
    return float(_opened(mask, SOLID).mean())


def _opened(mask: Mask, shape: npt.NDArray[np.uint8]) -> Mask:
    """Return the pieces of the mask that the shape fits into."""
    return cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_OPEN, shape) > 0


def _letters(content: Mask) -> list[Mask]:
    """Return the letters in no photograph or subtitle, where there are some: slides with one picture and other words are other slides."""
    count, pieces = cv2.connectedComponents(content.astype(np.uint8))
    is_block = np.zeros(count, bool)
    is_block[pieces[_opened(content, BLOCK)]] = True
    letters = content & ~is_block[pieces]
    letters[round((1 - SUBTITLES) * len(letters)) :] = False
    return [letters] if letters.mean() >= LEAST_LETTERS else []


def window_mean(plane: Plane, side_px: int = WINDOW_PX) -> Plane:
    """Return the mean of the window around each pixel."""
    return np.asarray(cv2.boxFilter(plane, -1, (side_px, side_px), borderType=cv2.BORDER_REFLECT_101), np.float32)


def _share(of: Mask, where: Mask, *, empty: float = 0.0) -> float:
    """Share of the places in `where` that are in `of`."""
    count = int(where.sum())
    return float((of & where).sum()) / count if count else empty
