"""`--to vtt`: which cue each keyframe gets, from when to when, and which files lie beside the captions."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.corpus.making import sample, with_text
from vip.dataset.rows import VideoSample
from vip.errors import InputError
from vip.export import vtt
from vip.export.cues import CaptionCues, SubtitleCue
from vip.records import KeyframeText, TextLine

HELLO = "WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n"
HALLO = "WEBVTT\n\n00:01.000 --> 00:02.000\nHallo\n"


def unheard(text: str) -> None:
    raise AssertionError(f"nobody expected: {text}")


def clip(*frames: tuple[float | None, str], duration_s: float | None = 9.0) -> VideoSample:
    """A video whose keyframes have these times and captions."""
    one = sample(count=len(frames), duration_s=duration_s)
    made = []
    for frame, (time_s, text) in zip(one.frames, frames, strict=True):
        assert frame.description
        row, keyframe = frame.description.model_copy(update={"dense_caption": text}), frame.keyframe.model_copy(update={"time_s": time_s})
        made.append(dataclasses.replace(frame, keyframe=keyframe, description=row))
    return VideoSample(one.video, tuple(made))


def reading(one: VideoSample, *lines: str) -> VideoSample:
    """The clip with these lines read in its first picture."""
    rows = tuple(TextLine(text=line, score=1.0, box_xyxy=(0.0, 0.0, 1.0, 1.0)) for line in lines)
    first, *others = one.frames
    text = KeyframeText(keyframe_id=first.keyframe.id, picture_sha256="0", reader="a reader", lines=rows)
    return VideoSample(one.video, (dataclasses.replace(first, text=text), *others))


def subtitled(one: VideoSample, subtitles: dict[str, str], language: str | None = None) -> VideoSample:
    info = {"language": language} if language else {}
    return VideoSample(one.video.model_copy(update={"subtitles": subtitles, "info": info}), one.frames)


def spans(found: list[CaptionCues]) -> list[tuple[int, int, str]]:
    return [(cue.start_ms, cue.end_ms, " ".join(cue.lines)) for one in found for cue in one.cues]


# ---------------------------------------------------------------- times


def test_keyframes_that_come_in_another_order_are_shown_in_that_of_their_times() -> None:
    one = clip((6.0, "late"), (2.0, "early"), (4.0, "between"))
    assert spans(vtt.captions_of(one)) == [(2000, 4000, "early"), (4000, 6000, "between"), (6000, 9000, "late")]


def test_a_keyframe_at_the_very_start_is_shown_from_there() -> None:
    assert spans(vtt.captions_of(clip((0.0, "first"), (2.0, "second")))) == [(0, 2000, "first"), (2000, 9000, "second")]


def test_a_keyframe_without_a_time_is_left_out_and_ends_no_other() -> None:
    one = clip((2.0, "one"), (None, "nowhere"), (6.0, "three"))
    assert spans(vtt.captions_of(one)) == [(2000, 6000, "one"), (6000, 9000, "three")]


def test_pictures_that_come_from_no_video_have_no_cues() -> None:
    one = clip((None, "one"), (None, "two"))
    assert vtt.captions_of(one) == []
    assert vtt.texts_of(with_text(one)) == []


def test_a_keyframe_with_nothing_to_say_still_ends_the_one_before() -> None:
    assert spans(vtt.captions_of(clip((2.0, "one"), (4.0, " \n\u202e"), (6.0, "three")))) == [(2000, 4000, "one"), (6000, 9000, "three")]


@pytest.mark.parametrize(
    ("duration_s", "end_ms"),
    [(None, 11_000), (0.0, 11_000), (6.0, 11_000), (5.9, 11_000), (6.001, 6001), (7.5, 7500), (1e12, 3_600_000_000)],
)
def test_the_last_caption_ends_with_the_video_where_that_is_later(duration_s: float | None, end_ms: int) -> None:
    assert spans(vtt.captions_of(clip((6.0, "one"), duration_s=duration_s))) == [(6000, end_ms, "one")]


def test_times_before_the_start_of_the_clock_are_its_start() -> None:
    assert spans(vtt.captions_of(clip((-3.0, "gone"), (-1.0, "first"), (2.0, "second")))) == [(0, 2000, "first"), (2000, 9000, "second")]


@pytest.mark.parametrize(
    ("start_ms", "clock"),
    [
        (0, "00:00:00.000"),
        (7, "00:00:00.007"),
        (59_999, "00:00:59.999"),
        (60_000, "00:01:00.000"),
        (3_599_999, "00:59:59.999"),
        (3_661_050, "01:01:01.050"),
        (90_061_001, "25:01:01.001"),
        (3_600_000_000, "1000:00:00.000"),
    ],
)
def test_a_time_has_hours_minutes_seconds_and_three_digits(start_ms: int, clock: str) -> None:
    text = vtt.webvtt([CaptionCues((SubtitleCue(start_ms, 10**10, ("x",)),), is_whole=True)])
    assert text.split("\n")[2].partition(" --> ")[0] == clock


@pytest.mark.parametrize(("time_s", "start_ms"), [(59.9996, 60_000), (0.0004, 0), (1.2346, 1235), (2.9999, 3000)])
def test_a_time_is_rounded_to_the_nearest_millisecond(time_s: float, start_ms: int) -> None:
    assert spans(vtt.captions_of(clip((time_s, "x"), duration_s=100.0))) == [(start_ms, 100_000, "x")]


# ---------------------------------------------------------------- the file


def test_a_file_has_a_header_and_a_blank_line_before_each_cue() -> None:
    first = CaptionCues((SubtitleCue(0, 1000, ("a", "b")), SubtitleCue(1000, 2000, ("c",))), is_whole=True)
    second = CaptionCues((SubtitleCue(2000, 3000, ("d",)),), is_whole=False)
    assert vtt.webvtt([first, second]) == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\na\nb\n\n00:00:01.000 --> 00:00:02.000\nc\n\n00:00:02.000 --> 00:00:03.000\nd\n"
    )


def test_a_file_without_cues_is_its_header() -> None:
    assert vtt.webvtt([]) == vtt.webvtt([CaptionCues((), is_whole=False)]) == "WEBVTT\n"


def test_quotation_marks_need_no_escape() -> None:
    text = vtt.webvtt([CaptionCues((SubtitleCue(0, 1000, ('"It\'s" <i>&',)),), is_whole=True)])
    assert text.split("\n")[3] == '"It\'s" &lt;i&gt;&amp;'


# ---------------------------------------------------------------- text and words


def test_the_lines_of_a_picture_are_one_cue_with_dots_between() -> None:
    assert spans(vtt.texts_of(reading(clip((2.0, "one"), (4.0, "two")), "Exit", "Gate 5"))) == [(2000, 4000, "Exit · Gate 5")]


def test_a_picture_in_which_nothing_was_read_has_no_text() -> None:
    assert vtt.texts_of(reading(clip((2.0, "one")))) == vtt.texts_of(clip((2.0, "one"))) == []


def test_all_files_of_a_video_are_written_and_counted(tmp_path: Path) -> None:
    one = subtitled(reading(clip((2.0, "A dog."), (4.0, "A cat.")), "Exit"), {"en": HELLO})
    assert vtt.write(iter([one]), str(tmp_path), unheard) == 3
    assert {path.name: path.read_text().split("\n")[2:4] for path in tmp_path.iterdir()} == {
        "abc.vtt": ["00:00:02.000 --> 00:00:04.000", "A dog."],
        "abc~text.vtt": ["00:00:02.000 --> 00:00:04.000", "Exit"],
        "abc~words.vtt": ["00:00:01.000 --> 00:00:02.000", "Hello"],
    }


def test_a_video_with_text_alone_has_a_file_of_it(tmp_path: Path) -> None:
    told: list[str] = []
    assert vtt.write(iter([with_text(sample("one", described=False))]), str(tmp_path), told.append) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["one~text.vtt"]
    assert told == ["1 of 1 video has no described keyframes, and so no subtitles. `vip caption` describes them."]


@pytest.mark.parametrize(("language", "said"), [("de", "Hallo"), ("de-AT", "Hallo"), ("en", "Hello"), (None, "Hello"), ("fr", "Hello")])
def test_the_words_are_those_in_the_language_of_the_video(language: str | None, said: str, tmp_path: Path) -> None:
    one = subtitled(clip((2.0, "A dog.")), {"de": HALLO, "en": HELLO}, language)
    assert vtt.write(iter([one]), str(tmp_path), unheard) == 2
    assert (tmp_path / "abc~words.vtt").read_text() == f"WEBVTT\n\n00:00:01.000 --> 00:00:02.000\n{said}\n"


def test_words_of_a_stranger_are_cleaned_and_escaped(tmp_path: Path) -> None:
    strange = "WEBVTT\n\n01:00:01.500 --> 01:00:02.250\nRed \x1b[31mhat\u202e &amp; &lt;b&gt;\nbye\n"
    vtt.write(iter([subtitled(clip((2.0, "A dog.")), {"en": strange})]), str(tmp_path), unheard)
    assert (tmp_path / "abc~words.vtt").read_text() == "WEBVTT\n\n01:00:01.500 --> 01:00:02.250\nRed hat &amp; &lt;b&gt;\nbye\n"


# ---------------------------------------------------------------- what the user is told


def test_videos_without_captions_are_counted_among_videos_not_files(tmp_path: Path) -> None:
    told: list[str] = []
    bare = [with_text(sample("two", described=False)), sample("three", described=False)]
    some = [subtitled(with_text(sample("one")), {"en": HELLO}), *bare]
    assert vtt.write(iter(some), str(tmp_path), told.append) == 4
    assert told == ["2 of 3 videos have no described keyframes, and so no subtitles. `vip caption` describes them."]


def test_captions_that_end_early_are_counted_over_all_videos_but_not_read_text(tmp_path: Path) -> None:
    told: list[str] = []
    long = "word " * 30
    first, second = reading(clip((2.0, long), (4.0, "x")), long), clip((2.0, "y"), (4.0, long), (6.0, "z"))
    second = VideoSample(second.video.model_copy(update={"key": "abc"}), second.frames)
    vtt.write(iter([first, second]), str(tmp_path), told.append)
    assert told == [
        "Of 5 captions, 2 end early with … for lack of time before the next keyframe. Export with --to jsonl to have all of the text."
    ]


def test_without_any_video_there_is_nothing_to_show(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no keyframe of a video is described"):
        vtt.write(iter([]), str(tmp_path), unheard)
    assert list(tmp_path.iterdir()) == []


def test_each_described_video_counts_among_the_videos(tmp_path: Path) -> None:
    told: list[str] = []
    assert vtt.write(iter([sample("one"), sample("two", described=False), sample("three")]), str(tmp_path), told.append) == 2
    assert told == ["1 of 3 videos has no described keyframes, and so no subtitles. `vip caption` describes them."]


def test_a_video_whose_captions_are_blank_has_no_file(tmp_path: Path) -> None:
    one = clip((2.0, " \n"), (4.0, "\u202e"))
    assert vtt.captions_of(one) == []
    with pytest.raises(InputError, match="no keyframe of a video is described"):
        vtt.write(iter([one]), str(tmp_path), unheard)
