"""Weights, samples and shares: section 3 of the paper."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpus.lists import item
from vip.corpus.inputs.sampling import VERTICALS, Distribution, SamplingTally, Weights, load_weights, sampling_key
from vip.dataset.items import UNKNOWN_VERTICAL, ListItem
from vip.errors import UsageError

SHIPPED = load_weights()
KINDS = ("Sports", "News", "Finance", "Games")
THREE_TO_ONE = Weights(verticals={"sports": 3.0, "news": 1.0, "finance": 0.0, "games": 0.5})


def population(size: int = 4000) -> list[ListItem]:
    return [item(f"v{number}", verticals=[KINDS[number % 4]]) for number in range(size)]


def sample(items: Sequence[ListItem], weights: Weights, number: int, seed: int = 0) -> set[str]:
    drawn = sorted(((sampling_key(one, weights, seed).draw, one.key) for one in items), reverse=True)
    return {key for luck, key in drawn[:number] if luck > -math.inf}


def weights_file(folder: Path, text: str) -> Path:
    path = folder / "weights.toml"
    path.write_text(text, encoding="utf-8")
    return path


# ---------------------------------------------------------------- weights


def test_the_weights_that_ship_take_slide_shows_and_weather_seldom_and_sports_always() -> None:
    assert SHIPPED.of(item("a", labels=["Slide show"], verticals=["Jobs & Education", "Reference"])) < 0.05
    assert SHIPPED.of(item("a", labels=["Weather"], verticals=["News"])) < 0.05
    assert SHIPPED.of(item("a", labels=["Basketball"], verticals=["Sports"])) == SHIPPED.largest == 1


def test_the_weights_that_ship_lose_no_video_of_which_nothing_is_known() -> None:
    assert all(sampling_key(item(f"v{number}"), SHIPPED, seed=0).is_kept for number in range(1000))


def test_a_video_in_several_verticals_has_the_mean_of_their_weights() -> None:
    assert THREE_TO_ONE.of(item("a", verticals=["Sports", "News"])) == 2
    assert THREE_TO_ONE.of(item("a", verticals=["News", "Sports"])) == 2
    assert THREE_TO_ONE.of(item("a", verticals=["Sports", "Travel"])) == 2  # the default is 1


def test_the_smallest_weight_of_the_named_topics_is_multiplied_in() -> None:
    weights = Weights(verticals={"sports": 2.0}, topics={"slide show": 0.1, "goal": 3.0})
    assert weights.of(item("a", labels=["Football", "Slide show"], verticals=["Sports"])) == pytest.approx(0.2)
    assert weights.of(item("a", labels=["Goal", "Slide show"], verticals=["Sports"])) == pytest.approx(0.2)
    assert weights.of(item("a", labels=["Goal", "Football"], verticals=["Sports"])) == 6
    assert weights.of(item("a", labels=["Football"], verticals=["Sports"])) == 2
    assert Weights(topics={"slide show": 0.0}).of(item("a", labels=["Slide show"])) == 0


def test_the_largest_weight_is_that_of_a_video_with_no_topic_that_is_named_where_all_of_these_are_smaller() -> None:
    weights = Weights(topics={"slide show": 0.1})
    assert weights.largest == 1
    slides = [sampling_key(item(f"v{number}", labels=["Slide show"]), weights, seed=0).is_kept for number in range(1000)]
    assert 50 < sum(slides) < 150


@pytest.mark.parametrize(
    ("weights", "largest"),
    [
        ({}, 1),
        ({"topics": {"goal": 4.0, "slide show": 0.1}}, 4),
        ({"topics": {"goal": 4.0}, "verticals": {"sports": 2.0}}, 8),
        ({"topics": {"goal": 0.5}, "default_topic": 0.25}, 0.5),
        ({"verticals": {"sports": 0.5}, "default_vertical": 0.25}, 0.5),
        ({"verticals": {"sports": 0.5}}, 1),
    ],
)
def test_the_largest_weight_is_the_largest_that_any_video_can_have(weights: dict[str, Any], largest: float) -> None:
    found = Weights(**weights)
    assert found.largest == largest
    some = [item("a", labels=labels, verticals=[vertical]) for labels in ([], ["Goal"], ["Slide show"]) for vertical in ("Sports", "News")]
    assert max(map(found.of, some)) == largest
    plain = [sampling_key(item(f"v{number}", verticals=["News"]), found, seed=0).is_kept for number in range(500)]
    assert sum(plain) == pytest.approx(500 * found.of(item("v", verticals=["News"])) / largest, abs=45)


def test_a_default_of_0_takes_only_what_is_named(tmp_path: Path) -> None:
    weights = load_weights(weights_file(tmp_path, "[verticals]\ndefault = 0\nSports = 1\n"))
    assert weights.of(item("a", verticals=["Games"])) == weights.of(item("b")) == 0
    assert weights.of(item("a", verticals=["sports"])) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[verticals]\n"Sport" = 1', r'\[verticals\] has an unknown key "Sport"\. Did you mean "Sports"'),
        ('[verticals]\n"News" = -1', r"\[verticals\] news = -1: "),
        ('[verticals]\n"News" = 1001', r"\[verticals\] news = 1001: "),
        ('[verticals]\n"News" = "1"', r"\[verticals\] news = '1': write a number"),
        ('[verticals]\n"News" = true', "write a number"),
        ('[verticals]\n"News" = nan', "news = nan"),
        ("[verticals]\ndefault = inf", r"\[verticals\] default = inf: "),
        ("[topics]\ndefault = 0", "all weights are 0"),
        ("[topic]\nDance = 1", r'unknown entry "topic"\. Did you mean "topics"'),
        ("verticals = 1", r"write \[verticals\] on a line of its own"),
        ("[verticals", "is not valid TOML"),
    ],
)
def test_what_makes_no_sense_in_a_file_is_named_with_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    path = weights_file(tmp_path, text)
    with pytest.raises(UsageError, match=message) as caught:
        load_weights(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_missing_or_no_file_is_told_in_a_sentence(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    for name in ("none", "pipe"):
        with pytest.raises(UsageError, match="cannot be read"):
            load_weights(tmp_path / f"{name}.toml")


# ---------------------------------------------------------------- sampling keys


@given(st.permutations(range(30)), st.integers(0, 30), st.integers(-5, 5))
def test_a_sample_does_not_depend_on_the_order_of_the_list(order: list[int], number: int, seed: int) -> None:
    items = population(30)
    assert sample([items[place] for place in order], THREE_TO_ONE, number, seed) == sample(items, THREE_TO_ONE, number, seed)


@given(st.integers(0, 99), st.integers(-5, 5))
def test_a_sample_is_part_of_the_next_larger_one(number: int, seed: int) -> None:
    items = population(100)
    smaller, larger = (sample(items, THREE_TO_ONE, size, seed) for size in (number, number + 1))
    assert smaller <= larger


@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=20), st.integers())
def test_every_draw_of_a_video_with_weight_is_a_number_below_0(weights: list[float], seed: int) -> None:
    for place, weight in enumerate(weights):
        luck = sampling_key(item(f"v{place}"), Weights(default_vertical=weight), seed).draw
        assert -math.inf < luck < 0


def test_more_than_there_is_takes_all_that_have_weight() -> None:
    items = population(40)
    assert sample(items, THREE_TO_ONE, 1000) == {one.key for one in items if one.verticals != ("Finance",)}


def test_another_seed_takes_other_videos() -> None:
    items = population(400)
    assert sample(items, THREE_TO_ONE, 100, seed=0) != sample(items, THREE_TO_ONE, 100, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_small_sample_has_the_shares_of_the_weights(seed: int) -> None:
    items = population(40_000)
    taken = sample(items, THREE_TO_ONE, 900, seed)
    counts = Counter(one.verticals[0] for one in items if one.key in taken)
    expected = {"Sports": 600, "News": 200, "Games": 100}
    chi_square = sum((counts[name] - number) ** 2 / number for name, number in expected.items())
    assert sum(counts.values()) == 900
    assert chi_square < 13.8  # two degrees of freedom, p = 0.001


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_without_a_number_videos_stay_with_their_weight_over_the_largest(seed: int) -> None:
    counts = Counter(one.verticals[0] for one in population(40_000) if sampling_key(one, THREE_TO_ONE, seed).is_kept)
    assert counts["Sports"] == 10_000
    assert counts["Finance"] == 0
    for name, share in (("News", 1 / 3), ("Games", 1 / 6)):
        assert abs(counts[name] - 10_000 * share) < 4 * math.sqrt(10_000 * share * (1 - share))


def test_a_larger_weight_never_loses_a_video_that_a_smaller_kept() -> None:
    for number in range(500):
        one = item(f"v{number}", verticals=["News"])
        kept = [sampling_key(one, Weights(verticals={"news": weight}), 0).is_kept for weight in (0.1, 0.3, 0.6, 0.9)]
        assert kept == sorted(kept)


# ---------------------------------------------------------------- what came of it


def test_a_video_in_several_verticals_counts_in_each() -> None:
    tally = SamplingTally(Weights(verticals={"sports": 3.0}))
    both, news, nothing = item("a", verticals=["Sports", "News"]), item("b", verticals=["News"]), item("c")
    for one in (both, news, nothing):
        tally.add(one)
    tally.add(both, 0, 1)
    found = tally.distribution()
    assert (found.videos, found.chosen) == (3, 1)
    assert {share.vertical: (share.videos, share.chosen) for share in found.shares} == {
        "News": (2, 1),
        "Sports": (1, 1),
        UNKNOWN_VERTICAL: (1, 0),
    }
    assert {share.vertical: share.asked_share for share in found.shares} == pytest.approx(
        {"News": 0.5, "Sports": 1 / 3, UNKNOWN_VERTICAL: 1 / 6}
    )
    assert {share.vertical: share.chosen_share for share in found.shares} == {"News": 0.5, "Sports": 0.5, UNKNOWN_VERTICAL: 0}


def test_what_is_chosen_comes_near_to_what_was_asked() -> None:
    tally = SamplingTally(THREE_TO_ONE)
    mixed = [item(f"v{number}", verticals=[KINDS[number % 4], KINDS[number % 3]]) for number in range(20_000)]
    for one in mixed:
        tally.add(one, 1, sampling_key(one, THREE_TO_ONE, 0).is_kept)
    for share in tally.distribution().shares:
        assert share.chosen_share == pytest.approx(share.asked_share, abs=0.015)


def test_a_distribution_goes_to_the_disk_and_into_lines() -> None:
    tally = SamplingTally(THREE_TO_ONE)
    for one in population(8):
        tally.add(one)
    tally.add(population(1)[0], 0, 1)
    found = tally.distribution()
    assert Distribution.model_validate_json(found.model_dump_json()) == found
    assert found.lines()[0] == "Sports   asked  66.7 %  chosen 100.0 %  1 of 2"
    assert [line.split()[0] for line in found.lines()] == ["Sports", "News", "Games", "Finance"]


def test_a_distribution_of_nothing_has_no_lines() -> None:
    nothing = SamplingTally(SHIPPED).distribution()
    assert nothing == Distribution(videos=0, chosen=0, shares=())
    assert nothing.lines() == []


def test_all_25_verticals_have_a_weight_that_ships() -> None:
    assert len(VERTICALS) == 25
    assert all(0 < SHIPPED.of(item("a", verticals=[name])) <= 1 for name in VERTICALS)


def test_the_sampling_key_of_a_video_is_the_same_in_every_release() -> None:
    first, second = sampling_key(item("dQw4w9WgXcQ"), SHIPPED, 0), sampling_key(item("dQw4w9WgXcQ"), SHIPPED, 1)
    assert (first.draw, second.draw) == (pytest.approx(-1.686939069511), pytest.approx(-0.924309721116))


def test_verticals_of_one_share_stand_in_the_order_of_their_names() -> None:
    tally = SamplingTally(Weights())
    for name in ("Travel", "Games", "News"):
        tally.add(item(name, verticals=[name]))
    assert [share.vertical for share in tally.distribution().shares] == ["Games", "News", "Travel"]
