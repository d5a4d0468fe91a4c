"""The mean of two files of predictions with scores: the "two-stream" of Li et al. 2021, Table 4, without a model.

Questions: files of `vip predict`; of each option the mean of its two scores, and the option with the largest is the answer. Retrieval:
files in the published form, `{"VCMR": [{"desc_id", "predictions": [[video, start, end, score], …]}], …}`; of each video or moment the
mean of its two scores, where one that a file lacks has 0 there. Both files answer the same ids.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vip import store
from vip.errors import InputError, UsageError
from vip.metrics.retrieval import MOST_PREDICTIONS
from vip.tasks.files import check_new, read_predictions
from vip.tasks.json_rows import iterate_rows, open_bounded
from vip.tasks.records import Prediction
from vip.tasks.value.submissions import FORM, MOST_OF_QUERY, PREDICTIONS, SECTIONS, id_as_written, read_id
from vip.untrusted import one_line

ENGINE = "mean of two"
SCORE_DIGITS = 6
MOST_NUMBER = 1e15
"""Of videos, times and scores; exp(20 × 1) is 5e8."""
MOST_ANSWERS = 10**6
"""Of a file; TVR has 32,700."""
Rows = npt.NDArray[np.float64]  # (N, 4)
Ranking = Mapping[tuple[float, ...], float]
"""Scores by what they are of: (video,) or (video, start, end)."""


@dataclass(frozen=True, slots=True)
class Fused:
    """What was written."""

    path: Path
    answers: int
    changed: int
    """Answers that are not those of the first file."""


def fuse(first: Path, second: Path, out: Path, *, overwrite: bool = False) -> Fused:
    """Write the mean of two files: questions from `.jsonl`, retrieval from `.json`.

    Raises:
        UsageError: the files are of two forms, or `out` is there already.
        InputError: a file is damaged, has no scores, or answers other ids.
    """
    check_new(out, overwrite=overwrite)
    forms = {path.name.removesuffix(".gz").rpartition(".")[2] for path in (first, second, out)}
    if forms == {"jsonl"}:
        return _fuse_questions(first, second, out)
    if forms == {"json"}:
        return _fuse_rankings(first, second, out)
    raise UsageError(
        "Two files of one form are averaged into a third: questions from .jsonl of vip predict, retrieval from .json in the published form."
    )


# ---------------------------------------------------------------- questions


def mean_answer(first: Sequence[float], second: Sequence[float]) -> tuple[int, tuple[float, ...]]:
    """Return the option with the largest mean score, the first of equal ones, and the means."""
    means = tuple(one / 2 + other / 2 for one, other in zip(first, second, strict=True))
    return max(range(len(means)), key=means.__getitem__), means


def _fuse_questions(first: Path, second: Path, out: Path) -> Fused:
    others = {one.sample_id: _scores(one, second) for one in _read_questions(second)}
    rows, changed = [], 0
    for row in _read_questions(first):
        scores, other = _scores(row, first), others.pop(row.sample_id, None)
        if other is None or len(other) != len(scores):
            fault = "no answer" if other is None else f"{len(other)} scores instead of {len(scores)}"
            raise InputError(f'{second} has {fault} to "{one_line(row.sample_id)[:80]}". Give predictions of the same samples.')
        value, means = mean_answer(scores, other)
        changed += value != row.value
        rounded = tuple(round(one, SCORE_DIGITS) for one in means)
        rows.append(Prediction(sample_id=row.sample_id, value=value, engine=f"{ENGINE}: {row.engine}", scores=rounded))
    _check_left(others, first)
    _check_any(len(rows), first)
    store.write_rows(out, rows)
    return Fused(out, len(rows), changed)


def _read_questions(path: Path) -> Iterator[Prediction]:
    """Yield the predictions of a file; refuse an id that is there twice, and too many."""
    seen = set[str]()
    for row in read_predictions(path):
        if row.sample_id in seen:
            raise InputError(f'{path} has the id "{one_line(row.sample_id)[:80]}" twice. Give each once.')
        seen.add(row.sample_id)
        _check_count(len(seen), path)
        yield row


def _check_count(count: int, path: Path) -> None:
    if count > MOST_ANSWERS:
        raise InputError(f"{path} has more than {MOST_ANSWERS:,} answers. Give those of one task and split.")


def _check_any(count: int, path: Path) -> None:
    if not count:
        raise InputError(f"{path} and the other file have no answers. Give predictions of the same samples.")


def _scores(row: Prediction, path: Path) -> tuple[float, ...]:
    if not row.scores or not all(map(isfinite, row.scores)):
        raise InputError(
            f'{path}: "{one_line(row.sample_id)[:80]}" has no scores. Give predictions of a trained model, which has one an option.'
        )
    return row.scores


def _check_left(others: Mapping[str, object], first: Path) -> None:
    if others:
        raise InputError(
            f'{first} has no answer to {len(others):,} ids of the other file, such as "{one_line(min(others))[:80]}".'
            " Give predictions of the same samples."
        )


# ---------------------------------------------------------------- retrieval


def mean_ranking(first: Ranking, second: Ranking) -> list[tuple[tuple[float, ...], float]]:
    """Return videos or moments with their mean scores, best first; of equal ones those of the first ranking, in its order."""
    means = {key: (first.get(key, 0.0) + second.get(key, 0.0)) / 2 for key in [*first, *second]}
    return sorted(means.items(), key=lambda one: -one[1])[:MOST_PREDICTIONS]


def _fuse_rankings(first: Path, second: Path, out: Path) -> Fused:
    others = {(section, key): rows for section, key, rows in _read_rankings(second)}  # arrays: 10,900 queries of TVR take 100 MB
    answers = changed = 0
    open_section = None
    with store.replacing(out) as file:
        file.write(b"{")
        for section, key, rows in _read_rankings(first):
            other = others.pop((section, key), None)
            if other is None:
                raise InputError(f'{second} has no answer to "{one_line(key)[:80]}" in {section}. Give predictions of the same queries.')
            ranking = _ranking(rows, section)
            means = mean_ranking(ranking, _ranking(other, section))
            answers, changed = answers + 1, changed + ([one for one, _ in means[:1]] != list(ranking)[:1])
            lines = [[int(one[0]), *(one[1:] or (0.0, 0.0)), score] for one, score in means]
            start = f'"{section}": [' if open_section is None else ", " if section == open_section else f'], "{section}": ['
            file.write((start + json.dumps({"desc_id": id_as_written(key), "predictions": lines})).encode())
            open_section = section
        file.write(b"]}")
        _check_left({" ".join(one): None for one in others}, first)
        _check_any(answers, first)
    return Fused(out, answers, changed)


def _read_rankings(path: Path) -> Iterator[tuple[str, str, Rows]]:
    """Yield section, id and rows (video, start, end, score) of each query; a section is in one piece.

    Raises:
        InputError: the file is damaged, or a prediction has no score.
    """
    seen, ended = set[tuple[str, str]](), set[str]()
    before = None
    with open_bounded(path, advice=PREDICTIONS) as file:
        for section, row in iterate_rows(file, path, FORM):
            key, rows = (read_id(row.get("desc_id")), row.get("predictions")) if isinstance(row, dict) else (None, None)
            if section not in SECTIONS or key is None or not isinstance(rows, list):
                raise InputError(f"{path}: expected {FORM}, found another row in {one_line(section)[:40]}.")
            if before is not None and section != before:
                ended.add(before)
            before = section
            where = f'{path}: the query "{one_line(key)[:80]}" of {section}'
            if (section, key) in seen or section in ended or len(rows) > MOST_OF_QUERY:
                raise InputError(f"{where} is there twice, or has more than {MOST_OF_QUERY:,} predictions. Give each once, the best of it.")
            seen.add((section, key))
            _check_count(len(seen), path)
            if not all(map(_is_prediction, rows)):
                raise InputError(f"{where} has a prediction that is not [video number, start, end, score].")
            yield section, key, np.array(rows, np.float64).reshape(-1, 4)


def _ranking(rows: Rows, section: str) -> Ranking:
    """Return the scores; of a video or moment that is there twice the first one counts."""
    width = 1 if section == "VR" else 3
    scores: dict[tuple[float, ...], float] = {}
    for *place, score in rows.tolist():
        scores.setdefault(tuple(place[:width]), score)
    return scores


def _is_prediction(row: object) -> bool:
    return isinstance(row, list) and len(row) == 4 and all(map(_is_number, row)) and row[0] == int(row[0])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MOST_NUMBER
