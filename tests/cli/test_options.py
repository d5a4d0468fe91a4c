"""Options are made from the settings: what a model says of a field is what `--help` shows and the shell completes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
import typer.main

from tests.cli.terminal import vip
from vip import config
from vip.cli import batch, compare, options, tasks
from vip.cli.app import make_app
from vip.config import COMMANDS, PANELS, BatchSettings, Bytes, Count, Duration, Settings, setting
from vip.llm.budget import DEFAULT_MAX_USD

TABLES = {
    "run": ("extract", "caption", "run"),
    "extract": ("extract",),
    "compare": ("extract",),
    "caption": ("caption",),
    "batch": ("extract", "caption", "batch"),
    "samples": ("samples",),
    "predict": ("predict", "samples", "caption"),
}
WITHOUT = {"compare": compare.WITHOUT, "batch": batch.WITHOUT, "predict": tasks.WITHOUT}


class Invented(Settings):
    """A settings model that no command has."""

    count: Count | None = setting(None, "How many.", PANELS[0], shown="as many as fit")
    colour: Literal["red", "green"] = setting("red", "Which colour.", short="-c")
    size: Bytes = setting(3_500_000, "How large.")
    pause: Duration = setting(90.0, "How long.")
    seconds: Duration = setting(7200.0, "How long at most.")
    share: config.Share = setting(0.25, "How much.")
    folder: Path | None = setting(None, "Where.", metavar="DIR")
    file: Path = setting(Path("a b"), "Which file.")
    bright: bool = setting(False, "With much light.")
    mirror: str = setting("http://a", "Another address.", is_hidden=True)


def made(command: str) -> dict[str, Any]:
    one = typer.main.get_command(make_app()).commands[command]  # type: ignore[attr-defined]
    return {parameter.name: parameter for parameter in one.get_params(one.make_context(command, [], resilient_parsing=True))}


@pytest.fixture
def invented(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setitem(COMMANDS, "invented", Invented)
    command = options.with_settings("invented")(name="invented")
    return {parameter.name: parameter for parameter in command.get_params(typer.Context(command))}


def test_a_field_is_an_option_with_its_help_panel_and_short_form(invented: dict[str, Any]) -> None:
    count, colour = invented["count"], invented["colour"]
    assert (count.opts, count.help, count.rich_help_panel) == (["--count"], "How many.", PANELS[0])
    assert (colour.opts, colour.help, colour.rich_help_panel) == (["--colour", "-c"], "Which colour.", None)
    assert list(invented)[-2:] == ["count", "help"], "those without a panel stand first"


@pytest.mark.parametrize(
    ("name", "metavar", "default"),
    [
        ("count", "N", "as many as fit"),
        ("colour", "NAME", "red"),
        ("size", "SIZE", "3.5MB"),
        ("pause", "TIME", "90"),
        ("seconds", "TIME", "120:00"),
        ("share", "SHARE", "0.25"),
        ("folder", "DIR", False),
        ("file", "FILE", "a b"),
        ("bright", " ", True),
    ],
)
def test_the_metavar_and_the_default_shown_come_from_the_type_and_the_value(
    name: str, metavar: str, default: object, invented: dict[str, Any]
) -> None:
    assert (invented[name].metavar, invented[name].show_default) == (metavar, default)


def test_a_seam_is_an_option_that_help_leaves_out(invented: dict[str, Any], tmp_path: Path) -> None:
    assert [name for name, parameter in invented.items() if getattr(parameter, "hidden", False)] == ["mirror"]
    seams = [name for name, field in BatchSettings.model_fields.items() if field.json_schema_extra["is_hidden"]]  # type: ignore[index,call-overload]
    assert seams == ["youtube8m_base_url", "video_base_url"]
    shown = vip(tmp_path, "batch", "--help").out
    assert "base-url" in shown
    assert not any(f"--{name.replace('_', '-')}" in shown for name in seams)
    assert set(seams) <= set(made("batch"))


@pytest.mark.parametrize("command", TABLES)
def test_each_setting_of_its_tables_is_an_option_of_a_command(command: str) -> None:
    parameters, without = made(command), WITHOUT.get(command, ())
    fields = {name: field for table in reversed(TABLES[command]) for name, field in COMMANDS[table].model_fields.items()}
    if command == "batch":
        fields |= BatchSettings.model_fields
    assert set(without) <= set(fields)
    assert {name for name in fields if name in parameters} == set(fields) - set(without)
    for name, field in fields.items():
        if name in parameters:
            assert f"--{name.replace('_', '-')}" in parameters[name].opts
            assert parameters[name].help == field.description


def test_a_command_is_given_what_was_typed_and_nothing_else() -> None:
    batch = typer.main.get_command(make_app()).commands["batch"]  # type: ignore[attr-defined]
    context = batch.make_context("batch", ["-n", "3", "--caption", "--shard-size", "1GB", "a"])
    said = {name: value for kind in COMMANDS.values() for name, value in options.given(context, kind).items() if value is not None}
    assert said == {"keyframes": "3", "caption": True, "shard_size": "1GB"}


def test_a_newcomer_to_batch_sees_ten_options_first(tmp_path: Path) -> None:
    parameters = made("batch")
    first = [name for name, one in parameters.items() if one.param_type_name == "option" and not one.rich_help_panel and not one.hidden]
    assert first == ["keyframes", "out", "caption", "engine", "status", "retry_failed", "as_json", "verbose", "quiet", "help"]
    panels = list(dict.fromkeys(one.rich_help_panel for one in parameters.values() if getattr(one, "rich_help_panel", None)))
    assert panels == [panel for panel in PANELS if panel in panels]


def test_the_ceiling_that_help_names_is_the_one_that_holds() -> None:
    assert float(made("caption")["max_usd"].show_default) == DEFAULT_MAX_USD
