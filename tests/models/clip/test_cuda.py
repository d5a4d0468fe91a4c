from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import interpolate

from tests.models import clip_models
from vip.models.clip.cuda import BATCHES_AHEAD, PatchProduct, PictureSender, resize, use_products
from vip.models.clip.embedder import OpenClipEmbedder

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
@pytest.mark.parametrize(("before", "after"), [((90, 160), (56, 99)), ((100, 90), (62, 56)), ((20, 30), (56, 84)), ((56, 99), (56, 56))])
def test_resizing_by_products_is_that_of_torch(before: tuple[int, int], after: tuple[int, int], interpolation: str) -> None:
    pictures = torch.from_numpy(noise(2, *before, 3)).permute(0, 3, 1, 2)
    expected = interpolate(pictures.float(), after, mode=interpolation, antialias=True).round().clamp(0, 255)
    differences = (resize(pictures, *after, interpolation).float() - expected).abs()
    assert differences.max() <= 1
    assert (differences > 0).float().mean() < 0.1


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(2, 3, 64, 96), (1, 3, 70, 33)])
def test_a_product_of_patches_is_the_convolution(shape: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(0)
    layer = nn.Conv2d(3, 5, (16, 32), stride=(16, 32), bias=bias)
    pictures = torch.randn(shape)
    expected = layer(pictures)
    use_products(layer)
    assert type(layer) is PatchProduct
    torch.testing.assert_close(layer(pictures), expected, rtol=1e-5, atol=1e-5)


class Other(nn.Conv2d):
    pass


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(3, 4, 8, stride=4),
        nn.Conv2d(3, 4, 8, stride=8, padding=1),
        nn.Conv2d(3, 4, 8, stride=8, dilation=2),
        nn.Conv2d(4, 4, 8, stride=8, groups=2),
        nn.Conv2d(3, 4, 1),
        Other(3, 4, 8, stride=8),
    ],
)
def test_other_convolutions_stay_what_they_are(layer: nn.Conv2d) -> None:
    kind, model = type(layer), nn.Sequential(layer)
    use_products(model)
    assert type(model[0]) is kind


@needs_gpu
def test_pictures_arrive_as_they_are_also_while_the_device_works() -> None:
    sender = PictureSender("cuda")
    batches = [noise(40, 120, 160, 3, seed=number) for number in range(3 * BATCHES_AHEAD)]
    sums = [sender.send(list(batch)).double().sum(dim=(1, 2, 3)) for batch in batches]
    for batch, found in zip(batches, sums, strict=True):
        assert found.cpu().tolist() == batch.astype(float).sum(axis=(1, 2, 3)).tolist()


@pytest.mark.parametrize("kind", ["clip", "siglip", "longest"])
def test_products_do_not_change_the_vectors_of_a_model(kind: str, tmp_path: Path) -> None:
    embedder = OpenClipEmbedder(str(clip_models.folder(tmp_path, kind)), device="cpu", precision="fp32")
    pictures = list(noise(3, 90, 160, 3))
    before = embedder.embed_images(pictures)
    use_products(embedder._model)
    assert any(isinstance(layer, PatchProduct) for layer in embedder._model.modules())
    np.testing.assert_allclose(embedder.embed_images(pictures), before, atol=1e-5)


@needs_gpu
@pytest.mark.parametrize("kind", ["clip", "siglip", "longest"])
@pytest.mark.parametrize("shape", [(90, 160), (100, 90), (300, 20)])
def test_vectors_are_those_of_the_cpu(kind: str, shape: tuple[int, int], tmp_path: Path) -> None:
    folder, pictures = clip_models.folder(tmp_path, kind), list(noise(5, *shape, 3))
    cpu, gpu = (OpenClipEmbedder(str(folder), device=device).embed_images(pictures) for device in ("cpu", "cuda"))
    assert (cpu * gpu).sum(axis=1).min() > 0.99
