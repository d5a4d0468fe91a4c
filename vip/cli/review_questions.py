"""`vip review` of a file of questions with options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from vip.cli.console import Console, print_json
from vip.errors import UsageError
from vip.wording import counted

if TYPE_CHECKING:
    from vip.review.log_server import LogServer
    from vip.review.log_state import LogState
    from vip.review.question_items import QuestionItem
    from vip.review.question_state import QuestionState

MOST_JUDGEMENTS = 1000


class RunServer(Protocol):
    """Serves a review until Ctrl-C."""

    def __call__(self, make: Callable[[str, list[str]], LogServer], state: LogState, what: str) -> None: ...


@dataclass(frozen=True, slots=True)
class QuestionReview:
    """What the command line says."""

    source: Path
    samples: Path | None
    """What the answers of the file answer, where people judge answers."""
    videos: Path | None
    judgements: int | None
    draw: tuple[int, int] | None
    """How many questions are drawn, and the seed; None: all are asked."""
    is_answered: bool
    """People answer the questions, where they would check their options."""
    is_report: bool
    export: Path | None
    overwrite: bool


def review_questions(given: QuestionReview, console: Console, serve: RunServer) -> None:
    """Let people answer questions or check their options; or write what they said, or how well they agree.

    Raises:
        UsageError: nobody has said anything yet, or options do not go together.
    """
    from vip.review.blanks import log_path
    from vip.review.draw import draw_ids
    from vip.review.log import ReviewLog
    from vip.review.question_items import is_to_check
    from vip.review.question_state import QuestionState

    if given.judgements is not None and given.judgements > MOST_JUDGEMENTS:
        raise UsageError(f"--judgements {given.judgements}: at most {MOST_JUDGEMENTS:,}.")
    items, path = _read_items(given), log_path(given.source)
    if given.draw is not None:  # by the question: of the answers of several engines to the same ones
        drawn = draw_ids((item.source.id for item in items), given.draw[0], seed=given.draw[1])
        items = [item for item in items if item.source.id in drawn]
    is_check = is_to_check(items) and not given.is_answered and not items[0].is_verdict
    if is_check and any(item.answer is None for item in items):
        raise UsageError(f"{given.source} does not say which options are right, so they cannot be checked. Add --answer to answer them.")
    if (given.export or given.is_report) and not path.exists():
        raise UsageError(f"Nobody has reviewed {given.source} yet. Run `vip review {given.source}` first.")
    with ReviewLog(path) as log:
        state = QuestionState(items, log, way="check" if is_check else "answer", judgements=given.judgements)
        if given.export:
            _export(state, given, console)
        if given.is_report:
            _report(state, console)
        if not (given.export or given.is_report):
            serve(_maker(state, given.source.name), state, counted(len(items), "question"))


def _read_items(given: QuestionReview) -> list[QuestionItem]:
    from vip.review.answer_items import beside, is_predictions, read_answer_items
    from vip.review.question_items import read_question_items

    if is_predictions(given.source):
        return read_answer_items(given.source, given.samples or beside(given.source), given.videos)
    if given.samples is not None:
        raise UsageError(f"--samples is for a file of answers, and {given.source} has none. Leave it out.")
    return read_question_items(given.source, given.videos)


def _maker(state: QuestionState, title: str) -> Callable[[str, list[str]], LogServer]:
    def make(token: str, hosts: list[str]) -> LogServer:
        from vip.review.question_server import QuestionServer

        return QuestionServer(state, title=title, token=token, hosts=hosts)

    return make


def _export(state: QuestionState, given: QuestionReview, console: Console) -> None:
    from vip.review.question_export import export_questions

    assert given.export is not None
    done = export_questions(state, given.export, source=given.source, samples=given.samples, overwrite=given.overwrite)
    if console.as_json:
        print_json({"export": str(done.path), "questions": done.written, "left_out": done.left_out, "next": done.next.strip("`")})
    left_out = "without a majority" if state.way == "answer" else "left out"
    console.write_line(f"{counted(done.written, 'question')} in {done.path}, {done.left_out:,} {left_out}. Next: {done.next}.")


def _report(state: QuestionState, console: Console) -> None:
    from vip.review.question_export import make_question_report, question_report_lines

    if console.as_json:
        print_json(make_question_report(state))
        return
    for line in question_report_lines(state):
        console.write_line(line)
