"""What counts as another picture, on drawn pictures: text, inserts and people do; noise, blur of coding, flicker and sway do not."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from tests.extraction.analyses import picture
from vip.local_change import (
    ALL_CHANGED,
    ANOTHER_CONTENT,
    ANOTHER_CONTENT_ON_PAGE,
    ANOTHER_SOLID,
    LEAST_SHARE,
    STANDS_STILL,
    UNCHANGED,
    LocalChange,
    Restlessness,
    SmallPicture,
    change_of_thumbnails,
    local_change,
    prepared,
)
from vip.records import Image

LINES = ("the first of the lines", "a second that says more", "and then a third")
OTHERS = ("nothing like it was before", "whatever else there may be", "who would have thought")


def slide(*lines: str, size: tuple[int, int] = (640, 360)) -> Image:
    """Dark letters on white, a line of text each."""
    page = np.full((size[1], size[0], 3), 255, np.uint8)
    for row, line in enumerate(lines):
        cv2.putText(page, line, (40, 70 + 55 * row), cv2.FONT_HERSHEY_SIMPLEX, 1.1, (20, 20, 20), 2, cv2.LINE_AA)
    return page


def change(before: Image, now: Image) -> LocalChange:
    one, other = (SmallPicture(np.asarray(cv2.resize(image, (160, 90), interpolation=cv2.INTER_AREA), np.uint8)) for image in (before, now))
    return local_change(one, other)


def is_another(before: Image, now: Image) -> bool:
    found = change(before, now)
    return found.strength(STANDS_STILL) >= 1 and not found.is_progress


def noisy(image: Image, seed: int) -> Image:
    return np.asarray(np.clip(image + np.random.default_rng(seed).normal(0, 8, image.shape), 0, 255), np.uint8)


def moved(image: Image, right: int, down: int) -> Image:
    matrix = np.array([[1, 0, right], [0, 1, down]], np.float64)
    return np.asarray(cv2.warpAffine(image, matrix, image.shape[1::-1], borderMode=cv2.BORDER_REPLICATE), np.uint8)


def with_insert(image: Image) -> Image:
    laid = image.copy()
    laid[200:330, 30:250] = cv2.resize(picture(9), (220, 130), interpolation=cv2.INTER_AREA)
    return laid


def with_person(image: Image) -> Image:
    shown = image.copy()
    cv2.ellipse(shown, (400, 250), (55, 110), 0, 0, 360, (30, 60, 160), -1)
    cv2.circle(shown, (400, 110), 35, (220, 180, 150), -1)
    return shown


def test_other_words_on_the_same_page_are_another_picture() -> None:
    assert is_another(slide(*LINES), slide(*OTHERS))
    assert is_another(slide(*LINES), slide(LINES[0], OTHERS[1], OTHERS[2]))


def test_one_other_line_of_four_makes_another_slide() -> None:
    before, now = (slide(*LINES[:2], last, LINES[2]) for last in ("the tenth of March", "now by all means"))
    found = change(before, now)
    assert 0.2 < found.content < 0.3
    assert is_another(before, now)


@pytest.mark.parametrize("add", [with_insert, with_person])
def test_what_covers_a_view_is_another_picture_and_so_is_the_view_without_it(add: type) -> None:
    view = picture(3)
    assert is_another(view, add(view))
    assert is_another(add(view), view)


def test_a_line_that_joins_is_progress_and_one_that_goes_is_not() -> None:
    assert change(slide(*LINES[:2]), slide(*LINES)).is_progress
    assert not change(slide(*LINES), slide(*LINES[:2])).is_progress
    assert not change(slide(*LINES[:2]), slide(*OTHERS)).is_progress
    assert not change(picture(3), with_insert(picture(3))).is_progress


def terminal(lines: int) -> Image:
    """Small light letters on black, line by line close below each other, as in a terminal."""
    screen = np.full((360, 640, 3), 12, np.uint8)
    for row in range(lines):
        words = " ".join(("vnqdp gbowk", "tpoy zzb mm", "offqt iovhcnw", "twMjd tggcyl")[(row + word) % 4] for word in range(4))
        cv2.putText(screen, words, (20, 22 + 15 * row), cv2.FONT_HERSHEY_SIMPLEX, 0.5, (235, 235, 235), 1, cv2.LINE_AA)
    return screen


@pytest.mark.parametrize(("lines", "more"), [(1, 3), (4, 3), (4, 8)])
def test_small_lines_that_join_close_below_are_progress_though_they_touch_the_edge_of_the_one_above(lines: int, more: int) -> None:
    assert change(terminal(lines), terminal(lines + more)).is_progress
    assert not change(terminal(lines + more), terminal(lines)).is_progress


def test_a_person_in_plain_clothes_before_a_plain_wall_is_not_progress() -> None:
    """Flat where letters are flat too, and partly as light as the wall: the background does not keep its colour."""
    wall = np.full((360, 640, 3), (105, 100, 115), np.uint8)
    wall[235:] = (125, 170, 152)
    cv2.rectangle(wall, (470, 140), (630, 265), (30, 30, 70), -1)
    shown = wall.copy()
    for middle, axes, colour in (
        ((275, 205), (26, 58), (186, 148, 214)),
        ((244, 205), (6, 49), (186, 148, 214)),
        ((306, 205), (6, 49), (186, 148, 214)),
        ((275, 132), (16, 20), (120, 80, 55)),
        ((263, 300), (9, 52), (70, 55, 5)),
        ((287, 300), (9, 52), (70, 55, 5)),
    ):
        cv2.ellipse(shown, middle, axes, 0, 0, 360, colour, -1, cv2.LINE_AA)
    assert is_another(wall, shown)
    assert change(wall, shown).joined > 0.6, "most of what is new has a structure"


@pytest.mark.parametrize("ink", [(200, 0, 0), (0, 0, 200), (0, 110, 0)])
def test_lines_in_colour_that_join_are_progress(ink: tuple[int, int, int]) -> None:
    before, now = (
        np.asarray(255 - (255 - slide(*lines).astype(int)) * (255 - np.array(ink)) // 255, np.uint8) for lines in (LINES[:2], LINES)
    )
    assert change(before, now).is_progress


@pytest.mark.parametrize("is_page", [True, False])
def test_fine_lines_join_a_page_and_are_another_picture_on_a_view(is_page: bool) -> None:
    """As an insert of bricks does that is as grey as what it covers: the lines alone tell it."""
    grain = np.zeros((360, 640)) if is_page else cv2.GaussianBlur(np.random.default_rng(0).normal(0, 90, (360, 640)), (0, 0), 6)
    before = np.dstack([np.clip(128 + grain, 0, 255).astype(np.uint8)] * 3)
    now = before.copy()
    for row in range(180, 340, 14):
        cv2.line(now, (40, row), (300, row), (190, 190, 190), 2)
    for column in range(40, 300, 26):
        cv2.line(now, (column, 180), (column, 334), (190, 190, 190), 2)
    found = change(before, now)
    assert found.strength(STANDS_STILL) >= 1
    assert found.is_progress == is_page


def test_other_words_beside_the_same_photograph_are_another_picture() -> None:
    """The photograph is most of what the page shows."""

    def page(*lines: str) -> Image:
        shown = slide(*lines)
        shown[50:350, 330:630] = cv2.resize(picture(9), (300, 300), interpolation=cv2.INTER_AREA)
        return shown

    assert is_another(page("of all this", "and of that", "or not"), page("hardly any", "will be ill", "known"))
    assert not is_another(page("of all this", "and of that"), noisy(page("of all this", "and of that"), 1))
    assert change(page("of all this"), page("of all this", "and of that")).is_progress


@pytest.mark.parametrize(("row", "counts"), [(350, False), (275, True)])
def test_another_subtitle_below_the_same_photograph_is_the_same_picture(row: int, counts: bool) -> None:
    def subtitled(line: str) -> Image:
        shown = np.zeros((360, 640, 3), np.uint8)
        shown[10:210, 80:560] = cv2.resize(picture(9), (480, 200), interpolation=cv2.INTER_AREA)
        cv2.putText(shown, line, (60, row), cv2.FONT_HERSHEY_SIMPLEX, 0.9, (235, 235, 235), 2, cv2.LINE_AA)
        return shown

    assert is_another(subtitled(LINES[0]), subtitled(OTHERS[0])) == counts, "higher up it is no subtitle"


def test_an_insert_on_an_empty_page_is_not_progress() -> None:
    assert is_another(slide(LINES[0]), with_insert(slide(LINES[0])))


@pytest.mark.parametrize("page", [slide(*LINES), picture(3), picture(4)])
def test_noise_flicker_and_coding_are_the_same_picture(page: Image) -> None:
    brighter = np.asarray(cv2.convertScaleAbs(page, alpha=0.93), np.uint8)
    _, coded = cv2.imencode(".jpg", page, [cv2.IMWRITE_JPEG_QUALITY, 25])
    for other in (noisy(page, 1), brighter, np.asarray(cv2.imdecode(coded, cv2.IMREAD_COLOR), np.uint8)):
        assert not is_another(noisy(page, 2), other)


def test_a_cursor_is_the_same_picture() -> None:
    pointed = slide(*LINES)
    cv2.circle(pointed, (500, 300), 9, (0, 0, 0), -1)
    assert not is_another(slide(*LINES), pointed)


def test_what_moves_a_little_is_the_same_picture() -> None:
    view = picture(5)
    assert not is_another(view, moved(view, 10, 4))
    assert not is_another(with_person(view), np.where(with_person(view) != view, moved(with_person(view), 12, 0), view).astype(np.uint8))


@pytest.mark.parametrize("seed", [1, 3, 5])
def test_a_camera_that_pans_by_a_sixteenth_of_the_picture_sees_no_other_one_whatever_joins_at_the_edge(seed: int) -> None:
    wide = np.concatenate([picture(seed), picture(seed + 20)], axis=1)
    before, now = (wide[:, left : left + 640] for left in (100, 140))
    assert not is_another(before, now)
    assert not is_another(now, before)
    assert change(before, now).share < 0.05


def test_a_change_has_to_be_twice_what_changes_anyway() -> None:
    found = change(picture(3), with_insert(picture(3)))
    assert found.strength(Restlessness(found.solid / 2, 0.5)) == pytest.approx(1)
    assert found.strength(Restlessness(found.solid, 0.5)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("found", "is_another"),
    [
        ({"share": 0.5, "solid": ANOTHER_SOLID}, True),
        ({"share": 0.5, "solid": 0.9 * ANOTHER_SOLID}, False),
        ({"share": 0.5, "content": ANOTHER_CONTENT}, True),
        ({"share": 0.5, "content": 0.9 * ANOTHER_CONTENT}, False),
        ({"share": LEAST_SHARE, "content": 1.0}, True),
        ({"share": 0.9 * LEAST_SHARE, "content": 1.0}, False),
        ({"share": 0.9 * LEAST_SHARE, "solid": 1.0, "content": 1.0}, True),
        ({"share": 0.5, "content_above": 1.0}, False),
        ({"share": 0.5, "content_above": ANOTHER_CONTENT_ON_PAGE, "is_page": True}, True),
        ({"share": 0.5, "content_above": 0.9 * ANOTHER_CONTENT_ON_PAGE, "is_page": True}, False),
    ],
)
def test_a_piece_or_content_makes_another_picture_and_less_than_a_cursor_takes_both(found: dict[str, float], is_another: bool) -> None:
    assert (replace(UNCHANGED, **found).strength(STANDS_STILL) >= 1) == is_another  # type: ignore[arg-type]


@pytest.mark.parametrize(("field", "limit"), [("gone", 0.12), ("joined", 0.4), ("background_left", 0.75)])
@pytest.mark.parametrize("is_page", [True, False])
def test_lines_that_join_leave_what_was_there(field: str, limit: float, is_page: bool) -> None:
    joins = replace(UNCHANGED, share=0.5, gone=0.0, joined=1.0, background_left=1.0, is_page=is_page)
    assert joins.is_progress == is_page
    assert not replace(joins, **{field: limit}).is_progress


@pytest.mark.parametrize(
    ("gone", "joined", "is_progress"), [(0.03, 0.45, True), (0.03, 0.39, False), (0.05, 0.55, False), (0.05, 0.65, True)]
)
def test_what_is_written_by_hand_joins_where_nothing_went(gone: float, joined: float, is_progress: bool) -> None:
    """It lies so close to what was written that half of what changed was no empty background."""
    assert replace(UNCHANGED, share=0.5, gone=gone, joined=joined, is_page=True).is_progress == is_progress


def test_equal_pictures_did_not_change_and_other_shapes_changed_all() -> None:
    assert change(picture(1), picture(1)) == UNCHANGED
    one, other = SmallPicture(np.zeros((90, 160, 3), np.uint8)), SmallPicture(np.zeros((160, 90, 3), np.uint8))
    assert local_change(one, other) == ALL_CHANGED


@pytest.mark.parametrize(("colour", "share"), [((120, 122, 105), 0), ((134, 115, 129), 1)])
def test_a_colour_that_is_ten_levels_off_in_cielab_is_another_one(colour: tuple[int, int, int], share: int) -> None:
    """The first is 9 levels from grey, the second exactly 10."""
    grey, coloured = (SmallPicture(np.full((90, 160, 3), of, np.uint8)) for of in (120, colour))
    assert local_change(grey, coloured).share == share


@pytest.mark.parametrize("shape", [(1, 160, 3), (9, 16, 3), (31, 31, 3), (90, 160, 3)])
def test_pictures_of_any_size_are_compared(shape: tuple[int, int, int]) -> None:
    one, other = (SmallPicture(np.random.default_rng(seed).integers(0, 256, shape, np.uint8)) for seed in (1, 2))
    found = local_change(one, other)
    assert 0.5 < found.share <= 1


def test_a_thumbnail_that_cannot_be_decoded_is_all_changed() -> None:
    _, jpeg = cv2.imencode(".jpg", picture(1))
    assert change_of_thumbnails(jpeg.tobytes(), b"no picture") == change_of_thumbnails(b"", jpeg.tobytes()) == ALL_CHANGED
    assert change_of_thumbnails(jpeg.tobytes(), jpeg.tobytes()) == UNCHANGED


# ---------------------------------------------------------------- places that do not count


def with_alpha(image: Image, ignored: slice) -> bytes:
    """A PNG of 160 px whose rows of this slice are transparent."""
    small = np.asarray(cv2.resize(image, (160, 90), interpolation=cv2.INTER_AREA), np.uint8)
    alpha = np.full((90, 160), 255, np.uint8)
    alpha[ignored] = 0
    return cv2.imencode(".png", np.dstack([small[..., ::-1], alpha]))[1].tobytes()


@pytest.mark.parametrize(("ignored", "counts"), [(slice(0, 0), True), (slice(45, 90), False)])
def test_what_changes_where_a_thumbnail_is_transparent_does_not_count(ignored: slice, counts: bool) -> None:
    one, other = slide(*LINES), with_insert(slide(*LINES))  # it lies in the lower half
    found = change_of_thumbnails(with_alpha(one, ignored), with_alpha(other, ignored))
    assert (found.strength(STANDS_STILL) >= 1) == counts
    assert (found == UNCHANGED) != counts


def test_what_is_transparent_is_no_content_either() -> None:
    before, now = slide(*LINES), slide(OTHERS[0], *LINES[1:])
    whole, half = (change_of_thumbnails(with_alpha(before, part), with_alpha(now, part)) for part in (slice(0, 0), slice(25, 90)))
    assert 0 < 1.2 * whole.content < half.content
    assert 0 < 1.2 * whole.gone < half.gone


@pytest.mark.parametrize("channels", [1, 3])
def test_a_thumbnail_without_transparency_counts_whole(channels: int) -> None:
    small = np.asarray(cv2.resize(slide(*LINES), (160, 90), interpolation=cv2.INTER_AREA), np.uint8)
    png = cv2.imencode(".png", small[..., 0] if channels == 1 else small)[1].tobytes()
    found = prepared(png)
    assert found is not None
    assert found.ignored is None
    assert found.rgb.shape == (90, 160, 3)
