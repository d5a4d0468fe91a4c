"""Colours, the change of view, and the statements made of them, measured on pictures whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from vip.captioning.colours import TABLE, colourfulness, dominant_colours, names_of
from vip.captioning.facts import describe_detection, grounding, measure
from vip.captioning.view_change import view_change
from vip.protocols import KeyframeFacts, ViewChange
from vip.records import Detection, Image, Keyframe, Quality

QUALITY = Quality(sharpness=312.4, brightness=0.45, contrast=0.2)
PERSON = Detection(label="person", score=0.824, box_xyxy=(0.0, 0.3, 0.3, 1.0), source="opencv")
FACTS = KeyframeFacts(640, 360, 1.0, QUALITY, (PERSON,), (("blue", 0.41), ("beige", 0.22)), 0.31, "opencv", None)

# Names of the W3C (CSS Color 4) for colours, and what a person who knows only plain names would call them.
CSS = {
    "navy": ("000080", "dark blue"),
    "skyblue": ("87ceeb", "light blue"),
    "royalblue": ("4169e1", "blue"),
    "crimson": ("dc143c", "red"),
    "maroon": ("800000", "dark red"),
    "hotpink": ("ff69b4", "pink"),
    "salmon": ("fa8072", "pink"),
    "darkorange": ("ff8c00", "orange"),
    "gold": ("ffd700", "yellow"),
    "saddlebrown": ("8b4513", "brown"),
    "sienna": ("a0522d", "brown"),
    "tan": ("d2b48c", "beige"),
    "wheat": ("f5deb3", "beige"),
    "forestgreen": ("228b22", "green"),
    "palegreen": ("98fb98", "light green"),
    "olive": ("808000", "olive"),
    "teal": ("008080", "turquoise"),
    "indigo": ("4b0082", "purple"),
    "orchid": ("da70d6", "purple"),
    "silver": ("c0c0c0", "light grey"),
    "gray": ("808080", "grey"),
    "snow": ("fffafa", "white"),
    "black": ("000000", "black"),
}


def plain(colour: str, height: int = 72, width: int = 128) -> Image:
    return np.full((height, width, 3), tuple(bytes.fromhex(colour)), np.uint8)


def scene(seed: int, side: int = 900) -> Image:
    """A large picture full of shapes, of which views are cut out."""
    random = np.random.default_rng(seed)
    image = np.full((side, side, 3), 90, np.uint8)
    for _ in range(260):
        x, y, size = (int(value) for value in random.integers(0, side, 3))
        colour = tuple(int(value) for value in random.integers(0, 256, 3))
        if size % 2:
            cv2.circle(image, (x, y), 8 + size // 20, colour, -1)
        else:
            cv2.rectangle(image, (x, y), (x + 15 + size // 12, y + 40), colour, -1)
    return image


def view(image: Image, x: int = 250, y: int = 300, zoom: float = 1.0) -> Image:
    """640x360 of the scene around (x + 320, y + 180); a zoom above 1 shows less of it, larger."""
    width, height = 640 / zoom, 360 / zoom
    left, top = x + 320 - width / 2, y + 180 - height / 2
    scale = np.array([[zoom, 0, -left * zoom], [0, zoom, -top * zoom]])
    return np.asarray(cv2.warpAffine(image, scale, (640, 360), flags=cv2.INTER_AREA), np.uint8)


# ---------------------------------------------------------------- colours


@pytest.mark.parametrize("css", CSS)
def test_colours_of_the_web_have_the_plain_names_that_people_use(css: str) -> None:
    code, name = CSS[css]
    assert dominant_colours(plain(code)) == ((name, 1.0),)


def test_shares_are_those_of_the_areas() -> None:
    image = plain("4169e1", 100, 100)
    image[:30] = tuple(bytes.fromhex("d2b48c"))
    image[30:50] = 0
    assert dominant_colours(image) == (("blue", 0.5), ("beige", 0.3), ("black", 0.2))


def test_shades_of_one_name_are_one_entry() -> None:
    image = np.vstack([plain("228b22"), plain("008000"), plain("32a032")])
    assert dominant_colours(image) == (("green", 1.0),)


def test_small_areas_are_left_out() -> None:
    image = plain("ffffff", 100, 100)
    image[:3] = (255, 0, 0)
    assert dominant_colours(image)[0] == ("white", 0.97)
    assert len(dominant_colours(image)) == 1


def test_an_area_of_a_twentieth_is_not_small() -> None:
    image = plain("ffffff", 100, 100)
    image[:5] = (255, 0, 0)
    assert dominant_colours(image) == (("white", 0.95), ("red", 0.05))


def striped(*colours: str) -> Image:
    """Stripes of the same size, one below the other."""
    return np.vstack([plain(colour, 4, 100) for colour in colours])


def test_five_colours_are_named_and_of_equal_ones_the_first_by_name() -> None:
    image = striped("ffffff", "ff0000", "0000ff", "000000", "800080", "ffff00")
    assert dominant_colours(image) == (("black", 0.167), ("blue", 0.167), ("purple", 0.167), ("red", 0.167), ("white", 0.167))


def test_where_all_areas_are_small_the_first_is_named() -> None:
    assert dominant_colours(striped(*(shades[0] for shades in TABLE.values()))) == (("beige", 0.048),)


@settings(max_examples=30, deadline=None)
@given(arrays(np.uint8, st.tuples(st.integers(1, 40), st.integers(1, 40), st.just(3))))
def test_any_picture_has_up_to_five_different_colours_that_fit_into_it(image: Image) -> None:
    found = dominant_colours(image)
    names = [name for name, _ in found]
    assert 1 <= len(found) <= 5
    assert len(set(names)) == len(names)
    assert set(names) <= set(TABLE)
    assert sum(share for _, share in found) <= 1.003
    assert [share for _, share in found] == sorted((share for _, share in found), reverse=True)
    assert found == dominant_colours(image.copy())
    assert 0 <= colourfulness(image) <= 1


def test_every_entry_of_the_table_has_its_own_name() -> None:
    for name, shades in TABLE.items():
        colours = np.array([list(bytes.fromhex(shade)) for shade in shades], np.float32) / 255
        assert set(names_of(colours)) == {name}


def test_grey_has_no_colour_and_noise_in_black_is_none() -> None:
    assert colourfulness(plain("808080")) == 0
    assert colourfulness(plain("190000")) == 0
    assert colourfulness(plain("1b0000")) == 1
    assert colourfulness(plain("ff0000")) == 1


# ---------------------------------------------------------------- change of view


def test_the_same_picture_is_the_same_view() -> None:
    assert view_change(view(scene(1)), view(scene(1))) == ViewChange("same view")


def test_something_that_moves_does_not_move_the_view() -> None:
    before, now = view(scene(1)), view(scene(1))
    before[120:300, 40:170] = (200, 40, 40)
    now[120:300, 420:550] = (200, 40, 40)
    assert view_change(before, now).kind == "same view"


def test_another_exposure_does_not_move_the_view() -> None:
    now = view(scene(1))
    assert view_change(np.asarray(now * 0.6, np.uint8), now).kind == "same view"


@pytest.mark.parametrize(("dx", "dy"), [(96, 0), (-96, 0), (0, 72), (-64, 36)])
def test_a_moved_view_says_where_its_content_went(dx: int, dy: int) -> None:
    change = view_change(view(scene(1)), view(scene(1), 250 + dx, 300 + dy))
    assert change.kind == "view moved"
    assert change.shift_xy == pytest.approx((-dx / 640, -dy / 360), abs=0.015)
    assert change.zoom == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("zoom", [1.3, 0.8])
def test_a_zoom_is_measured(zoom: float) -> None:
    change = view_change(view(scene(1)), view(scene(1), zoom=zoom))
    assert change.kind == "view moved"
    assert change.zoom == pytest.approx(zoom, rel=0.03)


@pytest.mark.parametrize("turned_around", [False, True])
def test_a_picture_without_corners_is_another_view_than_one_with_many(turned_around: bool) -> None:
    flat, textured = np.full((360, 640, 3), 128, np.uint8), view(scene(1))
    before, now = (textured, flat) if turned_around else (flat, textured)
    assert view_change(before, now).kind == "new view"


def test_before_soft_ground_what_moves_does_not_move_the_view() -> None:
    """All corners are on what moves, and the ground shows that the camera did not."""
    wave = 127 + 127 * np.cos(np.linspace(0, 4 * np.pi, 640))
    ground = np.repeat(wave[None, :, None], 360, 0).repeat(3, 2).astype(np.uint8)
    before, now = ground.copy(), ground.copy()
    thing = scene(4, 200)[:150, :150]
    before[100:250, 200:350] = thing
    now[100:250, 240:390] = thing
    assert view_change(before, now).kind == "same view"


def test_another_scene_is_a_new_view() -> None:
    assert view_change(view(scene(1)), view(scene(2))) == ViewChange("new view")


def test_a_logo_that_stays_does_not_make_two_scenes_one() -> None:
    before, now = view(scene(1)), view(scene(2))
    logo = scene(3, 120)[:60]
    for image in (before, now):
        image[10:70, 10:130] = logo
    assert view_change(before, now).kind == "new view"


def test_a_ticker_that_stays_does_not_make_two_scenes_one() -> None:
    before, now = (cv2.GaussianBlur(view(scene(seed)), (0, 0), 8) for seed in (6, 7))  # few corners of their own
    ticker = scene(3)[:50, :640]
    for image in (before, now):
        image[:50], image[-50:] = ticker, ticker[::-1]
    assert view_change(before, now).kind == "new view"


def test_a_turned_view_is_not_the_same_view() -> None:
    turn = cv2.getRotationMatrix2D((450, 450), 8, 1.0)
    turned = np.asarray(cv2.warpAffine(scene(1), turn, (900, 900)), np.uint8)
    assert view_change(view(scene(1)), view(turned)).kind == "view moved"


@pytest.mark.parametrize(("before", "now", "kind"), [("000000", "000000", "same view"), ("000000", "ffffff", "new view")])
def test_pictures_without_corners_are_compared_by_their_light(before: str, now: str, kind: str) -> None:
    assert view_change(plain(before), plain(now)).kind == kind


def test_soft_pictures_without_corners_are_compared_by_their_areas() -> None:
    across = np.repeat(np.linspace(0, 255, 640)[None, :, None], 360, 0).repeat(3, 2).astype(np.uint8)
    down = np.repeat(np.linspace(0, 255, 360)[:, None, None], 640, 1).repeat(3, 2).astype(np.uint8)
    assert view_change(across, np.clip(across, 5, 250)).kind == "same view"
    assert view_change(across, down).kind == "new view"


def test_pictures_of_other_shapes_are_new_views() -> None:
    assert view_change(plain("808080", 100, 100), plain("808080", 100, 200)).kind == "new view"


def test_the_size_of_the_pictures_does_not_matter() -> None:
    before, now = view(scene(1)), view(scene(1), 346)
    small = np.asarray(cv2.resize(before, (320, 180), interpolation=cv2.INTER_AREA), np.uint8)
    assert view_change(small, now).shift_xy == pytest.approx(view_change(before, now).shift_xy, abs=0.02)


def test_a_measurement_is_the_same_each_time() -> None:
    before, now = view(scene(1)), view(scene(1), 300, 320, 1.1)
    assert len({repr(view_change(before, now)) for _ in range(5)}) == 1


@pytest.mark.parametrize("shape", [(1, 1), (3, 200), (200, 3), (30, 30)])
def test_tiny_pictures_are_measured_too(shape: tuple[int, int]) -> None:
    image = np.random.default_rng(0).integers(0, 256, (*shape, 3), np.uint8)
    assert view_change(image, image).kind == "same view"
    assert view_change(np.zeros_like(image), np.full_like(image, 255)).kind == "new view"


# ---------------------------------------------------------------- facts and statements


def keyframe() -> Keyframe:
    return Keyframe(
        id="v:0001",
        video_id="v",
        time_s=1.0,
        pts=25,
        image_path="a.jpg",
        width_px=1280,
        height_px=720,
        quality=QUALITY,
        detections=(PERSON,),
        candidate=0,
    )


def test_facts_join_the_record_and_the_pixels() -> None:
    facts = measure(plain("4169e1"), keyframe(), previous=None, detector="opencv")
    assert (facts.width_px, facts.height_px, facts.time_s) == (1280, 720, 1.0)
    assert facts.quality == QUALITY
    assert facts.detections == (PERSON,)
    assert facts.colours == (("blue", 1.0),)
    assert facts.detector == "opencv"
    assert facts.change is None


def test_the_change_is_against_the_previous_picture() -> None:
    facts = measure(view(scene(1), 346), keyframe(), previous=view(scene(1)), detector=None)
    assert facts.change is not None
    assert facts.change.shift_xy[0] == pytest.approx(-0.15, abs=0.015)


def test_grounding_gives_each_detection_with_its_confidence_and_place() -> None:
    assert grounding(FACTS)[0] == "person, 0.82, left third, 21 % of the picture"
    assert "dominant colours: blue 41 %, beige 22 %" in grounding(FACTS)
    assert any("sharpness 312" in statement for statement in grounding(FACTS))


@pytest.mark.parametrize(
    ("box", "words"),
    [
        ((0.0, 0.0, 0.6, 1.0), "left third, 60 % of the picture"),
        ((0.1, 0.0, 0.9, 0.5), "centre, 40 % of the picture"),
        ((0.5, 0.2, 1.0, 0.3), "right third, 5 % of the picture"),
        ((0.25, 0.0, 0.5, 0.04), "centre, 1 % of the picture"),
        ((0.4, 0.4, 0.45, 0.5), "centre, under 1 % of the picture"),
        ((0.4, 0.4, 0.4, 0.5), "centre, 0 % of the picture"),
    ],
)
def test_a_place_is_told_by_its_middle_and_its_share(box: tuple[float, float, float, float], words: str) -> None:
    assert describe_detection(PERSON.model_copy(update={"box_xyxy": box})) == f"person, 0.82, {words}"


def test_what_is_measured_is_told_under_its_name() -> None:
    assert grounding(FACTS)[2:] == (
        "mean colour saturation 0.31 (0 is black-and-white, 1 is pure colour)",
        "brightness 0.45 (0 is black, 1 is white), contrast 0.20 (standard deviation)",
        "sharpness 312 (variance of the Laplacian; low means blurred)",
    )


def test_of_a_picture_that_no_detector_saw_none_is_told() -> None:
    facts = measure(plain("4169e1"), keyframe().model_copy(update={"detections": None}), previous=None, detector="opencv")
    assert (facts.detector, facts.detections, facts.colourfulness) == (None, (), 0.711)


def test_grounding_says_whether_anybody_looked() -> None:
    nobody = replace(FACTS, detections=())
    assert grounding(nobody)[0] == "nothing found by the detector opencv"
    assert not any("found" in statement or "person" in statement for statement in grounding(replace(nobody, detector=None)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (ViewChange("same view"), "same as in the previous keyframe"),
        (ViewChange("same view", content_changed=True), "same as in the previous keyframe, but what it shows changed"),
        (ViewChange("new view"), "nothing of the previous"),
        (ViewChange("view moved", (0.12, -0.03), 1.2), "12 % right and 3 % up, and is 1.20 times as large"),
        (ViewChange("view moved", (-0.12, 0.001), 0.9), "12 % left and under 1 % down, and is 0.90 times as large"),
    ],
)
def test_grounding_says_how_the_view_changed(change: ViewChange, words: str) -> None:
    assert words in grounding(replace(FACTS, change=change))[-1]
    assert not any("previous" in statement for statement in grounding(FACTS))
