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


def test_the_numbers_are_those_that_runs_were_made_with() -> None:
    """Cosines of one picture with others, block by block; docs/decisions/0005-classic-embedder.md stands on them."""
    boxed = picture(1).copy()
    boxed[:60] = boxed[-60:] = 0
    others = [np.roll(picture(1), 12, axis=1), picture(2), boxed, np.ascontiguousarray(picture(1)[..., ::-1]), picture(1) // 2]
    vectors = EMBEDDER.embed_images([picture(1), *others])
    blocks = np.split(vectors, np.cumsum([DIMS[name] for name in WEIGHTS])[:-1], axis=1)
    found = {name: block[1:] @ block[0] / WEIGHTS[name] for name, block in zip(WEIGHTS, blocks, strict=True)}
    assert found == {
        "palette": pytest.approx([1.0, 0.219, 0.767, 0.164, 0.014], abs=0.01),
        "gradients": pytest.approx([0.991, 0.817, 0.846, 0.973, 1.0], abs=0.01),
        "layout": pytest.approx([0.963, 0.04, 0.537, 0.48, 0.547], abs=0.01),
        "format": pytest.approx([1.0, 1.0, 0.714, 1.0, 1.0], abs=0.01),
        "regions": pytest.approx([0.991, 0.434, 0.756, 0.552, 0.269], abs=0.01),
    }
    texts = EMBEDDER.embed_texts(["a face on the left (90%)", "", "a face on the right (40%), a dog at the top", "a dog at the top"])
    assert (texts[1:] @ texts[0]).tolist() == pytest.approx([0.928, 0.886, 0.877], abs=0.001)
    assert cosine(picture(1), picture(2)) == pytest.approx(sum(WEIGHTS[name] * row[1] for name, row in found.items()), abs=1e-5)


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
