"""A made-up space of pictures and texts, and an engine that describes pictures in it and is wrong about one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.captioning.keyframes import Scripted
from vip import store
from vip.protocols import EmbedderCapabilities, Request
from vip.records import Image, Vectors


def unit(vectors: Any) -> Vectors:
    array = np.asarray(vectors, np.float32)
    return np.asarray(array / np.linalg.norm(array, axis=-1, keepdims=True), np.float32)


class Numbers:
    """A joint space in which picture n and every text about `thing n` point the same way. Pictures are noise of a seed."""

    name, dim = "numbers", 256
    capabilities = EmbedderCapabilities(joint_space=True)

    def __init__(self, folder: Path) -> None:
        items = store.load_run(folder).keyframes
        self.seen = {item.image.tobytes(): number for number, item in enumerate(items) if item.path.exists()}
        self.largest = 0
        self._ways = unit(np.random.default_rng(1).normal(size=(100, self.dim)))

    def embed_images(self, images: Sequence[Image]) -> Vectors:
        self.largest = max(self.largest, len(images))
        return self._ways[[self.seen.get(image.tobytes(), 99) for image in images]]

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        numbers = [int(found[1]) if (found := re.search(r"thing ?(\d+)", text)) else 98 for text in texts]
        return self._ways[numbers]


def said(number: int, of: int | None = None) -> dict[str, Any]:
    """What a model says about picture `number`; about something else where `of` names it."""
    of = number if of is None else of
    return {
        **{
            "dense_caption": f"Caption {number}.",
            "focus": f"thing {of}",
            "action": f"thing {number} moves",
            "mood": f"mood of thing {number}",
        },
        **{"objects": [f"thing{number}"], "setting": f"place of thing {number}"},
    }


def number_in(request: Request) -> int:
    """Time stamps are 1.5 s apart."""
    found = re.search(r"(\d+\.\d) s", request.prompt)
    assert found
    return round(float(found[1]) / 1.5)


class Talking(Scripted):
    """Describes each picture, is wrong about the focus of number 3, and looks a second time as it is told."""

    def __init__(self, second_look: Any = None, **about: Any) -> None:
        super().__init__(**about)
        self.answer = self.say
        self.second_look = second_look
        self.second: list[Request] = []

    def say(self, request: Request, number: int) -> Any:
        if request.stage == "verify":
            self.second.append(request)
            return self.second_look(request) if callable(self.second_look) else {"claims": self.second_look or []}
        at = number_in(request)
        return said(at, 77 if at == 3 else None)
