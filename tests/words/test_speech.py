"""Speech of a video: windows, times, what is kept; with a fake transcriber, and real sound that FFmpeg wrote."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from tests.captioning.keyframes import Scripted, describer, keyframe
from tests.words.test_run_words import FAMOUS, INJECTION, Notes
from tests.words.transcribers import FakeTranscriber
from vip import registry, store
from vip.captioning.describer import KeyframePosition
from vip.captioning.encoded_pictures import EncodedKeyframe, encode_keyframe
from vip.captioning.run_async import run_async
from vip.dataset.rows import sample_of
from vip.dataset.schema import rows_of
from vip.errors import BackendError, InputError
from vip.pipeline import add_words, caption, extract, run
from vip.records import SpokenWords, TranscribedWindow
from vip.search.ask_frames import words_of
from vip.store import Run
from vip.video import FileSource
from vip.video.sound import RATE, SoundBlock, read_sound, sound_stream
from vip.words import speech as speech_module
from vip.words.run_words import SpeechJob, words_by_keyframe
from vip.words.speech import WINDOW_S, windows_of


def write_clip(path: Path, tones: Sequence[tuple[float, float]], *, length_s: float = 8, rate: int = 44_100, start_s: float = 0.0) -> Path:
    """Write a video of grey pictures and a tone of 300 Hz between the times of `tones`; both streams begin at `start_s`."""
    with av.open(path, "w") as out:
        pictures = out.add_stream("mpeg4", rate=10, width=64, height=48, pix_fmt="yuv420p")
        sound = out.add_stream("flac" if path.suffix == ".mkv" else "mp2", rate=rate, layout="stereo")
        times = np.arange(int(length_s * rate)) / rate
        loud = np.zeros(len(times), bool)
        for begin, end in tones:
            loud |= (times >= begin) & (times < end)
        wave = (np.sin(2 * np.pi * 300 * times) * loud * 0.5 * 32767).astype(np.int16)
        for number in range(int(10 * length_s)):
            shade = 60 + 17 * (number // 20) % 150
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), shade, np.uint8), format="rgb24")
            frame.pts, frame.time_base = number + round(10 * start_s), Fraction(1, 10)
            out.mux(pictures.encode(frame))
        for first in range(0, len(wave), 1152):
            part = np.ascontiguousarray(np.repeat(wave[first : first + 1152], 2).reshape(1, -1))
            piece = av.AudioFrame.from_ndarray(part, format="s16", layout="stereo")
            piece.sample_rate, piece.pts, piece.time_base = rate, first + round(start_s * rate), Fraction(1, rate)
            out.mux(sound.encode(piece))
        out.mux(pictures.encode(None))
        out.mux(sound.encode(None))
    return path


TONES = [(1.0, 1.5), (3.0, 3.8), (6.0, 6.1)]  # the last one is unsure


@pytest.fixture
def video(tmp_path: Path) -> Path:
    return write_clip(tmp_path / "talk.mkv", TONES)


def spoken(video: Path, folder: Path, transcriber: FakeTranscriber, notes: Notes | None = None, **options: object) -> Run:
    made = extract(video, out=folder, keyframes=3, **options)
    add_words(made, FileSource(video), "speech", speech=SpeechJob(transcriber), observer=notes or Notes())
    return made


def test_speech_has_the_times_that_it_is_said_at(video: Path, tmp_path: Path) -> None:
    notes = Notes()
    made = spoken(video, tmp_path / "r.vip", FakeTranscriber(), notes)
    assert [(one.text, one.source, one.origin) for one in made.words] == [
        ("tone 5", "speech", "speech, fake 1, en"),
        ("tone 8", "speech", "speech, fake 1, en"),
    ]
    for one, (begin, end) in zip(made.words, TONES, strict=False):
        assert one.start_s == pytest.approx(begin, abs=0.03)
        assert one.end_s == pytest.approx(end, abs=0.03)
    assert any("1 segment of speech left out" in note for note in notes.texts)
    assert "words: 2 segments of speech, fake 1, en" in notes.texts


@pytest.mark.parametrize(("suffix", "rate", "start_s"), [(".mkv", 48_000, 2.5), (".ts", 44_100, 1.4), (".mkv", 8_000, 0.0)])
def test_times_stand_on_the_clock_of_the_keyframes(tmp_path: Path, suffix: str, rate: int, start_s: float) -> None:
    if suffix == ".ts":
        rate = 48_000
    video = write_clip(tmp_path / f"late{suffix}", [(2.0, 2.5)], rate=rate, start_s=start_s)
    made = spoken(video, tmp_path / "r.vip", FakeTranscriber())
    assert made.manifest
    first = made.manifest.video.start_time_s
    assert made.words[0].start_s == pytest.approx(first + 2.0, abs=0.06)  # MPEG's sound begins a frame late
    if suffix == ".mkv":
        assert first == pytest.approx(start_s, abs=0.002)


def test_the_time_range_bounds_what_is_heard(video: Path, tmp_path: Path) -> None:
    transcriber = FakeTranscriber()
    made = spoken(video, tmp_path / "r.vip", transcriber, start=2.5, end=3.5)
    assert [(one.start_s, one.end_s) for one in made.words] == [pytest.approx((3.0, 3.5), abs=0.03)]
    assert transcriber.most_samples <= RATE


def test_what_was_transcribed_is_not_transcribed_again(video: Path, tmp_path: Path) -> None:
    first, second, other = FakeTranscriber(), FakeTranscriber(), FakeTranscriber("fake 2")
    made = spoken(video, tmp_path / "r.vip", first)
    words = made.words
    spoken(video, tmp_path / "r.vip", second)
    assert first.lengths
    assert second.lengths == []
    assert made.words == words
    spoken(video, tmp_path / "r.vip", other)
    assert {one.origin for one in made.words} == {"speech, fake 2, en"}
    write_clip(video, [(4.0, 4.5)])
    made = extract(video, out=tmp_path / "r.vip", keyframes=3, overwrite=True)
    add_words(made, FileSource(video), "speech", speech=SpeechJob(other))
    assert [one.start_s for one in made.words] == pytest.approx([4.0], abs=0.03)


def test_a_killed_run_goes_on_behind_the_last_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech_module, "WINDOW_S", 4)
    monkeypatch.setattr(speech_module, "CUT_S", 2)
    tones = [(n + 0.2, n + 0.6) for n in range(11)]
    video = write_clip(tmp_path / "talk.mkv", tones, length_s=12)
    whole = spoken(video, tmp_path / "whole.vip", FakeTranscriber()).words

    class Killed(FakeTranscriber):
        def transcribe(self, samples, language):  # type: ignore[no-untyped-def]
            if len(self.lengths) == 2:
                raise KeyboardInterrupt
            return super().transcribe(samples, language)

    with pytest.raises(KeyboardInterrupt):
        spoken(video, tmp_path / "r.vip", Killed())
    assert not (tmp_path / "r.vip" / store.WORDS).exists()
    again = FakeTranscriber()
    made = spoken(video, tmp_path / "r.vip", again)
    assert [one.text for one in made.words] == [one.text for one in whole] == ["tone 4"] * 11
    assert [one.start_s for one in made.words] == pytest.approx([begin for begin, _ in tones], abs=0.03)
    assert sum(again.lengths) < 8 * RATE  # the first windows were not heard again
    path, anew = tmp_path / "r.vip" / store.SPEECH, FakeTranscriber()
    first, *others = store.read_rows(path, TranscribedWindow)
    store.write_rows(path, [first.model_copy(update={"key": "another"}), *others])
    spoken(video, tmp_path / "r.vip", anew)
    assert sum(anew.lengths) > sum(again.lengths), "one window was made of something else"


def test_a_language_that_is_found_in_enough_speech_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech_module, "WINDOW_S", 4)
    monkeypatch.setattr(speech_module, "CUT_S", 2)
    video = write_clip(tmp_path / "talk.mkv", [(n + 0.2, n + 0.6) for n in range(11)], length_s=12)

    class Changing(FakeTranscriber):
        def language_of(self, samples):  # type: ignore[no-untyped-def]
            return f"l{len(self.languages)}"

    changing = Changing()
    spoken(video, tmp_path / "a.vip", changing)
    assert len(set(changing.languages)) > 1  # little is said in each window
    monkeypatch.setattr(speech_module, "LEAST_FOR_LANGUAGE_S", 1)
    kept = Changing()
    made = spoken(video, tmp_path / "b.vip", kept)
    assert set(kept.languages) == {"l0"}
    path = made.folder / store.SPEECH
    store.write_rows(path, list(store.read_rows(path, TranscribedWindow))[:1])  # as a killed run leaves it
    resumed = Changing(language="another")
    resumed.languages.append("in the run before")
    spoken(video, made.folder, resumed)
    assert set(resumed.languages[1:]) == {"l0"}


def test_a_segment_without_a_word_is_none(video: Path, tmp_path: Path) -> None:
    class Breathing(FakeTranscriber):
        def transcribe(self, samples, language):  # type: ignore[no-untyped-def]
            for segment in super().transcribe(samples, language):
                yield from (replace(segment, text=" \x1b "), segment)

    made = spoken(video, tmp_path / "r.vip", Breathing())
    assert [one.text for one in made.words] == ["tone 5", "tone 8"]


def test_a_segment_ends_with_the_speech_and_one_behind_it_is_unsure(video: Path, tmp_path: Path) -> None:
    class Late(FakeTranscriber):
        def transcribe(self, samples, language):  # type: ignore[no-untyped-def]
            for segment in super().transcribe(samples, language):
                yield replace(segment, end_s=segment.end_s + 5)
                yield replace(segment, start_s=segment.end_s + 5, end_s=segment.end_s + 6, is_sure=True)

    notes = Notes()
    made = spoken(video, tmp_path / "r.vip", Late(), notes)
    assert [(one.start_s, one.end_s) for one in made.words] == [pytest.approx(times, abs=0.03) for times in ((1.0, 3.8), (3.0, 3.8))]
    assert any("4 segments of speech left out" in note for note in notes.texts)


def test_a_language_is_looked_for_in_the_first_minutes_of_speech(video: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[float] = []

    class Listening(FakeTranscriber):
        def language_of(self, samples):  # type: ignore[no-untyped-def]
            heard.append(len(samples) / RATE)
            return self.language

    spoken(video, tmp_path / "r.vip", Listening())
    monkeypatch.setattr(speech_module, "MOST_FOR_LANGUAGE_S", 1.0)
    spoken(video, tmp_path / "short.vip", Listening())
    assert heard == pytest.approx([2.9, 1.0], abs=0.06)


def test_the_bar_is_as_long_as_the_sound_that_is_heard(video: Path, tmp_path: Path) -> None:
    lengths: list[int] = []

    class Bars(Notes):
        def track(self, title: str, total: int, extra: object = None):  # type: ignore[no-untyped-def]
            lengths.append(total)
            return super().track(title, total)

    spoken(video, tmp_path / "r.vip", FakeTranscriber(), Bars(), start=2.5, end=4.5)
    assert lengths == [2]


def test_a_language_that_is_given_is_not_looked_for(video: Path, tmp_path: Path) -> None:
    class Deaf(FakeTranscriber):
        def language_of(self, samples):  # type: ignore[no-untyped-def]
            raise AssertionError

    made = extract(video, out=tmp_path / "r.vip", keyframes=3)
    add_words(made, FileSource(video), "speech", speech=SpeechJob(Deaf(), "de"))
    assert {one.origin for one in made.words} == {"speech, fake 1, de"}
    add_words(made, FileSource(video), "speech", speech=SpeechJob(Deaf(), "fr"))
    assert {one.origin for one in made.words} == {"speech, fake 1, fr"}, "heard anew"


# ---------------------------------------------------------------- windows


def blocks_of(pieces: Sequence[tuple[float, float, bool]]) -> Iterator[SoundBlock]:
    """Yield blocks of noise or silence: start, length, and whether it is loud."""
    end = None
    for start, length, is_loud in pieces:
        samples = np.full(round(length * RATE), 0.5 * is_loud, np.float32)
        yield SoundBlock(Fraction(start), samples, follows=start == end)
        end = start + length


def test_windows_are_cut_in_pauses_and_hold_all_samples() -> None:
    pieces = [(10 * n, part, loud) for n in range(100) for part, loud in ((9.0, True),)]
    made = [piece for start, _, _ in pieces for piece in ((float(start), 9.0, True), (start + 9.0, 1.0, False))]
    windows = list(windows_of(blocks_of(made), FakeTranscriber()))
    assert sum(len(one.samples) for one in windows) == 1000 * RATE
    assert all(len(one.samples) <= WINDOW_S * RATE for one in windows)
    assert all(before.end_s == after.start_s for before, after in itertools.pairwise(windows))
    assert all(float(one.end_s) % 10 == pytest.approx(9.5, abs=0.03) for one in windows[:-1])


def test_who_never_pauses_is_cut_all_the_same() -> None:
    windows = list(windows_of(blocks_of([(n * 50.0, 50.0, True) for n in range(20)]), FakeTranscriber()))
    assert sum(len(one.samples) for one in windows) == 1000 * RATE
    assert all(WINDOW_S - speech_module.CUT_S <= len(one.samples) / RATE <= WINDOW_S for one in windows[:-1])


def test_a_gap_is_silence_and_a_long_gap_begins_a_window() -> None:
    windows = list(
        windows_of(
            blocks_of([(0.0, 1.0, True), (3.0, 1.0, True), (5.0, 1.0, True), (100.0, 1.0, True), (50.0, 1.0, True)]), FakeTranscriber()
        )
    )
    assert [(float(one.start_s), len(one.samples) / RATE) for one in windows] == [(0.0, 6.0), (100.0, 1.0), (50.0, 1.0)]
    heard = np.abs(windows[0].samples).reshape(6, RATE).max(axis=1)
    assert list(heard > 0) == [True, False, False, True, False, True]


@pytest.mark.parametrize(("gap_s", "lengths_s"), [(0.0, [73.0]), (1.0, [74.0]), (2.0, [75.0]), (2.5, [63.0, 10.0])])
def test_a_gap_behind_a_cut_is_as_long_as_any_other(gap_s: float, lengths_s: list[float]) -> None:
    pieces = [(0.0, 250.0, True), (250.0, 4.0, False), (254.0, 61.0, True), (315.0 + gap_s, 10.0, True)]
    first, *others = windows_of(blocks_of(pieces), FakeTranscriber())
    assert float(first.end_s) == pytest.approx(252.0, abs=0.03)
    assert [len(one.samples) / RATE for one in others] == pytest.approx(lengths_s, abs=0.03)
    assert float(others[-1].end_s) == 325.0 + gap_s


def test_a_window_is_cut_in_the_middle_of_the_longest_pause_near_its_end() -> None:
    pieces = [(0.0, 250.0, True), (250.0, 5.0, False), (255.0, 3.0, True), (258.0, 1.0, False), (259.0, 60.0, True)]
    first, second = windows_of(blocks_of(pieces), FakeTranscriber())
    assert float(first.end_s) == float(second.start_s) == pytest.approx(252.5, abs=0.03)


@pytest.mark.slow
def test_an_hour_is_heard_with_the_memory_of_minutes(tmp_path: Path) -> None:
    path = tmp_path / "hour.mkv"
    with av.open(path, "w") as out:
        sound = out.add_stream("flac", rate=8000, layout="mono")
        wave = np.zeros((1, 4000), np.int16)
        wave[0, :1000] = 9000  # an eighth of a second of each half
        for number in range(7200):
            frame = av.AudioFrame.from_ndarray(wave if number % 20 == 0 else np.zeros_like(wave), format="s16", layout="mono")
            frame.sample_rate, frame.pts, frame.time_base = 8000, number * 4000, Fraction(1, 8000)
            out.mux(sound.encode(frame))
        out.mux(sound.encode(None))
    source, transcriber, heard = FileSource(path), FakeTranscriber(), 0
    stream = sound_stream(source)
    assert stream
    tracemalloc.start()
    try:
        for window in windows_of(read_sound(source, stream.number), transcriber):
            transcriber.speech(window.samples, least_pause_s=2)
            heard += len(window.samples)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert heard == pytest.approx(3600 * RATE, rel=1e-4)
    assert transcriber.most_samples <= WINDOW_S * RATE
    assert peak < 6 * WINDOW_S * RATE * 4  # the whole hour has 230 MB


# ---------------------------------------------------------------- in a run


class NoTranscriber:
    def __call__(self, *arguments: object, **options: object) -> object:
        raise BackendError("Speech is transcribed with faster-whisper, which is not installed.")


def test_a_run_says_what_was_transcribed_and_not_that_it_was_read(video: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "transcriber", lambda model, **options: FakeTranscriber(f"fake {model}"))
    done = run(video, out=tmp_path / "r.vip", keyframes=3, engine="offline", words="speech", speech_model="base")
    around = words_by_keyframe(done, "speech")
    assert around
    assert words_by_keyframe(done, "subtitles") == {}
    for row in done.descriptions:
        said = around.get(row.keyframe_id)
        assert (f"The speech around this keyframe was transcribed as: “{said}”" in row.dense_caption) == bool(said)
        assert any(one.startswith("speech around it, transcribed by a program: ") for one in row.grounding) == bool(said)
        assert "subtitle" not in row.dense_caption
    page = (done.folder / "report.html").read_text(encoding="utf-8")
    assert "Speech around it, transcribed by <bdi>fake base, en</bdi>" in page
    assert "Subtitles around it" not in page


@pytest.mark.parametrize("isolated", [False, True])
def test_a_video_without_sound_is_missed_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolated: bool) -> None:
    monkeypatch.setattr(registry, "transcriber", lambda model, **options: FakeTranscriber())
    path = tmp_path / "silent.mkv"
    with av.open(path, "w") as out:
        pictures = out.add_stream("mpeg4", rate=10, width=64, height=48, pix_fmt="yuv420p")
        for _ in range(20):
            out.mux(pictures.encode(av.VideoFrame.from_ndarray(np.full((48, 64, 3), 120, np.uint8), format="rgb24")))
        out.mux(pictures.encode(None))
    with pytest.raises(InputError, match=r"silent\.mkv has no sound that can be decoded\. Give a video with sound, or leave --words out"):
        run(path, out=tmp_path / "r.vip", engine="offline", words="speech", isolated=isolated)
    assert not (tmp_path / "r.vip" / "keyframes").exists()
    monkeypatch.setattr(registry, "no_transcriber_reason", lambda model: None)
    monkeypatch.setattr(registry, "has_text_reader", lambda: False)
    notes = Notes()
    assert run(path, out=tmp_path / "r.vip", engine="offline", words="auto", observer=notes).words == []
    assert any("has no sound that can be decoded" in note for note in notes.texts)
    made = Run(tmp_path / "r.vip")
    store.write_rows(made.folder / store.WORDS, [SpokenWords(start_s=0, end_s=1, text="old", source="speech", origin="x")])
    with pytest.raises(InputError, match="no sound"):
        add_words(made, FileSource(path), "speech", speech=SpeechJob(FakeTranscriber()))
    assert made.words == []


def test_silence_has_no_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transcriber = FakeTranscriber()
    monkeypatch.setattr(registry, "transcriber", lambda model, **options: transcriber)
    video = write_clip(tmp_path / "still.mkv", [])
    notes = Notes()
    done = run(video, out=tmp_path / "r.vip", keyframes=2, engine="offline", words="speech", observer=notes)
    assert done.words == []
    assert transcriber.lengths == []
    assert "words: 0 segments of speech, fake 1" in notes.texts


def test_auto_transcribes_where_there_are_no_subtitles_and_the_model_is_here(
    video: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "has_text_reader", lambda: False)
    monkeypatch.setattr(registry, "transcriber", lambda model, **options: FakeTranscriber())
    monkeypatch.setattr(registry, "no_transcriber_reason", lambda model: None)
    done = run(video, out=tmp_path / "r.vip", keyframes=2, engine="offline", words="auto")
    assert {one.source for one in done.words} == {"speech"}
    video.with_suffix(".srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nHello\n", encoding="utf-8")
    done = run(video, out=tmp_path / "r.vip", keyframes=2, engine="offline", words="auto")
    assert [(one.source, one.text) for one in done.words] == [("subtitles", "Hello")]
    done = run(video, out=tmp_path / "r.vip", keyframes=2, engine="offline", words="subtitles,speech")
    assert [one.source for one in done.words] == ["speech", "subtitles", "speech"]
    video.with_suffix(".srt").unlink()
    monkeypatch.setattr(registry, "no_transcriber_reason", lambda model: "the model small is not on this machine")
    monkeypatch.setattr(registry, "transcriber", NoTranscriber())
    notes = Notes()
    assert run(video, out=tmp_path / "r.vip", keyframes=2, engine="offline", words="auto", observer=notes).words == []
    assert "words: speech is not transcribed; the model small is not on this machine." in notes.texts
    with pytest.raises(BackendError, match="not installed"):
        run(video, out=tmp_path / "x.vip", engine="offline", words="speech")
    assert not (tmp_path / "x.vip" / "keyframes").exists()


def test_an_export_has_speech_where_there_are_no_subtitles(video: Path, tmp_path: Path) -> None:
    made = spoken(video, tmp_path / "r.vip", FakeTranscriber())
    sample = sample_of(Run(made.folder))
    assert list(sample.video.subtitles) == ["en-x-transcribed"]
    around = words_by_keyframe(made)
    assert [row["subtitle"] for row in rows_of(sample)] == [around.get(frame.id) for frame in made.keyframes]
    read = SpokenWords(start_s=0, end_s=8, text="written", origin="talk.srt")
    store.write_rows(made.folder / store.WORDS, [read, *made.words])
    assert {row["subtitle"] for row in rows_of(sample_of(Run(made.folder)))} == {"written"}


def test_an_engine_is_told_that_a_program_transcribed_it(tmp_path: Path) -> None:
    engine = Scripted(lambda request, number: {"dense_caption": "A box.", **FAMOUS})
    item = keyframe(tmp_path, 1)
    position = KeyframePosition(1, 1, "test", (), None, "digest", (), INJECTION)
    row = run_async(describer(engine, recipe="direct").describe(item, EncodedKeyframe(encode_keyframe(item, 1024)), position))
    (prompt,) = [request.prompt for request in engine.requests]
    assert json.dumps(INJECTION, ensure_ascii=False) in prompt.splitlines()
    assert "A program transcribed this speech" in prompt
    assert "subtitles" not in prompt
    assert any(one.startswith("speech around it, transcribed by a program: ") for one in row.grounding)


def test_a_question_about_the_run_says_that_its_words_are_transcribed(video: Path, tmp_path: Path) -> None:
    made = spoken(video, tmp_path / "r.vip", FakeTranscriber())
    words = words_of([(made.folder, frame) for frame in made.keyframes])
    assert words
    assert all(text.startswith("(transcribed by a program") for text in words.values())


def test_captions_are_made_again_when_speech_comes_along(video: Path, tmp_path: Path) -> None:
    made = extract(video, out=tmp_path / "r.vip", keyframes=2)
    before = caption(made, engine="offline").descriptions
    store.write_rows(made.folder / store.WORDS, [SpokenWords(start_s=0, end_s=9, text="Hello", source="speech", origin="speech, a, en")])
    after = caption(made.folder, engine="offline").descriptions
    assert {row.words for row in before} == {None}
    assert all("transcribed as: “Hello”" in row.dense_caption for row in after)
