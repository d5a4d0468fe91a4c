"""The tables of the paper with own rows beside the published ones (Li et al. 2021, tables 3 to 6 and 9 to 13).

In: results of tasks of VALUE, and the published figures as printed. Out: tables. Averages are computed again; where the paper prints
another one, a note names it. Own rows are those of the split that was scored: the answers of the test splits are not public.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from vip.metrics.retrieval import average_recall
from vip.tasks.records import Score, TaskResult
from vip.tasks.table import Table, TableCell, mark_best, number_cell
from vip.tasks.value.datasets import BY_KEY, DATASETS, PREFIX, Category, Dataset
from vip.tasks.value.suite import (
    LEADERBOARD,
    TRANSFERRED,
    PublishedRow,
    human_row,
    own_rows,
    partial_note,
    published_rows,
    suite_tables,
    table_row,
    target_scores,
)
from vip.untrusted import one_line

VAL, TEST = "validation splits", "test splits, whose answers are hidden"
SUMMARY_TABLES: dict[str, tuple[str, str]] = {
    "3": ("input channels", VAL),
    "4": ("video-subtitle fusion", VAL),
    "9": ("visual representations", VAL),
    "11": ("multi-task learning on CLIP-ViT+SlowFast", TEST),
    "12": ("multi-task learning", VAL),
}
"""Tables with a column a task and Meta-Ave, but for table 6: what they compare, and the splits of their rows."""
HUMAN_TABLE = "11"
"""Begins with people, as table 6 does."""
ZERO_SHOT: dict[str, dict[str, float]] = {
    "CLIP, video": {
        "tvr": 0.13,
        "how2r": 0.0,
        "yc2r": 12.61,
        "vatex_en_r": 55.68,
        "tvqa": 27.0,
        "how2qa": 54.54,
        "violin": 52.4,
        "vlep": 55.35,
    },
    "CLIP, video+sub": {
        "tvr": 0.13,
        "how2r": 0.0,
        "yc2r": 22.61,
        "vatex_en_r": 46.78,
        "tvqa": 23.17,
        "how2qa": 44.94,
        "violin": 50.0,
        "vlep": 56.35,
    },
}
"""Table 10."""
TRANSFER: dict[Category, dict[str, dict[str, float]]] = {
    "retrieval": {
        "tvr": {"tvr": 7.72, "how2r": 0.0, "yc2r": 0.35, "vatex_en_r": 2.79},
        "how2r": {"tvr": 0.03, "how2r": 1.91, "yc2r": 10.3, "vatex_en_r": 10.31},
        "yc2r": {"yc2r": 33.91, "vatex_en_r": 1.01},
        "vatex_en_r": {"yc2r": 3.82, "vatex_en_r": 58.99},
    },
    "qa": {
        "tvqa": {"tvqa": 71.08, "how2qa": 36.89, "violin": 50.01, "vlep": 53.23},
        "how2qa": {"tvqa": 21.75, "how2qa": 69.44, "violin": 53.85, "vlep": 55.65},
        "violin": {"tvqa": 20.12, "how2qa": 40.55, "violin": 66.83, "vlep": 44.26},
        "vlep": {"tvqa": 22.16, "how2qa": 26.04, "violin": 50.0, "vlep": 58.79},
    },
    "captioning": {
        "tvc": {"tvc": 48.48, "yc2c": 1.35, "vatex_en_c": 1.72},
        "yc2c": {"tvc": 0.43, "yc2c": 108.46, "vatex_en_c": 0.74},
        "vatex_en_c": {"tvc": 4.25, "yc2c": 7.09, "vatex_en_c": 52.15},
    },
}
"""Table 5: trained on the first, tested on the second; a model without moments cannot find any."""
CATEGORY_TITLES: dict[Category, str] = {"retrieval": "retrieval, AveR", "qa": "questions, accuracy", "captioning": "captions, CIDEr-D"}
DETAILS = "published/value_details.csv"
OF_RETRIEVAL, OF_CAPTIONS = ("r1", "r5", "r10"), ("bleu4", "rouge", "meteor", "cider")
SHOWN = {"r1": "R@1", "r5": "R@5", "r10": "R@10", "bleu4": "B@4", "rouge": "R", "meteor": "M", "cider": "C"}
METRICS = {"bleu4": "bleu-4", "rouge": "rouge-l-coco", "meteor": "meteor", "cider": "cider-d"}
DETAILED = tuple(dataset for dataset in DATASETS if dataset.category != "qa")
MOST_ROUNDING = 0.0101
"""An AveR that is further from that of its recalls is a misprint: four of 96 are."""
ON_CLIP = "AT -> ST on CLIP-ViT+SlowFast"


def value_tables(results: Sequence[TaskResult]) -> list[Table]:
    """Return all tables; nothing without a result of VALUE."""
    if not any(result.task.startswith(PREFIX) for result in results):
        return []
    summaries = {number: _summary_table(number, results) for number in SUMMARY_TABLES}
    return [
        *(summaries[number] for number in ("3", "4")),
        *(_transfer_table(category, results) for category in TRANSFER),
        *suite_tables(results),
        summaries["9"],
        _zero_shot_table(results),
        *(summaries[number] for number in ("11", "12")),
        *(_details_table(split, results) for split in ("val", "test")),
    ]


def _summary_table(number: str, results: Sequence[TaskResult]) -> Table:
    what, split = SUMMARY_TABLES[number]
    published = [row for row in published_rows() if row.table == number]
    own = own_rows(results)
    people = [human_row()] if number == HUMAN_TABLE else []
    rows = people + [table_row(row.label, row.scores) for row in published] + [table_row(name, scores) for name, scores in own]
    for column in range(1, len(BY_KEY) + 2):
        rows = mark_best(rows, column, range(len(people), len(rows)))  # people are no model
    notes = [f"Published rows: {split}, table {number} of Li et al. 2021.", *(row.misprint for row in published if row.is_misprinted)]
    return Table(
        title=f"VALUE, table {number}: {what}",
        columns=("Model", *(dataset.title for dataset in DATASETS), "Meta-Ave"),
        rows=tuple(map(tuple, rows)),
        notes=(*notes, *(partial_note(name, scores) for name, scores in own)),
    )


def _columns_table(title: str, rows: Sequence[tuple[str, Mapping[str, float]]], datasets: Sequence[Dataset], note: str) -> Table:
    cells = [[TableCell(one_line(name)), *(number_cell(scores.get(dataset.key)) for dataset in datasets)] for name, scores in rows]
    for column in range(1, len(datasets) + 1):
        cells = mark_best(cells, column)
    return Table(title=title, columns=("Model", *(dataset.title for dataset in datasets)), rows=tuple(map(tuple, cells)), notes=(note,))


def _zero_shot_table(results: Sequence[TaskResult]) -> Table:
    datasets = [dataset for dataset in DATASETS if dataset.category != "captioning"]
    rows = [*ZERO_SHOT.items(), *own_rows(results)]
    return _columns_table("VALUE, table 10: zero-shot CLIP", rows, datasets, f"Published rows: {VAL}, table 10 of Li et al. 2021.")


def _transfer_table(category: Category, results: Sequence[TaskResult]) -> Table:
    datasets = [dataset for dataset in DATASETS if dataset.category == category]
    own = _own_transfers(results)
    rows: list[tuple[str, Mapping[str, float]]] = []
    for key, scores in TRANSFER[category].items():
        rows.append((f"trained on {BY_KEY[key].title}", scores))
        rows += [(f"trained on {BY_KEY[key].title}: {name}", found) for (name, trained), found in own.items() if trained == key]
    trained_elsewhere = [(name, scores) for name, scores in own_rows(results) if any(dataset.key in scores for dataset in datasets)]
    note = f"Columns: what is tested, {VAL}. Table 5 of Li et al. 2021. Rows without a training set answer with all that they know."
    return _columns_table(f"VALUE, table 5: transfer, {CATEGORY_TITLES[category]}", [*rows, *trained_elsewhere], datasets, note)


def _own_transfers(results: Sequence[TaskResult]) -> dict[tuple[str, str], dict[str, float]]:
    """Return own rows of table 5: (the model, what it was trained on) -> the scores of the tasks that it was tested on.

    A model of the regime st has been trained on the task that it answers without a word of another.
    """
    rows: dict[tuple[str, str], list[TaskResult]] = {}
    for result in results:
        name, sign, trained = (result.engine or "").partition(TRANSFERRED)
        if result.task.startswith(PREFIX) and sign and trained in BY_KEY:
            rows.setdefault((name, trained), []).append(result)
    for (name, trained), group in rows.items():
        group += [one for one in results if one.engine == name and one.task == BY_KEY[trained].name]
    return {key: target_scores(group) for key, group in rows.items()}


# ---------------------------------------------------------------- table 13


@dataclass(frozen=True, slots=True)
class DetailedRow:
    """A row of table 13: the figures that AveR is made of, and all scores of captions."""

    split: str
    block: str
    name: str
    values: dict[tuple[str, str], float]
    """Key of a task and name of a figure -> as printed; what is not printed is not in it."""

    @property
    def label(self) -> str:
        return f"{self.block}: {self.name}" if self.block else self.name

    def average_recall(self, key: str) -> float | None:
        """Return AveR of its recalls, × 100; None where they are not printed."""
        values = [self.values.get((key, name)) for name in OF_RETRIEVAL]
        average = average_recall([None if value is None else value / 100 for value in values])
        return None if average is None else round(100 * average, 2)


@cache
def detailed_rows() -> tuple[DetailedRow, ...]:
    """Return the rows of table 13."""
    text = (files("vip.tasks") / DETAILS).read_text(encoding="utf-8")
    found = []
    for row in csv.DictReader(text.splitlines()):
        values = {(key, name): row[f"{key}_{name}"] for key, name in _details()}
        known = {place: float(value) for place, value in values.items() if value}
        found.append(DetailedRow(row["split"], row["block"], row["row"], known))
    return tuple(found)


def _details() -> Iterator[tuple[str, str]]:
    for dataset in DETAILED:
        for name in OF_RETRIEVAL if dataset.category == "retrieval" else OF_CAPTIONS:
            yield dataset.key, name


@dataclass(frozen=True, slots=True)
class PrintedAverage:
    """An AveR as one table prints it, and that of the recalls of table 13."""

    row: DetailedRow
    summary: PublishedRow
    key: str

    @property
    def printed(self) -> float:
        return self.summary.scores[self.key]

    @property
    def is_misprinted(self) -> bool:
        recalls = [self.row.values[self.key, name] for name in OF_RETRIEVAL]
        return abs(sum(recalls) / len(recalls) - self.printed) > MOST_ROUNDING

    @property
    def note(self) -> str:
        where = f"{self.row.label}, {BY_KEY[self.key].title}"
        return f"{where}: table {self.summary.table} prints {self.printed:.2f}, its recalls give {self.row.average_recall(self.key):.2f}."


def printed_averages() -> list[PrintedAverage]:
    """Return each AveR of tables 6, 11 and 12 whose recalls table 13 prints."""
    retrieval = [dataset.key for dataset in DATASETS if dataset.category == "retrieval"]
    return [
        PrintedAverage(row, summary, key)
        for row in detailed_rows()
        if (summary := _summary_of(row)) is not None
        for key in retrieval
        if row.average_recall(key) is not None
    ]


def _summary_of(row: DetailedRow) -> PublishedRow | None:
    """Return the row of tables 6, 11 or 12 that has the averages of a row of table 13."""
    is_on_clip = row.block.startswith("AT -> ST on")
    if row.split == "val":
        table, block, name = "12", ON_CLIP if is_on_clip else row.block, row.name
    elif is_on_clip:  # its second row is printed as FT+FT, and is that of the pre-trained model
        table, block, name = "11", "Finetune-only" if row.name == "FT-only" else "Pre-train + Finetune", "AT -> ST"
    else:
        table, block, name = LEADERBOARD, row.block, row.name
    for one in published_rows():
        words = one.name.replace("->", " -> ").split()
        if (one.table, one.block) == (table, block) and " ".join(words[1:] if words[0].isdigit() else words) == name:
            return one
    return None


def _details_table(split: str, results: Sequence[TaskResult]) -> Table:
    places = list(_details())
    published = [row for row in detailed_rows() if row.split == split]
    rows = [[TableCell(row.label), *(number_cell(row.values.get(place)) for place in places)] for row in published]
    rows += [[TableCell(one_line(name)), *(number_cell(values.get(place)) for place in places)] for name, values in _own_details(results)]
    for column in range(1, len(places) + 1):
        rows = mark_best(rows, column)
    notes = [f"Published rows: {VAL if split == 'val' else TEST}, table 13 of Li et al. 2021."]
    if split == "val":
        notes.append("Of its captions only the columns of TVC are kept here.")
    notes += [one.note for one in printed_averages() if one.row.split == split and one.is_misprinted]
    return Table(
        title=f"VALUE, table 13: recalls and captions, {'validation' if split == 'val' else 'test'}",
        columns=("Model", *(f"{BY_KEY[key].title} {SHOWN[name]}" for key, name in places)),
        rows=tuple(map(tuple, rows)),
        notes=tuple(notes),
    )


def _own_details(results: Sequence[TaskResult]) -> list[tuple[str, dict[tuple[str, str], float]]]:
    rows: dict[str, dict[tuple[str, str], float]] = {}
    for result in results:
        dataset = BY_KEY.get(result.task.removeprefix(PREFIX).replace("-", "_"))
        if dataset is None or dataset not in DETAILED:
            continue
        found = rows.setdefault(result.engine or "own predictions", {})
        parts: Mapping[str, Score] = result.metrics["aver"].parts if "aver" in result.metrics else {}
        scores = {**{name: parts.get(name) for name in OF_RETRIEVAL}, **{name: result.metrics.get(METRICS[name]) for name in OF_CAPTIONS}}
        found |= {(dataset.key, name): score.value for name, score in scores.items() if score is not None and score.value is not None}
    return [(name, values) for name, values in rows.items() if values]
