"""Runs with pictures of known scenes and their vectors, and what a search tells."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.captioning.keyframes import run_folder
from tests.clips import scene
from tests.search.asked import SceneEmbedder
from vip import registry, store
from vip.protocols import SilentObserver
from vip.records import Embeddings


class Notes(SilentObserver):
    """Keeps what is told, and how often something is indexed."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.indexed: list[int] = []

    def note(self, text: str) -> None:
        self.told.append(text)

    def track(self, title: str, total: int, extra: Callable[[], str] | None = None) -> AbstractContextManager[Callable[[], None]]:
        self.indexed.append(total)
        return super().track(title, total, extra)


class Scenes(SceneEmbedder):
    """The joint space of the tests, under a name that is loaded unasked."""

    name = "clip:scenes/test"


@pytest.fixture
def scenes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs with pictures of scenes 0 to 5 and 6 to 11, and their vectors."""
    monkeypatch.setattr(registry, "embedder", lambda name, *args, **settings: Scenes(None))
    for first, name in ((0, "low"), (6, "high")):
        give_scenes(run_folder(tmp_path / "scenes" / f"{name}.vip", 6), range(first, first + 6))
    return tmp_path / "scenes"


def give_scenes(folder: Path, numbers: range, label: str = Scenes.name) -> Path:
    """Give a run these pictures, and vectors of them."""
    for frame, number in zip(store.load_run(folder).keyframes, numbers, strict=True):
        store.write_picture(frame.path, scene(number))
    vectors = Scenes(None).embed_images([scene(number) for number in numbers])
    store.write_embeddings(folder / store.EMBEDDINGS, Embeddings(vectors, vectors, label))
    rows = [json.dumps({"index": frame.record.candidate, "quality": {}}) for frame in store.load_run(folder).keyframes]
    (folder / store.CANDIDATES).write_text("\n".join(rows) + "\n")
    return folder


def picture(path: Path, number: int) -> Path:
    store.write_picture(path, scene(number))
    return path
