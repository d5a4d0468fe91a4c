"""Sharpness that compares across sizes and letterboxes, and the verdicts on constructed pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.extraction.analyses import large_picture, measured, picture, scaled
from tests.media import write
from vip.extraction.quality import (
    LETTERS,
    WORKING_SIDE_PX,
    correlation,
    is_blend,
    is_out_of_focus,
    is_soft,
    measure,
    much_blurrier,
    much_paler,
    references,
    resembles_blend,
    rises_from_black,
    same_shape,
    same_view,
    sharpness_of,
    shows_nothing,
    verdict,
)
from vip.records import Image, Quality
from vip.video import Video

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sample.mp4"


@pytest.fixture(scope="module")
def photograph() -> Image:
    """A sharp frame of the sample, 640 × 360."""
    with Video(SAMPLE) as video:
        shown = video.index.shown_pts
        wanted = int(shown[np.abs(shown * float(video.time_base) - 21.0).argmin()])
        return next(video.frames([wanted], longest_side_px=WORKING_SIDE_PX)).image


def working(image: Image) -> Image:
    scale = WORKING_SIDE_PX / max(image.shape[:2])
    size = round(image.shape[1] * scale), round(image.shape[0] * scale)
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC), np.uint8)


def test_sharpness_compares_across_resolutions(photograph: Image) -> None:
    here = measure(photograph).quality.sharpness
    for width, height in ((1280, 720), (1920, 1080)):
        larger = np.asarray(cv2.resize(photograph, (width, height), interpolation=cv2.INTER_CUBIC), np.uint8)
        assert 0.6 < measure(working(larger)).quality.sharpness / here < 1.6


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_sharpness_compares_across_videos_of_1080_720_and_360_lines(tmp_path: Path, seed: int) -> None:
    sharpness = []
    for width, height in ((1920, 1080), (1280, 720), (640, 360), (320, 180)):
        frame = scaled(large_picture(seed), width, height)
        path = write(tmp_path / f"{height}.mp4", frames=1, picture=lambda _, frame=frame: frame, options={"crf": "12"}).path
        with Video(path) as video:
            sharpness.append(measure(next(video.frames([0], longest_side_px=WORKING_SIDE_PX)).image).quality.sharpness)
    assert sharpness[:3] == pytest.approx([sharpness[0]] * 3, rel=0.1)
    assert sharpness[3] < 0.5 * sharpness[0], "what a camera of 180 lines did not see is not there"


def test_blur_lowers_sharpness_and_detail_but_dimming_keeps_the_detail(photograph: Image) -> None:
    sharp, blurred = measure(photograph), measure(np.asarray(cv2.GaussianBlur(photograph, (0, 0), 6), np.uint8))
    dim = measure((photograph * 0.3).astype(np.uint8))
    assert blurred.quality.sharpness < 0.1 * sharp.quality.sharpness
    assert blurred.detail < 0.1 * sharp.detail
    assert dim.quality.sharpness < 0.2 * sharp.quality.sharpness
    assert dim.detail == pytest.approx(sharp.detail, rel=0.25)


def test_black_bars_change_nothing(photograph: Image) -> None:
    boxed = np.zeros((480, 640, 3), np.uint8)
    boxed[60:420] = photograph
    bare, inside = measure(photograph).quality, measure(boxed).quality
    assert inside.sharpness == pytest.approx(bare.sharpness, rel=0.1)
    assert inside.brightness == pytest.approx(bare.brightness, abs=0.02)


@pytest.mark.parametrize(
    ("top", "bottom", "left", "right"), [(40, 40, 0, 0), (0, 0, 80, 80), (20, 20, 60, 60), (90, 0, 0, 0), (0, 3, 5, 0)]
)
@pytest.mark.parametrize("level", [0, 16])
def test_bars_on_any_side_do_not_change_the_sharpness(top: int, bottom: int, left: int, right: int, level: int) -> None:
    inner = picture(3)[top : 360 - bottom, left : 640 - right]
    boxed = np.pad(inner, ((top, bottom), (left, right), (0, 0)), constant_values=level)
    assert boxed.shape == (360, 640, 3)
    alone, inside = measure(np.ascontiguousarray(inner)), measure(boxed)
    assert inside.quality.sharpness == pytest.approx(alone.quality.sharpness, rel=0.05)
    assert inside.quality.contrast == pytest.approx(alone.quality.contrast, rel=0.05)
    assert verdict(inside, alone.quality.sharpness) is None


def test_a_picture_without_bars_is_measured_whole() -> None:
    grey_levels = cv2.cvtColor(picture(3), cv2.COLOR_RGB2GRAY)
    measured = measure(picture(3))
    assert measured.quality.sharpness == pytest.approx(cv2.Laplacian(grey_levels, cv2.CV_64F).var(), rel=1e-6)
    assert measured.quality.brightness == pytest.approx(grey_levels.mean() / 255)
    assert measured.quality.contrast == pytest.approx(grey_levels.std() / 255)


def test_sharpness_is_the_variance_of_the_laplacian() -> None:
    levels = np.asarray(cv2.cvtColor(picture(3), cv2.COLOR_RGB2GRAY), np.uint8)
    assert sharpness_of(levels) == pytest.approx(cv2.Laplacian(levels, cv2.CV_64F).var(), rel=1e-6)
    assert sharpness_of(np.full((4, 4), 200, np.uint8)) == 0.0


def test_a_defocused_letterboxed_picture_is_blurred_all_the_same(photograph: Image) -> None:
    boxed = np.zeros((480, 640, 3), np.uint8)
    boxed[60:420] = cv2.GaussianBlur(photograph, (0, 0), 10)
    assert verdict(measure(boxed), reference=measure(photograph).quality.sharpness) == "blurred"


def grey(level: int) -> Image:
    return np.full((360, 640, 3), level, np.uint8)


def written(background: int, letters: int, *, scale: float) -> Image:
    return np.asarray(cv2.putText(grey(background), "The Title", (60, 200), 0, scale, (letters,) * 3, max(1, round(2 * scale))), np.uint8)


def test_pictures_that_show_nothing() -> None:
    assert shows_nothing(measure(grey(3))) == "black"
    assert shows_nothing(measure(grey(250))) == "white"
    assert shows_nothing(measure(grey(128))) == "flat"


def test_a_title_card_is_a_picture_and_a_watermark_on_black_is_none() -> None:
    assert shows_nothing(measure(written(0, 255, scale=3))) is None
    assert shows_nothing(measure(written(255, 0, scale=3))) is None
    assert shows_nothing(measure(written(0, 110, scale=0.7))) == "black"


def marked(background: int, letters: int, left: int, top: int) -> Image:
    """Letters of one size, so that the share of their pixels is the same wherever they stand."""
    return np.asarray(cv2.putText(grey(background), "TV", (left, top), 0, 0.75, (letters,) * 3, 2), np.uint8)


@pytest.mark.parametrize(("background", "letters", "rule"), [(0, 255, "black"), (12, 230, "black"), (255, 0, "white"), (240, 20, "white")])
def test_small_letters_in_the_middle_are_a_title_and_in_a_corner_the_mark_of_a_channel(background: int, letters: int, rule: str) -> None:
    corners = [marked(background, letters, left, top) for left in (10, 590) for top in (30, 340)]
    assert [shows_nothing(measure(image)) for image in corners] == [rule] * 4
    title = measure(marked(background, letters, 300, 185))
    assert shows_nothing(title) in {None, "flat"}
    assert max(title.bright if rule == "black" else title.dim, 0.0) < LETTERS, "too few for the whole picture"


@pytest.mark.parametrize(("background", "letters"), [(0, 255), (12, 230), (255, 0), (240, 20)])
@pytest.mark.parametrize("top", [30, 350])
def test_a_line_of_words_above_or_below_the_middle_is_more_than_the_mark_of_a_channel(background: int, letters: int, top: int) -> None:
    line = cv2.putText(grey(background), "And they lived happily", (60, top), 0, 1.0, (letters,) * 3, 2)
    measured = measure(np.asarray(line, np.uint8))
    assert measured.bright_in_middle == 0.0 or measured.dim_in_middle == 0.0
    assert shows_nothing(measured) in {None, "flat"}


@pytest.mark.parametrize(
    ("column", "row", "inside"),
    [(127, 180, 0), (128, 180, 1), (511, 180, 1), (512, 180, 0), (320, 71, 0), (320, 72, 1), (320, 287, 1), (320, 288, 0)],
)
def test_the_middle_is_three_fifths_of_width_and_height(column: int, row: int, inside: int) -> None:
    image = grey(20)
    image[row, column] = 255
    assert measure(image).bright_in_middle * 384 * 216 == pytest.approx(inside)
    assert measure(255 - image).dim_in_middle * 384 * 216 == pytest.approx(inside)


@pytest.mark.parametrize("shape", [(1, 640), (640, 1), (1, 1)])
def test_the_middle_of_the_thinnest_picture_is_a_pixel(shape: tuple[int, int]) -> None:
    measured = [measure(np.full((*shape, 3), level, np.uint8)) for level in (0, 255)]
    assert [(one.bright_in_middle, one.dim_in_middle) for one in measured] == [(0.0, 1.0), (1.0, 0.0)]


@pytest.mark.parametrize(("background", "letters"), [(0, 255), (16, 200), (255, 0), (235, 30)])
@pytest.mark.parametrize("scale", [1.5, 3])
def test_titles_large_and_small_bright_and_dark_are_kept(background: int, letters: int, scale: float) -> None:
    assert verdict(measure(written(background, letters, scale=scale)), reference=500) is None


def test_a_night_scene_with_lamps_is_a_picture() -> None:
    night = (picture(1) * 0.12).astype(np.uint8)
    for x in range(60, 640, 80):
        cv2.circle(night, (x, 180), 8, (250, 240, 200), -1)
    assert shows_nothing(measure(night)) is None


@pytest.mark.parametrize(("place", "median"), [(0, 6.5), (3, 16), (4, 17), (5, 26), (9, 64), (12, 90.5)])
def test_the_reference_is_the_median_of_four_on_either_side_and_not_the_frame_itself(place: int, median: float) -> None:
    """Frames as sharp as the squares of their numbers."""
    rows = [measured(float(number**2)) for number in range(13)]
    assert references(rows, range(13))[place] == pytest.approx(median)


@pytest.mark.parametrize(
    ("step_s", "around"),
    [
        (1.0, [0, 1, 2, 3, 5, 6, 7, 8]),
        (0.25, [0, 1, 2, 3, 5, 6, 7, 8]),
        (0.125, [0, 2, 6, 8]),  # every other one is a quarter of a second behind the one before
        (0.0625, [0, 8]),
        (0.03125, []),
    ],
)
def test_frames_of_the_reference_are_a_quarter_of_a_second_apart(step_s: float, around: list[int]) -> None:
    """Nine frames, each twice as sharp as the one before; the middle one is judged."""
    rows = [measured(2.0**number) for number in range(9)]
    expected = float(np.median([2.0**number for number in around])) if around else 0.0
    assert references(rows, [step_s * number for number in range(9)])[4] == pytest.approx(expected)


def test_several_sync_frames_of_one_change_of_focus_count_once_in_the_reference() -> None:
    """Encoders put them a few frames apart; all of them are soft, and the frames around them are not."""
    soft, sharp = measured(5.0, contrast=0.4), measured(200.0, contrast=0.4)
    times_s = [0, 2, 4, 4.05, 4.1, 4.15, 4.2, 6, 8]
    rows = [soft if 4 <= time_s < 5 else sharp for time_s in times_s]
    found = references(rows, times_s)
    assert [verdict(row, reference) for row, reference in zip(rows, found, strict=True)] == [None] * 2 + ["blurred"] * 5 + [None] * 2


def test_the_first_of_frames_close_together_counts_and_the_next_is_measured_from_it() -> None:
    """The last is half a second behind the first; then 0.24 s, and does not count."""
    rows = [measured(sharpness) for sharpness in (1.0, 100.0, 2.0, 3.0, 300.0)]
    assert references(rows, [0, 1.0, 1.1, 1.2, 1.5])[0] == pytest.approx(200.0)
    assert references(rows, [0, 1.0, 1.1, 1.2, 1.24])[0] == pytest.approx(100.0)


def test_there_is_no_reference_without_neighbours() -> None:
    assert references([], []) == []
    assert references([None], [0.0]) == [0.0]
    assert references([measure(picture(1))], [0.0]) == [0.0]


@pytest.mark.parametrize(("mine", "its", "expected"), [(49, 100, True), (50, 100, False), (100, 30, False)])
def test_much_blurrier_means_less_than_half_of_the_sharpness(mine: float, its: float, expected: bool) -> None:
    a, b = (Quality(sharpness=sharpness, brightness=0.5, contrast=0.2) for sharpness in (mine, its))
    assert much_blurrier(a, b) is expected


@pytest.mark.parametrize(("sharpness", "soft"), [(9.9, True), (10.0, False)])
def test_soft_means_less_than_a_tenth_of_the_surroundings(sharpness: float, soft: bool) -> None:
    assert is_soft(Quality(sharpness=sharpness, brightness=0.5, contrast=0.2), 100.0) is soft


@pytest.mark.parametrize(
    ("sharpness", "shape", "expected"),
    [(9.9, 0.71, True), (10.0, 0.71, False), (9.9, 0.7, False), (9.9, -1.0, False), (0.0, 1.0, True)],
)
def test_out_of_focus_is_a_tenth_as_sharp_and_of_the_same_shape(sharpness: float, shape: float, expected: bool) -> None:
    a, b = (Quality(sharpness=value, brightness=0.5, contrast=0.2) for value in (sharpness, 100.0))
    assert is_out_of_focus(a, b, shape) is expected


@pytest.mark.parametrize(
    ("cosine", "correlation", "same"),
    [
        (0.9, 0.6, True),
        (0.9, 0.4, False),  # the same dark colours, in other places
        (0.84, 1.0, False),  # the same light, on something else
        (0.86, 0.75, True),
        (0.99, 0.0, False),
        (1.0, -1.0, False),
    ],
)
def test_the_same_view_takes_both_a_high_cosine_and_a_correlation(cosine: float, correlation: float, same: bool) -> None:
    assert same_view(cosine, correlation) is same


def test_the_same_shape_is_told_by_the_correlation() -> None:
    assert same_shape(0.95)
    assert not same_shape(0.9)


@pytest.mark.parametrize("shape", [(1, 640), (640, 1), (2, 2), (360, 640)])
def test_any_shape_is_measured(shape: tuple[int, int]) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (*shape, 3), np.uint8)
    measured = measure(noise)
    assert np.isfinite(measured.detail)
    assert 0 <= measured.quality.brightness <= 1


def test_a_soft_video_keeps_its_frames_and_a_sharp_one_drops_the_soft_frame(photograph: Image) -> None:
    soft, sharp = measure(np.asarray(cv2.GaussianBlur(photograph, (0, 0), 10), np.uint8)), measure(photograph)
    assert verdict(soft, references([soft] * 9, range(9))[4]) is None
    assert verdict(soft, references([sharp] * 4 + [soft] + [sharp] * 4, range(9))[4]) == "blurred"


def test_references_leave_out_black_and_unreadable_frames(photograph: Image) -> None:
    sharp, black = measure(photograph), measure(grey(0))
    known = sharp.quality.sharpness
    assert references([black, None, sharp, black], range(4)) == [known, known, 0.0, known]


def test_a_dimmed_picture_is_a_pale_copy_and_another_picture_is_not(photograph: Image) -> None:
    small = np.asarray(cv2.resize(photograph, (32, 18), interpolation=cv2.INTER_AREA), np.uint8)
    dim = (photograph * 0.4).astype(np.uint8)
    assert much_paler(measure(dim).quality, measure(photograph).quality)
    assert not much_paler(measure(photograph).quality, measure(dim).quality)
    assert same_shape(correlation((small * 0.4).astype(np.uint8), small))
    assert not same_shape(correlation(small, small[:, ::-1]))
    assert correlation(small, np.zeros_like(small)) == 0.0


# ---------------------------------------------------------------- the bounds, to the level


@pytest.mark.parametrize(("level", "shares"), [(40, (0, 1)), (41, (1, 1)), (214, (1, 1)), (215, (1, 0))])
def test_a_grey_level_is_dark_or_light_from_a_bound_on(level: int, shares: tuple[int, ...]) -> None:
    measured = measure(grey(level))
    assert (measured.not_dark, measured.not_light) == pytest.approx(shares, abs=1e-6)


@pytest.mark.parametrize("colour", [0, 1, 2])
@pytest.mark.parametrize(("background", "level", "share"), [(0, 160, 0.0), (0, 161, 0.01), (255, 96, 0.0), (255, 95, 0.01)])
def test_letters_on_black_are_bright_and_on_white_dim_in_one_colour_at_least(
    background: int, level: int, share: float, colour: int
) -> None:
    """Blue letters are as dark a grey as a picture that fades."""
    image = grey(background)
    image[100:136, 100:164, colour] = level
    measured = measure(image)
    assert (measured.dim if background else measured.bright) == pytest.approx(share, abs=1e-6)


def test_in_a_picture_that_is_neither_dark_nor_light_nobody_asks_for_letters() -> None:
    measured = measure(grey(100))
    assert (measured.bright, measured.dim, measured.bright_in_middle, measured.dim_in_middle) == (1.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize("ink", [(40, 90, 200), (200, 40, 40), (40, 170, 60)])
def test_titles_of_any_colour_are_kept_on_black_and_on_white(ink: tuple[int, int, int]) -> None:
    for background, light in ((0, 0), (255, 30)):
        page = grey(background)
        cv2.putText(page, "Chapter two", (180, 190), cv2.FONT_HERSHEY_SIMPLEX, 1.5, [value + light for value in ink], 4)
        assert verdict(measure(page), reference=500) is None
        assert verdict(measure(grey(background)), reference=500) is not None


@pytest.mark.parametrize(("level", "bars"), [(24, True), (25, False)])
def test_a_bar_is_no_lighter_than_a_video_makes_black(level: int, bars: bool) -> None:
    boxed = np.full((360, 640, 3), level, np.uint8)
    boxed[60:300] = 200
    assert (measure(boxed).quality.contrast < 0.01) == bars


@pytest.mark.parametrize(("height", "inside"), [(40, False), (60, True), (160, True)])
def test_where_bars_would_leave_less_than_an_eighth_the_whole_picture_is_measured(height: int, inside: bool) -> None:
    boxed = np.zeros((360, 640, 3), np.uint8)
    boxed[100 : 100 + height] = 200
    assert (measure(boxed).quality.brightness > 0.7) == inside


@pytest.mark.parametrize(
    ("sharpness", "contrast", "reference", "rule"),
    [
        (20, 0.4, 100, "blurred"),
        (20, 0.4, 60, None),  # a third of what is around it
        (20, 0.2, 100, None),  # as much detail as so pale a picture can have
        (20, 0.01, 100, "flat"),
        (20, 0.03, 0, None),
        (20, 0.1, 5000, None),  # detail of 0.03
        (6, 0.1, 301, "blurred"),  # pale: much of its detail is noise, and it has a fiftieth of the sharpness around it
        (6, 0.1, 300, None),
        (6.5, 0.1, 5000, "blurred"),
        (6.51, 0.1, 5000, None),  # detail of 0.01
        (3.9, 0.1, 39.1, "blurred"),  # hardly an edge anywhere, and less than a tenth of the sharpness around it
        (3.9, 0.1, 38.9, None),
        (4.0, 0.1, 100, None),
        (2.19, 0.0475, 100, "blurred"),
        (2.21, 0.0475, 100, None),  # detail of 0.015
    ],
)
def test_blurred_is_without_detail_and_far_below_its_surroundings(
    sharpness: float, contrast: float, reference: float, rule: str | None
) -> None:
    assert verdict(measured(sharpness, contrast=contrast), reference) == rule


@pytest.mark.parametrize(("contrast", "paler"), [(0.11, True), (0.13, False)])
def test_much_paler_is_less_than_three_fifths_of_the_contrast(contrast: float, paler: bool) -> None:
    assert much_paler(measured(1.0, contrast=contrast).quality, measured(1.0, contrast=0.2).quality) is paler


@pytest.mark.parametrize(
    ("contrast", "brightness", "paler"),
    [
        (0.15, 0.375, True),  # three quarters of both: on its way to black
        (0.15, 0.625, True),  # and to white
        (0.15, 0.5, False),  # less contrast at the same brightness: mist, or another light
        (0.15, 0.44, True),  # 0.88 of the brightness for 0.75 of the contrast
        (0.15, 0.455, False),
        (0.15, 0.29, False),  # darker, yet with more contrast than a fade would leave
        (0.17, 0.425, False),  # too little to tell
        (0.11, 0.5, True),
    ],
)
def test_a_fade_takes_as_much_of_the_brightness_as_of_the_contrast(contrast: float, brightness: float, paler: bool) -> None:
    mine, full = (measured(1.0, contrast=c, brightness=b).quality for c, b in ((contrast, brightness), (0.2, 0.5)))
    assert much_paler(mine, full) is paler


@pytest.mark.parametrize(
    ("contrast", "brightness", "correlation", "rises"),
    [
        (0.035, 0.045, 0.65, True),  # three eighths of both
        (0.035, 0.045, 0.6, False),  # another picture
        (0.05, 0.05, 0.65, False),  # more than half of the contrast
        (0.04, 0.06, 0.65, False),  # not nearly black
        (0.035, 0.02, 0.65, False),  # less light than a fade would leave
        (0.045, 0.057, 0.65, True),
    ],
)
def test_nearly_black_a_frame_rises_from_black_though_what_it_shows_moves_on(
    contrast: float, brightness: float, correlation: float, rises: bool
) -> None:
    mine, full = (measured(1.0, contrast=c, brightness=b).quality for c, b in ((contrast, brightness), (0.095, 0.12)))
    assert rises_from_black(mine, full, correlation) is rises


@pytest.mark.parametrize("brightness", [0.0, 1.0])
def test_a_neighbour_that_is_all_black_or_white_makes_nothing_pale(brightness: float) -> None:
    plain = measured(1.0, contrast=0.0, brightness=brightness).quality
    assert not much_paler(measured(1.0, contrast=0.2).quality, plain)


def test_a_picture_dimmed_by_a_quarter_is_a_pale_copy_and_one_of_less_contrast_alone_is_not(photograph: Image) -> None:
    full = measure(photograph).quality
    assert much_paler(measure((photograph * 0.72).astype(np.uint8)).quality, full)
    assert much_paler(measure((255 - (255 - photograph.astype(np.float32)) * 0.72).astype(np.uint8)).quality, full)
    middle = 255 * full.brightness
    assert not much_paler(measure((middle + 0.72 * (photograph.astype(np.float32) - middle)).astype(np.uint8)).quality, full)


def test_a_picture_without_contrast_has_no_more_detail_than_sharpness() -> None:
    assert measure(grey(128)).detail == 0.0
    assert measured(3.0, contrast=0.001).detail == 3.0


@pytest.mark.parametrize(("share", "blend"), [(0.0, False), (0.05, False), (0.2, True), (0.5, True), (0.8, True), (0.97, False)])
def test_a_weighted_mean_of_two_pictures_is_a_blend(share: float, blend: bool) -> None:
    before, after = small(1), small(2)
    assert is_blend(mean(before, after, share), before, after) == blend


def test_another_picture_is_no_blend_of_its_neighbours() -> None:
    assert not is_blend(small(3), small(1), small(2))


def test_between_two_that_are_the_same_nothing_blends() -> None:
    before = small(1)
    assert not is_blend(before, before, mean(before, small(2), 0.02))


@pytest.mark.parametrize(("share", "resembles"), [(0.0, False), (0.05, False), (0.12, True), (0.5, True), (0.88, True), (0.95, False)])
def test_a_mean_of_pictures_that_have_moved_since_resembles_a_blend(share: float, resembles: bool) -> None:
    before, after = small(1), small(2)
    moved = mean(np.roll(before, 1, axis=1), np.roll(after, 1, axis=0), share)
    assert resembles_blend(moved, before, after) == resembles
    assert not is_blend(moved, before, after), "too much of it is of neither"


def test_what_is_nearly_one_of_two_pictures_resembles_no_blend() -> None:
    before, after = small(1), small(2)
    assert not resembles_blend(np.roll(before, 4, axis=1), before, after)
    assert not resembles_blend(before, before, mean(before, after, 0.02)), "between two that are the same"


def small(seed: int) -> Image:
    return np.asarray(cv2.resize(picture(seed), (32, 18), interpolation=cv2.INTER_AREA), np.uint8)


def mean(before: Image, after: Image, share: float) -> Image:
    return np.asarray(cv2.addWeighted(after, share, before, 1 - share, 0), np.uint8)


@pytest.mark.parametrize(
    ("bar", "edge"),
    [(np.s_[:40], np.s_[40]), (np.s_[-40:], np.s_[-41]), (np.s_[:, :40], np.s_[:, 40]), (np.s_[:, -40:], np.s_[:, -41])],
)
def test_the_edge_that_a_bar_makes_is_no_sharpness(bar: Any, edge: Any) -> None:
    grey = np.full((360, 640, 3), 128, np.uint8)
    grey[edge], grey[bar] = 64, 0
    assert measure(grey).quality.sharpness == 0
