"""Cues fit a picture, can be read in their time, and say what the caption says."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vip.export.cues import CaptionCues, caption_cues, columns
from vip.untrusted import one_line

SENTENCE = "A man in a red jacket rides a mountain bike down a steep forest path."
words = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("abcdefg.,!?…\"'()-<>& \n\t漢字かな、。「」한\u0301\u200d\u202e😀👍🏽"),
    max_size=60,
)
captions = st.lists(words | st.just(SENTENCE) | st.just("Donaudampfschiff" * 6) | st.just("漢字仮名" * 20), max_size=8).map(" ".join)


def lines_of(found: CaptionCues) -> list[str]:
    return [line for cue in found.cues for line in cue.lines]


def solid(text: str) -> str:
    return re.sub(r"\s", "", text)


def shown(caption: str, seconds: float) -> list[tuple[str, ...]]:
    return [cue.lines for cue in caption_cues(caption, 0, round(1000 * seconds)).cues]


@pytest.mark.slow
@given(captions, st.integers(0, 10**6), st.integers(0, 60_000))
def test_whatever_is_said_fits_the_picture_and_the_time(caption: str, start_ms: int, length_ms: int) -> None:
    found = caption_cues(caption, start_ms, start_ms + length_ms)
    for cue in found.cues:
        assert 1 <= len(cue.lines) <= 2
        assert len(found.cues) == 1 or cue.end_ms - cue.start_ms >= 999  # a second, rounded
        assert len(found.cues) == 1 or sum(map(columns, cue.lines)) <= 20 * (cue.end_ms - cue.start_ms + 1) / 1000
    for line in lines_of(found):
        assert 0 < columns(line) <= 42
        assert line == one_line(line)
    edges = [edge for cue in found.cues for edge in (cue.start_ms, cue.end_ms)]
    assert edges == sorted(edges)
    assert edges[1:-1:2] == edges[2::2]
    assert bool(found.cues) == (length_ms > 0 and bool(one_line(caption)))
    if found.cues:
        assert (edges[0], edges[-1]) == (start_ms, start_ms + length_ms)


@pytest.mark.slow
@given(captions, st.integers(0, 60_000))
def test_the_lines_in_order_are_the_caption_or_its_beginning(caption: str, length_ms: int) -> None:
    found = caption_cues(caption, 0, length_ms)
    read, whole = solid("".join(lines_of(found))), solid(one_line(caption))
    if found.is_whole:
        assert read == whole
    elif found.cues:
        assert read.endswith("…")
        assert whole.startswith(read.removesuffix("…"))
        assert len(read) <= len(whole) + 1


@pytest.mark.slow
@given(captions)
def test_with_time_enough_nothing_is_left_out(caption: str) -> None:
    assert caption_cues(caption, 0, 1000 * 3600).is_whole


def test_a_caption_that_fits_is_one_cue() -> None:
    assert shown("A dog.", 4) == [("A dog.",)]
    assert shown(SENTENCE, 4) == [("A man in a red jacket rides a mountain", "bike down a steep forest path.")]


def test_a_long_caption_is_split_at_its_sentences_and_its_time_by_their_length() -> None:
    found = caption_cues(f"{SENTENCE} The sky is clear. Two people watch him from behind a wooden fence.", 10_000, 24_400)
    assert [" ".join(cue.lines) for cue in found.cues] == [SENTENCE, "The sky is clear. Two people watch him from behind a wooden fence."]
    first, second = [cue.end_ms - cue.start_ms for cue in found.cues]
    assert first / second == pytest.approx(68 / 65, abs=0.02)


def test_a_sentence_that_is_too_long_is_split_into_lines_of_about_one_length() -> None:
    lines = [line for cue in shown("about a third of the picture " * 5, 20) for line in cue]
    assert len(lines) == 4
    assert max(map(len, lines)) - min(map(len, lines)) <= 12


def test_a_short_sentence_is_shown_for_at_least_a_second() -> None:
    full = f"{'word ' * 15}word."
    found = caption_cues(f"{full} No. {full}", 0, 9050)  # in proportion, its time would be a fifth of a second
    assert [" ".join(cue.lines) for cue in found.cues] == [full, "No.", full]
    assert found.cues[1].end_ms - found.cues[1].start_ms >= 1000


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.0, []),
        (0.04, [("The sky is clear above the old mountain", "village, where two people wait for a bus…")]),
        (4.0, [("The sky is clear above the old mountain", "village, where two people wait for a bus…")]),
        (4.9, [("The sky is clear above", "the old mountain village,"), ("where two people wait for", "a bus that comes only…")]),
    ],
)
def test_what_cannot_be_read_in_time_ends_with_an_ellipsis_but_two_lines_are_always_shown(
    seconds: float, expected: list[tuple[str, ...]]
) -> None:
    caption = "The sky is clear above the old mountain village, where two people wait for a bus that comes only twice a week."
    assert shown(caption, seconds) == expected


def test_no_comma_stands_before_the_ellipsis() -> None:
    assert shown(f"{'x' * 40}, {'y' * 40}, {'z' * 40}", 1) == [(f"{'x' * 40},", f"{'y' * 40}…")]


def test_a_word_as_long_as_a_line_gives_a_letter_to_the_ellipsis() -> None:
    assert shown(f"{'x' * 42} {'y' * 42} {'z' * 42}", 1) == [("x" * 42, f"{'y' * 41}…")]


def test_a_word_longer_than_a_line_is_broken() -> None:
    lines = [line for cue in shown(f"see {'x' * 100} there", 60) for line in cue]
    assert "".join(lines).replace(" ", "") == f"see{'x' * 100}there"
    assert all(len(line) <= 42 for line in lines)


def test_wide_letters_count_twice_and_may_stand_on_any_line() -> None:
    caption = (
        "赤い上着の男性が急な森の小道を自転車で下っている。空は晴れて、木々の間から光が差し込み、二人の観客が木の柵の後ろから見ている。"
    )
    lines = [line for cue in shown(caption, 30) for line in cue]
    assert "".join(lines) == caption
    assert all(len(line) <= 21 for line in lines)
    assert not any(line[0] in "、。" for line in lines)


def test_accents_and_emoji_stay_with_their_letter() -> None:
    family = "👨\u200d👩\u200d👧👍🏽"
    accented = unicodedata.normalize("NFD", "ế" * 50)
    for caption in (family * 30, accented):
        lines = [line for cue in shown(caption, 60) for line in cue]
        assert len(lines) > 1
        assert not any(unicodedata.category(line[0]) in {"Mn", "Sk", "Cf"} for line in lines)
        assert not any(line.endswith("\u200d") for line in lines)


def test_signs_that_turn_or_break_a_line_are_removed() -> None:
    assert shown("a\u202eb\x00c\u2066d\ufeff e\u2028f\r\n\r\ng", 5) == [("abcd e f g",)]


@pytest.mark.slow
def test_a_text_of_a_megabyte_takes_no_time() -> None:
    found = caption_cues("word " * 200_000, 0, 10_000)
    assert sum(map(columns, lines_of(found))) <= 200
