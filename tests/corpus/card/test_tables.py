"""Figures of the data card in words: rounded, and unknown is not zero."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.corpus.card.test_notes import card, described, names
from vip.corpus.card.tables import (
    MOST_ROWS,
    _at_least,
    _days,
    _thousands,
    compared,
    facts,
    failures,
    models,
    printable,
    share,
    verticals,
)
from vip.corpus.inputs.sampling import Distribution, VerticalShare
from vip.dataset.items import UNKNOWN_VERTICAL
from vip.dataset.statistics import Histogram, ModelUse, NameCounts, VideoStatistics


@pytest.mark.parametrize(
    ("count", "told"),
    [(0, "0"), (999, "999"), (1000, "1K"), (1540, "1.54K"), (999_499, "999K"), (999_999, "1M"), (1_000_000, "1M"), (2_500_000, "2.5M")],
)
def test_many_are_told_in_thousands_and_millions(count: int, told: str) -> None:
    assert _thousands(count) == told


@pytest.mark.parametrize(
    ("calls", "cached", "unknown", "told"),
    [(4, 0, 0, "7"), (4, 0, 1, "at least 7"), (4, 0, 4, "not known"), (4, 2, 2, "not known"), (4, 2, 1, "at least 7"), (4, 4, 0, "7")],
)
def test_what_is_not_known_of_all_requests_is_not_told_as_a_sum(calls: int, cached: int, unknown: int, told: str) -> None:
    assert _at_least("7", unknown, ModelUse(calls=calls, cached=cached)) == told


def test_one_day_is_told_once() -> None:
    assert _days("2026-01-02T03:00:00+00:00", "2026-01-02T23:00:00+00:00") == "2 January 2026"
    assert _days("2026-01-02T03:00:00+00:00", "2026-03-01T00:00:00+00:00") == "2 January 2026 – 1 March 2026"


def test_a_share_of_nothing_is_a_dash() -> None:
    assert (share(1, 3), share(0, 3), share(0, 0)) == ("33.3 %", "0.0 %", "–")


def test_what_is_not_to_be_shown_is_replaced() -> None:
    assert printable("a\n b\x00c\u202e") == "a b\N{REPLACEMENT CHARACTER}c\N{REPLACEMENT CHARACTER}"


# ---------------------------------------------------------------- at the top


def lengths(*seconds: float) -> Histogram:
    found = Histogram((0.0,))
    for one in seconds:
        found.add(one)
    return found


def use(calls: int, **more: Any) -> ModelUse:
    return ModelUse(calls=calls, first_utc="2026-01-02T03:00:00+00:00", last_utc="2026-01-02T23:00:00+00:00", **more)


def test_an_empty_data_set_has_only_the_facts_that_each_has() -> None:
    assert facts(card(chosen=0)) == [
        ("Videos", "0"),
        ("Length", "0 s"),
        ("Keyframes", "0"),
        ("Described", "none"),
        ("Shards", "0 of nothing, 0 bytes"),
        ("Failed", "0 of 0 videos (–)"),
        ("Of the list", "0 not chosen, 0 bad rows"),
    ]


def test_a_fact_has_the_figures_of_the_data_set_and_what_failed_those_of_the_batch() -> None:
    videos = VideoStatistics(
        videos=2345, lengths_s=lengths(3600.0, 9000.0), first_utc="2026-01-02T03:00:00+00:00", last_utc="2026-03-01T00:00:00+00:00"
    )
    words = described(3000, tokens=lengths(5, 20))
    words.keyframes = 4000
    counts = {"shards": 1200, "bytes": 12_345, "files": {"parquet": "00000.parquet", "webdataset": "00000.tar"}}
    told: dict[str, Any] = {"chosen": 8000, "failed": 2000, "not_chosen": 1234, "bad_rows": 1, "usd": 0.02, "tokens": 7000}
    assert facts(card(videos=videos, words=words, counts=counts, **told)) == [
        ("Videos", "2,345"),
        ("Length", "3.5 h"),
        ("Keyframes", "4,000"),
        ("Described", "3,000 (75.0 %)"),
        ("Shards", "1,200 of parquet and webdataset, 12.3 kB"),
        ("Failed", "2,000 of 8,000 videos (25.0 %)"),
        ("Of the list", "1,234 not chosen, 1 bad row"),
        ("Captions", "12.5 tokens on average"),
        ("Spent", "$0.0200, 7,000 tokens"),
        ("Made", "2 January 2026 – 1 March 2026"),
    ]


@pytest.mark.parametrize("told", [{"usd": 0.02}, {"tokens": 7}])
def test_what_was_spent_is_told_as_soon_as_there_is_something(told: dict[str, Any]) -> None:
    assert "Spent" in dict(facts(card(**told)))


# ---------------------------------------------------------------- tables


def test_each_row_of_table_1_of_the_paper_has_a_value_in_each_column() -> None:
    table = compared(card())
    assert [row[0] for row in table.rows] == [
        *("MSR-VTT", "YouCook2", "ActyNet-Cap", "HowTo100M", "VATEX", "VideoStory", "WebVid-2M", "VIP", "corpus")
    ]
    assert {len(row) for row in table.rows} == {len(table.head)}
    assert table.is_marked


@pytest.mark.parametrize(
    ("counted", "domain"),
    [
        ({}, "not known"),
        ({UNKNOWN_VERTICAL: 9}, "not known"),
        ({"Sports": 1, UNKNOWN_VERTICAL: 9}, "Sports"),
        ({"News": 1, "Sports": 2}, "Sports and News"),
        ({"News": 1, "Sports": 2, "Arts": 3, UNKNOWN_VERTICAL: 9}, "3 verticals"),
    ],
)
def test_the_domain_of_a_data_set_is_its_verticals_or_their_number(counted: dict[str, int], domain: str) -> None:
    own = compared(card(videos=VideoStatistics(verticals=NameCounts(counted)))).rows[-1]
    assert own == ("corpus", "yes", "no", domain, "–", "–", "0")


@pytest.mark.parametrize(
    ("seconds", "told"), [(12.34, "12.3 s"), (59.9, "59.9 s"), (60.0, "1 min"), (218.0, "3.63 min"), (7200.0, "120 min")]
)
def test_the_average_video_is_told_as_in_the_paper(seconds: float, told: str) -> None:
    videos = VideoStatistics(videos=1500, lengths_s=lengths(seconds - 10, seconds + 10))
    own = compared(card(videos=videos, words=described(tokens=lengths(114, 114.4)))).rows[-1]
    assert own[2:] == ("yes", "not known", told, "114.2", "1.5K")


def test_shares_of_verticals_are_told_where_there_are_several_to_share() -> None:
    shares = tuple(
        VerticalShare(vertical=name, videos=50, chosen=5, asked_share=asked, chosen_share=chosen)
        for name, asked, chosen in (("Sports", 0.75, 0.6), ("News", 0.25, 0.4))
    )
    own = card(videos=VideoStatistics(videos=4, verticals=names(Sports=3, Arts=1)))

    def of(*some: VerticalShare) -> tuple[tuple[str, ...], ...]:
        return verticals(replace(own, distribution=Distribution(videos=100, chosen=10, shares=some))).rows

    assert of(*shares) == (("Sports", "75.0 %", "60.0 %", "75.0 %"), ("News", "25.0 %", "40.0 %", "0.0 %"))
    assert of(shares[0]) == ()
    assert verticals(own).rows == ()


def test_a_failure_has_its_share_of_videos_and_bad_rows_its_meaning_and_whether_it_is_tried_again() -> None:
    found = failures(card(chosen=3000, bad_rows=1000, failures={"network": 2000, "rate_limit": 1, "deleted": 400, "of a later vip": 40}))
    assert found.rows == (
        ("network", "2,000", "50.0 %", "the connection failed; tried again later"),
        ("rate_limit", "1", "0.0 %", "the host asked for fewer requests; tried again, after waiting with its whole host"),
        ("deleted", "400", "10.0 %", "deleted by its owner or its host; not tried again"),
        ("of a later vip", "40", "1.0 %", "something else; not tried again"),
    )
    assert found.note.endswith("Shares are of 4,000 videos and bad rows.")


def test_models_are_told_with_what_their_descriptions_took_the_busiest_first() -> None:
    used = {
        "small": use(2, tokens_in=1000, tokens_out=200, usd=0.002),
        "large": use(2000, cached=500, tokens_in=9_000_000, tokens_out=1_000_000, usd=12.5),
        "free": use(3, unpriced=3, uncounted=1, tokens_in=700, tokens_out=70),
    }
    found = models(card(words=described(1000, models=used)))
    assert found.rows == (
        ("large", "2,000", "500", "9,000,000", "1,000,000", "$12.50", "2 January 2026"),
        ("free", "3", "0", "at least 700", "at least 70", "not known", "2 January 2026"),
        ("small", "2", "0", "1,000", "200", "$0.0020", "2 January 2026"),
    )
    assert found.note == "A keyframe's description on average: dollars at least $0.0125, tokens at least 10,002."


def test_what_failed_requests_took_is_told_beside_the_cost_of_a_description() -> None:
    words = described(4, models={"gpt": use(4, tokens_in=900, tokens_out=100, usd=0.02)})
    assert models(card(words=words, usd=0.03, tokens=1500)).note == (
        "A keyframe's description on average: dollars $0.0050, tokens 250."
        " In all $0.0300 and 1,500 tokens were spent, on failed requests too."
    )
    assert models(card(usd=0.03, tokens=1500)).note == "", "nothing is described"


def test_no_more_models_are_listed_than_there_is_room_for() -> None:
    used = {f"m{number:03d}": use(number) for number in range(1, MOST_ROWS + 6)}
    assert [row[0] for row in models(card(words=described(models=used))).rows] == [
        f"m{number:03d}" for number in range(MOST_ROWS + 5, 5, -1)
    ]
