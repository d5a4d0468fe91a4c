"""`vip train fiber`, and `vip predict --model` with what it wrote, as typed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("transformers")
pytest.importorskip("lightning")

from tests.baselines.fiber.made import make_items, write_npy, write_t5
from tests.cli.terminal import Done, vip
from vip.baselines.fiber.data import BlankItem
from vip.cli.app import run

pytestmark = pytest.mark.slow
SMALL = ("--set", "training.batch=16", "--set", "training.learning_rate=0.005", "--set", "decoding.beams=2")
PREDICT = ("predict", "--task", "fiber", "--annotations", "data/val.json", "--parser", "none")


def write_records(path: Path, items: Sequence[BlankItem]) -> None:
    rows = [
        {
            **{"video_id": item.clip.video, "video_start_time": item.clip.start_s, "video_end_time": item.clip.end_s},
            **{"caption": item.masked.replace("_____", item.label or ""), "masked_caption": item.masked, "label": item.label},
            "additional_answers": [[item.label, "something"]],
        }
        for item in items
    ]
    path.write_text(json.dumps(rows))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    train, val = make_items(64), make_items(16, first=100)
    (tmp_path / "data").mkdir()
    write_records(tmp_path / "data/train.json", train)
    write_records(tmp_path / "data/val.json", val)
    write_npy(tmp_path / "i3d", [*train, *val])
    write_t5(tmp_path / "t5")
    return tmp_path


def train(folder: Path, *more: str) -> Done:
    return vip(folder, "train", "fiber", "--annotations", "data", "-o", "run", *SMALL, *more)


def test_a_model_is_trained_fills_blanks_and_is_scored(folder: Path) -> None:
    done = train(folder, "--model", "early-fusion", "--features", "i3d", "--weights", "t5:t5", "--epochs", "6", "--json")
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert (said["task"], said["model"], said["weights"], said["train"], said["val"]) == ("fiber", "early-fusion", "t5:t5", 64, 16)
    assert said["best_score"] == 1.0
    done = vip(folder, *PREDICT, "--model", "run", "--features", "i3d", "-o", "p.jsonl")
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in (folder / "p.jsonl").read_text().splitlines()]
    assert all(
        row["engine"].startswith("model:early-fusion settings:") and " beams:2 " in row["engine"] and row["log_probabilities"]
        for row in rows
    )
    done = vip(folder, "score", "p.jsonl", "--samples", "p.samples.jsonl", "--json")
    assert done.code == 0, done.err
    assert "100" in done.out
    done = vip(folder, "fiber", "likelihoods", "p.jsonl", "--json")
    assert done.code == 0, done.err


def test_a_t5_fills_blanks_without_training(folder: Path) -> None:
    done = vip(folder, *PREDICT, "--model", "t5:t5", "-o", "z.jsonl")
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in (folder / "z.jsonl").read_text().splitlines()]
    assert {row["engine"] for row in rows} == {"t5:t5 zero-shot beams:8 parser:none"}
    assert len(rows) == 16


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("train", "fiber", "--annotations", "data", "-o", "run", "--glove", "g.txt"), 2, "is for trainings of NExT-QA. Leave it out"),
        (("train", "fiber", "--annotations", "data", "-o", "run"), 2, "Name the model to train"),
        (("train", "fiber", "--annotations", "i3d", "-o", "run", "--model", "text", "--weights", "t5:t5"), 3, "has no train.json"),
        (("train", "nextqa-mc", "--annotations", "data", "-o", "run", "--weights", "t5:t5"), 2, "is for trainings of VALUE and FIBER"),
        ((*PREDICT, "--model", "t5:none/at/all"), 4, "There is no folder none/at/all"),
        ((*PREDICT, "--model", "t5:t5", "--features", "i3d"), 2, "sees no video. Leave"),
        (("predict", "--task", "fiber", "--annotations", "data/val.json", "--beams", "2"), 2, "--beams is for models of fiber"),
    ],
)
def test_a_mistake_is_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, said: str
) -> None:
    monkeypatch.chdir(folder)
    assert run(list(arguments)) == code
    assert said in " ".join(capsys.readouterr().err.split())
