"""Questions with options that tests review."""

from __future__ import annotations

import json
from pathlib import Path

from vip.review.blanks import log_path
from vip.review.log import ReviewLog
from vip.review.question_items import read_question_items
from vip.review.question_state import QuestionState, Way
from vip.tasks.nextqa.distractors import COLUMNS

COUNT = 3


def write_options(path: Path, count: int = COUNT) -> Path:
    """Questions in the published form of NExT-QA; the right option of each is `right N`."""
    lines = [",".join(COLUMNS)]
    for number in range(count):
        options = [f"wrong {place}" for place in range(5)]
        options[number % 5] = f"right {number}"
        lines.append(f"v{number},900,640,480,why does the dog run {number},{number % 5},{number},CW,{','.join(options)}")
    path.write_text("\n".join(lines) + "\n")
    return path


def how2qa_row(number: int) -> dict[str, object]:
    """A published row of How2QA; the first option is right."""
    options = {f"a{place}": f"Option {place}." for place in range(4)}
    return {"vid_name": f"v{number}", "ts": "0.5-1.25", "qid": number, "q": f"What happens <b>{number}</b>?", **options, "answer_idx": 0}


def write_how2qa(path: Path, count: int = COUNT) -> Path:
    path.write_text("".join(json.dumps(how2qa_row(number)) + "\n" for number in range(count)))
    return path


def open_questions(path: Path, way: Way, *, videos: Path | None = None, judgements: int | None = None) -> QuestionState:
    return QuestionState(read_question_items(path, videos), ReviewLog(log_path(path)), way=way, judgements=judgements)
