"""Subtitles in a video and beside it, whole, damaged and hostile."""

import io
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest

from vip.video.source import DownloadedSource, FileSource
from vip.video.subtitles import SubtitleStream, SubtitleStreams, TimedText
from vip.words import subtitles
from vip.words.subtitles import files_beside, read_subtitles

SRT = "1\n00:00:01,000 --> 00:00:02,500\n<i>Fish</i> &amp; {\\an8}chips\nfor <b>two</b>\n\n2\n00:00:03,000 --> 00:00:04,000\nBye\n"
FRENCH = "1\n00:00:00,200 --> 00:00:00,700\n<i>Bonjour</i>\n\n2\n00:00:01,200 --> 00:00:01,500\nau revoir\n"
VTT = "WEBVTT\n\n00:01.000 --> 00:02.500 align:start\n<v Ann>Fish &amp; chips</v>\n\nNOTE no words\n\n00:03.000 --> 00:04.000\nBye\n"
ASS = (
    "[Script Info]\nScriptType: v4.00+\n\n[V4+ Styles]\nFormat: Name, Fontname, Fontsize\nStyle: Default,Arial,20\n\n[Events]\n"
    "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
    "Dialogue: 0,0:00:01.00,0:00:02.50,Default,,0,0,0,,{\\i1}Fish, and{\\i0}\\Nchips\n"
    "Dialogue: 0,0:00:02.50,0:00:02.90,Default,,0,0,0,,{\\p1}m 0 0 l 100 0\n"
    "Dialogue: 0,0:00:03.00,0:00:04.00,Default,,0,0,0,,Bye\n"
)


def make_video(path: Path, *, subtitles: str = "", language: str = "fr", start_s: int = 0) -> FileSource:
    """Write a video of two seconds, with the stream of subtitles that a SubRip text becomes."""
    with av.open(str(path), "w", options={"output_ts_offset": str(start_s)}) as out, ExitStack() as stack:
        video = out.add_stream("mpeg4", rate=5)
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        if subtitles:
            words = stack.enter_context(av.open(io.BytesIO(subtitles.encode()), format="srt"))
            stream = out.add_stream_from_template(words.streams.subtitles[0])
            stream.metadata["language"] = language
        for number in range(10):
            out.mux(video.encode(av.VideoFrame.from_ndarray(np.full((48, 64, 3), 20 * number, np.uint8), format="rgb24")))
        out.mux(video.encode())
        for packet in words.demux() if subtitles else ():
            if packet.size:
                packet.stream = stream
                out.mux(packet)
    return FileSource(path)


def test_an_entity_that_webvtt_writes_with_entities_is_resolved_once(tmp_path: Path) -> None:
    source = make_video(tmp_path / "talk.mkv")
    source.path.with_suffix(".vtt").write_text(VTT.replace("&amp;", "&amp;amp;"), encoding="utf-8")
    assert read_subtitles(source).words[0].text == "Fish &amp; chips"


@pytest.fixture
def video(tmp_path: Path) -> FileSource:
    return make_video(tmp_path / "talk.mkv")


@pytest.mark.parametrize(
    ("suffix", "text", "first"),
    [("srt", SRT, "Fish & chips for two"), ("VTT", VTT, "Fish & chips"), ("ass", ASS, "Fish, and chips")],
)
def test_a_file_beside_the_video_gives_words_and_times(video: FileSource, suffix: str, text: str, first: str) -> None:
    video.path.with_suffix(f".{suffix}").write_text(text, encoding="utf-8")
    found = read_subtitles(video)
    assert [(one.start_s, one.end_s, one.text) for one in found.words] == [(1.0, 2.5, first), (3.0, 4.0, "Bye")]
    assert {one.origin for one in found.words} == {f"talk.{suffix}"}
    assert found.notes == ()


def test_subtitles_whose_times_cannot_be_are_left_out_and_counted(video: FileSource, monkeypatch: pytest.MonkeyPatch) -> None:
    video.path.with_suffix(".srt").touch()
    cues = [TimedText(2.0, 1.0, "back"), TimedText(1.0, 1.0, "never"), TimedText(0.0, 1e12, "for ever"), TimedText(3.0, 4.0, "Bye")]
    cues.append(TimedText(0.5, 1.0, "Hi"))  # in the order of their times all the same
    monkeypatch.setattr(subtitles, "read_text", lambda *_: iter(cues))
    found = read_subtitles(video)
    assert [one.text for one in found.words] == ["Hi", "Bye"]
    assert found.notes == ("talk.srt: 3 subtitles end before they begin: left out.",)


@pytest.mark.parametrize(("encoding", "mark"), [("utf-8", ""), ("utf-8", "\ufeff"), ("utf-16-le", "\ufeff"), ("utf-16-be", "\ufeff")])
def test_letters_survive_every_unicode(video: FileSource, encoding: str, mark: str) -> None:
    video.path.with_suffix(".srt").write_bytes((mark + SRT.replace("Bye", "Tschüß 再见")).encode(encoding))
    found = read_subtitles(video)
    assert found.words[-1].text == "Tschüß 再见"
    assert found.notes == ()


def test_another_encoding_is_read_and_said(video: FileSource) -> None:
    video.path.with_suffix(".srt").write_bytes(SRT.replace("Bye", "Tschüß").encode("cp1252"))
    found = read_subtitles(video)
    assert found.words[-1].text == "Tschüß"
    assert "is not UTF-8 and was read as Windows-1252" in found.notes[0]


def test_the_plain_name_comes_before_english_and_english_before_others(tmp_path: Path) -> None:
    for name in (
        "talk.de.srt",
        "talk.eng.srt",
        "talk.en.vtt",
        "talk.srt",
        "talk2.srt",
        "talk.a.b.srt",
        "talk.whodirectedit.srt",
        "talk.txt",
        "talk.mkv",
    ):
        (tmp_path / name).touch()
    assert [path.name for path in files_beside(tmp_path / "talk.mkv")] == ["talk.srt", "talk.en.vtt", "talk.eng.srt", "talk.de.srt"]


@pytest.mark.parametrize(
    ("name", "is_its"),
    [
        ("TALK.SRT", True),
        ("Talk.En-US.Vtt", True),
        ("talk.ssa", True),
        ("talk..srt", True),
        ("talk.abcdefghijkl.srt", True),
        ("talk.abcdefghijklm.srt", False),
        ("talk.en.forced.srt", False),
        ("talks.srt", False),
        ("my talk.srt", False),
        ("talk.en.txt", False),
        ("talk", False),
    ],
)
@pytest.mark.parametrize("video", ["talk.mkv", "TALK.MP4"])
def test_a_file_belongs_to_the_video_whose_name_it_has_however_it_is_written(tmp_path: Path, video: str, name: str, is_its: bool) -> None:
    (tmp_path / name).touch()
    assert files_beside(tmp_path / video) == ([tmp_path / name] if is_its else [])


def test_of_several_languages_every_english_comes_first_and_the_others_by_name(tmp_path: Path) -> None:
    names = ["talk.ass", "talk.srt", "talk.en-GB.srt", "talk.eng.vtt", "talk.de.srt", "talk.enx.srt", "talk.zh.srt"]
    for name in reversed(names):
        (tmp_path / name).touch()
    assert [path.name for path in files_beside(tmp_path / "talk.mkv")] == names


def test_a_file_without_words_is_named_and_the_next_one_is_read(tmp_path: Path) -> None:
    video = make_video(tmp_path / "talk.mkv", subtitles=FRENCH)
    (tmp_path / "talk.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\n{\\an8}\n", encoding="utf-8")
    (tmp_path / "talk.de.srt").write_text(SRT, encoding="utf-8")
    (tmp_path / "talk.fr.srt").write_text(SRT, encoding="utf-8")
    found = read_subtitles(video)
    assert {one.origin for one in found.words} == {"talk.de.srt"}
    assert found.notes[-1] == "3 other subtitle files and streams left aside."
    assert any(note.startswith("talk.srt ") for note in found.notes)
    for name in ("talk.de.srt", "talk.fr.srt"):
        (tmp_path / name).unlink()
    assert {one.origin for one in read_subtitles(video).words} == {"stream 1 (fr)"}


@pytest.mark.parametrize(("name", "language"), [("0123.en.srt", "en"), ("0123.zh-Hans.vtt", "zh-Hans"), ("0123.srt", "unknown language")])
def test_subtitles_of_a_page_are_named_after_it_and_not_after_a_file_of_the_cache(tmp_path: Path, name: str, language: str) -> None:
    make_video(tmp_path / "0123.mkv")
    (tmp_path / name).write_text(SRT if name.endswith("srt") else VTT, encoding="utf-8")
    source = DownloadedSource(tmp_path / "0123.mkv", "talk", address="https://h/watch?v=1", shown="https://h/watch#sha256-01")
    assert {one.origin for one in read_subtitles(source).words} == {f"https://h/watch ({language})"}


@pytest.mark.parametrize(("language", "origin"), [("und", "stream 1"), ("deu", "stream 1 (deu)")])
def test_a_stream_is_named_with_the_language_that_it_states(tmp_path: Path, language: str, origin: str) -> None:
    found = read_subtitles(make_video(tmp_path / "talk.mkv", subtitles=FRENCH, language=language))
    assert {one.origin for one in found.words} == {origin}


def test_a_stream_in_the_video_is_read_where_no_file_lies_beside_it(tmp_path: Path) -> None:
    video = make_video(tmp_path / "talk.mkv", subtitles=FRENCH)
    found = read_subtitles(video)
    assert [(one.start_s, one.end_s, one.text) for one in found.words] == [(0.2, 0.7, "Bonjour"), (1.2, 1.5, "au revoir")]
    assert found.words[0].origin == "stream 1 (fr)"
    (tmp_path / "talk.srt").write_text(SRT, encoding="utf-8")
    both = read_subtitles(video)
    assert {one.origin for one in both.words} == {"talk.srt"}
    assert both.notes == ("1 other subtitle file or stream left aside.",)


def test_the_stream_that_a_player_would_show_is_read(video: FileSource, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = SubtitleStream(number=1, codec="srt", language="fr", is_text=True, is_forced=False, is_default=False)
    worst_first = (
        replace(plain, number=7, language="en", is_forced=True, is_default=True),  # only what is foreign to the other language
        replace(plain, number=9),
        plain,  # of equal ones the first
        replace(plain, number=6, language="en"),
        replace(plain, number=8, is_default=True),
        replace(plain, number=5, language="eng", is_default=True),
    )
    monkeypatch.setattr(subtitles, "read_stream", lambda source, number: iter([TimedText(0, 1, f"of stream {number}")]))
    streams, chosen = list(worst_first), []
    while streams:
        monkeypatch.setattr(subtitles, "subtitle_streams", lambda source, left=tuple(streams): SubtitleStreams(left, 0.0))
        (words,) = read_subtitles(video).words
        chosen.append(int(words.text.split()[-1]))
        streams = [one for one in streams if one.number != chosen[-1]]
    assert chosen == [5, 8, 6, 1, 9, 7]


def test_streams_that_hold_pictures_of_text_are_counted(video: FileSource, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = SubtitleStream(number=1, codec="dvd_subtitle", language="fr", is_text=False, is_forced=False, is_default=False)
    monkeypatch.setattr(subtitles, "subtitle_streams", lambda source: SubtitleStreams((drawn, replace(drawn, number=2)), 0.0))
    found = read_subtitles(video)
    assert (found.words, found.notes) == ((), ("talk.mkv: 2 streams of subtitles hold pictures of text, which are not read.",))


def test_a_file_counts_from_where_the_video_starts(tmp_path: Path) -> None:
    video = make_video(tmp_path / "talk.ts", start_s=90)
    with av.open(str(video.path)) as container:
        start_s = (container.start_time or 0) / 1_000_000
    assert start_s > 89
    (tmp_path / "talk.srt").write_text(SRT, encoding="utf-8")
    assert read_subtitles(video).words[0].start_s == pytest.approx(1 + start_s, abs=0.001)


@pytest.mark.parametrize("data", [b"", b"\0" * 5000, b"no subtitles\n" * 50, b"\xff\xfe", b"WEBVTT\n\n00:00 --> nonsense\nx"])
@pytest.mark.parametrize("suffix", ["srt", "vtt", "ass"])
def test_a_damaged_file_is_named_and_passed_over(video: FileSource, data: bytes, suffix: str) -> None:
    video.path.with_suffix(f".{suffix}").write_bytes(data)
    video.path.with_suffix(".de.srt").write_text(SRT, encoding="utf-8")
    found = read_subtitles(video)
    assert {one.origin for one in found.words} == {"talk.de.srt"}
    assert any(note.startswith(f"talk.{suffix} ") for note in found.notes)


def test_a_huge_file_a_link_and_a_folder_are_left_aside(video: FileSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subtitles, "MOST_BYTES", 1000)
    video.path.with_suffix(".srt").write_bytes(b" " * 1001)
    video.path.with_suffix(".vtt").symlink_to("/etc/hostname")
    video.path.with_suffix(".ass").mkdir()
    found = read_subtitles(video)
    assert found.words == ()
    assert len(found.notes) == 3
    assert "larger than 1,000 bytes" in found.notes[1]


def test_times_that_cannot_be_are_counted(video: FileSource) -> None:
    text = SRT + "\n3\n00:00:08,000 --> 00:00:07,000\nlast, reversed\n\n4\n9999999:00:00,000 --> 9999999:00:01,000\nlate\n"
    video.path.with_suffix(".srt").write_text(text, encoding="utf-8")
    found = read_subtitles(video)
    assert [one.text for one in found.words][:2] == ["Fish & chips for two", "Bye"]
    assert all(one.start_s < one.end_s for one in found.words)


def test_a_letter_that_ends_texts_elsewhere_ends_none_here(video: FileSource) -> None:
    video.path.with_suffix(".srt").write_bytes(SRT.replace("Fish", "Fi\0sh").encode())
    assert [one.text for one in read_subtitles(video).words] == ["Fish & chips for two", "Bye"]


def test_of_too_many_subtitles_the_first_are_read(video: FileSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subtitles, "MOST_WORDS", 1)
    video.path.with_suffix(".srt").write_text(SRT, encoding="utf-8")
    found = read_subtitles(video)
    assert [one.text for one in found.words] == ["Fish & chips for two"]
    assert found.notes == ("talk.srt: only its first 1 subtitles are read.",)


def test_overlapping_subtitles_are_all_there_in_order(video: FileSource) -> None:
    text = "1\n00:00:03,000 --> 00:00:09,000\nlong\n\n2\n00:00:01,000 --> 00:00:04,000\nfirst\n\n3\n00:00:03,500 --> 00:00:05,000\ninside\n"
    video.path.with_suffix(".srt").write_text(text, encoding="utf-8")
    assert [one.text for one in read_subtitles(video).words] == ["first", "long", "inside"]


def test_escape_sequences_and_long_lines_do_not_pass(video: FileSource) -> None:
    text = f"1\n00:00:01,000 --> 00:00:02,000\n\x1b[31mred\x1b[0m \u202egnol\n{'x' * 5000}\n"
    video.path.with_suffix(".srt").write_text(text, encoding="utf-8")
    (word,) = read_subtitles(video).words
    assert word.text.startswith("red gnol xxx")
    assert len(word.text) == 2000
    assert word.text.isprintable()
