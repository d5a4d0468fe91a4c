"""The Typer app, and the one place where errors become a sentence and an exit code."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Annotated

import typer
from typer.exceptions import TyperException

from vip import __version__
from vip.cli import caption, compare, doctor, extract, report, run_all
from vip.cli.console import err, out, silence
from vip.errors import StoreError, VipError

INTERRUPTED = 130

app = typer.Typer(
    name="vip",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Any video into a handful of keyframes with captions and structured scene descriptions.",
    epilog="Start with: [bold]vip run video.mp4[/bold]   ·   What works here: [bold]vip doctor[/bold]",
)
app.command("run", epilog=run_all.EXAMPLES)(run_all.run_command)
app.command("extract", epilog=extract.EXAMPLES)(extract.extract_command)
app.command("compare", epilog=compare.EXAMPLES)(compare.compare_command)
app.command("caption", epilog=caption.EXAMPLES)(caption.caption_command)
app.command("report", epilog=report.EXAMPLES)(report.report_command)
app.command("doctor", epilog=doctor.EXAMPLES)(doctor.doctor_command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vip {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    pass


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code; a bug in vip escapes with its traceback."""
    try:
        code = app(args=arguments, standalone_mode=False)
    except VipError as exc:
        return _failed(str(exc), exc.exit_code)
    except TyperException as exc:
        message = exc.format_message().strip()
        return _failed(f"{message}{'' if message[-1] in '.?!' else '.'} See `vip --help`.", 2) if message else 2
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except SystemExit as exc:
        if not isinstance(exc.__context__, BrokenPipeError):
            raise
        silence(sys.stdout)  # Typer ends so where nobody reads on: `vip --help | head -1`
        code = 0
    if code == INTERRUPTED:  # Typer's value for Ctrl-C
        return _failed("interrupted. Run the same command again to go on where it stopped.", INTERRUPTED)
    return code if isinstance(code, int) else 0


def _failed(message: str, code: int) -> int:
    err(message)
    if "--json" in sys.argv:
        with suppress(StoreError):
            out(json.dumps({"error": message, "exit_code": code}))
    return code
