"""NLTK's averaged perceptron tagger, read from its data and run here: parts of speech of the Penn Treebank.

In: tokens. Out: a tag for each. The data is `averaged_perceptron_tagger_eng` (three JSON files) of NLTK 3.9 and later, or the older
`averaged_perceptron_tagger` (a pickle); the numbers in both are the same. The pickle is read without running anything in it.

Source: Honnibal 2013, "A good part-of-speech tagger in about 200 lines of Python"; `nltk.tag.perceptron` (Apache-2.0).
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vip.errors import BackendError
from vip.files import ZIP_DAMAGE
from vip.metrics.wordnet import data_folders, read_data_file
from vip.untrusted import DAMAGE, parse_json

NAME = "averaged_perceptron_tagger_eng"
OLD_NAME = "averaged_perceptron_tagger"
FILES = tuple(f"{NAME}.{part}.json" for part in ("weights", "tagdict", "classes"))
START, END = ("-START-", "-START2-"), ("-END-", "-END2-")


class PerceptronTagger:
    """The tagger of English.

    Args:
        weights: feature -> tag -> weight.
        fixed: the tag of frequent words that have only one.
        tags: all there are.
    """

    def __init__(self, weights: dict[str, dict[str, float]], fixed: dict[str, str], tags: Sequence[str]) -> None:
        self._weights = weights
        self._fixed = fixed
        self._tags = sorted(tags)

    def tag(self, tokens: Sequence[str]) -> list[tuple[str, str]]:
        """Return each token with its tag, found from left to right."""
        tagged: list[tuple[str, str]] = []
        context = [*START, *map(_normalize, tokens), *END]
        before, before_that = START
        for index, token in enumerate(tokens):
            tag = self._fixed.get(token) or self._predict(_features(index + len(START), token, context, before, before_that))
            tagged.append((token, tag))
            before_that, before = before, tag
        return tagged

    def _predict(self, features: Sequence[str]) -> str:
        """Return the tag with the largest sum of weights, the last in the alphabet of those that are equal."""
        sums: dict[str, float] = {}
        for feature in features:
            for tag, weight in self._weights.get(feature, {}).items():
                sums[tag] = sums.get(tag, 0.0) + weight
        return max(self._tags, key=lambda tag: (sums.get(tag, 0.0), tag))


def load_tagger(folder: Path | None = None) -> PerceptronTagger:
    """Return the tagger in a folder: one with its files, or one of NLTK data; by default the first of NLTK's folders that has it.

    Raises:
        BackendError: it is nowhere, or damaged.
    """
    for place in [folder.expanduser()] if folder is not None else data_folders():
        try:
            if (data := _read(place)) is not None:
                return PerceptronTagger(*data)
        except (*ZIP_DAMAGE, pickle.UnpicklingError, *DAMAGE) as exc:
            raise BackendError(f"The tagger's data in {place} is damaged ({exc}). Run `python -m nltk.downloader {NAME}` again.") from exc
    where = "here" if folder is None else f"in {folder}"
    raise BackendError(
        f"WUPS needs the data of NLTK's tagger to score raw answers, and it is not {where}. Run `python -m nltk.downloader {NAME}`,"
        " or set NLTK_DATA to a folder that has it."
    )


def _read(place: Path) -> tuple[dict[str, dict[str, float]], dict[str, str], Sequence[str]] | None:
    """Return weights, fixed tags and tags; None where they are not there.

    Raises:
        ValueError: they are not of the form that they must have.
    """
    parts: Any = [read_data_file(place, f"taggers/{NAME}", name) for name in FILES]
    if None not in parts:
        parts = [parse_json(part) for part in parts]
    elif (old := read_data_file(place, f"taggers/{OLD_NAME}", f"{OLD_NAME}.pickle")) is not None:
        parts = _PlainUnpickler(io.BytesIO(old)).load()
    else:
        return None
    weights, fixed, tags = parts
    if not (isinstance(weights, dict) and isinstance(fixed, dict) and isinstance(tags, list | set)):
        raise ValueError("it is no table of weights, table of words and list of tags")
    if not all(isinstance(tag, str) for tag in (*tags, *fixed.values())):
        raise ValueError("a tag is no text")
    if not all(isinstance(row, dict) and all(isinstance(weight, float | int) for weight in row.values()) for row in weights.values()):
        raise ValueError("a weight is no number")
    return weights, fixed, sorted(tags)


class _PlainUnpickler(pickle.Unpickler):
    """Reads sets besides what JSON has, and no other class: a pickle could run anything."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in {("builtins", "set"), ("__builtin__", "set")}:
            return set
        raise pickle.UnpicklingError(f"it names {module}.{name}")


def _normalize(word: str) -> str:
    if "-" in word and word[0] != "-":
        return "!HYPHEN"
    if word.isdigit() and len(word) == 4:
        return "!YEAR"
    return "!DIGITS" if word[0].isdigit() else word.lower()


def _features(place: int, word: str, context: Sequence[str], before: str, before_that: str) -> list[str]:
    """Return the features of a word; the two tags before it are `before` and `before_that`."""
    return [
        "bias",
        f"i suffix {word[-3:]}",
        f"i pref1 {word[0]}",
        f"i-1 tag {before}",
        f"i-2 tag {before_that}",
        f"i tag+i-2 tag {before} {before_that}",
        f"i word {context[place]}",
        f"i-1 tag+i word {before} {context[place]}",
        f"i-1 word {context[place - 1]}",
        f"i-1 suffix {context[place - 1][-3:]}",
        f"i-2 word {context[place - 2]}",
        f"i+1 word {context[place + 1]}",
        f"i+1 suffix {context[place + 1][-3:]}",
        f"i+2 word {context[place + 2]}",
    ]
