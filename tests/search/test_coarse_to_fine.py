"""The search through clips: what it spends, where it looks, what it chooses."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest

from vip.search.coarse_to_fine import ClipSearch, Places


def places(count: int, gop: int = 1, step_s: float = 0.5) -> Places:
    """One place each half second; decoding begins at every `gop`th."""
    return Places([step_s * place for place in range(count)], [1 + 12 * (place % gop) for place in range(count)])


def searched(values: Sequence[float], budget: int, gop: int = 1) -> tuple[ClipSearch, list[int]]:
    """A finished search, and the places in the order of the looks."""
    looks: list[int] = []

    def look(some: Sequence[int]) -> Mapping[int, float]:
        looks.extend(some)
        return {place: values[place] for place in some}

    search = ClipSearch(places(len(values), gop), budget)
    search.run(look)
    return search, looks


def film(start: int, end: int, count: int = 4000, seed: int = 0) -> list[float]:
    """Relevance with noise, higher in one stretch."""
    chance = random.Random(seed)
    return [chance.gauss(0.2, 0.02) + (0.08 if start <= place < end else 0.0) for place in range(count)]


@pytest.mark.parametrize("start", [100, 1777, 3940])
@pytest.mark.parametrize("gop", [1, 4])
def test_a_stretch_of_one_percent_is_found_with_a_tenth_of_the_places(start: int, gop: int) -> None:
    search, looks = searched(film(start, start + 40), 400, gop)
    assert search.spent <= 400
    assert len(looks) == len(set(looks)) == len(search.looked)
    chosen = search.best(6)
    assert len([place for place in chosen if start <= place < start + 40]) >= 3
    inside = len([place for place in looks if start <= place < start + 40])
    assert inside >= 2 * len(looks) * 40 / 4000  # at least twice as dense there


def test_first_each_clip_is_looked_at_and_then_those_that_promise_most() -> None:
    values = film(2000, 2100)
    search, looks = searched(values, 500)
    coarse = looks[:300]
    assert max(later - earlier for earlier, later in pairwise(sorted(coarse))) <= 14
    assert search.clips == 150
    fine = looks[300:]
    assert len([place for place in fine if 1990 <= place < 2110]) > 5 * len(fine) * 120 / 4000


def test_looks_cost_what_is_decoded_and_the_first_cost_least() -> None:
    search, looks = searched(film(0, 40), 400, gop=20)
    assert search.spent == sum(search.places.costs[place] for place in looks) <= 400
    assert {search.places.costs[place] for place in looks[:100]} == {1}
    assert any(search.places.costs[place] > 1 for place in looks)


@pytest.mark.parametrize("count", [1, 2, 7, 64])
def test_chosen_frames_are_apart_and_not_all_of_one_clip(count: int) -> None:
    search, _ = searched(film(1000, 1010), 400)
    chosen = search.best(count)
    assert len(chosen) == len(set(chosen)) == count
    assert chosen == sorted(chosen)
    times = [search.places.times_s[place] for place in chosen]
    assert all(later - earlier >= 2 for earlier, later in pairwise(times))
    if count > 1:
        assert len({search.clip_of(place) for place in chosen}) > 1


def test_at_most_half_of_the_frames_are_of_one_clip_where_others_have_more() -> None:
    values = [1.0 + place / 1e6 if 500 <= place < 580 else 0.0 for place in range(1000)]
    search, _ = searched(values, 60)
    inside = [place for place in search.relevance if 500 <= place < 580]
    clips = {search.clip_of(place) for place in inside}
    for count in (4, 5):
        chosen = search.best(count)
        assert len(chosen) == count
        assert all(sum(search.clip_of(place) == clip for place in chosen) <= (count + 1) // 2 for clip in clips)
    assert sum(500 <= place < 580 for place in search.best(4)) >= 2


def test_places_that_show_nothing_are_not_chosen() -> None:
    search = ClipSearch(places(100), 50)
    search.run(lambda some: {place: 1.0 for place in some if place >= 90})
    assert all(place >= 90 for place in search.best(10))
    empty = ClipSearch(places(100), 50)
    empty.run(lambda some: {})
    assert empty.best(10) == []


@pytest.mark.parametrize(("count", "budget"), [(1, 1), (2, 1), (3, 100), (5, 4), (1000, 3)])
def test_short_videos_and_small_budgets_end_too(count: int, budget: int) -> None:
    search, looks = searched([0.1] * count, budget)
    assert 1 <= search.spent <= budget
    assert len(looks) <= count
    assert 1 <= len(search.best(3)) <= 3


def test_the_same_video_and_question_give_the_same_frames() -> None:
    assert searched(film(500, 560), 300)[1] == searched(film(500, 560), 300)[1]


def test_places_have_a_cost_each() -> None:
    with pytest.raises(ValueError, match="expected a cost for each of 2 times, got 1"):
        Places([0.0, 0.5], [1])
