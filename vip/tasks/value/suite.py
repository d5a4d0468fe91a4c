"""VALUE as a whole: averages over categories and over the eleven tasks, and the table of the paper with own rows (Li et al. 2021, table 6).

A task that was not scored is missing, never 0: an average without it is partial, and is marked so wherever it is printed.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from vip.errors import InputError
from vip.tasks.files import file_inside, unlinked_file
from vip.tasks.records import TaskResult
from vip.tasks.table import Table, TableCell, mark_best, number_cell
from vip.tasks.value.datasets import BY_KEY, CATEGORIES, DATASETS, PREFIX, Category, Dataset
from vip.untrusted import one_line

SUITE = "value"
PARTIAL = "partial"
TRANSFERRED = " trained on "
"""Stands in the name of a model that answers a task of another training set, before the key of the task that it was trained on."""
PUBLISHED = "published/value.csv"
LEADERBOARD = "6"
"""The table whose rows stand beside own ones: models on the test splits."""
HUMAN = {"tvqa": 89.41, "how2qa": 90.32, "violin": 91.39, "vlep": 90.5, "tvc": 62.89, "vatex_en_c": 62.66}
"""People on the test splits, tables 6 and 11 (appendix C)."""
HUMAN_NOTE = (
    "Human: one annotator (TVQA, How2QA), the majority of three (VIOLIN, VLEP), one caption against the others (TVC, VATEX-EN-C);"
    " YC2C has one caption a clip."
)
_OTHER_FILES = re.compile(r"_(?:public|private)|.*predictions")
"""What follows the name of a split in files that are no annotations of it: `violin_test_private_…` beside `violin_test_release`."""
MOST_ROUNDING = 0.0115
"""A printed average that is further from that of its printed figures is a misprint: three of 52 are."""


@dataclass(frozen=True, slots=True)
class Average:
    """The mean of the target metrics of some tasks, × 100."""

    value: float | None
    """None where none of them was scored."""
    missing: tuple[str, ...] = ()
    """Tasks that were not scored."""

    @property
    def is_partial(self) -> bool:
        return bool(self.missing)

    @property
    def rounded(self) -> float | None:
        """The value with the same digits on every machine."""
        return None if self.value is None else round(self.value, 6)

    @property
    def text(self) -> str:
        """The value with two digits, and that it is partial."""
        if self.value is None:
            return "–"
        return f"{self.value:.2f} ({PARTIAL})" if self.is_partial else f"{self.value:.2f}"


def meta_average(scores: Mapping[str, float]) -> Average:
    """Return Meta-Ave: the plain mean of the scores of all eleven tasks, by their keys."""
    return _average(scores, DATASETS)


def category_averages(scores: Mapping[str, float]) -> dict[Category, Average]:
    """Return the plain mean of each category."""
    categories = dict.fromkeys(CATEGORIES.values())
    return {category: _average(scores, [one for one in DATASETS if one.category == category]) for category in categories}


def _average(scores: Mapping[str, float], datasets: Sequence[Dataset]) -> Average:
    known = [scores[dataset.key] for dataset in datasets if dataset.key in scores]
    missing = tuple(dataset.name for dataset in datasets if dataset.key not in scores)
    return Average(sum(known) / len(known) if known else None, missing)


def target_scores(results: Sequence[TaskResult]) -> dict[str, float]:
    """Return the target metric of each task of VALUE that was scored, × 100, with two digits as published.

    Raises:
        InputError: a task was scored twice.
    """
    scores: dict[str, float] = {}
    for result in results:
        dataset = BY_KEY.get(result.task.removeprefix(PREFIX).replace("-", "_"))
        if dataset is None or not result.task.startswith(PREFIX):
            continue
        if dataset.key in scores:
            raise InputError(f"There are two results of {dataset.name}. Average over one of each task.")
        score = result.metrics.get(dataset.target)
        if score is not None and score.value is not None:
            scores[dataset.key] = round(score.value, 2)
    return scores


def suite_tables(results: Sequence[TaskResult]) -> list[Table]:
    """Return table 6 of the paper with own rows, one for each engine or file of predictions; nothing without a result of VALUE."""
    own = own_rows(results)
    if not own:
        return []
    published = [(row.label, row.scores) for row in published_rows() if row.table == LEADERBOARD]
    cells = [human_row(), *(table_row(name, scores) for name, scores in [*published, *own])]
    for column in range(1, len(BY_KEY) + 2):
        cells = mark_best(cells, column, range(1, len(cells)))  # people are no model
    columns = ("Model", *(dataset.title for dataset in DATASETS), "Meta-Ave")
    notes = ["Retrieval: AveR; questions: accuracy; captions: CIDEr-D. Published rows: test, table 6 of Li et al. 2021."]
    notes += [HUMAN_NOTE]
    notes += [row.misprint for row in published_rows() if row.table == LEADERBOARD and row.is_misprinted]
    notes += [partial_note(name, scores) for name, scores in own]
    return [Table(title="VALUE", columns=columns, rows=tuple(map(tuple, cells)), notes=tuple(notes))]


def own_rows(results: Sequence[TaskResult]) -> list[tuple[str, dict[str, float]]]:
    """Return the target scores of each engine, or of files that do not say whose they are; nothing without a result of VALUE.

    What a model says to a task that it was not trained on belongs to table 5 alone.
    """
    rows: dict[str, list[TaskResult]] = {}
    for result in results:
        if result.task.startswith(PREFIX) and TRANSFERRED not in (result.engine or ""):
            rows.setdefault(result.engine or "own predictions", []).append(result)
    return [(name, target_scores(group)) for name, group in rows.items()]


def partial_note(name: str, scores: Mapping[str, float]) -> str:
    """Return the averages of the categories in words, and what is missing."""
    average = meta_average(scores)
    parts = ", ".join(f"{category} {one.text}" for category, one in category_averages(scores).items())
    missing = f"; {PARTIAL}, without {', '.join(average.missing)}" if average.is_partial else ""
    return f"{one_line(name)}: {parts}{missing}."


def human_row() -> list[TableCell]:
    """Return what people reach; the paper prints no average of them."""
    return [TableCell("Human"), *(number_cell(HUMAN.get(dataset.key)) for dataset in DATASETS), number_cell(None)]


def table_row(name: str, scores: Mapping[str, float]) -> list[TableCell]:
    """Return a row with a column a task and Meta-Ave; a partial average is marked."""
    average = meta_average(scores)
    number = None if average.is_partial else average.value  # a partial average is not held against others
    return [TableCell(one_line(name)), *(number_cell(scores.get(dataset.key)) for dataset in DATASETS), TableCell(average.text, number)]


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A row of a table of the paper, with the figures as printed."""

    table: str
    block: str
    name: str
    scores: dict[str, float]
    meta_average: float

    @property
    def label(self) -> str:
        return f"{self.block}: {self.name}" if self.block else self.name

    @property
    def misprint(self) -> str:
        """The note on a misprint."""
        value = meta_average(self.scores).value
        return f"{self.label}: the paper prints {self.meta_average:.2f}, which its figures do not give ({value:.2f})."

    @property
    def is_misprinted(self) -> bool:
        """Whether the printed average is not that of the printed figures."""
        value = meta_average(self.scores).value
        return value is None or abs(value - self.meta_average) > MOST_ROUNDING


def published_rows() -> list[PublishedRow]:
    """Return the rows with all eleven scores of tables 3, 4, 6, 9, 11 and 12."""
    text = (files("vip.tasks") / PUBLISHED).read_text(encoding="utf-8")
    return [
        PublishedRow(row["table"], row["block"], row["row"], {key: float(row[key]) for key in BY_KEY}, float(row["meta_average"]))
        for row in csv.DictReader(text.splitlines())
    ]


@dataclass(frozen=True, slots=True)
class SuiteFile:
    """The predictions of one task, and what they are scored against."""

    task: str
    predictions: Path
    annotations: Path
    video_index: Path | None
    split: str


def suite_files(folder: Path, annotations: Path, split: str | None = None) -> list[SuiteFile]:
    """Return the files of each task that a submission answers.

    Args:
        annotations: a folder with the published annotations of all tasks, side by side or in a folder a task.
        split: `val` (the default) or `test`; each task names its split in its own way.

    Raises:
        InputError: the submission answers no task, has wrong names, or the annotations of a task are missing.
    """
    if split not in (None, "val", "test"):
        raise InputError(f'A submission has the splits val and test, not "{one_line(split)}".')
    found = []
    for dataset in DATASETS:
        name = dataset.split_name(split or "val")
        if (path := find_submission(folder, dataset, name)) is not None:
            found.append(SuiteFile(dataset.name, path, *find_annotations(annotations, dataset, name), name))
    if not found:
        raise InputError(f"{folder} has no predictions of this split, such as {DATASETS[0].submission_name(DATASETS[0].validation.name)}.")
    return found


def has_annotations(folder: Path, dataset: Dataset, split: str) -> bool:
    """Return whether the annotations of a task are there."""
    return bool(_annotations(folder, dataset, split))


def find_annotations(folder: Path, dataset: Dataset, split: str) -> tuple[Path, Path | None]:
    """Return the annotations of a task, and for retrieval the index of its videos.

    Raises:
        InputError: they are missing, or a link leads out of the folder.
    """
    names = _annotations(folder, dataset, split)
    if not names:
        start = f"{dataset.key}_{split}"
        raise InputError(f"{folder} has no annotations of {dataset.name} ({start}….jsonl). Give the folder with the published annotations.")
    index = names[0].with_name(f"{dataset.key}_video2dur_idx.json")
    has_index = dataset.category == "retrieval" and index.is_file()
    return file_inside(names[0], folder), file_inside(index, folder) if has_index else None


def _annotations(folder: Path, dataset: Dataset, split: str) -> list[Path]:
    """Return the annotations in the folder of the task, else those in the folder itself."""
    start = f"{dataset.key}_{split}"
    for place in (folder / dataset.key, folder):
        names = sorted(one for one in place.glob(f"{start}*.json*") if not _OTHER_FILES.match(one.name.removeprefix(start)))
        if names:
            return names
    return []


def find_submission(folder: Path, dataset: Dataset, split: str) -> Path | None:
    """Return the predictions of one task in a folder as VALUE's server takes it; None where there are none.

    Raises:
        InputError: the folder has another folder around its tasks, or a file has another name or is a link.
    """
    path = folder / dataset.submission_name(split)
    if path.is_file():
        unlinked_file(path.parent)
        return unlinked_file(path)
    inside = folder / dataset.key
    if inside.is_dir():
        others = sorted(one.name for one in inside.iterdir())
        if others and not any(f"_{name}_predictions" in other for other in others for name in dataset.splits):
            raise InputError(f"{inside} holds {one_line(others[0])[:80]}. Name the predictions {path.name}.")
        return None
    if not any((folder / key).is_dir() for key in BY_KEY):
        for outer in sorted(one for one in folder.iterdir() if one.is_dir()) if folder.is_dir() else ():
            if any((outer / key).is_dir() for key in BY_KEY):
                raise InputError(f"{folder} has the folder {one_line(outer.name)[:80]} around its tasks. Give that folder.")
        raise InputError(f"{folder} holds no folder of a task, such as {dataset.submission_name(split)}. Check the path.")
    return None
