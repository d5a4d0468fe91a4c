"""The Typer app, and the one place where errors become a sentence and an exit code."""

from __future__ import annotations

import errno
import signal
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from threading import Event
from types import FrameType
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from vip import __version__
from vip.cli.console import bounded, print_error, print_json, print_line, silence
from vip.cli.options import with_settings
from vip.errors import InputError, StoreError, VipError, no_permission_error
from vip.wording import on_command_line

INTERRUPTED, TERMINATED = 130, 143  # 128 and the number of the signal, as in a shell

EVALUATION, MACHINE = "Evaluation", "This machine"


@dataclass(frozen=True, slots=True)
class Command:
    """Where a command lives. Its module is imported once the command is asked for."""

    place: str
    """Module and name of its function, or of its Typer app where it has commands of its own: `extract:extract_command`."""
    settings: tuple[str, ...] = ()
    """The tables of vip.toml that it has options for, see `with_settings`."""
    without: str = ""
    """Module and name of the settings that it has no option for."""
    examples: str = "EXAMPLES"
    """Their name in its module."""
    panel: str | None = None


COMMANDS = {
    "run": Command("run_all:run_command", ("extract", "caption", "run")),
    "extract": Command("extract:extract_command", ("extract",)),
    "compare": Command("compare:compare_command", ("extract",), "compare:WITHOUT"),
    "caption": Command("caption:caption_command", ("caption",)),
    "search": Command("search:search_command"),
    "ask": Command("ask:ask_command", ("extract", "caption"), "ask:WITHOUT"),
    "report": Command("report:report_command"),
    "review": Command("review:review_command", ("caption",), "review_rewrite:WITHOUT"),
    "batch": Command("batch:batch_command", ("batch", "extract", "caption"), "batch:WITHOUT"),
    "export": Command("export:export_command"),
    "sheet": Command("sheet:sheet_command"),
    "mcp": Command("mcp:mcp_command", ("caption",), "mcp:WITHOUT"),
    "tasks": Command("tasks:tasks_command", examples="TASKS_EXAMPLES", panel=EVALUATION),
    "samples": Command("tasks:samples_command", ("samples",), examples="SAMPLES_EXAMPLES", panel=EVALUATION),
    "predict": Command("tasks:predict_command", ("predict", "samples", "caption"), "tasks:WITHOUT", "PREDICT_EXAMPLES", EVALUATION),
    "fuse": Command("fuse:fuse_command", panel=EVALUATION),
    "score": Command("score:score_command", panel=EVALUATION),
    "evaluate": Command("evaluate:evaluate_command", ("samples", "predict", "caption"), "evaluate:WITHOUT", panel=EVALUATION),
    "submit": Command("submit:submit_command", panel=EVALUATION),
    "fiber": Command("fiber:app", panel=EVALUATION),
    "features": Command("features:features_command", panel=EVALUATION),
    "train": Command("train:train_command", panel=EVALUATION),
    "pretrain": Command("pretrain:pretrain_command", panel=EVALUATION),
    "trust": Command("trust:trust_command", panel=MACHINE),
    "doctor": Command("doctor:doctor_command", panel=MACHINE),
}
"""All commands, in the order of `vip --help`."""


def make_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the Typer app of these commands."""
    app = typer.Typer(
        name="vip",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Any video into a handful of keyframes with captions and structured scene descriptions.",
        epilog="Start with: [bold]vip run video.mp4[/bold]   ·   What works here: [bold]vip doctor[/bold]",
    )
    app.callback()(_options)
    for name in names:
        _add_command(app, name, COMMANDS[name])
    return app


def _add_command(app: typer.Typer, name: str, command: Command) -> None:
    found = _load(command.place)
    examples = _load(f"{command.place.partition(':')[0]}:{command.examples}")
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=name, epilog=examples, rich_help_panel=command.panel)
        return
    without = _load(command.without) if command.without else ()
    cls = with_settings(*command.settings, without=without) if command.settings else None
    app.command(name, cls=cls, epilog=examples, rich_help_panel=command.panel)(found)


def _load(place: str) -> Any:
    """Import and return what stands at `module:name` of `vip.cli`."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"vip.cli.{module}"), name)


def _version(wanted: bool) -> None:
    if wanted:
        print_line(f"vip {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    pass


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code; a bug in vip escapes with its traceback."""
    terminated = Event()
    given = sys.argv[1:] if arguments is None else arguments
    arguments = _with_optional_values(given)
    try:
        with on_command_line(), _terminated_like_interrupted(terminated):
            code = make_app(_names_in(arguments))(args=arguments, standalone_mode=False)
    except VipError as exc:
        return _report_failure(str(exc), exc.exit_code)
    except PermissionError as exc:  # any step of a path may be closed
        return _report_failure(str(no_permission_error(exc)), InputError.exit_code)
    except OSError as exc:
        if exc.errno != errno.ENOSPC:
            raise
        code = _report_failure("There is no room left on the disk. Make room and run the same command again.", StoreError.exit_code)
        silence(sys.stdout)  # which still holds the help, that Typer prints itself: `vip --help > FILE`
        return code
    except TyperException as exc:
        message = exc.format_message().strip()
        return _report_failure(f"{message}{'' if message[-1] in '.?!' else '.'} See `{_help_for(arguments)}`.", 2) if message else 2
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except SystemExit as exc:
        if not isinstance(exc.__context__, BrokenPipeError):
            raise
        silence(sys.stdout)  # how Typer ends if the reader stops early: `vip --help | head -1`
        code = 0
    if code == INTERRUPTED:  # Typer's value for Ctrl-C
        how, code = ("terminated", TERMINATED) if terminated.is_set() else ("interrupted", INTERRUPTED)
        return _report_failure(f"{how}. Run the same command again to go on where it stopped.", code)
    return code if isinstance(code, int) else 0


def _with_optional_values(words: Sequence[str]) -> list[str]:
    """Return the words with a value for the options that may stand without one, which Typer does not know."""
    following = [*words[1:], ""]
    alone = {"--retry-failed": "all"} | ({"--http": "0"} if words[:1] == ["mcp"] else {})
    needed = [word in alone and not (word == "--http" and after.isdecimal()) for word, after in zip(words, following, strict=bool(words))]
    return [f"{word}={alone[word]}" if need else word for word, need in zip(words, needed, strict=True)]


def _names_in(arguments: Sequence[str]) -> Collection[str]:
    """Return the command that was typed; all where none was: Typer reads the signature of each command that it has, 50 ms for all."""
    return arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS


def _help_for(arguments: Sequence[str]) -> str:
    """Return the command that shows the help of the command that was typed; of `vip` if none was."""
    return f"vip {arguments[0]} --help" if arguments and arguments[0] in COMMANDS else "vip --help"


@contextmanager
def _terminated_like_interrupted(terminated: Event) -> Iterator[None]:
    """Let SIGTERM, which batch systems send before they kill, stop the work as Ctrl-C does, and set the event."""

    def stop(number: int, frame: FrameType | None) -> None:
        terminated.set()
        interrupt = signal.getsignal(signal.SIGINT)  # asyncio sets its own
        if not callable(interrupt):  # ignored in the background of a script
            raise KeyboardInterrupt
        interrupt(number, frame)

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _report_failure(message: str, code: int) -> int:
    print_error(message)
    if "--json" in sys.argv:
        with suppress(StoreError):
            print_json({"error": bounded(message), "exit_code": code})
    return code
