"""The data card as README.md: Markdown that is also a dataset card of the Hugging Face Hub, whose YAML says how to load the shards.

In: a `Card`. Out: text. What comes from hosts and lists is text and nothing else: no markup of theirs gets through.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator

from vip.config import LANGUAGES
from vip.corpus.card.histograms import HistogramPlot, names, plots
from vip.corpus.card.notes import about, asked, columns, limits, loading, made
from vip.corpus.card.tables import CardTable, DataCard, compared, facts, failures, models, printable, verticals
from vip.dataset.shards import FOLDER, SUFFIXES
from vip.export.hf import SIZES, SIZES_ABOVE

MARKUP = re.compile(r"([\\`*_\[\]|~$@]|:(?=//)|(?<=www)\.)", re.IGNORECASE)
"""What counts in the middle of a line; links without brackets too."""
BAR_LETTERS = 40


def markdown(card: DataCard) -> str:
    """The whole file."""
    parts = [
        *("---", *_head(card), "---"),
        *("", f"# {text(card.name)}", "", text(about(card))),
        *("", "Plots of these figures are in `card.html`.", ""),
        *_table(CardTable("", ("", ""), tuple(facts(card)))),
        *_section(compared(card)),
        *_section(verticals(card)),
        *("", "## Histograms"),
        *(line for plot in plots(card) for line in _plot(plot)),
        *(line for table in names(card) for line in _section(table)),
        *_section(failures(card)),
        *_section(models(card)),
        *("", "## Known limits", "", *(f"- {text(sentence)}" for sentence in limits(card))),
        *("", "## Loading", *(line for library, code in loading(card) for line in _code(library, code))),
        *_section(columns()),
        *_made(card),
    ]
    return "\n".join(parts) + "\n"


def text(value: str) -> str:
    """As Markdown that shows it, in one line."""
    return MARKUP.sub(r"\\\1", html.escape(printable(value), quote=False))


def _head(card: DataCard) -> Iterator[str]:
    """YAML, each value as JSON."""
    codes = {language: code for code, language in reversed(LANGUAGES.items())}
    count = card.counts.keyframes.keyframes
    files = [{"split": "train", "path": f"{FOLDER}/*.{SUFFIXES[name]}"} for name in SUFFIXES if name in card.counts.files]
    head = {
        "pretty_name": printable(card.name),
        "license": "other",
        "language": sorted({codes[language] for language in card.counts.keyframes.languages.counts if language in codes}),
        "task_categories": ["image-to-text", "text-to-image"],
        "size_categories": [next((words for most, words in SIZES if count < most), SIZES_ABOVE)],
        "tags": ["video", "keyframes", *(["captions"] if card.is_described else [])],
        "configs": [{"config_name": "default", "data_files": files[:1]}] if files else [],
    }
    for key, value in head.items():
        if value:
            yield f"{key}: {json.dumps(value)}"


def _section(table: CardTable) -> Iterator[str]:
    """With its title and note; nothing where it is empty."""
    if not table.rows:
        return
    yield from ("", f"## {text(table.title)}", "")
    if table.note:
        yield from (text(table.note), "")
    yield from _table(table)


def _table(table: CardTable) -> Iterator[str]:
    yield f"| {' | '.join(map(text, table.head))} |"
    yield f"|{'---|' * len(table.head)}"
    for number, row in enumerate(table.rows, 1):
        own = table.marked and number == len(table.rows)
        yield f"| {' | '.join(f'**{text(cell)}**' if own and cell else text(cell) for cell in row)} |"


def _plot(plot: HistogramPlot) -> Iterator[str]:
    """Bars of letters; the labels are vip's own."""
    width, most = max(len(one.label) for one in plot.bins), max(one.count for one in plot.bins)
    digits = len(f"{most:,}")
    yield from ("", f"### {text(plot.title)}", "", text(plot.note), "", "```text")
    for one in plot.bins:
        bar = "█" * round(BAR_LETTERS * one.count / most) or ("▏" if one.count else "")
        yield f"{one.label:>{width}}  {one.count:>{digits},}  {bar}".rstrip()
    yield "```"


def _code(library: str, code: str) -> Iterator[str]:
    yield from ("", f"{text(library)}:", "", "```python" if "import " in code else "```sh", code, "```")


def _made(card: DataCard) -> Iterator[str]:
    yield from ("", "## How it was made", "")
    options = asked(card)
    yield "`vip batch` with " + (f"{text(' '.join(options))}, and the defaults else." if options else "the settings below.")
    for table in made(card):
        yield from ("", f"### {text(table.title)}", "", *_table(table))
