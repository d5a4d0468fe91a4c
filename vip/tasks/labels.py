"""Labels of videos and samples: what tables are split by.

In: a CSV file of people's labels with a column `video` (or `sample`), or predictions of causal-aspect. Out: groups by video and by sample.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from pathlib import Path

from vip.errors import InputError
from vip.files import MOST_BYTES, read_named
from vip.tasks.files import csv_errors, read_predictions

Groups = dict[str, tuple[str, ...]]
ASPECTS = ("physical", "social")
BY_ENGINE = "causal_by"  # the grouping that names the engine where one labelled


@dataclass(frozen=True, slots=True)
class Labels:
    """Groups of videos, and of single samples."""

    of_videos: dict[str, Groups] = field(default_factory=dict)
    of_samples: dict[str, Groups] = field(default_factory=dict)

    def groups(self, sample: str, video: str, own: Groups) -> Groups:
        """Return the groups of a sample: those of its source, of its video, its own; later ones count more."""
        return {**own, **self.of_videos.get(video, {}), **self.of_samples.get(sample, {})}


def read_labels(path: Path | None) -> Labels:
    """Return the labels of a file; none where there is no file.

    Raises:
        InputError: it cannot be read, or has neither column.
    """
    if path is None:
        return Labels()
    if path.suffix == ".jsonl":
        rows = (row for row in read_predictions(path) if isinstance(row.value, int) and 0 <= row.value < len(ASPECTS))
        return Labels(
            of_samples={row.sample_id: {"causal": (ASPECTS[int(str(row.value))],), BY_ENGINE: (row.engine or "unknown",)} for row in rows}
        )
    try:
        text = read_named(path, most_bytes=MOST_BYTES).decode("utf-8-sig")
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror or exc}. Check the path.") from exc
    except UnicodeDecodeError as exc:
        raise InputError(f"{path} is not UTF-8 text (byte {exc.start}). Save it as UTF-8.") from exc
    with csv_errors(path):
        found = csv.DictReader(io.StringIO(text, newline=""), delimiter="\t" if path.suffix == ".tsv" else ",")
        key = next((name for name in ("sample", "video", "video_id") if name in (found.fieldnames or ())), None)
        if key is None:
            raise InputError(
                f"{path} has neither a column video nor a column sample. Its first row names the columns: video,domain,causal."
            )
        groups = {str(row[key]): _groups(row, key) for row in found}
    return Labels(of_samples=groups) if key == "sample" else Labels(of_videos=groups)


def _groups(row: dict[str, str], key: str) -> Groups:
    """Return the columns of a row but the key; semicolons stand between several values."""
    cells = {name: [part.strip() for part in str(cell or "").split(";")] for name, cell in row.items() if name and name != key}
    return {name: kept for name, parts in cells.items() if (kept := tuple(filter(None, parts)))}
