"""The annotations of VALUE as they were published, one record a line; TVQA's solutions are one JSON of shows with their questions.

In: paths of annotations and of the index of videos. Out: samples, and the names of videos by their number. The files are data: bounded,
and a message names the line.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from vip.errors import InputError
from vip.files import read_named
from vip.tasks.json_rows import open_bounded
from vip.tasks.records import Choice, FreeText, Moment, Rank, Reference, Sample
from vip.tasks.value.datasets import Dataset
from vip.untrusted import one_line, parse_json
from vip.wording import option

VERSION = 1
MOST_BYTES = 2**30  # of a file of lines
MOST_LINE_BYTES = 2**20
MOST_LETTERS = 10_000  # of a query, a question, a caption
MOST_ID_LETTERS = 500
MOST_JSON_BYTES = 64 * 2**20
DEFAULT_QUESTION = "Which option is right?"  # solutions hold no questions
STATEMENT_OPTIONS: tuple[str, ...] = ("no", "yes")  # 0 and 1 in the files


def read_samples(path: Path, dataset: Dataset) -> Iterator[Sample]:
    """Yield the samples of a file of annotations, in order; one a query, a question or a clip.

    Raises:
        InputError: the file is damaged, of another task, or has an id twice.
    """
    seen: dict[str, int] = {}
    for line, row in read_rows(path, dataset):
        try:
            sample = _READERS[dataset.kind](row, dataset)
        except (KeyError, TypeError, ValueError, LookupError, AttributeError) as exc:
            what = one_line(str(exc))[:200] if isinstance(exc, ValueError) else "a field has another form"
            what = f"it has no {exc.args[0]}" if isinstance(exc, KeyError) else what
            _refuse(path, line, f"{what}. Give the annotations of {dataset.title} as they were published")
        if sample.id in seen:
            _refuse(path, line, f'the id "{one_line(sample.id)[:80]}" is that of line {seen[sample.id]} too')
        seen[sample.id] = line
        yield sample
    if not seen:
        raise InputError(f"{path} holds nothing. Give the annotations of {dataset.title} as they were published.")


def read_video_index(path: Path, split: str | None = None) -> dict[int, str]:
    """Return the names of videos by the number that predictions use: the second number of each in `<task>_video2dur_idx.json`.

    Args:
        split: None: all splits of the file. `test` is all that begin so: the queries of TVR's were merged, its videos were not.

    Raises:
        InputError: the file is damaged, or does not have the split.
    """
    try:
        value = parse_json(_unpacked(path, read_named(path, most_bytes=MOST_JSON_BYTES)))
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror}. Give <task>_video2dur_idx.json as it was published.") from exc
    except ValueError as exc:
        raise InputError(f"{path} is no JSON ({one_line(str(exc))[:80]}). Give <task>_video2dur_idx.json as it was published.") from exc
    splits = value if isinstance(value, dict) else {}
    chosen = list(splits) if split is None else [name for name in splits if name == split or name.startswith(f"{split}_")]
    if split is not None and not chosen:
        raise InputError(f'{path} has no split "{one_line(split)}", but {", ".join(map(one_line, list(splits)[:9])) or "none"}.')
    names: dict[int, str] = {}
    for group in (splits[name] for name in chosen):
        for name, pair in group.items() if isinstance(group, dict) else ():
            if not isinstance(pair, list) or len(pair) != 2 or type(pair[1]) is not int:
                raise InputError(f"{path}: the video {one_line(name)[:80]} has no length and number. Give the file as it was published.")
            names[pair[1]] = name
    if not names:
        raise InputError(f"{path} names no video. Give <task>_video2dur_idx.json as it was published.")
    return names


def read_rows(path: Path, dataset: Dataset) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the rows of a file with their lines."""
    if dataset.key == "tvqa" and path.suffix == ".json":
        yield from _solutions(path)
        return
    with open_bounded(path, MOST_BYTES, advice=f"Give the annotations of {dataset.title} as they were published.") as file:
        number = 0
        while line := file.readline(MOST_LINE_BYTES + 1):
            number += 1
            if len(line) > MOST_LINE_BYTES:
                _refuse(path, number, f"it has more than {MOST_LINE_BYTES:,} bytes. Give a file with one JSON object a line")
            if line.strip():
                yield number, _object(path, number, line)


def _object(path: Path, number: int, line: bytes) -> Mapping[str, Any]:
    try:
        row = parse_json(line)
    except ValueError as exc:
        _refuse(path, number, f"it is no JSON ({one_line(str(exc))[:80]}). Give a file with one JSON object a line")
    if not isinstance(row, dict):
        _refuse(path, number, "it is no JSON object. Give a file with one JSON object a line")
    return row


def _unpacked(path: Path, data: bytes) -> bytes:
    if path.suffix != ".gz":
        return data
    try:
        return zlib.decompressobj(wbits=31).decompress(data, MOST_JSON_BYTES)
    except zlib.error as exc:
        raise ValueError("damaged gzip") from exc


def _solutions(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the right answers of TVQA's solutions, `{"solution": {show: {qid: index}}}`, which hold no questions."""
    try:
        value = parse_json(read_named(path, most_bytes=MOST_JSON_BYTES))
        shows = value["solution"]
        rows = [(show, qid, answer) for show, answers in shows.items() for qid, answer in answers.items()]
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror}.") from exc
    except (ValueError, LookupError, TypeError, AttributeError) as exc:
        raise InputError(f'{path} has no solution by show, {{"solution": {{show: {{qid: index}}}}}}. Give it as it was published.') from exc
    for number, (show, qid, answer) in enumerate(rows, 1):
        yield number, {"qid": qid, "vid_name": show, "answer_idx": answer, **{f"a{index}": f"option {index}" for index in range(5)}}


def _sample(row: Mapping[str, Any], dataset: Dataset, key: str, ask: Any, reference: Reference | None) -> Sample:
    groups = {"type": (str(row["type"]),)} if isinstance(row.get("type"), str) else {}
    sample_id = _identifier(row, key)
    clip = next((_identifier(row, name) for name in ("vid_name", "video_id", "file") if name in row), sample_id)
    is_cut = dataset.key.startswith("yc2")  # clips are named <video>_<number>
    video = (clip.rpartition("_")[0] or clip) if is_cut else clip
    is_clip = dataset.kind == "caption" and row.get("ts") is not None
    start_s, end_s = _spans(row["ts"])[0] if is_clip else (None, None)
    return Sample(
        id=sample_id,
        task=dataset.name,
        task_version=VERSION,
        video=video,
        clip=clip if is_cut else None,
        start_s=start_s,
        end_s=end_s,
        groups=groups,
        ask=ask,
        reference=reference,
    )


def _read_query(row: Mapping[str, Any], dataset: Dataset) -> Sample:
    """Return a query: `desc_id, desc`, and where the answers are public `vid_name` and `ts`, one span or several."""
    is_moment = dataset.kind == "vcmr"
    reference = None
    if "vid_name" in row and not is_moment:
        reference = Reference(values=((_text(row, "vid_name"),),))
    elif "vid_name" in row and row.get("ts") is not None:
        moments = tuple(Moment(video=_text(row, "vid_name"), start_s=start, end_s=end) for start, end in _spans(row["ts"]))
        reference = Reference(values=(moments,))
    return _sample(row, dataset, "desc_id", Rank(query=_text(row, "desc"), moments=is_moment), reference)


def _read_question(row: Mapping[str, Any], dataset: Dataset) -> Sample:
    """Return a question in one of three forms: `qid, q, a0 …, answer_idx`, VIOLIN's `statement, answer`, VLEP's `events, answer`."""
    key, answer, question = "example_id", row.get("answer"), DEFAULT_QUESTION
    if dataset.key == "violin":
        question, options = _text(row, "statement"), STATEMENT_OPTIONS
    elif dataset.key == "vlep":
        options = tuple(_text({"event": one}, "event") for one in row["events"])
    else:
        key, answer = "qid", row.get("answer_idx")
        question = _text(row, "q") if row.get("q") else DEFAULT_QUESTION
        options = tuple(_text(row, f"a{index}") for index in range(dataset.options + 1) if index < dataset.options or f"a{index}" in row)
    if len(options) != dataset.options:
        raise ValueError(f"it has {len(options)} options and not {dataset.options}")
    reference = None if answer is None else Reference(values=(_index(answer, dataset.options),))
    return _sample(row, dataset, key, Choice(question=question, options=options), reference)


def _read_clip(row: Mapping[str, Any], dataset: Dataset) -> Sample:
    """Return a clip: `clip_id, vid_name, ts`, and where the answers are public `descs`."""
    captions = tuple(_text(one, "desc") for one in row.get("descs") or ())
    return _sample(row, dataset, "clip_id", FreeText(question=dataset.summary), Reference(values=captions) if captions else None)


_READERS = {"vcmr": _read_query, "vr": _read_query, "qa": _read_question, "caption": _read_clip}


def _text(row: Mapping[str, Any], key: str) -> str:
    value = row[key]
    if not isinstance(value, str) or len(value) > MOST_LETTERS:
        raise ValueError(f"{key} is no text of at most {MOST_LETTERS:,} letters")
    return value


def _identifier(row: Mapping[str, Any], key: str) -> str:
    """Return an id, or the name of a video, as text."""
    value = row[key]
    if type(value) not in (int, str) or not 0 < len(str(value)) <= MOST_ID_LETTERS:
        raise ValueError(f"{key} is {one_line(str(value))[:40] or 'empty'}, and no name or number")
    return str(value)


def _spans(value: Any) -> list[tuple[float, float]]:
    """Return `[start, end]`, or a list of several, in seconds."""
    spans = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    for span in spans:
        is_pair = isinstance(span, list) and len(span) == 2 and all(type(time) in (int, float) for time in span)
        if not is_pair or not span[0] <= span[1]:
            raise ValueError(f"ts is {str(span)[:40]} and not [start, end] in seconds")
    return [(float(start), float(end)) for start, end in spans]


def _index(value: Any, options: int) -> int:
    is_number = isinstance(value, int) or (isinstance(value, str) and value.isdecimal() and value.isascii())
    index = int(value) if is_number else -1
    if not 0 <= index < options:
        raise ValueError(f"the answer {one_line(str(value))[:20]} is no index from 0 to {options - 1}")
    return index


def _refuse(path: Path, line: int, problem: str) -> NoReturn:
    raise InputError(f"{path}, line {line:,}: {problem}.")


def index_advice(dataset: Dataset) -> str:
    """Return what to do where the index of videos is missing."""
    return f"Name {dataset.key}_video2dur_idx.json with {option('video_index', 'FILE')}."
