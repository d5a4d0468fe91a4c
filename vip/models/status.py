"""Status of models for `vip doctor`: whether they are installed, in the cache or on the hub, and the device they would run on."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from vip.errors import BackendError
from vip.models import faster_whisper, hub
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
    """Yield the rows of embedders and detectors that need a model, of the hub, and of devices."""
    clip, transformers, speech = (find_spec(name) is not None for name in ("open_clip", "transformers", "faster_whisper"))
    reason = hub.unreachable_reason() if clip or transformers or speech else None
    if clip:
        is_cached = weight_files.find_cached(weight_files.DEFAULT_PRETRAINED) is not None
        yield ("model", "clip", is_cached or reason is None, f"ViT-B-32, {_describe_availability(is_cached, reason)}")
    else:
        yield ("model", "clip", False, "not installed: pip install 'vip-keyframes[clip]'")
    for kind, name in DETECTORS.items() if transformers else ():
        is_cached = hub.find_cached(name, "config.json") is not None
        yield ("model", kind, is_cached or reason is None, f"transformers:{name}, {_describe_availability(is_cached, reason)}")
    if not transformers:
        yield ("model", "transformers:MODEL", False, "not installed: pip install 'vip-keyframes[transformers]'")
    if speech:
        is_cached = faster_whisper.unavailable_reason(faster_whisper.DEFAULT) is None
        yield ("model", "speech", is_cached or reason is None, f"Whisper small, {_describe_availability(is_cached, reason)}")
    else:
        yield ("model", "speech", False, f"not installed: {faster_whisper.INSTALL}")
    if clip or transformers:
        yield ("model", "hub", reason is None, reason or "answers")
        yield _device_row()


def _describe_availability(is_cached: bool, reason: str | None) -> str:
    if is_cached:
        return "in the cache"
    return "not in the cache, " + ("and cannot be downloaded" if reason else "downloaded when first used")


def _device_row() -> Row:
    from vip.models.hardware import choose_hardware

    try:
        hardware = choose_hardware("auto", "auto")
    except (BackendError, ImportError) as exc:
        return ("model", "device", False, str(exc))
    return ("model", "device", True, f"models run on {hardware}")
