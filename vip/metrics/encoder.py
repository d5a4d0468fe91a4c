"""The encoder of a metric: a model of transformers in a folder, in the local cache, or downloaded; and what names it in a signature.

Nothing here imports torch or transformers before the files are known to be there: a missing encoder is said within 2 s.
"""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from vip import files
from vip.errors import BackendError
from vip.models import hub
from vip.wording import option

LoadedT = TypeVar("LoadedT")
WEIGHTS = ("*.safetensors", "*.bin")
UNUSED = ("pooler.", "embeddings.position_ids")
"""Tensors that the metrics do not use, and that many checkpoints lack."""
BATCH = 256
"""Pairs that are encoded before the next ones are read: memory does not grow with their number."""


@dataclass(frozen=True)
class EncoderFiles:
    """The files of an encoder.

    Args:
        name: a folder that save_pretrained() wrote, or a repository of the hub.
        metric: the metric that wants it, for messages.
        advice: how a folder is named on the command line; "" by `--metric`.
    """

    name: str
    metric: str
    advice: str = ""

    @cached_property
    def folder(self) -> Path | None:
        """The folder; None for a repository of the hub.

        Raises:
            BackendError: it is neither, or holds what is no file.
        """
        path = Path(self.name).expanduser()
        if path.is_dir():
            if not (path / "config.json").is_file():
                raise BackendError(f"The folder {self.name} has no config.json. Give one that save_pretrained() wrote.")
            try:
                files.check_tree(path, links=True)  # the libraries wait for a pipe for ever
            except OSError as exc:
                raise BackendError(f"The folder {self.name} cannot be read: {exc.strerror}. Copy the model again.") from exc
            return path
        if self.name[:1] in {"/", ".", "~"} or self.name.count("/") > 1:
            raise BackendError(f"There is no folder {self.name}. Give a folder with config.json, or a model of the hub as owner/name.")
        return None

    @property
    def model(self) -> str:
        """The name of the model: of a folder its own name."""
        return self.name if self.folder is None else self.folder.resolve().name

    def check(self) -> None:
        """Refuse an encoder that is neither here nor can be downloaded; nothing is downloaded yet.

        Raises:
            BackendError: its files are missing.
        """
        if self.folder is None and self._cached() is None and (reason := hub.unreachable_reason()):
            raise BackendError(
                f"The encoder {self.name} of the metric {self.metric} is not in the local cache and cannot be downloaded, because {reason}."
                f" Run once with a connection, or give a folder with the model: {self.advice or option('metric', f'{self.metric}:FOLDER')}."
            )

    @property
    def identity(self) -> str:
        """The name with the revision of the hub, or with the start of the SHA-256 of a folder's weights: `roberta-large@722cf37b1afa`."""
        if self.folder is not None:
            return f"{self.folder.resolve().name}@{self._digest}"
        config = self._cached()
        return f"{self.name}@{config.parent.name[:12] if config else 'unknown'}"

    def load(self, loader: Callable[[], LoadedT]) -> LoadedT:
        """Return what `loader` returns. The network is tried only where the cache does not suffice.

        Raises:
            BackendError: files are missing, damaged, or not those of this model.
        """
        self.check()
        is_here = self.folder is not None or self._cached() is not None
        try:
            return self._load(loader, offline=is_here)
        except BackendError as exc:
            can_download = is_here and self.folder is None and isinstance(exc.__cause__, OSError) and hub.unreachable_reason() is None
            if not can_download:
                raise
        return self._load(loader, offline=False)

    def _load(self, loader: Callable[[], LoadedT], *, offline: bool) -> LoadedT:
        try:
            with hub.offline(offline), quiet():
                self._check_weights()
                return loader()
        except BackendError:
            raise
        except ImportError as exc:
            raise BackendError(
                f"The metric {self.metric} needs a package that is missing ({hub.first_line(exc)})."
                " Run `pip install 'vip-keyframes[eval]'`."
            ) from exc
        except Exception as exc:  # there is no end to the ways in which damaged files make the libraries fail
            raise BackendError(
                f"The encoder {self.name} of the metric {self.metric} cannot be loaded ({hub.first_line(exc)})."
                " Copy or download the whole model again, or choose another."
            ) from exc

    def _check_weights(self) -> None:
        """Refuse a checkpoint that lacks tensors: the library would fill in random numbers and only warn of it.

        Raises:
            BackendError: the weights are not those of this model.
        """
        from transformers import AutoModel

        _, info = AutoModel.from_pretrained(str(self.folder or self.name), output_loading_info=True, trust_remote_code=False)
        missing = {key for key in info["missing_keys"] if not key.startswith(UNUSED)} | {row[0] for row in info["mismatched_keys"]}
        if missing:
            raise BackendError(
                f"The weights of {self.name} are not those of its model: {len(missing)} tensors are missing or of another shape, such as"
                f" {min(missing)}. Copy or download the whole model again, or choose another."
            )

    @cached_property
    def _digest(self) -> str:
        """Of the weights in the folder."""
        folder = self.folder or Path()
        return file_digest(*sorted(path for kind in WEIGHTS for path in folder.rglob(kind)))

    def _cached(self) -> Path | None:
        return hub.find_cached(self.name, "config.json")


def file_digest(*paths: Path) -> str:
    """Return the first twelve digits of the SHA-256 of what is in these files."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]


def score_in_batches(
    texts: Sequence[tuple[str, str]], score: Callable[[list[str], list[str]], Sequence[float]], batch: int = BATCH
) -> list[float]:
    """Return the values of predictions and references, scored a batch at a time. A pair with a text that is empty has 0.

    Args:
        score: returns the values of a list of predictions and a list of references; all of them have text.
    """
    values = [0.0] * len(texts)
    full = [index for index, (prediction, reference) in enumerate(texts) if prediction.strip() and reference.strip()]
    for start in range(0, len(full), batch):
        chosen = full[start : start + batch]
        scored = score([texts[index][0] for index in chosen], [texts[index][1] for index in chosen])
        for index, value in zip(chosen, scored, strict=True):
            values[index] = float(value)
    return values


def choose_device(device: str) -> str:
    """Return the device as torch names it; `auto` is the GPU where there is one. Weights stay as they are, so that values reproduce.

    Raises:
        BackendError: there is no such device.
    """
    from vip.models.hardware import choose_hardware

    return choose_hardware(device, "fp32").device


@contextmanager
def quiet() -> Iterator[None]:
    """Silence what transformers says while it loads: what matters in it is checked here. Progress bars are for terminals."""
    import transformers.utils

    logging: Any = transformers.utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    if not sys.stderr.isatty():
        logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
