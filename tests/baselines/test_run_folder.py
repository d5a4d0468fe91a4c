"""vip.baselines.run_folder: the file that a training goes on from"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
import torch

from vip.baselines import run_folder
from vip.baselines.run_folder import LAST, find_last
from vip.errors import InputError


def test_a_training_that_has_saved_nothing_begins_anew(tmp_path: Path) -> None:
    assert find_last(tmp_path) is None
    torch.save({"state_dict": {}}, tmp_path / LAST)
    assert find_last(tmp_path) == tmp_path / LAST


@pytest.mark.parametrize("place", ["fifo", "link", "dangling", "device", "folder"])
def test_what_is_no_file_of_its_own_is_refused_at_once(place: str, tmp_path: Path) -> None:
    torch.save({"state_dict": {}}, tmp_path / "elsewhere.ckpt")
    path = tmp_path / "run" / LAST
    path.parent.mkdir()
    if place == "fifo":
        os.mkfifo(path)
    elif place == "folder":
        path.mkdir()
    else:
        path.symlink_to({"link": tmp_path / "elsewhere.ckpt", "dangling": tmp_path / "none", "device": Path("/dev/zero")}[place])
    with pytest.raises(InputError, match=r"last\.ckpt cannot be read \((it is|Is a directory)"):
        find_last(path.parent)


def test_a_small_file_that_unpacks_to_far_more_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_folder, "MOST_WEIGHT_BYTES", 2**20)
    with zipfile.ZipFile(tmp_path / LAST, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("last/data/0", bytes(2**21))
    with pytest.raises(InputError, match=r"more than 1,048,576 bytes unpacked\)\. Begin the training anew: --overwrite"):
        find_last(tmp_path)
    with zipfile.ZipFile(tmp_path / LAST, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3):
            archive.writestr(f"last/data/{number}", bytes(2**19))
    with pytest.raises(InputError, match="more than 1,048,576 bytes unpacked"):
        find_last(tmp_path)
