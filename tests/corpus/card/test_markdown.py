"""The data card as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from tests.corpus.card.test_notes import card, names
from vip.config import BatchSettings, CaptionSettings, ExtractSettings
from vip.corpus.card.content import Section
from vip.corpus.card.counts import DataSetCounts
from vip.corpus.card.histograms import HistogramBin, HistogramPlot
from vip.corpus.card.markdown import _front_matter, _plot, _section, markdown
from vip.corpus.card.tables import CardTable, DataCard
from vip.corpus.settings import BatchConfig
from vip.dataset.statistics import KeyframeStatistics, VideoStatistics


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


# ---------------------------------------------------------------- the whole of it


def test_the_text_begins_with_what_a_hub_reads_the_name_and_the_facts() -> None:
    whole = markdown(card(out="corpus", failed=1, chosen=8))
    assert whole.endswith("\n")
    assert not whole.endswith("\n\n")
    head, _, body = whole.removeprefix("---\n").partition("\n---\n")
    assert yaml.safe_load(head)["pretty_name"] == "corpus"
    assert body.splitlines()[:16] == [
        *("", "# corpus", "", "Keyframes of 0 videos. Made by vip batch, as described in the VIP paper."),
        *("", "Plots of these figures are in `card.html`.", "", "|  |  |", "|---|---|"),
        *("| Videos | 0 |", "| Length | 0 s |", "| Keyframes | 0 |", "| Described | none |", "| Shards | 0 of nothing, 0 bytes |"),
        *("| Failed | 1 of 8 videos (12.5 %) |", "| Of the list | 0 not chosen, 0 bad rows |"),
    ]


def test_the_command_and_the_tables_of_how_it_was_made_stand_under_titles_of_their_own() -> None:
    settings = BatchConfig(BatchSettings(sample=5), ExtractSettings(), CaptionSettings())
    whole = markdown(card(videos=VideoStatistics(made={"versions.vip": names(**{"1.0": 3})}), settings=settings))
    made = whole.partition("\n## How it was made\n")[2].splitlines()
    assert made[:7] == [
        "",
        "`vip batch` with --sample 5, and the defaults else.",
        "",
        "### Settings of the batch",
        "",
        "|  |  |",
        "|---|---|",
    ]
    assert made[-6:] == ["", "### Versions", "", "|  |  |", "|---|---|", "| vip | 1.0 |"]


TABLE = CardTable("Dogs", ("Name", "Share"), (("a|b", ""), ("own", "")), "A *note*.", is_marked=True)


@pytest.mark.parametrize(
    ("section", "lines"),
    [
        (
            Section("table", "Dogs", tables=(TABLE,)),
            ["", "## Dogs", "", r"A \*note\*.", "", "| Name | Share |", "|---|---|", r"| a\|b |  |", "| **own** |  |"],
        ),
        (
            Section("names", "", tables=(CardTable("Dogs", ("Name",), (("a",),)), CardTable("Cats", ("Name",), (("b",),)))),
            ["", "## Dogs", "", "| Name |", "|---|", "| a |", "", "## Cats", "", "| Name |", "|---|", "| b |"],
        ),
        (
            Section("made", "Pets", tables=(CardTable("Dogs", ("Name",), (("a",),)),)),
            ["", "## Pets", "", "### Dogs", "", "| Name |", "|---|", "| a |"],
        ),
        (Section("list", "Limits", sentences=("One *a*.", "Two.")), ["", "## Limits", "", r"- One \*a\*.", "- Two."]),
        (
            Section("code", "Loading", code=(("datasets", "import a_b"), ("v_ip", "vip export a_b"))),
            ["", "## Loading", "", "datasets:", "", "```python", "import a_b", "```", "", r"v\_ip:", "", "```sh", "vip export a_b", "```"],
        ),
    ],
)
def test_a_section_is_a_title_and_what_it_has_and_code_stays_as_it_is(section: Section, lines: list[str]) -> None:
    assert list(_section(section)) == lines
