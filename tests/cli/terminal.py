"""The command line as a user has it: a process of its own, its own folder, and no settings but those given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import IO, Any

from tests.api_server import ApiServer, Asked

SECRET = "sk-proj-Sup3rSecretKeyOfTheUser"
UNSET = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "PYTHONUNBUFFERED", "PYTHONIOENCODING", "COLUMNS")
PATIENCE_S = 60
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Done:
    """What a command left in the terminal."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """stdout of --json: every line is one object."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def sentence(self) -> str:
        """The one line on stderr of a command that failed, notes aside."""
        lines = self.err.splitlines()
        assert lines, f"exit code {self.code} without a word"
        assert all(line.startswith("vip: ") for line in lines), self.err
        return lines[-1].removeprefix("vip: ")


def environment(**given: str) -> dict[str, str]:
    """The environment of this process without what would steer vip, and with what is given."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "VIP_", "_VIP")) and name not in UNSET}
    return {**kept, **given}


def start_command(folder: Path, *command: str, out: IO[str] | int = subprocess.PIPE, **variables: str) -> subprocess.Popen[str]:
    """Start any command in a folder; its stderr, and if not told otherwise its stdout, are pipes."""
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=folder, env=environment(**variables), text=True, **streams)


def start(folder: Path, *arguments: str | Path, module: str = "vip", **variables: str) -> subprocess.Popen[str]:
    """Start `vip …` in a folder."""
    return start_command(folder, sys.executable, "-m", module, *map(str, arguments), **variables)


def end(process: subprocess.Popen[str]) -> Done:
    try:
        out, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    return Done(process.returncode, out or "", err)


def vip(folder: Path, *arguments: str | Path, module: str = "vip", **variables: str) -> Done:
    """Run `vip …` in a folder to its end."""
    return end(start(folder, *arguments, module=module, **variables))


class HoldingServer(ApiServer):
    """Answers so many chats and lets the others wait, so that a run can be stopped in its middle."""

    def __init__(self, *behaviours: str, answers: int) -> None:
        super().__init__(*behaviours)
        self.answers = answers
        self.holding = Event()
        self.released = Event()

    def next_behaviour(self, asked: Asked) -> str:
        behaviour = super().next_behaviour(asked)
        if asked.path.endswith("/chat/completions") and len(self.chats) > self.answers:
            self.holding.set()
            self.released.wait(PATIENCE_S)
        return behaviour

    def __exit__(self, *exc: object) -> None:
        self.released.set()
        super().__exit__(*exc)


def secrets_in(folder: Path, secret: str = SECRET) -> list[Path]:
    """Files below the folder that hold the secret."""
    return [path for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
