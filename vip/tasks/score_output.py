"""Scores as files and as JSON: result.json, the tables in Markdown, the page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vip import store
from vip.html.charts import Chart
from vip.tasks.budget_curve import budget_tables
from vip.tasks.records import Score, TaskResult
from vip.tasks.score_files import RESULT, Scores
from vip.tasks.score_tables import budget_label, comparison_table, group_tables, metric_name, score_tables
from vip.tasks.table import Table, render
from vip.tasks.task import ChecksAnswers, DrawsCharts

PAGE = "scores.html"
TABLES = "scores.md"


def all_tables(scores: Scores, *, paper: bool = False) -> list[Table]:
    """Return the scores, the groups and the differences as tables.

    Args:
        paper: the tables of the paper too, with published rows beside one's own.
    """
    tables = score_tables(scores.shown)
    for number, (result, label) in enumerate(zip(scores.shown, scores.labels, strict=True), 1):
        tables += group_tables(result, label=label, number=number)
    if scores.differences:
        tables.append(comparison_table(scores.differences))
    tables += budget_tables(scores.shown)
    tables += answer_tables(scores)
    return tables + (paper_tables(scores) if paper else [])


def answer_tables(scores: Scores) -> list[Table]:
    """Return what the tasks say of the answers of each file."""
    labels = dict(zip(map(id, scores.results), scores.labels, strict=True))
    found: list[Table] = []
    for one in scores.scored:
        task: object = scores.tasks.get(one.result.task)
        if isinstance(task, ChecksAnswers):
            found += task.answer_tables(one.joined.pairs, labels[id(one.result)])
    return found


def paper_charts(scores: Scores) -> list[Chart]:
    """Return the figures of the papers of the tasks that were scored."""
    from vip.tasks.registry import load_task

    tasks: dict[str, object] = {(task := load_task(name)).name: task for name in dict.fromkeys(one.task for one in scores.results)}
    return [chart for task in tasks.values() if isinstance(task, DrawsCharts) for chart in task.charts(scores.shown)]


def paper_tables(scores: Scores) -> list[Table]:
    """Return the tables of the papers of the tasks that were scored."""
    from vip.tasks.registry import load_task

    tasks = {(task := load_task(name)).name: task for name in dict.fromkeys(result.task for result in scores.results)}
    by_paper: dict[str, Table] = {}
    for task in tasks.values():
        by_paper.update((table.title, table) for table in task.tables(scores.shown))
    return list(by_paper.values())


def as_json_row(result: TaskResult) -> dict[str, Any]:
    """Return a result as `--json` prints it."""
    return {
        "task": result.task,
        "version": result.task_version,
        "predictions": result.name,
        "engine": result.engine,
        "frames": budget_label(result),
        "n": result.n,
        "left_out": result.left_out,
        "unscored": dict(result.unscored),
        "metrics": {
            name: {"name": f"{metric_name(name)} ({result.label}; {budget_label(result)})", **_score(score)}
            for name, score in result.metrics.items()
        },
        "samples_sha256": result.samples_sha256,
        "predictions_sha256": result.predictions_sha256,
    }


def _score(score: Score) -> dict[str, Any]:
    groups = {grouping: {name: _score(one) for name, one in members.items()} for grouping, members in score.groups.items()}
    parts = {name: _score(one) for name, one in score.parts.items()}
    shown = score.model_dump(mode="json", exclude={"groups", "parts", "signature", "contrasts"}, exclude_none=True)
    return {"value": None, **shown, "signature": score.signature, "groups": groups, **({"parts": parts} if parts else {})}


def write_scores(scores: Scores, out: Path, *, runs: Sequence[Path] = ()) -> list[Path]:
    """Write what was scored and return the files: into a folder results, tables and the page; or the page alone.

    Args:
        runs: run folders that the samples were made from, for the pictures of the page.

    Raises:
        StoreError: not writable.
    """
    if out.suffix in {".html", ".htm"}:
        return [_write_page(scores, out, runs)]
    store.make_folder(out)
    written = []
    for result, name in zip(scores.results, result_names(scores), strict=True):
        store.write_json(out / name, result)
        written.append(out / name)
    with store.replacing(out / TABLES) as file:
        file.write("\n\n".join(render(table, "markdown") for table in all_tables(scores)).encode() + b"\n")
    return [*written, out / TABLES, _write_page(scores, out / PAGE, runs)]


def _write_page(scores: Scores, path: Path, runs: Sequence[Path]) -> Path:
    from vip.tasks.score_page import write_page  # here, since it loads Jinja

    write_page(scores, path, runs=runs)
    return path


def result_names(scores: Scores) -> list[str]:
    """Return the file name of each result: result.json where there is one, else NAME.result.json, with its task where names are equal."""
    if len(scores.results) == 1:
        return [RESULT]
    stems = [Path(result.name).stem for result in scores.results]
    tasks = [re.sub(r"[^A-Za-z0-9._-]+", "-", result.label) for result in scores.results]
    for names in (stems, [f"{task}-{stem}" for task, stem in zip(tasks, stems, strict=True)]):
        if len({name.casefold() for name in names}) == len(names):
            return [f"{name}.{RESULT}" for name in names]
    return [f"{stem}-{number}.{RESULT}" for number, stem in enumerate(stems, 1)]
