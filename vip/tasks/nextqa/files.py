"""The files of NExT-QA, read as they were published: questions, results, second references, and where VidOR keeps the videos.

In: `val.csv` of either task, `{"<video>_<qid>": {"prediction": i, "answer": i}}` (options), `{"<video>": {"<qid>": text}}` (open-ended, and
second references), `{"<video>": "<folder>/<video>"}` (VidOR). Out: questions one at a time, and tables of answers. The files are data of
strangers: their size is bounded, and a message names the line.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal, NoReturn, cast, get_args

from vip.errors import InputError
from vip.tasks.fiber.hits import unguard_cell
from vip.untrusted import one_line

QuestionType = Literal["CW", "CH", "TN", "TP", "TC", "DC", "DL", "DO", "DB"]
"""Causal: why, how. Temporal: next, previous, current. Descriptive: count, location, other, binary (open-ended only)."""
TYPES: tuple[QuestionType, ...] = get_args(QuestionType)
OPTIONS = ("a0", "a1", "a2", "a3", "a4")
LETTERS = "ABCDE"
MOST_QUESTIONS = 500_000
MOST_LINE_LETTERS = 20_000
MOST_LETTERS = 256 * 2**20  # of a csv; those of NExT-QA have 5 MB
MOST_ANSWER_LETTERS = 2_000
MOST_DIGITS = 9  # of a number of frames
MOST_JSON_BYTES = 16 * 2**20  # results of all of NExT-QA have 4 MB

Kind = Literal["nextqa-mc", "nextqa-oe"]


@dataclass(frozen=True, slots=True)
class Question:
    """One row of a file of questions."""

    video: str
    qid: str
    """Number of the question among those of its video."""
    type: QuestionType
    text: str
    answer: int | str | tuple[str, ...] | None
    """Index of the right option; or text, or the words it was normalised to; None where the file has no answers."""
    options: tuple[str, ...]
    """Five; none for open-ended questions."""
    frame_count: int | None
    line: int
    number: int = 1
    """2 for the second question of its file with the same video and qid: train.csv has three such pairs."""

    @property
    def published_id(self) -> str:
        """The id in results, `<video>_<qid>`."""
        return f"{self.video}_{self.qid}"

    @property
    def id(self) -> str:
        """The same, and for the second question that has it, `<video>_<qid>/2`."""
        return self.published_id if self.number == 1 else f"{self.published_id}/{self.number}"


def group_of(kind: QuestionType) -> str:
    """Return the group as the paper's tables have it: TN and TP are TPN."""
    return "TPN" if kind in {"TN", "TP"} else kind


# ---------------------------------------------------------------- questions


def read_questions(path: Path, task: Kind) -> Iterator[Question]:
    """Yield the questions of a csv file, or of one that gzip packed, in file order.

    Raises:
        InputError: it is damaged, of the other task, or has a row twice.
    """
    seen: dict[str, dict[int, int]] = {}  # id -> hash and line of each question that has it
    for line, row in _read_rows(path, _required(task)):
        question = _parse_question(row, path, line, task)
        others = seen.setdefault(question.published_id, {})
        content = hash((question.type, question.text, question.answer, question.options))
        if content in others:
            _refuse(path, line, f"it repeats the question {one_line(question.published_id)[:80]} of line {others[content]}")
        others[content] = line
        yield replace(question, number=len(others)) if len(others) > 1 else question
    if not seen:
        raise InputError(f"{path} holds no question. Give the val.csv or test.csv of NExT-QA.")


def _required(task: Kind) -> tuple[str, ...]:
    return ("video", "qid", "type", "question", *OPTIONS) if task == "nextqa-mc" else ("video", "qid", "type")


def _parse_question(row: Mapping[str, str], path: Path, line: int, task: Kind) -> Question:
    for name in _required(task):
        if not row[name].strip():
            _refuse(path, line, f"the column {name} is empty")
    if row["type"] not in TYPES:
        _refuse(path, line, f'"{one_line(row["type"])[:20]}" is no type of question: expected one of {", ".join(TYPES)}')
    count = row.get("frame_count", "")
    return Question(
        video=row["video"],
        qid=row["qid"],
        type=row["type"],
        text=row.get("question", ""),
        answer=_parse_index(row, path, line) if task == "nextqa-mc" else _parse_text(row, path, line),
        options=tuple(row[name] for name in OPTIONS) if task == "nextqa-mc" else (),
        frame_count=int(count) if count.isascii() and count.isdigit() and len(count) <= MOST_DIGITS else None,
        line=line,
    )


def _parse_index(row: Mapping[str, str], path: Path, line: int) -> int | None:
    if "answer" not in row:
        return None
    if row["answer"] not in {"0", "1", "2", "3", "4"}:
        _refuse(path, line, f'the answer "{one_line(row["answer"])[:40]}" is no index from 0 to 4; open-ended files are of nextqa-oe')
    return int(row["answer"])


def _parse_text(row: Mapping[str, str], path: Path, line: int) -> str | tuple[str, ...] | None:
    if "reference_tokens" in row:
        return tuple(row["reference_tokens"].split())
    if "a0" in row:
        _refuse(path, line, "it has options; files with options are of nextqa-mc")
    return row.get("answer")


def _read_rows(path: Path, required: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number of each row's last line and its columns by name, as `write_questions` got them. Other columns may be there."""
    with open_published(path) as binary:
        text = io.TextIOWrapper(binary, encoding="utf-8-sig", newline="")
        rows = csv.reader(_bounded_lines(text, path), strict=True)
        try:
            header = next(rows, [])
            if missing := [name for name in required if name not in header]:
                raise InputError(
                    f"{path} has no column {missing[0]}; it has {one_line(', '.join(header))[:200] or 'none'}. Give the csv of NExT-QA."
                )
            for number, row in enumerate(rows):
                if number >= MOST_QUESTIONS:
                    _refuse(path, rows.line_num, f"it holds more than {MOST_QUESTIONS:,} rows")
                if not row:
                    continue
                if len(row) != len(header):
                    _refuse(path, rows.line_num, f"it has {len(row)} columns, and the first line has {len(header)}")
                yield rows.line_num, dict(zip(header, map(unguard_cell, row), strict=True))
        except csv.Error as exc:
            _refuse(path, rows.line_num, str(exc))
        except UnicodeDecodeError as exc:
            raise InputError(f"{path} is no UTF-8 text after line {rows.line_num}. Give the file as it was published.") from exc
        except (OSError, EOFError, zlib.error) as exc:  # gzip
            raise InputError(f"{path} cannot be read after line {rows.line_num} ({exc}). Download it again.") from exc


def _bounded_lines(text: IO[str], path: Path) -> Iterator[str]:
    """Yield the lines; a quoted column with line breaks is read as several of them."""
    number, letters = 0, 0
    while line := text.readline(MOST_LINE_LETTERS + 1):
        number += 1
        letters += len(line)
        if len(line) > MOST_LINE_LETTERS:
            _refuse(path, number, f"it has more than {MOST_LINE_LETTERS:,} letters")
        if letters > MOST_LETTERS:
            _refuse(path, number, f"up to here are more than {MOST_LETTERS:,} letters. Give the csv of NExT-QA")
        yield line


def open_published(path: Path) -> IO[bytes]:
    """Open a file of NExT-QA, or one that gzip packed.

    Raises:
        InputError: it is missing, or no regular file.
    """
    try:
        if not path.is_file():
            path.stat()
            raise InputError(f"{path} is no regular file. Give the csv or JSON of NExT-QA.")
        return cast("IO[bytes]", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror}.") from exc


def _refuse(path: Path, line: int, why: str) -> NoReturn:
    raise InputError(f"{path}, line {line}: {why}.")


# ---------------------------------------------------------------- results and references


@dataclass(frozen=True, slots=True)
class ChosenOption:
    """A row of a result with options."""

    prediction: int
    answer: int | None
    """The right option by the one who wrote the result; None where it is not said."""


def read_choices(path: Path) -> tuple[dict[str, ChosenOption], int]:
    """Return the options of a result by id, and how many ids it has more than once.

    Raises:
        InputError: it is damaged, or of open-ended questions.
    """
    rows, doubled = _read_object(path)
    choices = {}
    for key, row in rows.items():
        if not isinstance(row, dict) or "prediction" not in row:
            hint = " It looks like a result of nextqa-oe." if isinstance(row, dict) else ""
            raise InputError(
                f'{path}: the entry "{one_line(key)[:40]}" has no prediction: expected {{"prediction": 0, "answer": 1}}.{hint}'
            )
        numbers = [row["prediction"], row.get("answer")]
        if type(numbers[0]) is not int or (numbers[1] is not None and type(numbers[1]) is not int):
            raise InputError(f'{path}: the entry "{one_line(key)[:40]}" has no whole number as prediction and answer.')
        choices[key] = ChosenOption(numbers[0], numbers[1])
    return choices, doubled


def read_answers(path: Path) -> tuple[dict[str, str], int]:
    """Return the texts of an open-ended result, or of second references, by id `<video>_<qid>`, and how many ids it has more than once.

    Raises:
        InputError: it is damaged, or a result with options.
    """
    videos, doubled = _read_object(path)
    answers: dict[str, str] = {}
    for video, row in videos.items():
        if not isinstance(row, dict):
            raise InputError(f'{path}: the video "{one_line(video)[:40]}" has no table of answers: expected {{"<qid>": "text"}}.')
        for qid, text in row.items():
            if not isinstance(text, str):
                hint = " It looks like a result of nextqa-mc." if qid == "prediction" else ""
                raise InputError(f'{path}: the answer {one_line(qid)[:20]} of "{one_line(video)[:40]}" is no text.{hint}')
            if len(text) > MOST_ANSWER_LETTERS:
                raise InputError(f'{path}: the answer {one_line(qid)[:20]} of "{one_line(video)[:40]}" has more than 2,000 letters.')
            answers[f"{video}_{qid}"] = text
    return answers, doubled


def read_token_predictions(path: Path) -> tuple[dict[str, tuple[str, ...]], int]:
    """Return the words of predictions from a csv with the columns video, qid and prediction_tokens, by id, and how many are doubled.

    Raises:
        InputError: it is damaged.
    """
    answers: dict[str, tuple[str, ...]] = {}
    doubled = 0
    for _, row in _read_rows(path, ("video", "qid", "prediction_tokens")):
        key = f"{row['video']}_{row['qid']}"
        doubled += key in answers
        answers[key] = tuple(row["prediction_tokens"].split())
    return answers, doubled


def read_video_index(path: Path) -> dict[str, str]:
    """Return where VidOR keeps each video, as `1164/3238737531`.

    Raises:
        InputError: it is damaged, or a path leads out of its folder.
    """
    rows, _ = _read_object(path)
    for video, place in rows.items():
        if not isinstance(place, str) or not place or place.startswith("/") or {"..", "."} & set(place.split("/")) or "\\" in place:
            raise InputError(f'{path}: the video "{one_line(video)[:40]}" has no path below the folder of VidOR.')
    return cast("dict[str, str]", rows)


def is_video_index(path: Path) -> bool:
    """Return whether a JSON file maps videos to paths; else it holds answers."""
    return all(isinstance(row, str) for row in _read_object(path)[0].values())


def is_choices(path: Path) -> bool:
    """Return whether a JSON result chooses options; else it holds texts, by video."""
    return all(isinstance(row, dict) and "prediction" in row for row in _read_object(path)[0].values())


def _read_object(path: Path) -> tuple[dict[str, Any], int]:
    """Return a JSON object, and how many keys it and those inside have more than once; of such keys the last counts."""
    doubled = 0

    def count_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal doubled
        table = dict(pairs)
        doubled += len(pairs) - len(table)
        return table

    with open_published(path) as file:
        data = _read_all(file, path)
    try:
        value = json.loads(data, object_pairs_hook=count_pairs, parse_constant=_refuse_constant)
    except json.JSONDecodeError as exc:
        raise InputError(f"{path}, line {exc.lineno}: it is no JSON ({exc.msg}).") from exc
    except (ValueError, RecursionError) as exc:  # UnicodeDecodeError; a number of thousands of digits
        raise InputError(f"{path} is no JSON ({str(exc)[:100]}).") from exc
    if not isinstance(value, dict):
        raise InputError(f"{path} holds no JSON object by id. Give a result as the authors publish it.")
    return value, doubled


def _read_all(file: IO[bytes], path: Path) -> bytes:
    try:
        data = file.read(MOST_JSON_BYTES + 1)
    except (OSError, EOFError, zlib.error) as exc:
        raise InputError(f"{path} cannot be read ({exc}). Download it again.") from exc
    if len(data) > MOST_JSON_BYTES:
        raise InputError(f"{path} has more than {MOST_JSON_BYTES // 2**20} MB, and no result of NExT-QA has.")
    return data


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
