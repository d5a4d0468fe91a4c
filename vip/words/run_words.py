"""The words of a run: words.jsonl, and which words stand around each keyframe.

In: a run folder and its video. Out: words.jsonl. It is read again by captions, pages and exports.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from vip import files, store
from vip.errors import InputError, StoreError
from vip.protocols import Observer, Transcriber
from vip.records import SpokenWords
from vip.store import MOST_JSON_BYTES, Run
from vip.untrusted import one_line
from vip.video.sound import sound_stream
from vip.video.source import VIDEO_SUFFIXES, AddressSource, DownloadedSource, FileSource, Source
from vip.video.subtitles import subtitle_streams
from vip.wording import counted, option
from vip.words.around import around
from vip.words.picture_text import text_by_keyframe
from vip.words.speech import transcribe_speech
from vip.words.subtitles import FoundWords, files_beside, pictures_of_text, read_subtitles

WordsSource = Literal["subtitles", "speech"]
NO_SUBTITLES = "{} has no subtitles that can be read, in it or beside it"
NO_SUBTITLES_OF_PAGE = "{} has no subtitles that can be read, in the video or on its page"
NOT_HERE = "{} is no video file on this machine, and only those are searched for subtitles"
NO_SOUND = "{} has no sound that can be decoded"
NOT_HERE_TO_HEAR = "{} is no video file on this machine, and only the sound of those is transcribed"


@dataclass(frozen=True, slots=True)
class WordsReader:
    """A way to words with their times."""

    noun: str
    """Of one of them: `subtitle`."""
    read: Callable[[Source], FoundWords]
    explain: Callable[[Source], tuple[str, str]]
    """Why it found none in a video, and what to do about it, each a sentence without its stop."""


@dataclass(frozen=True, slots=True)
class SpeechJob:
    """How speech is transcribed."""

    transcriber: Transcriber | None
    language: str | None = None
    """The code of the language that is spoken; None: found out."""
    unavailable: str | None = None
    """Why there is no transcriber, in words."""


def write_words(
    folder: Path, video: Source, words: Sequence[str], speech: SpeechJob | None, observer: Observer, *, is_needed: bool = True
) -> None:
    """Write words.jsonl of a run from the sources that give words with times, and note where they come from.

    Words that no source has now are deleted. Where `words` names no source of words with times, the file stays as it is.

    Args:
        speech: needed where `words` names `speech`; `auto` without it transcribes nothing.
        is_needed: False: a source that is named may have none, as with `auto`.

    Raises:
        InputError: `words` names a source that has none. `auto` takes what is there: speech where there are no subtitles.
        BackendError: the transcriber does not work here.
        StoreError: the folder cannot be written.
    """
    sources = _timed_sources(words)
    if not sources and "speech" not in words:
        return
    rows: list[SpokenWords] = []
    run, path = Run(folder), folder / store.WORDS
    for name, is_named in sources.items():
        reader = READERS[name]
        found = reader.read(video)
        for note in found.notes:
            observer.note(note)
        if kept := _in_time_range(found.words, run):
            observer.note(f"words: {counted(len(kept), reader.noun)} of {kept[0].origin}")
        elif is_named and is_needed:
            files.remove(path, inside=folder)
            raise _no_words(*reader.explain(video))
        else:
            observer.note(f"words: {reader.explain(video)[0]}.")
        rows += kept
    if speech and ("speech" in words or ("auto" in words and not rows)):
        rows += _spoken(run, video, speech, observer, is_needed="speech" in words and is_needed)
    rows.sort(key=lambda one: (one.start_s, one.end_s))
    if not rows:
        files.remove(path, inside=folder)
    elif not path.exists() or run.words != rows:
        store.write_rows(path, rows)


def _spoken(run: Run, video: Source, speech: SpeechJob, observer: Observer, *, is_needed: bool) -> list[SpokenWords]:
    """Return what is said in a video, and note it.

    Raises:
        InputError: it has no sound, and some is needed.
    """
    if speech.transcriber is None:
        observer.note(f"words: speech is not transcribed; {speech.unavailable}.")
        return []
    if reason := _explain_no_sound(video):
        if is_needed:
            files.remove(run.folder / store.WORDS, inside=run.folder)
            raise _no_words(*reason)
        observer.note(f"words: {reason[0]}.")
        return []
    rows = transcribe_speech(run, cast(FileSource, video), speech.transcriber, speech.language, observer)
    origin = rows[0].origin if rows else f"speech, {speech.transcriber.name}"
    observer.note(f"words: {counted(len(rows), 'segment')} of {origin}")
    return rows


def _explain_no_sound(video: Source) -> tuple[str, str] | None:
    """Return why a video has nothing to listen to, and what to do; None where it has sound."""
    if not isinstance(video, FileSource) or not video.path.is_file():
        return NOT_HERE_TO_HEAR.format(video), "Download it first"
    return (NO_SOUND.format(video), "Give a video with sound") if sound_stream(video) is None else None


def _timed_sources(words: Sequence[str]) -> dict[str, bool]:
    """Return the sources that give words with times, and whether each has to have some."""
    named = {one: True for one in words if one in READERS}
    return {**dict.fromkeys(AUTO, False), **named} if "auto" in words else named


def _read_subtitles(video: Source) -> FoundWords:
    return read_subtitles(video) if isinstance(video, FileSource) and video.path.is_file() else FoundWords((), ())


def _explain_no_subtitles(video: Source) -> tuple[str, str]:
    if not isinstance(video, FileSource) or not video.path.is_file():
        return NOT_HERE.format(video), "Download it first"
    if isinstance(video, DownloadedSource):
        return NO_SUBTITLES_OF_PAGE.format(video), "Download it and put a .srt or .vtt file beside it"
    return NO_SUBTITLES.format(video), "Put a .srt, .vtt or .ass file of its name beside it"


def _no_words(reason: str, advice: str) -> InputError:
    return InputError(f"{reason}. {advice}, or leave {option('words')} out.")


READERS = {"subtitles": WordsReader("subtitle", _read_subtitles, _explain_no_subtitles)}
"""The sources of words with their times, by the name that `--words` has for them."""
AUTO = ("subtitles",)
"""Those that `auto` takes where they are."""


def check_words(video: Source, words: Sequence[str], observer: Observer) -> None:
    """Refuse a video that lacks the subtitles, in it and beside it, or the sound that `words` names, before any work is done on it.

    Whether they can be read is seen by `write_words` only. A file that is missing is left to those who open it.

    Raises:
        InputError: there are none, or the video cannot be read.
    """
    is_missing = isinstance(video, FileSource) and not video.path.is_file()
    is_page = isinstance(video, AddressSource) and Path(video.name).suffix.lower() not in VIDEO_SUFFIXES  # not known before it is asked for
    if "speech" in words and not is_missing and not is_page and (reason := _explain_no_sound(video)):
        raise _no_words(*reason)
    if "subtitles" not in words:
        return
    if is_page:
        return
    if not isinstance(video, FileSource):
        raise _no_words(*_explain_no_subtitles(video))
    if not video.path.is_file() or files_beside(video.path):
        return
    streams = subtitle_streams(video).streams
    if not any(stream.is_text for stream in streams):
        for note in pictures_of_text(video.name, len(streams)):
            observer.note(note)
        raise _no_words(*_explain_no_subtitles(video))


def copy_words(old: Run, folder: Path) -> None:
    """Give a run the words of another run of the same video; they go by time, whatever the keyframes are.

    Raises:
        StoreError: those of the other run are damaged, or the folder cannot be written.
    """
    if rows := old.words:
        store.write_rows(folder / store.WORDS, rows)


def _in_time_range(words: tuple[SpokenWords, ...], run: Run) -> tuple[SpokenWords, ...]:
    """Return the words within --start and --end."""
    settings = run.manifest.settings if run.manifest else {}
    start, end = settings.get("start"), settings.get("end")
    return tuple(one for one in words if (start is None or one.end_s > start) and (end is None or one.start_s < end))


def words_by_keyframe(run: Run, source: WordsSource | None = None) -> dict[str, str]:
    """Return the words around each keyframe, by its id, without those that have none.

    Args:
        source: only these words; None: all.

    Raises:
        StoreError: words.jsonl is damaged.
    """
    words = [one for one in run.words if source in (None, one.source)]
    if not words:
        return {}
    frames = run.keyframes
    found = around([frame.time_s for frame in frames], ((one.start_s, one.end_s, [one_line(one.text)]) for one in words))
    return {frame.id: text for frame, text in zip(frames, found, strict=True) if text}


def words_digest(folder: Path, prompt_sha256: str, text_prompt_sha256: str = "", speech_prompt_sha256: str = "") -> str | None:
    """Return a digest of the words of a run, of the text in its keyframes and of the prompts that show them; None where there are none.

    Raises:
        StoreError: words.jsonl or text.jsonl cannot be read.
    """
    parts: list[bytes] = []
    path = folder / store.WORDS
    if path.exists():
        try:
            parts += [prompt_sha256.encode(), files.read_bytes(path, most_bytes=MOST_JSON_BYTES)]
            parts += [speech_prompt_sha256.encode()] * any(one.source == "speech" for one in Run(folder).words)
        except OSError as exc:
            raise StoreError(f"{path} cannot be read: {exc.strerror}. Delete it, or run `vip run` again.") from exc
    if texts := text_by_keyframe(Run(folder)) if (folder / store.TEXT).exists() else {}:
        parts += [text_prompt_sha256.encode(), json.dumps(texts, sort_keys=True).encode()]  # scores and boxes are not shown
    return hashlib.sha256(b"".join(parts)).hexdigest() if parts else None
