"""Content of a data card, in order: the one source of README.md and card.html, which only draw it.

In: a `DataCard`. Out: its sections. Texts of hosts and lists among them are as they came; README.md and card.html escape them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from vip.corpus.card.histograms import HistogramPlot, names, plots
from vip.corpus.card.notes import columns, limits, loading, options_given, provenance_tables
from vip.corpus.card.tables import CardTable, DataCard, compared, failures, models, verticals

Kind = Literal["table", "programs", "bars", "histograms", "names", "list", "code", "made"]


@dataclass(frozen=True, slots=True)
class Command:
    """A sentence about how a command was called; the options come from lists."""

    program: str
    joint: str
    options: str
    end: str


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the card; `kind` says which of its contents it has, and how it is drawn."""

    kind: Kind
    title: str
    tables: tuple[CardTable, ...] = ()
    plots: tuple[HistogramPlot, ...] = ()
    sentences: tuple[str, ...] = ()
    code: tuple[tuple[str, str], ...] = ()
    """Library and code."""
    command: Command | None = None


def sections(card: DataCard) -> list[Section]:
    """Return the sections that have something to show."""
    return [section for section in _all(card) if section.tables or section.plots or section.sentences or section.code]


def _all(card: DataCard) -> Iterator[Section]:
    yield _table("table", compared(card))
    yield _table("bars", verticals(card))
    yield Section("histograms", "Histograms", plots=tuple(plots(card)))
    yield Section("names", "", tables=tuple(names(card)))
    yield _table("programs", failures(card))
    yield _table("table", models(card))
    yield Section("list", "Known limits", sentences=tuple(limits(card)))
    yield Section("code", "Loading", code=tuple(loading(card)))
    yield _table("programs", columns())
    yield Section("made", "How it was made", tables=tuple(provenance_tables(card)), command=_command(card))


def _table(kind: Kind, table: CardTable) -> Section:
    return Section(kind, table.title, tables=(table,) if table.rows else ())


def _command(card: DataCard) -> Command:
    options = " ".join(options_given(card))
    return (
        Command("vip batch", " with ", options, ", and the defaults else.")
        if options
        else Command("vip batch", " with ", "", "the settings below.")
    )
