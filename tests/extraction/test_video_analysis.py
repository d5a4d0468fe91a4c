"""What an earlier run knows is taken over only where it is of the same stream, model, device and question."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vip.config import ExtractSettings
from vip.extraction import video_analysis
from vip.extraction.analysis_store import NO_CACHED_VECTORS

HAD = {"stream": 1, "model": "weights", "device": "cpu", "same_file": True}


@pytest.mark.parametrize("changed", [{}, {"stream": 0}, {"model": "others"}, {"device": "cuda"}, {"same_file": False}])
def test_vectors_are_taken_over_from_a_run_of_the_same_video_stream_model_and_device(
    changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = {**HAD, **changed}
    manifest = SimpleNamespace(settings={"stream": HAD["stream"]}, device=HAD["device"], video=None)
    run = SimpleNamespace(manifest=manifest, embeddings=SimpleNamespace(model=HAD["model"]))
    for name, put in {
        "Run": lambda folder: run,
        "is_same_file": lambda known, named: now["same_file"],
        "identity_of": lambda embedder: now["model"],
        "cached_vectors_of": lambda run: "those of the run",
    }.items():
        monkeypatch.setattr(video_analysis, name, put)
    settings, backends = ExtractSettings(stream=now["stream"]), SimpleNamespace(embedder=None, device=now["device"])
    found = video_analysis._cached_vectors(None, Path("a.vip"), settings, backends)  # type: ignore[arg-type]
    assert found == (NO_CACHED_VECTORS if changed else "those of the run")


@pytest.mark.parametrize(
    ("query", "frames", "relevance"), [("a dog", 2, [0.5, 0.75]), ("a cat", 2, ["anew"]), ("a dog", 3, ["anew"]), (None, 2, None)]
)
def test_relevance_is_that_of_the_run_where_the_question_is_the_same(
    query: str | None, frames: int, relevance: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [SimpleNamespace(relevance=value) for value in (0.5, None, 0.75)]
    old: Any = SimpleNamespace(candidates=rows, manifest=SimpleNamespace(settings={"query": "a dog"}))
    monkeypatch.setattr(video_analysis.registry, "embedder", lambda name, **options: name)
    monkeypatch.setattr(video_analysis.registry, "is_published", lambda name: True)
    for name, put in {
        "check_joint": lambda embedder: None,
        "identity_of": lambda embedder: "weights",
        "relevance_of": lambda embeddings, query, embedder: ["anew"],
    }.items():
        monkeypatch.setattr(video_analysis, name, put)
    vectors: Any = SimpleNamespace(model="weights")
    assert video_analysis._relevance(old, frames, vectors, ExtractSettings(query=query), "clip") == relevance
