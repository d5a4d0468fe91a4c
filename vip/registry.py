"""Names to backends: `kind` or `kind:detail` on the command line, loaded on first use.

Built-ins stand in one table; other packages add theirs by entry points in the groups `vip.samplers`, `vip.pruners`,
`vip.embedders`, `vip.detectors`, `vip.engines` and `vip.extractors`. An entry is a class or function that is called with the
detail (the text after the colon, or None) and the keyword settings of its kind: embedders and extractors get `device` and
`precision`, detectors these and `labels`, engines these and `base_url`, `key_file`, `timeout_s` and `picture_detail`. A backend
whose capabilities say `stays_loaded` is made once a process for the same name and settings.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, cast

from vip.errors import BackendError, did_you_mean
from vip.protocols import (
    Detector,
    DetectorCapabilities,
    Embedder,
    EmbedderCapabilities,
    Engine,
    EngineCapabilities,
    Extractor,
    ExtractorCapabilities,
    LoadsModel,
    Pruner,
    PrunerCapabilities,
    Sampler,
    SamplerCapabilities,
    TextReader,
    Transcriber,
)
from vip.wording import SaidOnce

PUBLISHED = re.compile(r"clip:([\w-][\w.-]*/[\w-][\w.-]*)")
Kind = Literal["sampler", "pruner", "embedder", "detector", "engine", "extractor"]

BUILT_IN: dict[Kind, dict[str, str]] = {
    "sampler": {
        "sync": "vip.extraction.samplers.sync:SyncSampler",
        "uniform": "vip.extraction.samplers.uniform:UniformSampler",
        "every": "vip.extraction.samplers.uniform:EverySampler",
        "shots": "vip.extraction.samplers.shots:ShotsSampler",
        "katna": "vip.extraction.samplers.katna:KatnaSampler",
    },
    "pruner": {
        "algorithm1": "vip.extraction.pruners.algorithm1:Algorithm1",
        "k-center": "vip.extraction.pruners.k_center:KCenter",
        "threshold": "vip.extraction.pruners.threshold:Threshold",
        "aks": "vip.extraction.pruners.aks:AdaptiveKeyframeSampling",
        "none": "vip.extraction.pruners.none:NoPruning",
    },
    "embedder": {"classic": "vip.models.classic:ClassicEmbedder", "clip": "vip.models.clip.embedder:OpenClipEmbedder"},
    "detector": {
        "opencv": "vip.models.opencv:OpenCVDetector",
        "transformers": "vip.models.transformers.detector:transformers_detector",
        "file": "vip.models.detections_file:DetectionsFile",
    },
    "engine": {
        "offline": "vip.models.offline:OfflineEngine",
        "openai": "vip.models.openai.engine:OpenAIEngine",
        "transformers": "vip.models.transformers.engine:TransformersEngine",
        "fake": "vip.models.fake:FakeEngine",
    },
    "extractor": {
        "open_clip": "vip.models.clip.extractor:OpenClipExtractor",
        "torchvision": "vip.models.torchvision_features:TorchvisionExtractor",
    },
}

MODEL_KINDS: frozenset[Kind] = frozenset({"embedder", "detector", "engine", "extractor"})
CAPABILITIES: dict[Kind, type] = {
    "sampler": SamplerCapabilities,
    "pruner": PrunerCapabilities,
    "embedder": EmbedderCapabilities,
    "detector": DetectorCapabilities,
    "engine": EngineCapabilities,
    "extractor": ExtractorCapabilities,
}

AUTO_EMBEDDER = "vip.models.clip.weight_files:auto_unavailable_reason"
TEXT_READER = "vip.models.rapid_ocr"
TRANSCRIBER = "vip.models.faster_whisper"
MODELS = "vip.models.status"
LOCAL_MODELS = "vip.models.local_models"
SERVED, SERVING = "vip.models.embedding_server.client", "vip.models.embedding_server.server"
_loaded: dict[tuple[object, ...], Any] = {}


def names(kind: Kind) -> dict[str, str]:
    """Return every backend of a kind: name -> `module:attribute`."""
    from importlib.metadata import entry_points

    added = {point.name: f"{point.module}:{point.attr}" for point in entry_points(group=f"vip.{kind}s")}
    return {**added, **BUILT_IN[kind]}


def check(**backends: str) -> None:
    """Refuse a misspelt backend before any work is done: `check(sampler="sync", engine="auto")`. Nothing is loaded.

    Raises:
        BackendError: there is no such backend.
    """
    for kind, name in backends.items():
        if name != "auto":
            _find(cast(Kind, kind), name)


def _find(kind: Kind, name: str) -> str:
    """Return `module:attribute` of a backend."""
    head = name.partition(":")[0]
    known = BUILT_IN[kind] if head in BUILT_IN[kind] else names(kind)  # asking all packages for entry points takes 10 ms
    if head not in known:
        raise BackendError(f'There is no {kind} "{head}".{did_you_mean(head, known)}')
    return known[head]


def _factory(kind: Kind, name: str) -> Any:
    """Import the class or function that makes a backend."""
    module, _, attribute = _find(kind, name).partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as exc:  # another package's module may fail in any way
        why, head = " ".join(str(exc).split()) or type(exc).__name__, name.partition(":")[0]
        raise BackendError(f'The {kind} "{head}" cannot be loaded ({why}). Install what it needs, then run `vip doctor`.') from exc


def _create(kind: Kind, name: str, **settings: Any) -> Any:
    head, _, detail = name.partition(":")
    key = (kind, name, *settings.items())
    if key in _loaded:
        return _loaded[key]
    factory = _factory(kind, name)
    try:
        inspect.signature(factory).bind(detail or None, **settings)
    except TypeError as exc:
        raise BackendError(f'The {kind} "{head}" was made for another vip ({exc}). Update the package that it comes with.') from exc
    backend = _check_capabilities(kind, head, factory(detail or None, **settings))
    if kind in MODEL_KINDS and backend.capabilities.stays_loaded:
        _loaded[key] = backend
    return backend


def _check_capabilities(kind: Kind, head: str, backend: Any) -> Any:
    """Return the backend.

    Raises:
        BackendError: it does not state what it can do.
    """
    record = CAPABILITIES[kind]
    if not isinstance(getattr(backend, "capabilities", None), record):
        lacks = f'The {kind} "{head}" has no `capabilities` of the type vip.protocols.{record.__name__}'
        raise BackendError(f"{lacks}. Update the package that it comes with.")
    return backend


def models() -> list[tuple[str, str, bool, str]]:
    """Return for each model of embedders and detectors: group, name, whether it works here, what to do about it. Takes seconds."""
    return list(importlib.import_module(MODELS).rows())


def sampler(name: str) -> Sampler:
    return cast(Sampler, _create("sampler", name))


def pruner(name: str) -> Pruner:
    return cast(Pruner, _create("pruner", name))


def embedder(name: str, *, device: str = "auto", precision: str = "auto") -> Embedder:
    """Return the embedder of the process that VIP_EMBEDDING_SERVER names, where that serves this one; else one made here."""
    if address := os.environ.get("VIP_EMBEDDING_SERVER"):
        found = importlib.import_module(SERVED).served_embedder(address, name, device, precision)
        if found is not None:
            return cast(Embedder, found)
    return cast(Embedder, _create("embedder", name, device=device, precision=precision))


def serve_embedder(name: str, host: str, *, device: str = "auto", precision: str = "auto") -> tuple[str, Callable[[], None]]:
    """Let other processes use an embedder of this one; return their VIP_EMBEDDING_SERVER, which is a secret, and what ends it.

    Args:
        host: the address of this machine that it listens at.
    """
    made = _create("embedder", name, device=device, precision=precision)
    return cast(tuple[str, Callable[[], None]], importlib.import_module(SERVING).serve(made, host))


def auto_embedder(name: str) -> tuple[str, str | None]:
    """Return the embedder that `auto` stands for here and now, and why; any other name as it is, without a reason.

    Clip where it is installed and its weights are in the cache or can be downloaded, else classic. Takes 2 s at most.
    """
    if name != "auto":
        return name, None
    why_not = _why_not_clip()
    return ("clip", "its weights are here") if why_not is None else ("classic", why_not)


def is_published(name: str) -> bool:
    """Return whether an embedder is built in, or its library knows its weights by their name: it opens no file of somebody's."""
    found = PUBLISHED.fullmatch(name)
    return name == "classic" or bool(found and not os.path.lexists(found[1]))


def auto_note(name: str, why: str) -> str:
    """Return a note for the user: `embedder: classic (built in); open_clip is not installed`."""
    return SaidOnce(f"embedder: {name}{' (built in)' if name == 'classic' else ''}; {why}")


def has_clip() -> bool:
    """Return whether the library of the embedder `clip` is installed."""
    return find_spec("open_clip") is not None


@cache
def _why_not_clip() -> str | None:
    module, _, attribute = AUTO_EMBEDDER.partition(":")
    found: str | None = getattr(importlib.import_module(module), attribute)()
    return found


def detector(name: str, *, labels: tuple[str, ...] | None = None, device: str = "auto", precision: str = "auto") -> Detector:
    return cast(Detector, _create("detector", name, labels=labels, device=device, precision=precision))


def extractor(name: str, *, device: str = "auto", precision: str = "auto") -> Extractor:
    return cast(Extractor, _create("extractor", name, device=device, precision=precision))


def engine(
    name: str,
    *,
    base_url: str | None = None,
    key_file: Path | None = None,
    timeout_s: float = 120.0,
    picture_detail: str = "high",
    device: str = "auto",
    precision: str = "auto",
) -> Engine:
    settings = {"base_url": base_url, "key_file": key_file, "timeout_s": timeout_s, "picture_detail": picture_detail}
    return cast(Engine, _create("engine", name, **settings, device=device, precision=precision))


def text_reader() -> TextReader:
    """Return what reads text in pictures; its models are loaded once a process.

    Raises:
        BackendError: it is not installed, or does not work here.
    """
    key = ("text_reader",)
    if key not in _loaded:
        _loaded[key] = importlib.import_module(TEXT_READER).RapidOcrReader()
    return cast(TextReader, _loaded[key])


def has_text_reader() -> bool:
    """Return whether the libraries that read text in pictures are installed."""
    return all(find_spec(name) is not None for name in ("rapidocr", "onnxruntime"))


def check_text_reader() -> None:
    """Refuse to begin where text in pictures cannot be read.

    Raises:
        BackendError: what reads it is not installed.
    """
    if not has_text_reader():
        raise BackendError("Text in pictures is read with RapidOCR, which is not installed. Run: pip install 'vip-keyframes[text]'")


def transcriber(model: str, *, device: str = "auto", precision: str = "auto") -> Transcriber:
    """Return what writes down speech; its model is found or downloaded now, and loaded when it is first used.

    Raises:
        BackendError: faster-whisper is not installed, or the model is not here and cannot be downloaded.
    """
    return cast(Transcriber, importlib.import_module(TRANSCRIBER).FasterWhisperTranscriber(model, device=device, precision=precision))


def no_transcriber_reason(model: str) -> str | None:
    """Return why speech cannot be transcribed here without a download, in words; None where it can."""
    reason: str | None = importlib.import_module(TRANSCRIBER).unavailable_reason(model)
    return reason


def local_model() -> str:
    """Return the small model that the engine `transformers` takes by default, with its size and licence."""
    return str(importlib.import_module(LOCAL_MODELS).vision_model())


def quick_engine(name: str, **settings: Any) -> Engine | None:
    """Return the engine where making it loads no model; else None, once what it needs was found installed.

    Raises:
        BackendError: there is no such engine, or what it needs is missing.
        UsageError, EngineError: as the engine says.
    """
    factory = _factory("engine", name)
    if isinstance(factory, LoadsModel):
        factory.check_installed()
        return None
    return cast(Engine, _create("engine", name, **settings))
