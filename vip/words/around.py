"""The words around each keyframe.

In: cues, which are words with their times, and the times of the keyframes. Out: a text for each keyframe, from the cues between the
middles to the keyframe before and to the one after.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

from vip.untrusted import one_line

Cue = tuple[float, float, list[str]]  # from and to in seconds, lines
MOST_LETTERS = 1500  # around one keyframe that are shown to an engine


def around(times_s: Sequence[float | None], cues: Iterable[Cue]) -> list[str | None]:
    """Return the words around each time; None where nothing is said, or where the time is unknown."""
    known = sorted({time for time in times_s if time is not None})
    if not known:
        return [None] * len(times_s)
    middles = [(one + other) / 2 for one, other in pairwise(known)]
    lines: list[list[str]] = [[] for _ in known]
    for start, end, said in cues:
        for place in range(bisect_right(middles, start), len(known)):
            if place and middles[place - 1] >= end:
                break
            lines[place] += [line for line in said if line not in lines[place][-2:]]  # automatic subtitles repeat the line before
    found = dict(zip(known, (" ".join(said) or None for said in lines), strict=True))
    return [None if time is None else found[time] for time in times_s]


def quoted(words: str) -> str:
    """Return the words as one JSON text, which nothing in them can end, with … in place of what is too long."""
    text = one_line(words)
    return json.dumps(text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 2]} …", ensure_ascii=False)
