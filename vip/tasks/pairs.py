"""Samples and their predictions, joined on the id: what metrics score.

In: samples.jsonl and predictions.jsonl, or lists of samples and predictions that a task read from published files. Out: `Pairs`, a sequence
that reads each pair from the disk when it is asked for, so that memory does not grow with the texts. The files are somebody else's: every
row is checked, and what does not fit is one sentence with its line.
"""

from __future__ import annotations

import hashlib
import json
import sys
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Literal, Protocol, TypeVar, overload

from pydantic import ValidationError

from vip import files
from vip.errors import InputError
from vip.metrics import Status
from vip.records import Record
from vip.store import MOST_PROBLEM_LETTERS, parse_record
from vip.tasks.records import Prediction, Sample
from vip.untrusted import DAMAGE, one_line
from vip.wording import call, counted, option

RowT = TypeVar("RowT", bound=Record)
RowT_co = TypeVar("RowT_co", bound=Record, covariant=True)
Missing = Literal["refuse", "wrong", "leave-out"]
"""What is done with samples that have no prediction."""

MOST_LINE_BYTES = 16 * 2**20
EXAMPLES = 3
"""Ids that a message names."""


class Rows(Protocol[RowT_co]):
    """Rows by their number."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> RowT_co: ...


class StoredRows(Rows[RowT]):
    """The rows of a JSONL file, each read when it is asked for.

    Args:
        path: a file that a command names.
        kind: the record of a row.
        advice: the end of messages on damage: what to do.
    """

    def __init__(self, path: Path, kind: type[RowT], *, advice: str) -> None:
        self.path, self.kind, self.advice = path, kind, advice
        self._places: list[int] = []
        self._file: IO[bytes] | None = None
        self.sha256 = ""

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> RowT:
        if self._file is None:
            self._file = self._open()
            weakref.finalize(self, self._file.close)
        self._file.seek(self._places[index])
        return self._parse(self._file.readline(MOST_LINE_BYTES), f"row {index + 1}")

    def scan(self) -> Iterator[RowT]:
        """Yield every row once, and remember where each begins.

        Raises:
            InputError: the file cannot be read, or a line is damaged.
        """
        digest, place = hashlib.sha256(), 0
        self._places = []
        with self._open() as file:
            for number, line in enumerate(_lines(file, self.path), 1):
                digest.update(line)
                if line.strip():
                    self._places.append(place)
                    yield self._parse(line, f"line {number}")
                place += len(line)
        self.sha256 = digest.hexdigest()

    def _open(self) -> IO[bytes]:
        try:
            return files.open_named(self.path)
        except OSError as exc:
            raise InputError(f"{self.path} cannot be read: {exc.strerror}. {self.advice}") from exc

    def _parse(self, line: bytes, where: str) -> RowT:
        try:
            return parse_record(line, self.kind)
        except ValidationError as exc:
            error = exc.errors()[0]
            field = ".".join(map(str, error["loc"]))
            raise InputError(
                f"{self.path}, {where}: no {self.kind.__name__.lower()} ({one_line(field[:MOST_PROBLEM_LETTERS] + ': ' if field else '')}"
                f"{one_line(error['msg'])[:MOST_PROBLEM_LETTERS]}). {self.advice}"
            ) from exc
        except DAMAGE as exc:
            problem = one_line(str(exc))[:MOST_PROBLEM_LETTERS]
            raise InputError(f"{self.path}, {where}: no {self.kind.__name__.lower()} ({problem}). {self.advice}") from exc


def _lines(file: IO[bytes], path: Path) -> Iterator[bytes]:
    while line := file.readline(MOST_LINE_BYTES):
        if len(line) == MOST_LINE_BYTES:
            raise InputError(f"{path} has a line of more than {MOST_LINE_BYTES:,} bytes. Give a file of one JSON object a line.")
        yield line


@dataclass(frozen=True, slots=True)
class SampleKey:
    """What statistics need of a sample."""

    id: str
    video: str
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Pairs(Sequence[tuple[Sample, Prediction]]):
    """Samples with their predictions, in the order of the samples; each pair is read when it is asked for.

    Args:
        samples: the rows of samples.
        predictions: the rows of predictions; or those that were read from a published file.
        joined: for each pair, its key, the number of its sample, and of its prediction (None: there is none).
    """

    def __init__(self, samples: Rows[Sample], predictions: Rows[Prediction], joined: Sequence[tuple[SampleKey, int, int | None]]) -> None:
        self._samples, self._predictions, self._joined = samples, predictions, joined

    def __len__(self) -> int:
        return len(self._joined)

    @overload
    def __getitem__(self, index: int) -> tuple[Sample, Prediction]: ...
    @overload
    def __getitem__(self, index: slice) -> Pairs: ...
    def __getitem__(self, index: int | slice) -> tuple[Sample, Prediction] | Pairs:
        if isinstance(index, slice):
            return Pairs(self._samples, self._predictions, self._joined[index])
        key, sample, prediction = self._joined[index]
        return self._samples[sample], _missing(key.id) if prediction is None else self._predictions[prediction]

    def take(self, indices: Iterable[int]) -> Pairs:
        """Return the pairs with these numbers."""
        return Pairs(self._samples, self._predictions, [self._joined[index] for index in indices])

    @property
    def keys(self) -> list[SampleKey]:
        return [key for key, _, _ in self._joined]


def _missing(sample_id: str) -> Prediction:
    return Prediction(sample_id=sample_id, value=None, status="missing", reason="the file has no prediction of this sample")


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedFile:
    """One file of predictions beside its samples."""

    name: str
    """Of the file, without its folder."""
    task: str
    """As the samples name it."""
    task_version: int
    pairs: Pairs = field(repr=False)
    statuses: tuple[Status, ...] = field(repr=False)
    """Of each prediction."""
    left_out: int = 0
    """Samples without a prediction that were left out."""
    samples_sha256: str | None = None
    predictions_sha256: str = ""
    engines: tuple[str, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)
    pictures: tuple[int, int] = (0, 0)
    """The fewest and the most pictures that a sample shows."""
    frames_chosen: tuple[str, ...] = ()
    """How the samples say that their pictures were chosen."""
    described: tuple[int, int] = (0, 0)
    """The fewest and the most described keyframes that a sample shows."""
    samples: Path | None = None
    """The file of samples; None where a task read them from published files."""


@dataclass(slots=True)
class _SampleFacts:
    """What is kept of samples while they are read."""

    keys: list[SampleKey] = field(default_factory=list)
    tasks: dict[tuple[str, int], str] = field(default_factory=dict)
    """Task and version -> the first sample of it."""
    pictures: list[int] = field(default_factory=list)
    chosen: dict[str, None] = field(default_factory=dict)
    described: list[int] = field(default_factory=list)
    asked: set[tuple[str, int]] = field(default_factory=set)
    """Representations and numbers of the descriptions that are asked for."""
    without_reference: list[str] = field(default_factory=list)

    def add(self, sample: Sample) -> None:
        groups = tuple((sys.intern(name), tuple(map(sys.intern, values))) for name, values in sorted(sample.groups.items()))
        self.keys.append(SampleKey(sample.id, sys.intern(sample.video), groups))
        self.tasks.setdefault((sample.task, sample.task_version), sample.id)
        self.pictures.append(sum(p.kind == "picture" or (p.kind == "keyframe" and p.picture is not None) for p in sample.context))
        if sample.frames_chosen is not None:
            self.chosen.setdefault(sample.frames_chosen)
        self.described.append(sum(p.kind == "keyframe" and (p.famous or p.dense_caption) is not None for p in sample.context))
        if sample.ask.kind == "describe_keyframes":
            self.asked.add((sample.ask.representation, sample.ask.count))
        if sample.reference is None:
            self.without_reference.append(sample.id)


def join_files(samples: Path, predictions: Path, *, missing: Missing = "refuse") -> JoinedFile:
    """Join two files of vip.

    Raises:
        InputError: a file is damaged, or ids are unknown, double or missing.
    """
    rows = StoredRows(samples, Sample, advice=f"Make it again with {call('samples')}.")
    facts = _SampleFacts()
    for sample in rows.scan():
        facts.add(sample)
    answers = StoredRows(predictions, Prediction, advice=f"Make it again with {call('predict')}.")
    digests = lambda: (rows.sha256, answers.sha256)  # noqa: E731 - known when both have been read
    return replace(_join(samples.name, predictions.name, rows, facts, answers, answers.scan(), missing, digests), samples=samples)


def join_lists(
    samples: Sequence[Sample],
    predictions: Iterable[Prediction],
    *,
    name: str,
    samples_name: str,
    samples_sha256: str | None,
    predictions_sha256: str,
    missing: Missing = "refuse",
) -> JoinedFile:
    """Join what a task read from published files; arguments and errors as of `join_files`."""
    facts = _SampleFacts()
    for sample in samples:
        facts.add(sample)
    rows = list(predictions)
    return _join(samples_name, name, samples, facts, rows, rows, missing, lambda: (samples_sha256, predictions_sha256))


def _join(
    samples_name: str,
    name: str,
    samples: Rows[Sample],
    facts: _SampleFacts,
    predictions: Rows[Prediction],
    scanned: Iterable[Prediction],
    missing: Missing,
    digests: Any,
) -> JoinedFile:
    task, version = _only_task(facts, samples_name)
    known = {key.id: index for index, key in enumerate(facts.keys)}
    if len(known) < len(facts.keys):
        seen: set[str] = set()
        double = [key.id for key in facts.keys if key.id in seen or seen.add(key.id)]  # type: ignore[func-returns-value]
        raise InputError(f"{samples_name} names {_some(double, 'sample')} twice. Make the samples again.")
    places: dict[str, int] = {}
    found: list[Status] = []
    unknown: list[str] = []
    double = []
    engines: dict[str, None] = {}
    parameters: dict[str, set[str]] = {}
    for number, prediction in enumerate(scanned):
        (unknown if prediction.sample_id not in known else double if prediction.sample_id in places else []).append(prediction.sample_id)
        places.setdefault(prediction.sample_id, number)
        found.append(prediction.status)
        if prediction.engine is not None:
            engines.setdefault(prediction.engine)
        for one in prediction.calls:
            for key, value in {"prompt": f"{one.prompt}@{one.prompt_sha256[:12]}", **one.parameters}.items():
                parameters.setdefault(key, set()).add(str(value))
    absent = [key.id for key in facts.keys if key.id not in places]
    _check_ids(name, samples_name, unknown, double, absent if missing == "refuse" else [], len(places), len(facts.keys))
    without = set(facts.without_reference)
    if without:
        raise InputError(
            f"{samples_name} has no answers for {_some(facts.without_reference, 'sample')}: they are hidden, or were kept apart."
            " Give samples with their references."
        )
    joined = [(key, index, places.get(key.id)) for index, key in enumerate(facts.keys) if missing != "leave-out" or key.id in places]
    samples_sha256, predictions_sha256 = digests()
    for representation, count in facts.asked:
        parameters.setdefault("representation", set()).add(representation)
        parameters.setdefault("targets", set()).add(str(count))
    return JoinedFile(
        name=name,
        task=task,
        task_version=version,
        pairs=Pairs(samples, predictions, joined),
        statuses=tuple("missing" if number is None else found[number] for _, _, number in joined),
        left_out=len(facts.keys) - len(joined),
        samples_sha256=samples_sha256,
        predictions_sha256=predictions_sha256,
        engines=tuple(engines),
        parameters={key: _shown_values(values) for key, values in sorted(parameters.items())},
        pictures=(min(facts.pictures), max(facts.pictures)),
        frames_chosen=tuple(facts.chosen),
        described=(min(facts.described), max(facts.described)),
    )


def _shown_values(values: set[str]) -> str | list[str]:
    """Return the value of a parameter; where calls differ in it, the few there are, or their number: each sample has its own example."""
    if len(values) == 1:
        return next(iter(values))
    return sorted(values) if len(values) <= EXAMPLES else counted(len(values), "value")


def _only_task(facts: _SampleFacts, name: str) -> tuple[str, int]:
    """Return the task of the samples and its version.

    Raises:
        InputError: there is no sample, or they are of several tasks.
    """
    if not facts.keys:
        raise InputError(f"{name} has no samples. Make some with {call('samples', 'SOURCE', task='NAME')}.")
    if len(facts.tasks) > 1:
        named = ", ".join(f"{one_line(task)} version {version}" for task, version in sorted(facts.tasks))
        raise InputError(f"{name} has samples of several tasks ({named}). Score each in a file of its own.")
    return next(iter(facts.tasks))


def _check_ids(
    name: str, samples_name: str, unknown: Sequence[str], double: Sequence[str], absent: Sequence[str], found: int, asked: int
) -> None:
    """Refuse predictions that do not fit the samples; each kind of fault with its number and its first ids.

    Raises:
        InputError: ids are unknown, double or missing.
    """
    faults = [
        f"{counted(len(ids), noun)} {what} ({_list(ids)})"
        for ids, noun, what in (
            (unknown, "prediction", f"of samples that {samples_name} does not have"),
            (double, "prediction", "of samples that have one already"),
            (absent, "sample", "without a prediction"),
        )
        if ids
    ]
    if not faults:
        return
    if len(unknown) == found and unknown:
        advice = "These are predictions of other samples: give theirs."
    elif absent and not unknown and not double:
        wrong, left_out = option("missing", "wrong"), option("missing", "leave-out")
        advice = f"Predict the rest, or choose how the missing ones count: {wrong}, or {left_out}."
    else:
        advice = "Give the samples that these predictions were made for, each answered once."
    raise InputError(f"{name} does not fit the {counted(asked, 'sample')} of {samples_name}: {'; '.join(faults)}. {advice}")


def _some(ids: Sequence[str], noun: str) -> str:
    return f"{counted(len(ids), noun)} ({_list(ids)})"


def _list(ids: Sequence[str]) -> str:
    shown = ", ".join(f'"{one_line(name)[:80]}"' for name in ids[:EXAMPLES])
    return f"{shown}, …" if len(ids) > EXAMPLES else shown


def is_ours(path: Path) -> bool:
    """Return whether a file is JSONL of predictions in vip's own form; no more than its first line is read.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with files.open_named(path) as file:
            row = json.loads(file.readline(MOST_LINE_BYTES))  # ids need not be UTF-8, as names of files need not
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror}. Give a file of predictions.") from exc
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and "sample_id" in row
