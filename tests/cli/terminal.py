"""The command line as a user has it: a process of its own, its own folder, and no settings but those given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path
from threading import Event
from typing import IO, Any

from tests.api_server import ApiServer, Asked
from tests.cli import ready

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

    @property
    def notes(self) -> list[str]:
        """The lines on stderr before the last one."""
        return [line.removeprefix("vip: ") for line in self.err.splitlines()[:-1]]


def environment(**given: str) -> dict[str, str]:
    """The environment of this process without what would steer vip, and with what is given.

    The test's own folder for answers (XDG_CACHE_HOME, see tests/conftest.py) is kept.
    """
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
    if module == "vip" and ready.is_ready_for(variables):
        return Done(*ready.run(folder, [*map(str, arguments)], environment(**variables), patience_s=PATIENCE_S))
    return end(start(folder, *arguments, module=module, **variables))


class HoldingServer(ApiServer):
    """Answers so many chats, whichever come first, and lets the others wait, so that a run can be stopped in its middle."""

    def __init__(self, *behaviours: str, answers: int) -> None:
        super().__init__(*behaviours)
        self.answers = answers
        self.numbers = count(1)
        self.holding = Event()
        self.released = Event()

    def next_behaviour(self, asked: Asked) -> str:
        behaviour = super().next_behaviour(asked)
        if next(self.numbers) > self.answers:
            self.holding.set()
            self.released.wait(PATIENCE_S)
        return behaviour

    def __exit__(self, *exc: object) -> None:
        self.released.set()
        super().__exit__(*exc)


class RefusingServer(ApiServer):
    """Refuses every question about the first picture that it is shown, and answers all others."""

    def next_behaviour(self, asked: Asked) -> str:
        return "refusal" if _picture_in(asked) == _picture_in(self.chats[0]) else "ok"


def _picture_in(asked: Asked) -> str:
    return next(part["image_url"]["url"] for part in asked.body["messages"][0]["content"] if part["type"] == "image_url")


def said_of(picture: Path) -> str:
    """The dense caption that the server answers in one question, about a picture that is sent as it lies on the disk."""
    return f"dense_caption of picture {sha256(picture.read_bytes()).hexdigest()[:12]}"


def wait_for_rows(path: Path, number: int) -> list[bytes]:
    """The rows of a journal, when there are so many."""
    for _ in range(20 * PATIENCE_S):
        rows = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        if len(rows) >= number and rows[-1].endswith(b"\n"):
            return rows
        time.sleep(0.05)
    raise AssertionError(f"{path} does not come to {number} rows")


def secrets_in(folder: Path, secret: str = SECRET) -> list[Path]:
    """Files below the folder that hold the secret."""
    return [path for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
