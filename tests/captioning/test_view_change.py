"""vip.captioning.view_change: where a still camera ends, where a fit counts no more, and pictures without corners"""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from tests.captioning.test_facts import plain, scene, view
from vip.captioning.view_change import view_change
from vip.protocols import ViewChange
from vip.records import Image

WHOLE = scene(1)
STILL = ViewChange("same view")


def turned(degrees: float) -> Image:
    """The middle of the scene, turned."""
    turn = cv2.getRotationMatrix2D((570.0, 480.0), degrees, 1.0)
    return view(np.asarray(cv2.warpAffine(WHOLE, turn, (900, 900), borderMode=cv2.BORDER_REFLECT), np.uint8))


def slope(low: float, high: float, *, down: bool = False) -> Image:
    """Grey that rises from the left to the right, or from the top down; it has no corners."""
    row = np.linspace(low, high, 180 if down else 320)
    picture = np.repeat(row[:, None], 320, 1) if down else np.repeat(row[None], 180, 0)
    return np.repeat(np.round(picture)[..., None], 3, 2).astype(np.uint8)


# ---------------------------------------------------------------- a still camera


@pytest.mark.parametrize(
    ("now", "kind"),
    [
        (view(WHOLE, 250 + 9, 300), "same view"),  # 1.4 % of the width
        (view(WHOLE, 250 - 9, 300), "same view"),
        (view(WHOLE, 250 + 20, 300), "view moved"),
        (view(WHOLE, 250 - 20, 300), "view moved"),
        (view(WHOLE, 250, 300 + 4), "same view"),  # 1.1 % of the height
        (view(WHOLE, 250, 300 - 4), "same view"),
        (view(WHOLE, 250, 300 + 10), "view moved"),  # 2.8 % of the height, though 1.6 % of the width
        (view(WHOLE, 250, 300 - 10), "view moved"),
        (view(WHOLE, zoom=1.02), "same view"),
        (view(WHOLE, zoom=1.08), "view moved"),
        (view(WHOLE, zoom=0.92), "view moved"),
        (turned(1.5), "same view"),
        (turned(-1.5), "same view"),
        (turned(5), "view moved"),
        (turned(-5), "view moved"),
    ],
)
def test_a_camera_that_moves_a_little_is_still_and_one_that_moves_more_is_not(now: Image, kind: str) -> None:
    change = view_change(view(WHOLE), now)
    assert change.kind == kind
    if kind == "same view":
        assert change == STILL, "no shift is told of a still camera"


@pytest.mark.parametrize(("degrees", "kind"), [(24, "view moved"), (-24, "view moved"), (36, "new view"), (-36, "new view")])
def test_a_camera_turns_no_further_than_30_degrees(degrees: float, kind: str) -> None:
    assert view_change(view(WHOLE), turned(degrees)).kind == kind


# ---------------------------------------------------------------- what is measured


@pytest.mark.parametrize(("x", "y", "zoom"), [(250, 300, 1.5), (330, 300, 1.25), (200, 345, 1.25), (290, 280, 0.85)])
def test_shift_and_zoom_are_those_of_the_middle_of_the_picture(x: int, y: int, zoom: float) -> None:
    change = view_change(view(WHOLE), view(WHOLE, x, y, zoom))
    assert change.kind == "view moved"
    assert change.zoom == pytest.approx(zoom, rel=0.02)
    assert change.shift_xy == pytest.approx(((250 - x) * zoom / 640, (300 - y) * zoom / 360), abs=0.015)


def test_backwards_everything_is_the_other_way_round() -> None:
    before, now = view(WHOLE), view(WHOLE, 330, 330, 1.25)
    there, back = view_change(before, now), view_change(now, before)
    assert back.zoom == pytest.approx(1 / there.zoom, rel=0.02)
    assert back.shift_xy == pytest.approx([-value / there.zoom for value in there.shift_xy], abs=0.015)
    assert there.shift_xy[0] < -0.1 < 0.1 < back.shift_xy[0]


def test_figures_have_three_digits() -> None:
    change = view_change(view(WHOLE), view(WHOLE, 333, 317, 1.13))
    for value in (*change.shift_xy, change.zoom):
        assert isinstance(value, float)
        assert value == round(value, 3)


def test_a_moved_view_may_be_darker() -> None:
    change = view_change(view(WHOLE), np.asarray(view(WHOLE, 346) * 0.5, np.uint8))
    assert (change.kind, change.shift_xy[0]) == ("view moved", pytest.approx(-0.15, abs=0.015))


@pytest.mark.parametrize("size", [(320, 180), (1280, 720), (650, 360)])
def test_either_picture_may_be_the_larger_one(size: tuple[int, int]) -> None:
    before, now = view(WHOLE), np.asarray(cv2.resize(view(WHOLE, 346), size, interpolation=cv2.INTER_AREA), np.uint8)
    assert view_change(before, now).shift_xy == pytest.approx((-0.15, 0), abs=0.02)
    assert view_change(now, before).shift_xy == pytest.approx((0.15, 0), abs=0.02)


def test_upright_pictures_are_measured_by_their_own_sides() -> None:
    upright = [np.ascontiguousarray(np.rot90(view(WHOLE, 250, y))) for y in (300, 336)]  # the top goes to the left
    change = view_change(*upright)
    assert (change.kind, change.shift_xy) == ("view moved", (pytest.approx(-0.1, abs=0.015), pytest.approx(0, abs=0.015)))


def test_pictures_stay_as_they_were() -> None:
    before, now = view(WHOLE), view(WHOLE, 346)
    copies = before.copy(), now.copy()
    view_change(before, now)
    assert np.array_equal(before, copies[0])
    assert np.array_equal(now, copies[1])


def test_what_was_drawn_by_chance_before_does_not_matter() -> None:
    found = set()
    for seed in (1, 2, 3):
        cv2.setRNGSeed(seed)
        found.add(repr(view_change(view(WHOLE), view(WHOLE, 300, 320, 1.3))))
    assert len(found) == 1


# ---------------------------------------------------------------- the same view with something else in it


def slide(text: str) -> Image:
    """A slide 640 px wide with a bar, a mark and a footer, as every slide of its talk has, and a few lines."""
    picture = np.full((360, 640, 3), 245, np.uint8)
    cv2.rectangle(picture, (0, 0), (639, 40), (30, 60, 120), -1)
    cv2.putText(picture, "Institute of Examples", (10, 28), cv2.FONT_HERSHEY_SIMPLEX, 0.8, (255, 255, 255), 2)
    cv2.circle(picture, (600, 20), 14, (250, 200, 0), -1)
    cv2.putText(picture, "A talk about talks, November", (20, 345), cv2.FONT_HERSHEY_SIMPLEX, 0.7, (90, 90, 90), 2)
    for number, line in enumerate(text.split("/")):
        cv2.putText(picture, line, (40, 110 + 50 * number), cv2.FONT_HERSHEY_SIMPLEX, 1.0, (20, 20, 20), 2)
    return picture


def with_a_disc(picture: Image, radius_px: int) -> Image:
    return np.asarray(cv2.circle(picture.copy(), (420, 200), radius_px, (30, 170, 60), -1), np.uint8)


def noisy(picture: Image) -> Image:
    noise = np.random.default_rng(3).normal(0, 6, picture.shape)
    return np.clip(picture + noise, 0, 255).astype(np.uint8)


def test_slides_of_one_template_are_one_view_that_shows_something_else() -> None:
    before, now = slide("Pumps fail early/Seals wear out/Heat"), slide("What we measured/Twelve sites/Two years/Costs")
    assert view_change(before, now) == ViewChange("same view", content_changed=True)
    assert view_change(before, before) == STILL


@pytest.mark.parametrize(("radius_px", "changed"), [(70, True), (12, False)])
def test_what_came_in_is_told_and_a_cursor_is_not(radius_px: int, changed: bool) -> None:
    before = view(WHOLE)
    assert view_change(before, with_a_disc(before, radius_px)).content_changed == changed
    assert view_change(with_a_disc(before, radius_px), before).content_changed == changed


@pytest.mark.parametrize("size", [(320, 180), (1280, 720)])
def test_noise_light_and_another_size_are_no_other_content(size: tuple[int, int]) -> None:
    now = np.asarray(cv2.resize(noisy(view(WHOLE)), size, interpolation=cv2.INTER_AREA), np.uint8)
    assert view_change(view(WHOLE), now) == STILL
    assert view_change(now, np.asarray(view(WHOLE) * 0.9, np.uint8)) == STILL


# ---------------------------------------------------------------- what does not count


@pytest.mark.parametrize("flip", [0, 1])
def test_a_mirrored_picture_is_a_new_view(flip: int) -> None:
    assert view_change(view(WHOLE), np.asarray(cv2.flip(view(WHOLE), flip), np.uint8)).kind == "new view"


@pytest.mark.parametrize(
    ("sizes", "kind"),
    [
        (((100, 100), (100, 104)), "same view"),
        (((100, 104), (100, 100)), "same view"),
        (((100, 100), (100, 107)), "new view"),
        (((100, 107), (100, 100)), "new view"),
        (((90, 160), (180, 320)), "same view"),
        (((90, 160), (160, 90)), "new view"),
    ],
)
def test_shapes_may_differ_by_a_twentieth(sizes: tuple[tuple[int, int], tuple[int, int]], kind: str) -> None:
    before, now = (plain("808080", *size) for size in sizes)
    assert view_change(before, now) == ViewChange(kind)  # type: ignore[arg-type]


# ---------------------------------------------------------------- without corners


@pytest.mark.parametrize(
    ("before", "now", "kind"),
    [
        ("808080", "8b8b8b", "same view"),  # 11 levels
        ("8b8b8b", "808080", "same view"),
        ("808080", "8d8d8d", "new view"),  # 13 levels
        ("8d8d8d", "808080", "new view"),
        ("ff0000", "4c4c4c", "same view"),  # red is as light as this grey, and blue darker
        ("0000ff", "4c4c4c", "new view"),
    ],
)
def test_plain_pictures_are_the_same_where_their_light_is(before: str, now: str, kind: str) -> None:
    assert view_change(plain(before), plain(now)).kind == kind


@pytest.mark.parametrize(
    ("before", "now", "kind"),
    [
        (slope(108, 148), slope(108, 148), "same view"),
        (slope(108, 148), slope(118, 158), "same view"),  # ten levels lighter
        (slope(108, 148), slope(123, 163), "new view"),
        (slope(108, 148), slope(128, 128), "new view"),  # as light, but one of the two is flat
        (slope(128, 128), slope(108, 148), "new view"),
        (slope(112, 144), slope(112, 144, down=True), "new view"),
        (slope(117, 139), slope(139, 117), "new view"),  # eleven levels apart, and the other way round
        (slope(120, 136), slope(136, 120), "same view"),  # so flat that this is noise
    ],
)
def test_slopes_are_the_same_where_they_rise_the_same_way(before: Image, now: Image, kind: str) -> None:
    assert view_change(before, now).kind == kind


@pytest.mark.parametrize(("height", "kind"), [(60, "new view"), (120, "view moved")])
def test_pictures_too_small_for_corners_are_compared_by_their_light(height: int, kind: str) -> None:
    before, now = (
        np.asarray(cv2.resize(view(WHOLE, x), (height * 16 // 9, height), interpolation=cv2.INTER_AREA), np.uint8) for x in (250, 330)
    )
    assert view_change(before, now).kind == kind
    assert view_change(now, now) == STILL
