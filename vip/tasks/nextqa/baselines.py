"""Baselines of NExT-QA that never look at a video (Xiao et al. 2021, Tables 3 and 6): what options and question types give away.

Each takes a function that reads the samples, and a seed, and yields a prediction a sample, in order.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vip.errors import InputError, UsageError
from vip.metrics.sentence_bert import DEFAULT_ENCODER, SentenceBert
from vip.tasks.files import chance_of
from vip.tasks.nextqa.files import group_of, read_questions
from vip.tasks.records import Choice, Prediction, Sample
from vip.tasks.task import Baseline, ReadSamples
from vip.wording import option

OPTIONS = 5
BATCH = 128
Vectors = npt.NDArray[np.float64]


def multi_choice(train: Path | None, encoder: str = DEFAULT_ENCODER) -> Mapping[str, Baseline]:
    """Return the baselines of nextqa-mc by name.

    Args:
        train: questions of the training set, with options; popular-shortest refuses to work without.
        encoder: of sim-aa and sim-qa, for sentence-transformers.
    """
    always = {f"always:{place}": _choosing(partial(_always, place)) for place in range(OPTIONS)}
    found: dict[str, Baseline] = {
        "random": _choosing(_random),
        **always,
        "longest": _choosing(lambda options, _: longest(options)),
        "shortest": _choosing(lambda options, _: shortest(options)),
        "popular-shortest": lambda read, seed: _popular_shortest(read, train),
        "sim-aa": _by_similarity(farthest_option, encoder),
        "sim-qa": _by_similarity(nearest_option, encoder),
    }
    return {name: _named(name, baseline) for name, baseline in found.items()}


def open_ended(train: Path | None) -> Mapping[str, Baseline]:
    """Return the baselines of nextqa-oe by name.

    Args:
        train: questions of the training set; popular refuses to work without.
    """
    return {"popular": _named("popular", lambda read, seed: _popular(read, train))}


def _named(name: str, baseline: Baseline) -> Baseline:
    """Return the baseline whose predictions say who made them."""

    def predict(read: ReadSamples, seed: int) -> Iterator[Prediction]:
        for prediction in baseline(read, seed):
            yield prediction.model_copy(update={"engine": f"baseline:{name}"})

    return predict


# ---------------------------------------------------------------- by the options


def _choosing(choose: Callable[[Sequence[str], random.Random], int]) -> Baseline:
    """Return the baseline that chooses by the options of each question alone; chance depends on the seed and the question's id."""

    def predict(read: ReadSamples, seed: int) -> Iterator[Prediction]:
        for sample in read():
            yield Prediction(sample_id=sample.id, value=choose(options_of(sample), chance_of(f"{seed} {sample.id}")))

    return predict


def _random(options: Sequence[str], chance: random.Random) -> int:
    return chance.randrange(len(options))


def _always(place: int, options: Sequence[str], _: random.Random) -> int:
    if place >= len(options):
        raise UsageError(f"There is no option {place}: the question has {len(options)}.")
    return place


def longest(options: Sequence[str]) -> int:
    """Return the place of the option with the most words, the first of those that are equal."""
    return max(range(len(options)), key=lambda place: len(options[place].split()))


def shortest(options: Sequence[str]) -> int:
    """Return the place of the option with the fewest words, the first of those that are equal."""
    return min(range(len(options)), key=lambda place: len(options[place].split()))


# ---------------------------------------------------------------- by the training set


def _popular_shortest(read: ReadSamples, train: Path | None) -> Iterator[Prediction]:
    """Choose the option that is the most frequent right answer of the type in training; where none ever was one, the shortest."""
    counts = _count_answers(train, "popular-shortest", with_options=True)
    for sample in read():
        options, known = options_of(sample), counts.get(type_of(sample), Counter())
        best = max(range(len(options)), key=lambda place: known[options[place]])
        yield Prediction(sample_id=sample.id, value=best if known[options[best]] else shortest(options))


def _popular(read: ReadSamples, train: Path | None) -> Iterator[Prediction]:
    """Answer with the most frequent answer of the type in training, the one seen first where several are."""
    counts = _count_answers(train, "popular", with_options=False)
    popular = {kind: counted.most_common(1)[0][0] for kind, counted in counts.items()}
    for sample in read():
        if (kind := type_of(sample)) not in popular:
            raise InputError(f"The training questions have none of the type {kind}. Give the train.csv of NExT-QA.")
        yield Prediction(sample_id=sample.id, value=popular[kind])


def _count_answers(train: Path | None, name: str, *, with_options: bool) -> dict[str, Counter[str]]:
    """Return how often each answer is the right one, by the type of the question; TN and TP are one type."""
    if train is None:
        raise UsageError(f"The baseline {name} counts answers of the training set. Give its file with {option('train', 'train.csv')}.")
    counts: dict[str, Counter[str]] = {}
    for question in read_questions(train, "nextqa-mc" if with_options else "nextqa-oe"):
        answer = question.options[question.answer] if isinstance(question.answer, int) else question.answer
        if isinstance(answer, str):
            counts.setdefault(group_of(question.type), Counter())[answer] += 1
    if not counts:
        raise InputError(f"{train} has no answers. Give the train.csv of NExT-QA.")
    return counts


# ---------------------------------------------------------------- by sentence embeddings


def farthest_option(options: Vectors, question: Vectors) -> int:
    """Return the place of the option with the smallest mean cosine to the others, the first of equal ones: SimAA.

    Args:
        options: float64 (N, D), rows of length 1.
        question: float64 (D,); SimAA does not use it.
    """
    cosines = options @ options.T
    return int((cosines.sum(axis=1) - np.diag(cosines)).argmin())


def nearest_option(options: Vectors, question: Vectors) -> int:
    """Return the place of the option with the largest cosine to the question, the first of equal ones: SimQA."""
    return int((options @ question).argmax())


def _by_similarity(choose: Callable[[Vectors, Vectors], int], encoder: str) -> Baseline:
    """Return the baseline that chooses by the sentence embeddings of question and options, encoded many questions at once."""

    def predict(read: ReadSamples, seed: int) -> Iterator[Prediction]:
        model = SentenceBert(encoder)
        samples = read()
        while batch := list(islice(samples, BATCH)):
            texts = [text for sample in batch for text in (_question_of(sample), *options_of(sample))]
            vectors, start = model.embed(texts), 0
            for sample in batch:
                end = start + 1 + len(options_of(sample))
                yield Prediction(sample_id=sample.id, value=choose(vectors[start + 1 : end], vectors[start]))
                start = end

    return predict


def _question_of(sample: Sample) -> str:
    return sample.ask.question if isinstance(sample.ask, Choice) else ""


def options_of(sample: Sample) -> tuple[str, ...]:
    """Return the options of a question.

    Raises:
        InputError: it has none.
    """
    if not isinstance(sample.ask, Choice):
        raise InputError(f"The sample {sample.id} has no options. Make samples of nextqa-mc.")
    return sample.ask.options


def type_of(sample: Sample) -> str:
    """Return the type of a question as tables have it: TPN for TN and TP."""
    return sample.groups["type"][0]
