"""vip.baselines.kept: weights are those of the model, no fewer and no more, and nothing else is read with them"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from vip.baselines.kept import load_tensors, read_before, write_tensors
from vip.errors import InputError, UsageError
from vip.records import Record

NAMES = ("weight", "bias")
Tensors = dict[str, torch.Tensor]


def model(value: float = 0.0) -> nn.Linear:
    made = nn.Linear(2, 3)
    for parameter in made.parameters():
        nn.init.constant_(parameter, value)
    return made


def test_weights_come_back_and_only_those_that_were_named(tmp_path: Path) -> None:
    write_tensors(tmp_path / "w", model(2.0), ["weight"])
    other = model(1.0)
    load_tensors(tmp_path / "w", other, ["weight"], "nothing")
    assert (other.weight.unique().tolist(), other.bias.unique().tolist()) == ([2.0], [1.0])


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda tensors: tensors | {"more": torch.zeros(1)}, "more"),
        (lambda tensors: {"weight": tensors["weight"]}, "bias"),
        (lambda tensors: tensors | {"bias": torch.zeros(4)}, "bias"),
        (lambda tensors: tensors | {"\x1b[31m\nred": torch.zeros(1)}, "red"),
        (lambda tensors: {}, "bias"),
    ],
)
def test_weights_of_another_model_are_refused(change: Callable[[Tensors], Tensors], named: str, tmp_path: Path) -> None:
    save_file(change({"weight": torch.zeros(3, 2), "bias": torch.zeros(3)}), tmp_path / "w")
    kept = model(1.0)
    with pytest.raises(InputError, match=f"holds weights of another model, such as {named}\\. Train the model again") as caught:
        load_tensors(tmp_path / "w", kept, NAMES, "nothing")
    assert "\x1b" not in str(caught.value)
    assert kept.weight.unique().tolist() == [1.0]


@pytest.mark.parametrize("data", [b"", b"\xff" * 8, b"\x80\x00\x00\x00\x00\x00\x00\x80 {}", b"PK\x03\x04"])
def test_what_holds_no_weights_is_one_sentence(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(data)
    with pytest.raises(InputError, match="holds no weights that can be read") as caught:
        load_tensors(tmp_path / "w", model(), NAMES, "nothing")
    assert "\n" not in str(caught.value)


def test_a_training_is_neither_replaced_nor_gone_on_with_unasked(tmp_path: Path) -> None:
    path, kept = tmp_path / "model.json", Record()

    def before(*, resume: bool, overwrite: bool) -> Record | None:
        return read_before(path, lambda folder: kept, resume=resume, overwrite=overwrite)

    assert before(resume=True, overwrite=False) is before(resume=False, overwrite=False) is None
    path.touch()
    with pytest.raises(UsageError, match=r"holds a training already\. Add --resume to go on with it, or --overwrite"):
        before(resume=False, overwrite=False)
    assert before(resume=True, overwrite=False) is kept
    assert before(resume=False, overwrite=True) is None


def test_what_is_not_there_is_said_in_the_words_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No epoch has ended"):
        load_tensors(tmp_path / "w", model(), NAMES, "No epoch has ended.")
