"""What the tests of `ask` share: a joint space of pictures and texts, run folders with words, and what a server answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from tests.captioning.keyframes import run_folder
from tests.clips import scene
from vip import store
from vip.protocols import EmbedderCapabilities
from vip.records import Image, SpokenWords, Vectors
from vip.search.ask_frames import ChosenKeyframe

LAST = "Frames of them were looked at one by one"
"""Stands in the last request alone."""


class SceneEmbedder:
    """A joint space: a picture of `scene` number n and any text with the word `scene n` point the same way."""

    name, dim = "scenes", 9 * 16 * 3
    capabilities = EmbedderCapabilities(joint_space=True)

    def __init__(self, detail: str | None, **settings: object) -> None:
        pass

    def embed_images(self, images: Sequence[Image]) -> Vectors:
        small = [cv2.resize(image, (16, 9), interpolation=cv2.INTER_AREA).ravel().astype(np.float32) - 128 for image in images]
        return np.stack([one / np.linalg.norm(one) for one in small])

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        numbers = [int(found[1]) if (found := re.search(r"scene (\d+)", text)) else 99 for text in texts]
        return self.embed_images([scene(number) for number in numbers])


def moments_of(*folders: Path) -> list[ChosenKeyframe]:
    """Every keyframe of these run folders."""
    return [(folder, keyframe) for folder in folders for keyframe in store.load_run(folder).keyframes]


def run_with_words(path: Path, count: int, words: Iterable[tuple[float, float, str]] = ()) -> Path:
    """A run folder of keyframes 1.5 s apart, with subtitles."""
    run_folder(path, count)
    rows = [SpokenWords(start_s=start, end_s=end, text=text, origin="talk.srt") for start, end, text in words]
    if rows:
        store.write_rows(path / store.WORDS, rows)
    return path


def reply(answer: str, *citations: int, is_supported: bool = True) -> str:
    """What a server answers to the last request."""
    said: dict[str, Any] = {"reasoning": "One after the other.", "is_supported": is_supported, "answer": answer}
    return json.dumps({**said, "citations": citations})


def observed(text: str, *, is_relevant: bool = True) -> str:
    """What a server answers about a frame."""
    return json.dumps({"observation": text, "is_relevant": is_relevant})
