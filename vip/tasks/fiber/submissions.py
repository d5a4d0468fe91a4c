"""What models filled the blanks of FIBER with: a list in the order of the records, or an object of ids of clips and phrases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from vip.errors import InputError
from vip.tasks.json_rows import open_bounded
from vip.tasks.records import Prediction, Sample
from vip.untrusted import one_line, parse_json

MOST_BYTES = 64 * 2**20
FORM = '{"<id>_<start>_<end>": phrase, …}, or [phrase, …] in the order of the records'


def is_records(path: Path) -> bool:
    """Return whether a file of captions has blanks already; no more than its first 64 KiB are read."""
    with open_bounded(path, 2**40) as file:
        return b'"masked_caption"' in file.read(2**16)


def read_fillers(path: Path, samples: Sequence[Sample]) -> Iterator[Prediction]:
    """Yield the prediction of each sample; a phrase of no words counts as it is, as in the authors' code.

    Raises:
        InputError: the file is damaged, or does not answer exactly these samples.
    """
    with open_bounded(path, MOST_BYTES) as file:
        try:
            value = parse_json(file.read())
        except ValueError as exc:
            raise InputError(f"{path} is no JSON ({one_line(str(exc))[:80]}). Expected {FORM}.") from exc
    if isinstance(value, list):
        if len(value) != len(samples):
            raise InputError(f"{path} has {len(value):,} phrases for {len(samples):,} records. Give one a record, in their order.")
        value = {sample.id: phrase for sample, phrase in zip(samples, value, strict=True)}
    if not isinstance(value, dict) or not all(isinstance(phrase, str) for phrase in value.values()):
        raise InputError(f"{path} holds something else than phrases. Expected {FORM}.")
    yield from _matched(path, value, samples)


def _matched(path: Path, phrases: dict[str, str], samples: Sequence[Sample]) -> Iterator[Prediction]:
    for sample in samples:
        phrase = phrases.pop(sample.id, None)
        if phrase is None:
            phrase = phrases.pop(sample.video, None)
        if phrase is None:
            raise InputError(f'{path} has no phrase for "{one_line(sample.id)[:80]}". Each blank must be filled: predict the rest.')
        yield Prediction(sample_id=sample.id, value=phrase)
    if phrases:
        example = one_line(next(iter(phrases)))[:80]
        raise InputError(f'{path} has {len(phrases):,} phrases of other videos, such as "{example}". Give the phrases of these records.')
