"""Processes that had loaded vip before their command was known: each is forked from one that has, which saves a second."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

from vip.cli import main
from vip.cli.app import COMMANDS

LOADED = ("tests.cli.ready", "vip.captioning.caption_job", "vip.models.openai.engine", "vip.pipeline", "vip.report.page")
AHEAD_OF_LOADING = {"OPENBLAS_NUM_THREADS": "1", "PYDANTIC_DISABLE_PLUGINS": "__all__"}
"""Variables that `vip.cli.main` sets."""
STEERS_LOADING = ("PYTHON", "OMP_", "OPENBLAS_", "HF_")
"""How the names of variables begin that are read when something is loaded, or before."""


def is_ready_for(variables: Mapping[str, str]) -> bool:
    """Whether a command with these variables is the same in a process that has loaded vip already."""
    return sys.platform == "linux" and not any(name.startswith(STEERS_LOADING) for name in variables)


def run(folder: Path, arguments: Sequence[str], environment: Mapping[str, str], *, patience_s: float) -> tuple[int, str, str]:
    """Run `vip …` in a folder; return its exit code as of `subprocess`, and what it printed on stdout and stderr."""
    with tempfile.TemporaryDirectory() as beside:
        out, err = Path(beside, "out"), Path(beside, "err")
        process = _context().Process(target=_command, args=(folder, list(arguments), dict(environment), out, err))
        with _without_main():
            process.start()
        process.join(patience_s)
        code = process.exitcode
        process.kill()
        assert code is not None, f"vip {' '.join(arguments)} takes longer than {patience_s} s"
        return code, out.read_text(), err.read_text()


@cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*LOADED, *(f"vip.cli.{command.place.partition(':')[0]}" for command in COMMANDS.values())])
    with patch.dict(os.environ, AHEAD_OF_LOADING), _without_main():
        multiprocessing.forkserver.ensure_running()
    return context


@contextmanager
def _without_main() -> Iterator[None]:
    """Keep multiprocessing from loading what this process was started with, pytest, in each new one."""
    here = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = here


def _command(folder: Path, arguments: list[str], environment: dict[str, str], out: Path, err: Path) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for stream, path in ((sys.stdout, out), (sys.stderr, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream.fileno())
    sys.argv = ["vip", *arguments]
    try:
        main()
    finally:
        atexit._run_exitfuncs()  # multiprocessing leaves them out
