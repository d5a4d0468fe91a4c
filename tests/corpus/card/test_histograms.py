"""Bars of the data card: their edges in words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.corpus.card.test_notes import card
from vip.corpus.card.counts import DataSetCounts
from vip.corpus.card.histograms import HistogramBin, _clock, _mean, _names, _numbers, _plot, _spans, names, plots
from vip.corpus.card.tables import DataCard
from vip.dataset.statistics import Histogram, KeyframeStatistics, NameCounts, VideoStatistics


@pytest.mark.parametrize(
    ("seconds", "told"), [(0, "0"), (1, "1 s"), (59, "59 s"), (60, "1 min"), (3540, "59 min"), (3600, "1 h"), (36_000, "10 h")]
)
def test_lengths_are_told_in_the_largest_unit_that_they_fill(seconds: float, told: str) -> None:
    assert _clock(seconds) == told


def test_empty_bins_at_the_ends_are_left_out_and_those_between_stay() -> None:
    histogram = Histogram((0.0, 10.0, 20.0, 30.0, 40.0), [0, 2, 0, 3, 0], unknown=4)
    found = _plot("Words", "caption", histogram, ["a", "b", "c", "d", "e"], None)
    assert [(one.label, one.count) for one in found.bins] == [("b", 2), ("c", 0), ("d", 3)]
    assert found.note == "5 captions; 4 more of which it is not known."
    assert _plot("Words", "caption", Histogram((0.0, 10.0)), ["a", "b"], None).bins == ()


def test_bins_are_named_by_the_numbers_in_them() -> None:
    assert _numbers((1.0, 2.0, 3.0, 5.0, 10.0)) == ["1", "2", "3–4", "5–9", "10 and more"]
    assert _spans(["0", "15 s", "1 min"]) == ["0 – 15 s", "15 s – 1 min", "1 min and more"]


def test_names_that_are_too_many_stand_together_in_the_last_row() -> None:
    counted = NameCounts({"de": 3, "en": 4, **{f"x{number:02}": 1 for number in range(30)}}, others=5)
    rows = _names("Languages", ("Language", "Videos"), counted, 84).rows
    assert rows[:3] == (("en", "4", "4.8 %"), ("de", "3", "3.6 %"), ("x00", "1", "1.2 %"))
    assert (len(rows), rows[-1]) == (31, ("others", "7", "8.3 %"))
    assert _names("Languages", ("Language", "Videos"), NameCounts({"en": 1}), 1).rows == (("en", "1", "100.0 %"),)


def test_shares_are_of_the_videos_or_of_the_keyframes_that_are_described() -> None:
    counts = DataSetCounts()
    counts.videos.videos, counts.keyframes.keyframes, counts.keyframes.described = 8, 40, 4
    for name in (counts.videos.subtitles, counts.keyframes.languages, counts.videos.licences, counts.videos.kinds):
        name.add("x")
    status: Any = None
    shares = {table.title: table.rows for table in names(DataCard("films", "out", status, counts, None, None))}
    assert shares == {
        "Languages of subtitles": (("x", "1", "12.5 %"),),
        "Languages of captions": (("x", "1", "25.0 %"),),
        "Licences, as the hosts say": (("x", "1", "12.5 %"),),
        "Sources": (("x", "1", "12.5 %"),),
    }


def test_the_title_says_the_average_where_there_is_one() -> None:
    counted = Histogram((0.0, 10.0, 20.0))
    assert _mean(counted) is None
    for value in (4, 5, 12):
        counted.add(value)
    assert _mean(counted) == "7.0"


def test_each_histogram_has_its_own_unit_and_average_and_an_empty_one_is_left_out() -> None:
    assert plots(card()) == []
    videos, words = VideoStatistics(), KeyframeStatistics()
    for seconds, keyframes, lines in ((100.0, 3, 720), (800.0, 4, 8000), (None, None, 100)):
        videos.lengths_s.add(seconds)
        videos.keyframes.add(keyframes)
        videos.lines.add(lines)
    for tokens, position in ((5, 0.0), (20, 1.0)):
        words.tokens.add(tokens)
        words.positions.add(position)
    found = {plot.title: plot for plot in plots(card(videos=videos, words=words))}
    assert {title: plot.note for title, plot in found.items()} == {
        "Length of the videos": "2 videos, 7.5 min on average; 1 more of which it is not known.",
        "Keyframes a video": "2 videos, 3.5 on average; 1 more of which it is not known.",
        "Tokens a caption": "2 captions, 12.5 on average.",
        "Resolution": "3 videos.",
        "Where keyframes lie in their videos": "2 keyframes.",
    }
    assert {title: (plot.bins[0], plot.bins[-1], plot.between) for title, plot in found.items()} == {
        "Length of the videos": (HistogramBin("1 min – 2 min", "1 min", 1), HistogramBin("10 min – 20 min", "10 min", 1), True),
        "Keyframes a video": (HistogramBin("3", "3", 1), HistogramBin("4", "4", 1), False),
        "Tokens a caption": (HistogramBin("0–9", "0", 1), HistogramBin("20–29", "20", 1), True),
        "Resolution": (HistogramBin("below 240p", "below 240p", 1), HistogramBin("2160p", "2160p", 1), False),
        "Where keyframes lie in their videos": (HistogramBin("0 % – 5 %", "0 %", 1), HistogramBin("95 % – 100 %", "95 %", 1), True),
    }


@pytest.mark.parametrize(("subtitled", "told"), [(1, "1 of 8 videos has"), (3, "3 of 8 videos have")])
def test_the_languages_of_subtitles_are_told_with_how_many_videos_have_some(subtitled: int, told: str) -> None:
    videos = VideoStatistics(videos=8, subtitled=subtitled, subtitles=NameCounts({"en": subtitled}))
    (table,) = names(card(videos=videos))
    assert table.note == f"{told} subtitles, some in several languages."
    assert table.head == ("Language", "Videos", "Share")
