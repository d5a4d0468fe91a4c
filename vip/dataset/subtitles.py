"""The words spoken around each keyframe, from the subtitles of its video.

In: files of WebVTT by language, and the times of the keyframes. Out: a text for each, of the cues that overlap the stretch from half
way to the keyframe before to half way to the next one.
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


def subtitles_of(fetched: DownloadedVideo) -> dict[str, str]:
    """Language -> WebVTT; what is too long for words is left out.

    Raises:
        StoreError: a file is gone.
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


def spoken_around(times_s: Sequence[float | None], vtt: str | None) -> list[str | None]:
    """For each time, in order, the words around it; None where nothing is said, or the time is not known."""
    known = sorted({time for time in times_s if time is not None})
    if not vtt or not known:
        return [None] * len(times_s)
    middles = [(one + other) / 2 for one, other in pairwise(known)]
    lines: list[list[str]] = [[] for _ in known]
    for start, end, said in cues(vtt):
        for place in range(bisect_right(middles, start), len(known)):
            if place and middles[place - 1] >= end:
                break
            lines[place] += [line for line in said if line not in lines[place][-2:]]  # automatic subtitles repeat the line before
    around = dict(zip(known, (" ".join(said) or None for said in lines), strict=True))
    return [None if time is None else around[time] for time in times_s]


def chosen_language(subtitles: Mapping[str, str], language: object) -> str | None:
    """WebVTT in the language of the video, else in English, else the first there is."""
    own = str(language or "en").partition("-")[0]
    order = sorted(subtitles, key=lambda name: (name.partition("-")[0] != own, name.partition("-")[0] != "en", len(name), name))
    return subtitles[order[0]] if order else None


def cues(vtt: str) -> Iterator[Cue]:
    """Those with words; what is no cue is passed over."""
    for block in re.split(r"\n[ \t]*\n", vtt):
        lines = block.strip("\n").split("\n")
        for number, line in enumerate(lines[:2]):  # before the times may stand a name
            if times := TIMES.match(line):
                words = [" ".join(html.unescape(TAG.sub("", text)).split()) for text in lines[number + 1 :]]
                yield _seconds(times[1]), _seconds(times[2]), [text for text in words if text]
                break


def _seconds(text: str) -> float:
    total = 0.0
    for part in text.replace(",", ".").split(":"):
        total = total * 60 + float(part)
    return total
