"""The data card as README.md: Markdown that is also a dataset card of the Hugging Face Hub, whose YAML says how to load the shards.

In: a `DataCard`. Out: text. What comes from hosts and lists is text and nothing else: no markup of theirs gets through.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from vip.config import LANGUAGES
from vip.corpus.card.content import Command, Section, sections
from vip.corpus.card.histograms import HistogramPlot
from vip.corpus.card.notes import introduction
from vip.corpus.card.tables import CardTable, DataCard, facts, printable
from vip.dataset.shard_names import FOLDER
from vip.dataset.shards import SUFFIXES
from vip.export.hf import SIZES, SIZES_ABOVE
from vip.export.markdown import escape_markdown

BAR_LETTERS = 40


def markdown(card: DataCard) -> str:
    """Return the whole file."""
    parts = [
        *("---", *_front_matter(card), "---"),
        *("", f"# {text(card.name)}", "", text(introduction(card))),
        *("", "Plots of these figures are in `card.html`.", ""),
        *_table(CardTable("", ("", ""), tuple(facts(card)))),
        *(line for section in sections(card) for line in _section(section)),
    ]
    return "\n".join(parts) + "\n"


def text(value: str) -> str:
    """Return Markdown that shows the text, in one line."""
    return escape_markdown(printable(value))


def _front_matter(card: DataCard) -> Iterator[str]:
    """Yield YAML, each value as JSON."""
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


def _section(section: Section) -> Iterator[str]:
    if section.title:
        yield from ("", f"## {text(section.title)}")
    if section.sentences:
        yield from ("", *(f"- {text(sentence)}" for sentence in section.sentences))
    if section.command:
        yield from ("", _command(section.command))
    for plot in section.plots:
        yield from _plot(plot)
    for library, code in section.code:
        yield from ("", f"{text(library)}:", "", "```python" if "import " in code else "```sh", code, "```")
    for table in section.tables:
        if table.title != section.title:
            yield from ("", f"{'##' if section.kind == 'names' else '###'} {text(table.title)}")
        yield from ("", text(table.note)) if table.note else ()
        yield from ("", *_table(table))


def _command(command: Command) -> str:
    return f"`{command.program}`{command.joint}{text(command.options)}{command.end}"


def _table(table: CardTable) -> Iterator[str]:
    yield f"| {' | '.join(map(text, table.head))} |"
    yield f"|{'---|' * len(table.head)}"
    for number, row in enumerate(table.rows, 1):
        own = table.is_marked and number == len(table.rows)
        yield f"| {' | '.join(f'**{text(cell)}**' if own and cell else text(cell) for cell in row)} |"


def _plot(plot: HistogramPlot) -> Iterator[str]:
    """Yield bars of letters; the labels are vip's own."""
    width, most = max(len(one.label) for one in plot.bins), max(one.count for one in plot.bins)
    digits = len(f"{most:,}")
    yield from ("", f"### {text(plot.title)}", "", text(plot.note), "", "```text")
    for one in plot.bins:
        bar = "█" * round(BAR_LETTERS * one.count / most) or ("▏" if one.count else "")
        yield f"{one.label:>{width}}  {one.count:>{digits},}  {bar}".rstrip()
    yield "```"
