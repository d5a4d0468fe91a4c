"""What `vip doctor` says of models: whether they are installed, in the cache or on the hub, and the device they would run on."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from vip.errors import BackendError
from vip.models import hub
from vip.models.clip import weight_files

DETECTORS = {
    "RT-DETR": "PekingU/rtdetr_r50vd",
    "DETR": "facebook/detr-resnet-50",
    "OWLv2": "google/owlv2-base-patch16-ensemble",
    "Grounding DINO": "IDEA-Research/grounding-dino-tiny",
    "Florence-2": "florence-community/Florence-2-base",
}
"""A usual model of each kind that `transformers:MODEL` reads."""


Row = tuple[str, str, bool, str]
"""Group, name, whether it works here, and what to say about it."""


def rows() -> Iterator[Row]:
    """Return embedders and detectors that need a model, the hub, and devices."""
    clip, transformers = find_spec("open_clip") is not None, find_spec("transformers") is not None
    why_not = hub.why_not() if clip or transformers else None
    if clip:
        there = weight_files.in_cache(weight_files.DEFAULT_PRETRAINED) is not None
        yield ("model", "clip", there or why_not is None, f"ViT-B-32, {_where(there, why_not)}")
    else:
        yield ("model", "clip", False, "not installed: pip install 'vip-keyframes[clip]'")
    for kind, name in DETECTORS.items() if transformers else ():
        there = hub.cached(name, "config.json") is not None
        yield ("model", kind, there or why_not is None, f"transformers:{name}, {_where(there, why_not)}")
    if not transformers:
        yield ("model", "transformers:MODEL", False, "not installed: pip install 'vip-keyframes[transformers]'")
    if clip or transformers:
        yield ("model", "hub", why_not is None, why_not or "answers")
        yield _device()


def _where(there: bool, why_not: str | None) -> str:
    if there:
        return "in the cache"
    return "not in the cache, " + ("and cannot be downloaded" if why_not else "downloaded when first used")


def _device() -> Row:
    from vip.models.hardware import choose_hardware

    try:
        hardware = choose_hardware("auto", "auto")
    except (BackendError, ImportError) as exc:
        return ("model", "device", False, str(exc))
    return ("model", "device", True, f"models run on {hardware}")
