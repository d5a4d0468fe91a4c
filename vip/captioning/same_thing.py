"""The test whether two names mean the same kind of thing: `a brown dog` and `dog`, `two women` and `person`, but not `hot dog`.

In: what a description calls an object, and the label of a detector; both English. Out: yes or no. A yes speaks of the
thing alone: that a dog was found says nothing about its being brown.
"""

from __future__ import annotations

import re
from functools import lru_cache

PERSON = "person"
FACE = "face"


def _words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PEOPLE = _words_of("man woman boy girl child kid baby toddler lady gentleman guy adult human people pedestrian somebody someone")
_ALIKE = (  # the first is what the others are taken for
    (PERSON, *_PEOPLE),
    ("sofa", "couch"),
    ("television", "tv", "telly"),
    ("telephone", "phone", "cellphone", "smartphone", "mobile"),
    ("bicycle", "bike"),
    ("motorcycle", "motorbike"),
    ("airplane", "plane", "aeroplane", "aircraft"),
    ("car", "automobile"),
    ("plant", "houseplant"),
    ("refrigerator", "fridge"),
)
_MEANS = {other: first for first, *others in _ALIKE for other in others}
_IRREGULAR = {
    **{"men": "man", "women": "woman", "children": "child", "persons": "person", "mice": "mouse", "geese": "goose", "feet": "foot"},
    **{"knives": "knife", "leaves": "leaf", "wolves": "wolf", "shelves": "shelf", "loaves": "loaf", "sheep": "sheep", "fish": "fish"},
    **{"bus": "bus", "glasses": "glasses"},  # those on a nose are no drinking glass
}
_ONE_WORD = re.compile(r"\b(hot|teddy|rocking|sea|guinea|cell)[ -](dog|bear|horse|lion|pig|phone)s?\b")  # no dog, no bear, …
_NARROW = _PEOPLE - _words_of("human people somebody someone")
_WORD = re.compile(r"[^\W\d_]+")
_EMPTY = _words_of("a an the some several many two three four five his her its their another other one")
_MANY = _words_of("group pair couple bunch row set piece crowd number stack")
_ENDS = _words_of("in on at with of that which who whose near behind beside under over by for from wearing holding and or")
"""What comes after these words only describes what comes before."""


def same_thing(name: str, label: str) -> bool:
    """Return whether name and label share their main noun, and all words of one are among those of the other."""
    ours, theirs = _words(name), _words(label)
    if not ours or not theirs:
        return False
    if theirs[-1] == FACE and ours[-1] == PERSON:  # who shows a face is there
        return True
    return ours[-1] == theirs[-1] and (set(ours) <= set(theirs) or set(theirs) <= set(ours))


def is_kind_of(name: str, kind: str) -> bool:
    """Return whether every `name` is a `kind`: a red car is a car, a woman and the face of somebody are persons."""
    ours, theirs = _words(name), _words(kind)
    if not ours or not theirs:
        return False
    if ours[-1] == FACE and theirs == (PERSON,):
        return not _NARROW & _plain_words(kind)
    return ours[-1] == theirs[-1] and set(theirs) <= set(ours) and _NARROW & _plain_words(kind) <= _plain_words(name)


def _plain_words(name: str) -> set[str]:
    return set(map(_singular, _WORD.findall(name.casefold())))


def main_noun(name: str) -> str:
    """Return `dog` for `two brown dogs in the snow`; the name itself where it has no letters."""
    words = _words(name)
    return words[-1] if words else name


@lru_cache(maxsize=1 << 14)
def _words(name: str) -> tuple[str, ...]:
    """Return the name's words in the singular up to its main noun, without articles."""
    found = _WORD.findall(_ONE_WORD.sub(r"\1\2", name.casefold()))
    kept: list[str] = []
    for word in found:
        if word == "of" and kept and _singular(kept[-1]) in _MANY:
            kept.clear()
        elif word in _ENDS and kept:
            break
        elif word not in _EMPTY:
            kept.append(word)
    return tuple(_MEANS.get(one, one) for one in map(_singular, kept))


def _singular(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if re.search(r"(ch|sh|x|ss|zz|us)es\Z", word):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
