"""The embedder `clip`: pictures and texts in one space, by any model of open_clip, SigLIP among them (section 3.1: CLIP).

clip                        ViT-B-32 with the weights laion2b_s34b_b79k
clip:ARCH/TAG               weights that open_clip knows: clip:ViT-B-16-SigLIP/webli
clip:ARCH@path/to/file.pt   a checkpoint of your own
clip:FOLDER                 configuration, weights and tokenizer as open_clip saves them for a hub
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from vip import files
from vip.errors import BackendError, did_you_mean
from vip.models import hub
from vip.models.clip import weight_files
from vip.models.clip.preprocessing import Preprocessing
from vip.models.hardware import Hardware, ShrinkingBatches, choose_hardware, single_threaded
from vip.protocols import EmbedderCapabilities
from vip.records import Image, Vectors
from vip.untrusted import one_line
from vip.wording import option

if TYPE_CHECKING:
    import torch

DEFAULT = f"{weight_files.DEFAULT_ARCH}/{weight_files.DEFAULT_TAG}"
BATCH = {"cpu": 32, "mps": 64, "cuda": 512}  # from there on more pictures at once are hardly faster
TEXTS_PER_BATCH = 64
PREPROCESSING = frozenset({"mean", "std", "interpolation", "resize_mode", "fill_color"})  # what open_clip knows of a tag's weights


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The origin of a model."""

    arch: str
    """As open_clip names it, also `local-dir:FOLDER`."""
    tag: str | None = None
    checkpoint: Path | None = None

    def __str__(self) -> str:
        if self.tag is not None:
            return f"{self.arch}/{self.tag}"
        return self.arch.removeprefix("local-dir:") if self.checkpoint is None else f"{self.arch}@{self.checkpoint}"

    def state(self) -> str:
        """Return size and time of the user's own files, which may change under the same name; empty for weights of a tag."""
        own = [self.checkpoint] if self.checkpoint else sorted(Path(self.arch.removeprefix("local-dir:")).glob("open_clip_*"))
        states = [path.stat() for path in own if path is not None and self.tag is None]
        return "".join(f", {state.st_size} bytes of {state.st_mtime_ns}" for state in states)


class OpenClipEmbedder:
    """Pictures and texts to vectors of one space."""

    def __init__(self, detail: str | None, *, device: str = "auto", precision: str = "auto") -> None:
        open_clip = _import_open_clip()
        source = _parse_source(detail or DEFAULT, open_clip)
        self._hardware: Hardware = choose_hardware(device, precision)
        self.name = f"clip:{source}"
        with _silence_logging(), single_threaded():
            self._model, self._tokenizer = _load(source, open_clip, self._hardware.precision)
        self._preprocessing = Preprocessing(open_clip.get_model_preprocess_cfg(self._model))
        self.dim = int(_read_config(source, open_clip)["embed_dim"])
        batch = BATCH[self._hardware.device.partition(":")[0]]
        self.capabilities = EmbedderCapabilities(
            joint_space=True,
            batch=batch,
            device=str(self._hardware),
            identity=f"{self.name}{source.state()}",
            prepare=self._preprocessing,
            stays_loaded=True,
        )
        self._images, self._texts = ShrinkingBatches(batch, self.name), ShrinkingBatches(TEXTS_PER_BATCH, self.name)
        self._lock, self._is_on_device = Lock(), False

    def embed_images(self, images: Sequence[Image]) -> Vectors:
        """Return float32 (N, dim), rows of length 1.

        Raises:
            BackendError: the memory of the device does not suffice for a single picture.
        """
        return self._embed(self._images, self._encode_images, images)

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Return float32 (N, dim), rows of length 1, in the space of the pictures. Text beyond the context (77 tokens) is cut off."""
        return self._embed(self._texts, self._encode_texts, texts)

    def _embed(self, batches: ShrinkingBatches, work: Any, items: Sequence[Any]) -> Vectors:
        import torch

        with self._lock, torch.inference_mode():
            if not self._is_on_device:  # not while loading: a process that has set up a GPU cannot be forked
                self._put_on_device()
            rows = batches.map(work, items)
            if not rows:
                return np.zeros((0, self.dim), np.float32)
            vectors = torch.nn.functional.normalize(torch.stack(rows).float(), dim=-1)
            return np.asarray(vectors.cpu().numpy(), np.float32)

    def _put_on_device(self) -> None:
        if self._hardware.device.startswith("cuda"):
            from vip.models.clip.cuda import use_products

            use_products(self._model)
        self._model.to(self._hardware.device)
        self._is_on_device = True

    def _encode_images(self, images: Sequence[Image]) -> Sequence[torch.Tensor]:
        """Return one vector an image, still on the device: the next batch is sent while this one is worked on."""
        pixels = self._preprocessing.pixels(images, self._hardware)
        return list(self._model.encode_image(pixels))

    def _encode_texts(self, texts: Sequence[str]) -> Sequence[torch.Tensor]:
        return list(self._model.encode_text(self._tokenizer(list(texts)).to(self._hardware.device)))


def _import_open_clip() -> Any:
    try:
        import open_clip
    except ImportError as exc:
        raise BackendError(
            f"The embedder \"clip\" needs open_clip ({hub.first_line(exc)}). Install it: pip install 'vip-keyframes[clip]'."
        ) from exc
    return open_clip


def _parse_source(detail: str, open_clip: Any) -> ModelSource:
    """Parse the text behind `clip:`.

    Raises:
        BackendError: there is no such architecture, tag or file.
    """
    if (Path(detail) / "open_clip_config.json").is_file():
        _check_folder(Path(detail))
        return ModelSource(f"local-dir:{detail}")
    if Path(detail).is_dir():
        raise BackendError(
            f"The folder {detail} has no open_clip_config.json. Give one that open_clip saved, or {option('embedder', 'clip:ARCH@FILE')}."
        )
    head, at, path = detail.partition("@")
    arch, _, tag = head.partition("/")
    known = open_clip.list_models()
    if arch not in known:
        raise BackendError(
            f'open_clip has no architecture "{arch}".{_suggest_arch(arch, known)} Write {option("embedder", "clip:ARCH/TAG")}.'
        )
    if at:
        if not Path(path).is_file():
            raise BackendError(f"There is no checkpoint {path}. Write {option('embedder', f'clip:{arch}@FILE')} with a file that exists.")
        return ModelSource(arch, checkpoint=Path(path))
    tags = open_clip.list_pretrained_tags_by_model(arch)
    if not tags:
        raise BackendError(
            f"open_clip knows no weights for {arch}. Write {option('embedder', f'clip:{arch}@FILE')} with a checkpoint of your own."
        )
    if tag not in tags:
        wrong = f'no weights "{tag}"' if tag else "several weights"
        raise BackendError(
            f"open_clip has {wrong} for {arch}; there is {', '.join(tags)}. Write {option('embedder', f'clip:{arch}/{tags[0]}')}."
        )
    return ModelSource(arch, tag=tag)


def _check_folder(folder: Path) -> None:
    """Refuse a folder that would lead open_clip elsewhere or hold it up.

    Raises:
        BackendError: it holds a FIFO or a device, or its configuration names a path.
    """
    try:
        files.check_tree(folder, links=True)
    except OSError as exc:
        raise BackendError(f"The folder {folder} cannot be read: {exc.strerror}. Copy the model again.") from exc
    config = _read_config(ModelSource(f"local-dir:{folder}"), None)
    towers = [tower for key in ("text_cfg", "vision_cfg") if isinstance(tower := config.get(key), dict)]
    names = [str(tower.get(key) or "") for tower in towers for key in ("hf_model_name", "hf_tokenizer_name", "timm_model_name")]
    if path := next((name for name in filter(None, names) if name[:1] in {"/", ".", "~"} or ".." in name or Path(name).is_dir()), None):
        raise BackendError(f"The folder {folder} names {one_line(path)[:80]}, which is no model of the hub. Choose another.")


def _suggest_arch(arch: str, known: Sequence[str]) -> str:
    hint = did_you_mean(arch, known)
    return hint if "Did you mean" in hint else ""


def _load(source: ModelSource, open_clip: Any, precision: str) -> tuple[Any, Any]:
    """Return the model and the tokenizer, on the CPU.

    Raises:
        BackendError: weights or tokenizer cannot be loaded, are damaged, or of another architecture.
    """
    pretrained = open_clip.get_pretrained_cfg(source.arch, source.tag) if source.tag else {}
    weights = weight_files.find_or_download(pretrained, source.arch) if source.tag else source.checkpoint
    tokenizer = _load_tokenizer(source, open_clip)
    is_folder = source.arch.startswith("local-dir:")
    try:
        with hub.offline(is_folder):  # its configuration may name a model of the hub, which nobody asked for
            model = open_clip.create_model(
                source.arch,
                precision=precision,
                force_quick_gelu=bool(pretrained.get("quick_gelu")),
                force_preprocess_cfg={key: value for key, value in pretrained.items() if key in PREPROCESSING},
                require_pretrained=is_folder,
                pretrained_text=False,
            )
        if weights is not None:
            open_clip.load_checkpoint(model, str(weights))
    except Exception as exc:  # each format of checkpoints fails in ways of its own
        raise BackendError(
            f"{weights or source} holds no weights of {source.arch} ({_describe_load_error(exc)}). {_load_error_advice(source)}"
        ) from exc
    return model.eval(), tokenizer


def _describe_load_error(exc: Exception) -> str:
    """Return why a checkpoint cannot be loaded. Of tensors under other names open_clip raises errors without any use to the reader."""
    return "its tensors have other names" if isinstance(exc, AttributeError | KeyError | TypeError) else hub.first_line(exc)


def _load_error_advice(source: ModelSource) -> str:
    if source.tag is not None:
        return "Delete that file to have it downloaded again."
    return f"Name the architecture that the checkpoint was made for: {option('embedder', 'clip:ARCH@FILE')}."


def _load_tokenizer(source: ModelSource, open_clip: Any) -> Any:
    """Return the tokenizer; that of CLIP comes with open_clip, others lie on the hub or in the folder.

    Raises:
        BackendError: it cannot be loaded.
    """
    config = _read_config(source, open_clip)
    name = config.get("text_cfg", {}).get("hf_tokenizer_name")
    on_hub = name and not source.arch.startswith("local-dir:")
    is_cached = not on_hub or hub.find_cached(name, "tokenizer_config.json") is not None
    if not is_cached and (reason := hub.unreachable_reason()):
        raise BackendError(
            f"The tokenizer {name} of {source.arch} is not in the cache and cannot be downloaded: {reason}. Run the command once online."
        )
    try:
        with hub.offline(is_cached):
            return open_clip.get_tokenizer(source.arch)
    except Exception as exc:  # the tokenizers library has no base class for its errors
        raise BackendError(
            f"The tokenizer of {source} cannot be loaded ({hub.first_line(exc)}). Give a folder that has its files."
        ) from exc


def _read_config(source: ModelSource, open_clip: Any) -> dict[str, Any]:
    if not source.arch.startswith("local-dir:"):
        return dict(open_clip.get_model_config(source.arch))
    import json

    path = Path(source.arch.removeprefix("local-dir:")) / "open_clip_config.json"
    try:
        return dict(json.loads(path.read_text(encoding="utf-8"))["model_cfg"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as exc:
        raise BackendError(
            f"{path} is no configuration of open_clip ({hub.first_line(exc)}). Save the model again with open_clip."
        ) from exc


@contextmanager
def _silence_logging() -> Iterator[None]:
    """Silence warnings of open_clip that a user can do nothing about."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
