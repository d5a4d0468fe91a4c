"""Loading of a model of the library transformers: from a folder, from the local cache, or downloaded, with one sentence where that fails.

The library fills in random numbers for weights that are missing and only warns of it; here such a model is refused.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from vip import files, wording
from vip.errors import BackendError
from vip.models import hub
from vip.models.hardware import single_threaded

LoadedT = TypeVar("LoadedT")


@dataclass(frozen=True)
class ModelFiles:
    """The place of a model's files."""

    name: str
    """As the user names it: a folder, or a repository of the hub."""
    folder: Path | None
    """None for a repository."""
    option: Literal["detector", "engine", "model"] = "detector"
    """The option that named the model: what a message says to type,"""
    prefix: str = "transformers"
    """and what stands before the name there."""

    @staticmethod
    def find(name: str, option: Literal["detector", "engine", "model"] = "detector", prefix: str = "transformers") -> ModelFiles:
        """Return the files of a model, in a folder or in a repository of the hub; nothing is read yet.

        Raises:
            BackendError: it is neither.
        """
        path = Path(name).expanduser()
        if path.is_dir():
            if not (path / "config.json").is_file():
                raise BackendError(f"The folder {name} has no config.json. Give one that save_pretrained() wrote, or a model of the hub.")
            return ModelFiles(name, path, option, prefix)
        if name[:1] in {"/", ".", "~"} or name.count("/") > 1:
            raise BackendError(f"There is no folder {name}. Give a folder with config.json, or a model of the hub as owner/name.")
        return ModelFiles(name, None, option, prefix)

    def load(self, loader: Callable[..., LoadedT], **settings: Any) -> LoadedT:
        """Load these files with `loader`, some `from_pretrained`. The network is tried only where the cache does not suffice.

        Raises:
            BackendError: files are missing and cannot be downloaded, or they are damaged.
        """
        if self.folder is not None:
            return self._load_with(loader, local_files_only=True, **settings)
        if hub.find_cached(self.name, "config.json") is None:
            if why_not := hub.unreachable_reason():
                raise BackendError(
                    f"The model {self.name} is not in the local cache and cannot be downloaded, because {why_not}."
                    f" Run once with a connection, or give a folder with the model: {wording.option(self.option, f'{self.prefix}:FOLDER')}."
                )
            return self._load_with(loader, local_files_only=False, **settings)
        try:
            return self._load_with(loader, local_files_only=True, **settings)
        except BackendError as exc:
            if (
                not isinstance(exc.__cause__, OSError) or hub.unreachable_reason()
            ):  # files that are missing could be fetched, others could not
                raise
        return self._load_with(loader, local_files_only=False, **settings)

    def _load_with(self, loader: Callable[..., LoadedT], **settings: Any) -> LoadedT:
        try:
            if self.folder is not None:
                files.check_tree(self.folder, links=True)  # the library waits for a pipe for ever
            with silence_transformers():
                # False: never run code that a model brings along, and never ask on the terminal whether to
                return loader(str(self.folder or self.name), trust_remote_code=False, **settings)
        except ImportError as exc:
            raise BackendError(f"The model {self.name} needs a package that is missing ({hub.first_line(exc)}). Install it first.") from exc
        except Exception as exc:  # there is no end to the ways in which damaged files make the library fail
            again = "Copy the whole model there again" if self.folder else "Check its name on the hub, and run once more with a connection"
            raise BackendError(f"The model {self.name} cannot be loaded ({hub.first_line(exc)}). {again}, or choose another.") from exc

    def load_model(self, loader: Callable[..., Any], dtype: Any) -> Any:
        """Return a model with all its weights, ready to be used but still on the CPU.

        Raises:
            BackendError: as for `load`, or the weights are not those of this model.
        """
        with single_threaded():
            model, info = self.load(loader, dtype=dtype, output_loading_info=True)
        mismatched = _mismatched_tensors(model, info)
        if mismatched:
            kind, count = model.config.model_type, len(model.state_dict())
            raise BackendError(
                f"The weights of {self.name} are not those of a {kind} model as transformers builds it: of"
                f" {wording.counted(count, 'tensor')} {len(mismatched)}"
                f" are missing or of another shape, such as {min(mismatched)}. {self._replacement_advice(kind)}"
            )
        return model.eval()

    def _replacement_advice(self, model_type: str) -> str:
        if model_type == "florence2":  # Microsoft's own repositories hold the weights under the names of their own code
            example = wording.option(self.option, "transformers:florence-community/Florence-2-base")
            return f"Take them as converted for transformers: {example}."
        return "Copy the model again, or choose another."


def _mismatched_tensors(model: Any, info: Mapping[str, Any]) -> set[str]:
    """Return the tensors that the checkpoint does not give. Tables of whole numbers are left out: the model computes them."""
    state = model.state_dict()
    missing = {key for key in info["missing_keys"] if key not in state or state[key].is_floating_point()}
    return missing | {row[0] for row in info["mismatched_keys"]}


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Silence the library: what matters in its warnings is checked here. Progress bars are for terminals."""
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
