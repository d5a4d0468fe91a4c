"""Help, version, completion: what a person sees before the first run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

import vip as package
from tests.cli.terminal import end, environment, start_command, vip
from vip.cli.app import make_app

COMMANDS = (
    *("run", "extract", "compare", "caption", "search", "ask", "report", "review", "batch", "export", "sheet", "mcp"),
    *("tasks", "samples", "predict", "fuse", "score", "evaluate", "submit", "features", "train", "pretrain"),
    *("trust", "doctor"),
)
APP = make_app()
GROUPS = {str(group.name): group for group in APP.registered_groups}
EPILOGS = {str(command.name): str(command.epilog) for command in APP.registered_commands}
EPILOGS |= {name: str(group.epilog) for name, group in GROUPS.items()}
OF_GROUPS = {
    f"{name} {command.name}": str(command.epilog)
    for name, group in GROUPS.items()
    if group.typer_instance is not None
    for command in group.typer_instance.registered_commands
}
SCRIPT = Path(sys.executable).with_name("vip")
EXAMPLES = [
    line.split(" | ")[0] for epilog in [*EPILOGS.values(), *OF_GROUPS.values()] for line in epilog.splitlines() if line.startswith("vip ")
]
needs_script = pytest.mark.skipif(not SCRIPT.exists(), reason="the script vip is not installed beside this Python")


def test_the_version_is_that_of_the_package(tmp_path: Path) -> None:
    done = vip(tmp_path, "--version")
    assert (done.code, done.out, done.err) == (0, f"vip {package.__version__}\n", "")


@needs_script
def test_the_script_and_the_module_are_the_same_program(tmp_path: Path) -> None:
    for arguments in (["--version"], ["report", "nothing"]):
        assert end(start_command(tmp_path, str(SCRIPT), *arguments)) == vip(tmp_path, *arguments)


@pytest.mark.parametrize("arguments", [["--help"], ["-h"]])
def test_help_lists_every_command(arguments: list[str], tmp_path: Path) -> None:
    done = vip(tmp_path, *arguments)
    assert (done.code, done.err) == (0, "")
    assert re.findall(r"^│ (\w+)  +\w", done.out, re.MULTILINE) == [*COMMANDS[:-2], *GROUPS, *COMMANDS[-2:]]


def test_without_a_command_there_is_help(tmp_path: Path) -> None:
    done = vip(tmp_path)
    assert done.code == 2
    assert "Usage" in done.out + done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("command", [*COMMANDS, *OF_GROUPS])
def test_every_command_has_examples_in_its_help(command: str, tmp_path: Path) -> None:
    done = vip(tmp_path, *command.split(), "--help", COLUMNS="200")
    assert done.code == 0
    assert "Example" in done.out
    shown = [line.strip() for line in done.out.splitlines() if line.strip().startswith(f"vip {command}")]
    assert shown
    assert "--json" in done.out


@pytest.mark.parametrize("command", [*COMMANDS, *GROUPS, *OF_GROUPS])
def test_no_example_is_broken_on_a_terminal_of_80_columns(command: str, tmp_path: Path) -> None:
    done = vip(tmp_path, *command.split(), "--help", COLUMNS="80")
    lines = [line.strip() for line in done.out.splitlines()]
    epilog = {**EPILOGS, **OF_GROUPS}[command]
    examples = [line.strip() for line in epilog.splitlines() if line.startswith("vip ") or " | " in line]
    assert examples
    assert [line for line in examples if line not in lines] == []
    assert all(len(line) <= 80 for line in done.out.splitlines())


@pytest.mark.parametrize("command", ["run", "extract", "caption", "compare"])
def test_what_a_newcomer_needs_stands_first_and_the_rest_in_panels(command: str, tmp_path: Path) -> None:
    done = vip(tmp_path, command, "--help", COLUMNS="100")
    panels = re.split(r"^╭─ (.+?) ─+╮$", done.out, flags=re.MULTILINE)[1:]
    options = {name: re.findall(r"^│ (--[a-z-]+)", text, re.MULTILINE) for name, text in zip(panels[::2], panels[1::2], strict=True)}
    first = options["Options"]
    assert len(first) <= 10
    assert {"--overwrite", "--json", "--quiet"} <= set(first)
    assert len(options) >= 4
    assert "--device" in options["Models"]


@pytest.mark.parametrize("line", EXAMPLES)
def test_every_example_is_a_command_that_exists(line: str) -> None:
    typed = re.split(r"  +", line)[0]
    name, *arguments = shlex.split(typed)[1:]
    command = typer.main.get_command(APP).commands[name]  # type: ignore[attr-defined]
    if name in GROUPS:
        name, *arguments = arguments
        command = command.commands[name]
    context = command.make_context(name, arguments)
    assert context.params


@needs_script
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("vip ", {*COMMANDS, *GROUPS}),
        ("vip fiber c", {"collect"}),
        ("vip ext", {"extract"}),
        ("vip extract --min", {"--min-objects", "--min-sharpness"}),
        ("vip run --eng", {"--engine"}),
        ("vip run --engine o", {"offline", "openai", "openai:"}),
        ("vip run --words ", {"auto", "subtitles", "speech", "text", "none"}),
        ("vip run --words auto,s", {"auto,subtitles", "auto,speech"}),
        ("vip run --sampler s", {"sync", "shots", "shots:adaptive", "shots:hash", "shots:histogram"}),
        ("vip extract --pruner a", {"algorithm1", "algorithm1:plain", "aks"}),
        ("vip extract --sampler e", {"every:2s"}),
        ("vip extract --format ", {"jpg", "png", "webp"}),
        ("vip caption --recipe p", {"paper"}),
        ("vip export --to c", {"coco", "csv"}),
        ("vip batch --shards ", {"parquet", "webdataset"}),
        ("vip batch --runner r", {"ray"}),
    ],
)
def test_the_shell_completes_commands_and_options(typed: str, expected: set[str], tmp_path: Path) -> None:
    words = typed.split(" ")
    variables = {"_VIP_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run([SCRIPT], cwd=tmp_path, env={**environment(), **variables}, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == expected


def test_completion_can_be_installed(tmp_path: Path) -> None:
    assert "--install-completion" in vip(tmp_path, "--help").out
