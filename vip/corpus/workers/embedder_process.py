"""The process that holds the embedder on a GPU, for all extractors of a machine: forks cannot use a GPU, and each would load the model.

Without a GPU, each extractor loads the model once, and its forks have it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field

from vip import registry
from vip.config import ExtractSettings
from vip.errors import VipError
from vip.processes.supervisor import ChildDiedError, Supervisor, child_pipe

VARIABLE = "VIP_EMBEDDING_SERVER"
ON_CPU = frozenset({"classic"})
GPU_FILES = ("/dev/nvidia0", "/dev/kfd")


def wants_gpu(settings: ExtractSettings) -> bool:
    """Return whether the embedder is a model that may run on a GPU, by the settings."""
    return settings.embedder.partition(":")[0] not in ON_CPU and settings.device != "cpu"


def has_gpu() -> bool:
    return any(map(os.path.exists, GPU_FILES))


@dataclass(slots=True)
class EmbedderProcess:
    """The driver's side of the process that embeds for all extractors."""

    settings: ExtractSettings
    _process: Supervisor = field(init=False)

    def __post_init__(self) -> None:
        self._process = Supervisor("vip.corpus.workers.embedder_process", "embeds pictures", lambda: self.settings)

    def start(self) -> None:
        """Load the model, and put its address into the environment of this process and of those that it starts from now on.

        Raises:
            VipError: the model cannot be loaded.
        """
        while True:
            with suppress(ChildDiedError):
                os.environ[VARIABLE] = str(self._process.receive())
                return

    def close(self) -> None:
        if self._process.is_running:
            os.environ.pop(VARIABLE, None)
            self._process.close()


def main(fd: str) -> None:
    """Serve the embedder until the driver is gone; in a new interpreter."""
    with child_pipe(fd) as pipe:
        settings = pipe.recv()
        try:
            address, stop = registry.serve_embedder(settings.embedder, "127.0.0.1", device=settings.device, precision=settings.precision)
        except VipError as exc:
            pipe.send(exc)
            return
        pipe.send(address)
        try:
            pipe.recv()  # returns when the driver is gone
        finally:
            stop()
