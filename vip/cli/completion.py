"""Shell completion for the values of options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vip.registry import Kind

OFFERED: dict[str, dict[str, tuple[str, ...]]] = {  # in the place of a name that alone does nothing, or not all
    "sampler": {"every": ("every:2s",), "shots": ("shots", "shots:adaptive", "shots:hash", "shots:histogram")},
    "pruner": {"algorithm1": ("algorithm1", "algorithm1:plain"), "threshold": ("threshold:0.93",)},
    "embedder": {"clip": ("auto", "clip", "clip:ViT-B-16-SigLIP/webli")},
    "detector": {
        "transformers": ("transformers:PekingU/rtdetr_r50vd", "transformers:google/owlv2-base-patch16-ensemble"),
        "file": ("file:",),
    },
    "extractor": {
        "open_clip": ("open_clip", "open_clip:ViT-B-16-SigLIP/webli"),
        "torchvision": ("torchvision:resnet101", "torchvision:r3d_18"),
    },
    "engine": {"openai": ("auto", "openai", "openai:"), "transformers": ("transformers", "transformers:"), "fake": ()},
}


def choices(*words: str) -> Callable[[str], Iterator[str]]:
    """Offer these words."""

    def offer(incomplete: str) -> Iterator[str]:
        return (word for word in words if word.startswith(incomplete))

    return offer


def choices_with_commas(*words: str) -> Callable[[str], Iterator[str]]:
    """Offer these words, behind a comma those that are not named yet."""

    def offer(incomplete: str) -> Iterator[str]:
        before, comma, begun = incomplete.rpartition(",")
        named = before.split(",")
        return (f"{before}{comma}{word}" for word in words if word.startswith(begun) and word not in named)

    return offer


def backends(kind: Kind) -> Callable[[str], Iterator[str]]:
    """Offer the backends of a kind that are built in, and those that other packages add."""

    def offer(incomplete: str) -> Iterator[str]:
        from vip import registry

        special = OFFERED.get(kind, {})
        words = [word for name in registry.names(kind) for word in special.get(name, (name,))]
        return (word for word in words if word.startswith(incomplete))

    return offer


def picture_models(incomplete: str) -> Iterator[str]:
    """Offer the models whose tokens for a picture vip knows."""
    from vip.llm.prices import load_prices

    return (price.model for price in load_prices().built_in if price.picture and price.model.startswith(incomplete))
