"""The data card as a page: plots first, then tables; it loads nothing from anywhere and needs no script.

In: a `Card`. Out: the page in parts. Whatever is not `Html` gets escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

from vip.corpus.card.charts import bars, histogram
from vip.corpus.card.histograms import names, plots
from vip.corpus.card.notes import about, asked, columns, limits, loading, made
from vip.corpus.card.tables import CardTable, DataCard, compared, facts, failures, models, printable, verticals
from vip.html.layout import closing, opening, resource
from vip.html.markup import Html, join, tag


def page(card: DataCard) -> Iterator[Html]:
    """Joined they are the file."""
    style = resource("page.css") + resources.files("vip.corpus.card").joinpath("card.css").read_text(encoding="utf-8")
    yield from opening(f"{printable(card.name)} · data card", style)
    yield _header(card)
    yield _section(compared(card))
    yield bars(verticals(card))
    yield _histograms(card)
    yield tag("section", join(_counted(table) for table in names(card)), class_="grid-of-two")
    yield _section(failures(card), code=True)
    yield _section(models(card))
    yield tag("section", tag("h2", "Known limits"), tag("ul", join(tag("li", text, dir="auto") for text in limits(card)), class_="limits"))
    yield _loading(card)
    yield _section(columns(), code=True)
    yield _made(card)
    yield from closing()


def _header(card: DataCard) -> Html:
    told = join(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts(card))
    title = tag("h1", tag("bdi", printable(card.name)))
    return tag("header", title, tag("p", about(card), class_="about"), tag("dl", told, class_="facts"))


def _section(table: CardTable, *, code: bool = False) -> Html:
    """A table with title and note; nothing where it is empty. `code`: the first column are names of programs."""
    if not table.rows:
        return Html("")
    note = tag("p", table.note, class_="hint") if table.note else ""
    return tag("section", tag("h2", table.title), note, _table(table, code=code))


def _counted(table: CardTable) -> Html:
    return tag("div", tag("h3", table.title), tag("p", table.note, class_="hint") if table.note else "", _table(table, code=False))


def _table(table: CardTable, *, code: bool) -> Html:
    heads = [tag("th", name, scope="col") for name in table.head]
    rows = []
    for number, (first, *rest) in enumerate(table.rows, 1):
        name = tag("code", first) if code else tag("bdi", first)
        cells = [tag("td", tag("bdi", cell)) for cell in rest]
        own = table.marked and number == len(table.rows)
        rows.append(tag("tr", tag("th", name, scope="row"), join(cells), class_="own" if own else None))
    whole = tag("table", tag("thead", tag("tr", join(heads))), tag("tbody", join(rows)), class_="words" if code else None)
    return tag("div", whole, class_="scroll", tabindex=0, role="region", aria_label=table.title)


def _histograms(card: DataCard) -> Html:
    drawn = [histogram(plot) for plot in plots(card)]
    return tag("section", tag("h2", "Histograms"), tag("div", join(drawn), class_="grid-of-two")) if drawn else Html("")


def _loading(card: DataCard) -> Html:
    parts = [tag("div", tag("h3", library), tag("pre", tag("code", code), tabindex=0)) for library, code in loading(card)]
    return tag("section", tag("h2", "Loading"), join(parts), class_="loading")


def _made(card: DataCard) -> Html:
    """Folded, as on the page of a run."""
    options = asked(card)
    given = tag("p", "vip batch with ", tag("code", tag("bdi", " ".join(options))), ", and the defaults else.") if options else ""
    tables = join(tag("section", tag("h3", table.title), _list(table)) for table in made(card))
    return tag("details", tag("summary", tag("h2", "How it was made")), given, tag("div", tables, class_="tables"), class_="made")


def _list(table: CardTable) -> Html:
    rows = (tag("dt", tag("bdi", name)) + tag("dd", tag("bdi", value)) for name, value in table.rows)
    return tag("dl", join(tag("div", Html(row)) for row in rows))
