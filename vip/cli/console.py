"""Output for people while vip works: notes and progress bars on stderr, results on stdout."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Annotated, Any

import typer

from vip.errors import StoreError
from vip.untrusted import one_line, printable, printable_json, shorten
from vip.wording import SaidOnce

AsJson = Annotated[bool, typer.Option("--json", metavar=" ", help="Print the result as JSON, one object a line.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", metavar=" ", help="Print more: the seconds of each stage.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", metavar=" ", help="Print only errors.")]
MOST_LETTERS, LAST_LETTERS = 2000, 500
"""Of a message, which may name what others wrote, and of its end, which says what to type."""


class Console:
    """The observer of the command line. Bars appear on a terminal only."""

    def __init__(self, *, quiet: bool = False, verbose: bool = False, as_json: bool = False) -> None:
        self.quiet, self.verbose, self.as_json = quiet, verbose, as_json
        self._said: set[str] = set()

    def note(self, text: str) -> None:
        if isinstance(text, SaidOnce):
            if text in self._said:
                return
            self._said.add(text)
        if not self.quiet:
            print_error(text)

    def detail(self, text: str) -> None:
        """Print a note with --verbose."""
        if self.verbose:
            self.note(text)

    def write_line(self, text: str = "") -> None:
        """Print a line of the result for people."""
        if not self.quiet and not self.as_json:
            print_line(printable(text))

    def show(self, styled: str) -> None:
        """Print lines for people that vip has laid out and coloured itself; what others wrote is `printable` in them."""
        if not self.quiet and not self.as_json:
            print_line(styled)

    def write_item(self, label: str, text: str) -> None:
        """Print a line of a list: a label, and a text that is wrapped beside it on a terminal."""
        start, line = f"  {label:>10}  ", shorten(one_line(text), MOST_LETTERS)
        if sys.stdout and sys.stdout.isatty():
            width = max(40, min(120, shutil.get_terminal_size().columns))
            self.show(textwrap.fill(line, width, initial_indent=printable(start), subsequent_indent=" " * len(start)))
        else:
            self.write_line(f"{start}{line}")

    @contextmanager
    def track(self, title: str, total: int, extra: Callable[[], str] | None = None) -> Iterator[Callable[[], None]]:
        if self.quiet or total == 0 or not (sys.stderr and sys.stderr.isatty()):
            yield lambda: None
            return
        from rich.console import Console as RichConsole
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        shown_beside = extra or (lambda: "")
        columns = (
            *(TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()),
            TextColumn("{task.fields[extra]}", markup=False),
        )
        with Progress(*columns, console=RichConsole(stderr=True), transient=True) as progress:
            task = progress.add_task(printable(title), total=total, extra=shown_beside())
            yield lambda: progress.update(task, advance=1, extra=shown_beside())


def print_line(text: str, *, end: str = "\n") -> None:
    """Print a line on stdout, or a piece of one. A reader that stops early (`vip … | head -1`) does not stop the work.

    Raises:
        StoreError: the disk is full.
    """
    try:
        print(text, end=end, flush=end == "\n")
    except OSError as exc:
        silence(sys.stdout)
        if not isinstance(exc, BrokenPipeError):
            raise StoreError(f"The result cannot be printed: {exc.strerror}. Run the same command again to see it.") from exc


def bounded(message: str) -> str:
    """Return a message, without the middle of a long one."""
    return message if len(message) <= MOST_LETTERS else f"{message[: MOST_LETTERS - LAST_LETTERS]} … {message[-LAST_LETTERS:]}"


def print_error(text: str) -> None:
    """Print a line on stderr. A reader that stops early does not stop the work."""
    try:
        print(f"vip: {printable(bounded(text))}", file=sys.stderr)
    except OSError:
        silence(sys.stderr)


def silence(stream: IO[str]) -> None:
    """Keep the interpreter from writing at exit what could not be written before."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def print_json(record: dict[str, Any]) -> None:
    """Print a line of JSON on stdout."""
    print_line(printable_json(record))


def print_json_rows(record: dict[str, Any], name: str, rows: Iterable[dict[str, Any]]) -> None:
    """Print a line of JSON on stdout: the record with `rows` as its last entry. They are never all in memory."""
    print_line(printable_json({**record, name: []}).removesuffix("]}"), end="")
    for number, row in enumerate(rows):
        print_line(f"{', ' if number else ''}{printable_json(row)}", end="")
    print_line("]}")
