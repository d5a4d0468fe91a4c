"""An evaluation in one call: samples, predictions of an engine and of the baselines, scores and their page, in one folder.

    out/infilling-1-famous/samples.jsonl
                           gpt-5.4-mini-1.jsonl, copy-nearest.jsonl, …   predictions
    out/nextqa-mc-vip-8/…, nextqa-mc-even-8/…                            tasks over videos: a folder a frame budget
    out/frames/                                                          their frames, chosen once
    out/*.result.json, scores.html, …                                    scores

The same command goes on where it was stopped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import get_args

from vip import files, store
from vip.captioning.session import is_auto_offline
from vip.config import CaptionSettings, FrameChooser, PredictSettings, SampleSettings
from vip.errors import BackendError, StoreError, UsageError
from vip.protocols import Observer
from vip.tasks.files import write_samples
from vip.tasks.frames import make_samples, unlinked_frames
from vip.tasks.keyframe_baselines import NeedsOtherVideosError
from vip.tasks.predict import check_asking, predict, predict_with_baseline
from vip.tasks.registry import context_in, load_task
from vip.tasks.score import choose_metrics
from vip.tasks.score_files import SAMPLES, ScoreOptions, Scores, score_files
from vip.tasks.score_output import write_scores
from vip.tasks.task import SampleSource, Task, TrainableTask
from vip.wording import option


def evaluate(
    sources: Sequence[str],
    tasks: Sequence[str],
    out: Path,
    *,
    samples: SampleSettings | None = None,
    predictions: PredictSettings | None = None,
    asking: CaptionSettings | None = None,
    frames: Sequence[int] = (),
    train: Path | None = None,
    metrics: Sequence[str] = (),
    overwrite: bool = False,
    observer: Observer,
) -> tuple[Scores, list[Path]]:
    """Evaluate an engine and the baselines of each task; return the scores and the files that hold them.

    Args:
        tasks: names; `infilling-2` is infilling with two keyframes on either side.
        asking: the engine; None, or `auto` without a key: the baselines alone answer.
        frames: how many frames of each video a model sees, one evaluation each; chosen by vip and evenly spaced, unless the settings of
            the samples name one of the two.
        train: training set of a published benchmark, for baselines that count its answers.
        overwrite: replace samples and predictions of other settings.

    Raises:
        UsageError: no task is named; frames are asked for and no task shows any; the folder holds samples of other settings, answers of
            another engine, or a link in the place of its frames.
        InputError, BackendError, EngineError: as of the three steps.
    """
    samples, predictions = samples or SampleSettings(), predictions or PredictSettings()
    loaded = {name: load_task(name) for name in dict.fromkeys(tasks)}
    if not loaded:
        raise UsageError(f"No task is named. Write {option('task', 'infilling,prediction')}; `vip tasks` lists them.")
    if not any(task.info.over_videos for task in loaded.values()):
        for wanted, value in (("frames", frames), ("frames_by", samples.frames_by), ("videos", samples.videos)):
            if value:
                raise UsageError(f"{', '.join(loaded)} shows no frames of videos. Leave {option(wanted)} out.")
    for task in loaded.values():  # before anything is paid for
        choose_metrics(task, metrics, observer.note)
    takes_labels = {name for name, task in loaded.items() if "labels" in task.info.settings}
    if samples.labels is not None and not takes_labels:
        raise UsageError(f"{', '.join(loaded)} takes no labels. Leave {option('labels')} out.")
    if asking is not None and is_auto_offline(asking, os.environ):
        asking = None
        observer.note(f"No engine is set, so the baselines alone answer. Name one with {option('engine')}.")
    if asking is not None:
        check_asking(asking)
    files: list[Path] = []
    for name, task in loaded.items():
        own = samples.model_copy(
            update={"context": context_in(name) or samples.context, "labels": samples.labels if name in takes_labels else None}
        )
        for number, budget in enumerate(_budgets(task, own, frames if asking else frames[:1], out)):
            folder = out / _folder_name(task, budget)
            store.make_folder(out)
            store.make_folder(folder, inside=out)
            _make_samples(task, sources, budget, folder, overwrite=overwrite)
            if number == 0:  # a baseline sees no frames
                files += _ask_baselines(task, folder, train, predictions.seed, observer)
            if asking is not None:
                files.append(folder / f"{_file_name(asking.engine)}-{predictions.variant}{_budget_name(task, budget)}.jsonl")
                predict(folder / SAMPLES, files[-1], settings=predictions, asking=asking, overwrite=overwrite, observer=observer)
    scores = score_files(files, ScoreOptions(metrics=tuple(metrics)), observer=observer)
    return scores, write_scores(scores, out, runs=[Path(one) for one in sources])


def _budgets(task: Task, settings: SampleSettings, frames: Sequence[int], out: Path) -> list[SampleSettings]:
    """Return the settings of the samples for each frame budget; one where the task shows no frames or none are asked for."""
    if not task.info.over_videos:
        return [settings.model_copy(update={"videos": None, "frames": None, "frames_by": None})]
    if "frames_folder" not in settings.model_fields_set:
        settings = settings.model_copy(update={"frames_folder": unlinked_frames(out / "frames")})
    choosers = [settings.frames_by] if settings.frames_by else get_args(FrameChooser)
    pairs = [{"frames": count, "frames_by": by} for count in dict.fromkeys(frames) for by in choosers]
    return [settings.model_copy(update=pair) for pair in pairs] or [settings]


def _budget_name(task: Task, settings: SampleSettings) -> str:
    """Return `-even-8` where frames are chosen, else nothing."""
    if not task.info.over_videos or settings.frames is None:
        return ""
    return f"-{settings.frames_by or 'vip'}-{settings.frames}"


def _folder_name(task: Task, settings: SampleSettings) -> str:
    if task.info.over_videos:
        return f"{task.name}{_budget_name(task, settings)}"
    return f"{task.name}-{settings.context}-{settings.representation}"


def _ask_baselines(task: Task, folder: Path, train: Path | None, seed: int, observer: Observer) -> list[Path]:
    """Write the answers of the baselines of the task and return their files; one that lacks something is left out with a note."""
    files = []
    for name in task.baselines:
        path = folder / f"{_plain(name)}.jsonl"
        own = train if isinstance(task, TrainableTask) else None
        try:
            predict_with_baseline(folder / SAMPLES, path, name, train=own, seed=seed, overwrite=True, observer=observer)
        except (BackendError, NeedsOtherVideosError, UsageError) as exc:
            observer.note(f"Left out the baseline {name}: {exc}")
        else:
            files.append(path)
    return files


def _make_samples(task: Task, sources: Sequence[str], settings: SampleSettings, folder: Path, *, overwrite: bool) -> None:
    """Write the samples, unless the same are there.

    Raises:
        UsageError: others are there.
    """
    path, new = folder / SAMPLES, folder / f"{SAMPLES}.new"
    try:
        write_samples(new, make_samples(task, SampleSource(paths=tuple(sources), settings=settings)))
        if store.exists(path) and not overwrite and not _are_equal(new, path):
            raise UsageError(
                f"{path} holds other samples than these settings make. Add {option('overwrite')}, or name another folder with"
                f" {option('out')}."
            )
        new.replace(path)
    except OSError as exc:
        raise StoreError(f"{path} cannot be used: {exc.strerror}. Remove it, or name another folder with {option('out')}.") from exc
    finally:
        with suppress(OSError):
            files.remove(new)


def _are_equal(new: Path, old: Path) -> bool:
    with files.open_file(new) as one, files.open_file(old) as other:
        if os.fstat(one.fileno()).st_size != os.fstat(other.fileno()).st_size:
            return False
        while block := one.read(2**20):
            if other.read(len(block)) != block:
                return False
    return True


def _file_name(engine: str) -> str:
    """Return the name of a model as that of a file."""
    return _plain(engine.partition(":")[2] or engine).strip("-.") or "engine"


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)
