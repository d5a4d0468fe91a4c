"""vip.baselines.value.run_folder: which stage of a training answers a task."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from vip.baselines.value import run_folder
from vip.baselines.value.pretraining import RATIOS
from vip.baselines.value.settings import known_tasks, load_settings
from vip.errors import InputError
from vip.tasks.value.datasets import BY_KEY

STAGES = {
    "one": {"at": ("tvqa",), "tvqa": ("tvqa",)},
    "all": {"at": ("how2qa", "tvqa", "violin"), "qa": ("how2qa", "tvqa"), "tvqa": ("tvqa",)},
}


@pytest.mark.parametrize(
    ("run", "task", "stage"), [("one", "tvqa", "tvqa"), ("all", "tvqa", "tvqa"), ("all", "how2qa", "qa"), ("all", "violin", "at")]
)
def test_a_task_is_answered_by_its_own_stage_or_else_by_the_one_with_fewest_tasks(
    run: str, task: str, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = STAGES[run]
    monkeypatch.setattr(run_folder, "stages_in", lambda folder: [folder / name for name in kept])
    monkeypatch.setattr(run_folder, "read_hero", lambda path: SimpleNamespace(stage=path.name, tasks=kept[path.name]))
    path, record = run_folder.stage_of_task(Path("run"), task)
    assert (path, record.stage) == (Path("run") / stage, stage)
    with pytest.raises(InputError, match="holds no model of vlep: it was trained on"):
        run_folder.stage_of_task(Path("run"), "vlep")


def test_stages_are_the_folder_itself_or_those_in_it_and_no_linked_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"run holds no trained HERO\. Give a folder that `vip train value` wrote"):
        run_folder.stage_of_task(tmp_path / "run", "tvqa")
    for name in ("b", "a"):
        (tmp_path / "run" / name).mkdir(parents=True)
        (tmp_path / "run" / name / run_folder.HERO).touch()
    (tmp_path / "run" / "other").mkdir()
    (tmp_path / "run" / "file").touch()
    (tmp_path / "run" / "link").symlink_to("a")
    assert run_folder.stages_in(tmp_path / "run") == [tmp_path / "run" / "a", tmp_path / "run" / "b"]
    assert run_folder.stages_in(tmp_path / "run" / "a") == [tmp_path / "run" / "a"]
    assert run_folder.stages_in(tmp_path / "run" / "file") == []


def written(folder: Path, **changed: Any) -> Path:
    """Write hero.json as `vip train value` does, but for what a stranger changed."""
    settings = load_settings("tvqa", ["tvqa"], features=6, has_weights=True)
    kept = {"settings": settings.model_dump(), "settings_sha256": settings.sha256, "regime": "st", "stage": "tvqa", "tasks": ["tvqa"]}
    kept |= {"train_items": {}, "val_items": {}, "data_sha256": "", "best_scores": {"tvqa": 50.0}, **changed}
    folder.mkdir(exist_ok=True)
    (folder / run_folder.HERO).write_text(json.dumps(kept))
    return folder


@pytest.mark.parametrize(
    "changed",
    [
        *({"tasks": ["nonsense\x1b[31m"]}, {"tasks": ["tvqa"] * 101}, {"tasks": [f"nonsense{number}" for number in range(99)]}),
        *({"regime": "x" * 201}, {"stage": "x" * 201}, {"weights": "x" * 201}, {"features": ["x" * 201]}, {"features": ["x"] * 101}),
        *({"best_scores": {"tvqa": 1e308}}, {"best_scores": {"x" * 201: 1.0}}, {"best_scores": {str(one): 1.0 for one in range(101)}}),
    ],
)
def test_names_of_a_stranger_that_no_training_has_are_a_damaged_model(changed: dict[str, Any], tmp_path: Path) -> None:
    assert run_folder.stage_of_task(written(tmp_path / "run"), "tvqa")[1].name_for("tvqa") == "model:hero st video+sub"
    with pytest.raises(InputError, match=r"hero\.json is damaged \(.*\)\. Train the model again") as caught:
        run_folder.stage_of_task(written(tmp_path / "run", **changed), "tvqa")
    assert len(str(caught.value)) < 500
    assert "\x1b" not in str(caught.value)


def test_what_stands_in_predictions_is_one_printable_line(tmp_path: Path) -> None:
    record = run_folder.read_hero(written(tmp_path / "run", regime="st\r\n", features=["\x1b[2Jf"], stage="\x1b]0;x\x07s"))
    assert record.name_for("vlep") == "model:hero st video+sub f trained on s"


def test_the_tasks_that_are_known_are_those_of_the_suite_and_of_pre_training() -> None:
    assert known_tasks() == {*BY_KEY, *RATIOS}
