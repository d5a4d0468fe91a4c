"""Processes that start fast: each is a fork of one that has loaded the libraries, and otherwise as new as `python -m MODULE`.

A start costs some milliseconds in the place of a second. `python -m tests.warm FD MODULE…` is the process that is forked: it loads the
modules (`PACKAGE.*`: with all that are directly in it) and waits at a socket for requests, and ends with the process that started it.
"""

from __future__ import annotations

import json
import os
import runpy
import select
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

ROOT = Path(__file__).parents[1]
MOST_BYTES = 2**20  # of a request
NUMBER = struct.Struct("q")
READ_AT_START = ("PYTHON", "LC_", "LANG", "TERM", "NO_COLOR", "FORCE_COLOR", "TYPER", "_TYPER", "PY_COLORS", "TZ", "LD_", "MALLOC")
READ_AT_START += ("OPENBLAS", "OMP", "MKL", "OPENCV")
"""What such a variable says, Python and the libraries take in when they start: a process with others is a new one."""
HARMLESS = ("PYTHONPATH", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE")


class WarmServer:
    """The process that is forked, started when it is first asked for, with what `environment` then returns."""

    def __init__(self, environment: Callable[[], dict[str, str]], *modules: str) -> None:
        self._environment, self._modules = environment, modules
        self._socket: socket.socket | None = None
        self._variables: dict[str, str] = {}

    def suits(self, variables: Mapping[str, str]) -> bool:
        """Return whether a fork would read these variables as a new process does."""
        if sys.platform != "linux":
            return False
        if any((Path(folder) / "sitecustomize.py").exists() for folder in variables.get("PYTHONPATH", "").split(os.pathsep) if folder):
            return False
        self._started()
        return _read_at_start(variables) == _read_at_start(self._variables)

    def request(self, command: dict[str, Any], files: list[int]) -> None:
        socket.send_fds(self._started(), [json.dumps(command).encode()], files)

    def _started(self) -> socket.socket:
        if self._socket is None:
            self._variables = self._environment()
            self._socket, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with there:
                fd = there.fileno()
                alone = {**self._variables, "OPENBLAS_NUM_THREADS": "1"}  # its threads would not be there in a fork
                arguments = [sys.executable, "-m", __name__, str(fd), *self._modules]
                self._process = subprocess.Popen(arguments, pass_fds=[fd], env=alone, cwd=ROOT, stdin=subprocess.DEVNULL)
                self._process.returncode = 0  # nobody waits for it: it ends when the socket is closed
        return self._socket


def _read_at_start(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name.startswith(READ_AT_START) and name not in HARMLESS}


class WarmProcess(subprocess.Popen[Any]):
    """A `subprocess.Popen` of `python -m MODULE ARGUMENT…` that is forked by a server."""

    def __init__(self, server: WarmServer, module: str, *arguments: str, **options: Any) -> None:
        self._server = server
        super().__init__([module, *arguments], **options)

    def _execute_child(self, args: Any, *given: Any) -> None:
        _, _, _, _, cwd, env, _, _, _, stdin, _, _, stdout, _, stderr, *_ = given
        self._answer, there = socket.socketpair()
        variables = dict(os.environ if env is None else env)
        with there:
            streams = [stream if stream != -1 else number for number, stream in enumerate((stdin, stdout, stderr))]
            command = {"arguments": args, "cwd": str(cwd or Path.cwd()), "variables": variables}
            self._server.request(command, [*streams, there.fileno()])
        self.pid = self._number()
        self._child_created = True
        self._close_pipe_fds(*given[9:15])

    def _number(self) -> int:
        data = self._answer.recv(NUMBER.size, socket.MSG_WAITALL)
        return int(NUMBER.unpack(data)[0]) if data else 9  # killed, as the process that waits for it

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if wait_flags & os.WNOHANG and not select.select([self._answer], [], [], 0)[0]:
            return 0, 0
        status = self._number()
        self._answer.close()
        return self.pid, status

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and self._child_created:
            pid, status = self._try_wait(os.WNOHANG)
            if pid:
                self._handle_exitstatus(status)
        return self.returncode


# ---------------------------------------------------------------- the process that is forked


def serve(listener: socket.socket) -> dict[str, Any]:
    """Answer requests until the other end is closed; return, in each fork, what it is to do."""
    while True:
        data, files, *_ = socket.recv_fds(listener, MOST_BYTES, 4)
        if not data:
            os._exit(0)
        if os.fork() == 0:
            _watch(listener, files)
            return dict(json.loads(data))
        for file in files:
            os.close(file)
        while True:  # forget those that are done
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                break


def _watch(listener: socket.socket, files: list[int]) -> None:
    """Fork, and tell the number and the end of the fork, which returns with the streams that were sent."""
    *streams, answer = files
    listener.close()
    if pid := os.fork():
        for stream in streams:
            os.close(stream)
        os.closerange(0, 3)
        os.write(answer, NUMBER.pack(pid))
        _, status = os.waitpid(pid, 0)
        try:
            os.write(answer, NUMBER.pack(status))
        finally:
            os._exit(0)
    os.close(answer)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)


def become(command: dict[str, Any]) -> None:
    """Run the module as `python -m` does."""
    os.chdir(command["cwd"])
    os.environ.clear()
    os.environ.update(command["variables"])
    paths = [path for path in command["variables"].get("PYTHONPATH", "").split(os.pathsep) if path and path not in sys.path[1:]]
    sys.path[:1] = [command["cwd"], *paths]
    sys.argv = list(command["arguments"])
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        package = import_module(name.removesuffix(".*"))
        for module in iter_modules(package.__path__) if name.endswith(".*") else ():
            import_module(f"{package.__name__}.{module.name}")
    become(serve(socket.socket(fileno=int(sys.argv[1]))))
