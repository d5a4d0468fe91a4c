"""Sharpness that compares across sizes and letterboxes, and the verdicts on constructed pictures."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from vip.extraction.quality import WORKING_SIDE_PX, correlation, faded_beside, measure, references, shows_nothing, verdict
from vip.records import Image
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


def test_a_soft_video_keeps_its_frames_and_a_sharp_one_drops_the_soft_frame(photograph: Image) -> None:
    soft, sharp = measure(np.asarray(cv2.GaussianBlur(photograph, (0, 0), 10), np.uint8)), measure(photograph)
    assert verdict(soft, references([soft] * 9)[4]) is None
    assert verdict(soft, references([sharp] * 4 + [soft] + [sharp] * 4)[4]) == "blurred"


def test_references_leave_out_black_and_unreadable_frames(photograph: Image) -> None:
    sharp, black = measure(photograph), measure(grey(0))
    assert references([black, None, sharp, black]) == [sharp.quality.sharpness, sharp.quality.sharpness, 0.0, sharp.quality.sharpness]


def test_a_dimmed_picture_is_a_pale_copy_and_another_picture_is_not(photograph: Image) -> None:
    small = np.asarray(cv2.resize(photograph, (32, 18), interpolation=cv2.INTER_AREA), np.uint8)
    dim = (photograph * 0.4).astype(np.uint8)
    assert faded_beside(measure(dim), measure(photograph), correlation((small * 0.4).astype(np.uint8), small))
    assert not faded_beside(measure(photograph), measure(dim), correlation(small, small))
    assert correlation(small, small[:, ::-1]) < 0.92
    assert correlation(small, np.zeros_like(small)) == 0.0
