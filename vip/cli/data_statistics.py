"""`vip score --data FILE --task NAME`: statistics of annotations, without predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vip.cli.console import Console, print_json

if TYPE_CHECKING:
    from vip.tasks.data_description import DataDescription
    from vip.tasks.table import Table

PAGE = "data.html"


def describe_data(task: str | None, data: list[str]) -> DataDescription | None:
    """Return the statistics of published annotations; None where the task, or no task, says nothing about its questions."""
    from vip.tasks.data_description import DescribesData
    from vip.tasks.registry import load_task

    loaded: object = load_task(task) if task is not None and data else None
    return loaded.describe_data([Path(name) for name in data]) if isinstance(loaded, DescribesData) else None


def data_tables(data: list[str], description: DataDescription | None, samples: int | None) -> list[Table]:
    """Return the tables of a data set: those of its task, else Table 1 and Figure 2 of VIP.

    Args:
        samples: that were scored; None where none were.
    """
    if description is not None or not data:
        return list(description.tables) if description else []
    from vip.tasks.data_set import data_set_tables, measure_data_set

    name = Path(data[0].rstrip("/")).name if len(data) == 1 else f"{len(data)} sources"
    return data_set_tables(measure_data_set(data), name=name, samples=samples)


def print_data(description: DataDescription, console: Console) -> None:
    """Print what was left out; with --json the records, one a line."""
    for note in description.notes:
        console.note(note)
    if console.as_json:
        for record in description.records:
            print_json(record)


def write_page(description: DataDescription, out: Path, *, in_folder: bool) -> Path:
    """Write the page of the statistics and return its path.

    Args:
        in_folder: whether `out` is the folder of other results.
    """
    from vip import store
    from vip.tasks.data_description import write_data_page

    path = out
    if in_folder or out.suffix not in {".html", ".htm"}:
        store.make_folder(out)
        path = out / PAGE
    write_data_page(description, path)
    return path
