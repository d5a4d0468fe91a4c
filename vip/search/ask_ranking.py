"""The frames of a question where no model answers it: those whose words fit it first.

In: a question, and frames with words near them, text in them and captions. Out: the same frames in another order. Nothing is said about
them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import log

from vip.search.ask_records import AskedFrame
from vip.search.query_text import COMMON

MEASURING_ENGINE = "offline"
STEM = 4  # letters that two forms of a word share at least: fail, failed


def rank_by_words(question: str, frames: Sequence[AskedFrame]) -> list[AskedFrame]:
    """Return the frames whose words and captions share most with the question first, the others in their order.

    A word that few frames have counts more; one that all have counts nothing.
    """
    texts = [set(_words_in(" ".join(_texts(frame)))) for frame in frames]
    scores = [0.0] * len(frames)
    for word in _asked(question):
        having = [any(_is_form(word, other) for other in text) for text in texts]
        weight = log(len(frames) / sum(having)) if any(having) else 0.0
        scores = [score + weight * has for score, has in zip(scores, having, strict=True)]
    order = sorted(range(len(frames)), key=lambda place: (-round(scores[place], 9), place))
    return [frames[place] for place in order]


def fitting_words(question: str, frame: AskedFrame, most_letters: int) -> str:
    """Return what is known of a frame in words, cut to the part that has most words of the question; empty where nothing is."""
    asked = _asked(question)
    cuts: list[tuple[int, str]] = []
    for text in _texts(frame):
        places = [match.start() for match in re.finditer(r"\w+", text) if any(_is_form(word, match[0].casefold()) for word in asked)]
        for first in places or [0]:
            start = text.rfind(" ", 0, max(0, first - most_letters // 3)) + 1
            cuts.append((sum(start <= place < start + most_letters for place in places), _cut(text, start, most_letters)))
    return max(cuts, key=lambda cut: cut[0])[1] if cuts else ""


def _cut(text: str, start: int, most_letters: int) -> str:
    end = start + most_letters
    return f"{'… ' if start else ''}{text[start:end].strip()}{' …' if end < len(text) else ''}"


def _texts(frame: AskedFrame) -> list[str]:
    """Return what is known of a frame; what was only measured in it says nothing beside words."""
    said = [text for text in (frame.words, frame.text) if text]
    return [*said, *([frame.caption] if frame.caption and not (said and frame.described_by == MEASURING_ENGINE) else [])]


def _asked(question: str) -> list[str]:
    return list(dict.fromkeys(word for word in _words_in(question) if word not in COMMON))


def _words_in(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _is_form(word: str, other: str) -> bool:
    """Return whether two words are the same or may be forms of one."""
    return word == other or (min(len(word), len(other)) >= STEM and (word.startswith(other) or other.startswith(word)))
