"""Tables 2 to 6 of Himakunthala et al. 2023, with one's own rows below the published ones.

In: results of `infilling-n` and `prediction-n`. Out: tables in the paper's shape and rounding. A table without a row of one's own shows the
published ones; the rows of one model come from several files, one for each task and representation.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from statistics import stdev

from vip.html.layout import resource
from vip.metrics.famous import COMPONENTS
from vip.metrics.statistics import correct_holm
from vip.tasks.records import TaskResult
from vip.tasks.score_tables import METRIC_NAMES, metric_name, p_cell
from vip.tasks.table import Table, TableCell, mark_best, number_cell

TASKS_OF_TABLE_3 = ("infilling-1", "infilling-2", "prediction-1", "prediction-2")
TASKS_OF_TABLE_6 = (*TASKS_OF_TABLE_3, "prediction-3")
REPRESENTATIONS = {"famous": "FAMOuS", "dense": "Dense"}
SIGNIFICANCE = 0.05
PAPER = "Himakunthala et al. 2023"

Key = tuple[str, str, str, str]
"""Metric, task, representation, and part: a component, a group, or nothing."""


@dataclass(frozen=True, slots=True)
class ModelRow:
    """The values of one model, × 100."""

    name: str
    values: dict[Key, float]
    is_published: bool = False
    results: tuple[TaskResult, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of numbers: its title and where its values come from."""

    title: str
    task: str
    representation: str
    part: str = ""


def description_tables(results: Sequence[TaskResult]) -> list[Table]:
    """Return Tables 2 to 6; results of other tasks are left out."""
    own = [one for one in results if one.task.rpartition("-")[0] in {"infilling", "prediction"}]
    rows = own_rows(own)
    return [prompt_table(own), main_table(rows), component_table(rows), causal_table(own), domain_table(rows)]


@cache
def published(table: int) -> tuple[ModelRow, ...]:
    """Return the rows that the paper prints."""
    rows: dict[str, dict[Key, float]] = {}
    for row in csv.DictReader(io.StringIO(resource("published/vip.csv", "vip.tasks"))):
        if int(row["table"]) == table:
            key = row["metric"], row["task"], row["representation"], row["part"]
            rows.setdefault(row["model"], {})[key] = float(row["value"])
    return tuple(ModelRow(model, values, is_published=True) for model, values in rows.items())


def own_rows(results: Sequence[TaskResult]) -> list[ModelRow]:
    """Return one row a model, prompt and frame budget, with all of its tasks."""
    names: dict[str, list[TaskResult]] = {}
    for result in results:
        names.setdefault(_row_name(result), []).append(result)
    return [ModelRow(name, dict(_own_values(some)), results=tuple(some)) for name, some in names.items()]


def _own_values(results: Iterable[TaskResult]) -> Iterable[tuple[Key, float]]:
    for result in results:
        representation = str(result.parameters.get("representation"))
        for metric, score in result.metrics.items():
            of_parts = {"": score, **score.parts, **score.groups.get("domain", {})}
            for part, one in of_parts.items():
                if one.value is not None:
                    yield (metric, result.task, representation, part), one.value


def _row_name(result: TaskResult) -> str:
    """Return the model with the frames that it saw, and the prompt where it is not the paper's."""
    variant = prompt_variant(result)
    return f"{_model_name(result)}{f', prompt {variant}' if variant not in (None, '1') else ''}"


def _model_name(result: TaskResult) -> str:
    frames = "frames not stated" if result.budget is None else result.budget.model_copy(update={"chosen": None}).label
    return f"{result.engine or result.name} ({frames})"


def prompt_variant(result: TaskResult) -> str | None:
    """Return the number of the prompt: 2 of `infilling-2@c0ffee`; None where no prompt was used, or several."""
    prompt = result.parameters.get("prompt")
    return prompt.partition("@")[0].rpartition("-")[2] if isinstance(prompt, str) else None


# ---------------------------------------------------------------- Tables 3, 4 and 6


def main_table(own: Sequence[ModelRow]) -> Table:
    """Return Table 3: models by task and representation; the best of each metric and column marked."""
    columns = [_Column(f"{task.capitalize()} {shown}", task, kind) for task in TASKS_OF_TABLE_3 for kind, shown in REPRESENTATIONS.items()]
    title = f"Infilling and prediction of three keyframes (Table 3 of {PAPER})"
    return _by_metric(title, [*published(3), *own], columns)


def component_table(own: Sequence[ModelRow]) -> Table:
    """Return Table 4: Prediction-3, whole and by component."""
    columns = [_Column(shown, "prediction-3", kind) for kind, shown in REPRESENTATIONS.items()]
    columns += [_Column(name.capitalize(), "prediction-3", "famous", name) for name in COMPONENTS]
    return _by_metric(f"Prediction-3 and the components of FAMOuS (Table 4 of {PAPER})", [*published(4), *own], columns)


def _by_metric(title: str, models: Sequence[ModelRow], columns: Sequence[_Column]) -> Table:
    rows: list[list[TableCell]] = []
    for metric in METRIC_NAMES:
        start = len(rows)
        for model in models:
            values = [model.values.get((metric, one.task, one.representation, one.part)) for one in columns]
            if any(value is not None for value in values):
                rows.append([TableCell(metric_name(metric)), TableCell(model.name), *map(number_cell, values)])
        for column in range(2, 2 + len(columns)):
            rows = mark_best(rows, column, range(start, len(rows)))
    notes = [_own_note(models, rows)]
    names = ("Metric", "Model", *(column.title for column in columns))
    return Table(title=title, columns=names, rows=tuple(map(tuple, rows)), notes=tuple(filter(None, notes)), labels=2)


def _own_note(models: Sequence[ModelRow], rows: Sequence[Sequence[TableCell]]) -> str:
    theirs = ", ".join(dict.fromkeys(model.name for model in models if model.is_published))
    shown = {row[1].text for row in rows}
    is_alone = not any(model.name in shown for model in models if not model.is_published)
    return f"{theirs}: as published{', on other videos; no result of yours fills a row' if is_alone else ', on other videos than yours'}."


def domain_table(own: Sequence[ModelRow]) -> Table:
    """Return Table 6: domains, each value the mean over the five tasks, as a fraction; a video may be in several domains."""
    models = [*published(6), *(row for row in own if any(_domains(row)))]
    by_domain: dict[str, dict[tuple[bool, str], ModelRow]] = {}
    for model in models:
        for domain in _domains(model):
            by_domain.setdefault(domain, {})[model.is_published, model.name] = model
    columns = [(metric, kind) for metric in METRIC_NAMES for kind in REPRESENTATIONS]
    rows: list[list[TableCell]] = []
    partial: dict[str, None] = {}
    for domain, some in by_domain.items():
        for model in some.values():
            values = [_domain_value(model, metric, kind, domain) for metric, kind in columns]
            if any(value is not None for value, _ in values):
                rows.append([TableCell(domain), TableCell(model.name), *(number_cell(value, digits=4) for value, _ in values)])
                partial.update(
                    (model.name, None) for _, tasks in values if not model.is_published and tasks not in (0, len(TASKS_OF_TABLE_6))
                )
    for column in range(2, 2 + len(columns)):
        rows = mark_best(rows, column)
    titles = [f"{metric_name(metric)} {REPRESENTATIONS[kind]}" for metric, kind in columns]
    notes = [_own_note(models, rows)] + [f"{name}: not all of {', '.join(TASKS_OF_TABLE_6)} were scored." for name in partial]
    title = f"Domains, mean over the tasks, as fractions (Table 6 of {PAPER})"
    return Table(title=title, columns=("Domain", "Model", *titles), rows=tuple(map(tuple, rows)), notes=tuple(notes), labels=2)


def _domains(model: ModelRow) -> list[str]:
    if model.is_published:
        return [part for _, _, _, part in model.values]
    return [name for result in model.results for score in result.metrics.values() for name in score.groups.get("domain", {})]


def _domain_value(model: ModelRow, metric: str, representation: str, domain: str) -> tuple[float | None, int]:
    """Return the mean over the tasks as a fraction, and the number of tasks in it."""
    if model.is_published:
        return model.values.get((metric, "", representation, domain)), len(TASKS_OF_TABLE_6)
    values = [model.values.get((metric, task, representation, domain)) for task in TASKS_OF_TABLE_6]
    known = [value / 100 for value in values if value is not None]
    return (math.fsum(known) / len(known) if known else None), len(known)


# ---------------------------------------------------------------- Tables 2 and 5


def prompt_table(results: Sequence[TaskResult]) -> Table:
    """Return Table 2: mean and sample standard deviation over the prompts, on Infilling-1 with FAMOuS."""
    rows = [
        [
            TableCell(metric_name(metric)),
            TableCell(f"{model.name}, 3 prompts"),
            _spread_cell(*(model.values[metric, *_INFILLING_1, part] for part in ("mean", "standard deviation"))),
        ]
        for metric in METRIC_NAMES
        for model in published(2)
    ]
    models: dict[str, dict[str, TaskResult]] = {}
    for result in filter(_is_infilling_1, results):
        if (variant := prompt_variant(result)) is not None:
            models.setdefault(_model_name(result), {})[variant] = result
    for model_name, by_prompt in models.items():
        for metric in METRIC_NAMES:
            values = [value for one in by_prompt.values() if metric in one.metrics and (value := one.metrics[metric].value) is not None]
            if len(values) > 1:
                spread = _spread_cell(math.fsum(values) / len(values), stdev(values))
                rows.append([TableCell(metric_name(metric)), TableCell(f"{model_name}, {len(values)} prompts"), spread])
    return Table(
        title=f"Stability over prompts on Infilling-1, FAMOuS (Table 2 of {PAPER})",
        columns=("Metric", "Model", "Mean ± standard deviation"),
        rows=tuple(map(tuple, rows)),
        notes=("Own rows: standard deviation of the sample, with n − 1. The paper does not say which it is.",),
        labels=2,
    )


_INFILLING_1 = ("infilling-1", "famous")


def _is_infilling_1(result: TaskResult) -> bool:
    return (result.task, result.parameters.get("representation")) == _INFILLING_1


def _spread_cell(mean: float, deviation: float) -> TableCell:
    return TableCell(f"{mean:.2f} ± {deviation:.2f}", mean)


def causal_table(results: Sequence[TaskResult]) -> Table:
    """Return Table 5: samples with a physical and with a social cause, on Infilling-1 with FAMOuS; significant differences are marked."""
    rows = [
        [
            TableCell(metric_name(metric)),
            TableCell(model.name),
            *(number_cell(model.values[metric, *_INFILLING_1, part]) for part in ("social", "physical")),
            TableCell("–"),
        ]
        for metric in METRIC_NAMES
        for model in published(5)
    ]
    for result in filter(_is_infilling_1, results):
        rows += _causal_rows(result)
    return Table(
        title=f"Social and physical causes on Infilling-1, FAMOuS (Table 5 of {PAPER})",
        columns=("Metric", "Model", "Social", "Physical", "p, Holm"),
        rows=tuple(map(tuple, rows)),
        notes=(
            "Own rows: Welch's t test on means whose errors are clustered by video; p after Holm over the metrics. Marked: p below 0.05."
            " The paper names no test.",
        ),
        labels=2,
    )


def _causal_rows(result: TaskResult) -> list[list[TableCell]]:
    found = [
        name
        for name in METRIC_NAMES
        if name in result.metrics and {"social", "physical"} <= result.metrics[name].groups.get("causal", {}).keys()
    ]
    contrasts: Mapping[str, float | None] = {
        name: next((one.p_value for one in result.metrics[name].contrasts if one.grouping == "causal"), None) for name in found
    }
    corrected = correct_holm([contrasts[name] for name in found])
    rows = []
    for name, p in zip(found, corrected, strict=True):
        groups = result.metrics[name].groups["causal"]
        is_marked = p is not None and p < SIGNIFICANCE
        cells = [number_cell(groups[part].value) for part in ("social", "physical")]
        cells = [TableCell(cell.text, cell.number, is_best=is_marked) for cell in cells]
        rows.append([TableCell(metric_name(name)), TableCell(_row_name(result)), *cells, p_cell(p)])
    return rows
