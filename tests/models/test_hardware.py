"""Devices and precisions: chosen, obeyed or refused in one sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from vip.errors import BackendError
from vip.models import hardware
from vip.models.hardware import Hardware, ShrinkingBatches, choose_hardware, single_threaded


@pytest.fixture
def only_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "available_devices", lambda: ["cpu"])


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "available_devices", lambda: ["cuda", "cpu"])
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.mark.parametrize(("has_bf16", "precision"), [(True, "bf16"), (False, "fp32")])
def test_the_cpu_works_in_half_precision_where_it_has_instructions_for_it(
    has_bf16: bool, precision: str, only_cpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: has_bf16)
    assert str(choose_hardware("auto", "auto")) == f"cpu in {precision}"
    assert str(choose_hardware("cpu", "fp32")) == "cpu in fp32"


def test_a_gpu_comes_first_and_in_half_precision(two_gpus: None) -> None:
    assert str(choose_hardware("auto", "auto")) == "cuda in fp16"
    assert str(choose_hardware("cuda:1", "bf16")) == "cuda:1 in bf16"
    assert choose_hardware("cuda:1", "bf16").dtype == torch.bfloat16
    assert choose_hardware("cpu", "auto").device == "cpu"


@pytest.mark.parametrize(
    ("device", "precision", "said"),
    [
        ("gpu", "auto", 'no device "gpu". Write --device auto, cpu, cuda'),
        ("cuda", "auto", "--device cuda: torch"),
        ("mps", "auto", "no Metal GPU"),
        ("cpu", "fp16", "fp16 is for GPUs"),
        ("cpu", "int8", 'no precision "int8"'),
    ],
)
def test_what_is_not_there_is_refused(device: str, precision: str, said: str, only_cpu: None) -> None:
    with pytest.raises(BackendError) as caught:
        choose_hardware(device, precision)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("cuda", "said"),
    [
        (None, f"--device cuda: torch {torch.__version__} was built without CUDA."),
        ("12.8", "--device cuda: torch finds no CUDA GPU or no driver"),
    ],
)
def test_why_there_is_no_gpu_is_said(cuda: str | None, said: str, only_cpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", cuda)
    with pytest.raises(BackendError) as caught:
        choose_hardware("cuda", "auto")
    assert str(caught.value).startswith(said)
    assert str(caught.value).endswith("Write --device cpu, or leave it out.")


@pytest.mark.parametrize(
    ("cuda", "mps", "devices"),
    [(True, True, ["cuda", "mps", "cpu"]), (True, False, ["cuda", "cpu"]), (False, True, ["mps", "cpu"]), (False, False, ["cpu"])],
)
def test_the_fastest_device_comes_first_and_the_cpu_is_always_there(
    cuda: bool, mps: bool, devices: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert hardware.available_devices() == devices
    assert choose_hardware("auto", "fp32") == Hardware(devices[0], "fp32")


@pytest.mark.parametrize(("precision", "chosen"), [("auto", "fp32"), ("fp16", "fp16"), ("bf16", "bf16")])
def test_metal_works_in_full_precision_unless_it_is_told(precision: str, chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "available_devices", lambda: ["mps", "cpu"])
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    assert choose_hardware("mps", precision) == Hardware("mps", chosen)
    assert choose_hardware("mps:0", precision) == Hardware("mps:0", chosen)
    with pytest.raises(BackendError, match=r"--device mps:1: the number is one from 0 to 0\. Write --device mps, or another number"):
        choose_hardware("mps:1", precision)


@pytest.mark.parametrize("device", ["cuda:2", "cuda:x", "cuda:-1"])
def test_a_gpu_that_there_is_not(device: str, two_gpus: None) -> None:
    with pytest.raises(BackendError, match=f"--device {device}: the number is one from 0 to 1"):
        choose_hardware(device, "auto")


def test_all_items_are_worked_on_in_order_in_batches() -> None:
    sizes = []

    def work(batch: list[int]) -> list[int]:
        sizes.append(len(batch))
        return [2 * item for item in batch]

    assert ShrinkingBatches(4, "model").map(work, list(range(10))) == [2 * item for item in range(10)]
    assert sizes == [4, 4, 2]
    assert ShrinkingBatches(4, "model").map(work, []) == []


def out_of_memory(
    most: int, sizes: list[int], error: type[RuntimeError] = torch.OutOfMemoryError, message: str = "CUDA out of memory."
) -> Any:
    """Work whose device has room for `most` items; `sizes` are the batches that were tried."""

    def work(batch: Sequence[int]) -> list[int]:
        sizes.append(len(batch))
        if len(batch) > most:
            raise error(message)
        return [2 * item for item in batch]

    return work


@pytest.mark.parametrize(
    ("most", "count", "tried", "kept"),
    [
        (3, 9, [8, 4, 2, 2, 2, 2, 1], 2),
        (1, 3, [3, 1, 1, 1], 1),  # half of what was tried, and not of what might have been
        (2, 5, [5, 2, 2, 1], 2),
        (8, 20, [8, 8, 4], 8),
    ],
)
def test_a_batch_that_does_not_fit_is_halved_and_stays_so_and_no_item_is_lost(most: int, count: int, tried: list[int], kept: int) -> None:
    batches, sizes = ShrinkingBatches(8, "model"), list[int]()
    assert batches.map(out_of_memory(most, sizes), list(range(count))) == [2 * item for item in range(count)]
    assert (sizes, batches.size) == (tried, kept)
    sizes.clear()
    batches.map(out_of_memory(most, sizes), list(range(kept)))
    assert sizes == [kept]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (torch.OutOfMemoryError, "?"),
        (RuntimeError, "MPS backend out of memory (MPS allocated: 9 GB)"),
        (RuntimeError, "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    ],
)
def test_memory_that_does_not_suffice_for_one_is_said(error: type[RuntimeError], message: str) -> None:
    sizes = list[int]()
    with pytest.raises(BackendError, match=r"^The model does not fit into the memory of its device, not even with one picture at a time"):
        ShrinkingBatches(4, "The model").map(out_of_memory(0, sizes, error, message), [1, 2, 3, 4])
    assert sizes == [4, 2, 1]


def test_another_error_is_not_taken_for_a_lack_of_memory() -> None:
    sizes = list[int]()
    with pytest.raises(RuntimeError, match=r"^shapes differ$"):
        ShrinkingBatches(4, "The model").map(out_of_memory(0, sizes, RuntimeError, "shapes differ"), [1, 2, 3, 4])
    assert sizes == [4]


def test_torch_has_its_threads_back_behind_the_block_whatever_happens_in_it() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        with contextlib.suppress(ValueError), single_threaded():
            assert torch.get_num_threads() == 1
            raise ValueError
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
