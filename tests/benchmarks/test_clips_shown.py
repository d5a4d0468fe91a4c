"""The benchmark of clips shown counts what it says, and holds the goals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import clips_shown
import pytest
from clips_shown import MixScores
from mixes import Recipe, build, clips_in
from scores import Score

GOOD = MixScores("a mix", 40, exact=Score(40, 0.95, 0.0), more=Score(52, 1.0, 0.0), auto=Score(56, 0.97, 0.1))


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({}, []),
        ({"exact": Score(40, 0.949, 0.0)}, ["N: 0.949 of the clips shown, at least 0.95 wanted"]),
        ({"more": Score(52, 0.98, 0.0)}, ["1.3 N: 0.980 of the clips shown, at least 0.99 wanted"]),
        ({"more": Score(52, 1.0, 0.01)}, ["1.3 N: 0.0100 of the keyframes bad, at most 0.005 wanted"]),
        ({"auto": Score(56, 0.9, 0.0)}, ["auto: 0.900 of the clips shown, at least 0.97 wanted"]),
        ({"auto": Score(60, 1.0, 0.0)}, ["auto: 1.50 keyframes a clip, at most 1.4 wanted"]),
    ],
)
def test_a_goal_that_is_missed_is_named_with_its_figure(changes: dict[str, Score], missed: list[str]) -> None:
    assert list(clips_shown.missed([replace(GOOD, **changes)])) == missed


def test_every_mix_is_held_to_its_own_goal_and_all_to_that_of_their_mean() -> None:
    poor = replace(GOOD, name="poor", exact=Score(40, 0.875, 0.0))
    good = replace(GOOD, exact=Score(40, 1.0, 0.0))
    assert list(clips_shown.missed([good, good, poor])) == ["poor: 0.875 of the clips shown, at least 0.9 wanted of every mix"]


def test_the_last_row_counts_clips_and_keyframes_over_all_mixes() -> None:
    short = MixScores("short", 20, exact=Score(20, 0.9, 0.05), more=Score(26, 1.0, 0.0), auto=Score(10, 0.5, 0.0))
    assert clips_shown.mean_row([GOOD, short]) == "| all | 60 | 0.925 | 0.017 | 1.000 | 0.000 | 0.735 | 0.085 | 1.10 |"


def test_a_mix_of_photographs_is_shown_whole(tmp_path: Path) -> None:
    recipe = Recipe("h264", 320, 180, seed=3, segments=4, longest_s=4.0)
    found = clips_shown.measure(build(recipe, clips_in(None), tmp_path), "four photographs", tmp_path)
    assert (found.exact.keyframes, found.more.keyframes) == (4, 5)
    assert found.exact.coverage == found.more.coverage == found.auto.coverage == 1.0
    assert found.row().startswith("| four photographs | 4 | 1.000 | 0.000 | 1.000 | ")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--clips", "nothere"], "--clips: nothere is no folder"),
        (["--mixes", "0"], "--mixes must be at least 1, got 0"),
        (["--clips", "."], "None of the 0 clips lasts 2.5 s. Give another folder with --clips."),
    ],
)
def test_what_cannot_be_measured_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        clips_shown.main(arguments)
    assert sentence in f"{ended.value} {capsys.readouterr().err}"
