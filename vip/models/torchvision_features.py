"""The extractor `torchvision`: features of clips by any model of torchvision for pictures or for videos, before its last layer.

torchvision:resnet101                   the library's newest weights
torchvision:resnet101/IMAGENET1K_V1     weights by their name
torchvision:r3d_18@path/to/file.pt      a checkpoint of your own

A model for pictures gives the mean over the frames of a clip (appearance), one for videos looks at all of them at once (motion). Pictures
are prepared as the library's weights of the model want them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vip import files
from vip.errors import BackendError, did_you_mean
from vip.models import hub
from vip.models.hardware import Hardware, ShrinkingBatches, choose_hardware
from vip.protocols import ClipFeatures, ExtractorCapabilities
from vip.records import Image
from vip.wording import option

if TYPE_CHECKING:
    import torch

FRAMES_AT_ONCE, CLIPS_AT_ONCE = {"cpu": 16, "mps": 32, "cuda": 256}, {"cpu": 2, "mps": 2, "cuda": 16}
HEADS = ("fc", "classifier", "heads", "head")
"""Names of the last layers in the library's models."""
POOL = "avgpool"
MOST_BYTES = 16 * 2**30  # of weights; the largest of the library have 2.5 GB
WRAPPERS = ("state_dict", "model", "model_state_dict")
"""Keys below which training programs keep the weights."""


class TorchvisionExtractor:
    """A model of torchvision without its last layer."""

    def __init__(self, detail: str | None, *, device: str = "auto", precision: str = "auto") -> None:
        torchvision = _import_torchvision()
        name, tag, checkpoint = _parse(detail, torchvision)
        self._hardware: Hardware = choose_hardware(device, precision)
        self.name = f"torchvision:{detail}"
        weights = _weights_of(name, tag, torchvision)
        self._model = _load(name, weights, checkpoint, torchvision).to(self._hardware.device, self._hardware.dtype)
        self._transform = weights.transforms()
        is_motion = name in torchvision.models.list_models(module=torchvision.models.video)
        kind = self._hardware.device.partition(":")[0]
        self.capabilities = ExtractorCapabilities(
            is_motion=is_motion, has_maps=hasattr(self._model, POOL), device=str(self._hardware), stays_loaded=True
        )
        self._batches = ShrinkingBatches((CLIPS_AT_ONCE if is_motion else FRAMES_AT_ONCE)[kind], self.name)

    def extract(self, clips: Sequence[Sequence[Image]], *, maps: bool = False) -> ClipFeatures:
        """Return float32 (N, D), or (N, C, h, w) before the last pooling.

        Raises:
            BackendError: the memory of the device does not suffice for a single picture, or the model takes no clips of this length.
        """
        import torch

        kept: list[torch.Tensor] = []
        hook = getattr(self._model, POOL).register_forward_pre_hook(lambda _, given: kept.append(given[0])) if maps else None

        def run(pixels: torch.Tensor) -> list[torch.Tensor]:
            kept.clear()
            found = self._model(pixels)
            found = kept[0] if maps else found.flatten(1)
            found = found.mean(dim=2) if found.ndim == 5 else found  # (B, C, T, h, w): over time
            return list(found.float().cpu())

        try:
            with torch.inference_mode():
                rows = self._of_clips(clips, run) if self.capabilities.is_motion else self._of_frames(clips, run)
        except (RuntimeError, AssertionError, ValueError) as exc:  # models of videos have lengths of their own
            raise BackendError(
                f"{self.name} cannot take these clips ({hub.first_line(exc)}). Give another number of frames a clip."
            ) from exc
        finally:
            if hook is not None:
                hook.remove()
        return np.stack([row.numpy() for row in rows]).astype(np.float32)

    def _of_clips(self, clips: Sequence[Sequence[Image]], run: Any) -> list[torch.Tensor]:
        import torch

        def work(some: Sequence[Sequence[Image]]) -> Sequence[torch.Tensor]:
            pixels = torch.stack([self._transform(torch.stack([_tensor(image) for image in clip])) for clip in some])
            found: list[torch.Tensor] = run(pixels.to(self._hardware.device, self._hardware.dtype))
            return found

        return self._batches.map(work, clips)

    def _of_frames(self, clips: Sequence[Sequence[Image]], run: Any) -> list[torch.Tensor]:
        import torch

        def work(some: Sequence[Image]) -> Sequence[torch.Tensor]:
            pixels = torch.stack([self._transform(_tensor(image)) for image in some])
            found: list[torch.Tensor] = run(pixels.to(self._hardware.device, self._hardware.dtype))
            return found

        rows = self._batches.map(work, [image for clip in clips for image in clip])
        means, start = [], 0
        for clip in clips:
            means.append(torch.stack(rows[start : start + len(clip)]).mean(dim=0))
            start += len(clip)
        return means


def _tensor(image: Image) -> torch.Tensor:
    """Return uint8 (3, H, W)."""
    import torch

    return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))


def _import_torchvision() -> Any:
    try:
        import torchvision
    except ImportError as exc:
        raise BackendError(f'The extractor "torchvision" needs torchvision ({hub.first_line(exc)}). Run: pip install torchvision.') from exc
    return torchvision


def _parse(detail: str | None, torchvision: Any) -> tuple[str, str | None, Path | None]:
    """Return the model, the name of its weights, and the checkpoint.

    Raises:
        BackendError: there is no such model or file.
    """
    head, at, path = (detail or "").partition("@")
    name, _, tag = head.partition("/")
    models = torchvision.models
    known = [*models.list_models(module=models), *models.list_models(module=models.video)]
    if name not in known:
        raise BackendError(
            f'torchvision has no model "{name}".{did_you_mean(name, known)} Write torchvision:resnet101 or torchvision:r3d_18.'
        )
    if at and not Path(path).is_file():
        raise BackendError(f"There is no checkpoint {path}. Write torchvision:{name}@FILE with a file that exists.")
    return name, tag or None, Path(path) if at else None


def _weights_of(name: str, tag: str | None, torchvision: Any) -> Any:
    """Return the library's record of weights."""
    known = torchvision.models.get_model_weights(name)
    if tag is None:
        return known.DEFAULT
    names = [one.name for one in known]
    if tag not in names:
        raise BackendError(f'torchvision has no weights "{tag}" of {name}; there is {", ".join(names)}.')
    return known[tag]


def _load(name: str, weights: Any, checkpoint: Path | None, torchvision: Any) -> Any:
    """Return the model without its last layer, on the CPU.

    Raises:
        BackendError: the weights are not here, are damaged, or of another model.
    """
    model = torchvision.models.get_model(name, weights=None)
    place = _cut_head(model)
    path = checkpoint or _find_or_download(name, weights)
    try:
        model.load_state_dict({key: value for key, value in _read_state(path).items() if not key.startswith(f"{place}.")})
    except Exception as exc:  # a damaged pickle raises anything
        raise BackendError(f"{path} holds no weights of {name} ({hub.first_line(exc)}). Give a checkpoint of this model.") from exc
    return model.eval()


def _cut_head(model: Any) -> str:
    """Replace the last layer by nothing, and return its name in the weights."""
    import torch

    name = next(one for one in HEADS if hasattr(model, one))
    head = getattr(model, name)
    if not isinstance(head, torch.nn.Sequential):
        setattr(model, name, torch.nn.Identity())
        return name
    inner, _ = list(head.named_children())[-1]
    setattr(head, inner, torch.nn.Identity())
    return f"{name}.{inner}"


def _read_state(path: Path) -> dict[str, Any]:
    import torch

    with files.open_named(path, most_bytes=MOST_BYTES) as file:
        files.check_unpacked(file, MOST_BYTES)
        state = torch.load(file, map_location="cpu", weights_only=True)
    for wrapper in WRAPPERS:
        if isinstance(state.get(wrapper), dict):
            state = state[wrapper]
    return {key.removeprefix("module."): value for key, value in state.items()}


def _find_or_download(name: str, weights: Any) -> Path:
    """Return the file with the library's weights.

    Raises:
        BackendError: it is not in the cache and cannot be downloaded.
    """
    import torch

    path = Path(torch.hub.get_dir()) / "checkpoints" / str(weights.url).rpartition("/")[2]
    if path.is_file():
        return path
    reason = hub.probe_error(weights.url)
    if reason is None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(weights.url, str(path))
        except Exception as exc:  # of urllib, the disk, or a wrong checksum
            reason = hub.first_line(exc)
        else:
            return path
    raise BackendError(
        f"The weights of {name} are not in {path.parent} and cannot be downloaded: {reason}. Run once with a connection, or write"
        f" {option('model', f'torchvision:{name}@FILE')}."
    )
