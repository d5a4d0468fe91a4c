"""Small files of VALUE, as its authors publish them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from vip.config import SampleSettings
from vip.tasks.records import Prediction, Sample
from vip.tasks.task import SampleSource
from vip.tasks.value.task import ValueTask

VIDEOS = {"park": 7, "street": 8}


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_json(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_index(folder: Path) -> Path:
    """Write video2dur_idx.json of two videos."""
    return write_json(folder / "video2dur_idx.json", {"val": {name: [60, number] for name, number in VIDEOS.items()}})


def query(number: int, video: str = "park", **more: object) -> dict[str, Any]:
    return {"desc_id": number, "desc": "a dog runs", "vid_name": video, "duration": 60, "ts": [10.0, 20.0], **more}


def read(key: str, annotations: Path, index: Path | None = None) -> tuple[ValueTask, list[Sample]]:
    """Return a task and the samples of a file."""
    task = ValueTask(key)
    source = SampleSource(paths=(str(annotations),), settings=SampleSettings(), video_index=index)
    return task, list(task.samples(source))


def score(task: ValueTask, samples: Sequence[Sample], predictions: Iterable[Prediction]) -> dict[str, float | None]:
    """Return the values of all metrics that need nothing, × 100."""
    by_id = {prediction.sample_id: prediction for prediction in predictions}
    pairs = [(sample, by_id[sample.id]) for sample in samples]
    values = {metric.name: metric.score(pairs).value for metric in task.metrics if not metric.needs}
    return {name: None if value is None else round(100 * value, 4) for name, value in values.items()}
