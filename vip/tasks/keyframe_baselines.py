"""Answers without a model: what a figure of infilling or prediction is worth.

copy-nearest      the description of the nearest keyframe that is given
frequent-words    the words that occur most often in what is given, as many as it has on average
random-keyframe   a keyframe of another video, drawn by the seed
nearest-text      the targets of the sample of another video whose given keyframes have the most similar words
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from vip.errors import InputError
from vip.records import Famous
from vip.tasks.files import chance_of, digest_of
from vip.tasks.records import DescribeKeyframes, DescriptionText, KeyframeDescription, Prediction, Sample
from vip.tasks.task import Baseline, ReadSamples
from vip.untrusted import one_line

WORD = re.compile(r"\w+")
POOL = 2000  # samples that are compared with, drawn by the seed
BUCKETS = 4096  # of hashed words
BLOCK = 500

Answer = Callable[[Sample], tuple[DescriptionText, ...]]


class NeedsOtherVideosError(InputError):
    """The baseline answers from other videos, and there is only one."""


def copy_nearest(read: ReadSamples, seed: int) -> Iterator[Prediction]:
    """Copy the nearest given keyframe; of two as near the one before."""
    yield from _answer_all(read, "copy-nearest", _nearest)


def _nearest(sample: Sample) -> tuple[DescriptionText, ...]:
    ask, given = _ask(sample), _given(sample)
    if not sample.task.startswith("infilling"):
        return tuple(given[-1] for _ in range(ask.count))
    before, after = given[len(given) // 2 - 1], given[len(given) // 2]
    return tuple(before if place < ask.count - place else after for place in range(ask.count))


def frequent_words(read: ReadSamples, seed: int) -> Iterator[Prediction]:
    """Answer with the most frequent words of what is given, field by field."""
    yield from _answer_all(read, "frequent-words", _frequent)


def _frequent(sample: Sample) -> tuple[DescriptionText, ...]:
    given = _given(sample)
    if _ask(sample).representation == "dense":
        text = DescriptionText(dense_caption=_most_frequent([one.dense_caption or "" for one in given]) or "nothing")
    else:
        rows = [one.famous for one in given if one.famous is not None]
        fields: dict[str, Any] = {name: _most_frequent([_in_words(getattr(row, name)) for row in rows]) for name in Famous.model_fields}
        text = DescriptionText(famous=Famous(**{**fields, "objects": tuple(fields["objects"].split())}))
    return (text,) * _ask(sample).count


def _most_frequent(texts: Sequence[str]) -> str:
    """Return as many words as a text has on average; of words as frequent, those that come first."""
    words = [word for text in texts for word in WORD.findall(text.lower())]
    many = round(len(words) / max(1, len(texts)))
    return " ".join(word for word, _ in Counter(words).most_common(many))


def random_keyframe(read: ReadSamples, seed: int) -> Iterator[Prediction]:
    """Answer with given keyframes of samples of other videos."""
    pool = _pool(read, seed)

    def answer(sample: Sample) -> tuple[DescriptionText, ...]:
        draw = chance_of(f"{seed} {sample.id}")
        others = [text for other in _of_other_videos(pool, sample) for text in _given(other)]
        return tuple(draw.choice(others) for _ in range(_ask(sample).count))

    yield from _answer_all(read, "random-keyframe", answer)


def nearest_text(read: ReadSamples, seed: int) -> Iterator[Prediction]:
    """Answer with the targets of the sample of another video whose given keyframes are most alike, by the cosine of their words."""
    pool = [sample for sample in _pool(read, seed) if sample.reference is not None]
    if not pool:
        raise InputError("The baseline nearest-text needs samples with references. Take another one, or other samples.")
    known = np.stack([_bag(sample) for sample in pool])
    videos = np.array([sample.video for sample in pool])
    samples = read()
    while block := list(islice(samples, BLOCK)):
        cosines = np.stack([_bag(sample) for sample in block]) @ known.T
        for sample, row in zip(block, cosines, strict=True):
            _of_other_videos(pool, sample)
            best = pool[int(np.argmax(np.where(videos == sample.video, -1, row)))]
            assert best.reference is not None
            yield _prediction(sample, "nearest-text", best.reference.values[0])  # type: ignore[arg-type]


BASELINES: Mapping[str, Baseline] = {
    "copy-nearest": copy_nearest,
    "frequent-words": frequent_words,
    "random-keyframe": random_keyframe,
    "nearest-text": nearest_text,
}


def _answer_all(read: ReadSamples, name: str, answer: Answer) -> Iterator[Prediction]:
    for sample in read():
        yield _prediction(sample, name, answer(sample))


def _prediction(sample: Sample, name: str, value: tuple[DescriptionText, ...]) -> Prediction:
    return Prediction(sample_id=sample.id, value=value, engine=f"baseline:{name}")


def _pool(read: ReadSamples, seed: int) -> list[Sample]:
    """Return so many samples, drawn by the seed, each as likely as any other."""
    return heapq.nsmallest(POOL, read(), key=lambda sample: digest_of(f"{seed} {sample.id}", 8))


def _of_other_videos(pool: Sequence[Sample], sample: Sample) -> list[Sample]:
    others = [other for other in pool if other.video != sample.video]
    if not others:
        raise NeedsOtherVideosError(
            f"All samples are of one video ({sample.video}); this baseline needs another. Make samples from several runs."
        )
    return others


def _ask(sample: Sample) -> DescribeKeyframes:
    if not isinstance(sample.ask, DescribeKeyframes):
        raise InputError(f"{sample.id} asks for no keyframes; this baseline answers infilling and prediction.")
    return sample.ask


def _given(sample: Sample) -> list[DescriptionText]:
    pieces = [piece for piece in sample.context if isinstance(piece, KeyframeDescription) and (piece.famous or piece.dense_caption)]
    if not pieces:
        raise InputError(f'The sample "{one_line(sample.id)[:80]}" gives no described keyframe. Make samples of this task again.')
    return [DescriptionText(famous=piece.famous, dense_caption=piece.dense_caption) for piece in pieces]


def _in_words(value: str | Sequence[str]) -> str:
    return value if isinstance(value, str) else " ".join(value)


def _bag(sample: Sample) -> npt.NDArray[np.float32]:
    """Return the counts of the words of what is given, hashed, of length 1: float32 (4096,)."""
    counts = np.zeros(BUCKETS, np.float32)
    for text in _given(sample):
        whole = text.dense_caption or " ".join(_in_words(getattr(text.famous, name)) for name in Famous.model_fields)
        for word in WORD.findall(whole.lower()):
            counts[int.from_bytes(blake2b(word.encode(), digest_size=4).digest()) % BUCKETS] += 1
    return np.asarray(counts / max(1e-9, float(np.linalg.norm(counts))), np.float32)
