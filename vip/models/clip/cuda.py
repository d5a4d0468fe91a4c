"""What a CUDA device does in ways of its own: pictures are sent while it works, and resized and cut to patches by products of matrices."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import torch
from torch import nn
from torch.nn.functional import interpolate

from vip.records import Image

COPY_THREADS = 16  # a single one copies 10 GB/s, 15,000 pictures of 640x360
BATCHES_AHEAD = 3  # that are sent or worked on at once: their pictures lie in the memory of the device


class PictureSender:
    """Sends batches of pictures on a stream of its own, while the device works on those before."""

    def __init__(self, device: str) -> None:
        self._device, self._stream = device, torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._pool = ThreadPoolExecutor(COPY_THREADS, thread_name_prefix="vip-copy")
        self._ends: deque[torch.cuda.Event] = deque(maxlen=BATCHES_AHEAD)

    def send(self, images: Sequence[Image]) -> torch.Tensor:
        """Return uint8 (N, H, W, 3) on the device. The work on the batch before that of the last call is over then."""
        working = torch.cuda.current_stream(self._device)
        self._ends.append(working.record_event())  # of what was asked for since the last call
        if len(self._ends) == BATCHES_AHEAD:
            self._ends[0].synchronize()
        pinned = torch.empty((len(images), *images[0].shape), dtype=torch.uint8, pin_memory=True)
        target, step = pinned.numpy(), -(-len(images) // COPY_THREADS)

        def copy(start: int) -> None:
            np.stack(images[start : start + step], out=target[start : start + step])

        list(self._pool.map(copy, range(0, len(images), step)))
        with torch.cuda.stream(self._stream):
            sent = pinned.to(self._device, non_blocking=True)
        working.wait_stream(self._stream)
        sent.record_stream(working)
        return sent


@cache
def picture_sender(device: str) -> PictureSender:
    """Return the sender to a device."""
    return PictureSender(device)


def resize(pictures: torch.Tensor, height: int, width: int, interpolation: str) -> torch.Tensor:
    """Resize uint8 (N, 3, H, W), the channels last in memory, to uint8 (N, 3, height, width) with antialiasing.

    Half precision holds the 256 levels exactly and the weights to a thousandth: few pixels differ, by one level, from float32. This is five
    times as fast as torch's kernel, which has no form for uint8 there.
    """
    count, channels, rows, columns = pictures.shape
    levels = pictures.permute(0, 2, 3, 1).to(torch.float16).reshape(count, rows, columns * channels)
    vertical, horizontal = (_weights(before, after, interpolation, pictures.device) for before, after in ((rows, height), (columns, width)))
    lines = torch.matmul(vertical, levels).view(count, height, columns, channels).permute(0, 3, 1, 2)
    resized = torch.matmul(lines.reshape(-1, columns), horizontal.T)
    return resized.round_().clamp_(0, 255).byte().view(count, channels, height, width)


@cache
def _weights(before: int, after: int, interpolation: str, device: torch.device) -> torch.Tensor:
    """Return float16 (after, before): what each old line gives to each new one. Resizing is linear, so it is that of the identity."""
    identity = torch.eye(before)[None, None]
    return interpolate(identity, (after, before), mode=interpolation, antialias=True)[0, 0].to(device, torch.float16)


class PatchProduct(nn.Conv2d):
    """A convolution whose windows lie side by side, as one product of matrices: the same numbers, 20 times as fast as cuDNN's in fp16."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 - as torch names it
        """Return (N, channels, rows, columns) of pictures (N, 3, H, W)."""
        high, wide = self.kernel_size
        count, channels, height, width = input.shape
        rows, columns = height // high, width // wide
        windows = input[..., : rows * high, : columns * wide].reshape(count, channels, rows, high, columns, wide)
        patches = windows.permute(0, 2, 4, 1, 3, 5).reshape(count, rows, columns, channels * high * wide)
        return nn.functional.linear(patches, self.weight.flatten(1), self.bias).permute(0, 3, 1, 2)


def use_products(model: nn.Module) -> None:
    """Make products of the convolutions of a model whose windows lie side by side, such as the first of a vision transformer."""
    for layer in model.modules():
        if type(layer) is nn.Conv2d and layer.kernel_size == layer.stride != (1, 1) and _is_plain(layer):
            layer.__class__ = PatchProduct


def _is_plain(layer: nn.Conv2d) -> bool:
    return layer.groups == 1 and layer.dilation == (1, 1) and layer.padding in {(0, 0), "valid"}
