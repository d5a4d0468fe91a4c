"""README.md and card.html say the same: both draw the sections of the card."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from tests.corpus.card.test_write import write
from tests.report.pages import read
from vip.config import BatchSettings, CaptionSettings, ExtractSettings
from vip.corpus.card.write import PAGE, README
from vip.corpus.settings import BatchConfig

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
