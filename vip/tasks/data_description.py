"""What a task says about a set of its questions: tables, charts and a record, and the page of them.

In: `DataDescription`, which a task makes of published annotations. Out: one HTML file that needs nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from vip.html.charts import Chart
from vip.html.parts import Fact
from vip.tasks.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class DataDescription:
    """Statistics of some sets of questions."""

    title: str
    facts: Sequence[Fact]
    """Figures at the top of the page."""
    tables: Sequence[Table]
    charts: Sequence[Chart]
    records: Sequence[dict[str, Any]]
    """What `--json` prints, one a set."""
    notes: Sequence[str] = ()
    """What is left out, and why."""


@runtime_checkable
class DescribesData(Protocol):
    """A task whose paper describes its questions by figures of their own."""

    def describe_data(self, paths: Sequence[Path]) -> DataDescription:
        """Return the statistics of published annotations, one set a file.

        Raises:
            InputError: a file is damaged.
        """


def write_data_page(description: DataDescription, path: Path) -> None:
    """Write the page.

    Raises:
        StoreError: not writable.
    """
    from vip.html.layout import render_page, resource  # here, since it loads Jinja
    from vip.store import replacing

    style = resource("compare.css", "vip.report") + resource("score.css", "vip.tasks")
    with replacing(path) as file:
        file.write(render_page("vip.tasks", "data.html.jinja", style=style, view=description).encode())
