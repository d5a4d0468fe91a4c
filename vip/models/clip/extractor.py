"""The extractor `open_clip`: the mean over the frames of a clip of the picture vectors of any model of open_clip, named as for `clip`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vip.errors import BackendError
from vip.models.clip.embedder import OpenClipEmbedder
from vip.protocols import ClipFeatures, ExtractorCapabilities
from vip.records import Image


class OpenClipExtractor:
    """Pictures by the picture side of a model of open_clip."""

    def __init__(self, detail: str | None, *, device: str = "auto", precision: str = "auto") -> None:
        self._embedder = OpenClipEmbedder(detail, device=device, precision=precision)
        self.name = f"open_clip:{self._embedder.name.partition(':')[2]}"
        self.capabilities = ExtractorCapabilities(device=self._embedder.capabilities.device, stays_loaded=True)

    def extract(self, clips: Sequence[Sequence[Image]], *, maps: bool = False) -> ClipFeatures:
        """Return float32 (N, D): means of rows of length 1.

        Raises:
            BackendError: feature maps are asked for, or the memory of the device does not suffice for a single picture.
        """
        if maps:
            raise BackendError(f"{self.name} gives no feature maps. Take a model of torchvision, such as torchvision:resnet101.")
        prepare = self._embedder.capabilities.prepare
        images = [prepare(image) if prepare else image for clip in clips for image in clip]
        rows = self._embedder.embed_images(images)
        ends = np.cumsum([len(clip) for clip in clips])[:-1]
        return np.stack([some.mean(axis=0) for some in np.split(rows, ends)]).astype(np.float32)
