"""What an earlier run knows is taken over only where it is of the same; and what a search and its sampler are told."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.extraction import analyses
from vip.config import ExtractSettings
from vip.errors import StoreError
from vip.extraction import video_analysis
from vip.extraction.analysis_store import NO_CACHED_VECTORS
from vip.records import Embeddings

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


@pytest.mark.parametrize("error", [None, StoreError("damaged")])
def test_where_there_is_no_run_or_a_damaged_one_nothing_is_taken_over(error: StoreError | None, monkeypatch: pytest.MonkeyPatch) -> None:
    class Damaged:
        def __init__(self, folder: Path) -> None:
            pass

        @property
        def manifest(self) -> None:
            if error:
                raise error

    monkeypatch.setattr(video_analysis, "Run", Damaged)
    backends: Any = SimpleNamespace(embedder=None, device="cpu")
    video: Any = None
    assert video_analysis._cached_vectors(video, Path("a.vip"), ExtractSettings(), backends) == NO_CACHED_VECTORS


def test_vectors_are_held_once_in_memory() -> None:
    own_view = np.ones(3, np.float32)
    frames = [analyses.analysis(10), analyses.analysis(20, view=own_view)]
    embeddings = Embeddings(np.stack([frame.vector for frame in frames]), np.ones((2, 1), np.float32), "hand")
    first, second = video_analysis._with_rows_of(embeddings, frames)
    for row, frame in enumerate((first, second)):
        assert np.shares_memory(frame.vector, embeddings.image)
        assert frame.vector.tolist() == frames[row].vector.tolist()
        assert frame.time_s == frames[row].time_s
    assert first.view is first.vector
    assert second.view is own_view


class Sampler:
    """Keeps what it is asked."""

    def __init__(self, name: str, *, exact: bool = False) -> None:
        self.name, self.capabilities, self.asked = name, SimpleNamespace(exact=exact), list[tuple[Any, int, Any]]()

    def sample(self, video: Any, *, keyframes: int, candidates: int | None) -> list[int]:
        self.asked.append((video, keyframes, candidates))
        return [7]


def searched(monkeypatch: pytest.MonkeyPatch, sampler: Sampler, settings: ExtractSettings, *, as_is: bool = False) -> Any:
    """What a search is begun with, and what the sampler is then asked."""
    monkeypatch.setattr(video_analysis, "CandidateSearch", SimpleNamespace)
    monkeypatch.setattr(video_analysis, "expected_keyframes", lambda keyframes, video: 12 if keyframes == "auto" else keyframes)
    monkeypatch.setattr(video_analysis, "candidates_in_short_video", lambda index, keyframes: (index, keyframes))
    backends: Any = SimpleNamespace(sampler=sampler, pruner=SimpleNamespace(capabilities=SimpleNamespace(as_is=as_is)))
    parts: list[Any] = [SimpleNamespace(index="index"), settings, backends, "analyzer", "keeper", "observer"]
    search = video_analysis._search(*parts)
    assert video_analysis._sample(search, settings, backends) == [7]
    assert (search.video, search.analyzer, search.keeper, search.observer) == (parts[0], *parts[3:])
    ((video, *asked),) = sampler.asked
    assert video is parts[0]
    return search, asked


@pytest.mark.parametrize(
    ("name", "given", "insistent", "counts", "asked"),
    [
        ("sync", {"keyframes": 6}, True, False, [6, ("index", 6)]),
        ("sync", {"keyframes": "auto"}, False, True, [12, ("index", 12)]),
        ("sync", {"keyframes": 6, "candidates": 40}, False, False, [6, 40]),
        ("sync", {"keyframes": "auto", "candidates": 40}, False, False, [12, 40]),
        ("shots", {"keyframes": 6}, False, False, [6, None]),
        ("shots", {"keyframes": "auto"}, False, False, [12, None]),
        ("uniform", {"keyframes": 6, "candidates": 40}, False, False, [6, 40]),
        ("uniform", {"keyframes": 6}, False, False, [6, None]),
    ],
)
def test_only_the_usual_sampler_is_pressed_for_a_number_or_left_to_count_and_not_where_candidates_are_named(
    name: str, given: dict[str, Any], insistent: bool, counts: bool, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    search, found = searched(monkeypatch, Sampler(name), ExtractSettings(**given))
    assert (search.insistent, search.counts_pictures, found) == (insistent, counts, asked)
    assert (search.keyframes, search.exact, search.as_is) == (12 if given["keyframes"] == "auto" else 6, False, False)


@pytest.mark.parametrize(
    ("name", "given", "asked"),
    [
        ("uniform", {"keyframes": 6}, [6, 6]),  # as many as are kept
        ("uniform", {"keyframes": 6, "candidates": 40}, [6, 40]),
        ("shots", {"keyframes": 6}, [6, None]),
        ("sync", {"keyframes": "auto"}, [12, None]),
    ],
)
def test_what_is_not_pruned_is_sampled_as_it_is_to_be(
    name: str, given: dict[str, Any], asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    search, found = searched(monkeypatch, Sampler(name), ExtractSettings(**given), as_is=True)
    assert (search.exact, search.as_is, search.counts_pictures, found) == (True, True, False, asked)


def test_a_query_asks_for_more_candidates_and_sharpness_and_exactness_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ExtractSettings(keyframes=6, query="a dog", min_sharpness=30.0)
    search, found = searched(monkeypatch, Sampler("shots", exact=True), settings)
    assert found == [6 * video_analysis.MORE_FOR_A_QUERY, None]
    assert (search.keyframes, search.min_sharpness, search.exact, search.as_is) == (6, 30.0, True, False)
    assert video_analysis.MORE_FOR_A_QUERY > 1
