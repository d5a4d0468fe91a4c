"""Small files in the published forms."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vip.config import SampleSettings
from vip.tasks.records import Sample
from vip.tasks.task import SampleSource, Task

MC_COLUMNS = ("video", "frame_count", "width", "height", "question", "answer", "qid", "type", "a0", "a1", "a2", "a3", "a4")
OE_COLUMNS = MC_COLUMNS[:8]
MC_ROWS = (
    ("v1", 100, 640, 480, "why did the dog run", 1, 0, "CW", "to sleep", "to get the ball", "hungry", "to the cat", "walk"),
    ("v1", 100, 640, 480, "what did the dog do after", 4, 1, "TN", "sit", "sit down", "run", "walk to the man", "eat"),
    ("v2", 50, 640, 480, "what did the man do before", 0, 0, "TP", "eat", "sit", "run away now", "walk", "sleep"),
    ("v2", 50, 640, 480, "where is this", 2, 3, "DL", "park", "sea", "house", "street", "room"),
)
OE_ROWS = (
    ("v1", 100, 640, 480, "why did the dog run", "dog", 0, "CW"),
    ("v1", 100, 640, 480, "what did the dog do after", "cat", 1, "TN"),
    ("v2", 50, 640, 480, "is it a dog", "dog", 0, "DB"),
)


def write_csv(path: Path, rows: Sequence[Sequence[Any]], columns: Sequence[str] = MC_COLUMNS) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def write_json(path: Path, value: Mapping[str, Any]) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def read(task: Task, *paths: Path, **settings: Any) -> list[Sample]:
    return list(task.samples(SampleSource(paths=tuple(map(str, paths)), settings=SampleSettings(**settings))))
