"""The Typer app, and the one place where errors become a sentence and an exit code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event
from types import FrameType
from typing import Annotated

import typer
from typer.exceptions import TyperException

from vip import __version__
from vip.cli import (
    batch,
    caption,
    compare,
    doctor,
    evaluate,
    export,
    extract,
    features,
    fiber,
    report,
    review,
    run_all,
    score,
    submit,
    tasks,
    train,
    trust,
)
from vip.cli.console import print_error, print_json, silence
from vip.cli.options import with_settings
from vip.errors import StoreError, VipError
from vip.wording import on_command_line

INTERRUPTED, TERMINATED = 130, 143  # 128 and the number of the signal, as in a shell

app = typer.Typer(
    name="vip",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Any video into a handful of keyframes with captions and structured scene descriptions.",
    epilog="Start with: [bold]vip run video.mp4[/bold]   ·   What works here: [bold]vip doctor[/bold]",
)
EVALUATION, MACHINE = "Evaluation", "This machine"
app.command("run", cls=with_settings("extract", "caption"), epilog=run_all.EXAMPLES)(run_all.run_command)
app.command("extract", cls=with_settings("extract"), epilog=extract.EXAMPLES)(extract.extract_command)
app.command("compare", cls=with_settings("extract", without=compare.WITHOUT), epilog=compare.EXAMPLES)(compare.compare_command)
app.command("caption", cls=with_settings("caption"), epilog=caption.EXAMPLES)(caption.caption_command)
app.command("report", epilog=report.EXAMPLES)(report.report_command)
app.command("review", epilog=review.EXAMPLES)(review.review_command)
app.command("batch", cls=with_settings("batch", "extract", "caption", without=batch.WITHOUT), epilog=batch.EXAMPLES)(batch.batch_command)
app.command("export", epilog=export.EXAMPLES)(export.export_command)
app.command("tasks", epilog=tasks.TASKS_EXAMPLES, rich_help_panel=EVALUATION)(tasks.tasks_command)
app.command("samples", cls=with_settings("samples"), epilog=tasks.SAMPLES_EXAMPLES, rich_help_panel=EVALUATION)(tasks.samples_command)
answering = with_settings("predict", "samples", "caption", without=tasks.WITHOUT)
app.command("predict", cls=answering, epilog=tasks.PREDICT_EXAMPLES, rich_help_panel=EVALUATION)(tasks.predict_command)
app.command("score", epilog=score.EXAMPLES, rich_help_panel=EVALUATION)(score.score_command)
evaluating = with_settings("samples", "predict", "caption", without=evaluate.WITHOUT)
app.command("evaluate", cls=evaluating, epilog=evaluate.EXAMPLES, rich_help_panel=EVALUATION)(evaluate.evaluate_command)
app.command("submit", epilog=submit.EXAMPLES, rich_help_panel=EVALUATION)(submit.submit_command)
app.add_typer(fiber.app, name="fiber", epilog=fiber.EXAMPLES, rich_help_panel=EVALUATION)
app.command("features", epilog=features.EXAMPLES, rich_help_panel=EVALUATION)(features.features_command)
app.command("train", epilog=train.EXAMPLES, rich_help_panel=EVALUATION)(train.train_command)
app.command("trust", epilog=trust.EXAMPLES, rich_help_panel=MACHINE)(trust.trust_command)
app.command("doctor", epilog=doctor.EXAMPLES, rich_help_panel=MACHINE)(doctor.doctor_command)


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
    terminated = Event()
    given = sys.argv[1:] if arguments is None else arguments
    arguments = ["--retry-failed=all" if word == "--retry-failed" else word for word in given]  # Typer knows no optional values
    try:
        with on_command_line(), _terminated_like_interrupted(terminated):
            code = app(args=arguments, standalone_mode=False)
    except VipError as exc:
        return _report_failure(str(exc), exc.exit_code)
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


def _help_for(arguments: Sequence[str]) -> str:
    """Return the command that shows the help of the command that was typed; of `vip` if none was."""
    command = arguments[0] if arguments and arguments[0] in {known.name for known in app.registered_commands} else None
    return f"vip {command} --help" if command else "vip --help"


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
            print_json({"error": message, "exit_code": code})
    return code
