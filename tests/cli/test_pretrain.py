"""`vip pretrain`, as typed"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.baselines.value.made_value import WIDTH, write_tokenizer
from tests.tasks.value.made import write_lines
from vip.baselines.value import run_folder
from vip.baselines.value.interface import build
from vip.cli.app import run
from vip.errors import InputError
from vip.tasks.value.pretrain import split_videos

SMALL = (
    *("model.hidden=16", "model.heads=2", "model.intermediate=32", "model.cross_layers=1", "model.temporal_layers=1"),
    *("model.decoder_layers=1", "model.vocabulary=272", "model.positions=66", "model.caption_positions=66"),
    *("training.steps=4", "training.warmup_steps=1", "training.validate_every=2", "training.accumulate=1"),
)
SET = tuple(word for one in SMALL for word in ("--set", one))
DATA = ("--features", "f", "--subtitles", "tv.jsonl", "--tokenizer", "tok")


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with six videos, their features and subtitles, and a tokenizer."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f").mkdir()
    rng = np.random.default_rng(0)
    for number in range(6):
        np.savez(tmp_path / f"f/v{number}.npz", features=rng.standard_normal((6, WIDTH)).astype(np.float16))
    said = [{"text": "hello you", "start": 0.0, "end": 2.0}, {"text": "no", "start": 4.0, "end": 6.0}]
    write_lines(tmp_path / "tv.jsonl", [{"vid_name": f"v{number}", "sub": said} for number in range(7)])
    write_tokenizer(tmp_path / "tok")
    return tmp_path


@pytest.mark.slow
def test_a_pre_training_goes_on_ends_and_gives_weights_to_a_training(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pretrain", *DATA, *SET, "-o", "pre", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["steps"] == 4
    assert set(said["scores"]) == {"mlm", "mfm-nce", "fom", "vsm"}
    assert all(0 <= score <= 100 for score in said["scores"].values())
    record = run_folder.read_hero(folder / "pre")
    assert (record.regime, record.train_items["mlm"], record.val_items["mlm"], record.is_finished) == ("pretrain", 5, 1, True)
    rows = [json.loads(line) for line in (folder / "pre/validations.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [2, 4]
    model = build(record.settings.model)
    run_folder.load_weights(folder / "pre/weights.safetensors", model)
    assert run(["pretrain", *DATA, *SET, "-o", "pre"]) == 2
    assert "holds a training already" in capsys.readouterr().err
    assert run(["pretrain", *DATA, *SET, "-o", "pre", "--resume"]) == 0
    assert "is trained already" in capsys.readouterr().err
    assert run(["pretrain", *DATA, *SET, "--set", "training.steps=6", "-o", "pre", "--resume"]) == 2
    assert "other settings" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says", "code"),
    [
        (["--features", "f", "--tokenizer", "tok"], "Name one file of subtitles: --subtitles FILE.", 2),
        (["--subtitles", "tv.jsonl", "--tokenizer", "tok"], "Give their features", 2),
        (["--features", "f", "--subtitles", "tv.jsonl"], "Name the folder of RoBERTa's tokenizer", 2),
        ([*DATA, *SET, "--set", "model.fusion=add"], "has no pre-training", 2),
        ([*DATA, *SET, "--weights", "hero:none.pt"], "There is no checkpoint none.pt", 3),
    ],
)
def test_what_is_missing_is_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str, code: int
) -> None:
    assert run(["pretrain", *arguments, "-o", "pre"]) == code
    error = capsys.readouterr().err
    assert says in error
    assert "Traceback" not in error


def test_videos_of_validation_are_chosen_by_their_names() -> None:
    names = [f"v{number}" for number in range(200)]
    train, val = split_videos(names)
    assert (len(train), len(val)) == (196, 4)
    assert split_videos(names[::-1]) == (train, val)
    assert sorted([*train, *val]) == sorted(names)
    with pytest.raises(InputError, match="there are 1"):
        split_videos(["v"])
