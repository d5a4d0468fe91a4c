"""vip.baselines.value.batches: ids, frames and masks of small items, written out"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.baselines.value.tiny_hero import CAPTIONS, LONG, QUERIES, QUESTIONS, SHORT, SILENT, STATEMENTS
from vip.baselines.value.batches import (
    END,
    NOTHING,
    PAD,
    START,
    best_frames,
    collate_captions,
    collate_questions,
    collate_retrieval,
    collate_videos,
    frame_range,
    frame_span,
)
from vip.baselines.value.interface import CollateOptions, RetrievalItem
from vip.errors import InputError

BOTH = CollateOptions()


def test_frames_of_a_moment_are_those_of_the_published_code() -> None:
    assert frame_span(3.2, 7.6, 100) == (2, 5)
    assert frame_span(3.2, 3.4, 100) == (2, 3), "at least two frames"
    assert frame_span(148.0, 200.0, 100) == (98, 99)
    assert frame_range(3.2, 7.6, 100) == (2, 5), "the end is behind the last frame"
    assert frame_range(0.0, 1.0, 100) == (0, 1)
    assert frame_range(160.0, 170.0, 100) == (99, 100), "a moment behind the video is its last frame"


def test_a_frame_belongs_to_the_sentence_that_is_most_like_it() -> None:
    spans_s = [(0.0, 1.9), (1.9, 4.6), (2.0, 2.9), (9.0, 9.5)]
    frames = [range(2), range(1, 4), range(1, 2), range(0)]
    # frame 1, 1.5 s to 3 s: 0.4 of 3.0, 1.1 of 3.1, 0.9 of 1.5
    assert best_frames(spans_s, frames) == [(0,), (2, 3), (1,), ()]
    assert best_frames([(0.0, 1.5), (0.0, 1.5)], [range(1), range(1)]) == [(0,), ()], "of equal ones the first"
    assert best_frames([], []) == []


def test_sentences_have_a_special_id_in_front_and_their_frames() -> None:
    batch = collate_videos([LONG, SHORT], BOTH)
    assert batch.sentences.tolist() == [[END, 5, 6, 7], [END, 8, PAD, PAD], [END, 9, 10, PAD], [END, 11, PAD, PAD], [END, 12, 13, PAD]]
    assert batch.sentence_mask.sum(1).tolist() == [4, 2, 3, 2, 3]
    assert batch.sentence_video.tolist() == [0, 0, 0, 0, 1]
    assert batch.sentence_frames.tolist() == [[0, 1, 0], [1, 2, 3], [0, 0, 0], [7, 8, 0], [0, 1, 2]]
    assert batch.sentence_frame_mask.sum(1).tolist() == [2, 3, 0, 2, 3]
    assert batch.frame_mask.sum(1).tolist() == [9, 4]
    torch.testing.assert_close(batch.frames[1, :4], torch.from_numpy(SHORT.frames))
    assert not batch.frames[1, 4:].any()


def test_a_batch_of_frames_that_no_memory_should_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = len(LONG.frames) * LONG.frames.shape[1]
    monkeypatch.setattr("vip.baselines.value.batches.MOST_BYTES", 2 * numbers * 4)
    assert len(collate_videos([LONG, SHORT], BOTH).frames) == 2
    with pytest.raises(InputError, match=f"A batch of 3 with {numbers} numbers each"):
        collate_videos([SHORT, SHORT, LONG], BOTH)


def test_a_video_without_subtitles_has_an_empty_sentence_each_five_frames() -> None:
    batch = collate_videos([SILENT], BOTH)
    assert batch.sentences.tolist() == [[END], [END]]
    assert batch.sentence_frames.tolist() == [[0, 1, 2, 3, 4], [5, 0, 0, 0, 0]]


def test_video_alone_is_one_sentence_of_all_frames_and_subtitles_alone_have_no_features() -> None:
    seen = collate_videos([LONG], CollateOptions(channels="video"))
    assert seen.sentences.tolist() == [[START]]
    assert seen.sentence_frames.tolist() == [list(range(9))]
    assert seen.has_frames
    read = collate_videos([LONG], CollateOptions(channels="sub"))
    assert not read.frames.any()
    assert not read.has_frames
    assert read.sentences[:, 0].tolist() == [START] * 4


def test_a_sentence_is_read_with_those_before_it() -> None:
    batch = collate_videos([LONG], CollateOptions(context=1))
    assert [row[row != PAD].tolist() for row in batch.sentences] == [[END, 5, 6, 7], [END, 5, 6, 7, 8], [END, 8, 9, 10], [END, 9, 10, 11]]


def test_what_is_too_long_is_cut() -> None:
    batch = collate_videos([LONG], CollateOptions(frames=2, text_tokens=2))
    assert batch.frames.shape[1] == 2
    assert batch.sentences.tolist() == [[END, 5, 6], [END, 8, PAD], [END, 9, 10]], "a sentence behind the last frame is left out"
    assert batch.sentence_frames[batch.sentence_frame_mask].tolist() == [0, 1, 1]
    cut = collate_retrieval([RetrievalItem(LONG, (20,), (1, 6))], CollateOptions(frames=4))
    assert cut.spans.tolist() == [[1, 3]]


def test_the_limit_is_of_words_and_special_ids_do_not_count() -> None:
    options = CollateOptions(text_tokens=2)
    assert collate_retrieval(QUERIES, options).queries.tolist() == [[START, 20, 21], [START, 22, PAD], [START, 23, 24], [START, 26, PAD]]
    texts = collate_questions(QUESTIONS, CollateOptions(text_tokens=3)).texts
    assert texts.tolist()[:2] == [[END, 30, 31, END, 32], [END, 30, 31, END, 33]]
    captions = collate_captions(CAPTIONS, options)
    assert captions.inputs.tolist() == [[START, 50, 51], [START, 52, PAD], [START, 53, 54]]
    assert captions.targets.tolist() == [[50, 51, END], [52, END, NOTHING], [53, 54, END]]


def test_queries_of_one_video_share_it() -> None:
    batch = collate_retrieval(QUERIES, BOTH)
    assert len(batch.video.frames) == 3
    assert batch.query_video.tolist() == [0, 0, 1, 2]
    assert batch.queries.tolist() == [[START, 20, 21, PAD], [START, 22, PAD, PAD], [START, 23, 24, 25], [START, 26, PAD, PAD]]
    assert batch.spans.tolist() == [[1, 4], [0, 2], [0, 3], [NOTHING, NOTHING]]


def test_the_texts_of_an_option_stand_behind_every_sentence() -> None:
    batch = collate_questions(QUESTIONS, BOTH)
    assert batch.options == 3
    assert batch.texts[1].tolist() == [END, 30, 31, END, 33, 34]
    assert batch.text_mask[0].sum() == 5
    rows = batch.video.sentences[batch.video.sentence_video == 1]
    assert [row[row != PAD].tolist() for row in rows][1] == [END, 8, END, 30, 31, END, 33, 34]
    assert batch.answers.tolist() == [1, 2]
    assert batch.spans.tolist() == [[1, 2], [NOTHING, NOTHING]]
    assert collate_questions(STATEMENTS, BOTH).texts.tolist() == [[END, 40, 41, 42], [END, 43, PAD, PAD]]


def test_questions_of_a_batch_have_one_number_of_options() -> None:
    with pytest.raises(ValueError, match="number of options"):
        collate_questions([*QUESTIONS, *STATEMENTS], BOTH)


def test_captions_begin_with_a_start_and_are_to_say_an_end() -> None:
    batch = collate_captions(CAPTIONS, BOTH)
    assert batch.inputs.tolist() == [[START, 50, 51, PAD], [START, 52, PAD, PAD], [START, 53, 54, 55]]
    assert batch.targets.tolist() == [[50, 51, END, NOTHING], [52, END, NOTHING, NOTHING], [53, 54, 55, END]]
    assert batch.moments.tolist() == [[1, 3], [4, 9], [0, 4]]
    assert batch.caption_video.tolist() == [0, 0, 1]
    hidden = collate_captions([replace(one, caption=None) for one in CAPTIONS], BOTH)
    assert hidden.inputs.shape == (3, 0)


def test_a_batch_goes_to_a_device_with_all_its_parts() -> None:
    batch = collate_questions(QUESTIONS, BOTH).to("meta")
    assert batch.video.frames.device.type == batch.texts.device.type == "meta"
    assert batch.options == 3
