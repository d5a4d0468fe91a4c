"""The files of `vip fiber collect`, beside each other: samples, records, workers, what was left out, and a sheet to mark or bonuses."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vip import store
from vip.tasks.fiber.collect import (
    Collected,
    WorkerReview,
    assemble,
    collect,
    count_bonuses,
    dollars,
    leave_out_rejected,
    review_rows,
    review_workers,
    unpaid,
    write_bonuses,
    write_sheet,
)
from vip.tasks.fiber.hits import guard_cell
from vip.tasks.fiber.noun_phrases import Parser
from vip.tasks.fiber.policy import WorkerPolicy
from vip.tasks.fiber.records import write_records
from vip.tasks.fiber.results import COMMENT, HitResults, describe_left_out
from vip.tasks.fiber.task import sample_of
from vip.tasks.files import write_samples
from vip.wording import counted, option

BESIDE = ("records.json", "workers.csv", "left-out.jsonl", "sheet.csv", "bonuses.jsonl")
"""How the files beside the samples end; of the last two, a collection writes one."""


def beside(out: Path, name: str) -> Path:
    """Return where a file stands beside the samples."""
    return out.with_name(f"{out.stem}.{name}")


@dataclass(frozen=True, slots=True)
class CollectSummary:
    """What `vip fiber collect` wrote."""

    blanks: int
    unavailable: int
    unanswered: int
    assignments: int
    answers: int
    noun_phrases: int
    is_filtered: bool
    decisions: dict[str, int]
    left_out: dict[str, int]
    left_out_lines: tuple[str, ...]
    to_mark: int | None
    """Rows of the sheet; None where no worker waits for a review."""
    bonuses: int
    bonus_cents: int
    pay_cents: int
    files: tuple[str, ...]

    def as_row(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return {name: value for name, value in asdict(self).items() if name != "left_out_lines"}

    def lines(self) -> list[str]:
        """Return what people read."""
        share = f" ({100 * self.noun_phrases / self.answers:.1f} %)" if self.answers else ""
        kept = f"{self.noun_phrases:,} of {counted(self.answers, 'answer')} are noun phrases{share}"
        lines = [
            f"{counted(self.blanks, 'blank')} with answers of {counted(self.assignments, 'assignment')}; "
            + (kept if self.is_filtered else f"{counted(self.answers, 'answer')}, not filtered for noun phrases"),
            f"{self.unavailable:,} left out: a worker says the video is unavailable" if self.unavailable else "",
            f"{self.unanswered:,} left out: a blank without an answer" if self.unanswered else "",
            *self.left_out_lines,
            "Workers: " + ", ".join(f"{count:,} {decision}" for decision, count in self.decisions.items()),
        ]
        if self.to_mark is not None:
            lines.append(f"Mark {counted(self.to_mark, 'answer')} in {self.files[-1]} (y: correct), and give it with {option('reviewed')}.")
        else:
            lines.append(f"{counted(self.bonuses, 'bonus', 'bonuses')}, {dollars(self.bonus_cents)} dollars, in {self.files[-1]}")
        return [line for line in lines if line]


def write_collected(
    out: Path,
    results: HitResults,
    policy: WorkerPolicy,
    parser: Parser | None,
    *,
    marks: dict[str, int] | None,
    paid: tuple[set[str], set[str]],
    seed: int,
) -> CollectSummary:
    """Collect, and write all files.

    Args:
        out: of the samples; `NAME.records.json`, `NAME.workers.csv` and the others stand beside it.
        marks: correct answers of each worker on the sheet; None before it was marked.
        paid: assignments and workers of earlier bonuses.

    Raises:
        StoreError: not writable.
    """
    store.make_folder(out.parent)

    collected = collect(results, policy, parser)
    reviews = review_workers(collected, policy, marks)
    sheet = list(review_rows(collected, policy, seed))
    leave_out_rejected(collected, reviews)
    done = assemble(collected)
    write_records(beside(out, "records.json"), done.records)
    write_samples(out, map(sample_of, done.records))
    _write_workers(beside(out, "workers.csv"), reviews, collected)
    store.write_rows(beside(out, "left-out.jsonl"), results.left_out)
    waits = any(one.decision == "to review" for one in reviews)
    to_mark, bonuses, cents = None, [], 0
    if waits:
        to_mark = write_sheet(beside(out, "sheet.csv"), sheet)
    else:
        bonuses = unpaid(count_bonuses(collected, policy.pay), paid)
        cents = write_bonuses(beside(out, "bonuses.jsonl"), bonuses)
    names = [out, *(beside(out, name) for name in ("records.json", "workers.csv", "left-out.jsonl"))]
    return CollectSummary(
        blanks=len(done.records),
        unavailable=done.unavailable,
        unanswered=done.unanswered,
        assignments=len(results.assignments),
        answers=collected.judged,
        noun_phrases=sum(map(len, collected.noun_phrases.values())),
        is_filtered=parser is not None,
        decisions=dict(Counter(one.decision for one in reviews)),
        left_out={reason: count for reason, count in results.reasons().most_common() if reason != COMMENT},
        left_out_lines=tuple(describe_left_out(results)),
        to_mark=to_mark,
        bonuses=len(bonuses),
        bonus_cents=cents,
        pay_cents=policy.pay.hit * len(results.assignments),
        files=tuple(map(str, [*names, beside(out, "sheet.csv" if waits else "bonuses.jsonl")])),
    )


def _write_workers(path: Path, reviews: Sequence[WorkerReview], collected: Collected) -> None:
    assignments = Counter(one.worker for one in collected.results.assignments.values())
    head = ("worker_id", "assignments_used", "questions_reviewed", "correct_answers_a_question", "decision")
    rows = [(one.worker, str(assignments[one.worker]), str(one.questions), f"{one.score:.4f}", one.decision) for one in reviews]
    with store.replacing(path) as file:
        file.write(_csv([head, *rows]))


def _csv(rows: Iterable[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows([list(map(guard_cell, row)) for row in rows])
    return text.getvalue().encode()
