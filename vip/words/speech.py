"""The speech of a video, transcribed by a program: speech.jsonl, and the words in it with their times.

In: a video file and a transcriber. Out: words. The sound is read window by window, each cut in a pause, so that hours of it need no more
memory than minutes. Each stretch of speech is transcribed on its own: what lies between is never heard, and times count from its start.
Each window is a row of speech.jsonl: what is there is not transcribed again, and a killed run goes on behind the last row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from vip import files, store
from vip.errors import InputError, StoreError
from vip.protocols import Observer, Transcriber
from vip.records import MOST_WORDS_LETTERS, Samples, SpokenWords, TranscribedWindow
from vip.store import Run
from vip.untrusted import one_line
from vip.video.sound import RATE, SoundBlock, SoundStream, read_sound, sound_stream
from vip.video.source import FileSource
from vip.wording import counted

WINDOW_S = 300  # 19 MB of samples
CUT_S = 60  # the end of a window, in which the pause is looked for that it is cut in
SHORT_PAUSE_S = 0.3  # between two sentences: long enough to cut in
LONG_PAUSE_S = 2.0  # what is said before and behind it is transcribed apart
FILLED_GAP_S = 2.0  # a gap up to this is silence; behind a longer one, and behind a jump back, a new window begins
LEAST_FOR_LANGUAGE_S = 20.0  # of speech: the language that is found in it is kept
MOST_FOR_LANGUAGE_S = 120.0


@dataclass(frozen=True, slots=True)
class SoundWindow:
    """Samples without a break."""

    start_s: Fraction
    samples: Samples

    @property
    def end_s(self) -> Fraction:
        return self.start_s + Fraction(len(self.samples), RATE)


def transcribe_speech(
    run: Run, source: FileSource, transcriber: Transcriber, language: str | None, observer: Observer
) -> list[SpokenWords]:
    """Return the words that are said in the video of a run, within its time range; write speech.jsonl.

    Args:
        language: its code; None: the one that is found in the first minutes of speech.

    Raises:
        InputError: the sound cannot be read.
        BackendError: the transcriber does not work here.
        StoreError: the folder cannot be written.
    """
    stream = sound_stream(source)
    if stream is None:
        return []
    if stream.others:
        observer.note(f"words: {counted(stream.others, 'other stream of sound is', 'other streams of sound are')} left aside.")
    settings = run.manifest.settings if run.manifest else {}
    start_s, end_s = settings.get("start"), settings.get("end")
    state = source.state()
    key = _digest([state, stream.number, start_s, end_s, transcriber.identity, language, WINDOW_S])
    rows = _known_rows(run, key)
    if not rows or not rows[-1].is_last:
        begin_s = rows[-1].end_s if rows else start_s
        with _Progress(observer, run, stream, start_s, end_s) as progress:
            progress.reach(begin_s)
            blocks = read_sound(source, stream.number, start_s=begin_s, end_s=end_s)
            _transcribe(run, rows, key, windows_of(blocks, transcriber), transcriber, language, progress)
    unsure = sum(row.unsure for row in rows)
    if unsure:
        observer.note(f"words: {counted(unsure, 'segment')} of speech left out, because {transcriber.name} was not sure of what is said.")
    return [words for row in rows for words in row.words]


def windows_of(blocks: Iterable[SoundBlock], transcriber: Transcriber) -> Iterator[SoundWindow]:
    """Yield the sound in windows of at most WINDOW_S, each cut in a pause near its end."""
    held: list[Samples] = []
    start_s, count = Fraction(0), 0
    for block in blocks:
        gap_s = block.start_s - start_s - Fraction(count, RATE)
        if held and not block.follows:
            if 0 <= gap_s <= FILLED_GAP_S:
                held.append(np.zeros(round(gap_s * RATE), np.float32))
                count += len(held[-1])
            else:
                yield SoundWindow(start_s, np.concatenate(held))
                held = []
        if not held:
            start_s, count = block.start_s, 0
        held.append(block.samples)
        count += len(block.samples)
        while count >= WINDOW_S * RATE:
            joined = np.concatenate(held)
            cut = _cut_of(joined[: WINDOW_S * RATE], transcriber)
            yield SoundWindow(start_s, joined[:cut])
            held = [joined[cut:].copy()]
            start_s, count = start_s + Fraction(cut, RATE), count - cut
    if held:
        yield SoundWindow(start_s, np.concatenate(held))


def _cut_of(samples: Samples, transcriber: Transcriber) -> int:
    """Return the middle of the longest pause near the end; where nobody pauses, the quietest place."""
    first = len(samples) - CUT_S * RATE
    tail = samples[first:]
    speech = transcriber.speech(tail, least_pause_s=SHORT_PAUSE_S)
    edges = [0.0, *(edge for span in speech for edge in span), len(tail) / RATE]
    begin, end = max(zip(edges[::2], edges[1::2], strict=True), key=lambda pause: pause[1] - pause[0])
    if end - begin < SHORT_PAUSE_S:
        step = RATE // 20
        loudness = np.square(tail[: len(tail) // step * step].reshape(-1, step)).mean(axis=1)
        return first + max(1, int(loudness.argmin())) * step
    return first + max(RATE // 10, round((begin + end) / 2 * RATE))


def _transcribe(
    run: Run,
    rows: list[TranscribedWindow],
    key: str,
    windows: Iterator[SoundWindow],
    transcriber: Transcriber,
    language: str | None,
    progress: _Progress,
) -> None:
    """Add a row for each window, and write them."""
    kept = language or next((row.language for row in rows if row.language), None)
    window = next(windows, None)
    while window is not None or not rows or not rows[-1].is_last:
        after = next(windows, None) if window is not None else None
        if window is None:
            rows.append(TranscribedWindow(key=key, end_s=rows[-1].end_s if rows else 0.0, is_last=True))
        else:
            row, kept = _row_of(window, key, transcriber, kept, progress, is_last=after is None)
            rows.append(row)
        store.write_rows(run.folder / store.SPEECH, rows)
        window = after


def _row_of(
    window: SoundWindow, key: str, transcriber: Transcriber, language: str | None, progress: _Progress, *, is_last: bool
) -> tuple[TranscribedWindow, str | None]:
    """Return the row of a window, and the language to keep."""
    stretches = [
        (first, window.samples[first:last])
        for span in transcriber.speech(window.samples, least_pause_s=LONG_PAUSE_S)
        if (first := round(span[0] * RATE)) < (last := round(span[1] * RATE))
    ]
    spoken, kept = language, language
    if stretches and language is None:
        joined = np.concatenate([samples for _, samples in stretches])
        spoken = transcriber.language_of(joined[: round(MOST_FOR_LANGUAGE_S * RATE)])
        kept = spoken if len(joined) >= LEAST_FOR_LANGUAGE_S * RATE else None
    words, unsure = list[SpokenWords](), 0
    for first, samples in stretches:
        base_s, most_s = window.start_s + Fraction(first, RATE), len(samples) / RATE
        for segment in transcriber.transcribe(samples, str(spoken)):
            progress.reach(float(base_s) + segment.end_s)
            start_s, end_s = max(0.0, segment.start_s), min(segment.end_s, most_s)
            if not (text := one_line(segment.text)[:MOST_WORDS_LETTERS].strip()):
                continue
            if not segment.is_sure or start_s >= end_s:
                unsure += 1
                continue
            times = {"start_s": round(float(base_s) + start_s, 3), "end_s": round(float(base_s) + end_s, 3)}
            words.append(SpokenWords(**times, text=text, source="speech", origin=f"speech, {transcriber.name}, {spoken}"[:400]))
    progress.reach(float(window.end_s))
    row = TranscribedWindow(key=key, end_s=float(window.end_s), language=kept, words=tuple(words), unsure=unsure, is_last=is_last)
    return row, kept


def _digest(parts: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _known_rows(run: Run, key: str) -> list[TranscribedWindow]:
    """Return the rows that were made of the same sound in the same way; none where the file is damaged."""
    path = run.folder / store.SPEECH
    if not path.exists():
        return []
    try:
        rows = list(store.read_rows(path, TranscribedWindow))
    except (StoreError, InputError):
        files.remove(path, inside=run.folder)
        return []
    return rows if all(row.key == key for row in rows) else []


class _Progress:
    """A bar of seconds of sound."""

    def __init__(self, observer: Observer, run: Run, stream: SoundStream, start_s: float | None, end_s: float | None) -> None:
        known_s = stream.end_s or (run.manifest.video.end_time_s if run.manifest else None)
        ends = [one for one in (end_s, known_s) if one is not None]
        self._at_s = start_s if start_s is not None else (run.manifest.video.start_time_s if run.manifest else 0.0)
        self._left = max(0, ceil(min(ends, default=0.0) - self._at_s))
        self._track = observer.track("Transcribing speech, seconds of sound", self._left)
        self._advance: Callable[[], None] = lambda: None

    def __enter__(self) -> _Progress:
        self._advance = self._track.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._track.__exit__(None, None, None)

    def reach(self, time_s: float | None) -> None:
        """Advance to a time of the video."""
        while time_s is not None and self._left and self._at_s + 1 <= time_s:
            self._at_s += 1
            self._left -= 1
            self._advance()
