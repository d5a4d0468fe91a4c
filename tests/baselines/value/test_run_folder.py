"""vip.baselines.value.run_folder: which stage of a training answers a task."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from vip.baselines.value import run_folder
from vip.errors import InputError

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
