"""Captions as subtitle cues that are short enough to read.

In: a caption, and the time from its keyframe to the next. Out: cues, one after another, of at most two lines of 42 columns, as in the
guides of the BBC and of Netflix. Wide letters (Chinese, Japanese, Korean) take two columns.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from vip.untrusted import JOINERS, one_line

LINE_COLUMNS = 42
CUE_LINES = 2
COLUMNS_PER_S = 20  # the reading speed of adults, says Netflix; half as many wide letters
LEAST_S = 1.0  # a shorter cue cannot be read; only the first of a caption may be shorter
ELLIPSIS = "…"
SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]」』）]*$")
OPENING, CLOSING = frozenset({"Ps", "Pi"}), frozenset({"Pe", "Pf", "Po", "Sk", "Mn", "Mc", "Me"})  # Sk: skin colours after emoji


@dataclass(frozen=True, slots=True)
class SubtitleCue:
    """The lines that are shown at one time."""

    start_ms: int
    end_ms: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CaptionCues:
    """A caption as cues; none where there is no time for any."""

    cues: tuple[SubtitleCue, ...]
    is_whole: bool
    """False where an ellipsis stands for the rest, or nothing is shown."""


@dataclass(frozen=True, slots=True)
class _Word:
    """A piece of text that is not broken."""

    text: str
    columns: int
    is_joined: bool = False
    """There is no space in front of it."""


def caption_cues(caption: str, start_ms: int, end_ms: int) -> CaptionCues:
    """Return the caption in cues from start to end, each for a time in proportion to its length.

    A caption that is too long for its time ends early with an ellipsis. One that fits on two lines is shown in any time.
    """
    if end_ms <= start_ms:
        return CaptionCues((), is_whole=False)
    words = list(_words(one_line(caption)))
    cues, is_whole = _cues_that_fit(words, COLUMNS_PER_S * (end_ms - start_ms) / 1000)
    weights = [_weight(lines) for lines in cues]
    edges = [start_ms + round((end_ms - start_ms) * weight / sum(weights)) for weight in accumulate(weights, initial=0)] if cues else []
    shown = tuple(SubtitleCue(start, end, lines) for (start, end), lines in zip(pairwise(edges), cues, strict=True))
    return CaptionCues(shown, is_whole)


def columns(text: str) -> int:
    """Return how many columns of a fixed-width font the text takes."""
    return sum(0 if _is_mark(letter) else 1 + _is_wide(letter) for letter in text)


# ---------------------------------------------------------------- words


def _words(text: str) -> Iterator[_Word]:
    """Yield the pieces between which a line can be broken: words, wide letters, and the letters of a word longer than a line."""
    for word in text.split():
        is_long = columns(word) > LINE_COLUMNS
        parts = _parts(word, anywhere=is_long) if is_long or any(map(_is_wide, word)) else [word]
        for number, part in enumerate(parts):
            yield _Word(part, columns(part), is_joined=number > 0)


def _parts(word: str, *, anywhere: bool) -> list[str]:
    parts, width = [word[0]], columns(word[0])
    for before, letter in pairwise(word):
        width += columns(letter)
        is_break = (anywhere or _is_wide(before) or _is_wide(letter)) and not _must_join(before, letter)
        if is_break or width > LINE_COLUMNS:
            parts.append("")
            width = columns(letter)
        parts[-1] += letter
    return parts


def _must_join(before: str, letter: str) -> bool:
    """Return whether a line may not end between two letters: closing marks stay after, opening marks before their text."""
    return unicodedata.category(letter) in CLOSING or unicodedata.category(before) in OPENING or letter in JOINERS or before in JOINERS


def _is_wide(letter: str) -> bool:
    return unicodedata.east_asian_width(letter) in "WF"


def _is_mark(letter: str) -> bool:
    return unicodedata.category(letter) in {"Mn", "Me", "Cf"}


# ---------------------------------------------------------------- lines and cues


def _cues_that_fit(words: Sequence[_Word], room: float) -> tuple[list[tuple[str, ...]], bool]:
    """Return the lines of each cue, with as many words as fit into `room` columns, and whether these are all words."""
    first = bisect_right(list(accumulate(word.columns for word in words)), room)  # more words cannot fit
    if first == len(words) and _fits(whole := _cues(words), room):
        return whole, True
    if len(_lines(words, LINE_COLUMNS)) <= CUE_LINES:
        return [tuple(_even_lines(words))], True
    count = bisect_left(range(first), True, key=lambda number: not _fits(_cues(_truncate(words[: number + 1])), room))
    count = max(count, _on_two_lines(words))
    return _cues(_truncate(words[:count])), False


def _on_two_lines(words: Sequence[_Word]) -> int:
    """Return how many words fit into a single cue, with an ellipsis."""

    def is_too_much(count: int) -> bool:
        cues = _cues(_truncate(words[:count]))
        return len(cues) > 1 or any(columns(line) > LINE_COLUMNS for line in cues[0])

    most = next((count for count in range(1, len(words)) if is_too_much(count)), len(words)) - 1
    return max(1, most)


def _fits(cues: Sequence[tuple[str, ...]], room: float) -> bool:
    return sum(map(_weight, cues)) <= room and all(columns(line) <= LINE_COLUMNS for lines in cues for line in lines)


def _weight(lines: Sequence[str]) -> float:
    """Return the columns that can be read in the shortest time that these lines are shown."""
    return max(sum(map(columns, lines)), COLUMNS_PER_S * LEAST_S)


def _truncate(words: Sequence[_Word]) -> list[_Word]:
    """Return the words with an ellipsis at their end."""
    text = words[-1].text.rstrip(".,;:-–—…、，。；：") + ELLIPSIS
    while columns(text) > LINE_COLUMNS:
        text = text[:-2] + ELLIPSIS
    return [*words[:-1], _Word(text, columns(text), words[-1].is_joined)]


def _cues(words: Sequence[_Word]) -> list[tuple[str, ...]]:
    """Return the lines of each cue: as many sentences as fit, and a long sentence in several cues with lines of about the same length."""
    groups: list[list[_Word]] = []
    for sentence in _sentences(words):
        if groups and len(_lines([*groups[-1], *sentence], LINE_COLUMNS)) <= CUE_LINES:
            groups[-1] += sentence
        else:
            groups.append(sentence)
    lines = map(_even_lines, groups)
    return [tuple(some[number : number + CUE_LINES]) for some in lines for number in range(0, len(some), CUE_LINES)]


def _sentences(words: Sequence[_Word]) -> Iterator[list[_Word]]:
    sentence: list[_Word] = []
    for word in words:
        sentence.append(word)
        if SENTENCE_END.search(word.text):
            yield sentence
            sentence = []
    if sentence:
        yield sentence


def _even_lines(words: Sequence[_Word]) -> list[str]:
    """Return one line if it is enough, or else full pairs of lines, as narrow as possible."""
    lines = _lines(words, LINE_COLUMNS)
    if len(lines) == 1:
        return lines
    most = len(lines) + len(lines) % CUE_LINES
    narrowest = sum(word.columns for word in words) // most
    return next(found for width in range(narrowest, LINE_COLUMNS + 1) if len(found := _lines(words, width)) <= most)


def _lines(words: Sequence[_Word], most_columns: int) -> list[str]:
    """Return the words in lines, each as full as possible."""
    lines: list[str] = []
    width = 0
    for word in words:
        space = 0 if word.is_joined else 1
        if lines and width + space + word.columns <= most_columns:
            lines[-1] += " " * space + word.text
            width += space + word.columns
        else:
            lines.append(word.text)
            width = word.columns
    return lines
