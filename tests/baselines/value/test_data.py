"""Examples become items of ids and frames, and these become batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.baselines.value.made_value import Channels, channels_of, encode, make_examples, make_maker
from vip.baselines.value.batches import frame_range, frame_span
from vip.baselines.value.data import Example, examples_sha256
from vip.baselines.value.interface import (
    CaptionBatch,
    CaptionItem,
    CollateOptions,
    QuestionBatch,
    QuestionItem,
    RetrievalBatch,
    RetrievalItem,
)
from vip.errors import InputError


@pytest.mark.parametrize(
    ("task", "batch"),
    [
        *(("tvr", RetrievalBatch), ("yc2r", RetrievalBatch)),
        *(("tvqa", QuestionBatch), ("violin", QuestionBatch), ("vlep", QuestionBatch)),
        *(("tvc", CaptionBatch), ("vatex_en_c", CaptionBatch)),
    ],
)
def test_each_task_has_its_kind_of_batch(task: str, batch: type) -> None:
    assert type(make_maker().batch(make_examples(task))) is batch


def test_seconds_become_frames_of_the_kept_video() -> None:
    maker = make_maker(CollateOptions(frames=4, text_tokens=30))
    query = maker.item(Example("a", "retrieval", "v1", (("find",),), span_s=(1.5, 99.0)))
    assert isinstance(query, RetrievalItem)
    assert len(query.video.frames) == 4
    assert query.span == frame_span(1.5, 99.0, 4) == (1, 3)
    caption = maker.item(Example("a", "captioning", "v1", (), span_s=(1.5, 99.0)))
    assert isinstance(caption, CaptionItem)
    assert (caption.moment, caption.caption) == (frame_range(1.5, 99.0, 4), None)


def test_options_keep_their_texts_apart() -> None:
    item = make_maker().item(Example("a", "qa", "v1", (("what?", "this"), ("what?", "that")), answer=1))
    assert isinstance(item, QuestionItem)
    assert item.options == ((encode("what?"), encode("this")), (encode("what?"), encode("that")))
    assert (item.answer, item.span) == (1, None)


def test_sentences_have_ids_and_frames() -> None:
    video = make_maker().video("v7")
    assert [(one.tokens, one.frames) for one in video.sentences] == [(encode("this is v7"), (0, 1))]
    assert (video.frames == channels_of("v7").features).all()


def test_of_a_video_only_the_frames_that_the_model_sees_are_kept() -> None:
    frames = make_maker(CollateOptions(frames=4, text_tokens=30)).video("v7").frames
    assert (len(channels_of("v7").features), len(frames), frames.base) == (6, 4, None)


def test_sentences_that_are_said_in_more_frames_than_any_have_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty thousand of 41 h each have two billion frames together."""
    monkeypatch.setattr("vip.baselines.value.data.MOST_PLACES", 2)
    assert len(make_maker().video("v7").sentences) == 1
    monkeypatch.setattr("vip.baselines.value.data.MOST_PLACES", 1)
    with pytest.raises(
        InputError, match=r"The sentences of v7 are said in 2 frames together, and more than 1 are not read\. Give subtitles"
    ):
        make_maker().video("v7")


def test_videos_that_were_asked_for_last_are_kept_up_to_a_number_and_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked_again(*names: str) -> list[str]:
        read: list[str] = []

        def channels(name: str) -> Channels:
            read.append(name)
            return channels_of(name)

        maker = make_maker()
        maker._channels = channels
        assert [maker.video(name).name for name in names] == list(names)
        return read

    assert asked_again("a", "b", "a", "b") == ["a", "b"]
    monkeypatch.setattr("vip.baselines.value.data.KEPT_VIDEOS", 2)
    assert asked_again("a", "b", "a", "c", "a", "b") == ["a", "b", "c", "b"]
    size = channels_of("a").features.nbytes
    assert {channels_of(name).features.nbytes for name in "aei"} == {size}
    monkeypatch.setattr("vip.baselines.value.data.KEPT_BYTES", size)
    assert asked_again("a", "a", "e", "e", "a") == ["a", "e", "a"]
    monkeypatch.setattr("vip.baselines.value.data.KEPT_BYTES", size - 1)
    assert asked_again("a", "a") == ["a", "a"]


@pytest.mark.parametrize(
    "change",
    [
        *({"id": "b"}, {"kind": "retrieval"}, {"video": "v2"}, {"texts": (("why?", "that"),)}),
        *({"answer": 1}, {"answer": None}, {"span_s": (0.0, 4.5)}, {"span_s": None}),
    ],
)
def test_each_part_of_an_example_is_in_the_hash(change: dict[str, Any]) -> None:
    example = Example("a", "qa", "v1", (("why?", "this"),), 0, (0.0, 3.0))
    hashes = [examples_sha256({"tvqa": [one]}) for one in (example, replace(example), replace(example, **change))]
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_change_of_any_example_changes_the_hash() -> None:
    examples = make_examples("tvqa")
    assert examples_sha256({"tvqa": examples}) == examples_sha256({"tvqa": make_examples("tvqa")})
    others = {examples_sha256({"tvqa": examples[:-1]}), examples_sha256({"vlep": examples}), examples_sha256({"tvqa": examples[::-1]})}
    assert len(others | {examples_sha256({"tvqa": examples})}) == 4
