"""`vip train`, and `vip predict --model`, as typed."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.baselines.made import make_items, write_features_of
from tests.cli.terminal import Done, end, start, vip
from tests.tasks.nextqa.published import OE_COLUMNS, write_csv
from vip.baselines.nextqa.data import Item
from vip.cli.app import run

SMALL = ("--set", "words.size=16", "--set", "words.least_count=1", "--set", "training.batch=8", "--set", "model.hidden=16")
HGA = (*SMALL, "--set", "model.fusion=24", "--set", "model.fusion_chunks=4")
DATA = ("--annotations", "data", "--features", "f.h5")
PREDICT = ("predict", "--task", "nextqa-mc", "--annotations", "data/val.csv", "--features", "f.h5", "--model")


def rows_of(items: Sequence[Item], *, options: bool = True) -> list[tuple[object, ...]]:
    about = [(item.video, 100, 64, 48, item.question, item.answer, 0, "DO") for item in items]
    return [(*row, *item.options) if options else row for row, item in zip(about, items, strict=True)]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """As in the processes that tests start: sums over other threads are not the same to the last bit."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    train, val = make_items(40), make_items(16, first=100)
    (tmp_path / "data").mkdir()
    write_csv(tmp_path / "data/train.csv", rows_of(train))
    write_csv(tmp_path / "data/val.csv", rows_of(val))
    write_features_of(tmp_path / "f.h5", [*train, *val])
    return tmp_path


def train(folder: Path, *more: str) -> Done:
    return vip(folder, "train", "nextqa-mc", *DATA, *more, OMP_NUM_THREADS="1")


def epochs(folder: Path) -> int:
    path = folder / "epochs.jsonl"
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_a_model_is_trained_answers_and_is_scored(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ("--model", "evqa", *SMALL, "--set", "model.fusion=multiply", "--set", "training.learning_rate=0.01", "--epochs", "12")
    done = train(folder, *more, "-o", "run")
    assert done.code == 0, done.err
    assert done.out.startswith("model:evqa settings:")
    assert "vip: epoch 12 of 12: loss " in done.err
    assert "vocabulary of" in done.err
    monkeypatch.chdir(folder)
    for name in ("p.jsonl", "q.jsonl"):
        assert run([*PREDICT, "run", "-o", name]) == 0
        assert capsys.readouterr().out.startswith("16 predictions by model:evqa settings:")
    assert (folder / "p.jsonl").read_bytes() == (folder / "q.jsonl").read_bytes()
    first = json.loads((folder / "p.jsonl").read_text().splitlines()[0])
    assert first["engine"].endswith(" seed:666")
    assert len(first["scores"]) == 5
    assert run(["score", "p.jsonl", "--task", "nextqa-mc", "--annotations", "data/val.csv", "--json"]) == 0
    scored = json.loads(capsys.readouterr().out.splitlines()[0])
    assert scored["metrics"]["accuracy"]["value"] >= 0.9


def test_killed_and_terminated_it_goes_on_to_the_same_predictions(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    given = ("--model", "hga", *HGA, "--epochs", "40")
    process = start(folder, "train", "nextqa-mc", *DATA, *given, "-o", "broken", OMP_NUM_THREADS="1")
    deadline = time.monotonic() + 60
    while epochs(folder / "broken") < 2 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    assert end(process).code == -signal.SIGKILL
    killed = epochs(folder / "broken")
    assert 2 <= killed < 39
    with monkeypatch.context() as patch:
        _terminate_at_step(8, patch)
        assert run(["train", "nextqa-mc", *DATA, "--resume", "-o", "broken"]) == 143
    assert capsys.readouterr().err.endswith("vip: terminated. Run the same command again to go on where it stopped.\n")
    assert epochs(folder / "broken") in {killed, killed + 1}  # killed behind the row, before the file to go on from was whole
    assert run(["train", "nextqa-mc", *DATA, "--resume", "-o", "broken"]) == 0
    assert run(["train", "nextqa-mc", *DATA, *given, "-o", "whole"]) == 0
    for name in ("whole", "broken"):
        assert run([*PREDICT, name, "-o", f"{name}.jsonl"]) == 0
    assert (folder / "broken.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()
    assert (folder / "broken/epochs.jsonl").read_bytes() == (folder / "whole/epochs.jsonl").read_bytes()


def _terminate_at_step(number: int, patch: pytest.MonkeyPatch) -> None:
    """Send SIGTERM to this process in a step of the training."""
    from vip.baselines.training import TrainingLoop

    step, steps = TrainingLoop.training_step, count(1)

    def terminated(self: Any, batch: Any, place: int) -> torch.Tensor:
        if next(steps) == number:
            os.kill(os.getpid(), signal.SIGTERM)
        return step(self, batch, place)

    patch.setattr(TrainingLoop, "training_step", terminated)


def test_an_open_ended_model_is_trained_and_answers(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    items = make_items(20, options=False)
    for split in ("train", "val"):
        write_csv(folder / f"data/{split}.csv", rows_of(items, options=False), OE_COLUMNS)
    write_features_of(folder / "f.h5", items)
    given = ("--model", "hga", *HGA, "--decoder", "naive", "--set", "training.best_by=exact-match", "--epochs", "1", "-o", "run")
    assert run(["train", "nextqa-oe", *DATA, *given, "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["decoder"], done["score"], done["val"]) == ("naive", "exact-match", 20)
    asked = ("predict", "--task", "nextqa-oe", "--annotations", "data/val.csv", "--features", "f.h5", "--model", "run", "-o", "p.jsonl")
    assert run([*asked]) == 0
    rows = [json.loads(line) for line in (folder / "p.jsonl").read_text().splitlines()]
    assert [row["sample_id"] for row in rows] == [item.id for item in items]
    assert all(isinstance(row["value"], str) and row["status"] == "ok" for row in rows)


@pytest.mark.parametrize(
    ("command", "code", "sentence"),
    [
        (("train", "nextqa-mc", *DATA, "-o", "run"), 2, "Name the model to train: --model hga."),
        (("train", "nextqa-xx", *DATA, "-o", "run", "--model", "hga"), 2, 'No model is trained for "nextqa-xx".'),
        (("train", "nextqa-mc", *DATA, "-o", "run", "--model", "hgb"), 2, 'no model "hgb". Did you mean "hga"?'),
        (("train", "nextqa-mc", *DATA, "-o", "run", "--resume"), 2, "run holds no training. Name the model: --model hga."),
        (("train", "nextqa-mc", *DATA, "-o", "run", "--resume", "--set", "model.hidden=3"), 2, "Settings are given without --model NAME."),
        (("train", "nextqa-mc", "--annotations", "f.h5", "-o", "run", "--model", "hga"), 3, "has no train.csv"),
        (("train", "nextqa-mc", "--annotations", "data", "-o", "run", "--model", "hga"), 2, "Give its features: --features FILE."),
        (("train", "nextqa-oe", *DATA, "-o", "run", "--model", "hga"), 3, "line 2"),
        ((*PREDICT, "data", "-o", "p.jsonl"), 3, "data holds no trained model."),
        ((*PREDICT, "run", "--baseline", "longest", "-o", "p.jsonl"), 2, "--model answers by itself. Leave --baseline out."),
        ((*PREDICT[:-1], "-o", "p.jsonl"), 2, "--features is for trained models. Add --model DIR."),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_one_sentence(
    folder: Path, command: tuple[str, ...], code: int, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert run(list(command)) == code
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert sentence in lines[0]
    assert not (folder / "run").exists()


def test_a_model_of_the_other_task_does_not_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert run(["train", "nextqa-mc", *DATA, "--model", "blind-qa", *SMALL, "--epochs", "1", "-o", "run"]) == 0
    write_csv(folder / "oe.csv", rows_of(make_items(3, options=False), options=False), OE_COLUMNS)
    assert run(["predict", "--task", "nextqa-oe", "--annotations", "oe.csv", "--model", "run", "-o", "p.jsonl"]) == 2
    assert "run holds a model of nextqa-mc" in capsys.readouterr().err


def test_two_devices_share_each_batch(folder: Path) -> None:
    done = train(folder, "--model", "evqa", *SMALL, "--epochs", "2", "--device", "cpu", "--devices", "2", "-o", "run")
    assert done.code == 0, done.err
    assert done.err.count("epoch 2 of 2") == 1
    assert done.out.count("model:evqa") == 1
    assert epochs(folder / "run") == 2
    assert (folder / "run/weights.safetensors").exists()
