"""`vip train value`, and `vip predict --model` with HERO, as typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tests.baselines.value.made_value import WIDTH, write_tokenizer
from tests.tasks.value.made import write_lines
from vip.cli.app import run

SMALL = (
    *("model.hidden=16", "model.heads=2", "model.intermediate=32", "model.cross_layers=1", "model.temporal_layers=1"),
    *("model.decoder_layers=1", "model.vocabulary=272", "model.positions=66", "model.caption_positions=66"),
    *("training.steps=2", "training.warmup_steps=1", "training.validate_every=1", "training.accumulate=1"),
)
SET = tuple(word for one in SMALL for word in ("--set", one))
DATA = ("--annotations", "data", "--features", "f", "--subtitles", "data", "--tokenizer", "tok")


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with TVR, TVQA and TVC of four videos, their features and subtitles, and a tokenizer."""
    monkeypatch.chdir(tmp_path)
    data, random = tmp_path / "data", np.random.default_rng(0)
    data.mkdir()
    (tmp_path / "f").mkdir()
    for split, first in (("train", 0), ("val", 4)):
        names = [f"v{number}" for number in range(first, first + 4)]
        for name in names:
            np.savez(tmp_path / f"f/{name}.npz", features=random.standard_normal((6, WIDTH)).astype(np.float16))
        queries, questions, clips = [], [], []
        for number, name in enumerate(names):
            about = {"vid_name": name, "ts": [1.5, 4.5], "duration": 9.0}
            queries.append({"desc_id": number, "desc": f"go {number}", "type": "v", **about})
            questions.append({"qid": number, "q": "who?", **{f"a{one}": f"x{one}" for one in range(5)}, "answer_idx": number, **about})
            clips.append({"clip_id": number, **about, "descs": [{"desc": f"he sees {one}"} for one in "ab"]})
        write_lines(data / f"tvr_{split}_release.jsonl", queries)
        write_lines(data / f"tvqa_{split}_release.jsonl", questions)
        write_lines(data / f"tvc_{split}_release.jsonl", clips)
    spoken = [{"vid_name": f"v{number}", "sub": [{"text": "hello", "start": 0.0, "end": 2.0}]} for number in range(8)]
    write_lines(data / "tv_subtitles.jsonl", spoken)
    (data / "tvr_video2dur_idx.json").write_text(json.dumps({"val": {f"v{number}": [9.0, number] for number in range(4, 8)}}))
    write_tokenizer(tmp_path / "tok")
    return tmp_path


def train(*more: str) -> int:
    return run(["train", "value", *DATA, "-o", "run", *SET, *more])


def predict(task: str, *more: str) -> int:
    files = ("--annotations", f"data/{task}_val_release.jsonl", "--features", "f", "--subtitles", "data/tv_subtitles.jsonl")
    return run(["predict", "--task", f"value-{task}", *files, *more])


def test_all_tasks_are_trained_then_each_and_answer_and_are_scored(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    only = tuple(word for task in ("tvr", "tvqa", "tvc") for word in ("--only", f"value-{task}"))
    assert train("--regime", "at-st", *only, "--json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["stage"], row["tasks"]) for row in rows] == [
        ("at", ["tvr", "tvqa", "tvc"]),
        ("tvr", ["tvr"]),
        ("tvqa", ["tvqa"]),
        ("tvc", ["tvc"]),
    ]
    assert not any(row["is_meta_average"] for row in rows)
    assert rows[0]["train"] == {"tvr": 4, "tvqa": 4, "tvc": 8}
    for task in ("tvr", "tvqa", "tvc"):
        index = ("--video-index", "data/tvr_video2dur_idx.json", "--split", "val") if task == "tvr" else ()
        assert predict(task, *index, "--model", "run", "-o", f"{task}.jsonl") == 0
        answers = [json.loads(line) for line in (folder / f"{task}.jsonl").read_text().splitlines()]
        assert len(answers) == 4
        assert {row["engine"] for row in answers} == {"model:hero at-st video+sub f"}
        capsys.readouterr()
        assert run(["score", f"{task}.jsonl", "--samples", f"{task}.samples.jsonl", "--json"]) == 0
        scored = json.loads(capsys.readouterr().out)
        (stage,) = [row for row in rows if row["stage"] == task]
        metric = {"tvr": "aver", "tvqa": "accuracy", "tvc": "cider-d"}[task]
        assert scored["metrics"][metric]["value"] == pytest.approx(stage["scores"][task], abs=1e-4)


def test_a_mean_of_few_tasks_is_printed_as_partial(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--regime", "mt-domain", "--only", "tvqa", "--only", "tvc") == 0
    printed = capsys.readouterr()
    assert "(mean of 2 tasks, partial) at step" in printed.out
    assert "(mean of 2 tasks, partial)" in printed.err
    assert "run/tv: " in printed.out


def test_a_training_goes_on_and_is_not_replaced_unasked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--regime", "st", "--only", "tvqa", "-q") == 0
    weights = (folder / "run/tvqa/weights.safetensors").read_bytes()
    assert train("--regime", "st", "--only", "tvqa") == 2
    assert "holds a training already. Add --resume to go on with it, or --overwrite" in capsys.readouterr().err
    assert run(["train", "value", *DATA, "-o", "run", "--regime", "st", "--only", "tvqa", "--resume"]) == 0
    assert "is trained already" in capsys.readouterr().err
    assert train("--regime", "st", "--only", "tvqa", "--set", "training.steps=3", "--resume") == 2
    assert "was begun with other settings. Leave them out" in capsys.readouterr().err
    assert train("--regime", "at", "--only", "tvqa", "--overwrite", "-q") == 0
    assert (folder / "run/tvqa/weights.safetensors").read_bytes() == weights
    assert train("--regime", "st", "--only", "tvqa", "--seed", "3", "--overwrite", "-q") == 0
    assert (folder / "run/tvqa/weights.safetensors").read_bytes() != weights


def test_a_task_goes_on_from_the_model_of_all_tasks_that_is_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--regime", "at", "--only", "tvqa", "-q") == 0
    one_step = ("--set", "training.learning_rate=1e-12", "--set", "training.steps=1")
    assert train("--regime", "at-st", "--only", "tvqa", "--weights", "run/at", *one_step, "-q") == 0
    assert sorted(path.name for path in (folder / "run").iterdir() if path.is_dir()) == ["at", "tvqa"]
    first, second = (load_file(folder / f"run/{stage}/weights.safetensors") for stage in ("at", "tvqa"))
    assert first.keys() == second.keys()
    assert all(torch.allclose(first[name], second[name], atol=1e-9) for name in first)
    assert json.loads((folder / "run/tvqa/hero.json").read_text())["weights"] == "at"
    assert predict("tvqa", "--model", "run", "-o", "x.jsonl", "-q") == 0
    assert json.loads((folder / "x.jsonl").read_text().splitlines()[0])["engine"] == "model:hero at-st video+sub f from:at"


def test_a_task_of_the_same_kind_is_answered_by_the_folder_of_a_stage(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--regime", "st", "--only", "tvqa", "-q") == 0
    events = [{"example_id": 1, "events": ["a", "b"], "answer": 0, "vid_name": "v1"}]
    write_lines(folder / "data/vlep_val_release.jsonl", events)
    assert predict("vlep", "--model", "run/tvqa", "-o", "vlep.jsonl", "-q") == 0
    assert json.loads((folder / "vlep.jsonl").read_text())["engine"] == "model:hero st video+sub f trained on tvqa"
    assert predict("vlep", "--model", "run", "-o", "x.jsonl") == 3
    assert "run holds no model of vlep: it was trained on tvqa" in capsys.readouterr().err
    assert predict("tvc", "--model", "run/tvqa", "-o", "x.jsonl") == 2
    assert "was trained on tvqa, and value-tvc is of another kind" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "Name which tasks share a model: --regime 'st|mt-task|mt-domain|at|at-st'."),
        (["--regime", "all"], 2, 'There is no regime "all".'),
        (["--regime", "st", "--only", "tvq"], 2, 'VALUE has no task "tvq".'),
        (["--regime", "st", "--model", "hga"], 2, "--model is for trainings of NExT-QA and FIBER. Leave it out."),
        (["--regime", "st", "--only", "vlep"], 3, "no annotations of value-vlep (vlep_train….jsonl)"),
        (["--regime", "st", "--only", "tvqa", "--tokenizer", "data"], 3, "data has no vocab.json"),
        (["--regime", "st", "--only", "tvqa", "--weights", "hero:no.pt"], 3, "There is no checkpoint no.pt"),
        (["--regime", "st", "--only", "tvqa", "--weights", "data"], 2, "data holds 0 trained models. Name the folder of one"),
        (["--regime", "st", "--only", "tvqa", "--set", "model.vocabulary=99"], 3, "tok has 261 words, and the model 99"),
        (["--regime", "st", "--only", "tvqa", "--set", "model.heads=3"], 2, "16 numbers cannot be shared by 3 heads"),
        (["--regime", "st", "--only", "tvqa", "--features", "tok"], 3, "There are no features tok/v0.npz. Give the folder that has them."),
    ],
)
def test_each_fault_is_one_sentence(folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, message: str) -> None:
    assert train(*words) == code
    printed = capsys.readouterr().err.strip()
    assert message in printed
    assert "Traceback" not in printed


def test_options_of_value_are_refused_elsewhere(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "nextqa-mc", "--annotations", "data", "-o", "run", "--regime", "st"]) == 2
    assert "--regime is for trainings of VALUE. Leave it out." in capsys.readouterr().err
    assert run(["predict", "--task", "nextqa-mc", "--annotations", "x", "--tokenizer", "tok"]) == 2
    assert "--tokenizer is for --model hero:FILE" in capsys.readouterr().err


def test_each_fault_of_a_prediction_is_one_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert predict("tvqa", "--model", "data", "-o", "x.jsonl") == 3
    assert "data holds no trained HERO. Give a folder that `vip train value` wrote." in capsys.readouterr().err
    assert predict("tvqa", "--model", "hero:no.pt", "-o", "x.jsonl") == 2
    assert "A checkpoint has no tokenizer. Name the folder of RoBERTa's: --tokenizer DIR." in capsys.readouterr().err
    assert predict("tvqa", "--model", "hero:no.pt", "--tokenizer", "tok", "-o", "x.jsonl") == 3
    assert "There is no checkpoint no.pt" in capsys.readouterr().err
    assert train("--regime", "st", "--only", "tvqa", "-q") == 0
    (folder / "g").mkdir()
    for number in range(8):
        np.savez(folder / f"g/v{number}.npz", features=np.zeros((3, WIDTH + 1), np.float32))
    assert predict("tvqa", "--model", "run", "-o", "x.jsonl", "--features", "g") == 3
    assert f"The features have {2 * WIDTH + 1} numbers a frame, and the model was trained on {WIDTH}." in capsys.readouterr().err
    (folder / "run/tvqa/weights.safetensors").write_bytes(b"no weights")
    assert predict("tvqa", "--model", "run", "-o", "x.jsonl") == 3
    assert "holds no weights that can be read" in capsys.readouterr().err
