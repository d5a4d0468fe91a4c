"""docs/commands.md says what the commands are."""

from __future__ import annotations

from pathlib import Path

import typer.main
from command_reference import PAGE, reference

from vip.cli.app import app

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_what_the_script_writes() -> None:
    assert PAGE == DOCS / "commands.md"
    assert PAGE.read_text(encoding="utf-8") == reference(), "Run: python docs/command_reference.py"


def test_every_option_that_is_not_hidden_is_on_the_page() -> None:
    sections = dict(part.split("\n", 1) for part in reference().split("\n## vip ")[1:])
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert list(sections) == [name for name, command in commands.items() if not command.hidden]
    for name, text in sections.items():
        options = [param for param in commands[name].params if param.param_type_name == "option"]
        assert options
        for param in options:
            for option in param.opts:
                assert (f"`{option}`" in text or f"`{option} " in text or f"`{option}[" in text) != param.hidden, (name, option)


def test_markup_of_the_terminal_is_not_on_the_page() -> None:
    assert "[bold]" not in reference()
