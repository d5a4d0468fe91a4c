"""The code in the pages of docs/ works as it stands there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import vip
from tests.clips import SAMPLE
from tests.tasks.described import described_folder
from vip import registry
from vip.errors import BackendError, UsageError
from vip.tasks.registry import load_task
from vip.tasks.task import SampleSource
from vip.video import Video

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Install the package that docs/plugins.md shows, and return its code."""
    return install_package("plugins.md", "sampler", tmp_path, monkeypatch)


def install_package(page: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Install the package that a page shows, and return its code."""
    text = (DOCS / page).read_text(encoding="utf-8")
    code = re.search(rf"<!-- test: {what} -->\n```python\n(.*?)```", text, re.DOTALL)
    entry = re.search(rf'^\[project\.entry-points\."(vip\.{what}s)"\]\n([\w-]+) = "(.*?)"', text, re.MULTILINE)
    assert code
    assert entry
    group, name, target = entry.groups()
    (tmp_path / f"{target.partition(':')[0]}.py").write_text(code[1], encoding="utf-8")
    info = tmp_path / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {target}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return code[1]


def test_the_sampler_of_the_plug_ins_page_can_be_named_and_takes_the_heaviest_sync_frames(package: str) -> None:
    assert len([line for line in package.splitlines() if line.strip()]) <= 20
    with Video(SAMPLE) as video:
        index = video.index
        bytes_of = dict(zip(index.pts.tolist(), index.size_bytes.tolist(), strict=True))
        chosen = registry.sampler("heavy:3").sample(video, keyframes=12)
        others = set(index.sync_pts.tolist()) - set(chosen)
        assert len(chosen) == 3
        assert min(bytes_of[pts] for pts in chosen) >= max(bytes_of[pts] for pts in others)
        assert registry.sampler("heavy").sample(video, keyframes=12) == index.sync_pts.tolist()
    with pytest.raises(BackendError, match="takes a number"):
        registry.sampler("heavy:many")


def test_the_task_of_the_evaluation_page_is_made_answered_and_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = install_package("evaluation.md", "task", tmp_path, monkeypatch)
    assert len([line for line in code.splitlines() if line.strip()]) <= 40
    folders = [str(described_folder(tmp_path / name, 5)) for name in "ab"]
    task = load_task("which-first")
    made = list(task.samples(SampleSource(paths=tuple(folders))))
    assert len(made) == 8
    answers = [task.parse(sample, answer) for sample, answer in zip(made, ["B", "B", "A", " A\n", "A", "C", "B", "B or A"], strict=True)]
    assert [answer.status for answer in answers] == ["ok"] * 5 + ["unparsed", "ok", "unparsed"]
    assert "A dog 0 in a." in task.request(made[0], None).text
    result = task.metrics[0].score(list(zip(made, answers, strict=True)))
    assert (result.value, result.n, result.unscored) == (3 / 8, 6, {"unparsed": 2})


@pytest.mark.slow
def test_the_python_page_shows_how_vip_is_used_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = re.search(r"<!-- test: python -->\n```python\n(.*?)```", (DOCS / "python.md").read_text(encoding="utf-8"), re.DOTALL)
    assert code
    shutil.copyfile(SAMPLE, tmp_path / "talk.mp4")
    monkeypatch.chdir(tmp_path)
    exec(code[1], {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7
    assert all("keyframes/000" in line for line in lines[:6])
    assert "keyframes=6" in lines[6]


@pytest.mark.extra("rouge_score")
def test_the_metrics_page_shows_how_predictions_are_scored(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.search(r"<!-- test: metrics -->\n```python\n(.*?)```", (DOCS / "metrics.md").read_text(encoding="utf-8"), re.DOTALL)
    assert code
    exec(code[1], {})
    value, signature, estimate, difference = capsys.readouterr().out.splitlines()
    # 6 of 6 and 7 words: 12/13; a, dog: 2 of 3 and 6, in order "dog" or "a": 2/9
    assert value == f"{(12 / 13 + 2 / 9) / 3:.4f} {(12 / 13 + 2 / 9) / 2:.4f} 2 {{'refused': 1}}"
    assert signature.startswith("rouge-l|v:1|")
    assert re.fullmatch(r"0\.\d\d, -?\d+\.\d\d to \d+\.\d\d", estimate)
    assert re.fullmatch(r"0\.\d\d, p = 0\.\d\d, smallest detectable: \d+\.\d\d", difference)


def test_a_keyword_of_run_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r'There is no setting "keyframe"\. Did you mean "keyframes"\?'):
        vip.run(SAMPLE, out=tmp_path / "run", keyframe=3)


def test_each_promise_of_the_security_page_names_a_test_that_exists() -> None:
    root = DOCS.parent
    page = (DOCS / "security.md").read_text(encoding="utf-8")
    promises = re.findall(r"^\| (?!promise|---)(.+) \|$", page, re.MULTILINE)
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)` \|$", page, re.MULTILINE)
    assert len(named) == len(promises) >= 30
    assert [(file, name) for file, name in named if f"\ndef {name}(" not in (root / file).read_text(encoding="utf-8")] == []
