"""METEOR 1.5 of captions (Denkowski and Lavie 2014), by its own Java program, which neither vip nor a library brings."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO

import numpy as np

from vip.errors import BackendError
from vip.metrics.caption_corpus import TOKENS, CaptionCorpus, CaptionPair, CaptionTokenizer, Floats, score_corpus
from vip.metrics.metric import Result

VARIABLE = "VIP_METEOR_JAR"
VERSION = "1.5"
MEMORY = "-Xmx2G"
ALPHA, BETA, GAMMA, DELTA = 0.85, 0.2, 0.6, 0.75
MATCHER_WEIGHTS = (1.0, 0.6, 0.8, 0.6)
"""Exact words, stems, synonyms, paraphrases: the values of METEOR 1.5 for English."""
COUNTS, CHUNKS, TEST_MATCHES, REFERENCE_MATCHES = 23, 20, 21, 22


class Meteor:
    """METEOR of predicted captions over the corpus, of the reference that fits each one best.

    Args:
        jar: `meteor-1.5.jar` with its data beside it; None: the file that VIP_METEOR_JAR names, or that of the package pycocoevalcap.
        tokenizer: shared with other metrics that score the same list.
    """

    name = "meteor"
    needs = ("Java", f"meteor-{VERSION}.jar")

    def __init__(self, jar: Path | None = None, *, tokenizer: CaptionTokenizer | None = None) -> None:
        self.jar = jar
        self.tokenizer = tokenizer or CaptionTokenizer()
        self._asked: tuple[CaptionCorpus, Floats] | None = None

    @property
    def signature(self) -> str:
        self.check()
        return f"{self.name}|v:1|meteor {VERSION} en, normalised|{TOKENS}"

    def check(self) -> None:
        if shutil.which("java") is None:
            raise BackendError("The metric meteor needs Java. Install it (`apt install default-jre-headless`), or leave the metric out.")
        if not self._jar_path().is_file():
            raise BackendError(
                f"The metric meteor needs meteor-{VERSION}.jar. Run `pip install pycocoevalcap`, or name the file in {VARIABLE}."
            )

    def score(self, pairs: Sequence[CaptionPair]) -> Result:
        return score_corpus(pairs, lambda part: (self.weighted(part)(np.ones(len(part))), None), self.signature)

    def weighted(self, pairs: Sequence[CaptionPair]) -> Callable[[Floats], float]:
        """Return a function from the weights of the pairs to METEOR, for draws of pairs."""
        self.check()
        statistics = self._ask(pairs)
        return lambda weights: aggregate(weights @ statistics)

    def _jar_path(self) -> Path:
        if self.jar is not None:
            return self.jar
        if named := os.environ.get(VARIABLE):
            return Path(named)
        spec = find_spec("pycocoevalcap")
        folder = Path(next(iter(spec.submodule_search_locations))) if spec and spec.submodule_search_locations else Path()
        return folder / "meteor" / f"meteor-{VERSION}.jar"

    def _ask(self, pairs: Sequence[CaptionPair]) -> Floats:
        """Return the program's counts of each pair. (N, 23)"""
        corpus = self.tokenizer.tokenize(pairs)
        if self._asked is not None and self._asked[0] is corpus:
            return self._asked[1]
        rows = []
        with _running(self._jar_path()) as (questions, answers):
            for prediction, references in corpus.tokens():
                texts = [" ".join(words).replace("|||", " ") for words in (*references, prediction)]
                questions.write(" ||| ".join(["SCORE", *texts]) + "\n")
                questions.flush()
                rows.append([float(number) for number in answers.readline().split()])
                if len(rows[-1]) != COUNTS:
                    raise ValueError("no counts")
        counts = np.array(rows)
        is_perfect = (counts[:, CHUNKS] == 1) & (counts[:, [0, 1]] == counts[:, [TEST_MATCHES, REFERENCE_MATCHES]]).all(axis=1)
        counts[is_perfect, CHUNKS] = 0
        self._asked = corpus, counts
        return counts


def aggregate(counts: Floats) -> float:
    """Return METEOR of sums of counts: the weighted harmonic mean of precision and recall, less the penalty of fragmentation.

    The counts are lengths of the prediction and of the reference, function words of both, for each of the four matchers the content words
    of both and the function words of both that it matched, then chunks and matched words of both. A perfect match has no chunk.
    """
    sides = []
    for side in (0, 1):
        matched = sum(
            weight * (DELTA * counts[4 + 4 * place + side] + (1 - DELTA) * counts[6 + 4 * place + side])
            for place, weight in enumerate(MATCHER_WEIGHTS)
        )
        total = DELTA * (counts[side] - counts[2 + side]) + (1 - DELTA) * counts[2 + side]
        sides.append(float(matched / total) if total else 0.0)
    precision, recall = sides
    if not precision or not recall:
        return 0.0
    mean = 1 / ((1 - ALPHA) / precision + ALPHA / recall)
    fragments = counts[CHUNKS] / ((counts[TEST_MATCHES] + counts[REFERENCE_MATCHES]) / 2)
    return float(mean * (1 - GAMMA * fragments**BETA))


@contextmanager
def _running(jar: Path) -> Iterator[tuple[IO[str], IO[str]]]:
    """Start the program, and end it."""
    command = ["java", "-jar", MEMORY, jar.name, "-", "-", "-stdio", "-l", "en", "-norm"]
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(command, cwd=jar.parent, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, encoding="utf-8")
    except OSError as exc:
        raise BackendError(f"Java cannot be started: {exc.strerror}.") from exc
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdin, process.stdout
        except (OSError, ValueError) as exc:
            raise BackendError(f"meteor-{VERSION}.jar ended without a score. Its folder must hold its data too: {jar.parent}.") from exc
        finally:
            process.kill()
