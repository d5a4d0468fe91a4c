"""The words around each keyframe.

In: cues, which are words with their times, and the times of the keyframes. Out: a text for each keyframe, from the cues between the
middles to the keyframe before and to the one after.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

from vip.untrusted import one_line

Cue = tuple[float, float, list[str]]  # from and to in seconds, lines
MOST_LETTERS = 1500  # around one keyframe that are shown to an engine
MOST_LETTERS_IN_ALL = 2**23  # around all keyframes; ten hours of subtitles, each around two keyframes, have a quarter


def around(times_s: Sequence[float | None], cues: Iterable[Cue]) -> list[str | None]:
    """Return the words around each time; None where nothing is said, or where the time is unknown.

    Cues may last as long as the video, so that each is around all times. Words that are too many for that end with …
    """
    known = sorted({time for time in times_s if time is not None})
    if not known:
        return [None] * len(times_s)
    middles = [(one + other) / 2 for one, other in pairwise(known)]
    lines: list[list[str]] = [[] for _ in known]
    room = [max(MOST_LETTERS, MOST_LETTERS_IN_ALL // len(known))] * len(known)
    unfilled = list(range(len(known)))
    for start, end, said in cues:
        at = bisect_left(unfilled, bisect_right(middles, start))
        while at < len(unfilled) and (not (place := unfilled[at]) or middles[place - 1] < end):
            room[place] = _add(said, lines[place], room[place])
            if room[place] < 0:
                del unfilled[at]
            else:
                at += 1
    found = dict(zip(known, (" ".join(said) or None for said in lines), strict=True))
    return [None if time is None else found[time] for time in times_s]


def _add(said: Sequence[str], lines: list[str], room: int) -> int:
    """Add the lines of a cue to those before it. Return for how many letters there is room then; less than none: it is full."""
    before, room = lines[-2:], room - 1
    for line in said:
        if room < 0:
            break
        if line not in before:  # automatic subtitles repeat the line before
            lines.append(line[: room + 1])
        room -= len(line) + 1
    if room < 0:
        lines.append("…")
    return room


def quoted(words: str) -> str:
    """Return the words as one JSON text, which nothing in them can end, with … in place of what is too long."""
    text = one_line(words)
    return json.dumps(text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 2]} …", ensure_ascii=False)
