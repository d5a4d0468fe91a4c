"""vip.baselines.kept: weights are those of the model, no fewer and no more, and nothing else is read with them"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from vip import store
from vip.baselines import kept as kept_module
from vip.baselines.kept import build_with_tensors, check_kept_folder, load_tensors, read_before, read_kept, write_tensors
from vip.baselines.nextqa.assemble import load_settings
from vip.baselines.run_folder import SizesRecord, TrainedModel
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


@pytest.mark.parametrize(("kind", "shape", "size_bytes"), [("F4", [4, 2], 4), ("F8_E8M0", [3, 2], 6), ("F32", [0, 2**63, 2**63], 0)])
def test_numbers_that_torch_does_not_have_are_one_sentence(kind: str, shape: list[int], size_bytes: int, tmp_path: Path) -> None:
    header = json.dumps({"weight": {"dtype": kind, "shape": shape, "data_offsets": [0, size_bytes]}}).encode()
    (tmp_path / "w").write_bytes(len(header).to_bytes(8, "little") + header + bytes(size_bytes))
    with pytest.raises(InputError, match=r"w holds no weights that can be read \(.*\)\. Train the model again"):
        load_tensors(tmp_path / "w", model(), NAMES, "nothing")


@pytest.mark.parametrize("data", [b"", b"\xff" * 8, b"\x80\x00\x00\x00\x00\x00\x00\x80 {}", b"PK\x03\x04"])
def test_what_holds_no_weights_is_one_sentence(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(data)
    with pytest.raises(InputError, match="holds no weights that can be read") as caught:
        load_tensors(tmp_path / "w", model(), NAMES, "nothing")
    assert "\n" not in str(caught.value)


def test_a_model_takes_no_memory_before_its_sizes_are_those_of_its_weights(tmp_path: Path) -> None:
    write_tensors(tmp_path / "w", model(2.0), NAMES)
    found = build_with_tensors(tmp_path / "w", lambda: nn.Linear(2, 3), lambda made: NAMES, "nothing")
    assert (found.weight.device.type, found.weight.unique().tolist(), found.bias.unique().tolist()) == ("cpu", [2.0], [2.0])
    with pytest.raises(InputError, match=r"holds weights of another model, such as bias\. Train the model again"):
        build_with_tensors(tmp_path / "w", lambda: nn.Linear(10**6, 10**6), lambda made: NAMES, "nothing")
    with pytest.raises(InputError, match="No epoch has ended"):
        build_with_tensors(tmp_path / "none", lambda: nn.Linear(10**6, 10**6), lambda made: NAMES, "No epoch has ended.")


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


def test_another_process_goes_on_with_what_the_first_has_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    kept = Record()
    (tmp_path / "model.json").touch()
    for resume, overwrite in ((False, False), (True, False), (False, True)):
        assert read_before(tmp_path / "model.json", lambda folder: kept, resume=resume, overwrite=overwrite) is kept


@pytest.mark.parametrize(("text", "said"), [("{", r"is damaged \("), ('{"settings": 5}', r"is damaged \("), (None, "Give another folder.")])
def test_a_record_that_is_missing_or_damaged_is_one_sentence(text: str | None, said: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "model.json").write_text(text)
    with pytest.raises(InputError, match=said) as caught:
        read_kept(tmp_path / "model.json", TrainedModel, "Give another folder.")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("place", ["fifo", "folder", "damaged"])
def test_a_record_that_cannot_be_read_names_the_next_step_of_a_training(place: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    if place == "fifo":
        os.mkfifo(path)
    elif place == "folder":
        path.mkdir()
    else:
        path.write_text("{")
    with pytest.raises(InputError, match=r"model\.json is damaged \(.*\)\. Train the model again\.") as caught:
        read_kept(path, TrainedModel, "")
    assert "extract" not in str(caught.value)


def test_a_record_whose_settings_were_changed_by_hand_is_refused(tmp_path: Path) -> None:
    settings = load_settings("nextqa-mc", "hga")
    sizes = SizesRecord(appearance=1, motion=1, clips=1, words=1, length=1, maps=0)
    of = {"settings": settings, "sizes": sizes, "train_items": 1, "val_items": 1, "data_sha256": "x"}
    store.write_json(tmp_path / "a.json", TrainedModel(settings_sha256=settings.sha256, **of))
    assert read_kept(tmp_path / "a.json", TrainedModel, "").settings == settings
    store.write_json(tmp_path / "b.json", TrainedModel(settings_sha256=settings.sha256[::-1], **of))
    with pytest.raises(InputError, match=r"b\.json was changed by hand: its settings are not those of its hash"):
        read_kept(tmp_path / "b.json", TrainedModel, "")


def test_a_folder_that_a_library_reads_has_no_links_and_no_file_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "config.json").write_text("{}" * 50)
    check_kept_folder(tmp_path / "bert")
    monkeypatch.setattr(kept_module, "MOST_WEIGHT_BYTES", 99)
    with pytest.raises(InputError, match=r"bert cannot be read: .*\. Train the model again"):
        check_kept_folder(tmp_path / "bert")
    monkeypatch.setattr(kept_module, "MOST_WEIGHT_BYTES", 100)
    check_kept_folder(tmp_path / "bert")
    (tmp_path / "bert" / "vocab.txt").symlink_to("config.json")
    with pytest.raises(InputError, match="it is a link"):
        check_kept_folder(tmp_path / "bert")
