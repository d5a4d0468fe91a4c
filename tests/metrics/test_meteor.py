"""METEOR: what is computed from its program's counts, and what is said without the program."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from tests.metrics.caption_pairs import vatex_pairs, vatex_score
from vip.errors import BackendError
from vip.metrics import Pair, meteor
from vip.metrics.meteor import COUNTS, Meteor, aggregate

# counts that meteor-1.5.jar gave, and the score that it gave for them
ANSWERS = [
    ("9 10 4 5 4 4 4 4 0 0 0 0 0 0 0 0 1 1 0 0 4 9 9", 0.43924320179064824),
    ("7 6 4 3 1 1 3 3 1 1 0 0 1 1 0 0 0 0 0 0 2 6 6", 0.4351622750639826),
    ("4 3 1 1 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0 2 2 2", 0.28993288590604027),
    ("3 3 1 1 2 2 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 3 3", 1.0),  # a perfect match has no chunk
    ("23 22 10 10 8 8 8 8 1 1 0 0 2 2 0 0 1 1 0 0 8 20 20", 0.4352833208305403),  # all of them
    ("0 3 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", 0.0),
]


@pytest.mark.parametrize(("counts", "expected"), ANSWERS)
def test_the_value_is_that_of_the_program(counts: str, expected: float) -> None:
    assert aggregate(np.array([float(number) for number in counts.split()])) == pytest.approx(expected, abs=1e-12)


def test_counts_add_up_to_those_of_the_corpus() -> None:
    rows = np.array([[float(number) for number in counts.split()] for counts, _ in ANSWERS[:4]])
    assert rows.shape == (4, COUNTS)
    assert rows.sum(axis=0).tolist() == [float(number) for number in ANSWERS[4][0].split()]


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("VIP_METEOR_JAR") or shutil.which("java") is None, reason="VIP_METEOR_JAR names no program")
def test_the_published_figure_comes_out() -> None:
    value = Meteor().score(vatex_pairs()).value
    assert value is not None
    assert 100 * value == pytest.approx(vatex_score("METEOR"), abs=1e-3)


def test_the_program_is_asked_once_about_a_list_and_again_about_another(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    @contextmanager
    def running(jar: Path) -> Iterator[tuple[StringIO, StringIO]]:
        questions = StringIO()
        yield questions, StringIO("\n".join(counts for counts, _ in ANSWERS[len(asked) :]) + "\n")
        asked.extend(questions.getvalue().splitlines())

    monkeypatch.setattr(meteor, "_running", running)
    monkeypatch.setattr(Meteor, "check", lambda self: None)
    metric = Meteor()
    lists = [[Pair(f"a dog {number}", ("a dog", "the dog"))] for number in range(2)]
    values = [metric.score(pairs).value for pairs in (lists[0], lists[0], lists[1])]
    assert values == pytest.approx([ANSWERS[0][1], ANSWERS[0][1], ANSWERS[1][1]], abs=1e-12)
    assert asked == [f"SCORE ||| a dog ||| the dog ||| a dog {number}" for number in range(2)]
    assert metric.score([*lists[0], Pair(None, ("a cat",), "refused")]).unscored == {"refused": 1}
    assert len(asked) == 5, "both again, and what was answered of them apart"


def test_without_java_or_its_program_one_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VIP_METEOR_JAR", str(tmp_path / "none.jar"))
    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/java")
    with pytest.raises(
        BackendError, match=r"needs meteor-1\.5\.jar\. Run `pip install pycocoevalcap`, or name the file in VIP_METEOR_JAR\."
    ):
        Meteor().score([Pair("a dog", ("a dog",))])
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(BackendError, match="needs Java"):
        Meteor().check()
