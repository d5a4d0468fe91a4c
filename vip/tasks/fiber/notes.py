"""Where, when and for how long the blanked entity is seen: Figures 10 to 12 of Castro et al. 2022, from notes of a person.

In: a CSV file with `video, second, row, column`, a line for each cell that the entity touches within a second; rows and columns of the grid
are counted from 1 at the top left. Out: shares of videos. A cell, and a second, counts once a video.
"""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from vip.errors import InputError
from vip.files import MOST_BYTES, read_named
from vip.tasks.fiber.tables import PAPER
from vip.tasks.files import csv_errors
from vip.tasks.table import Table, TableCell, number_cell
from vip.untrusted import one_line

GRID = 4
MOST_SECONDS = 24 * 3600  # of a clip; each has a place in the figure
COLUMNS = ("video", "second", "row", "column")


@dataclass(frozen=True, slots=True)
class EntityNotes:
    """Shares of videos."""

    videos: int
    cells: tuple[tuple[float, ...], ...]
    """Of the grid: rows from the top, each from the left."""
    seconds: dict[int, float]
    """A second from the beginning of the clip -> share."""
    durations: dict[int, float]
    """How many seconds it is seen -> share."""


def read_notes(path: Path) -> EntityNotes:
    """Count the notes of a file.

    Raises:
        InputError: it cannot be read, lacks a column, or a line is outside the grid; the message names the line.
    """
    try:
        text = read_named(path, most_bytes=MOST_BYTES).decode("utf-8-sig")
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror or exc}. Check the path.") from exc
    except UnicodeDecodeError as exc:
        raise InputError(f"{path} is not UTF-8 text (byte {exc.start:,}). Save it as UTF-8.") from exc
    cells, seconds = defaultdict[str, set[tuple[int, int]]](set), defaultdict[str, set[int]](set)
    with csv_errors(path):
        rows = csv.DictReader(io.StringIO(text, newline=""))
        if missing := [name for name in COLUMNS if name not in (rows.fieldnames or ())]:
            raise InputError(f"{path} has no column {', '.join(missing)}. Its first row names the columns: {','.join(COLUMNS)}.")
        for row in rows:
            try:
                second, down, across = (int(row[name] or "") for name in COLUMNS[1:])
                if not 0 <= second < MOST_SECONDS or not (1 <= down <= GRID and 1 <= across <= GRID):
                    raise ValueError(f"{down}, {across} is outside the grid of {GRID} by {GRID}, or {second} is no second of a clip")
            except ValueError as exc:
                raise InputError(f"{path}, line {rows.line_num:,}: {one_line(str(exc))[:120]}. Write {','.join(COLUMNS)}.") from exc
            cells[str(row["video"])].add((down, across))
            seconds[str(row["video"])].add(second)
    if not cells:
        raise InputError(f"{path} has no notes. Write a line for each cell that an entity touches: {','.join(COLUMNS)}.")
    return _count(cells, seconds)


def _count(cells: dict[str, set[tuple[int, int]]], seconds: dict[str, set[int]]) -> EntityNotes:
    videos = len(cells)
    touched = Counter(cell for found in cells.values() for cell in found)
    at = Counter(second for found in seconds.values() for second in found)
    lengths = Counter(map(len, seconds.values()))
    return EntityNotes(
        videos=videos,
        cells=tuple(tuple(touched[down, across] / videos for across in range(1, GRID + 1)) for down in range(1, GRID + 1)),
        seconds={second: at[second] / videos for second in range(max(at) + 1)},
        durations={length: lengths[length] / videos for length in sorted(lengths)},
    )


def notes_tables(found: EntityNotes) -> list[Table]:
    """Return the three figures as tables, in % of the videos."""
    where = Table(
        title=f"Where the entity is seen, % of {found.videos:,} videos (Figure 10 of {PAPER})",
        columns=("Row", *(f"column {across}" for across in range(1, GRID + 1))),
        rows=tuple(
            (TableCell(str(down)), *(number_cell(100 * share, digits=1) for share in row)) for down, row in enumerate(found.cells, 1)
        ),
    )
    when = _shares("When it is seen, % (Figure 11", "Second", found.seconds)
    return [where, when, _shares("How long it is seen, % (Figure 12", "Seconds", found.durations)]


def _shares(title: str, name: str, shares: dict[int, float]) -> Table:
    rows = tuple((TableCell(str(value), value), number_cell(100 * share, digits=1)) for value, share in shares.items())
    return Table(title=f"{title} of {PAPER})", columns=(name, "%"), rows=rows)
