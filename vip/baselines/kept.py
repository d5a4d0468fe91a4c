"""What every run folder keeps in the same way: a record with the hash of its settings, and weights that are read as tensors alone."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from vip import files, store
from vip.baselines.installed import is_first_process
from vip.errors import InputError, StoreError, UsageError
from vip.records import Record
from vip.untrusted import DAMAGE, one_line
from vip.wording import option

if TYPE_CHECKING:
    from torch import nn

MOST_WEIGHT_BYTES = 8 * 2**30
RUN_ADVICE = ". Delete the folder, or run"
"""What `vip.store` says about a file of a run of `vip extract`, which is none of a training."""


class HashedSettings(Protocol):
    """Settings with a hash of all of them."""

    @property
    def sha256(self) -> str: ...


class Kept(Protocol):
    """A record of a training."""

    @property
    def settings(self) -> HashedSettings: ...

    @property
    def settings_sha256(self) -> str: ...


RecordT = TypeVar("RecordT", bound=Record)
ModuleT = TypeVar("ModuleT", bound="nn.Module")


def read_kept(path: Path, kind: type[RecordT], missing: str) -> RecordT:
    """Read the record of a training.

    Args:
        kind: a record with `settings` and `settings_sha256`.
        missing: what is said where there is none.

    Raises:
        InputError: it is missing or damaged, or its settings are not those of its hash.
    """
    if not store.exists(path):
        raise InputError(missing)
    try:
        record: Any = store.read_json(path, kind)
    except StoreError as exc:
        problem = one_line(str(exc)).partition(RUN_ADVICE)[0]
        raise InputError(f"{path} is damaged ({problem[:200]}). Train the model again.") from exc
    kept: Kept = record
    if kept.settings_sha256 != kept.settings.sha256:
        raise InputError(f"{path} was changed by hand: its settings are not those of its hash. Train the model again.")
    found: RecordT = record
    return found


def check_kept_folder(folder: Path) -> None:
    """Refuse a folder of a run that a library reads by itself, where something in it is a link, a FIFO or too large.

    Raises:
        InputError: something is.
    """
    try:
        files.check_tree(folder, most_bytes=MOST_WEIGHT_BYTES)
    except OSError as exc:
        raise InputError(f"{folder} cannot be read: {one_line(str(exc.strerror))[:200]}. Train the model again.") from exc


def read_before(path: Path, read: Callable[[Path], RecordT], *, resume: bool, overwrite: bool) -> RecordT | None:
    """Return the training that a folder holds, if it is to go on.

    Args:
        path: of its record.
        read: reads the record of a folder.

    Raises:
        UsageError: it holds one, and it was not said what is to become of it.
    """
    folder = path.parent
    if not is_first_process():
        return read(folder)  # the first process has written it
    if store.exists(path) and not resume and not overwrite:
        raise UsageError(
            f"{folder} holds a training already. Add {option('resume')} to go on with it, or {option('overwrite')} to begin anew."
        )
    return read(folder) if store.exists(path) and resume else None


def write_tensors(path: Path, model: nn.Module, names: Collection[str]) -> None:
    """Write the weights of a model with these names."""
    from safetensors.torch import save

    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items() if name in names}
    with store.replacing(path) as file:
        file.write(save(tensors))


def load_tensors(path: Path, model: nn.Module, names: Collection[str], missing: str) -> None:
    """Put the weights of a file, which has just these names, into a model.

    Args:
        missing: what is said where there is no file.

    Raises:
        InputError: it is missing or damaged, or is of another model.
    """
    tensors = _read_tensors(path, missing)
    _check_tensors(path, tensors, model, names)
    model.load_state_dict(tensors, strict=False)


def build_with_tensors(path: Path, build: Callable[[], ModuleT], names_of: Callable[[ModuleT], Collection[str]], missing: str) -> ModuleT:
    """Return a model with the weights of a file.

    The sizes that the settings of a stranger state take no memory before they are known to be those of the weights.

    Args:
        build: returns the model; called once on the device `meta`, where tensors have shapes alone.
        names_of: the names of the weights that the file has.
        missing: what is said where there is no file.

    Raises:
        InputError: it is missing or damaged, or is of another model.
    """
    import torch

    tensors = _read_tensors(path, missing)
    with torch.device("meta"):
        shapes = build()
    _check_tensors(path, tensors, shapes, names_of(shapes))
    model = build()
    model.load_state_dict(tensors, strict=False)
    return model


def _read_tensors(path: Path, missing: str) -> dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    if not store.exists(path):
        raise InputError(missing)
    try:
        tensors: dict[str, Any] = load(files.read_bytes(path, most_bytes=MOST_WEIGHT_BYTES))
    except (OSError, SafetensorError, *DAMAGE) as exc:  # LookupError: numbers of a kind that torch does not have
        raise InputError(f"{path} holds no weights that can be read ({one_line(str(exc))[:100]}). Train the model again.") from exc
    return tensors


def _check_tensors(path: Path, tensors: dict[str, Any], model: nn.Module, names: Collection[str]) -> None:
    """Refuse weights of other names or shapes than the model has."""
    wanted = {name: tensor.shape for name, tensor in model.state_dict().items() if name in names}
    different = sorted(name for name in wanted.keys() | tensors.keys() if name not in tensors or tensors[name].shape != wanted.get(name))
    if different:
        raise InputError(f"{path} holds weights of another model, such as {one_line(different[0])[:80]}. Train the model again.")
