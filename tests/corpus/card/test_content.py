"""README.md and card.html say the same: both draw the sections of the card."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.corpus.card.test_notes import card, described, names
from tests.corpus.card.test_write import SHARES, write
from tests.report.pages import read
from vip.config import BatchSettings, CaptionSettings, ExtractSettings
from vip.corpus.card.content import sections
from vip.corpus.card.notes import limits, loading
from vip.corpus.card.write import PAGE, README
from vip.corpus.inputs.sampling import Distribution
from vip.corpus.settings import BatchConfig
from vip.dataset.statistics import ModelUse, VideoStatistics

ONLY_IN_TEXT = {"Plots of these figures are in card.html."}


def words(markdown: str) -> list[str]:
    """The lines of README.md that a person reads, without marks of Markdown."""
    body = re.sub(r"```.*?```", "", markdown.partition("\n---\n")[2], flags=re.DOTALL)
    cells = (
        cell for line in body.splitlines() for cell in (re.split(r"(?<!\\)\|", line) if line.startswith("|") else [line.lstrip("#- ")])
    )
    plain = (html.unescape(re.sub(r"\\(.)", r"\1", re.sub(r"(?<!\\)(\*\*|`)", "", cell))).strip() for cell in cells)
    return [cell for cell in plain if cell and set(cell) != {"-"}]


@pytest.mark.slow
def test_everything_that_the_text_says_stands_on_the_page_in_the_same_order_of_sections(tmp_path: Path) -> None:
    settings = BatchConfig(BatchSettings(caption=True, sample=5), ExtractSettings(keyframes=8), CaptionSettings(engine="openai:gpt"))
    for name, chosen in (("given", settings), ("unknown", None)):
        write(str(tmp_path / name), choices=chosen)
        page = read(tmp_path / name / PAGE)
        said = "".join(data for _, data in page.texts)
        text = (tmp_path / name / README).read_text()
        assert [one for one in words(text) if one.removesuffix(":") not in said and one not in ONLY_IN_TEXT] == []
        titles = [line[3:] for line in text.splitlines() if line.startswith("## ")]
        found = [
            "".join(data for path, data in page.texts if path and path[-1] in ("h2", "h3") and data == title)[: len(title)]
            for title in titles
        ]
        assert found == titles


def test_a_card_has_the_sections_that_have_something_to_show() -> None:
    assert [section.title for section in sections(card())] == ["Beside other data sets", "Known limits", "Loading", "Columns"]
    videos = VideoStatistics(videos=1, kinds=names(youtube=1), made={"device.device": names(cpu=1)})
    videos.lengths_s.add(100.0)
    words = described(models={"gpt": ModelUse(1, first_utc="2026-01-02T03:00:00+00:00", last_utc="2026-01-02T03:00:00+00:00")})
    full = replace(
        card(videos=videos, words=words, failures={"deleted": 1}), distribution=Distribution(videos=100, chosen=5, shares=SHARES)
    )
    found = sections(full)
    assert [(section.kind, section.title) for section in found] == [
        ("table", "Beside other data sets"),
        ("bars", "Verticals"),
        ("histograms", "Histograms"),
        ("names", ""),
        ("programs", "Failures"),
        ("table", "Models that described"),
        ("list", "Known limits"),
        ("code", "Loading"),
        ("programs", "Columns"),
        ("made", "How it was made"),
    ]
    by_title = {section.title: section for section in found}
    assert list(by_title["Known limits"].sentences) == limits(full)
    assert list(by_title["Loading"].code) == loading(full)
    assert [plot.title for plot in by_title["Histograms"].plots] == ["Length of the videos"]


def test_the_command_is_told_with_its_options_or_its_settings() -> None:
    videos = VideoStatistics(made={"device.device": names(cpu=1)})

    def told(settings: BatchConfig | None) -> str:
        command = sections(card(videos=videos, settings=settings))[-1].command
        assert command is not None
        return f"{command.program}{command.joint}{command.options}{command.end}"

    assert told(None) == told(BatchConfig()) == "vip batch with the settings below."
    settings = BatchConfig(BatchSettings(sample=5), ExtractSettings(keyframes=8), CaptionSettings())
    assert told(settings) == "vip batch with --sample 5 --keyframes 8, and the defaults else."
