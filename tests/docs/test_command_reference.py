"""docs/commands.md says what the commands are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from command_reference import PAGE, reference

from vip.cli.app import make_app

DOCS = Path(__file__).parents[2] / "docs"


def named_commands(group: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the commands that are not hidden, those of groups by both names."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from named_commands(command, f"{above}{name} ")
        elif not command.hidden:
            yield above + name, command


def test_the_page_is_what_the_script_writes() -> None:
    assert PAGE == DOCS / "commands.md"
    assert PAGE.read_text(encoding="utf-8") == reference(), "Run: python docs/command_reference.py"


def test_every_option_that_is_not_hidden_is_on_the_page() -> None:
    sections = dict(part.split("\n", 1) for part in reference().split("\n## vip ")[1:])
    commands = dict(named_commands(typer.main.get_command(make_app())))
    assert list(sections) == list(commands)
    for name, text in sections.items():
        options = [param for param in commands[name].params if param.param_type_name == "option"]
        assert options
        for param in options:
            for option in param.opts:
                assert (f"`{option}`" in text or f"`{option} " in text or f"`{option}[" in text) != param.hidden, (name, option)


def test_markup_of_the_terminal_is_not_on_the_page() -> None:
    assert "[bold]" not in reference()
