"""The words spoken around each keyframe, from the subtitles of its video.

In: WebVTT files by language, and the times of the keyframes. Out: a text for each keyframe. It comes from the cues between the middles
to the keyframe before and to the one after.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from vip.dataset.items import DownloadedVideo
from vip.errors import StoreError

TIME = r"((?:\d+:)?\d\d:\d\d[.,]\d{3})"
TIMES = re.compile(rf"\s*{TIME}[ \t]+-->[ \t]+{TIME}")
TAG = re.compile(r"<[^<>]*>")
MOST_BYTES = 8 * 2**20  # of a language; the words of ten hours are a tenth of it
Cue = tuple[float, float, list[str]]  # from and to in seconds, lines


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
    known = sorted({time for time in times_s if time is not None})
    if not vtt or not known:
        return [None] * len(times_s)
    middles = [(one + other) / 2 for one, other in pairwise(known)]
    lines: list[list[str]] = [[] for _ in known]
    for start, end, said in parse_cues(vtt):
        for place in range(bisect_right(middles, start), len(known)):
            if place and middles[place - 1] >= end:
                break
            lines[place] += [line for line in said if line not in lines[place][-2:]]  # automatic subtitles repeat the line before
    around = dict(zip(known, (" ".join(said) or None for said in lines), strict=True))
    return [None if time is None else around[time] for time in times_s]


def choose_subtitles(subtitles: Mapping[str, str], language: object) -> str | None:
    """Return the WebVTT in the language of the video, or else in English, or else the first there is."""
    own = str(language or "en").partition("-")[0]
    order = sorted(subtitles, key=lambda name: (name.partition("-")[0] != own, name.partition("-")[0] != "en", len(name), name))
    return subtitles[order[0]] if order else None


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
