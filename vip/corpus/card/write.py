"""The data card, written beside the shards: README.md, which a hub and people read, and card.html with plots.

In: a data set, the state of its batch, and the settings. Out: the two files, whole or not at all. Nothing needs the shards' pictures.
"""

from __future__ import annotations

from pydantic import ValidationError

from vip.corpus.card.charts import histogram, share_bars
from vip.corpus.card.content import sections
from vip.corpus.card.counts import count
from vip.corpus.card.markdown import markdown
from vip.corpus.card.notes import introduction
from vip.corpus.card.tables import DataCard, facts, printable
from vip.corpus.inputs.sampling import Distribution
from vip.corpus.prepare import DISTRIBUTION
from vip.corpus.settings import BatchConfig
from vip.corpus.status import BatchStatus
from vip.dataset import storage
from vip.dataset.sanitize import without_secrets
from vip.errors import StoreError
from vip.html.layout import render_page, resource
from vip.html.parts import Fact

README = "README.md"
PAGE = "card.html"
PACKAGE = "vip.corpus.card"


def write_card(out: str, status: BatchStatus, settings: BatchConfig | None = None) -> None:
    """Write the card of a data set under any address.

    Raises:
        StoreError: the data set cannot be read, or the card not written; a damaged shard is named in the card instead.
        BackendError: a library is missing.
    """
    address = without_secrets(out)
    path = storage.local_path(address)
    name = (path.resolve().name if path else address.rstrip("/").rpartition("/")[2]) or "data set"
    card = DataCard(name, address, status, count(out), _distribution(out), settings)
    for file, content in ((README, markdown(card)), (PAGE, page(card))):
        storage.write_whole(content.encode(), out, file)


def page(card: DataCard) -> str:
    """Return card.html, by the means of the report: it loads nothing from anywhere and needs no script."""
    return render_page(
        PACKAGE,
        "card.html.jinja",
        style=resource("card.css", PACKAGE),
        name=printable(card.name),
        about=introduction(card),
        facts=[Fact(*fact) for fact in facts(card)],
        sections=sections(card),
        histogram=histogram,
        share_bars=share_bars,
    )


def _distribution(out: str) -> Distribution | None:
    """Return the distribution of the batch; None where it has none, or it cannot be read."""
    if DISTRIBUTION not in storage.sizes_in(out):
        return None
    try:
        return Distribution.model_validate_json(storage.read_whole(out, DISTRIBUTION))
    except (StoreError, ValidationError):
        return None
