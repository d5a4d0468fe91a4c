"""The data card as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from vip.corpus.card.counts import DataSetCounts
from vip.corpus.card.histograms import HistogramBin, HistogramPlot
from vip.corpus.card.markdown import _front_matter, _plot
from vip.corpus.card.tables import DataCard
from vip.dataset.statistics import KeyframeStatistics


def test_a_histogram_has_bars_of_40_letters_at_most_and_a_trace_of_what_is_there() -> None:
    bins = (
        HistogramBin("0–9", "0", 1200),
        HistogramBin("10–19", "10", 1),
        HistogramBin("20–29", "20", 0),
        HistogramBin("30 and more", "30", 600),
    )
    assert list(_plot(HistogramPlot("Words", "All of them.", bins, between=True))) == [
        *("", "### Words", "", "All of them.", "", "```text"),
        f"        0–9  1,200  {'█' * 40}",
        "      10–19      1  ▏",
        "      20–29      0",
        f"30 and more    600  {'█' * 20}",
        "```",
    ]


def front_matter(
    name: str = "films", *, files: Sequence[str] = (), keyframes: int = 5, described: int = 0, languages: Sequence[str] = ()
) -> Any:
    counts = DataSetCounts(files={kind: f"00000.{kind}" for kind in files})
    counts.keyframes = KeyframeStatistics(keyframes=keyframes, described=described)
    for language in languages:
        counts.keyframes.languages.add(language)
    status: Any = None
    return yaml.safe_load("\n".join(_front_matter(DataCard(name, "out", status, counts, None, None))))


@pytest.mark.parametrize(
    ("files", "loaded"),
    [([], None), (["parquet"], "shards/*.parquet"), (["webdataset"], "shards/*.tar"), (["webdataset", "parquet"], "shards/*.parquet")],
)
def test_a_hub_loads_the_shards_of_one_format(files: list[str], loaded: str | None) -> None:
    configs = front_matter(files=files).get("configs")
    wanted = [{"config_name": "default", "data_files": [{"split": "train", "path": loaded}]}]
    assert configs == (wanted if loaded else None)


@pytest.mark.parametrize(
    ("keyframes", "size"), [(0, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (9_999_999, "1M<n<10M"), (10_000_000, "10M<n<100M")]
)
def test_a_hub_is_told_how_many_keyframes_there_are(keyframes: int, size: str) -> None:
    assert front_matter(keyframes=keyframes)["size_categories"] == [size]


@pytest.mark.parametrize(
    ("languages", "codes"), [((), None), (("English",), ["en"]), (("German", "English", "Klingon"), ["de", "en"]), (("Klingon",), None)]
)
def test_a_hub_is_told_the_languages_that_have_a_code(languages: tuple[str, ...], codes: list[str] | None) -> None:
    found = front_matter(described=1, languages=languages)
    assert found.get("language") == codes
    assert found["tags"] == ["video", "keyframes", "captions"]
    assert front_matter()["tags"] == ["video", "keyframes"]


@pytest.mark.parametrize("name", ["a: b", '"', "---\nlicense: mit", "#", "größe"])
def test_no_name_changes_what_a_hub_is_told(name: str) -> None:
    found = front_matter(name)
    assert (found["pretty_name"], found["license"]) == (" ".join(name.split()), "other")
    assert found.keys() == front_matter().keys()
