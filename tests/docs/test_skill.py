"""What the skill teaches agents works as it stands there."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest
import typer.main

from tests.clips import SAMPLE
from vip.cli.app import make_app, run

ROOT = Path(__file__).parents[2]
SKILL = ROOT / "skills" / "vip" / "SKILL.md"
TEXT = SKILL.read_text(encoding="utf-8")
BLOCKS = "".join(re.findall(r"```sh\n(.+?)```", TEXT, re.DOTALL))
COMMANDS = re.findall(r"^(vip .+?)(?:  +#.*)?$", BLOCKS, re.MULTILINE)


def test_the_skill_says_its_name_and_when_to_use_it() -> None:
    head = re.match(r"---\nname: (.+)\ndescription: (.+)\n---\n", TEXT)
    assert head is not None
    assert head[1] == SKILL.parent.name
    assert "Use it when" in head[2]
    assert len(head[2]) <= 1024


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_skill_exists(line: str) -> None:
    name, *arguments = shlex.split(line)[1:]
    context = typer.main.get_command(make_app()).commands[name].make_context(name, arguments)  # type: ignore[attr-defined]
    assert context.params


def test_the_first_commands_lead_to_the_files_that_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(SAMPLE, "talk.mp4")
    for line in COMMANDS[:2]:
        assert run(shlex.split(line)[1:]) == 0
    assert run(["caption", "talk.vip", "--engine", "offline", "-q"]) == 0
    named = {path for path in re.findall(r"`(talk\.vip/[\w./]+)`", TEXT) if not path.endswith("words.jsonl")}
    assert len(named) >= 4
    assert all(Path(path).exists() for path in named)


def test_the_source_distribution_carries_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "skills" in project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
