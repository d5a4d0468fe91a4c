"""The two tasks of NExT-QA scored by one command: each file of predictions finds its task, and its questions, by its form."""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vip.errors import InputError
from vip.tasks.files import read_predictions, unlinked_file
from vip.tasks.nextqa.files import OPTIONS, Kind, is_choices, open_published
from vip.tasks.pairs import is_ours
from vip.wording import option

SUITE = "nextqa"
TABLES = {".csv", ".gz"}
MOST_HEADER_LETTERS = 20_000


@dataclass(frozen=True, slots=True)
class NextqaFile:
    """Predictions with their task and their questions."""

    predictions: Path
    task: Kind
    annotations: tuple[Path, ...]


def nextqa_files(paths: Sequence[Path], annotations: Sequence[Path]) -> list[NextqaFile]:
    """Return the files of predictions with their tasks.

    Args:
        paths: results as published, files of `vip predict`, or folders of them.
        annotations: csv files of questions with options, or open-ended, or both.

    Raises:
        InputError: a file is no result, or the questions of its task are missing.
    """
    by_task: dict[Kind, list[Path]] = {}
    for path in annotations:
        by_task.setdefault("nextqa-mc" if has_options(path) else "nextqa-oe", []).append(path)
    found = []
    for path in [inside for given in paths for inside in _files_in(given)]:
        task = task_of(path)
        if task not in by_task:
            raise InputError(
                f"{path} answers {task}, and no annotations have such questions. Add them: {option('annotations', 'val.csv')}."
            )
        found.append(NextqaFile(path, task, tuple(by_task[task])))
    return found


def _files_in(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    found = [unlinked_file(one) for one in sorted(path.iterdir()) if one.suffix in {".json", ".jsonl"}]
    inside = [one for one in found if one.suffix == ".json" or is_ours(one)]
    if not inside:
        raise InputError(f"{path} holds no result of NExT-QA: no .json and no predictions of vip. Name the files.")
    yield from inside


def has_options(path: Path) -> bool:
    """Return whether a csv of questions has options, by its first line.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with open_published(path) as binary, io.TextIOWrapper(binary, encoding="utf-8-sig") as file:
            return OPTIONS[0] in next(csv.reader([file.readline(MOST_HEADER_LETTERS)]), [])
    except (OSError, EOFError, ValueError, csv.Error, zlib.error) as exc:
        raise InputError(f"{path} cannot be read ({exc}). Give the val.csv or test.csv of NExT-QA.") from exc


def task_of(path: Path) -> Kind:
    """Return the task of a file of predictions: numbers answer questions with options, words open-ended ones.

    Raises:
        InputError: it cannot be read, or holds neither.
    """
    if path.suffix in TABLES:
        return "nextqa-oe"
    if not is_ours(path):
        return "nextqa-mc" if is_choices(path) else "nextqa-oe"
    for prediction in read_predictions(path):
        if prediction.value is not None:
            return "nextqa-mc" if isinstance(prediction.value, int) else "nextqa-oe"
    raise InputError(f"{path} has no answer at all, so that its task is not known. Score it alone, with {option('task', 'NAME')}.")
