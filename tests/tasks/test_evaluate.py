"""An evaluation in one call, from the library."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tasks.described import described_folder
from vip.config import SampleSettings
from vip.errors import UsageError
from vip.protocols import SilentObserver
from vip.tasks.evaluate import evaluate


class Notes(SilentObserver):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    return [str(described_folder(tmp_path / "runs" / name, 6, first_word=4 * number)) for number, name in enumerate("ab")]


@pytest.mark.extra("rouge_score")
def test_a_training_set_is_for_the_tasks_that_have_a_use_for_it(runs: list[str], tmp_path: Path) -> None:
    notes = Notes()
    (tmp_path / "train.csv").write_text("video,qid,type,question,answer\n")
    settings = SampleSettings(context=1)
    scores, files = evaluate(
        runs, ["infilling"], tmp_path / "out", samples=settings, train=tmp_path / "train.csv", metrics=["rouge-l"], observer=notes
    )
    assert not [text for text in notes.texts if text.startswith("Left out")]
    assert {result.engine for result in scores.results} == {
        f"baseline:{name}" for name in ("copy-nearest", "frequent-words", "random-keyframe", "nearest-text")
    }
    assert all(path.is_file() for path in files)


@pytest.mark.extra("rouge_score")
def test_samples_of_other_settings_are_not_replaced_unasked(runs: list[str], tmp_path: Path) -> None:
    def again(context: int, *, overwrite: bool = False) -> bytes:
        evaluate(
            runs,
            ["prediction-1"],
            tmp_path / "out",
            samples=SampleSettings(targets=context),
            metrics=["rouge-l"],
            overwrite=overwrite,
            observer=Notes(),
        )
        (path,) = (tmp_path / "out").glob("*/samples.jsonl")
        return path.read_bytes()

    first = again(1)
    assert again(1) == first
    with pytest.raises(UsageError, match="holds other samples than these settings make"):
        again(2)
    assert again(1) == first
    assert again(2, overwrite=True) != first
    assert not list((tmp_path / "out").glob("*/*.new"))
