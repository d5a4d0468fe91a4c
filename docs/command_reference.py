"""Write docs/commands.md from the commands as they are: `python docs/command_reference.py`. A test compares the two."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import typer.main
from rich.text import Text

from vip.cli.app import make_app

PAGE = Path(__file__).with_name("commands.md")
HEAD = """# Commands

`vip COMMAND --help` shows the same. This page is made by `python docs/command_reference.py`.

"""


def reference() -> str:
    """Return the page: each command with its arguments, its options by panel, and its examples."""
    group: Any = typer.main.get_command(make_app())
    return HEAD + "\n".join(_commands("vip", group))


def _commands(above: str, group: Any) -> list[str]:
    """Return the part of each command, those of groups in place of the group."""
    parts = []
    for name, command in group.commands.items():
        if not command.hidden:
            parts += _commands(f"{above} {name}", command) if hasattr(command, "commands") else [_command(f"{above} {name}", command)]
    return parts


def _command(name: str, command: Any) -> str:
    context = typer.Context(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    lines = [f"## {name}", "", _text(command.help), "", "```", usage, "```", ""]
    panels: dict[str, list[str]] = {"Arguments": []}
    for param in command.params:
        if not getattr(param, "hidden", False):
            is_option = param.param_type_name == "option"
            panel = getattr(param, "rich_help_panel", None) or ("Options" if is_option else "Arguments")
            panels.setdefault(panel, []).append(_param(param, is_option))
    for panel, rows in panels.items():
        lines += [f"**{panel}**", "", *rows, ""] if rows else []
    _, _, examples = Text.from_markup(command.epilog or "").plain.strip().partition("\n")
    return "\n".join([*lines, "**Examples**", "", "```", examples, "```", ""])


def _param(param: Any, is_option: bool) -> str:
    value = "" if getattr(param, "is_flag", False) else (param.metavar or "").strip()
    names = ", ".join(f"`{name}`" for name in sorted(param.opts, key=len)) if is_option else f"`{(param.metavar or param.name).upper()}`"
    if is_option and value:
        names = f"{names[:-1]}{'' if value.startswith('[') else ' '}{value}`"
    default = param.show_default if isinstance(param.show_default, str) else None
    return f"- {names}: {_text(param.help)}" + (f" Default: `{default}`." if default else "")


def _text(text: str | None) -> str:
    return html.escape(" ".join((text or "").split()), quote=False)


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
