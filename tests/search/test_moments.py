"""What a moment says of itself: its link, its words, its stretch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.search.test_hits import add, video
from vip.search.hits import Hit, WordMatch
from vip.search.index import SearchIndex, opened
from vip.search.moments import Moment, join_hits
from vip.search.query_text import parse_query


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SearchIndex]:
    with opened(tmp_path / "index") as opened_index:
        add(opened_index, video("a dog", "a dog", "a dog", "a dog", youtube_id="abcdefghijk"))
        yield opened_index


def hit(keyframe: int, *, tier: int = 1, weight: float = 1.0, likeness: float = 0.0) -> Hit:
    return Hit(keyframe, 1 / keyframe, WordMatch(tier, weight), None, likeness)


def join(index: SearchIndex, *hits: Hit, count: int = 10) -> list[Moment]:
    return list(join_hits(index, hits, parse_query("dog"), (), count))


def test_the_link_leads_to_the_keyframe_and_not_to_where_its_stretch_begins(index: SearchIndex) -> None:
    (moment,) = join(index, hit(3), hit(2))
    assert (moment.start_s, moment.time_s, moment.end_s) == (2.0, 5.0, 6.0)
    assert moment.link == "https://youtu.be/abcdefghijk?t=5"


@pytest.mark.parametrize(
    ("other", "is_one"),
    [
        (hit(3, weight=0.5), True),
        (hit(3, weight=0.49), False),
        (hit(3, tier=0), False),
        (hit(3, tier=2), False),
        (hit(4), False),  # one lies between them
    ],
)
def test_neighbours_that_fit_by_words_as_well_are_one_moment(index: SearchIndex, other: Hit, is_one: bool) -> None:
    moments = join(index, hit(2), other)
    assert [one.keyframes for one in moments] == ([2] if is_one else [1, 1])


@pytest.mark.parametrize(("likeness", "is_one"), [(0.31, True), (0.29, False)])
def test_neighbours_that_look_as_much_like_it_are_one_moment(index: SearchIndex, likeness: float, is_one: bool) -> None:
    moments = join(index, hit(2, tier=0, likeness=0.4), hit(3, likeness=likeness))
    assert len(moments) == (1 if is_one else 2)


def test_so_many_moments_come_and_no_keyframe_is_in_two(index: SearchIndex) -> None:
    assert [one.keyframe_id for one in join(index, hit(1), hit(4), hit(2), count=2)] == ["v:0", "v:3"]
    (moment,) = join(index, hit(2), hit(1), hit(3), count=2)
    assert (moment.keyframes, moment.start_s, moment.end_s) == (3, 0.0, 6.0)


def test_neighbours_that_words_and_pictures_found_apart_are_two_moments(index: SearchIndex) -> None:
    by_words, by_picture = hit(2), Hit(3, 0.3, None, 0.8, 0.4)
    for first, second in ((by_words, by_picture), (by_picture, by_words)):
        found = join(index, first, second)
        assert [(one.keyframe_id, one.keyframes) for one in found] == [(f"v:{first.keyframe - 1}", 1), (f"v:{second.keyframe - 1}", 1)]
        assert [(one.words is None, one.cosine) for one in found] == [(one.words is None, one.cosine) for one in (first, second)]


def test_neighbours_in_two_videos_are_two_moments(tmp_path: Path) -> None:
    with opened(tmp_path / "two") as index:
        add(index, video("a dog", name="one", youtube_id="abcdefghijk"))
        add(index, video("a dog", name="two"), source="b.vip")
        moments = join(index, hit(1), hit(2))
        assert [(one.video, one.source, one.link) for one in moments] == [
            ("one", "a.vip", "https://youtu.be/abcdefghijk?t=1"),
            ("two", "b.vip", None),
        ]


@pytest.mark.parametrize(
    ("query", "fields", "named", "excerpt"),
    [
        ("dog", (), ("caption",), "a \x02dog\x03"),
        ("DOGS a", (), ("caption",), "a \x02dog\x03"),  # another form of it
        ("dog", ("caption",), ("caption",), "a \x02dog\x03"),
        ("dog", ("words", "mood"), (), ""),
        ("cat", (), (), ""),
    ],
)
def test_the_words_of_a_moment_are_those_of_the_fields_that_are_searched(
    query: str, fields: tuple[str, ...], named: tuple[str, ...], excerpt: str, index: SearchIndex
) -> None:
    (moment,) = join_hits(index, [hit(1)], parse_query(query), fields, 1)
    assert moment.words is not None
    assert (moment.words.fields, moment.words.excerpt) == (named, excerpt)
