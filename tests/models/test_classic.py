"""The embedder `classic`: like scenes are near, unlike ones are not, and the numbers never change by themselves."""

from __future__ import annotations

import numpy as np
import pytest

from tests.extraction.analyses import picture
from vip.extraction.object_text import text_of
from vip.models.classic import DIMS, WEIGHTS, ClassicEmbedder
from vip.records import Detection, Image

EMBEDDER = ClassicEmbedder(None)


def cosine(a: Image, b: Image) -> float:
    first, second = EMBEDDER.embed_images([a, b])
    return float(first @ second)


def face(left: float) -> Detection:
    return Detection(label="face", score=0.9, box_xyxy=(left, 0.1, left + 0.1, 0.3), source="test")


def test_the_blocks_are_what_the_dimensions_say() -> None:
    assert EMBEDDER.dim == sum(DIMS.values()) == 1544
    assert DIMS.keys() == WEIGHTS.keys()
    assert sum(WEIGHTS.values()) == pytest.approx(1)


def test_a_small_shift_is_nearer_than_another_scene() -> None:
    scene = picture(1)
    shifted = np.roll(scene, 12, axis=1)
    others = [cosine(scene, picture(seed)) for seed in range(2, 12)]
    assert cosine(scene, scene) == pytest.approx(1, abs=1e-5)
    assert cosine(scene, shifted) > max(others) + 0.1


def test_the_size_of_the_picture_hardly_matters() -> None:
    scene = picture(1)
    assert cosine(scene, np.ascontiguousarray(scene[::2, ::2])) > 0.95


def test_black_bars_set_pictures_apart() -> None:
    boxed = picture(1).copy()
    boxed[:60] = boxed[-60:] = 0
    assert cosine(boxed, picture(1)) < cosine(picture(1), np.roll(picture(1), 12, axis=1))


@pytest.mark.parametrize("level", [0, 128, 255])
def test_a_flat_picture_has_a_vector_too(level: int) -> None:
    flat = np.full((90, 160, 3), level, np.uint8)
    assert cosine(flat, flat) == pytest.approx(1, abs=1e-5)


def test_texts_of_like_object_lists_are_near() -> None:
    lists = [], [face(0.1)], [face(0.8)], [face(0.1), face(0.2)]
    nothing, left, right, two = EMBEDDER.embed_texts([text_of(found) for found in lists])
    assert 0.5 < nothing @ left < left @ right < 1
    assert left @ two > nothing @ two
    assert text_of([face(0.1), face(0.8)]) == text_of([face(0.8), face(0.1)])
