"""The model on a GPU, in one process for all extractors of a machine: their forks cannot use it, and each would hold one of its own.

Without a GPU, each extractor loads the model once, and its forks have it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from vip import registry
from vip.config import ExtractSettings
from vip.errors import VipError
from vip.processes.supervisor import MOST_DEATHS, ChildProcess, child_pipe, too_many_deaths

VARIABLE = "VIP_EMBEDDING_SERVER"
ON_CPU = frozenset({"classic"})
GPU_FILES = ("/dev/nvidia0", "/dev/kfd")


def wants_gpu(settings: ExtractSettings) -> bool:
    """Whether the embedder is a model that may run on a GPU, as far as the settings go."""
    return settings.embedder.partition(":")[0] not in ON_CPU and settings.device != "cpu"


def has_gpu() -> bool:
    return any(map(os.path.exists, GPU_FILES))


@dataclass(slots=True)
class EmbedderProcess:
    """The driver's side: the process serves as soon as the model is loaded.

    Raises:
        VipError: it cannot be loaded.
    """

    settings: ExtractSettings
    _child: ChildProcess | None = None

    def start(self) -> None:
        """Serve this process and those that it starts from now on."""
        code = 0
        for _ in range(MOST_DEATHS):
            self._child = ChildProcess("vip.corpus.workers.embedder_process")
            self._child.send(self.settings)
            try:
                address = self._child.pipe.recv()
            except (EOFError, OSError):
                code = self._child.kill()
                continue
            if isinstance(address, VipError):
                raise address
            os.environ[VARIABLE] = address
            return
        raise too_many_deaths("embeds pictures", code)

    def close(self) -> None:
        if self._child is not None:
            os.environ.pop(VARIABLE, None)
            self._child.kill()
            self._child = None


def main(fd: str) -> None:
    """In a new interpreter."""
    with child_pipe(fd) as pipe:
        settings = pipe.recv()
        try:
            address, stop = registry.serve_embedder(settings.embedder, "127.0.0.1", device=settings.device, precision=settings.precision)
        except VipError as exc:
            pipe.send(exc)
            return
        pipe.send(address)
        try:
            pipe.recv()  # until the driver is gone
        finally:
            stop()
