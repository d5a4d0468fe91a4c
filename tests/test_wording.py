"""Messages name options on the command line and keywords in Python."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import vip
from vip.errors import UsageError
from vip.wording import VARIABLE, again, call, counted, on_command_line, option

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+|(?<= )-[on] ")
COMMAND_LINE_ONLY = ("cli", "corpus", "models/status.py", "wording.py", "download/options.py", "download/preflight.py")
"""`vip batch` and `vip doctor` have no Python twin, nor have the options of `vip batch` for downloads."""
PAGES = ("report/page.py", "report/pruning.py", "report/compare_page.py")  # they show commands to copy
NOT_OURS = {"vip/prompts.py": "pip install --force-reinstall", "vip/download/errors.py": "Use --cookies"}  # what others say


@pytest.fixture(autouse=True)
def _in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)


@pytest.mark.parametrize(
    ("name", "value", "typed", "called"),
    [
        ("max_usd", 20, "--max-usd 20", "max_usd=20"),
        ("overwrite", None, "--overwrite", "overwrite=True"),
        ("batch", None, "--batch", "in_batches=True"),
        ("out", "DIR", "-o DIR", "out=DIR"),
        ("prices", None, "--prices", "prices="),
        ("engine", "openai:MODEL", "--engine openai:MODEL", 'engine="openai:MODEL"'),
        ("labels", "person, dog", "--labels 'person, dog'", 'labels="person, dog"'),
        ("min_sharpness", "0.5", "--min-sharpness 0.5", "min_sharpness=0.5"),
    ],
)
def test_a_setting_is_named_as_its_reader_writes_it(name: str, value: object, typed: str, called: str) -> None:
    assert option(name, value) == called
    with on_command_line():
        with on_command_line():
            assert option(name, value) == typed
        assert option(name, value) == typed, "a command within another ends without it"
    assert option(name, value) == called


def test_a_call_is_named_as_its_reader_makes_it() -> None:
    assert (call("extract", "VIDEO", overwrite=True), again()) == ("`vip.extract(VIDEO, overwrite=True)`", "Make the same call again")
    with on_command_line():
        assert (call("extract", "VIDEO", overwrite=True), again()) == ("`vip extract VIDEO --overwrite`", "Run the same command again")


def test_processes_that_a_command_starts_speak_as_it_does() -> None:
    program = "from vip.wording import option; print(option('overwrite'))"
    with on_command_line():
        shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown == "--overwrite\n"


@pytest.mark.slow
def test_no_message_of_the_library_advises_an_option_of_the_command_line() -> None:
    root = Path(vip.__file__).parent
    found = []
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name.startswith(COMMAND_LINE_ONLY) or name in PAGES:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        notes = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
        helps = {
            id(word)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setting"
            for word in ast.walk(node)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in notes | helps:
                continue
            if OPTION.search(node.value) and NOT_OURS.get(f"vip/{name}", "\0") not in node.value:
                found.append(f"{name}:{node.lineno}: {node.value}")
    assert found == []


def test_a_refusal_in_python_names_keywords(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"Choose another folder with out=, or add overwrite=True\.") as refused:
        vip.extract("examples/sample.mp4", out=tmp_path)
    assert "--" not in str(refused.value)


def test_numbers_agree_with_their_nouns() -> None:
    assert [counted(count, "shard") for count in (0, 1, 2, 1234)] == ["0 shards", "1 shard", "2 shards", "1,234 shards"]
    assert [counted(count, "video waits", "videos wait") for count in (1, 2)] == ["1 video waits", "2 videos wait"]
