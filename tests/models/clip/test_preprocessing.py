"""Preprocessing on arrays against open_clip's own transform, which works on one PIL picture."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image as PillowImage

from tests.extraction.analyses import picture
from vip.models.clip.preprocessing import Preprocessing
from vip.models.hardware import Hardware

CPU = Hardware("cpu", "fp32")
CONFIGS: dict[str, dict[str, Any]] = {
    "shortest": {"resize_mode": "shortest"},
    "shortest, not square": {"resize_mode": "shortest", "size": (48, 64)},
    "squash": {"resize_mode": "squash", "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)},
    "longest": {"resize_mode": "longest", "fill_color": 9, "interpolation": "bilinear"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
@given(height=st.integers(60, 400), width=st.integers(60, 700))
def test_any_picture_becomes_what_open_clip_makes_of_it(name: str, height: int, width: int) -> None:
    config = PreprocessCfg(**{"size": 56, **CONFIGS[name]})
    image = np.asarray(cv2.resize(picture(height % 5), (width, height), interpolation=cv2.INTER_AREA), np.uint8)
    wanted = image_transform_v2(config, is_train=False)(PillowImage.fromarray(image)).numpy()
    got = Preprocessing(asdict(config)).pixels([image], CPU)[0].numpy()
    assert got.shape == wanted.shape
    levels = np.abs(got - wanted) * np.array(config.std)[:, None, None] * 255
    assert np.quantile(levels, 0.999) < 3.01, "grey levels of 255; PIL rounds between its two passes"
    assert levels.mean() < 0.2


def test_pictures_of_one_shape_and_of_several_give_the_same() -> None:
    preprocessing = Preprocessing(asdict(PreprocessCfg(size=56)))
    wide, tall = picture(1), np.ascontiguousarray(picture(2).transpose(1, 0, 2))
    together = preprocessing.pixels([wide, tall], CPU).numpy()
    alone = np.concatenate([preprocessing.pixels([image], CPU).numpy() for image in (wide, tall)])
    np.testing.assert_array_equal(together, alone)


def test_a_picture_is_left_as_it_is() -> None:
    image = picture(1)
    before = image.copy()
    Preprocessing(asdict(PreprocessCfg(size=56)))(image)
    assert np.array_equal(image, before)
