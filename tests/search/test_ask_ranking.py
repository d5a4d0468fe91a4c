"""Frames whose words fit the question come first."""

from __future__ import annotations

import pytest

from vip.search.ask_ranking import fitting_words, rank_by_words
from vip.search.ask_records import AskedFrame


def frame(number: int, words: str | None, caption: str | None = None) -> AskedFrame:
    about = {"label": f"v@0:0{number}", "video_id": "v", "run": "v.vip", "keyframe_id": str(number), "image_path": "x.jpg"}
    return AskedFrame(number=number, time_s=float(number), words=words, caption=caption, **about)


@pytest.mark.parametrize(
    ("question", "order"),
    [
        ("why does the pump fail?", [3, 2, 4, 1]),
        ("Failing VALVES", [3, 4, 1, 2]),
        ("what is this about", [1, 2, 3, 4]),
        ("", [1, 2, 3, 4]),
    ],
)
def test_rare_words_count_more_and_forms_of_a_word_are_one(question: str, order: list[int]) -> None:
    texts = [(1, None), (2, "This is the pump."), (3, "The pump has failed, the valve too."), (4, "A valve, says the pump man.")]
    assert [one.number for one in rank_by_words(question, [frame(number, words) for number, words in texts])] == order


def test_a_word_that_all_frames_have_decides_nothing_and_a_rare_one_more_than_two_common_ones() -> None:
    texts = ["pump fails water", "pump water", "pump fails", "pump seal", "pump fails water"]
    frames = [frame(number, text) for number, text in enumerate(texts, 1)]
    assert [one.number for one in rank_by_words("pump seal", frames)] == [4, 1, 2, 3, 5]
    assert [one.number for one in rank_by_words("water fails seal", frames)] == [4, 1, 5, 2, 3]


def test_captions_count_as_words_do() -> None:
    frames = [frame(1, None, "A street."), frame(2, None, "A dog on a street.")]
    assert [one.number for one in rank_by_words("where is the dog", frames)] == [2, 1]


def test_text_in_the_picture_counts_as_words_do() -> None:
    frames = [frame(1, None, "A street."), frame(2, None).model_copy(update={"text": "Get the dataset · laion.ai"})]
    assert [one.number for one in rank_by_words("where is the dataset", frames)] == [2, 1]


def test_the_part_with_the_words_of_the_question_is_shown() -> None:
    long = f"{'Something else. ' * 30}Then the pump fails. {'Nothing more. ' * 30}"
    shown = fitting_words("why does the pump fail?", frame(1, long, "A room."), 60)
    assert "pump fails" in shown
    assert shown.startswith("… ")
    assert shown.endswith(" …")
    assert len(shown) <= 64
    assert fitting_words("why?", frame(1, "Hello there.", "A room."), 60) == "Hello there."
    assert fitting_words("where is the room?", frame(1, "Hello there.", "A room."), 60) == "A room."
    assert fitting_words("why?", frame(1, None), 60) == ""
