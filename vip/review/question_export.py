"""What people said of questions, for the next program: predictions that `vip score` reads, or questions that `vip samples` reads.

In: a `QuestionState`. Out: of answers, the option that the majority chose, as predictions (Li et al. 2021, appendix C). Of checked options,
the questions that are good, in the form they came in; beside them `OUT.left-out.jsonl`, the others with the reason. Of open answers, the
verdict of the majority on each, as labels that a judge is held against.
"""

from __future__ import annotations

import csv
import io
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vip import store
from vip.errors import InputError, UsageError
from vip.metrics.statistics import IntervalEstimate, estimate_mean
from vip.review.agreement import FieldAgreement, measure_agreement
from vip.review.answer_items import CORRECT
from vip.review.fields import COMMENT
from vip.review.question_items import CHECKED_TASK, QuestionItem, first_row
from vip.review.question_state import OPTION, QuestionState
from vip.review.report import agreement_lines
from vip.tasks.fiber.hits import unguard_cell
from vip.tasks.files import check_is_file, is_trusted, write_samples
from vip.tasks.nextqa.distractors import MultiChoiceQuestion, cell_text, write_questions
from vip.tasks.nextqa.files import Question
from vip.tasks.records import Choice, Prediction, Sample
from vip.untrusted import one_line, printable_json
from vip.wording import call, counted, option

ENGINE = "human:majority"
LABEL_COLUMNS = ("sample_id", "correct")
"""As `vip.tasks.judge.read_labels` reads them."""


@dataclass(frozen=True, slots=True)
class QuestionExport:
    """What was written."""

    written: int
    left_out: int
    """Of checked options, the questions that are not good; of answers, those without a majority, or with an id that a terminal obeys."""
    path: Path
    next: str
    """The command that reads it, in backquotes."""


def export_questions(
    state: QuestionState, out: Path, *, source: Path, samples: Path | None = None, overwrite: bool = False
) -> QuestionExport:
    """Write what people said.

    Args:
        source: the file of questions or answers, for the command that reads the export.
        samples: what answers were judged beside, where it was named.

    Raises:
        UsageError: the file is there already, or has the wrong ending.
        InputError: nobody has said anything yet.
        StoreError: not writable.
    """
    state.catch_up()
    if not any(state.done_by(item) for item in state.items):
        raise InputError(f"Nobody has finished a question of {source} yet. Run `vip review {source}` first.")
    if all(item.is_verdict for item in state.items):
        return _export_labels(state, out, source, samples, overwrite)
    return _export_answers(state, out, source, overwrite) if state.way == "answer" else _export_checked(state, out, source, overwrite)


# ---------------------------------------------------------------- answers


def predictions_of(state: QuestionState) -> Iterator[Prediction]:
    """Yield the answer of the majority to each question; without one there is no answer, and it is counted."""
    for item in state.items:
        votes, chosen = state.votes(item), state.majority(item)
        counts = ", ".join(f"{count} × option {place}" for place, count in sorted(Counter(votes.values()).items()))
        if chosen is not None:
            yield Prediction(sample_id=item.id, value=chosen, engine=ENGINE, raw=counts)
        else:
            status, reason = ("unparsed", f"no majority: {counts}") if votes else ("missing", "nobody chose an option")
            yield Prediction(sample_id=item.id, value=None, status=status, engine=ENGINE, reason=reason)


def _export_answers(state: QuestionState, out: Path, source: Path, overwrite: bool) -> QuestionExport:
    if out.suffix.lower() != ".jsonl":
        raise UsageError(f"{out}: answers to questions are written as predictions. Name a file with .jsonl.")
    _check_new(out, overwrite)
    rows = list(predictions_of(state))
    store.write_rows(out, rows)
    answered = sum(row.value is not None for row in rows)
    return QuestionExport(answered, len(rows) - answered, out, call("score", shlex.quote(str(out)), **_samples_of(state, source)))


def _samples_of(state: QuestionState, source: Path) -> dict[str, str]:
    """Return the settings by which scoring finds the questions."""
    first = state.items[0].source
    if isinstance(first, Sample) and "ask" in first_row(source):
        return {"samples": str(source)}
    return {"task": first.task if isinstance(first, Sample) else CHECKED_TASK, "annotations": str(source)}


def _check_new(path: Path, overwrite: bool) -> None:
    check_is_file(path)
    if store.exists(path) and not overwrite:
        raise UsageError(f"{path} exists already. Add {option('overwrite')} to replace it, or name another file.")


# ---------------------------------------------------------------- verdicts on open answers


def labels_of(state: QuestionState) -> Iterator[tuple[str, str]]:
    """Yield the cell of the sample and the verdict of the majority, `yes` or `no`; none without one, or for an id that a terminal obeys."""
    for item in state.items:
        chosen = state.majority(item)
        if chosen is not None and isinstance(item.source, Sample) and unguard_cell(id_ := cell_text(item.source.id)) == item.source.id:
            yield id_, "yes" if item.options[chosen] == CORRECT else "no"


def _export_labels(state: QuestionState, out: Path, source: Path, samples: Path | None, overwrite: bool) -> QuestionExport:
    if out.suffix.lower() != ".csv":
        raise UsageError(f"{out}: verdicts on answers are written as a table. Name a file with .csv.")
    _check_new(out, overwrite)
    rows = list(labels_of(state))
    text = io.StringIO(newline="")
    csv.writer(text).writerows([LABEL_COLUMNS, *rows])
    with store.replacing(out) as file:
        file.write(text.getvalue().encode("utf-8", "replace"))
    named = {"samples": shlex.quote(str(samples))} if samples else {}
    following = call("score", shlex.quote(str(source)), **named, judge="ENGINE", judge_labels=shlex.quote(str(out)))
    return QuestionExport(len(rows), len(state.items) - len(rows), out, following)


# ---------------------------------------------------------------- checked options


def problem_of(state: QuestionState, item: QuestionItem) -> str | None:
    """Return why a question is left out; None for a good one."""
    options = [" ".join(text.lower().split()) for text in state.options(item)]
    if not state.done_by(item):
        return "nobody has checked it"
    if rejected := state.rejected(item):
        marked = "; ".join(f"option {place}: {', '.join(sorted(set(state.marks(item, place).values())))}" for place in rejected)
        return f"marked: {marked}"
    return "two options are the same" if len(set(options)) < len(options) else None


def _export_checked(state: QuestionState, out: Path, source: Path, overwrite: bool) -> QuestionExport:
    is_table = isinstance(state.items[0].source, Question)
    wanted = ".csv" if is_table else ".jsonl"
    if out.suffix.lower() != wanted:
        raise UsageError(f"{out}: these questions are written in the form they came in. Name a file with {wanted}.")
    others = out.with_name(f"{out.stem}.left-out.jsonl")
    _check_new(out, overwrite)
    _check_new(others, overwrite)
    problems = {item.id: problem for item in state.items if (problem := problem_of(state, item))}
    good = [item for item in state.items if item.id not in problems]
    is_own = not is_table and is_trusted(source)  # samples show what the source shows
    written = write_questions(out, _rows(state, good)) if is_table else write_samples(out, _samples(state, good), is_own=is_own)
    with store.replacing(others) as file:
        for item in state.items:
            if item.id in problems:
                file.write(printable_json(_left_out(state, item, problems[item.id])).encode() + b"\n")
    name = shlex.quote(str(out))
    following = call("samples", name, task="nextqa-mc") if is_table else call("predict", name)
    return QuestionExport(written, len(problems), out, following)


def _rows(state: QuestionState, items: list[QuestionItem]) -> Iterator[MultiChoiceQuestion]:
    for item in items:
        if isinstance(item.source, Question) and item.answer is not None:
            options = state.options(item)
            yield MultiChoiceQuestion(item.source, options[item.answer], options, item.answer, qualified=0)


def _samples(state: QuestionState, items: list[QuestionItem]) -> Iterator[Sample]:
    for item in items:
        if isinstance(item.source, Sample):
            yield item.source.model_copy(update={"ask": Choice(question=item.text, options=state.options(item))})


def _left_out(state: QuestionState, item: QuestionItem, problem: str) -> dict[str, Any]:
    options = state.options(item)
    return {
        "id": item.id,
        "question": item.text,
        "options": options,
        "answer": item.answer,
        "reason": problem,
        "marks": {str(place): marks for place in range(len(options)) if (marks := state.marks(item, place))},
        "changed": [place for place in range(len(options)) if (item.id, f"{OPTION}{place}") in state.shared],
        "checked_by": state.done_by(item),
        "comments": state.said(item.id, COMMENT),
    }


# ---------------------------------------------------------------- report


def make_question_report(state: QuestionState) -> dict[str, Any]:
    """Return progress, agreement, and what was found, as plain values.

    Raises:
        BackendError: the library `krippendorff` is missing.
    """
    people = {name: state.progress(name) for name in state.reviewers()}
    report: dict[str, Any] = {"questions": len(state.items), "reviewers": people, "agreement": asdict(_agreement(state))}
    if state.way == "check":
        problems = Counter((problem_of(state, item) or "good").partition(":")[0] for item in state.items)
        return {**report, "found": dict(problems)}
    accuracy = {name: asdict(value) for name, value in accuracy_by_reviewer(state).items()}
    whole = accuracy_of_majority(state)
    return {**report, "accuracy": accuracy, "majority": asdict(whole) if whole else None}


def question_report_lines(state: QuestionState) -> Iterator[str]:
    """Yield the report as lines of text; errors as of `make_question_report`."""
    word = "answered" if state.way == "answer" else "checked"
    yield counted(len(state.items), "question")
    accuracy = accuracy_by_reviewer(state) if state.way == "answer" else {}
    for name in state.reviewers():
        yield f"  {one_line(name)}: {state.progress(name)['done']:,} {word}{_accuracy_words(accuracy.get(name))}"
    if state.way == "answer":
        none = sum(bool(state.votes(item)) and state.majority(item) is None for item in state.items)
        unknown = "no right answers here" if any(map(state.votes, state.items)) else "nobody has answered yet"
        yield f"  majority: {_accuracy_words(accuracy_of_majority(state)).removeprefix(', ') or unknown}; {none:,} without one"
    else:
        for problem, count in Counter((problem_of(state, item) or "good").partition(":")[0] for item in state.items).most_common():
            yield f"  {count:,} {problem}"
    yield ""
    yield from agreement_lines([_agreement(state)])


def accuracy_by_reviewer(state: QuestionState) -> dict[str, IntervalEstimate]:
    """Return the share of each person's answers that are right, by name; of those alone who answered a question with a right answer."""
    pairs: dict[str, list[tuple[float, str]]] = {}
    for item in state.items:
        if item.answer is not None:
            for name, chosen in state.votes(item).items():
                pairs.setdefault(name, []).append((float(chosen == item.answer), item.video))
    return {name: _mean(pairs[name]) for name in sorted(pairs)}


def accuracy_of_majority(state: QuestionState) -> IntervalEstimate | None:
    """Return the share of the majority's answers that are right; None without one, or where the file has no right ones.

    Questions without a majority count as wrong, as where they are scored.
    """
    answered = (item for item in state.items if item.answer is not None and state.votes(item))
    pairs = [(float(state.majority(item) == item.answer), item.video) for item in answered]
    return _mean(pairs) if pairs else None


def _mean(pairs: list[tuple[float, str]]) -> IntervalEstimate:
    return estimate_mean([value for value, _ in pairs], [video for _, video in pairs])


def _accuracy_words(value: IntervalEstimate | None) -> str:
    if value is None:
        return ""
    interval = "" if value.low is None or value.high is None else f" [{100 * max(value.low, 0):.1f}, {100 * min(value.high, 1):.1f}]"
    return f", {100 * value.value:.2f} % right{interval} of {value.n:,}"


def _agreement(state: QuestionState) -> FieldAgreement:
    """Return the agreement about the choices; of checked questions, about the marks of each option."""
    if state.way == "answer":
        units = [{name: str(place) for name, place in state.votes(item).items()} for item in state.items]
        return measure_agreement("answer", units, [item.video for item in state.items])
    marked, videos = [], []
    for item in state.items:
        people = state.done_by(item)
        for place in range(len(item.options)):
            marks = state.marks(item, place)
            marked.append({name: marks.get(name, "good") for name in people})
            videos.append(item.video)
    return measure_agreement("option", marked, videos)
