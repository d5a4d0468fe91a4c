"""Zero-shot CLIP on VALUE: similarity of frames, subtitles and queries alone, nothing trained (Li et al. 2021, appendix B.2).

Frames are mean-pooled, subtitle sentences max-pooled, and the two similarities averaged without weights. Videos are ranked by the cosine;
a moment is the window of frames whose mean cosine is the largest (the paper names no size: a setting, recorded). Of several options the
one most alike is chosen, with the question in front of it. A statement is true from a threshold on; of two events the second is chosen
where it is more alike by a threshold. The threshold is tuned where answers are known, and taken over for the test split.

Nothing is read here: vectors come in, numbers go out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vip.metrics.retrieval import MOST_PREDICTIONS
from vip.records import Vectors
from vip.tasks.records import Choice, Found, FoundMoments, Sample
from vip.tasks.value.channels import FRAME_S
from vip.tasks.value.datasets import Dataset

Floats = npt.NDArray[np.float64]
DEFAULT_WINDOW = 10  # frames, 15 s: moments of TVR last 9 s, those of How2R 22 s
QUERIES_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class Corpus:
    """Videos by their vectors."""

    names: tuple[str, ...]
    frames: tuple[Vectors, ...] | None
    """Of each video, float32 (F, D), rows of length 1; None: without the video channel."""
    videos: Vectors | None  # float32 (V, D): the mean of the frames, of length 1
    subtitles: Vectors | None  # float32 (V, D): the largest of the sentences, of length 1; None: without subtitles

    def similarity(self, queries: Vectors) -> Floats:
        """Return the similarity of each query and each video, the mean of the channels. (Q, V)"""
        parts = [queries @ channel.T for channel in (self.videos, self.subtitles) if channel is not None]
        return np.asarray(np.mean(np.stack(parts), axis=0), np.float64)

    def similarity_to(self, queries: Vectors, video: int) -> Floats:
        """Return the similarity of each query and one video. (Q,)"""
        parts = [queries @ channel[video] for channel in (self.videos, self.subtitles) if channel is not None]
        return np.asarray(np.mean(np.stack(parts), axis=0), np.float64)


def pool_frames(frames: Vectors) -> Vectors:
    """Return the mean of frames, of length 1. (D,)"""
    return _of_length_1(_rows_of_length_1(frames).mean(axis=0))


def pool_sentences(sentences: Vectors) -> Vectors:
    """Return the largest value of each dimension over the sentences, of length 1. (D,)"""
    return _of_length_1(sentences.max(axis=0))


def make_corpus(names: Sequence[str], frames: Sequence[Vectors] | None, sentences: Sequence[Vectors] | None) -> Corpus:
    """Return videos by their vectors; at least one of the channels is given.

    Args:
        sentences: of each video, float32 (S, D), at least one row: a video without subtitles has one empty sentence.
    """
    if frames is None and sentences is None:
        raise ValueError("a corpus needs frames or subtitles")
    rows = None if frames is None else tuple(_rows_of_length_1(one) for one in frames)
    return Corpus(
        tuple(names),
        rows,
        None if rows is None else np.stack([pool_frames(one) for one in rows]),
        None if sentences is None else np.stack([pool_sentences(one) for one in sentences]),
    )


def _rows_of_length_1(rows: Vectors) -> Vectors:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.divide(rows, lengths, out=np.zeros_like(rows, np.float32), where=lengths > 0), np.float32)


def _of_length_1(vector: Vectors) -> Vectors:
    return np.asarray(_rows_of_length_1(vector[None])[0], np.float32)


# ---------------------------------------------------------------- ranking


def rank_videos(corpus: Corpus, queries: Vectors) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the numbers of the best 100 videos of each query, best first; of equal ones the first of the corpus."""
    for first in range(0, len(queries), QUERIES_AT_ONCE):
        for row in corpus.similarity(queries[first : first + QUERIES_AT_ONCE]):
            yield np.argsort(-row, kind="stable")[:MOST_PREDICTIONS]


def rank_windows(frames: Vectors, query: Vectors, window: int) -> list[tuple[float, float, float]]:
    """Return start, end and mean cosine of each window of frames, best first; a shorter video is one window.

    Args:
        frames: (F, D), rows of length 1.
        window: how many frames.
    """
    cosines = np.asarray(frames @ query, np.float64)
    width = min(window, len(cosines))
    sums = np.concatenate([[0.0], np.cumsum(cosines)])
    means = (sums[width:] - sums[:-width]) / width
    order = np.argsort(-means, kind="stable")
    return [(float(place * FRAME_S), float((place + width) * FRAME_S), float(means[place])) for place in order.tolist()]


def find_moments(corpus: Corpus, query: Vectors, ranked: Sequence[int], right: int | None, window: int) -> Found:
    """Return the best window of each of the best videos; of the right video all windows; and the videos.

    Args:
        ranked: numbers of videos, best first.
        right: the number of the video that the query is about; None where it is hidden.
    """
    if corpus.frames is None:
        raise ValueError("moments need the frames of the videos")
    best = [rank_windows(corpus.frames[video], query, window)[0] for video in ranked]
    names = tuple(corpus.names[video] for video in ranked)
    inside = [] if right is None else rank_windows(corpus.frames[right], query, window)[:MOST_PREDICTIONS]
    return Found(
        vcmr=FoundMoments(videos=names, starts_s=tuple(one[0] for one in best), ends_s=tuple(one[1] for one in best)),
        svmr=None
        if right is None
        else FoundMoments(
            videos=(corpus.names[right],) * len(inside),
            starts_s=tuple(one[0] for one in inside),
            ends_s=tuple(one[1] for one in inside),
        ),
        vr=names,
    )


# ---------------------------------------------------------------- questions


def queries_of(sample: Sample, dataset: Dataset) -> list[str]:
    """Return the texts that are compared with the video of a question: question and option, an event, or the statement alone."""
    if not isinstance(sample.ask, Choice):
        raise ValueError("a question has options")
    if dataset.key == "violin":
        return [sample.ask.question]
    if dataset.key == "vlep":
        return list(sample.ask.options)
    return [f"{sample.ask.question} {option}" for option in sample.ask.options]


def decision_score(similarities: Floats) -> float:
    """Return what a threshold is held against: the similarity of a statement; of two events, by how much the second is more alike."""
    return float(similarities[0] if len(similarities) == 1 else similarities[1] - similarities[0])


@dataclass(frozen=True, slots=True)
class DecisionThreshold:
    """The score from which on the answer is 1."""

    value: float
    accuracy: float
    """On the samples that it was tuned on, as a fraction."""
    samples: int


def tune_threshold(scores: Sequence[float], answers: Sequence[int]) -> DecisionThreshold:
    """Return the threshold with the most right answers, found exactly; of equal ones the smallest.

    Between two neighbouring scores it lies in the middle; below all and above all, half outside.

    Args:
        answers: 0 or 1.
    """
    order = np.argsort(scores, kind="stable")
    ordered, labels = np.asarray(scores, np.float64)[order], np.asarray(answers, np.int64)[order]
    right = np.concatenate([[0], np.cumsum(labels == 0)]) + np.concatenate([[labels.sum()], labels.sum() - np.cumsum(labels)])
    is_edge = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])  # equal scores get equal answers
    places = np.flatnonzero(is_edge)
    place = int(places[np.argmax(right[places])])
    below = ordered[place - 1] if place else ordered[0] - 1.0
    above = ordered[place] if place < len(ordered) else ordered[-1] + 1.0
    middle = float((below + above) / 2)
    value = middle if below < middle else float(above)  # two floats without one between them
    return DecisionThreshold(value, float(right[place]) / len(labels), len(labels))
