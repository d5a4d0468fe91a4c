"""The data card as a page, by the means of the report: it loads nothing from anywhere and needs no script.

In: a `DataCard`. Out: the page.
"""

from __future__ import annotations

from vip.corpus.card.charts import histogram, share_bars
from vip.corpus.card.content import sections
from vip.corpus.card.notes import about
from vip.corpus.card.tables import DataCard, facts, printable
from vip.html.layout import render_page, resource
from vip.html.parts import Fact

PACKAGE = "vip.corpus.card"


def page(card: DataCard) -> str:
    """Return the page."""
    return render_page(
        PACKAGE,
        "card.html.jinja",
        style=resource("card.css", PACKAGE),
        name=printable(card.name),
        about=about(card),
        facts=[Fact(*fact) for fact in facts(card)],
        sections=sections(card),
        histogram=histogram,
        share_bars=share_bars,
    )
