"""The benchmark of shot boundaries: detectors and predictions against annotations, and what cannot be scored."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shots
from shot_scores import Counts, Transition
from shot_truth import Truth

from tests.clips import clip, scene
from tests.media import write as write_video
from vip.records import Image

ALL, EXACT, CUTS, CUTS_EXACT, GRADUAL = "all, ±2 frames", "all, exact", "cuts, ±2 frames", "cuts, exact", "gradual, by overlap"


def rai(folder: Path, **rows: str) -> Path:
    """A folder of RAI's form: `v1="0 9\n10 19\n"` becomes 1_gt.txt."""
    folder.mkdir()
    for name, text in rows.items():
        (folder / f"{name[1:]}_gt.txt").write_text(text)
    return folder


def run(*arguments: Path | str) -> None:
    shots.main(list(map(str, arguments)))


def figures(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())
    return found


# ---------------------------------------------------------------- predictions of others


def test_predictions_in_the_form_of_clipshots_give_the_figures_counted_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = {
        "a.mp4": {"transitions": [[99, 100], [200, 230], [299, 300], [499, 500]], "frame_num": 600.0},
        "b.mp4": {"transitions": [[9, 10]], "frame_num": 20.0},
        "c.mp4": {"transitions": [], "frame_num": 20.0},
    }
    predicted = {
        "a.mp4": {"cut": [[101, 102], [299, 300], [399, 400]], "gradual": [[210, 220]]},
        "b.mp4": {"cut": [], "gradual": []},
        "d.mp4": {"cut": [[1, 2]]},
    }
    (tmp_path / "test.json").write_text(json.dumps(truth))
    (tmp_path / "found.json").write_text(json.dumps(predicted))
    run("clipshots", tmp_path / "test.json", "--predictions", tmp_path / "found.json", "--json", tmp_path / "out.json")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("found.json: 2 of 3 videos")
    # a: 100 is found 2 frames late, 300 exactly, the dissolve by overlap, 400 is no boundary, 500 is missed. b: 10 is missed.
    assert [line.split()[-6:] for line in lines[2:7]] == [
        ["0.7500", "0.6000", "0.6667", "3", "1", "2"],
        ["0.5000", "0.4000", "0.4444", "2", "2", "3"],
        ["0.6667", "0.5000", "0.5714", "2", "1", "2"],
        ["0.3333", "0.2500", "0.2857", "1", "2", "3"],
        ["1.0000", "1.0000", "1.0000", "1", "0", "0"],
    ]
    assert lines[7:] == ["Not scored: c.mp4: no prediction", "Not annotated: d.mp4"]
    found = figures(tmp_path / "out.json")
    assert found["total"][ALL] == {"hits": 3, "false_alarms": 1, "missed": 2, "precision": 0.75, "recall": 0.6, "f1": pytest.approx(2 / 3)}
    assert found["videos"]["b.mp4"][CUTS] == {"hits": 0, "false_alarms": 0, "missed": 1}
    assert found["unscored"] == {"c.mp4": "no prediction"}


def test_what_transnetv2_writes_is_read_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = rai(tmp_path / "labels", v1="0 9\n10 19\n20 29\n")
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "1.mp4.scenes.txt").write_text("0 9\n10 20\n21 29\n")
    run("rai", truth, "--predictions", tmp_path / "found")
    rows = {line[:22].strip(): line.split()[-3:] for line in capsys.readouterr().out.splitlines()[2:]}
    assert (rows[ALL], rows[EXACT]) == (["2", "0", "0"], ["1", "1", "1"])


def test_a_higher_tolerance_finds_more_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = rai(tmp_path / "labels", v1="0 9\n10 19\n")
    (tmp_path / "found.json").write_text('{"1.mp4": {"cut": [[14, 15]]}}')
    run("rai", truth, "--predictions", tmp_path / "found.json", "--tolerance", "5")
    rows = {line[:22].strip(): line.split()[-3:] for line in capsys.readouterr().out.splitlines()[2:]}
    assert (rows["all, ±5 frames"], rows[EXACT]) == (["1", "0", "0"], ["0", "1", "1"])


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ("{}", 'holds no predictions. Give a JSON file {"NAME.mp4": {"cut": […]}}, or a folder of NAME.scenes.txt.'),
        ('{"1.mp4": [[1, 2]]}', '1.mp4: expected "cut" and "gradual", each a list of [last, first].'),
        ('{"1.mp4": {"cuts": [[1, 2]]}}', '1.mp4: expected "cut" and "gradual"'),
        ('{"1.mp4": {"cut": [1, 2]}}', "1.mp4: expected two frame numbers, but found 1."),
        ('{"1.mp4": {"cut": [[2, 2]]}}', "1.mp4: A transition leads from a frame to a later one, not from 2 to 2."),
        ('{"1.mp4": {"cut": [[4, 5]], "gradual": [[2, 9]]}}', "1.mp4: the transitions 2–9 and 4–5 overlap."),
        ('{"first.mp4": {"cut": []}}', "first.mp4 is no video of rai."),
        ('{"1.mp4": {"cut": []}, "1.avi": {"cut": []}}', "1.avi is there twice."),
        ('{"2.mp4": {"cut": []}}', "No video can be scored. The first, 1: no prediction."),
    ],
)
def test_predictions_of_another_form_are_refused(data: str, fault: str, tmp_path: Path) -> None:
    truth = rai(tmp_path / "labels", v1="0 9\n10 19\n")
    (tmp_path / "found.json").write_text(data)
    with pytest.raises(SystemExit, match=re.escape(fault)):
        run("rai", truth, "--predictions", tmp_path / "found.json")


# ---------------------------------------------------------------- what vip finds


def shown(number: int) -> Image:
    """A shot a second, each of a brightness of its own."""
    shot = number // 10
    return np.asarray(scene(shot) // 3 + np.uint8(40 * shot), np.uint8)


@pytest.fixture
def videos(tmp_path: Path) -> Path:
    """1.mkv with cuts at frames 10 and 20, its clock beginning at 3 s, and 2.mp4 that is no video."""
    folder = tmp_path / "videos"
    folder.mkdir()
    write_video(folder / "1.mkv", frames=30, rate=10, gop=30, ticks=[30 + tick for tick in range(30)], picture=shown)
    (folder / "2.mp4").write_text("no video")
    return folder


@pytest.mark.extra("scenedetect")
@pytest.mark.parametrize("detector", ["shots", "shots:adaptive", "shots:hash", "shots:histogram"])
def test_the_cuts_of_the_sampler_shots_are_frame_exact(
    detector: str, videos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = rai(tmp_path / "labels", v1="0 9\n10 19\n20 29\n", v2="0 9\n10 19\n", v3="0 9\n")
    run("rai", truth, "--detector", detector, "--videos", videos, "--json", tmp_path / "out.json")
    found = figures(tmp_path / "out.json")
    assert found["videos"]["1"][CUTS_EXACT] == {"hits": 2, "false_alarms": 0, "missed": 0}
    assert list(found["videos"]) == ["1"]
    assert found["unscored"]["3"] == "the video is missing"
    assert "2.mp4" in found["unscored"]["2"]
    assert "1 of 3: 1.mkv" in capsys.readouterr().err


@pytest.mark.extra("scenedetect")
def test_an_annotation_of_a_longer_encoding_is_not_scored(videos: Path, tmp_path: Path) -> None:
    truth = rai(tmp_path / "labels", v1="0 9\n10 29\n30 39\n")
    with pytest.raises(SystemExit, match="The first, 1: it decodes to 30 frames, but is annotated up to frame 30"):
        run("rai", truth, "--detector", "shots", "--videos", videos)


def test_a_video_of_clipshots_with_a_frame_more_begins_a_frame_earlier() -> None:
    truth = Truth((Transition(9, 10),), frames=30)
    assert shots.aligned(truth, 30) == (Transition(9, 10),)
    assert shots.aligned(truth, 31) == (Transition(10, 11),)
    for frames in (29, 32):
        with pytest.raises(shots.UnscoredError, match=f"it decodes to {frames} frames, but the annotators saw 30"):
            shots.aligned(truth, frames)


def test_a_video_that_the_annotators_could_not_see_is_not_scored() -> None:
    found = shots.evaluate({"a": Truth((), frames=0)}, {"a": shots.Prediction((Transition(1, 2),))}, 2)
    assert (found.videos, found.unscored) == ({}, {"a": "the annotators saw no frames"})


def test_totals_are_of_the_counts_of_all_videos() -> None:
    truth = {"a": Truth((Transition(9, 10),)), "b": Truth((Transition(9, 10), Transition(19, 20)))}
    predicted = {"a": shots.Prediction((Transition(9, 10),)), "b": shots.Prediction((Transition(50, 51),))}
    assert shots.evaluate(truth, predicted, 2).total[ALL] == Counts(hits=1, false_alarms=1, missed=2)


def test_two_files_of_one_video_are_refused(tmp_path: Path) -> None:
    for name in ("a/1.mp4", "b/1.mp4"):
        clip(tmp_path / "videos" / name, [1])
    truth = rai(tmp_path / "labels", v1="0 9\n")
    with pytest.raises(SystemExit, match=r"a/1\.mp4 and .*b/1\.mp4 are both video 1 of rai"):
        run("rai", truth, "--detector", "shots", "--videos", tmp_path / "videos")


def test_a_folder_without_videos_of_the_data_set_is_refused(tmp_path: Path) -> None:
    truth = rai(tmp_path / "labels", v1="0 9\n")
    with pytest.raises(SystemExit, match="labels holds no video of rai"):
        run("rai", truth, "--detector", "shots", "--videos", truth)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ((), "give either --predictions or --detector"),
        (("--detector", "shots", "--predictions", "a.json"), "give either --predictions or --detector"),
        (("--detector", "shots"), "--detector needs the folder of the videos: --videos DIR"),
        (("--detector", "shots", "--videos", "nowhere"), "--detector needs the folder of the videos: --videos DIR"),
        (("--predictions", "a.json", "--tolerance", "0"), "--tolerance must be at least 1, got 0; the exact figures are always there"),
        (("--predictions", "nowhere.json"), "labels does not exist"),
    ],
)
def test_a_wrong_command_is_one_sentence(
    arguments: tuple[str, ...], fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        run("rai", tmp_path / "labels", *arguments)
    assert fault in f"{stopped.value}{capsys.readouterr().err}"
