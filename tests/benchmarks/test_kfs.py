"""The measures of KFS-Bench against figures worked out by hand, and its files in the published form, written for these tests."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import kfs
import numpy as np
import pytest
from kfs_scores import KfsScore, score, summary
from published import FormError

from tests.clips import clip, scene
from tests.media import write as write_video
from vip.config import ExtractSettings
from vip.pipeline import extract

LONG, SHORT = [(0.0, 10.0)], [(20.0, 22.0), (30.0, 33.0)]  # scenes of 10 s and, in two stretches, 5 s
HEAD = "id,segment_id,scene_id,start,end\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


# ---------------------------------------------------------------- measures


@pytest.mark.parametrize(
    ("times_s", "kfr", "shr", "bsr", "bds"),
    [
        # 2 and 1 in the scenes, as 10 : 5; 3 useful ones ask for floor(min(2, 1.5)) = 1 and floor(min(1, 1.5)) = 1
        ([5, 5, 21, 50], 3 / 4, 1.0, 1.0, 1.0),
        # all in the long one: 4 useful ones ask for floor(min(2.7, 2)) = 2 and floor(min(1.3, 2)) = 1; best cosine at a = 1
        ([1, 2, 3, 4], 1.0, 1 / 2, 1 / 2, 10 / math.hypot(10, 5)),
        # one in each: best cosine at a = 0
        ([1, 32], 1.0, 1.0, 1.0, 1.0),
        # 6 useful ones ask for floor(min(4, 3)) = 3 of the long one, which has 1, and 2 of the short one; best cosine at a = 0
        ([1, 20, 21, 22, 30, 33], 1.0, 1.0, 1 / 2, 6 / math.sqrt(2 * 26)),
        ([11, 25], 0.0, 0.0, 0.0, 0.0),
    ],
)
def test_measures_of_a_sample_are_those_worked_out_by_hand(times_s: list[float], kfr: float, shr: float, bsr: float, bds: float) -> None:
    found = score([LONG, SHORT], times_s)
    assert (found.frames, found.kfr, found.shr, found.bsr) == (len(times_s), kfr, shr, bsr)
    assert found.bds == pytest.approx(bds)
    assert found.ukss == pytest.approx((kfr * bsr * bds) ** (1 / 3))


def test_both_ends_of_a_scene_lie_inside() -> None:
    assert [score([LONG], [time_s]).kfr for time_s in (-0.01, 0, 10, 10.01)] == [0, 1, 1, 0]


def test_a_frame_in_two_scenes_hits_both_and_is_one_key_frame() -> None:
    found = score([[(0, 10)], [(5, 15)]], [7, 99])
    assert (found.kfr, found.shr) == (0.5, 1.0)


def test_of_many_samples_ukss_is_a_geometric_mean_with_a_least_value() -> None:
    good, none = KfsScore(4, 0.5, 1.0, 1.0, 1.0), KfsScore(2, 0.0, 0.0, 0.0, 0.0)
    found = summary([good, none])
    assert (found.frames, found.kfr, found.shr, found.bsr, found.bds) == (3, 0.25, 0.5, 0.5, 0.5)
    assert found.ukss == pytest.approx(math.sqrt(0.5 ** (1 / 3) * 0.01))


def test_nothing_is_not_scored() -> None:
    for scenes, times_s in (([], [1.0]), ([LONG], [])):
        with pytest.raises(ValueError, match="nothing to score"):
            score(scenes, times_s)


# ---------------------------------------------------------------- annotations


def test_rows_of_one_scene_are_its_stretches_and_the_last_second_is_inside(tmp_path: Path) -> None:
    rows = "a_0,0,4,0:00:12,0:00:13\na_0,1,2,1:02:03,1:02:03\na_0,2,4,0:01:00,0:01:09\n003-2,0,0,0:49,75:10\n"
    assert kfs.read_scenes(write(tmp_path / "anno.csv", HEAD + rows)) == {
        "a_0": [[(12.0, 14.0), (60.0, 70.0)], [(3723.0, 3724.0)]],
        "003-2": [[(49.0, 4511.0)]],
    }


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("id,start,end\n", "expected the columns id, segment_id, scene_id, start, end, but found id, start, end."),
        ("", "expected the columns id, segment_id, scene_id, start, end, but found none."),
        (HEAD, "holds no scenes."),
        (HEAD + "a,0,0,0:01\n", "line 2: expected a value for each of id, segment_id, scene_id, start, end."),
        (HEAD + "a,0,0,0:01,0:02,0:03\n", "line 2: expected a value for each of id"),
        (HEAD + "a,0,,0:01,0:02\n", "line 2: expected a value for each of id"),
        (HEAD + "a,0,0,12,0:13\n", 'line 2: expected a time such as 0:04:15 or 4:15, but found "12".'),
        (HEAD + "a,0,0,0:01,0:61\n", 'line 2: expected a time such as 0:04:15 or 4:15, but found "0:61".'),
        (HEAD + "a,0,0,0:01,0:60\n", 'line 2: expected a time such as 0:04:15 or 4:15, but found "0:60".'),
        (HEAD + "a,0,0,0:01,1:60:01\n", 'line 2: expected a time such as 0:04:15 or 4:15, but found "1:60:01".'),
        (HEAD + "a,0,0,0:01,0:02\na,1,1,0:09,0:08\n", "line 3: the scene ends at 0:08, before it begins at 0:09."),
    ],
)
def test_annotations_of_another_form_are_refused_with_their_line(text: str, fault: str, tmp_path: Path) -> None:
    with pytest.raises(FormError, match=re.escape(fault)):
        kfs.read_scenes(write(tmp_path / "anno.csv", text))


# ---------------------------------------------------------------- keyframes


def test_results_in_the_published_form_are_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    annotations = write(tmp_path / "anno.csv", HEAD + "a,0,0,0:00,0:09\na,1,1,0:20,0:24\nb,0,0,0:05,0:05\nc,0,0,0:01,0:02\n")
    results = [
        {"id": "a", "frame_timestamps": [5, 5.0, 21, 50.5]},
        {"id": "b", "frame_timestamps": [7]},
        {"id": "z", "frame_timestamps": [1]},
    ]
    kfs.main([str(annotations), str(write(tmp_path / "results.json", json.dumps(results))), "--json", str(tmp_path / "out.json")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "anno.csv, results.json: 2 of 3 samples"
    # a: 3 of 4 frames in scenes of 10 and 5 s, as 2 : 1; b: none
    ukss = math.sqrt(0.75 ** (1 / 3) * 0.01)
    assert lines[2].split() == ["results", "2.5", "0.3750", "0.5000", "0.5000", "0.5000", f"{ukss:.4f}"]
    assert lines[3] == "Not annotated: 1 samples, such as z"
    assert lines[4].startswith("No evenly spaced frames")
    found = json.loads((tmp_path / "out.json").read_text())["results"]
    assert found["samples"]["a"]["ukss"] == pytest.approx(0.75 ** (1 / 3))
    assert found["total"]["ukss"] == pytest.approx(ukss)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ("{", "is no JSON"),
        ({}, "holds no results."),
        ([], "holds no results."),
        ([{"id": "a"}], 'result 1: expected an "id" and "frame_timestamps" in seconds, at least one.'),
        ([{"id": 3, "frame_timestamps": [1]}], 'result 1: expected an "id"'),
        ([{"id": "a", "frame_timestamps": []}], 'result 1: expected an "id"'),
        ([{"id": "a", "frame_timestamps": ["1"]}], 'result 1: expected an "id"'),
        ('[{"id": "a", "frame_timestamps": [NaN]}]', 'result 1: expected an "id"'),
        ([{"id": "a", "frame_timestamps": [1]}, {"id": "a", "frame_timestamps": [2]}], "result 2: a is there twice."),
        ([{"id": "b", "frame_timestamps": [1]}], "has no sample of"),
    ],
)
def test_results_of_another_form_are_refused(data: Any, fault: str, tmp_path: Path) -> None:
    annotations = write(tmp_path / "anno.csv", HEAD + "a,0,0,0:00,0:09\n")
    results = write(tmp_path / "results.json", data if isinstance(data, str) else json.dumps(data))
    with pytest.raises(SystemExit, match=re.escape(fault)):
        kfs.main([str(annotations), str(results)])


def test_runs_of_vip_stand_beside_as_many_evenly_spaced_frames(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three seconds whose clock begins at 3 s: the annotation counts from the start of the video."""
    video = tmp_path / "v.mkv"
    ticks = [30 + tick for tick in range(30)]
    write_video(video, frames=30, rate=10, gop=10, ticks=ticks, picture=lambda number: np.asarray(scene(number // 10)))
    settings = ExtractSettings(keyframes=2, sampler="every:1s", pruner="none", embedder="classic")  # of 0, 1 and 2 s, 0 and 2
    run = extract(video, out=tmp_path / "runs" / "003-2.vip", settings=settings)
    chosen = [frame.time_s for frame in run.keyframes]
    assert chosen == [3.0, 5.0]
    annotations = write(tmp_path / "anno.csv", HEAD + "003-2,0,0,0:00,0:00\n004-1,0,0,0:00,0:01\n003-2,1,1,0:02,0:02\n")
    scored = kfs.run(annotations, tmp_path / "runs")
    # evenly spaced over 2.9 s: 0.725 and 2.175 s
    assert [scored[way]["003-2"].kfr for way in ("vip", "evenly spaced")] == [1.0, 1.0]
    assert kfs.read_runs(tmp_path / "runs", {"003-2": ()}) == ({"003-2": [0.0, 2.0]}, {"003-2": pytest.approx([0.725, 2.175])})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "anno.csv, runs: 1 of 2 samples"
    assert [line.split()[0] for line in lines[2:]] == ["vip", "evenly"]


@pytest.mark.parametrize("part", [{"start": 1.0}, {"end": 2.0}])
def test_a_run_on_a_part_of_a_video_is_refused(part: dict[str, float], tmp_path: Path) -> None:
    """Its times would be counted from the start of the part."""
    video = clip(tmp_path / "v.mp4", range(3))
    settings = ExtractSettings(keyframes=1, sampler="every:1s", pruner="none", embedder="classic", **part)
    extract(video, out=tmp_path / "003-2.vip", settings=settings)
    with pytest.raises(FormError, match=r"003-2\.vip is a run on a part of a video, and scenes are of the whole\. Extract without"):
        kfs.read_runs(tmp_path, {"003-2": ()})


def test_a_folder_without_runs_of_the_samples_names_the_command(tmp_path: Path) -> None:
    annotations = write(tmp_path / "anno.csv", HEAD + "003-2,0,0,0:00,0:09\n")
    with pytest.raises(SystemExit, match=r"holds no run of a sample\. Make one by: vip extract VIDEO -o .*/003-2\.vip"):
        kfs.main([str(annotations), str(tmp_path)])


def test_an_unfinished_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "003-2.vip").mkdir()
    annotations = write(tmp_path / "anno.csv", HEAD + "003-2,0,0,0:00,0:09\n")
    with pytest.raises(SystemExit, match="holds no keyframes"):
        kfs.main([str(annotations), str(tmp_path)])
