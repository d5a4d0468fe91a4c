"""The words spoken around each keyframe, from the subtitles of its video.

In: WebVTT files by language, and the times of the keyframes. Out: a text for each keyframe. It comes from the cues between the middles
to the keyframe before and to the one after.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from vip.dataset.items import DownloadedVideo
from vip.errors import StoreError
from vip.records import MOST_TIME_S, MOST_WORDS_LETTERS, SpokenWords
from vip.store import MOST_WORDS
from vip.untrusted import one_line
from vip.words.around import Cue, around

TIME = r"((?:\d+:)?\d\d:\d\d[.,]\d{3})"
TIMES = re.compile(rf"\s*{TIME}[ \t]+-->[ \t]+{TIME}")
TAG = re.compile(r"<[^<>]*>")
TRANSCRIBED = "-x-transcribed"  # behind the language of speech that a program transcribed: BCP 47 leaves what follows an x to us
MOST_BYTES = 8 * 2**20  # of a language; the words of ten hours are a tenth of it


def read_subtitles(fetched: DownloadedVideo) -> dict[str, str]:
    """Return the WebVTT of each language, without files that are too long to be subtitles.

    Raises:
        StoreError: a file cannot be read.
    """
    found = {}
    for language, path in sorted(fetched.subtitles.items()):
        try:
            with path.open("rb") as file:
                text = file.read(MOST_BYTES + 1)
        except OSError as exc:
            raise StoreError(f"{path} cannot be read: {exc.strerror}. Run the same command again.") from exc
        if len(text) <= MOST_BYTES:
            found[language] = text.decode("utf-8", "replace").replace("\r\n", "\n")
    return found


def words_around(times_s: Sequence[float | None], vtt: str | None) -> list[str | None]:
    """Return the words around each time; None where nothing is said, or where the time is unknown."""
    return around(times_s, parse_cues(vtt)) if vtt else [None] * len(times_s)


def choose_subtitles(subtitles: Mapping[str, str], language: object) -> str | None:
    """Return the WebVTT in the language of the video, or else in English, or else the first there is; transcribed speech is the last."""
    own = str(language or "en").partition("-")[0]

    def preference(name: str) -> tuple[bool, bool, bool, int, str]:
        language = name.partition("-")[0]
        return name.endswith(TRANSCRIBED), language != own, language != "en", len(name), name

    order = sorted(subtitles, key=preference)
    return subtitles[order[0]] if order else None


def subtitles_of(words: Sequence[SpokenWords]) -> dict[str, str]:
    """Return the WebVTT of subtitles, which name no language, and that of transcribed speech."""
    read, said = ([one for one in words if one.source == source] for source in ("subtitles", "speech"))
    language = said[0].origin.rpartition(", ")[2] if said else ""
    speech = f"{language if language.isalpha() and language.isascii() else 'und'}{TRANSCRIBED}"
    return {**({"und": webvtt(read)} if read else {}), **({speech: webvtt(said)} if said else {})}


def parse_cues(vtt: str) -> Iterator[Cue]:
    """Yield the cues that have words; anything else in the file is skipped."""
    for block in re.split(r"\n[ \t]*\n", vtt):
        lines = block.strip("\n").split("\n")
        for number, line in enumerate(lines[:2]):  # a name may stand before the times
            if times := TIMES.match(line):
                words = [" ".join(html.unescape(TAG.sub("", text)).split()) for text in lines[number + 1 :]]
                yield _seconds(times[1]), _seconds(times[2]), [text for text in words if text]
                break


def _seconds(text: str) -> float:
    total = 0.0
    for part in text.replace(",", ".").split(":"):
        total = total * 60 + float(part)
    return total


def spoken_words(vtt: str, origin: str) -> list[SpokenWords]:
    """Return the cues as words of a run; those whose times cannot be are left out."""
    return [
        SpokenWords(start_s=start_s, end_s=end_s, text=text[:MOST_WORDS_LETTERS], origin=origin[:400])
        for start_s, end_s, lines in islice(parse_cues(vtt), MOST_WORDS)
        if 0 <= start_s < end_s <= MOST_TIME_S and (text := one_line(" ".join(lines)))
    ]


def webvtt(words: Iterable[SpokenWords]) -> str:
    """Return the words as a WebVTT file."""
    cues = (f"{_clock(one.start_s)} --> {_clock(one.end_s)}\n{html.escape(one_line(one.text), quote=False)}\n" for one in words)
    return "\n".join(("WEBVTT\n", *cues))


def _clock(time_s: float) -> str:
    seconds, milliseconds = divmod(round(1000 * max(0.0, time_s)), 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{milliseconds:03d}"
