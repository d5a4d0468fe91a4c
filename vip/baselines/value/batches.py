"""From items to batches: special ids, padding, the frames of each sentence, and what a channel leaves out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from vip.baselines.features import check_batch
from vip.baselines.value.interface import (
    CaptionBatch,
    CaptionItem,
    CollateOptions,
    QuestionBatch,
    QuestionItem,
    RetrievalBatch,
    RetrievalItem,
    Sentence,
    VideoBatch,
    VideoItem,
)

FRAME_S = 1.5
"""Seconds of a frame (Li et al. 2021, section 4.1)."""
START, PAD, END, UNKNOWN = 0, 1, 2, 3
"""<s>, <pad>, </s> and <unk> of RoBERTa's vocabulary."""
MASK = 50_264
"""<mask> of RoBERTa's vocabulary."""
NOTHING = -1
"""A target that is left out of a loss."""
MOST_BYTES = 2**31  # of the frames of a batch; 128 videos of VATEX-EN-C have 223 MB
GROUP = 5
"""Frames of an empty sentence where a video has no subtitles: `nframe_group` of scripts/prepro_sub.py."""


# ---------------------------------------------------------------- seconds and frames


def frame_span(start_s: float, end_s: float, frames: int) -> tuple[int, int]:
    """Return the first and the last frame of a moment, both in it (`get_st_ed_label` of data/vcmr.py and data/videoQA.py).

    Args: frames: of the video, at least 1.
    """
    first = min(math.floor(start_s / FRAME_S), frames - 1)
    return first, min(max(math.ceil(end_s / FRAME_S) - 1, first + 1), frames - 1)


def frame_range(start_s: float, end_s: float, frames: int) -> tuple[int, int]:
    """Return the first frame of a moment, and the one behind its last (`get_st_ed_label` of data/tvc.py).

    The authors' code gives an empty range to a moment behind the last frame; here the last frame stands for it.
    """
    first = min(math.floor(start_s / FRAME_S), frames - 1)
    return first, min(max(round(end_s / FRAME_S), first + 1), frames)


def best_frames(spans_s: Sequence[tuple[float, float]], frames: Sequence[range]) -> list[tuple[int, ...]]:
    """Return the frames of each sentence where each frame belongs to one: that whose span is most like the frame's.

    How alike two spans are is their overlap over all that lies between the first start and the last end (`temporal_iou` of
    scripts/prepro_sub.py); of equal ones the first counts.

    Args:
        spans_s: start and end of each sentence.
        frames: those in which each is said.
    """
    best: dict[int, tuple[float, int]] = {}
    for sentence, ((start_s, end_s), places) in enumerate(zip(spans_s, frames, strict=True)):
        for place in places:
            overlap = min(end_s, (place + 1) * FRAME_S) - max(start_s, place * FRAME_S)
            alike = max(overlap, 0.0) / (max(end_s, (place + 1) * FRAME_S) - min(start_s, place * FRAME_S))
            if place not in best or alike > best[place][0]:
                best[place] = alike, sentence
    owned: list[list[int]] = [[] for _ in frames]
    for place in sorted(best):
        owned[best[place][1]].append(place)
    return [tuple(some) for some in owned]


# ---------------------------------------------------------------- videos


def collate_videos(items: Sequence[VideoItem], options: CollateOptions, texts: Sequence[Sequence[int]] | None = None) -> VideoBatch:
    """Return the batch of videos.

    Args: texts: of each video, ids that stand behind every one of its sentences.
    """
    frames = [torch.from_numpy(item.frames[: options.frames]).float() for item in items]
    check_batch(len(frames), max(map(len, frames)) * frames[0].shape[1], MOST_BYTES)  # as they are padded
    if options.channels == "sub":
        frames = [torch.zeros_like(one) for one in frames]
    tokens, places, owners = [], [], []
    for row, item in enumerate(items):
        count = len(frames[row])
        for text, matched in _sentences(item, count, options):
            tokens.append(torch.tensor([*text, *(texts[row] if texts else ())]))
            places.append(torch.tensor(matched, dtype=torch.long))
            owners.append(row)
    return VideoBatch(
        frames=pad_sequence(frames, batch_first=True),
        frame_mask=_mask(frames),
        sentences=pad_sequence(tokens, batch_first=True, padding_value=PAD),
        sentence_mask=_mask(tokens),
        sentence_video=torch.tensor(owners),
        sentence_frames=pad_sequence(places, batch_first=True),
        sentence_frame_mask=_mask(places),
        has_frames=options.channels != "sub",
    )


def _sentences(item: VideoItem, count: int, options: CollateOptions) -> list[tuple[list[int], list[int]]]:
    """Return of each sentence its ids, a special one first, and its frames."""
    if options.channels == "video":
        return [([START], list(range(count)))]
    kept = [one for one in item.sentences if not one.frames or one.frames[0] < count]
    sentences = kept or [Sentence((), tuple(range(start, min(start + GROUP, count)))) for start in range(0, count, GROUP)]
    first = START if options.channels == "sub" else END
    rows = []
    for place, sentence in enumerate(sentences):
        words = [token for one in sentences[max(0, place - options.context) : place + 1] for token in one.tokens[: options.text_tokens]]
        rows.append(([first, *words], [frame for frame in sentence.frames if frame < count]))
    return rows


def _mask(rows: Sequence[Tensor]) -> Tensor:
    return pad_sequence([torch.ones(len(row), dtype=torch.bool) for row in rows], batch_first=True)


def _span(span: tuple[int, int] | None, video: VideoItem, options: CollateOptions) -> tuple[int, int]:
    """Return the first and the last frame, within those that are kept."""
    last = min(len(video.frames), options.frames) - 1
    return (NOTHING, NOTHING) if span is None else (min(span[0], last), min(span[1], last))


# ---------------------------------------------------------------- tasks


def collate_retrieval(items: Sequence[RetrievalItem], options: CollateOptions) -> RetrievalBatch:
    """Return queries with their videos; those of one video, by its name, share it."""
    videos = {item.video.name: item.video for item in items}
    rows = {name: row for row, name in enumerate(videos)}
    queries, mask = collate_queries([item.query for item in items], options)
    return RetrievalBatch(
        video=collate_videos(list(videos.values()), options),
        queries=queries,
        query_mask=mask,
        query_video=torch.tensor([rows[item.video.name] for item in items]),
        spans=torch.tensor([_span(item.span, item.video, options) for item in items]),
    )


def collate_queries(queries: Sequence[Sequence[int]], options: CollateOptions) -> tuple[Tensor, Tensor]:
    """Return (Q, T) ids with <s> in front, and (Q, T) bool."""
    rows = [torch.tensor([START, *query[: options.text_tokens]]) for query in queries]
    return pad_sequence(rows, batch_first=True, padding_value=PAD), _mask(rows)


def collate_questions(items: Sequence[QuestionItem], options: CollateOptions) -> QuestionBatch:
    """Return questions; all have as many options.

    Raises:
        ValueError: they have not.
    """
    if any(len(one.options) != len(other.options) for one, other in pairwise(items)):
        raise ValueError("questions of a batch have one number of options")
    texts = [_join(parts, options.text_tokens) for item in items for parts in item.options]
    rows = [torch.tensor(text) for text in texts]
    return QuestionBatch(
        video=collate_videos([item.video for item in items for _ in item.options], options, texts),
        texts=pad_sequence(rows, batch_first=True, padding_value=PAD),
        text_mask=_mask(rows),
        options=len(items[0].options),
        answers=torch.tensor([NOTHING if item.answer is None else item.answer for item in items]),
        spans=torch.tensor([_span(item.span, item.video, options) for item in items]),
    )


def _join(parts: Sequence[Sequence[int]], most: int) -> list[int]:
    """Return texts in a row, </s> in front of each."""
    return [token for part in parts for token in (END, *part)][: most + len(parts)]


def collate_captions(items: Sequence[CaptionItem], options: CollateOptions) -> CaptionBatch:
    """Return captions with their videos; those of one video, by its name, share it."""
    videos = {item.video.name: item.video for item in items}
    rows = {name: row for row, name in enumerate(videos)}
    captions = [() if item.caption is None else item.caption[: options.text_tokens] for item in items]
    known = all(item.caption is not None for item in items)
    inputs = [torch.tensor([START, *caption] if known else [], dtype=torch.long) for caption in captions]
    targets = [torch.tensor([*caption, END] if known else [], dtype=torch.long) for caption in captions]
    return CaptionBatch(
        video=collate_videos(list(videos.values()), options),
        caption_video=torch.tensor([rows[item.video.name] for item in items]),
        moments=torch.tensor([_moment(item, options.frames) for item in items]),
        inputs=pad_sequence(inputs, batch_first=True, padding_value=PAD),
        targets=pad_sequence(targets, batch_first=True, padding_value=NOTHING),
    )


def _moment(item: CaptionItem, most: int) -> tuple[int, int]:
    """Return the frames of a caption: at least one of those that are kept."""
    count = min(len(item.video.frames), most)
    first, end = item.moment or (0, count)
    first = min(first, count - 1)
    return first, min(max(end, first + 1), count)
