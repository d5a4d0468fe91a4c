from __future__ import annotations

import cv2
import numpy as np

from vip.cielab import cielab_of_colours, cielab_of_picture


def test_pictures_come_out_as_opencv_has_them_but_for_its_rounding() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (90, 160, 3), np.uint8)
    picture[:20] //= 20  # dark colours take the linear branch
    ours, theirs = cielab_of_picture(picture).astype(int), cv2.cvtColor(picture, cv2.COLOR_RGB2LAB).astype(int)
    assert np.abs(ours - theirs).max() <= 2
    assert np.abs(ours - theirs).mean() < 0.25


def test_colours_come_out_as_opencv_has_them() -> None:
    colours = np.random.default_rng(1).random((1, 500, 3), np.float32)
    assert np.abs(cielab_of_colours(colours) - cv2.cvtColor(colours, cv2.COLOR_RGB2LAB)).max() < 0.7


def test_white_black_and_red_are_where_the_standard_puts_them() -> None:
    lab = cielab_of_colours(np.array([[[1, 1, 1], [0, 0, 0], [1, 0, 0]]], np.float32))[0]
    np.testing.assert_allclose(lab, [[100, 0, 0], [0, 0, 0], [53.24, 80.09, 67.20]], atol=0.05)
