"""Device and precision of a torch model, and batches that shrink when the device's memory is full.

torch is imported inside the functions: to name a backend must not cost the two seconds that torch takes to load.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from vip.errors import BackendError
from vip.wording import option

if TYPE_CHECKING:
    import torch

PRECISIONS = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Hardware:
    """A device and the precision of the model's weights on it."""

    device: str
    """As torch names it: `cpu`, `cuda`, `cuda:1`, `mps`."""
    precision: str
    """`fp32`, `bf16` or `fp16`."""

    @property
    def dtype(self) -> torch.dtype:
        import torch

        dtype: torch.dtype = getattr(torch, PRECISIONS[self.precision])
        return dtype

    def __str__(self) -> str:
        return f"{self.device} in {self.precision}"


def choose_hardware(device: str, precision: str) -> Hardware:
    """Return the device and precision asked for. `auto` is cuda in fp16, mps in fp32, the CPU in bf16 where it has instructions for that.

    Nothing is set up on a GPU by this, so that a process may still be forked.

    Raises:
        BackendError: the device is unknown or not there, or cannot do this precision.
    """
    devices = available_devices()
    kind = device.partition(":")[0]
    if device == "auto":
        device = kind = devices[0]
    if kind not in {"cpu", "cuda", "mps"}:
        raise BackendError(f'There is no device "{device}". Write {option("device", "auto")}, cpu, cuda, cuda:1 or mps.')
    if kind not in devices:
        raise BackendError(f"{option('device', device)}: {_missing_device_reason(kind)} Write {option('device', 'cpu')}, or leave it out.")
    _check_device_number(device)
    if precision not in {"auto", *PRECISIONS}:
        raise BackendError(f'There is no precision "{precision}". Write {option("precision", "auto")}, fp32, bf16 or fp16.')
    if precision == "fp16" and kind == "cpu":
        raise BackendError(
            f"{option('precision', 'fp16')} is for GPUs; on the CPU it would be slower than fp32."
            f" Write {option('precision', 'bf16')} or fp32."
        )
    return Hardware(device, _default_precision(kind) if precision == "auto" else precision)


def available_devices() -> list[str]:
    """Return the kinds of device that are there, the fastest first."""
    import torch

    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # or a process that asked could not be forked any more
    cuda, mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    return [kind for kind, is_there in (("cuda", cuda), ("mps", mps), ("cpu", True)) if is_there]


def _missing_device_reason(kind: str) -> str:
    import torch

    if kind == "mps":
        return "this machine or this build of torch has no Metal GPU."
    if torch.version.cuda is None:
        return f"torch {torch.__version__} was built without CUDA."
    return "torch finds no CUDA GPU or no driver for it."


def _check_device_number(device: str) -> None:
    import torch

    kind, _, number = device.partition(":")
    if not number:
        return
    count = torch.cuda.device_count() if kind == "cuda" else 1
    if not number.isdecimal() or int(number) >= count:
        raise BackendError(
            f"{option('device', device)}: the number is one from 0 to {count - 1}. Write {option('device', kind)}, or another number."
        )


def _default_precision(kind: str) -> str:
    import torch

    if kind == "cuda":
        return "fp16"
    has_bf16 = kind == "cpu" and torch.cpu._is_avx512_bf16_supported()  # AMX comes with it
    return "bf16" if has_bf16 else "fp32"


@contextmanager
def single_threaded() -> Iterator[None]:
    """Run the block without torch's pool of threads: once it has started one, a process that is forked off hangs at its first large sum."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class ShrinkingBatches:
    """Batches as large as the device's memory takes: halved when it runs out, and kept so."""

    def __init__(self, size: int, subject: str) -> None:
        self.size, self._subject = size, subject

    def map(self, work: Callable[[Sequence[ItemT]], Sequence[ResultT]], items: Sequence[ItemT]) -> list[ResultT]:
        """Return the results of `work` for all items, in order.

        Raises:
            BackendError: the memory does not even suffice for one.
        """
        results: list[ResultT] = []
        while len(results) < len(items):
            batch = items[len(results) : len(results) + self.size]
            try:
                results.extend(work(batch))
            except RuntimeError as exc:
                if not _is_out_of_memory(exc):
                    raise
                if self.size == 1:
                    raise BackendError(
                        f"{self._subject} does not fit into the memory of its device, not even with one picture at a time."
                        f" Write {option('device', 'cpu')}, or choose a smaller model."
                    ) from exc
                self.size = max(1, min(self.size, len(batch)) // 2)
                _release_cached_memory()
        return results


def _is_out_of_memory(exc: RuntimeError) -> bool:
    import torch

    return isinstance(exc, torch.OutOfMemoryError) or "out of memory" in str(exc) or "can't allocate memory" in str(exc)


def _release_cached_memory() -> None:
    import torch

    torch.cuda.empty_cache()  # does nothing where CUDA is not in use
