"""Predictions of a trained HERO: answers to questions, captions, and ranked videos and moments.

In: a model (`vip train value`, or `open_checkpoint` of published weights) and items. Out: one answer an item, in order. Retrieval encodes
the videos of its corpus once (`index_videos`; 2,179 videos of TVR take 0.7 GB), and then ranks query after query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Literal, TypeVar, cast

import torch
from torch import Tensor, nn

from vip.baselines.value.batches import collate_captions, collate_queries, collate_questions, collate_videos
from vip.baselines.value.checkpoint import LoadReport, load_published, published_name, read_tensors, settings_of
from vip.baselines.value.hero import Hero
from vip.baselines.value.interface import (
    CaptionItem,
    CollateOptions,
    HeroModel,
    QuestionItem,
    RankingOptions,
    VideoIndex,
    VideoItem,
)
from vip.baselines.value.ranking import RankedMoments, rank_moments, rank_moments_of_one, rank_videos
from vip.baselines.value.two_stream import TwoStream
from vip.errors import InputError
from vip.wording import option

VIDEOS_AT_ONCE = 50
"""`vcmr_eval_video_batch_size` of config/train-tvr-8gpu.json."""
QUERIES_AT_ONCE = 80
"""`vcmr_eval_batch_size`."""
ITEMS_AT_ONCE = 4
"""Questions, of which each is as many videos as it has options."""
TRUE_FROM = 0.5
"""The probability from which a statement is true: eval_violin.py."""
T = TypeVar("T")
HeadKind = Literal["retrieval", "qa", "captioning"]
HEADS: dict[HeadKind, str] = {"retrieval": "retrieval_head.", "qa": "question_head.", "captioning": "caption_head."}


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """What a model says to a question."""

    value: int
    """Index of the option; of a statement 1 is true and 0 false."""
    scores: tuple[float, ...]
    """The probability of each option; of a statement those of false and true."""


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """What a model finds for a query."""

    videos: RankedMoments
    moments: RankedMoments | None
    """Of the corpus; None without ranking options."""
    own_moments: RankedMoments | None
    """Of the query's own video; None where that is not known."""


# ---------------------------------------------------------------- models


def open_checkpoint(path: Path, kind: HeadKind, *, heads: int | None = None) -> tuple[Hero, LoadReport]:
    """Return a model with published weights, of the sizes that these have.

    Args:
        kind: the tasks it is to answer.
        heads: attention heads, which no tensor tells; None: one for each 64 numbers, as the authors have.

    Raises:
        InputError: the file is missing or damaged, is no HERO, or has no head for these tasks.
    """
    tensors = read_tensors(path)
    model = Hero(settings_of(tensors, str(path), heads=heads))
    report = load_published(tensors, model, str(path))
    lacking = set(report.missing) & {one for name in model.state_dict() if name.startswith(HEADS[kind]) for one in published_name(name)}
    if lacking:
        raise InputError(
            f"{path} has no head for {kind}: it was trained for other tasks. Train it first, with {option('weights', f'hero:{path}')}."
        )
    return model, report


def join_streams(video: Hero, subtitles: Hero) -> TwoStream:
    """Return one model of two, the first trained on frames alone and the second on subtitles alone."""
    model = TwoStream.__new__(TwoStream)
    nn.Module.__init__(model)
    model.settings = video.settings.model_copy(update={"fusion": "two-stream"})
    model.video, model.subtitles = video, subtitles
    return model


def find_device(name: str) -> torch.device:
    """Return a device as torch names it; `auto` is a GPU where there is one."""
    return torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of `size` items; the last one may be shorter."""
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some


# ---------------------------------------------------------------- questions and captions


def answer_questions(
    model: HeroModel, items: Iterable[QuestionItem], options: CollateOptions, *, device: str = "auto", at_once: int = ITEMS_AT_ONCE
) -> Iterator[QuestionAnswer]:
    """Yield the answer to each question, in order."""
    on = _prepare(model, device)
    for _, some in groupby(items, key=lambda item: len(item.options)):
        for batch in batched(some, at_once):
            with torch.inference_mode():
                scores = cast(Tensor, model.predict(collate_questions(batch, options).to(on))).float().cpu()
            yield from map(read_answer, scores.tolist())


def read_answer(scores: Sequence[float]) -> QuestionAnswer:
    """Return the answer of probabilities: the first of the largest, or of one alone whether it is above 0.5."""
    if len(scores) == 1:
        return QuestionAnswer(int(scores[0] > TRUE_FROM), (1 - scores[0], scores[0]))
    return QuestionAnswer(max(range(len(scores)), key=scores.__getitem__), tuple(scores))


def caption_items(
    model: HeroModel, items: Iterable[CaptionItem], options: CollateOptions, *, device: str = "auto", at_once: int = 16
) -> Iterator[tuple[int, ...]]:
    """Yield the ids of the caption of each item, in order, without special ones."""
    on = _prepare(model, device)
    for batch in batched(items, at_once):
        with torch.inference_mode():
            captions = model.predict(collate_captions(batch, options).to(on))
        yield from cast("list[tuple[int, ...]]", captions)


def _prepare(model: HeroModel, device: str) -> torch.device:
    on = find_device(device)
    model.eval().to(on)
    return on


# ---------------------------------------------------------------- retrieval


def index_videos(
    model: HeroModel, videos: Iterable[VideoItem], options: CollateOptions, *, device: str = "auto", at_once: int = VIDEOS_AT_ONCE
) -> VideoIndex:
    """Return the encoded videos of a corpus, in order.

    Raises:
        InputError: there is none.
    """
    on = _prepare(model, device)
    parts: list[VideoIndex] = []
    for batch in batched(videos, at_once):
        with torch.inference_mode():
            parts.append(model.index(collate_videos(batch, options).to(on)))
    if not parts:
        raise InputError("There are no videos to search. Name an index of videos, or samples with their videos.")
    width = max(part.mask.shape[1] for part in parts)
    streams = tuple(torch.cat([_widened(one, width) for one in stream]) for stream in zip(*(part.streams for part in parts), strict=True))
    return VideoIndex(streams, torch.cat([_widened(part.mask, width) for part in parts]))


def _widened(rows: Tensor, width: int) -> Tensor:
    """Return (N, V, …) with zeros up to `width` frames."""
    wide = rows.new_zeros(len(rows), width, *rows.shape[2:])
    wide[:, : rows.shape[1]] = rows
    return wide


def answer_queries(
    model: HeroModel,
    queries: Iterable[tuple[Sequence[int], int | None]],
    index: VideoIndex,
    options: CollateOptions,
    *,
    ranking: RankingOptions | None = None,
    device: str = "auto",
    at_once: int = QUERIES_AT_ONCE,
) -> Iterator[QueryAnswer]:
    """Yield what is found for each query, in order.

    Args:
        queries: the ids of each, and the row of its own video in the index; None where that is hidden.
        ranking: how moments are read off; None: videos alone are ranked.
    """
    on = _prepare(model, device)
    index = index.to(on)
    for batch in batched(queries, at_once):
        tokens, mask = collate_queries([query for query, _ in batch], options)
        own = [row for _, row in batch]
        with torch.inference_mode():
            scores = model.score(tokens.to(on), mask.to(on), index, **({} if ranking is None else {"scale": ranking.scale}))
            videos = rank_videos(scores, kept=ranking.kept if ranking else 100)
            moments = rank_moments(scores, ranking) if ranking else None
            rows = torch.tensor([0 if row is None else row for row in own], device=on)
            of_own = rank_moments_of_one(scores, rows, ranking) if ranking else None
        for place, row in enumerate(own):
            found = None if of_own is None or row is None else of_own[place]
            yield QueryAnswer(videos[place], moments[place] if moments else None, found)
