"""METEOR 1.5 of captions (Denkowski and Lavie 2014), by its own Java program, which neither vip nor a library brings."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from vip.errors import BackendError
from vip.metrics.caption_corpus import TOKENS, CaptionPair, CaptionTokenizer, score_corpus
from vip.metrics.metric import Result

VARIABLE = "VIP_METEOR_JAR"
VERSION = "1.5"
MEMORY = "-Xmx2G"


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
        return score_corpus(pairs, self._score, self.signature)

    def _jar_path(self) -> Path:
        if self.jar is not None:
            return self.jar
        if named := os.environ.get(VARIABLE):
            return Path(named)
        spec = find_spec("pycocoevalcap")
        folder = Path(next(iter(spec.submodule_search_locations))) if spec and spec.submodule_search_locations else Path()
        return folder / "meteor" / f"meteor-{VERSION}.jar"

    def _score(self, pairs: Sequence[CaptionPair]) -> tuple[float, None]:
        corpus = self.tokenizer.tokenize(pairs)
        with _running(self._jar_path()) as (questions, answers):
            statistics = []
            for prediction, references in zip(corpus.predictions, corpus.references, strict=True):
                texts = [" ".join(words).replace("|||", " ") for words in (*references, prediction)]
                statistics.append(_ask(questions, answers, " ||| ".join(["SCORE", *texts])))
            values = [float(_ask(questions, answers, " ||| ".join(["EVAL", *statistics])))]
            values += [float(_line(answers)) for _ in statistics]
        return values[-1], None  # the value of the corpus is no mean


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


def _ask(questions: IO[str], answers: IO[str], line: str) -> str:
    questions.write(f"{line}\n")
    questions.flush()
    return _line(answers)


def _line(answers: IO[str]) -> str:
    if not (line := answers.readline()):
        raise OSError("it has ended")
    return line.strip()
