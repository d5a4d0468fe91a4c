"""Questions, features and vectors that tests make up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from vip.baselines.nextqa.data import Item

THINGS = ("dog", "cat", "boy", "girl", "ball", "car")
CLIPS, WIDTH = 4, 12


def write_features(path: Path, feats: Any, ids: Sequence[object], *, appearance: int | None = None) -> Path:
    """Write features in the form of the authors."""
    with h5py.File(path, "w") as file:
        file["ids"] = np.array(ids, dtype="S") if isinstance(ids[0], str) else np.array(ids)
        file["feat"] = np.asarray(feats, dtype=np.float32)
        if appearance is not None:
            file["feat"].attrs["appearance"] = appearance
    return path


def make_items(count: int, *, first: int = 0, seed: int = 0, options: bool = True) -> list[Item]:
    """Return questions of which the video alone tells the answer: the thing that is in it."""
    random = np.random.default_rng([seed, first])
    items = []
    for number in range(first, first + count):
        things = random.permutation(len(THINGS))[:5]
        right = int(random.integers(5))
        words = tuple(THINGS[thing] for thing in things)
        answer: int | str = right if options else words[right]
        text = "what is in the video"
        items.append(Item(f"{number}_0", str(number), text, words if options else (), answer, row=number - first))
    return items


def thing_in(item: Item) -> int:
    """Return the number of what the video shows."""
    return THINGS.index(item.options[int(item.answer or 0)] if item.options else str(item.answer))


def write_features_of(path: Path, items: Sequence[Item], *, width: int = WIDTH, clips: int = CLIPS) -> Path:
    """Write features that show the right thing of each item."""
    random = np.random.default_rng(1)
    shapes = np.random.default_rng(2).normal(size=(len(THINGS), width))
    feats = [shapes[thing_in(item)] + 0.1 * random.normal(size=(clips, width)) for item in items]
    return write_features(path, feats, [item.video for item in items], appearance=width // 2)
