"""Coverage and bad share against numbers counted by hand, and against the script that other projects use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import cv2
import pytest
from mixes import Truth
from scores import Score, evenly_spaced, score, times_of_pictures

from tests.clips import clip, scene

OTHER_SCRIPT = Path(__file__).resolve().parents[3] / "shared" / "bench" / "score_selection.py"
TRUTH = Truth(
    video="scenes.mp4",
    fps=3,
    seed=1,
    codec="h264",
    gop=3,
    duration_s=4.0,
    segments=[{"clip": str(number), "start_s": float(number), "end_s": number + 1.0} for number in range(4)],
    faults=[{"kind": "black", "start_s": 2.0, "end_s": 2.5}],
)


@pytest.mark.parametrize(
    ("times_s", "expected"),
    [
        ([0.5, 1.5, 2.7, 3.5], Score(4, 1.0, 0.0)),
        ([0.5, 0.6, 2.2, 3.5], Score(4, 0.5, 0.25)),  # the black one does not show the third segment
        ([2.0, 2.5], Score(2, 0.25, 0.5)),  # a fault begins with its first frame and ends before its last
        ([1.0], Score(1, 0.25, 0.0)),  # a cut belongs to what follows it
        ([4.0], Score(1, 0.0, 0.0)),  # behind the end
        ([], Score(0, 0.0, 0.0)),
    ],
)
def test_score_equals_what_is_counted_by_hand(times_s: list[float], expected: Score) -> None:
    assert score(TRUTH, times_s) == expected


def test_evenly_spaced_frames_are_the_middles_of_equal_parts() -> None:
    assert evenly_spaced(4.0, 4) == [0.5, 1.5, 2.5, 3.5]


def pictures(folder: Path, numbers: list[int]) -> Path:
    folder.mkdir()
    for number in numbers:
        cv2.imwrite(str(folder / f"{number}.jpg"), cv2.cvtColor(cv2.resize(scene(number), (320, 180)), cv2.COLOR_RGB2BGR))
    return folder


def test_a_picture_gets_the_time_of_the_frame_that_it_shows(tmp_path: Path) -> None:
    found = times_of_pictures(clip(tmp_path / "scenes.mp4", range(4)), pictures(tmp_path / "pictures", [0, 1, 3]))
    assert found == pytest.approx([0, 4 / 3, 10 / 3])  # three frames a scene, of which every second one of the video is looked at


def test_a_folder_without_pictures_gives_no_times(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    assert times_of_pictures(tmp_path / "not-even-opened.mp4", tmp_path) == []


@pytest.mark.skipif(not OTHER_SCRIPT.exists(), reason="the other script lies outside the repository")
def test_scores_equal_those_of_the_other_script(tmp_path: Path) -> None:
    video = clip(tmp_path / "scenes.mp4", range(4))
    folder = pictures(tmp_path / "pictures", [0, 1, 2])
    truth = tmp_path / "scenes.json"
    truth.write_text(json.dumps(TRUTH))
    times_s = [0.4, 2.1, 2.2, 3.9]
    ours = [score(TRUTH, times_s), score(TRUTH, evenly_spaced(4.0, 6)), score(TRUTH, times_of_pictures(video, folder))]
    for mine, choice in zip(ours, (["--times", *map(str, times_s)], ["--uniform", "6"], ["--images", str(folder)]), strict=True):
        done = subprocess.run([sys.executable, OTHER_SCRIPT, truth, *choice], capture_output=True, text=True, check=True)
        theirs = json.loads(done.stdout)
        assert (theirs["keyframes"], theirs["coverage"], theirs["bad"]) == (mine.keyframes, round(mine.coverage, 4), round(mine.bad, 4))
