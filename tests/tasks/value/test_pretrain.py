"""Pre-training of HERO without its training: which videos are kept for validation, and what a training goes on with."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from tests.tasks.value.made import write_lines
from vip.errors import InputError, UsageError

pytest.importorskip("torch")
from tests.baselines.value.made_value import WIDTH, write_tokenizer  # needs torch
from tests.tasks.value.trained import SETTINGS, Notes, Trained
from vip.baselines.value import run_folder, training
from vip.baselines.value.run_folder import TrainedHero
from vip.tasks.value.pretrain import PretrainRequest, pretrain, split_videos


@pytest.mark.parametrize(("count", "of_val"), [(2, 1), (3, 1), (49, 1), (50, 1), (99, 1), (100, 2), (149, 2), (150, 3)])
def test_one_video_of_fifty_is_kept_and_at_least_one(count: int, of_val: int) -> None:
    names = [f"video {number}" for number in range(count)]
    train, val = split_videos(names)
    assert (len(train), len(val)) == (count - of_val, of_val)
    assert sorted({*train, *val}) == sorted(names)


def test_a_name_decides_and_not_its_place() -> None:
    """A video more may move another one out, and moves none in that was trained on before."""
    names = [f"video {number}" for number in range(100)]
    _, val = split_videos(names)
    _, of_more = split_videos([*names, "one more"])
    assert len(set(of_more) - set(val) - {"one more"}) == 0
    assert val != names[:2]
    assert split_videos(list(reversed(names))) == split_videos(names)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Trained:
    made = Trained("mlm")
    monkeypatch.setattr(training, "train_stage", made)
    return made


def data(folder: Path, *videos: str) -> dict[str, Any]:
    for number, name in enumerate(videos):
        (folder / "f").mkdir(exist_ok=True)
        np.savez(folder / f"f/{name}.npz", features=np.full((6, WIDTH), number, np.float16))
    said = [{"text": "hello you", "start": 0.0, "end": 2.0}]
    path = write_lines(folder / "s.jsonl", [{"vid_name": name, "sub": said} for name in videos])
    return {"features": [folder / "f"], "subtitles": path, "assignments": SETTINGS, "tokenizer": write_tokenizer(folder / "tok")}


def run(out: Path, **more: Any) -> tuple[TrainedHero, list[str]]:
    observer = Notes()
    return pretrain(PretrainRequest(out=out, **more), observer=cast(Any, observer)), observer.notes


def test_the_best_of_equal_validations_is_the_first_whose_weights_are_kept(tmp_path: Path, trained: Trained) -> None:
    record, _ = run(tmp_path / "out", **data(tmp_path, "a", "b", "c"), seed=7, devices=2, workers=3, device="cpu")
    assert (record.best_step, record.best_scores, record.is_finished) == (3, {"mlm": 50.0}, True)
    assert run_folder.read_hero(tmp_path / "out") == record
    assert (record.regime, record.stage, record.weights) == ("pretrain", "pretrain", None)
    assert set(record.train_items.values()) == {2}
    assert set(record.val_items.values()) == {1}
    (call,) = trained.calls
    assert call.settings.training.seed == 7
    assert (call.machine.device, call.machine.devices, call.machine.workers) == ("cpu", 2, 3)
    assert call.resume is False
    assert set(call.data.train) == set(record.tasks) == {"mlm", "mfm-nce", "fom", "vsm"}
    names = {one.video for one in call.data.train["mlm"]}
    assert len(names) == 2
    assert {len(some) for some in call.data.train.values()} == {2}


def test_a_training_goes_on_with_the_same_alone(tmp_path: Path, trained: Trained) -> None:
    given = data(tmp_path, "a", "b", "c")
    out = tmp_path / "out"
    record, _ = run(out, **given)
    with pytest.raises(UsageError, match=r"holds a training already\. Add --resume"):
        run(out, **given)
    again, notes = run(out, **given, resume=True)
    assert again == record
    assert notes == [f"{out} is trained already."]
    assert len(trained.calls) == 1
    (out / run_folder.HERO).write_text(record.model_copy(update={"is_finished": False, "best_step": None}).model_dump_json())
    _, _ = run(out, **{**given, "tokenizer": None}, resume=True)
    assert trained.calls[-1].resume is True
    with pytest.raises(UsageError, match="was begun with other settings"):
        run(out, **given, resume=True, seed=9)
    with pytest.raises(UsageError, match="was begun with other videos"):
        run(out, **data(tmp_path, "a", "b", "c", "d"), resume=True)
    (out / run_folder.HERO).write_text(record.model_copy(update={"weights": "roberta"}).model_dump_json())
    with pytest.raises(UsageError, match="was begun with other weights"):
        run(out, **data(tmp_path, "a", "b", "c"), resume=True)


def test_figures_of_a_finished_training_are_those_of_its_videos(tmp_path: Path, trained: Trained) -> None:
    """A folder of somebody else may state others, or none."""
    given = data(tmp_path, "a", "b", "c")
    record, _ = run(tmp_path / "out", **given)
    (tmp_path / "out" / run_folder.HERO).write_text(record.model_copy(update={"val_items": {}, "train_items": {"x": 5}}).model_dump_json())
    again, _ = run(tmp_path / "out", **given, resume=True)
    assert again == record


def test_a_training_that_is_replaced_leaves_nothing_of_the_old_one(tmp_path: Path, trained: Trained) -> None:
    given = data(tmp_path, "a", "b")
    out = tmp_path / "out"
    run(out, **given)
    left = [run_folder.WEIGHTS, run_folder.VALIDATIONS, run_folder.LAST]
    for name in left:
        (out / name).write_text("old")
    run(out, **given, overwrite=True)
    assert not trained.calls[-1].there & set(left)
    assert trained.calls[-1].resume is False
    assert run_folder.read_hero(out).is_finished


def test_what_is_missing_is_one_sentence(tmp_path: Path, trained: Trained) -> None:
    given = data(tmp_path, "a", "b")
    with pytest.raises(UsageError, match="Name the folder of RoBERTa's tokenizer"):
        run(tmp_path / "out", **{**given, "tokenizer": None})
    with pytest.raises(UsageError, match="Name one file of subtitles"):
        run(tmp_path / "out", **{**given, "subtitles": tmp_path})
    with pytest.raises(InputError, match="has no video whose features are given"):
        run(tmp_path / "out", **{**given, "subtitles": write_lines(tmp_path / "o.jsonl", [{"vid_name": "other", "sub": []}])})
    with pytest.raises(InputError, match="and there are 1"):
        run(tmp_path / "out", **{**given, "subtitles": write_lines(tmp_path / "p.jsonl", [{"vid_name": "a", "sub": []}])})
    with pytest.raises(UsageError, match="The fusion two-stream has no pre-training"):
        run(tmp_path / "out", **{**given, "assignments": (*SETTINGS, "model.fusion=two-stream")})
    assert trained.calls == []
