"""An evaluation in one call: samples, predictions of an engine and of the baselines, scores and their page, in one folder.

    out/infilling-1-famous/samples.jsonl
                           gpt-5.4-mini.jsonl, copy-nearest.jsonl, …     predictions
    out/*.result.json, index.html, …                                     scores

The same command goes on where it was stopped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from vip import store
from vip.captioning.session import is_auto_offline
from vip.config import CaptionSettings, PredictSettings, SampleSettings
from vip.errors import UsageError
from vip.protocols import Observer
from vip.tasks.files import file_sha256, write_samples
from vip.tasks.predict import predict, predict_with_baseline
from vip.tasks.registry import context_in, load_task
from vip.tasks.score_files import SAMPLES, ScoreOptions, Scores, score_files
from vip.tasks.score_output import write_scores
from vip.tasks.task import SampleSource, Task
from vip.wording import option


def evaluate(
    sources: Sequence[str],
    tasks: Sequence[str],
    out: Path,
    *,
    samples: SampleSettings | None = None,
    predictions: PredictSettings | None = None,
    asking: CaptionSettings | None = None,
    metrics: Sequence[str] = (),
    overwrite: bool = False,
    observer: Observer,
) -> tuple[Scores, list[Path]]:
    """Evaluate an engine and the baselines of each task; return the scores and the files that hold them.

    Args:
        tasks: names; `infilling-2` is infilling with two keyframes on either side.
        asking: the engine; None, or `auto` without a key: the baselines alone answer.
        overwrite: replace samples and predictions of other settings.

    Raises:
        UsageError: the folder holds samples of other settings, or answers of another engine.
        InputError, BackendError, EngineError: as of the three steps.
    """
    samples, predictions = samples or SampleSettings(), predictions or PredictSettings()
    if asking is not None and is_auto_offline(asking, os.environ):
        asking = None
        observer.note(f"No engine is set, so the baselines alone answer. Name one with {option('engine')}.")
    files: list[Path] = []
    for name in dict.fromkeys(tasks):
        task = load_task(name)
        own = samples.model_copy(update={"context": context_in(name) or samples.context})
        folder = out / f"{task.name}-{own.context}-{own.representation}"
        _make_samples(task, sources, own, folder, overwrite=overwrite)
        for baseline in task.baselines:
            path = folder / f"{baseline}.jsonl"
            files.append(
                predict_with_baseline(folder / SAMPLES, path, baseline, seed=predictions.seed, overwrite=True, observer=observer).path
            )
        if asking is not None:
            path = folder / f"{_file_name(asking.engine)}-{predictions.variant}.jsonl"
            predict(folder / SAMPLES, path, settings=predictions, asking=asking, overwrite=overwrite, observer=observer)
            files.append(path)
    scores = score_files(files, ScoreOptions(metrics=tuple(metrics)), observer=observer)
    return scores, write_scores(scores, out)


def _make_samples(task: Task, sources: Sequence[str], settings: SampleSettings, folder: Path, *, overwrite: bool) -> None:
    """Write the samples, unless the same are there.

    Raises:
        UsageError: others are there.
    """
    store.make_folder(folder)
    path, new = folder / SAMPLES, folder / f"{SAMPLES}.new"
    try:
        write_samples(new, task.samples(SampleSource(paths=tuple(sources), settings=settings)), most=settings.most, seed=settings.seed)
        if store.exists(path) and not overwrite and file_sha256(new) != file_sha256(path):
            raise UsageError(
                f"{path} holds other samples than these settings make. Add {option('overwrite')}, or name another folder with"
                f" {option('out')}."
            )
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _file_name(engine: str) -> str:
    """Return the name of a model as that of a file."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", engine.partition(":")[2] or engine).strip("-.") or "engine"
