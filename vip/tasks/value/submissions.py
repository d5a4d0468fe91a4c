"""Predictions of VALUE as its server takes them: read, checked and written.

- questions: `{"<qid>": index}`;
- retrieval: `{"VCMR": [{"desc_id", "predictions": [[video number, start, end, score], …]}, …], "SVMR": …, "VR": [… [video number, …]]}`;
- captions: JSON lines `{"video_id", "clip_id", "descs": [{"desc"}]}`, of which the first one counts.

Retrieval of TVR has millions of numbers, so one query after the other is read. What does not fit is one sentence that names the query.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import le
from pathlib import Path
from typing import IO, Any

from vip.errors import InputError
from vip.metrics.retrieval import MOST_PREDICTIONS
from vip.tasks.json_rows import iterate_rows, open_bounded
from vip.tasks.records import Found, FoundMoments, Prediction, Sample
from vip.tasks.value.annotations import MOST_LETTERS, MOST_LINE_BYTES
from vip.tasks.value.datasets import Dataset
from vip.untrusted import MAX_INTEGER, MIN_INTEGER, one_line, parse_json, printable_json
from vip.wording import option

MOST_JSON_BYTES = 8 * 2**20  # of answers to questions; those of TVQA have 0.3 MB
PREDICTIONS = "Give a file of predictions, at most 100 a query."
MOST_OF_QUERY = 1000
"""Predictions of a query that are read; the first 100 of them count."""
MOST_SECONDS = 1e9
MOST_ID_DIGITS = 18
"""Of an id that is written as a number; it fits 64 bits."""
FORM = '{"VCMR": [{"desc_id": …, "predictions": […]}, …]}'
SECTIONS = {"VCMR": "vcmr", "SVMR": "svmr", "VR": "vr"}


def read_submission(path: Path, dataset: Dataset, samples: Sequence[Sample], names: Mapping[int, str]) -> Iterator[Prediction]:
    """Yield the predictions of a published file, each id as text.

    Args:
        names: of videos, by number; only for retrieval.

    Raises:
        InputError: the file is damaged, of another kind, or does not answer exactly these samples.
    """
    if dataset.category == "retrieval":
        predictions = _read_retrieval(path, samples, names)
    elif dataset.category == "qa":
        predictions = _read_answers(path, dataset)
    else:
        predictions = _read_captions(path)
    yield from _checked(predictions, path, samples)


def _checked(predictions: Iterable[Prediction], path: Path, samples: Sequence[Sample]) -> Iterator[Prediction]:
    """Yield the predictions of known samples; refuse ids that are there twice, too many or missing."""
    left = {sample.id for sample in samples}
    known, extra = len(left), 0
    for prediction in predictions:
        if prediction.sample_id in left:
            left.remove(prediction.sample_id)
            yield prediction
        else:
            extra += 1
            example = prediction.sample_id
    if extra:
        raise InputError(
            f'{path} has {extra:,} predictions that are double or of other samples, such as "{one_line(example)[:80]}".'
            " Give the predictions of this split, each id once."
        )
    if left:
        example = one_line(min(left))[:80]
        raise InputError(f'{path} lacks {len(left):,} of {known:,} ids, such as "{example}". Each must be answered: predict the rest.')


# ---------------------------------------------------------------- questions


def _read_answers(path: Path, dataset: Dataset) -> Iterator[Prediction]:
    try:
        with open_bounded(path, MOST_JSON_BYTES, advice=PREDICTIONS) as file:
            pairs = json.loads(file.read(), object_pairs_hook=list)  # a dict would hide ids that are there twice
    except (ValueError, RecursionError) as exc:
        raise InputError(f"{path} is no JSON ({one_line(str(exc))[:80]}). Expected {{id: index}}.") from exc
    if not isinstance(pairs, list) or not all(isinstance(pair, tuple) for pair in pairs):
        raise InputError(f"{path} is no JSON object. Expected {{id: index}}.")
    for key, value in pairs:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < dataset.options:
            raise InputError(
                f'{path}: the answer to "{one_line(key)[:80]}" is {_shown(value)[:40]}, and must be an index from 0 to'
                f" {dataset.options - 1}."
            )
        yield Prediction(sample_id=key, value=value)


# ---------------------------------------------------------------- captions


def _read_captions(path: Path) -> Iterator[Prediction]:
    with open_bounded(path, advice=PREDICTIONS) as file:
        number = 0
        while line := file.readline(MOST_LINE_BYTES + 1):
            number += 1
            if line.strip():
                try:
                    row = parse_json(line, most_bytes=MOST_LINE_BYTES)
                    key, caption = row["clip_id"], row["descs"][0]["desc"]
                    if not isinstance(key, str | int) or not isinstance(caption, str) or len(caption) > MOST_LETTERS:
                        raise ValueError("no caption")
                except (ValueError, LookupError, TypeError) as exc:
                    raise InputError(
                        f'{path}, line {number:,}: expected {{"clip_id": …, "descs": [{{"desc": text}}]}}, a text of at most'
                        f" {MOST_LETTERS:,} letters."
                    ) from exc
                yield Prediction(sample_id=str(key), value=caption)


# ---------------------------------------------------------------- retrieval


def _read_retrieval(path: Path, samples: Sequence[Sample], names: Mapping[int, str]) -> Iterator[Prediction]:
    """Yield what was found for each query; videos without a name count as wrong ones."""
    if not names:
        raise InputError(f"{path} names videos by number. Name <task>_video2dur_idx.json with {option('video_index', 'FILE')}.")
    found: dict[str, dict[str, Any]] = {}
    unnamed, count = 0, 0
    with open_bounded(path, advice=PREDICTIONS) as file:
        for section, row in iterate_rows(file, path, FORM):
            if section not in SECTIONS:
                raise InputError(f'{path} has a section "{one_line(section)[:40]}". Expected {", ".join(SECTIONS)}.')
            key, numbers, value = _read_query(row, section, names, path)
            of_query = found.setdefault(key, {})
            if SECTIONS[section] in of_query:
                raise InputError(f'{path}: {section} has the query "{one_line(key)[:80]}" twice. Give each once.')
            of_query[SECTIONS[section]] = value
            count += len(numbers)
            unnamed += len(numbers) - sum(map(names.__contains__, numbers))
    if count and unnamed == count:
        raise InputError(f"{path} names none of the videos of the index. Give the index of the same task and split.")
    _check_sections(path, found, samples)
    while found:
        key = next(iter(found))
        yield Prediction(sample_id=key, value=Found(**found.pop(key)))


def _check_sections(path: Path, found: Mapping[str, Mapping[str, Any]], samples: Sequence[Sample]) -> None:
    """Refuse a section that leaves queries out."""
    for section, name in SECTIONS.items():
        if any(name in value for value in found.values()):
            missing = [sample.id for sample in samples if name not in found.get(sample.id, ())]
            if missing:
                raise InputError(
                    f'{path}: {section} lacks {len(missing):,} of {len(samples):,} queries, such as "{one_line(missing[0])[:80]}".'
                    " Each one must be answered; predict the rest."
                )


def _read_query(row: Any, section: str, names: Mapping[int, str], path: Path) -> tuple[str, Sequence[int], object]:
    """Return the id of a query, the numbers of its videos, and its predictions."""
    key = read_id(row.get("desc_id")) if isinstance(row, dict) else None
    rows = row.get("predictions") if isinstance(row, dict) else None
    if key is None or not isinstance(rows, list):
        raise InputError(f'{path}: a row of {section} is not {{"desc_id": …, "predictions": […]}}.')
    where = f'{path}: the query "{one_line(key)[:80]}" of {section}'
    if len(rows) > MOST_OF_QUERY:
        raise InputError(f"{where} has {len(rows):,} predictions, and at most {MOST_PREDICTIONS} count. Give the best {MOST_PREDICTIONS}.")
    rows = rows[:MOST_PREDICTIONS]
    if section == "VR":
        numbers: Sequence[Any] = [one[0] if isinstance(one, list) and one else one for one in rows]
        _check_numbers(numbers, where)
        return key, numbers, _named(numbers, names)
    if not set(map(type, rows)) <= {list} or not set(map(len, rows)) <= {3, 4}:
        raise InputError(f"{where} has a prediction that is not [video number, start, end, score].")
    columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=False))[:3]  # a score may be missing
    numbers, starts, ends = columns or ((), (), ())
    _check_numbers(numbers, where)
    _check_times(starts, ends, where)
    return (
        key,
        numbers,
        FoundMoments(videos=_named(numbers, names), starts_s=tuple(map(float, starts)), ends_s=tuple(map(float, ends))),
    )


def _named(numbers: Sequence[int], names: Mapping[int, str]) -> tuple[str, ...]:
    found = tuple(map(names.get, numbers))
    return tuple([name or f"#{number}" for name, number in zip(found, numbers, strict=True)])


def _check_times(starts: Sequence[Any], ends: Sequence[Any], where: str) -> None:
    """Refuse times that are no numbers, are too far away, or end before they begin; the few queries with a fault are looked at again."""
    are_numbers = {*map(type, starts), *map(type, ends)} <= {int, float}
    if not starts or (are_numbers and all(map(le, starts, ends)) and min(starts) > -MOST_SECONDS and max(ends) < MOST_SECONDS):
        return
    for start, end in zip(starts, ends, strict=True):
        if type(start) not in (int, float) or type(end) not in (int, float) or not -MOST_SECONDS < start <= end < MOST_SECONDS:
            raise InputError(f"{where} has a moment from {_shown(start)[:20]} to {_shown(end)[:20]}: these are no times.")


def _check_numbers(numbers: Sequence[Any], where: str) -> None:
    if set(map(type, numbers)) <= {int} and (not numbers or (min(numbers) >= MIN_INTEGER and max(numbers) <= MAX_INTEGER)):
        return
    for number in numbers:
        is_whole = type(number) is int or (isinstance(number, float) and number.is_integer())
        if not is_whole or not MIN_INTEGER <= number <= MAX_INTEGER:
            raise InputError(f"{where} names a video {_shown(number)[:40]}: it must be a number of the index of videos.")


# ---------------------------------------------------------------- writing


def write_submission(file: IO[str], dataset: Dataset, predictions: Iterable[tuple[Sample, Prediction]], numbers: Mapping[str, int]) -> None:
    """Write predictions in the form of the server.

    Args:
        numbers: of videos by name; only for retrieval.

    Raises:
        InputError: a sample has no answer, or names a video without a number.
    """
    for sample, prediction in (rows := list(predictions)):
        if prediction.value is None:
            raise InputError(f'"{one_line(sample.id)[:80]}" has no answer ({prediction.status}), and the server takes none without.')
    if dataset.category == "qa":
        json.dump({sample.id: prediction.value for sample, prediction in rows}, file)
    elif dataset.category == "captioning":
        for sample, prediction in rows:
            row = {"video_id": sample.clip or sample.video, "clip_id": id_as_written(sample.id), "descs": [{"desc": prediction.value}]}
            file.write(printable_json(row) + "\n")
    else:
        json.dump(_sections(rows, numbers), file)


def _sections(rows: Sequence[tuple[Sample, Prediction]], numbers: Mapping[str, int]) -> dict[str, Any]:
    sections: dict[str, Any] = {}
    for sample, prediction in rows:
        found = prediction.value
        if not isinstance(found, Found):
            raise InputError(f'The prediction of "{one_line(sample.id)[:80]}" names no videos.')
        for section, name in SECTIONS.items():
            value = getattr(found, name)
            if value is not None:
                sections.setdefault(section, []).append({"desc_id": id_as_written(sample.id), "predictions": _numbered(value, numbers)})
    return sections


def _numbered(value: FoundMoments | tuple[str, ...], numbers: Mapping[str, int]) -> list[Any]:
    try:
        if isinstance(value, tuple):
            return [numbers[name] for name in value]
        columns = enumerate(zip(value.videos, value.starts_s, value.ends_s, strict=True))
        return [[numbers[name], start, end, len(value.videos) - place] for place, (name, start, end) in columns]
    except KeyError as exc:
        raise InputError(
            f'The video "{one_line(str(exc.args[0]))[:80]}" has no number in the index. Give the index of this split.'
        ) from exc


# ---------------------------------------------------------------- ids and what is shown


def read_id(value: object) -> str | None:
    """Return an id as text; None for what is none, such as a number beyond 64 bits."""
    if isinstance(value, str):
        return value
    return str(value) if type(value) is int and MIN_INTEGER <= value <= MAX_INTEGER else None


def id_as_written(key: str) -> int | str:
    """Return a number for an id that is written as one, and the text of any other: `007` is not `7`."""
    is_number = len(key) <= MOST_ID_DIGITS and key.isascii() and key.isdigit() and (key == "0" or not key.startswith("0"))
    return int(key) if is_number else key


def _shown(value: object) -> str:
    """Return a value for a message; lists may be too deep, and numbers too long, to be written."""
    if isinstance(value, list | tuple | dict):
        return "a list or an object"
    if isinstance(value, int) and not MIN_INTEGER <= value <= MAX_INTEGER:
        return "a number beyond 64 bits"
    return one_line(str(value))
