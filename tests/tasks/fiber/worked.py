"""Results of HITs as Mechanical Turk would write them, made from the HITs that vip writes."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vip.tasks.fiber.hits import write_hits
from vip.tasks.fiber.records import FiberRecord

Answers = Mapping[int, Sequence[str]]


def task_answers(answers: Answers, **more: object) -> str:
    """Return what the page sends."""
    fields = {f"answer-{question}-{place}": text for question, texts in answers.items() for place, text in enumerate(texts)}
    return json.dumps([{**fields, **{f"answer-input-{question}": "" for question in answers}, "comments": "", **more}])


def assignment(worker: str, answers: Answers | str, *, hit: int = 0, **more: str) -> dict[str, Any]:
    """Return the columns of an assignment; `hit` is the row of hits.csv that was answered."""
    cell = answers if isinstance(answers, str) else task_answers(answers)
    return {"hit": hit, "AssignmentId": f"A-{worker}-{hit}", "WorkerId": worker, "Answer.taskAnswers": cell, **more}


def write_results(path: Path, records: Iterable[FiberRecord], assignments: Sequence[Mapping[str, Any]], per_hit: int = 2) -> Path:
    """Write hits.csv of the records beside the file, and the file of results of these assignments."""
    write_hits(path.parent / "hits", records, per_hit=per_hit)
    with (path.parent / "hits" / "hits.csv").open(newline="", encoding="utf-8") as file:
        hits = list(csv.DictReader(file))
    head = ["HITId", "AssignmentId", "WorkerId", "AssignmentStatus", "ApprovalTime", "RejectionTime"]
    head += [f"Input.{name}" for name in hits[0]] + ["Answer.taskAnswers"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, head)
        writer.writeheader()
        for one in assignments:
            asked = {f"Input.{name}": cell for name, cell in hits[int(one["hit"])].items()}
            writer.writerow({"HITId": f"H{one['hit']}", **asked, **{name: cell for name, cell in one.items() if name != "hit"}})
    return path
