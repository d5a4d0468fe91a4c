"""The benchmark of questions about long videos asks for what is shown once, and counts what is decoded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import ask_long
import numpy as np
import pytest
from mixes import Image, Recipe, write_mix

from vip import registry
from vip.search import ask_long as searched

RECIPE = Recipe("h264", 64, 48, 3, gop=25, fps=25)


class NoiseClip:
    """A picture of noise for twenty seconds."""

    length_s = 20.0

    def __init__(self, number: int) -> None:
        self.name = f"noise {number}"
        self.picture = np.kron(np.random.default_rng(number).integers(0, 256, (6, 8, 3), np.uint8), np.ones((8, 8, 1), np.uint8))

    def frames(self, start_s: float, count: int, recipe: Recipe) -> Iterator[Image]:
        yield from [self.picture] * count


CLIPS = [NoiseClip(number) for number in range(12)]


def test_what_is_asked_for_is_shown_once_in_a_video_of_the_wanted_length() -> None:
    segments, asked = ask_long.plan(CLIPS, RECIPE, 10.0)
    assert len(asked) == 4
    for clip in asked:
        assert [segment.clip for segment in segments].count(clip) == 1
    assert 600 <= sum(segment.frames for segment in segments) / RECIPE.fps <= 600 + 20 + 4 * 15
    with pytest.raises(ValueError, match="too few or too short"):
        ask_long.plan(CLIPS[:2], RECIPE, 10.0)


def test_a_question_is_answered_by_its_segment_and_what_is_decoded_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searched, "LONG_S", 100.0)
    monkeypatch.setitem(registry.BUILT_IN["embedder"], "picture-for-text", "ask_long:PictureForText")
    monkeypatch.setattr(ask_long.PictureForText, "pictures", {clip.name: clip.picture for clip in CLIPS})
    segments, (clip, *_) = ask_long.plan(CLIPS, RECIPE, 4.0)
    truth = write_mix(tmp_path / "long.mp4", RECIPE, segments)
    row = ask_long.ask(tmp_path / "long.mp4", truth, clip, 4, tmp_path / "long.vip")
    assert row.found >= 2
    assert row.of == 4
    assert 0 < row.embedded <= row.decoded < 0.02
