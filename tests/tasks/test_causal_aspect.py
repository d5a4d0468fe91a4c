"""vip.tasks.causal_aspect: one word about all keyframes of a window of infilling"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tasks.described import described_folder
from vip.config import SampleSettings
from vip.tasks.causal_aspect import CausalAspect
from vip.tasks.infilling import VideoInfilling
from vip.tasks.records import Choice, KeyframeDescription, Sample
from vip.tasks.task import SampleSource


def source(folder: Path, representation: str) -> SampleSource:
    return SampleSource(paths=(str(folder),), settings=SampleSettings(representation=representation, context=2, targets=3))  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return described_folder(tmp_path / "v", 8)


def shown(sample: Sample) -> list[tuple[str, str]]:
    pieces = [piece for piece in sample.context if isinstance(piece, KeyframeDescription)]
    return [(piece.keyframe_id, piece.famous.focus if piece.famous else str(piece.dense_caption)) for piece in pieces]


def test_all_keyframes_of_a_window_are_shown_in_order_and_nothing_is_known_of_the_answer(folder: Path) -> None:
    found = list(CausalAspect().samples(source(folder, "famous")))
    assert [one.id for one in found] == [one.id for one in VideoInfilling().samples(source(folder, "famous"))]
    words = ("dog", "frisbee", "park", "man", "ball", "river", "boat")
    ids = ("v:0", "v:1", "target 1", "target 2", "target 3", "v:5", "v:6")
    assert shown(found[0]) == [(name, f"a {word} {number}") for number, (name, word) in enumerate(zip(ids, words, strict=True))]
    assert {(one.task, one.reference, one.ask) for one in found} == {
        ("causal-aspect", None, Choice(question="What causes most of what changes?", options=("physical", "social")))
    }


def test_the_prompt_has_every_scene_with_its_number(folder: Path) -> None:
    sample = next(CausalAspect().samples(source(folder, "dense")))
    asked = CausalAspect().request(sample, None)
    lines = [line for line in asked.text.splitlines() if line.startswith("Keyframe")]
    words = ("dog", "frisbee", "park", "man", "ball", "river", "boat")
    assert lines == [f"Keyframe {place + 1}: A {word} {place} in v." for place, word in enumerate(words)]
    assert (asked.max_tokens, asked.schema, asked.demonstration) == (16, None, None)


@pytest.mark.parametrize(
    ("answer", "value"),
    [("physical", 0), (" Social. ", 1), ("SOCIAL\n", 1), ("both", None), ("", None), ("physical social", None), ("1", None)],
)
def test_an_answer_is_one_of_two_words_and_kept_as_it_came(answer: str, value: int | None, folder: Path) -> None:
    sample = next(CausalAspect().samples(source(folder, "dense")))
    found = CausalAspect().parse(sample, answer)
    assert (found.sample_id, found.value, found.status, found.raw) == (sample.id, value, "unparsed" if value is None else "ok", answer)
    assert (found.reason is None) == (value is not None)
