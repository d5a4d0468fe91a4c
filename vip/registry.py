"""Names to backends: `kind` or `kind:detail` on the command line, loaded on first use.

Built-ins stand in one table; other packages add theirs by entry points in the groups `vip.samplers`, `vip.pruners`,
`vip.embedders`, `vip.detectors` and `vip.engines`. An entry is a class or function that is called with the detail (the text after the
colon, or None) and the keyword settings of its kind.
"""

from __future__ import annotations

import importlib
from typing import Any, Literal, cast

from vip.errors import BackendError, did_you_mean
from vip.protocols import Detector, Embedder, Engine, Pruner, Sampler

Kind = Literal["sampler", "pruner", "embedder", "detector", "engine"]

BUILT_IN: dict[Kind, dict[str, str]] = {
    "sampler": {
        "sync": "vip.extraction.candidates:SyncSampler",
        "uniform": "vip.extraction.samplers.even:UniformSampler",
        "every": "vip.extraction.samplers.even:EverySampler",
        "shots": "vip.extraction.samplers.shots:ShotsSampler",
        "katna": "vip.extraction.samplers.katna:KatnaSampler",
    },
    "pruner": {
        "algorithm1": "vip.extraction.prune:Algorithm1",
        "k-center": "vip.extraction.k_center:KCenter",
        "threshold": "vip.extraction.threshold:Threshold",
    },
    "embedder": {"classic": "vip.models.classic:ClassicEmbedder"},
    "detector": {"opencv": "vip.models.opencv:OpenCVDetector"},
    "engine": {
        "offline": "vip.models.offline:OfflineEngine",
        "openai": "vip.models.openai:OpenAIEngine",
        "fake": "vip.models.fake:FakeEngine",
    },
}


def names(kind: Kind) -> dict[str, str]:
    """Every backend of a kind: name -> `module:attribute`."""
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
    """`module:attribute` of a backend."""
    head = name.partition(":")[0]
    known = BUILT_IN[kind] if head in BUILT_IN[kind] else names(kind)  # asking all packages for entry points takes 10 ms
    if head not in known:
        raise BackendError(f'There is no {kind} "{head}".{did_you_mean(head, known)}')
    return known[head]


def _create(kind: Kind, name: str, **settings: Any) -> Any:
    head, _, detail = name.partition(":")
    module, _, attribute = _find(kind, name).partition(":")
    try:
        factory = getattr(importlib.import_module(module), attribute)
    except Exception as exc:  # another package's module may fail in any way
        why = " ".join(str(exc).split()) or type(exc).__name__
        raise BackendError(f'The {kind} "{head}" cannot be loaded ({why}). Install what it needs, then run `vip doctor`.') from exc
    return factory(detail or None, **settings)


def sampler(name: str) -> Sampler:
    return cast(Sampler, _create("sampler", name))


def pruner(name: str) -> Pruner:
    return cast(Pruner, _create("pruner", name))


def embedder(name: str) -> Embedder:
    return cast(Embedder, _create("embedder", name))


def auto_embedder(name: str) -> tuple[str, str | None]:
    """The embedder that `auto` stands for here and now, and why; any other name as it is, without a reason."""
    return ("classic", "the embedded one, which needs no weights") if name == "auto" else (name, None)


def detector(name: str) -> Detector:
    return cast(Detector, _create("detector", name))


def engine(name: str, *, base_url: str | None = None) -> Engine:
    return cast(Engine, _create("engine", name, base_url=base_url))
