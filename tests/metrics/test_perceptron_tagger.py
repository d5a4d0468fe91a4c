"""The tagger tags as NLTK's own on the same data, which is read in both of its forms and never run."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vip.errors import BackendError
from vip.metrics.perceptron_tagger import FILES, PerceptronTagger, load_tagger

TAGS = ["DT", "JJ", "NN", "VB", "VBZ"]
WEIGHTS = {
    "bias": {"NN": 0.5, "VB": 0.25},
    "i suffix ing": {"VB": 2.0},
    "i pref1 r": {"JJ": 0.75},
    "i-1 tag DT": {"NN": 1.5, "JJ": 1.5},
    "i-2 tag DT": {"NN": 1.0},
    "i tag+i-2 tag NN DT": {"VBZ": 3.0},
    "i word !HYPHEN": {"JJ": 4.0},
    "i word !YEAR": {"NN": 4.0},
    "i word !DIGITS": {"JJ": 1.25},
    "i-1 word -START2-": {"VB": 1.0},
    "i+1 word -END-": {"NN": 0.5},
    "i+1 suffix run": {"NN": 0.125},
    "i+2 word dog": {"DT": 2.0},
}
FIXED = {"the": "DT", "a": "DT"}
TOKENS = ["the", "a", "The", "run", "running", "red", "dog", "1999", "12", "well-known", "-", "été", "."]


@given(st.lists(st.sampled_from(TOKENS) | st.text(min_size=1, max_size=4).filter(lambda text: not text.isspace()), max_size=8))
@settings(max_examples=60)
@pytest.mark.extra("nltk")
@pytest.mark.slow
def test_tags_are_those_of_nltk(tokens: list[str]) -> None:
    from nltk.tag.perceptron import PerceptronTagger as Theirs

    theirs: Any = Theirs(load=False)
    theirs.model.weights, theirs.tagdict = WEIGHTS, FIXED
    theirs.classes = theirs.model.classes = set(TAGS)
    assert PerceptronTagger(WEIGHTS, FIXED, TAGS).tag(tokens) == theirs.tag(tokens)


def test_tags_that_are_counted_by_hand() -> None:
    tagger = PerceptronTagger(WEIGHTS, FIXED, TAGS)
    assert tagger.tag(["the", "dog"]) == [("the", "DT"), ("dog", "NN")]  # after DT: NN 0.5 + 1.5 + 0.5, JJ 1.5
    assert tagger.tag(["the", "red", "dog"])[1:] == [("red", "JJ"), ("dog", "NN")]  # JJ 1.5 + 0.75, NN 0.5 + 1.5
    assert tagger.tag([]) == []


def write_json(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name, value in zip(FILES, (WEIGHTS, FIXED, TAGS), strict=True):
        (folder / name).write_text(json.dumps(value))
    return folder


def test_the_data_is_read_in_both_of_nltks_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_json(tmp_path / "new" / "taggers" / "averaged_perceptron_tagger_eng")
    old = tmp_path / "old" / "taggers" / "averaged_perceptron_tagger"
    old.mkdir(parents=True)
    (old / "averaged_perceptron_tagger.pickle").write_bytes(pickle.dumps((WEIGHTS, FIXED, set(TAGS)), protocol=2))
    tokens = ["the", "red", "dog", "running"]
    expected = PerceptronTagger(WEIGHTS, FIXED, TAGS).tag(tokens)
    assert load_tagger(tmp_path / "new").tag(tokens) == load_tagger(tmp_path / "old").tag(tokens) == expected
    assert load_tagger(tmp_path / "new" / "taggers" / "averaged_perceptron_tagger_eng").tag(tokens) == expected
    monkeypatch.setenv("NLTK_DATA", os.pathsep.join([str(tmp_path / "none"), str(tmp_path / "old")]))
    assert load_tagger().tag(tokens) == expected


def test_a_pickle_that_would_run_something_is_refused_and_runs_nothing(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "made"),)

    (tmp_path / "averaged_perceptron_tagger.pickle").write_bytes(pickle.dumps((Evil(), {}, set())))
    with pytest.raises(BackendError, match=r"The tagger's data in .* is damaged \(it names \w+\.mkdir\)"):
        load_tagger(tmp_path)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("weights", ['{"bias": {"NN": "1"}}', "[]", "{", '{"bias": 1}'])
def test_damaged_data_is_said(tmp_path: Path, weights: str) -> None:
    folder = write_json(tmp_path / "data")
    (folder / FILES[0]).write_text(weights)
    with pytest.raises(BackendError, match=r"is damaged \(.+\)\. Run `python -m nltk\.downloader averaged_perceptron_tagger_eng` again"):
        load_tagger(folder)


def test_missing_data_is_asked_for_with_the_command_that_brings_it(tmp_path: Path) -> None:
    with pytest.raises(
        BackendError, match=r"it is not in .*\. Run `python -m nltk\.downloader averaged_perceptron_tagger_eng`, or set NLTK_DATA"
    ):
        load_tagger(tmp_path)
