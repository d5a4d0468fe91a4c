"""The extractor `open_clip` gives means of the embedder's vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vip import registry
from vip.errors import BackendError

pytestmark = [pytest.mark.slow, pytest.mark.extra("open_clip")]


def test_a_clip_is_the_mean_of_its_pictures(tmp_path: Path) -> None:
    from tests.models import clip_models

    folder = clip_models.folder(tmp_path / "clip", "clip")
    images = [np.random.default_rng(seed).integers(0, 255, (48, 64, 3), np.uint8) for seed in range(5)]
    extractor = registry.extractor(f"open_clip:{folder}", device="cpu", precision="fp32")
    rows = registry.embedder(f"clip:{folder}", device="cpu", precision="fp32").embed_images(images)
    found = extractor.extract([images[:2], images[2:]])
    np.testing.assert_allclose(found, [rows[:2].mean(axis=0), rows[2:].mean(axis=0)], atol=1e-5)
    assert extractor.name == f"open_clip:{folder}"
    with pytest.raises(BackendError, match="gives no feature maps"):
        extractor.extract([images], maps=True)
