"""Devices and precisions: chosen, obeyed or refused in one sentence."""

from __future__ import annotations

import pytest
import torch

from vip.errors import BackendError
from vip.models import hardware
from vip.models.hardware import ShrinkingBatches, choose_hardware


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
