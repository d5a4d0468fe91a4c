"""The options of a command: those that it declares itself, and those that are made from the settings in `vip.config`.

A command that is registered with `cls=with_settings("extract")` has an option for each field of `ExtractSettings`. They are made when the
command is asked for its parameters: the settings need pydantic, which `vip --help` does without.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import typer
from typer.core import TyperCommand

from vip.cli.completion import backends, choices, choices_with_commas

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from vip.config import Settings

MONEY = "Money and requests"  # the panel of `vip.config.PANELS` in which commands have options of their own
FIRST = ("with_", "keyframes", "out", "caption", "engine", "dry_run", "max_usd", "batch")
"""What stands first in its panel, whether the command declares it or the settings do."""

Complete = Callable[[str], Iterable[str | tuple[str, str]]]


def option(
    *names: str,
    help: str,  # noqa: A002 - as typer calls it
    metavar: str | None = None,
    default: str | bool = False,
    panel: str | None = None,
    complete: Complete | None = None,
    hidden: bool = False,
) -> Any:
    """Return an option of the command line.

    Args:
        default: what --help says of it, where something is to be said.
        panel: None for those that a newcomer should see first.
        complete: what the shell offers for its value.
    """
    return typer.Option(
        *names, help=help, metavar=metavar, show_default=default, rich_help_panel=panel, autocompletion=complete, hidden=hidden
    )


def switch(*names: str, help: str, panel: str | None = None) -> Any:  # noqa: A002 - as above
    """Return an option without a value."""
    return typer.Option(*names, help=help, metavar=" ", rich_help_panel=panel)


# ---------------------------------------------------------------- options that several commands share

VIDEOS_HELP = "Video files, http(s) addresses, pages of video sites, folders of videos; folders, patterns and lists of pictures."
Videos = Annotated[list[str], typer.Argument(help=VIDEOS_HELP, show_default=False)]
VideosOrRun = Annotated[list[str] | None, typer.Argument(help=VIDEOS_HELP, show_default=False)]
Recursive = Annotated[bool, switch("--recursive", "-r", help="Take the videos of folders inside folders too.")]
Out = Annotated[
    Path | None,
    option("--out", "-o", help="The run folder; with several videos, the folder for their run folders.", metavar="DIR", default="NAME.vip"),
]
Overwrite = Annotated[bool, switch("--overwrite", help="Replace a run of another video or of other settings.")]
DryRun = Annotated[
    bool, switch("--dry-run", help="Show how many requests would be sent and their cost; send none. Needs no key.", panel=MONEY)
]

# ---------------------------------------------------------------- options of settings


def with_settings(*tables: str, without: Collection[str] = ()) -> type[TyperCommand]:
    """Return the class of a command with an option for each setting of these tables of vip.toml.

    Args:
        tables: where two have a setting of one name, the first says what its option is.
        without: settings that the command has no option for.
    """

    class SettingsCommand(TyperCommand):
        """A command whose parameters are complete once they are asked for."""

        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            super().__init__(*arguments, **keywords)
            self._declared = [parameter.name for parameter in self.params]
            self._is_complete = False

        def get_params(self, ctx: Any) -> list[Any]:
            if not self._is_complete:
                self.params = _sort_parameters([*self.params, *_make_parameters(_signature(tables, without))])
                self._is_complete = True
            return super().get_params(ctx)

        def invoke(self, ctx: Any) -> Any:
            """Call the command with what it declares; it finds the settings by `given`."""
            return ctx.invoke(self.callback, **{name: ctx.params[name] for name in self._declared})

    return SettingsCommand


def given(context: typer.Context, kind: type[Settings]) -> dict[str, Any]:
    """Return what the command line says about the settings of this kind; None for those that it does not name."""
    return {name: context.params.get(name) for name in kind.model_fields}


def _signature(tables: Iterable[str], without: Collection[str]) -> Signature:
    from vip.config import COMMANDS

    fields: dict[str, FieldInfo] = {}
    for table in tables:
        fields |= {name: field for name, field in COMMANDS[table].model_fields.items() if name not in fields}
    annotations = {name: _annotation(name, field) for name, field in fields.items() if name not in without}
    return Signature([Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=one) for name, one in annotations.items()])


def _make_parameters(signature: Signature) -> list[Any]:
    """Return the parameters that Typer makes of a signature."""

    def command() -> None: ...

    command.__signature__ = signature  # type: ignore[attr-defined]
    app = typer.Typer(add_completion=False)
    app.command()(command)
    return typer.main.get_command(app).params


def _sort_parameters(parameters: list[Any]) -> list[Any]:
    """Return the parameters in the order of `--help`."""
    from vip.config import PANELS

    def place(parameter: Any) -> tuple[int, int]:
        panels = ("", *PANELS, parameter.rich_help_panel)  # a panel of the command's own comes last
        return panels.index(parameter.rich_help_panel or ""), FIRST.index(parameter.name) if parameter.name in FIRST else len(FIRST)

    return sorted(parameters, key=place)


def _annotation(name: str, field: FieldInfo) -> Any:
    """Return the type of an option with what Typer shows of it. Its value stays as it was typed: the settings read it."""
    shown: Any = field.json_schema_extra  # what `setting` keeps
    kinds = [*_types_in(field.annotation), *field.metadata]
    names = [f"--{name.replace('_', '-')}", *([shown["short"]] if shown["short"] else [])]
    text, panel = field.description or "", shown["panel"]
    if bool in kinds:
        return Annotated[bool | None, switch(*names, help=text, panel=panel)]
    words = shown["words"] or [kind for kind in kinds if isinstance(kind, str)]
    offer = choices_with_commas if any(get_origin(kind) is tuple for kind in kinds) else choices
    complete = backends(shown["backend"]) if shown["backend"] else offer(*words) if words else None
    metavar = shown["metavar"] or ("NAME" if complete and int not in kinds and offer is choices else _metavar(kinds))
    default = shown["shown"] or _format_default(field.default, kinds)
    of_option = option(*names, help=text, metavar=metavar, default=default, panel=panel, complete=complete, hidden=bool(shown["is_hidden"]))
    return Annotated[str | None, of_option]


def _types_in(annotation: Any) -> Iterator[Any]:
    """Yield a type, all that it is made of, and what it is annotated with: `int | None` gives `int | None`, int and NoneType."""
    yield annotation
    for part in get_args(annotation):
        yield from _types_in(part)


def _metavar(kinds: Collection[Any]) -> str:
    from vip.config import Unit

    units = [kind.metavar for kind in kinds if isinstance(kind, Unit)]
    by_type = [metavar for of_type, metavar in ((Path, "FILE"), (int, "N"), (float, "NUMBER")) if of_type in kinds]
    return [*units, *by_type, "TEXT"][0]


def _format_default(value: Any, kinds: Collection[Any]) -> str | bool:
    """Return a default as a user would type it; False where there is none to show."""
    from vip.config import Unit

    if value is None or value == ():
        return False
    units = [kind.format for kind in kinds if isinstance(kind, Unit)]
    return units[0](value) if units else str(value)
