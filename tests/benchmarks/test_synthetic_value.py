"""Videos that are told by what is shown and what is said: what both say together, and what one leaves open."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
from synthetic_value import FRAMES, SCENES, THINGS, WORDS, Maker, make

from vip.tasks.value.annotations import read_samples
from vip.tasks.value.channels import SubtitleFile
from vip.tasks.value.datasets import BY_KEY
from vip.tasks.value.training_data import ChannelReader, read_train


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made")
    make(place, seed=1)
    return place


def test_both_channels_tell_the_scene_of_a_query(folder: Path) -> None:
    reader = ChannelReader([folder / "features"], folder / "subtitles")
    looks = Maker(folder / "again", seed=1).looks
    for example in read_train(folder / "annotations", BY_KEY["tvr"])[:40]:
        channels = reader.read(example.video, "tv")
        assert channels.features.shape[0] == SCENES * FRAMES
        thing, word = example.texts[0][0]
        assert example.span_s is not None
        first = round(example.span_s[0] / 1.5)
        shown = channels.features[first : first + FRAMES].mean(axis=0)
        assert min(THINGS, key=lambda one: float(np.linalg.norm(looks[one] - shown))) == thing
        assert [one.text for one, frames in zip(channels.sentences, channels.frames, strict=True) if first in frames] == [word]


def test_one_channel_leaves_twelve_scenes_open(folder: Path) -> None:
    samples = list(read_samples(folder / "annotations/tvr_val_release.jsonl", BY_KEY["tvr"]))
    pairs = Counter(sample.ask.query for sample in samples)  # type: ignore[union-attr]
    assert set(pairs.values()) == {1}
    for place, letters in enumerate((THINGS, WORDS)):
        assert Counter(pair[place] for pair in pairs) == dict.fromkeys(letters, 12)


def test_half_of_the_options_fit_each_channel(folder: Path) -> None:
    said = SubtitleFile(folder / "subtitles/how2_subtitles.jsonl")
    places = Counter()
    for example in read_train(folder / "annotations", BY_KEY["how2qa"]):
        assert example.answer is not None
        thing, word = example.texts[example.answer][1]
        options = [option for _, option in example.texts]
        assert len(set(options)) == 4
        assert sum(option[0] == thing for option in options) == sum(option[1] == word for option in options) == 2
        assert [one.text for one in said.of_video(example.video)] == [word]
        places[example.answer] += 1
    assert min(places.values()) > 150
