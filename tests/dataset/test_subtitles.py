"""The words around a keyframe."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vip.dataset.items import DownloadedVideo
from vip.dataset.subtitles import MOST_BYTES, choose_subtitles, read_subtitles, spoken_words, subtitles_of, webvtt, words_around
from vip.errors import StoreError
from vip.records import SpokenWords

VTT = """WEBVTT
Kind: captions

NOTE 00:00.000 --> 00:09.000 is no cue

00:00.000 --> 00:02.000 align:start
Hello &amp; <c.colour>welcome</c>

named
00:00:02.500 --> 00:00:04.000
to the
show

00:00:09.000 --> 01:00:00.000
bye
"""


def test_words_go_to_the_keyframes_half_way_around_them() -> None:
    assert words_around([0.0, 4.0, 10.0], VTT) == ["Hello & welcome", "to the show", "bye"]
    assert words_around([0.0, 6.0], VTT) == ["Hello & welcome to the show", "to the show bye"]


def test_a_cue_that_ends_half_way_is_not_heard_behind() -> None:
    assert words_around([0.0, 4.0], "00:00.000 --> 00:02.000\nhere") == ["here", None]


def test_a_keyframe_without_a_time_has_no_words() -> None:
    assert words_around([None, 1.0], VTT) == [None, "Hello & welcome to the show bye"]
    assert words_around([1.0], None) == [None]


def test_lines_that_automatic_subtitles_repeat_are_said_once() -> None:
    rolling = "00:00.000 --> 00:01.000\none\n\n00:01.000 --> 00:02.000\none\ntwo\n\n00:02.000 --> 00:03.000\ntwo\nthree"
    assert words_around([0.0], rolling) == ["one two three"]


@pytest.mark.parametrize(("language", "chosen"), [("de-AT", "german"), ("fr", "british"), (None, "british"), (7, "british")])
def test_the_language_of_the_video_is_chosen_else_english(language: object, chosen: str) -> None:
    assert choose_subtitles({"en-GB": "british", "de": "german", "ja": "japanese"}, language) == chosen


def test_without_english_the_first_language_is_chosen() -> None:
    assert choose_subtitles({"ja": "japanese", "es": "spanish"}, None) == "spanish"
    assert choose_subtitles({"de-DE": "german", "ja": "japanese"}, None) == "japanese"
    assert choose_subtitles({}, "en") is None


@pytest.mark.slow
@given(st.text() | st.text("0:.->\n "), st.lists(st.none() | st.floats(0, 100), max_size=4))
def test_what_is_no_subtitle_does_no_harm(text: str, times: list[float | None]) -> None:
    assert len(words_around(times, text)) == len(times)


def test_subtitles_that_are_too_long_for_words_are_left_out(tmp_path: Path) -> None:
    for name, size in (("en", MOST_BYTES), ("de", MOST_BYTES + 1)):
        (tmp_path / name).write_bytes(b"x" * size)
    assert list(read_subtitles(DownloadedVideo(tmp_path, subtitles={"en": tmp_path / "en", "de": tmp_path / "de"}))) == ["en"]
    with pytest.raises(StoreError, match="cannot be read"):
        read_subtitles(DownloadedVideo(tmp_path, subtitles={"fr": tmp_path / "fr"}))


def test_what_is_said_again_later_is_heard_again() -> None:
    said = [f"00:0{number}.000 --> 00:0{number + 1}.000\n{line}" for number, line in enumerate(("one", "two", "three", "one"))]
    assert words_around([0.0], "\n\n".join(said)) == ["one two three one"]


def test_of_two_kinds_of_a_language_the_plain_one_is_chosen() -> None:
    assert choose_subtitles({"en-GB": "british", "en": "plain"}, "en-US") == "plain"


def test_speech_that_a_program_wrote_down_is_the_last_choice() -> None:
    heard, read = "en-x-transcribed", "ja"
    assert choose_subtitles({heard: "heard", read: "read"}, "en") == "read"
    assert choose_subtitles({heard: "heard"}, "fr") == "heard"


def test_subtitles_and_speech_of_a_run_are_files_of_their_own_and_speech_has_its_language() -> None:
    read = SpokenWords(start_s=0.0, end_s=1.0, text="written", origin="a.srt")
    said = SpokenWords(start_s=2.0, end_s=3.0, text="spoken", source="speech", origin="whisper, tiny, de")
    assert subtitles_of([said, read]) == {"und": webvtt([read]), "de-x-transcribed": webvtt([said])}
    assert subtitles_of([read]) == {"und": webvtt([read])}
    unknown = said.model_copy(update={"origin": "whisper, ?"})
    assert subtitles_of([unknown]) == {"und-x-transcribed": webvtt([said])}


def test_words_come_back_from_a_file_as_they_were() -> None:
    said = [(0.0, 1.001, 'It\'s "so"'), (3661.25, 3662.0, "if a <b> & c --> d")]
    file = webvtt(SpokenWords(start_s=start_s, end_s=end_s, text=text, origin="x") for start_s, end_s, text in said)
    assert [(one.start_s, one.end_s, one.text) for one in spoken_words(file, "x")] == said
    assert '\nIt\'s "so"\n' in file, "what a player shows as it stands"
