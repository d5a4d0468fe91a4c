"""The subtitles of a video: a file beside it, or else a stream in it.

In: a video file. Out: its words with their times, and sentences about what was left aside. A file beside the video counts more than a
stream: somebody has put it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from vip import files
from vip.errors import InputError
from vip.records import MOST_TIME_S, MOST_WORDS_LETTERS, SpokenWords
from vip.store import MOST_WORDS
from vip.untrusted import one_line
from vip.video.source import DownloadedSource, FileSource
from vip.video.subtitles import FORMATS, SubtitleStream, TimedText, read_stream, read_text, subtitle_streams
from vip.wording import counted

MOST_BYTES = 8 * 2**20  # of a file of subtitles; those of ten hours have an eighth
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class FoundWords:
    """The words of a video; none where it has no subtitles."""

    words: tuple[SpokenWords, ...]
    notes: tuple[str, ...]


def read_subtitles(source: FileSource) -> FoundWords:
    """Return the subtitles of a video, in the order of their times; a damaged file is passed over and named.

    Raises:
        InputError: the video cannot be read.
    """
    inside = subtitle_streams(source)
    notes: list[str] = []
    beside = files_beside(source.path)
    for path in beside:
        try:
            text = _decode(_read(path), path.name, notes)
            cues = list(islice(read_text(text, path.suffix.lower(), one_line(path.name)), MOST_WORDS + 1))
        except InputError as exc:
            notes.append(str(exc))
            continue
        shifted = [TimedText(cue.start_s + inside.start_s, cue.end_s + inside.start_s, cue.text) for cue in cues]
        if words := _records(shifted, _name_beside(source, path), notes):
            return FoundWords(words, (*notes, *_left_aside(len(beside) - 1 + sum(one.is_text for one in inside.streams))))
        notes.append(f"{one_line(path.name)} holds no words.")
    readable = sorted((one for one in inside.streams if one.is_text), key=_preference)
    for stream in readable:
        cues = list(islice(read_stream(source, stream.number), MOST_WORDS + 1))
        if words := _records(cues, _name_of(stream), notes):
            return FoundWords(words, (*notes, *_left_aside(len(readable) - 1)))
    notes += pictures_of_text(source.name, len(inside.streams) - len(readable))
    return FoundWords((), tuple(notes))


def pictures_of_text(name: str, count: int) -> list[str]:
    """Return the sentence about so many streams that hold pictures of text; none where there are none."""
    streams = counted(count, "stream of subtitles holds", "streams of subtitles hold")
    return [f"{name}: {streams} pictures of text, which are not read."] if count else []


def files_beside(video: Path) -> list[Path]:
    """Return `talk.srt` and `talk.en.vtt` beside `talk.mp4`: those without a language first, then English, then the others by name."""
    stem = video.stem.casefold()

    def language(name: str) -> str | None:
        """Return the language in a name, "" where it has none, None where the file belongs to another video."""
        path = Path(name)
        own = path.stem.casefold()
        if path.suffix.lower() not in FORMATS or not (own == stem or own.startswith(f"{stem}.")):
            return None
        tag = own[len(stem) + 1 :]
        return tag if "." not in tag and len(tag) <= 12 else None

    found = [(tag, name) for name in files.names_in(video.parent) if (tag := language(name)) is not None]
    order = sorted(found, key=lambda one: (one[0] != "", one[0].partition("-")[0] not in {"en", "eng"}, one))
    return [video.with_name(name) for _, name in order]


def _preference(stream: SubtitleStream) -> tuple[bool, bool, bool, int]:
    return stream.is_forced, not stream.is_default, stream.language not in {"en", "eng"}, stream.number


def _name_beside(source: FileSource, path: Path) -> str:
    """Return the name of a file beside a video; beside one of a video site lies what its page offers."""
    if isinstance(source, DownloadedSource):
        language = one_line(path.stem.partition(".")[2]) or "unknown language"
        return f"{one_line(str(source))} ({language})"
    return one_line(path.name)


def _name_of(stream: SubtitleStream) -> str:
    return f"stream {stream.number}" + (f" ({stream.language})" if stream.language != "und" else "")


def _read(path: Path) -> bytes:
    try:
        return files.read_bytes(path, most_bytes=MOST_BYTES)
    except OSError as exc:
        raise InputError(f"{one_line(path.name)} is left aside: {exc.strerror}.") from exc


def _decode(data: bytes, name: str, notes: list[str]) -> bytes:
    """Return the text as UTF-8; what is neither UTF-8 nor UTF-16 is read as Windows-1252, with a note."""
    try:
        text = data.decode("utf-16" if data.startswith(UTF16_MARKS) else "utf-8-sig")
    except UnicodeDecodeError:
        notes.append(f"{one_line(name)} is not UTF-8 and was read as Windows-1252. If letters are wrong, save it as UTF-8.")
        text = data.decode("cp1252", "replace")
    return text.replace("\0", "").encode("utf-8", "replace")


def _records(cues: Sequence[TimedText], origin: str, notes: list[str]) -> tuple[SpokenWords, ...]:
    """Return the cues whose times can be; the others are counted."""
    kept = [cue for cue in cues[:MOST_WORDS] if -MOST_TIME_S <= cue.start_s < cue.end_s <= MOST_TIME_S]
    if len(cues) > MOST_WORDS:
        notes.append(f"{origin}: only its first {MOST_WORDS:,} subtitles are read.")
    if wrong := min(len(cues), MOST_WORDS) - len(kept):
        notes.append(f"{origin}: {counted(wrong, 'subtitle ends', 'subtitles end')} before they begin: left out.")
    return tuple(_rows(kept, origin))


def _rows(cues: Iterable[TimedText], origin: str) -> Iterable[SpokenWords]:
    for cue in sorted(cues, key=lambda one: (one.start_s, one.end_s)):
        text = cue.text[:MOST_WORDS_LETTERS]
        yield SpokenWords(start_s=round(cue.start_s, 3), end_s=round(cue.end_s, 3), text=text, origin=origin[:400])


def _left_aside(count: int) -> list[str]:
    return [f"{counted(count, 'other subtitle file or stream', 'other subtitle files and streams')} left aside."] if count else []
