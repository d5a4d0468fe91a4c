"""Which keyframes are found, and in which order: by words, by pictures, by both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vip.records import Keyframe, Quality, Vectors
from vip.search import hits
from vip.search.documents import IndexedKeyframe, IndexedVideo, KeyframeTexts
from vip.search.hits import PictureHits, SearchFilter, WordHits, WordMatch, best_of, fused, picture_hits, word_hits
from vip.search.index import SearchIndex, Source, opened
from vip.search.query_text import parse_query

ALL = SearchFilter()
QUALITY = Quality(sharpness=1.0, brightness=0.5, contrast=0.2)


def video(*captions: str, vectors: Vectors | None = None, size: tuple[int, int] = (64, 48), **about: Any) -> IndexedVideo:
    """A video with these captions, of two seconds each."""
    frames = []
    for number, caption in enumerate(captions):
        about_picture = {"image_path": f"{number}.jpg", "width_px": size[0], "height_px": size[1], "quality": QUALITY, "detections": ()}
        record = Keyframe(id=f"v:{number}", video_id="v", time_s=2.0 * number + 1, pts=None, candidate=None, **about_picture)
        texts = KeyframeTexts(caption, "", "", "", "", "", "", "")
        vector = vectors[number] if vectors is not None and number < len(vectors) else None
        frames.append(IndexedKeyframe(record, 2.0 * number, 2.0 * number + 2, texts, False, vector))
    given = {"name": "v", "source": "v.mp4", "youtube_id": None, "domains": (), "embedder": "x" if vectors is not None else None, **about}
    return IndexedVideo(**given, keyframes=tuple(frames))


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SearchIndex]:
    with opened(tmp_path / "index") as opened_index:
        yield opened_index


def add(index: SearchIndex, *videos: IndexedVideo, source: str = "a.vip") -> None:
    with index.transaction():
        index.add(Source(source, ""), "stamp", videos)


def found(index: SearchIndex, text: str, among: SearchFilter = ALL, count: int = 100) -> list[int]:
    """The numbers of the keyframes, from 1."""
    return list(word_hits(index, parse_query(text), (), among, count).keyframes)


@pytest.mark.parametrize(
    ("among", "expected"),
    [
        ({"start_s": 3.0}, {2, 3}),  # the second began before, and shows it
        ({"start_s": 4.0}, {2, 3}),
        ({"start_s": 4.1}, {3}),
        ({"end_s": 3.0}, {1, 2}),
        ({"end_s": 2.0}, {1, 2}),
        ({"end_s": 1.9}, {1}),
        ({"start_s": 2.5, "end_s": 3.5}, {2}),
        ({"video": "ABC-*"}, {1, 2, 3}),
        ({"video": "abc"}, set()),
        ({"domain": "SURFING"}, {1, 2, 3}),
        ({"domain": "surf"}, set()),
    ],
)
def test_a_filter_holds_for_stretches_names_ids_and_whole_labels(index: SearchIndex, among: dict[str, Any], expected: set[int]) -> None:
    add(index, video("a dog", "a dog", "a dog", name="talk", youtube_id="aBc-123", domains=("Dog", "Surfing")))
    assert set(found(index, "dog", SearchFilter(**among))) == expected


def test_both_rankings_count_by_their_ranks() -> None:
    words = WordHits({7: WordMatch(1, 1.0), 3: WordMatch(1, 0.5)})
    ranked = fused(words, PictureHits({3: 0.9, 5: 0.8}, mean=0.2))
    assert [(hit.keyframe, hit.score) for hit in ranked] == [
        (3, pytest.approx(1 / 62 + 1 / 61)),
        (7, pytest.approx(1 / 61)),
        (5, pytest.approx(1 / 62)),
    ]
    assert [(hit.cosine, hit.likeness) for hit in ranked] == [(0.9, pytest.approx(0.7)), (None, 0.0), (0.8, pytest.approx(0.6))]
    assert [hit.keyframe for hit in fused(WordHits({9: WordMatch(1, 1.0)}), PictureHits({2: 0.9}, 0.0))] == [2, 9], (
        "a tie goes by the place"
    )


def toward(*cosines: float) -> Vectors:
    """Vectors with these cosines to the first axis."""
    return np.array([[cosine, np.sqrt(1 - cosine**2)] for cosine in cosines], np.float32)


def test_pictures_nearer_to_the_average_than_to_the_best_are_left_out(index: SearchIndex) -> None:
    add(index, video(*"abcd", vectors=toward(1.0, 0.9, 0.6, 0.0)))
    (embedder,) = index.embedders()
    near = picture_hits(index, embedder, np.array([1, 0], np.float32), ALL, 10)
    assert near.mean == pytest.approx(0.625, abs=0.01)
    assert {place: round(cosine, 3) for place, cosine in near.cosines.items()} == {1: 1.0, 2: 0.9}, "the bound is 0.81"


def test_of_several_pictures_each_keyframe_has_its_greatest_cosine_and_the_best_come_first() -> None:
    both = best_of([PictureHits({1: 0.9, 2: 0.5}, 0.1), PictureHits({2: 0.95, 3: 0.6, 4: 0.4}, 0.2)], 3)
    assert list(both.cosines.items()) == [(2, 0.95), (1, 0.9), (3, 0.6)]
    assert both.mean == 0.2
    assert list(best_of([PictureHits({1: 0.9}, 0.1), PictureHits({2: 0.5}, 0.2)], 3).cosines) == [1], "0.5 is nearer to the average"


def test_vectors_of_a_source_that_is_gone_are_not_found_before_their_place_is_used_again(index: SearchIndex) -> None:
    add(index, video("a", "b", vectors=toward(1.0, 0.99)))
    add(index, video("c", vectors=toward(0.98)), source="b.vip")
    with index.transaction():
        index.remove([Source("a.vip", "")])
    (embedder,) = index.embedders()
    query = np.array([1, 0], np.float32)
    assert list(picture_hits(index, embedder, query, ALL, 10).cosines.values()) == [pytest.approx(0.98)]
    assert found(index, "a") == []
    add(index, video("d", "e", vectors=toward(0.97, 0.0)), source="c.vip")
    (embedder,) = index.embedders()
    assert embedder.slots == 3, "the new vectors have the places of the old ones"
    assert sorted(picture_hits(index, embedder, query, ALL, 10).cosines.values()) == [pytest.approx(0.97), pytest.approx(0.98)]


def test_a_video_of_which_a_vector_is_missing_is_found_by_words_alone(index: SearchIndex) -> None:
    add(index, video("a dog", "a cat", vectors=toward(1.0)))
    assert index.embedders() == []
    assert found(index, "cat") == [2]


def test_the_shapes_that_most_videos_have_come_first(index: SearchIndex) -> None:
    sizes = [(160, 90), (40, 30), (160, 90), (90, 160), (160, 90), (90, 160)]
    add(index, *(video("x", size=size) for size in sizes))
    assert index.aspects(2) == [1.78, 0.56]


def test_one_common_word_is_searched_though_it_has_more_keyframes_than_are_ranked(
    index: SearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(index, video("a dog", "a dog", "a cat", "a cat"))
    monkeypatch.setattr(hits, "MOST_SCORED", 1)
    result = word_hits(index, parse_query("dog cat"), (), ALL, 10)
    assert len(result.keyframes) >= 1
    assert "that many were ranked" in result.unranked


def test_no_more_are_found_than_are_asked_for(index: SearchIndex) -> None:
    add(index, video("a dog", "a dog", "a dog"))
    assert len(found(index, "dog", count=2)) == 2


def test_a_phrase_comes_first_then_all_words_then_some_and_each_keyframe_once(index: SearchIndex) -> None:
    add(index, video("milk", "a cup of milk beside a red cup", "a red cup", "red", "nothing", "a cup that is red"))
    result = word_hits(index, parse_query("red cup"), (), ALL, 100).keyframes
    assert {keyframe: one.tier for keyframe, one in result.items()} == {3: 0, 2: 0, 6: 1, 4: 2}
    assert next(iter(result)) == 3, "of equal tiers the shorter text"
    assert [one.tier for one in result.values()] == sorted(one.tier for one in result.values())
    assert result[3].weight == pytest.approx(1.0)
    assert all(0 < one.weight < 0.99 for keyframe, one in result.items() if keyframe != 3)


def test_each_filter_holds_also_for_pictures_and_all_of_them_together(index: SearchIndex) -> None:
    add(index, video("a", "b", vectors=toward(1.0, 0.99), name="one", domains=("Dog",)))
    add(index, video("c", "d", vectors=toward(0.98, 0.97), name="two", domains=("Dog", "Cat")), source="b.vip")
    (embedder,) = index.embedders()

    def near(**among: Any) -> list[int]:
        return list(picture_hits(index, embedder, np.array([1, 0], np.float32), SearchFilter(**among), 10).cosines)

    assert (near(), near(video="two")) == ([1], [3]), "those above the middle between the mean and the best"
    assert near(domain="cat", start_s=2.5) == [4]
    assert near(domain="dog", end_s=1.0) == [1]
    assert near(video="one", domain="cat") == near(has_people=True) == []


def test_several_searches_of_which_one_found_nothing() -> None:
    only = PictureHits({1: 0.9}, 0.1)
    assert best_of([only], 5) is only
    assert best_of([PictureHits({}, 0.0), only], 5) == only
