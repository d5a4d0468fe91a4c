"""Words and their numbers: tokens of questions and answers, the vocabulary of a training set, and GloVe vectors for it.

As in build_vocab.py and word2vec.py of NExT-QA: words of question and answer in lower case that occur five times or more, the most frequent
first, behind four special ones. Two things differ: tokens are made by the rule below, not by NLTK, and vectors of special words are drawn
at random as those of unknown words are (there: means over all of GloVe, for which two million unused vectors would be read).
"""

from __future__ import annotations

import gzip
import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from vip import files
from vip.errors import InputError
from vip.untrusted import one_line

SPECIAL = ("<pad>", "<start>", "<end>", "<unk>")
PAD, START, END, UNKNOWN = range(4)
MOST_WORDS, MOST_BYTES = 1_000_000, 64 * 2**20
MOST_GLOVE_BYTES = 64 * 2**30  # glove.840B.300d.txt has 5.6 GB
MOST_LINE_LETTERS = 2**20  # of a word and its vector
MOST_TIMES, SPARE_LETTERS = 50, 2**24
"""A file unpacks to no more than so many times its bytes, and some: glove.840B.300d.zip to three times."""
MOST_SHORT_LINES = 10**6  # too short for a vector
UNKNOWN_DEVIATION = 0.4
"""Of the normal distribution that vectors of words outside GloVe are drawn from (word2vec.py)."""

_WORD = re.compile(r"[^\W_]+(?:[-./'][^\W_]+)*|\S")
_CLITIC = re.compile(r"(.+?)(n't|'(?:s|m|d|ll|re|ve))")


def tokenize(text: str) -> list[str]:
    """Return the words of a text in lower case, with n't, 's and marks apart, as the Penn Treebank has them: `do n't`, `dog 's`, `?`."""
    tokens: list[str] = []
    for word in _WORD.findall(text.lower()):
        clitic = _CLITIC.fullmatch(word)
        tokens += clitic.groups() if clitic else [word]
    return tokens


@dataclass(frozen=True)
class WordVocabulary:
    """Words by number; the first four are special."""

    words: tuple[str, ...]
    numbers: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", {word: number for number, word in enumerate(self.words)})
        if self.words[: len(SPECIAL)] != SPECIAL or len(self.numbers) < len(self.words):
            first = ", ".join(word[:20] for word in self.words[:6])
            raise ValueError(f"expected {', '.join(SPECIAL)} and other words, each once, got {first}, …")

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the number of each word; `<unk>` for those that are not there."""
        return [self.numbers.get(token, UNKNOWN) for token in tokens]

    def decode(self, numbers: Iterable[int]) -> str:
        """Return the words of these numbers without the special ones, joined by spaces."""
        return " ".join(self.words[number] for number in numbers if number > UNKNOWN)


def build_vocabulary(texts: Iterable[str], *, least_count: int) -> WordVocabulary:
    """Return the vocabulary of the words that occur at least so often; the most frequent first, of equals the one seen first."""
    counts = Counter(token for text in texts for token in tokenize(text))
    frequent = [word for word, count in counts.most_common() if count >= least_count and word not in SPECIAL]
    return WordVocabulary((*SPECIAL, *frequent))


def read_vocabulary(path: Path) -> WordVocabulary:
    """Read a vocabulary that `write_vocabulary` wrote.

    Raises:
        InputError: it is missing or damaged.
    """
    try:
        words = files.read_bytes(path, most_bytes=MOST_BYTES).decode().split("\n")[:-1]
        if len(words) > MOST_WORDS:
            raise ValueError("too many words")
        return WordVocabulary(tuple(words))
    except (OSError, ValueError) as exc:
        problem = getattr(exc, "strerror", None) or str(exc)
        raise InputError(f"{path} is no vocabulary ({one_line(problem)[:100]}). Train the model again.") from exc


def write_vocabulary(vocabulary: WordVocabulary) -> bytes:
    """Return the file of a vocabulary: a word a line."""
    return "".join(f"{word}\n" for word in vocabulary.words).encode()


# ---------------------------------------------------------------- vectors


def draw_vectors(vocabulary: WordVocabulary, size: int, *, seed: int) -> npt.NDArray[np.float32]:
    """Return (V, size) random vectors: those that words outside GloVe get. Padding is 0."""
    vectors = np.random.default_rng(seed).normal(0, UNKNOWN_DEVIATION, (len(vocabulary), size)).astype(np.float32)
    vectors[PAD] = 0
    return vectors


def read_glove(path: Path, vocabulary: WordVocabulary, size: int, *, seed: int) -> tuple[npt.NDArray[np.float32], int]:
    """Return (V, size) vectors from a file of GloVe or fastText, and how many words it has; the others are drawn at random.

    Args:
        path: text with a word and its numbers a line, also packed by gzip or zip: `glove.840B.300d.txt`.

    Raises:
        InputError: it is missing, damaged, or of another size.
    """
    vectors, known = draw_vectors(vocabulary, size, seed=seed), set[int]()
    try:
        with _open_text(path) as file:
            for line_number, line in enumerate(_lines(file, 2 * size + 1, MOST_TIMES * path.stat().st_size + SPARE_LETTERS), start=1):
                word, _, rest = line.partition(" ")
                number = vocabulary.numbers.get(word)
                if number is None or number in known:
                    continue
                values = rest.split()
                if len(values) != size:
                    raise InputError(
                        f"{path}, line {line_number}: {len(values)} numbers a word, expected {size}. Give vectors of that size."
                    )
                vectors[number] = [float(value) for value in values]
                if not np.isfinite(vectors[number]).all():
                    raise ValueError("a number is not finite")
                known.add(number)
    except (ValueError, *files.ZIP_DAMAGE) as exc:
        problem = getattr(exc, "strerror", None) or str(exc)
        raise InputError(f"{path} cannot be read as word vectors ({one_line(problem)[:100]}). Give glove.840B.300d.txt.") from exc
    if not known:
        raise InputError(f"{path} has none of the {len(vocabulary):,} words. Give vectors of English words, in lower case.")
    return vectors, len(known)


def _lines(file: IO[str], least_letters: int, most_letters: int) -> Iterator[str]:
    """Yield the lines of a file of vectors; a few megabytes may be packed lines without end.

    Args:
        least_letters: of a line with a vector.

    Raises:
        ValueError: a line is too long, too many are too short, or all of them together have more than `most_letters`.
    """
    short = 0
    for number, line in enumerate(iter(lambda: file.readline(MOST_LINE_LETTERS), ""), start=1):
        most_letters -= len(line)
        short += len(line) < least_letters
        if len(line) == MOST_LINE_LETTERS:
            raise ValueError(f"line {number} has {MOST_LINE_LETTERS:,} letters or more")
        if short > MOST_SHORT_LINES:
            raise ValueError(f"more than {MOST_SHORT_LINES:,} lines have no vector")
        if most_letters < 0:
            raise ValueError(f"it unpacks to more than {MOST_TIMES} times its size")
        yield line


@contextmanager
def _open_text(path: Path) -> Iterator[IO[str]]:
    with files.open_named(path, most_bytes=MOST_GLOVE_BYTES) as raw:
        if path.suffix == ".zip":
            with zipfile.ZipFile(raw) as archive:
                names: Sequence[str] = archive.namelist()
                if len(names) != 1:
                    raise ValueError(f"{len(names)} files in it, expected one")
                with archive.open(names[0]) as packed, io.TextIOWrapper(packed, encoding="utf-8", errors="replace") as text:
                    yield text
            return
        with gzip.open(raw) if path.suffix == ".gz" else raw as data:
            yield io.TextIOWrapper(data, encoding="utf-8", errors="replace")
